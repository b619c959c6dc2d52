"""The usual abbreviations and short forms of clinical notes, and what they stand for in words."""

from safe_core.diagnosis.words import by_spelling, word_set

STOPPED = word_set("vs dr mr mrs ms approx eg ie cf")
"""Abbreviations whose full stop ends no sentence."""

# Each by its key: one that a text spells out is the same.
ABBREVIATIONS = by_spelling(
    {
        "ED": "ed|er|emergency department|emergency room|accident and emergency",
        "OR": "operating room|operating theatre|operating theater",
        "ICU": "icu|itu|intensive care unit|intensive therapy unit",
        "CT": "ct|computed tomography",
        "MRI": "mri|magnetic resonance imaging",
        "ECG": "ecg|ekg|electrocardiogram",
        "GCS": "gcs|glasgow coma scale|glasgow coma score",
        "BP": "bp|blood pressure",
        "HR": "hr|heart rate",
        "RR": "rr|respiratory rate",
        "GP": "gp|general practitioner",
        "DVT": "dvt|deep vein thrombosis",
        "UTI": "uti|urinary tract infection",
        "SATS": "sats|spo 2|sao 2|saturation|saturations|oxygen saturation|oxygen saturations",
        "HB": "hb|hgb|haemoglobin|hemoglobin",
        "TEMP": "temp|temperature",
        "XR": "xr|x ray|x rays|radiograph|radiographs|radiography",
        "ECHO": "echo|echocardiogram|echocardiography",
        "NEURO": "neuro|neurological|neurologic|neurologically",
        "NG": "ng|nasogastric",
        "GI": "gi|gastrointestinal",
        "POSTOP": "postop|post op|postoperative|postoperatively",
        "PREOP": "preop|pre op|preoperative|preoperatively",
        "RBC": "rbc|rbcs|red cells|red blood cells|packed cells|packed red cells|packed red blood cells|prbc|prbcs",
        "NBM": "nbm|npo|nil by mouth|nothing by mouth",
        "NIV": "niv|noninvasive ventilation|non invasive ventilation",
        "WCC": "wcc|wbc|white cells|white cell count|white blood cell count",
        "ABI": "abi|abpi|ankle pressure index|ankle brachial index|ankle brachial pressure index",
        "FBC": "fbc|cbc|full blood count|complete blood count",
        "PPH": "pph|postpartum haemorrhage|postpartum hemorrhage",
        "HDU": "hdu|high dependency unit",
    },
    separator="|",
)

# The usual short forms in clinical notes, read as what they stand for; what only cuts a long word needs no line.
SHORT_FORMS: dict[str, tuple[str, ...]] = {
    short: tuple(full.split())
    for full, shorts in (
        ("abdomen", "abdo"),
        ("admitted", "adm"),
        ("antibiotics", "abx"),
        ("atrial fibrillation", "af"),
        ("bilateral", "bilat"),
        ("biopsy", "bx"),
        ("chloride", "cl"),
        ("sodium", "na"),
        ("blood cultures", "bcx"),
        ("catheterisation", "cath"),
        ("consultant", "cons"),
        ("diagnosis", "dx"),
        ("fracture", "fx"),
        ("history", "hx"),
        ("laboratory", "lab"),
        ("lumbar puncture", "lp"),
        ("moderate", "mod"),
        ("myocardial infarction", "mi"),
        ("negative", "neg"),
        ("observations", "obs"),
        ("platelets", "plt plts"),
        ("positive", "pos"),
        ("pulmonary embolism", "pe"),
        ("registrar", "reg spr"),
        ("respiratory", "resp"),
        ("symptoms", "sx"),
        ("systolic bp", "sbp"),
        ("treatment", "rx tx"),
        ("troponin", "trop"),
        ("urine output", "uo"),
        # drugs
        ("amiodarone", "amio"),
        ("dexamethasone", "dex"),
        ("enoxaparin", "enox"),
        ("furosemide", "furo"),
        ("gentamicin", "gent"),
        ("magnesium", "mag"),
        ("meropenem", "mero"),
        ("prednisolone", "pred"),
        ("vancomycin", "vanc"),
    )
    for short in shorts.split()
}
