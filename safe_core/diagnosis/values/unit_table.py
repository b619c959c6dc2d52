"""The units of clinical notes: what each measures, and how many of the smallest one it is."""

from typing import NamedTuple


class Unit(NamedTuple):
    """What a unit measures, and how many of the smallest one it is; units of another base cannot be converted."""

    quantity: str
    size: float
    base: str = ""


def _units(*rows: tuple[str, float, str]) -> dict[str, Unit]:
    return {name: Unit(quantity, size) for quantity, size, names in rows for name in names.split()}


UNITS = _units(
    ("duration", 1, "s sec secs second seconds"),
    ("duration", 60, "min mins minute minutes"),
    ("duration", 3600, "h hr hrs hour hours hourly"),
    ("duration", 86400, "day days"),
    ("duration", 604800, "wk wks week weeks"),
    ("duration", 1209600, "fortnight fortnights"),
    ("duration", 2629800, "month months mo mos"),
    ("duration", 31557600, "year years yr yrs yo y"),
    ("mass", 1e-3, "ng nanogram nanograms"),
    ("mass", 1, "mcg µg μg ug microgram micrograms"),
    ("mass", 1e3, "mg milligram milligrams mgs"),
    ("mass", 1e6, "g gram grams gm"),
    ("mass", 1e9, "kg kilogram kilograms kgs"),
    ("mass", 453592370, "lb lbs pound pounds"),
    ("volume", 1, "ml millilitre millilitres milliliter milliliters cc"),
    ("volume", 1e2, "dl decilitre decilitres deciliter deciliters"),
    ("volume", 1e3, "l litre litres liter liters"),
    ("length", 1, "mm millimetre millimetres millimeter millimeters"),
    ("length", 10, "cm centimetre centimetres centimeter centimeters"),
    ("length", 1000, "m metre metres meter meters"),
    ("length", 25.4, "inch inches"),
    ("length", 304.8, "ft foot feet"),
    ("pressure", 1, "mmhg"),
    ("pressure", 7.50062, "kpa"),
    ("share", 1, "percent"),
    ("heat or angle", 1, "degree degrees c celsius centigrade"),
    ("activity", 1, "iu units unit"),
    ("substance", 1e-3, "µmol μmol umol micromol"),
    ("substance", 1, "mmol mmols"),
) | {name: Unit("heat or angle", 1, "F") for name in ("f", "fahrenheit")}
