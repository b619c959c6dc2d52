"""Words that are a value by themselves: "left", "severe", "by mouth", "noon" and "yesterday"."""

from safe_core.diagnosis.values.unit_table import UNITS
from safe_core.diagnosis.values.value_types import Spot, Value, ValueType
from safe_core.diagnosis.words import lengths_by_first_word, word_set


def _fixed_values(*rows: tuple[ValueType, str, str]) -> dict[str, Value]:
    """Map spellings to values, from rows of type, scale and values: a word, or "canonical=spelling,two_words"."""
    return {
        spelling.replace("_", " "): Value(value_type, scale, canonical, 1 + spelling.count("_"))
        for value_type, scale, values in rows
        for canonical, _, spellings in (value.partition("=") for value in values.split())
        for spelling in (spellings or canonical).split(",")
    }


# Words that are a value by themselves; on one scale, each value stands against the others.
_FIXED = _fixed_values(
    ("day", "near day", "today yesterday tomorrow"),
    ("time", "clock", "12:00=noon,midday 00:00=midnight"),
    ("time", "part of the day", "morning afternoon evening night=night,nights,overnight,tonight"),
    ("grade", "severity", "mild=mild,mildly moderate=moderate,moderately severe=severe,severely minor major trivial"),
    ("grade", "depth", "superficial=superficial,superficially deep=deep,deeply"),
    ("grade", "course", "acute=acute,acutely chronic=chronic,chronically"),
    ("grade", "malignancy", "benign malignant"),
    ("grade", "completeness", "complete=complete,completely partial=partial,partially,incomplete,incompletely"),
    ("side", "left or right", "left=left,lt right=right,rt bilateral=both,bilateral,bilaterally unilateral"),
    ("side", "upper or lower", "upper lower"),
    ("side", "near or far", "proximal=proximal,proximally distal=distal,distally"),
    ("side", "inner or outer", "medial=medial,medially lateral=lateral,laterally"),
    ("side", "front or back", "anterior=anterior,anteriorly posterior=posterior,posteriorly"),
    ("side", "palm or back", "volar=volar,palmar dorsal=dorsal,dorsally"),
    ("side", "above or below", "above below=below,beneath,underneath,under_the"),
    ("side", "inside or outside", "inner=inner,internal outer=outer,external"),
    ("route", "route", "oral=oral,orally,by_mouth,per_os,po topical=topical,topically"),
    ("route", "route", "intravenous=intravenous,intravenously,iv,into_a_vein,into_the_vein"),
    ("route", "route", "intramuscular=intramuscular,intramuscularly,im,into_a_muscle,into_the_muscle"),
    ("route", "route", "subcutaneous=subcutaneous,subcutaneously,subcut,sc,under_the_skin"),
    ("route", "route", "sublingual=sublingual,sublingually,under_the_tongue"),
    ("route", "route", "rectal=rectal,rectally,per_rectum,by_the_back_passage"),
    ("route", "route", "inhaled=inhaled,inhalation nebulised=nebulised,nebulized vaginal=vaginally,per_vaginam"),
    ("route", "route", "intranasal=intranasal,intranasally intrathecal=intrathecal,intrathecally"),
    ("route", "anaesthesia", "general=ga"),
)
FIXED_LENGTHS = lengths_by_first_word(_FIXED)
ANAESTHETICS = word_set("general spinal epidural regional local")
SIDE_LETTERS = {"l": _FIXED["left"], "r": _FIXED["right"]}
_BEFORE_LEAVING = word_set("he she they who was were had has been be")
_AFTER_LEAVING = word_set("for in on to as until open out behind by with")
_AFTER_RIGHT = word_set("away after before now then")


def read_fixed(spot: Spot) -> Value | None:
    """Read a fixed value of one or more words; "left the hospital", "right away" and "pO2" have none."""
    first = spot.folded()
    if (first == "right" and spot.folded(1) in _AFTER_RIGHT) or _is_departure(spot):
        return None
    if first == "po" and spot.folded(1)[:1].isdecimal() and not spot.before(1):  # pO2
        return None
    if first == "both" and "and" in (spot.folded(2), spot.folded(3), spot.folded(4)):
        return None
    for length in FIXED_LENGTHS[first]:
        phrase = first if length == 1 else " ".join([spot.folded(step) for step in range(length)])
        if value := _FIXED.get(phrase):
            return value
    return None


def _is_departure(spot: Spot) -> bool:
    """Tell the verb "left" from the side: "she left the hospital", "was left waiting", "a drain was left for a day"."""
    if spot.folded() != "left":
        return False
    before, after = spot.folded(-1), spot.folded(1)
    is_verb = before in _BEFORE_LEAVING and (after.endswith("ing") or after in _AFTER_LEAVING)
    return after in {"the", "without", "against", "at", "before", "open", "alone"} or is_verb


def read_anaesthetic(spot: Spot) -> Value | None:
    """Read the "spinal" of "spinal anaesthesia" and "under spinal"."""
    is_one = spot.folded(1).startswith(("anaesth", "anesth")) or spot.folded(-1) == "under"
    return Value("route", "anaesthesia", spot.folded(), 1) if is_one else None


def read_side_letter(spot: Spot) -> Value | None:
    """Read the capital of "L hip"; that of "2 L", "L4" and "mg/L" is no side."""
    is_alone = spot.before(0) in {None, " "} and spot.before(1) == " " and not spot.folded(-1)[:1].isdecimal()
    stands_before_noun = spot.folded(1)[:1].isalpha() and spot.folded(1) not in UNITS
    return SIDE_LETTERS[spot.folded()] if spot.is_capitalised and is_alone and stands_before_noun else None
