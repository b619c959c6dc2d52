"""What is measured, and the words that name a finding of it: "hyperkalaemia of 6.1" is a potassium of 6.1."""

from typing import Final

from safe_core.diagnosis.words import stem

_NAMES: Final = {
    "BP": "pressure hypotension hypotensive hypertension hypertensive",
    "HR": "pulse heartbeat heartbeats tachycardia tachycardic bradycardia bradycardic",
    "RR": "tachypnoea tachypnoeic bradypnoea",
    "TEMP": "fever febrile pyrexia pyrexial hypothermia hypothermic",
    "SATS": "hypoxia hypoxic hypoxaemia desaturation desaturated",
    "HB": "anaemia anaemic",
    "WCC": "leukocytosis leucocytosis leukopenia leucopenia",
    "platelets": "thrombocytopenia thrombocytosis",
    "neutrophils": "neutropenia neutrophilia",
    "potassium": "hyperkalaemia hypokalaemia",
    "sodium": "hypernatraemia hyponatraemia",
    "calcium": "hypercalcaemia hypocalcaemia",
    "magnesium": "hypermagnesaemia hypomagnesaemia",
    "phosphate": "hyperphosphataemia hypophosphataemia",
    "glucose": "hyperglycaemia hypoglycaemia sugar",
    "albumin": "hypoalbuminaemia",
    "bilirubin": "hyperbilirubinaemia",
}
MEASURES: Final = {stem(name): stem(measure) for measure, names in _NAMES.items() for name in names.split()}
"""The stem of a finding → the key of what was measured."""
_MEASURED: Final = frozenset(MEASURES.values())


def measure_of(key: str) -> str | None:
    """Give the key of what was measured, if a word names it or a finding of it."""
    return MEASURES.get(key) or (key if key in _MEASURED else None)
