"""Planted alterations and their look-alikes, written before the diagnosis that they test, and apart from it.

Every text here is invented. A planted case is an output whose text holds the expected term with exactly one alteration;
a look-alike is a pair that a hasty rule would take for a changed value or a changed meaning, and that is neither.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Literal, NamedTuple

from safe_core import Expectations, Output

Sort = Literal["number", "time", "day", "grade", "side", "unit", "negation", "certainty"]
Criterion = Literal["CR", "AC"]
Form = Literal["noun", "clause", "verb"]


@dataclass(frozen=True, slots=True)
class Planted:
    """One alteration: `term` is expected, `passage` is what the output says instead."""

    name: str
    sort: Sort
    criterion: Criterion
    term: str
    passage: str
    expected: str
    altered: str
    output: Output

    @property
    def kind(self) -> str:
        """The kind that the diagnosis has to give."""
        return "polarity" if self.sort in {"negation", "certainty"} else "value"


@dataclass(frozen=True, slots=True)
class LookAlike:
    """One missed term that is none of what it resembles; `kinds` are the readings that are fair."""

    name: str
    criterion: Criterion
    term: str
    output: Output
    kinds: frozenset[str]


class Frame(NamedTuple):
    """A term with a gap, told in one story; each change is "expected > altered", and either may be empty."""

    story: str
    form: Form
    text: str
    changes: tuple[str, ...]


class Lost(NamedTuple):
    """A term of which the output holds only a part, and the types that are fair for each of the lost words."""

    term: str
    passage: str
    words: Mapping[str, tuple[str, ...]]


def expectations_of(criterion: Criterion, *terms: str) -> Expectations:
    """Demand the terms by one criterion."""
    return Expectations(must_find_signals=terms) if criterion == "CR" else Expectations(must_contain_phrases=terms)


def field_text(criterion: Criterion, output: Output) -> str:
    """Give all that the criterion reads."""
    return output.summary if criterion == "AC" else " ".join([*output.signals, output.summary])


def stands_in(value: str, text: str) -> bool:
    """Tell whether a value stands in the text as a value of its own: 3 stands neither in 13 nor in 3.5 nor in 03:20."""
    pattern = rf"(?<![\w.:,/]){re.escape(value.lower())}(?!\w|[.:,/]\d)"
    return re.search(pattern, text.lower()) is not None


# ─── the stories: true to life around the planted passage, with values, sides and negations of their own ───

STORIES: dict[str, Output] = {
    "elbow": Output(
        (
            "brought in by her father",
            "deformity and tenting of the skin",
            "splint applied in triage",
            "radiographs taken at 17:25",
            "no open wound",
            "paediatric orthopaedic team paged",
            "mother asked twice about the wait",
        ),
        "The child was hurt in the playground and was splinted in triage. Radiographs were taken at 17:25 and the "
        "orthopaedic team was paged. Her mother asked twice about the wait.",
        ("Who decided on the order of the list?", "Was the splint loosened overnight?"),
    ),
    "hip": Output(
        (
            "lives alone in a bungalow",
            "found by a neighbour",
            "bruise on the right wrist",
            "haemoglobin 96 on the first sample",
            "nerve block by the anaesthetic registrar",
            "no anticoagulant on the medication list",
            "falls clinic appointment missed",
        ),
        "She tripped on a rug and was found by a neighbour. A nerve block eased the pain and haemoglobin was 96. "
        "The falls clinic had expected her.",
        ("Who completed the falls assessment?", "Was the block repeated on the ward?"),
    ),
    "sepsis": Output(
        (
            "long-term urinary catheter",
            "confused since breakfast",
            "skin mottled over the knees",
            "respiratory rate 27",
            "outreach team called by the ward nurse",
            "no relatives present",
            "possible drug interaction raised by pharmacy",
        ),
        "A resident of a care home became confused and mottled. The outreach team was called, and pharmacy raised a "
        "possible drug interaction.",
        ("When was the outreach team called?", "Was the catheter blocked?"),
    ),
    "stroke": Output(
        (
            "found slumped in an armchair",
            "speech slurred",
            "blood glucose normal",
            "stroke team met the ambulance",
            "blood pressure 171/96",
            "no recent operation",
            "wife gave the history",
        ),
        "He was found slumped in an armchair with slurred speech. The stroke team met the ambulance and his wife gave "
        "the history.",
        ("Which imaging was requested?", "What did his wife observe?"),
    ),
    "obstetric": Output(
        (
            "second pregnancy",
            "induction with a pessary",
            "uterus boggy after delivery",
            "obstetric emergency call at 21:10",
            "massive transfusion protocol started",
            "no retained membranes seen by the midwife",
            "partner present throughout",
        ),
        "Labour was induced and the uterus was boggy after delivery. An emergency call went out at 21:10 and the "
        "protocol was started.",
        ("Who led the emergency?", "Was the theatre team ready?"),
    ),
    "appendix": Output(
        (
            "periumbilical cramps at first",
            "appetite lost",
            "vomited once in the car",
            "C-reactive protein 71",
            "surgical registrar busy with another emergency",
            "no urinary symptoms",
            "consent signed by both parents",
        ),
        "The student had cramps and vomited once in the car. The surgical registrar was busy with another emergency, "
        "and C-reactive protein was 71.",
        ("Which imaging was chosen first?", "Why was the registrar busy?"),
    ),
    "cardiac": Output(
        (
            "sweating and grey",
            "smoker for most of his life",
            "aspirin and nitrate in the ambulance",
            "electrocardiogram sent ahead at 06:55",
            "catheter laboratory activated",
            "no bleeding disorder",
            "daughter drove behind the ambulance",
        ),
        "He felt unwell while shovelling snow and looked grey. The electrocardiogram was sent ahead at 06:55 and the "
        "catheter laboratory was activated.",
        ("Who activated the laboratory?", "Which vessel was treated?"),
    ),
    "opioid": Output(
        (
            "back pain clinic follows him",
            "drowsy and hard to rouse",
            "pinpoint pupils",
            "respiratory rate 7",
            "pharmacist reviewed the chart on Wednesday",
            "no alcohol in the room",
            "incident form completed",
        ),
        "He became drowsy with pinpoint pupils after a change of prescription. The pharmacist reviewed the chart on "
        "Wednesday and an incident form was completed.",
        ("Who programmed the pump?", "Was the chart checked?"),
    ),
    "asthma": Output(
        (
            "wheeze since the school trip",
            "cat at her aunt's flat",
            "too breathless to finish a sentence",
            "peak flow 127",
            "magnesium considered by the registrar",
            "no previous stay in intensive care",
            "spacer technique taught",
        ),
        "She wheezed after visiting her aunt, who keeps a cat. Peak flow was 127 and the registrar thought of "
        "magnesium.",
        ("Which triggers were discussed?", "Was the spacer used?"),
    ),
    "pressure": Output(
        (
            "bed-bound after a fall",
            "air mattress ordered on Wednesday",
            "diabetes treated with diet",
            "tissue viability nurse involved",
            "thin fragile skin",
            "no repositioning chart in the folder",
            "albumin 26",
        ),
        "He is bed-bound and has thin fragile skin. An air mattress was ordered on Wednesday, and the tissue viability "
        "nurse is involved.",
        ("Who ordered the mattress?", "Was the position changed at night?"),
    ),
    "arthroplasty": Output(
        (
            "planned joint replacement",
            "spinal anaesthetic without problems",
            "drain output small",
            "stockings fitted in recovery",
            "pain score 7 on waking",
            "no blood products used",
            "physiotherapist met the family",
        ),
        "A planned joint replacement went smoothly under spinal anaesthetic. Stockings were fitted in recovery.",
        ("Which exercises were taught?", "Was the drain measured?"),
    ),
    "head": Output(
        (
            "helmet cracked",
            "asks for his bicycle over and over",
            "scalp wound glued",
            "pulse 71 and regular",
            "neurosurgeon telephoned from the ward",
            "no anticoagulant at home",
            "observation chart started",
        ),
        "The rider was thrown onto the road and the helmet cracked. The scalp wound was glued and a neurosurgeon was "
        "telephoned.",
        ("Who telephoned the neurosurgeon?", "Was the helmet kept?"),
    ),
}

# ─── what is altered ───

FRAMES: dict[Sort, tuple[Frame, ...]] = {
    "number": (
        Frame("elbow", "verb", "waited {} hours for a theatre slot", ("13 > 3", "6 > 16", "2.5 > 25")),
        Frame("hip", "noun", "{}-year-old woman found on the kitchen floor", ("84 > 48", "79 > 97")),
        Frame("hip", "clause", "surgery started after {} hours", ("13 > 3", "31 > 13")),
        Frame("sepsis", "verb", "received {} g of ceftriaxone on the ward", ("2 > 1", "4 > 2")),
        Frame("sepsis", "noun", "lactate of {} mmol/l at triage", ("4.2 > 2.4", "6.1 > 1.6")),
        Frame("sepsis", "noun", "temperature of {} °C during the night", ("39.4 > 37.4", "40.1 > 38.1")),
        Frame("stroke", "clause", "thrombolysis began {} minutes after arrival", ("58 > 85", "40 > 140")),
        Frame("obstetric", "noun", "estimated blood loss of {} ml at delivery", ("1500 > 500", "1,200 > 2,100")),
        Frame("obstetric", "clause", "{} units of red cells were transfused", ("four > two", "6 > 3")),
        Frame("appendix", "noun", "white cell count of {} on admission", ("18.4 > 8.4", "14 > 41")),
        Frame("cardiac", "noun", "heart rate of {} beats per minute on the monitor", ("152 > 52", "44 > 144")),
        Frame("cardiac", "verb", "took {} tablets of aspirin before the ambulance came", ("two > three",)),
        Frame("cardiac", "noun", "blood pressure of {} at the bedside", ("82/50 > 128/80", "90/60 > 190/60")),
        Frame("opioid", "verb", "was given {} mg of oral morphine", ("10 > 100", "5 > 15", "7.5 > 75")),
        Frame("opioid", "clause", "{} doses of naloxone were needed to restore breathing", ("three > one", "2 > 5")),
        Frame("asthma", "noun", "oxygen saturation of {}% on room air", ("88 > 98", "91 > 81")),
        Frame("asthma", "clause", "{} nebulisers were given back to back", ("three > six",)),
        Frame("pressure", "noun", "ulcer measuring {} cm across the heel", ("3 > 8", "4.5 > 5.4")),
        Frame("arthroplasty", "verb", "walked {} metres with a frame", ("20 > 200", "15 > 50")),
        Frame("head", "noun", "{} episodes of vomiting at home", ("two > five", "4 > 7")),
        Frame("head", "noun", "{}-year-old cyclist thrown over the handlebars", ("27 > 72",)),
    ),
    "time": (
        Frame("elbow", "clause", "surgery was scheduled for {}", ("08:30 > 09:30", "14:00 > 16:00", "23:15 > 22:15")),
        Frame(
            "hip",
            "verb",
            "arrived at the emergency department at {}",
            ("08:30 > 03:30", "7:15 am > 7:45 am", "8 pm > 6 pm", "8 pm > 8 am"),
        ),
        Frame("sepsis", "clause", "the first antibiotic was hung at {}", ("04:20 > 02:40", "0430 > 0530")),
        Frame("sepsis", "clause", "shivering returned in the {}", ("evening > morning",)),
        Frame(
            "stroke",
            "verb",
            "was last seen well at {}",
            ("22:00 > 20:00", "noon > midnight", "10 pm > 10 am", "11:30 PM > 11:30 AM"),
        ),
        Frame(
            "obstetric",
            "clause",
            "the baby was delivered at {} by caesarean section",
            ("03:12 > 03:21", "5:40 pm > 4:50 pm"),
        ),
        Frame(
            "appendix",
            "verb",
            "was taken to the operating room at {}",
            ("19:30 > 17:30", "1:05 am > 2:05 am", "midnight > 01:00"),
        ),
        Frame("cardiac", "clause", "chest pain started around {}", ("05:00 > 15:00", "9 am > 11 am")),
        Frame("cardiac", "verb", "was transferred by ambulance at {}", ("13:25 > 15:25", "2 PM > 4 PM")),
        Frame("opioid", "clause", "the last patch was applied at {}", ("18:00 > 08:00", "6 am > 6 pm")),
        Frame("asthma", "clause", "the night doctor reviewed her at {}", ("01:45 > 04:15", "00:30 > 03:00")),
        Frame("pressure", "clause", "the skin check was signed at {}", ("11:00 > 13:00", "11:10 > 11:40")),
        Frame("arthroplasty", "clause", "the tourniquet was released at {} before closure", ("12:48 > 12:18",)),
        Frame("arthroplasty", "verb", "was seen by the surgeon at {}", ("09.40 > 10.40",)),
        Frame("head", "clause", "the scan was reported at {}", ("16:05 > 15:05", "4:35 PM > 3:35 PM")),
        Frame("head", "verb", "collapsed in the {} while cooking", ("morning > evening",)),
        Frame("head", "clause", "the porter came at half past {}", ("eight > nine",)),
    ),
    "day": (
        Frame("elbow", "verb", "fell from the climbing frame on {}", ("Saturday > Sunday", "Friday > Monday")),
        Frame("elbow", "clause", "surgery took place on {} at 10:00", ("Sunday > Tuesday",)),
        Frame(
            "hip",
            "clause",
            "the hip was fixed on {}",
            ("Thursday > Friday", "12 March > 14 March", "4 May > 4 June"),
        ),
        Frame("hip", "clause", "consent was signed on {}", ("Sunday > Monday",)),
        Frame("sepsis", "clause", "blood cultures grew bacteria on day {}", ("2 > 5",)),
        Frame("sepsis", "clause", "antibiotics were changed on {} afternoon", ("Monday > Thursday",)),
        Frame("sepsis", "clause", "the central line was removed on {}", ("Jan 5 > Jan 15",)),
        Frame("stroke", "verb", "was admitted on {} after a collapse", ("Tuesday > Saturday", "3 October > 8 October")),
        Frame("obstetric", "verb", "went home on postpartum day {}", ("2 > 4", "3 > 1")),
        Frame("obstetric", "noun", "clinic visit on {} at the antenatal unit", ("Tue > Thu",)),
        Frame("appendix", "noun", "wound infection on postoperative day {}", ("2 > 3", "7 > 5", "three > six")),
        Frame("cardiac", "clause", "the stent was placed on {} morning", ("Friday > Sunday",)),
        Frame("cardiac", "verb", "was readmitted in {} with heart failure", ("January > August", "April > March")),
        Frame(
            "opioid",
            "clause",
            "the pump was refilled on {}",
            ("2024-03-12 > 2024-03-21", "17/04/2023 > 19/04/2023", "Sunday > Monday"),
        ),
        Frame("asthma", "verb", "was discharged on the {} day", ("third > fifth", "second > fourth")),
        Frame("asthma", "clause", "a new inhaler was started on {}", ("Sunday > Thursday", "Friday > Saturday")),
        Frame(
            "pressure",
            "clause",
            "the next dressing change was due on {}",
            ("Saturday > Monday", "21 November > 29 November"),
        ),
        Frame("arthroplasty", "clause", "physiotherapy began on {}", ("Monday > Friday",)),
        Frame("arthroplasty", "clause", "the drain came out on postoperative day {}", ("1 > 4",)),
        Frame("head", "clause", "dizziness worsened on {} evening", ("Thursday > Tuesday", "Sunday > Saturday")),
        Frame("head", "verb", "was sent home the {} day", ("same > next",)),
    ),
    "grade": (
        Frame(
            "elbow",
            "noun",
            "Gartland type {} fracture near the elbow",
            ("II > III", "III > II", "I > III", "IV > II"),
        ),
        Frame("elbow", "noun", "Gartland {} fracture after a fall", ("III > II", "3 > 2")),
        Frame("hip", "noun", "Garden {} fracture of the femoral neck", ("IV > II",)),
        Frame("hip", "clause", "the anaesthetist graded her ASA {}", ("3 > 2", "III > IV")),
        Frame("sepsis", "noun", "stage {} acute kidney injury", ("2 > 3", "1 > 3")),
        Frame("sepsis", "noun", "early warning score of {} at handover", ("7 > 4",)),
        Frame("stroke", "noun", "NIHSS score of {} on arrival", ("14 > 4", "18 > 8")),
        Frame("stroke", "noun", "modified Rankin score of {} before the stroke", ("1 > 3",)),
        Frame("obstetric", "noun", "{}-degree perineal tear", ("third > first", "fourth > third", "3rd > 2nd")),
        Frame("obstetric", "noun", "Apgar score of {} at five minutes", ("4 > 9",)),
        Frame("appendix", "noun", "stage {} tumour on histology", ("IIA > IIIB", "pT2 > pT3")),
        Frame("cardiac", "noun", "NYHA class {} breathlessness", ("III > I", "II > IV")),
        Frame("cardiac", "noun", "Killip class {} on presentation", ("2 > 3",)),
        Frame("opioid", "noun", "sedation score of {} after the evening dose", ("3 > 1",)),
        Frame("asthma", "noun", "{} exacerbation of asthma at school", ("severe > mild", "moderate > severe")),
        Frame("pressure", "noun", "stage {} pressure injury on the sacrum", ("2 > 4", "III > II", "two > three")),
        Frame("pressure", "noun", "Wagner grade {} foot ulcer", ("1 > 3",)),
        Frame("arthroplasty", "noun", "Kellgren-Lawrence grade {} osteoarthritis", ("4 > 2",)),
        Frame("arthroplasty", "noun", "Outerbridge grade {} cartilage damage", ("III > I",)),
        Frame("head", "noun", "Glasgow Coma Scale of {} at the scene", ("14 > 9", "8 > 13")),
        Frame("head", "noun", "GCS {} on arrival", ("15 > 11", "13/15 > 10/15")),
    ),
    "side": (
        Frame("elbow", "noun", "fracture of the {} humerus with swelling", ("left > right", "right > left")),
        Frame("elbow", "clause", "the {} hand was pink and pulseless", ("right > left", "left > right")),
        Frame("elbow", "noun", "{}-sided elbow swelling", ("left > right",)),
        Frame("hip", "noun", "shortened and rotated {} leg", ("left > right",)),
        Frame("hip", "clause", "the {} hip was marked by the surgeon", ("left > right",)),
        Frame("sepsis", "noun", "tenderness over the {} flank", ("left > right", "right > left")),
        Frame(
            "sepsis",
            "noun",
            "{} hydronephrosis on ultrasound",
            ("bilateral > unilateral", "left > bilateral", "right-sided > left-sided"),
        ),
        Frame("stroke", "noun", "weakness of the {} arm and face", ("right > left", "left > right")),
        Frame("stroke", "noun", "gaze deviation to the {}", ("left > right",)),
        Frame("obstetric", "noun", "tear of the {} vaginal wall", ("left > right",)),
        Frame("appendix", "noun", "pain in the {} lower quadrant", ("right > left", "left > right")),
        Frame("appendix", "clause", "the {} ovary looked normal", ("left > right",)),
        Frame("cardiac", "noun", "{} coronary artery occlusion", ("left > right",)),
        Frame("cardiac", "noun", "crackles at the {} lung base", ("right > left",)),
        Frame("cardiac", "noun", "{} crackles in the lower zones", ("bilateral > left",)),
        Frame("opioid", "clause", "the patch was found on the {} shoulder", ("left > right", "right > left")),
        Frame(
            "asthma",
            "noun",
            "{} pneumothorax on the chest film",
            ("left > right", "bilateral > right", "right > left"),
        ),
        Frame("pressure", "noun", "blackened skin on the {} heel", ("left > right", "right > left")),
        Frame("arthroplasty", "clause", "the {} knee was replaced", ("right > left", "left > right")),
        Frame("arthroplasty", "noun", "{} knee effusion", ("bilateral > right", "left > bilateral")),
        Frame("head", "noun", "laceration above the {} eye", ("left > right", "right > left")),
        Frame("head", "clause", "the {} pupil was dilated and slow", ("right > left", "left > right")),
        Frame("head", "noun", "haematoma over the {} temporal lobe", ("left > right",)),
    ),
    "unit": (
        Frame("elbow", "noun", "a delay of 12 {} before surgery", ("hours > minutes", "hours > days")),
        Frame("elbow", "noun", "12-{} delay to theatre", ("hour > day", "hour > minute")),
        Frame("hip", "verb", "lay on the floor for 6 {}", ("hours > days", "hours > minutes")),
        Frame("hip", "verb", "lost 2 {} of blood in theatre", ("litres > units",)),
        Frame("sepsis", "verb", "received 2 {} of meropenem", ("g > mg", "grams > milligrams")),
        Frame("sepsis", "noun", "noradrenaline at 0.1 {}", ("mcg/kg/min > mg/kg/min",)),
        Frame("sepsis", "noun", "capillary glucose of 14 {} on the meter", ("mmol/l > mg/dl",)),
        Frame("stroke", "clause", "weakness began 3 {} before arrival", ("hours > days", "hours > weeks")),
        Frame("stroke", "verb", "was given 40 {} of enoxaparin", ("mg > units",)),
        Frame("obstetric", "verb", "had been in labour for 20 {}", ("hours > minutes",)),
        Frame("obstetric", "verb", "received 10 {} of oxytocin", ("units > mg", "units > ml")),
        Frame("appendix", "noun", "appendix of 11 {} on ultrasound", ("mm > cm",)),
        Frame("appendix", "noun", "pain for 3 {} before admission", ("days > weeks", "days > hours")),
        Frame("cardiac", "noun", "heparin infusion at 18 {}", ("units/kg/h > ml/kg/h",)),
        Frame("cardiac", "noun", "weight gain of 4 {} since discharge", ("kg > lb", "kg > g")),
        Frame(
            "opioid",
            "verb",
            "was given 50 {} of fentanyl",
            ("mcg > mg", "micrograms > milligrams", "µg > mg"),
        ),
        Frame("opioid", "noun", "hydromorphone at 2 {} per hour", ("mg > ml", "mg > mcg")),
        Frame("asthma", "verb", "took prednisolone 40 {} daily", ("mg > ml",)),
        Frame("asthma", "noun", "temperature of 101 {} at school", ("°F > °C",)),
        Frame("asthma", "noun", "cough for 2 {} before the attack", ("weeks > months",)),
        Frame("pressure", "noun", "wound 4 {} deep over the sacrum", ("cm > mm",)),
        Frame("pressure", "clause", "the dressing stays on for 5 {}", ("days > hours", "days > weeks")),
        Frame("arthroplasty", "noun", "tourniquet time of 90 {}", ("minutes > seconds",)),
        Frame("arthroplasty", "noun", "cefazolin 2 {} at induction", ("g > mg",)),
        Frame(
            "head",
            "noun",
            "loss of memory for 30 {}",
            ("minutes > seconds", "minutes > hours", "seconds > minutes"),
        ),
        Frame("head", "verb", "received 100 {} of mannitol", ("ml > mg", "g > ml")),
    ),
    "negation": (
        Frame("elbow", "noun", "{} signs of compartment syndrome in the forearm", ("no >",)),
        Frame("elbow", "clause", "finger movement was {} tested", ("not >",)),
        Frame("elbow", "clause", "the cast was {} split before transfer", ("> not",)),
        Frame("elbow", "clause", "the radial pulse was {} palpable", ("not >", "> not")),
        Frame("hip", "noun", "fall {} loss of consciousness", ("without > with", "with > without")),
        Frame("hip", "verb", "was {} to bear weight", ("unable > able", "able > unable")),
        Frame("hip", "verb", "{} blood thinners before the fall", ("did not take > took",)),
        Frame("sepsis", "noun", "{} fever on arrival", ("no >",)),
        Frame("sepsis", "clause", "the catheter was {} changed on admission", ("not >", "> not")),
        Frame("sepsis", "clause", "the urine culture was {}", ("negative > positive", "positive > negative")),
        Frame("sepsis", "clause", "blood pressure {} to fluids", ("did not respond > responded",)),
        Frame("stroke", "verb", "{} headache or neck pain", ("denied > reported", "reported > denied")),
        Frame("stroke", "clause", "thrombolysis was {} given", ("not >", "> not")),
        Frame("stroke", "noun", "{} of facial droop", ("absence > presence",)),
        Frame("obstetric", "noun", "{} evidence of retained placenta", ("no >",)),
        Frame("obstetric", "clause", "the placenta was {} complete", ("> not",)),
        Frame("obstetric", "clause", "ergometrine was {} given after delivery", ("never >",)),
        Frame("appendix", "noun", "soft abdomen {} guarding", ("without > with", "with > without")),
        Frame("appendix", "clause", "the appendix was {} perforated", ("not >", "> not")),
        Frame("appendix", "noun", "{} lower abdomen on palpation", ("non-tender > tender",)),
        Frame("appendix", "clause", "abdominal imaging was {} performed", ("not >", "> not")),
        Frame("cardiac", "clause", "patient {} chest pain at rest", ("denied > reported", "denies > has")),
        Frame("cardiac", "noun", "{} previous heart attack", ("no >",)),
        Frame("cardiac", "clause", "troponin was {} raised", ("not >",)),
        Frame("opioid", "clause", "the pump rate was {} checked by another nurse", ("not >", "> not")),
        Frame("opioid", "noun", "{} known drug allergies", ("no >",)),
        Frame("opioid", "clause", "naloxone {} the sedation", ("did not reverse > reversed",)),
        Frame("asthma", "noun", "breathing {} use of accessory muscles", ("without > with",)),
        Frame("asthma", "clause", "steroids {} given early", ("were not > were", "weren't > were")),
        Frame("pressure", "clause", "the heels were {} offloaded overnight", ("not >", "> not")),
        Frame("pressure", "noun", "wound {} pus or odour", ("without > with",)),
        Frame("arthroplasty", "clause", "clot prevention was {} prescribed", ("not >",)),
        Frame("arthroplasty", "verb", "{} walk on the evening of surgery", ("could not > could", "cannot > can")),
        Frame("head", "noun", "{} vomiting since the injury", ("no >",)),
        Frame("head", "verb", "{} lose consciousness at the scene", ("did not > did",)),
        Frame("head", "clause", "a skull fracture was {}", ("ruled out > confirmed", "excluded > found")),
    ),
    "certainty": (
        Frame(
            "elbow",
            "noun",
            "{} compartment syndrome of the forearm",
            (
                "signs of >",
                "suspected >",
                "suspected > confirmed",
                "signs consistent with developing >",
                "developing > established",
                "impending >",
            ),
        ),
        Frame("hip", "noun", "{} fracture of the femoral neck", ("suspected >", "possible > definite")),
        Frame("hip", "clause", "the X-ray {} a hip fracture", ("suggested > confirmed", "confirmed > suggested")),
        Frame(
            "sepsis",
            "noun",
            "{} urosepsis from a blocked catheter",
            ("suspected >", "presumed > proven", "signs of >"),
        ),
        Frame("sepsis", "verb", "was diagnosed with {} septic shock", ("> possible", "> suspected")),
        Frame(
            "stroke",
            "noun",
            "{} acute ischaemic stroke",
            ("findings consistent with >", "likely >", "probable > confirmed"),
        ),
        Frame("stroke", "verb", "{} had a seizure in the ambulance", ("may have >", "possibly > definitely")),
        Frame("obstetric", "noun", "{} placental abruption", ("suspected >", "concern for >", "possible > confirmed")),
        Frame(
            "appendix",
            "noun",
            "{} acute appendicitis on ultrasound",
            ("probable >", "suspected > confirmed", "features suggestive of >"),
        ),
        Frame("appendix", "verb", "had a {} perforation of the bowel", ("> suspected", "confirmed > possible")),
        Frame(
            "cardiac",
            "noun",
            "{} acute myocardial infarction",
            ("changes consistent with >", "suspected >", "likely > definite"),
        ),
        Frame("opioid", "noun", "{} opioid toxicity", ("suspected >", "signs of >", "probable > confirmed")),
        Frame("asthma", "noun", "{} pneumonia in the lower lobe", ("developing >", "possible >")),
        Frame("asthma", "verb", "was treated for {} respiratory failure", ("impending >", "> impending")),
        Frame(
            "pressure",
            "noun",
            "{} infection of the heel bone",
            ("suspected >", "signs of >", "confirmed > suspected"),
        ),
        Frame(
            "arthroplasty",
            "noun",
            "{} deep vein thrombosis of the calf",
            ("possible >", "suspected > confirmed", "early signs of >"),
        ),
        Frame(
            "head",
            "noun",
            "{} skull base fracture",
            ("suspected >", "signs of >", "likely >", "possible > confirmed"),
        ),
        Frame("head", "clause", "bleeding into the brain was {}", ("suspected > confirmed", "confirmed > suspected")),
    ),
}

# form of a frame → how its passage stands within a longer signal, and within a sentence of the summary
_WITHIN_SIGNAL: dict[Form, str] = {
    "noun": "{}, copied from the ward chart",
    "clause": "per the ward chart, {}",
    "verb": "patient {}, as the ward chart shows",
}
_WITHIN_SUMMARY: dict[Form, str] = {
    "noun": "The ward chart lists {}.",
    "clause": "As the ward chart shows, {}.",
    "verb": "The patient {}.",
}


PLACES = 5
"""Where a passage may stand: as a signal, within one, in the summary (for CR, for AC), in a signal and the summary."""


def planted(*, shift: int = 0) -> Iterator[Planted]:
    """Give every alteration in the order of the tables; the places take turns, beginning with number `shift`."""
    for sort, frames in FRAMES.items():
        numbers = count()
        for frame in frames:
            for change in frame.changes:
                yield _planted(sort, frame, change, next(numbers), shift)


def _planted(sort: Sort, frame: Frame, change: str, number: int, shift: int) -> Planted:
    turn = number + shift
    expected, altered = (side.strip() for side in change.split(">"))
    term, passage = (" ".join(frame.text.format(value).split()) for value in (expected, altered))
    criterion: Criterion = "AC" if turn % PLACES == 3 else "CR"
    return Planted(
        name=f"{sort}-{number + 1:02d}-{criterion}-{_slug(frame.text)}-{_slug(expected)}-became-{_slug(altered)}",
        sort=sort,
        criterion=criterion,
        term=term,
        passage=passage,
        expected=expected,
        altered=altered,
        output=_told(STORIES[frame.story], frame.form, passage, turn),
    )


def _told(story: Output, form: Form, passage: str, turn: int) -> Output:
    """Set the passage into the story: as a signal, within one, within the summary, or in both."""
    sentence = _WITHIN_SUMMARY[form].format(passage)
    in_summary = f"{sentence} {story.summary}" if turn % 2 else f"{story.summary} {sentence}"
    within = _WITHIN_SIGNAL[form].format(passage)
    signals, summary = {
        0: ([passage], story.summary),
        1: ([within], story.summary),
        2: ([], in_summary),
        3: ([], in_summary),
        4: ([passage], in_summary),
    }[turn % PLACES]
    at = turn % (len(story.signals) + 1)
    return Output((*story.signals[:at], *signals, *story.signals[at:]), summary, story.followup_questions)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.replace("{}", "x").lower()).strip("-") or "nothing"


# ─── look-alikes ───

BAY = Output(
    (
        "consent form filed",
        "belongings stored in a locker",
        "meal choices written down",
        "interpreter booked",
        "spectacles kept at the bedside",
        "call bell placed within reach",
    ),
    "The newcomer settled into the bay and met the team. Belongings were stored and meal choices were written down.",
    ("Which meal choices were made?", "Who stored the belongings?"),
)
"""A story that shares no content word with any look-alike, and holds no value, side, negation or doubt."""

Row = tuple[str, ...]  # the term, then the passages of the output

LOOK_ALIKES: dict[str, tuple[frozenset[str], tuple[Row, ...]]] = {
    # it did happen, and when: no negation
    "not-until": (
        frozenset({"connectives", "rearranged", "part"}),
        (
            ("surgery was not performed until 02:00", "surgery was performed at 02:00"),
            ("surgery did not start until 06:15 in the morning", "surgery started at 06:15 in the morning"),
            ("surgery was delayed until 06:00", "surgery did not begin until 06:00"),
            ("the surgeon was not called until the evening", "the surgeon was called in the evening"),
            ("antibiotics were not given until Sunday", "antibiotics were given on Sunday"),
            ("was not seen by a doctor until noon", "was seen by a doctor at noon"),
            ("family could not be reached until the next day", "family was reached the next day"),
            ("transfer took place at 19:40", "transfer did not take place until 19:40"),
            ("catheter was removed on Friday", "catheter was not removed until Friday"),
            ("not taken to the operating room until 09:00", "taken to the operating room at 09:00"),
            ("did not wake until the second evening", "woke on the second evening"),
            ("the scan was read at 23:50", "the scan was not read until 23:50"),
        ),
    ),
    # numero
    "no-as-number": (
        frozenset({"form", "connectives", "rearranged", "part"}),
        (
            ("moved to theatre no. 4 for closure", "moved to theatre 4 for closure"),
            ("room no. 7 on the surgical ward", "room 7 on the surgical ward"),
            ("stitched with Prolene no. 2", "stitched with Prolene 2"),
            ("ambulance 12 attended the scene", "ambulance no. 12 attended the scene"),
            ("incident report No. 318 was filed", "incident report 318 was filed"),
            ("blade no. 15 was used for the incision", "blade 15 was used for the incision"),
            ("implant no 9 was opened by mistake", "implant 9 was opened by mistake"),
        ),
    ),
    # the expected value stands in the field as well, so that nobody can say it was changed
    "value-elsewhere": (
        frozenset({"part", "absent", "split", "rearranged"}),
        (
            ("surgery began after 3 hours", "surgery began after 13 hours", "3 hours in recovery"),
            ("surgery was scheduled for 08:30", "surgery was scheduled for 09:30", "breakfast was served at 08:30"),
            ("came by ambulance on Saturday", "came by ambulance on Sunday", "the earlier fall was on Saturday"),
            ("fracture of the left wrist", "fracture of the right wrist", "bruise of the left shoulder"),
            ("Gartland type II fracture", "Gartland type III fracture", "the transfer letter said type II"),
            ("was given 5 mg of morphine", "was given 10 mg of morphine", "5 mg had been ordered"),
            ("blood loss of 500 ml at delivery", "blood loss of 1500 ml at delivery", "500 ml of saline was infused"),
            (
                "stage 2 pressure injury on the sacrum",
                "stage 3 pressure injury on the sacrum",
                "stage 2 hypertension in the history",
            ),
            (
                "discharged on postoperative day 2",
                "discharged on postoperative day 3",
                "drain removed on postoperative day 2",
            ),
            (
                "6-year-old boy with a wrist injury",
                "9-year-old boy with a wrist injury",
                "6-year-old sister came with him",
            ),
            ("waited 40 minutes for a porter", "waited 55 minutes for a porter", "40 minutes in triage"),
            ("seen by the registrar at 8 pm", "seen by the registrar at 6 pm", "supper at 8 pm"),
        ),
    ),
    # one value, two spellings
    "same-value": (
        frozenset({"form", "connectives", "rearranged", "part"}),
        (
            ("13-hour delay before surgery", "delay of 13 hours before surgery"),
            ("a delay of 2.5 hours from arrival", "2.5-hour delay from arrival"),
            ("seen by the surgeon at 8:30 pm", "seen by the surgeon at 20:30"),
            ("seen by the surgeon at 08:00 PM", "seen by the surgeon at 8 pm"),
            ("seen by the surgeon at 8:30 pm", "seen by the surgeon at 8.30 pm"),
            ("seen by the surgeon at 8:30 pm", "seen by the surgeon at 8:30 p.m."),
            ("the drain was removed at 14:00", "the drain was removed at 2 pm"),
            ("the drain was removed at 9:05", "the drain was removed at 09:05"),
            ("collapsed at noon in the garden", "collapsed at 12:00 in the garden"),
            ("died at midnight on the ward", "died at 00:00 on the ward"),
            ("reviewed at 0830 by the registrar", "reviewed at 08:30 by the registrar"),
            ("two doses of naloxone were needed", "2 doses of naloxone were needed"),
            ("3 units of red cells were given", "three units of red cells were given"),
            ("twelve stitches in the scalp wound", "12 stitches in the scalp wound"),
            ("Gartland type III fracture of the elbow", "Gartland type 3 fracture of the elbow"),
            ("stage 2 pressure injury", "stage II pressure injury"),
            ("stage three pressure injury", "stage III pressure injury"),
            ("was given 50 mcg of fentanyl", "was given 50 micrograms of fentanyl"),
            ("was given 50 mcg of fentanyl", "was given 50 µg of fentanyl"),
            ("received 2 g of cefazolin", "received 2 grams of cefazolin"),
            ("lost 1,500 ml of blood", "lost 1500 ml of blood"),
            ("a 6-year-old girl with wheeze", "a girl aged 6 with wheeze"),
            ("a 6-year-old girl with wheeze", "a six-year-old girl with wheeze"),
            ("was admitted on Sat morning", "admitted Saturday morning"),
            ("discharged on the 3rd day", "discharged on the third day"),
            ("wound leak on postoperative day 2", "wound leak on the second postoperative day"),
            ("bilateral wrist fractures", "fractures of both wrists"),
            ("right-sided weakness of the arm", "weakness of the right arm"),
            ("temperature of 38 °C", "temperature of 38 degrees Celsius"),
            ("oxygen saturation of 91%", "oxygen saturation of 91 percent"),
            ("0.5 mg of adrenaline intramuscularly", ".5 mg of adrenaline intramuscularly"),
            ("2.0 mg of lorazepam", "2 mg of lorazepam"),
            ("blood pressure of 90/60 on arrival", "blood pressure of 90 over 60 on arrival"),
            ("waited 90 minutes for theatre", "waited 1.5 hours for theatre"),
            ("waited 4 hrs for a ward", "waited 4 hours for a ward"),
        ),
    ),
    # another event has its own value
    "other-event": (
        frozenset({"part", "absent"}),
        (
            ("surgery lasted 3 hours", "waited 13 hours for a transfer"),
            ("arrived at 08:30 by ambulance", "lunch was served at 12:15"),
            ("fall from a ladder on Saturday", "dressing change on Sunday"),
            ("left knee pain after a run", "right shoulder dislocated in a scrum"),
            ("Gartland III elbow fracture", "Mason II radial head injury"),
            ("was given 5 mg of morphine", "weighs 62 kg"),
            ("temperature of 39.5 °C overnight", "heart rate of 120 at dawn"),
            ("blood loss of 500 ml", "urine output of 30 ml"),
            ("lactate of 4.2 at triage", "potassium of 5.9 in recovery"),
            ("seen by the surgeon at 19:00", "extubated at 04:30"),
            ("stage 2 pressure injury on the heel", "stage 3 kidney disease for years"),
            ("waited 45 minutes for the scan", "ambulance ride took 20 minutes"),
            ("discharged on day 4", "fever on day 2"),
            ("left hip replaced in spring", "right eye cataract"),
            ("71-year-old man with a stroke", "12-year-old granddaughter called for help"),
        ),
    ),
    # another finding, drug or place beside the value, the negation or the doubt: nothing is contradicted
    "other-finding": (
        frozenset({"part", "absent"}),
        (
            ("was given 5 mg of morphine", "was given 100 mg of aspirin"),
            ("fracture of the left wrist", "dislocation of the right ankle"),
            ("fever on day 2", "rash on day 5"),
            ("surgery at 10:00 by the senior surgeon", "physiotherapy at 15:00 by the senior therapist"),
            ("reached the ward at 09:00", "departed from the ward at 17:00"),
            ("pain in the left knee", "numbness in the right foot"),
            ("allergy to penicillin for 20 years", "smoker for 30 years"),
            ("no fever on arrival", "cough on arrival"),
            ("no chest pain at rest", "breathless at rest"),
            ("denied use of alcohol", "use of tobacco"),
            ("no fracture of the wrist", "sprain of the wrist"),
            ("was not intubated in the ambulance", "was sedated in the ambulance"),
            ("suspected pneumonia on the film", "heart enlarged on the film"),
            ("signs of dehydration at triage", "weight measured at triage"),
            ("possible stroke in the night", "thunderstorm in the night"),
        ),
    ),
    # words that are a value, a unit or a doubt elsewhere
    "other-sense": (
        frozenset({"connectives", "rearranged", "part", "absent"}),
        (
            ("reassessed right away by the surgeon", "reassessed by the surgeon"),
            ("reassessed right away by the surgeon", "reassessed by the surgeon before the mother left the hospital"),
            ("left the hospital against advice", "walked out of the hospital against advice"),
            ("left the hospital with a right ankle cast", "went from the hospital with a right ankle cast"),
            ("was all right after the procedure", "was comfortable after the procedure"),
            ("the remaining dose was left in the syringe", "the remaining dose stayed in the syringe"),
            ("reviewed in the clinic on 4 May", "reviewed in clinic 4 May"),
            ("readmitted in May with cellulitis", "readmitted with cellulitis in May"),
            ("second surgeon was called to theatre", "surgeon was called to theatre"),
            ("asked for a second opinion on the scan", "asked for an opinion on the scan"),
            ("given IV antibiotics in triage", "given antibiotics in triage"),
            ("given IV fluids on the ward", "given oral fluids on the ward"),
            ("sat up in a chair after lunch", "in a chair after lunch"),
            ("avoid sun exposure after treatment", "avoid exposure after treatment"),
            ("minute ventilation fell during sedation", "ventilation fell during sedation"),
            ("first aid was given at the pool by a teacher", "help was given at the pool by a teacher"),
            ("vital signs of the child were recorded hourly", "vital signs were recorded hourly"),
            ("vital signs remained stable overnight", "remained stable overnight"),
            ("normally developing child with asthma", "child with asthma"),
            ("positive pucker sign over the elbow", "pucker sign over the elbow"),
            ("one of the nurses stayed with the family", "nurses stayed with the family"),
            ("vitamin B12 level was checked", "vitamin D level was checked"),
        ),
    ),
    # the same said with another word of negation or of doubt, or none of it lost alone
    "same-polarity": (
        frozenset({"form", "connectives", "rearranged", "part", "absent"}),
        (
            ("no change in pulses during transfer", "pulses unchanged during transfer"),
            ("no change in pulses", "pulses remained the same"),
            ("chest film was unremarkable", "unremarkable chest film"),
            ("neurological examination was unremarkable", "neurological examination without abnormality"),
            ("neurological examination was unremarkable", "normal neurological examination"),
            ("not without pain on movement", "with pain on movement"),
            ("did not deny drinking alcohol", "admitted drinking alcohol"),
            ("taken to theatre without delay", "taken to theatre immediately"),
            ("taken to theatre without delay", "promptly taken to theatre"),
            ("seen without delay by the stroke service", "seen by the stroke service"),
            ("no signs of infection in the wound", "without signs of infection in the wound"),
            ("patient denied chest pain at rest", "no chest pain at rest"),
            ("absence of fever on the ward", "no fever on the ward"),
            ("unable to move the toes", "not able to move the toes"),
            ("could not move the toes", "unable to move the toes"),
            ("fracture without nerve injury", "fracture with no nerve injury"),
            ("fracture with no nerve injury", "closed fracture"),
            ("no fever, vomiting or rash was reported", "no vomiting, rash or fever was reported"),
            ("was not given penicillin because of allergy", "penicillin was not given because of allergy"),
            ("no known allergies to medicines", "no known medicine allergies"),
            ("swelling with no numbness and no weakness", "no numbness or weakness with swelling"),
            ("suspected fracture of the scaphoid", "suspicion of a scaphoid fracture"),
            ("possible infection of the joint", "possibly an infection of the joint"),
            ("may have aspirated during the night", "might have aspirated during the night"),
            ("suspected sepsis on the ward", "sepsis suspected on the ward"),
            ("signs of dehydration on examination", "on examination, signs of dehydration"),
            ("confirmed fracture on the X-ray", "fracture confirmed on the X-ray"),
            ("not only pain but also swelling of the calf", "pain and swelling of the calf"),
            ("pulses were NOT palpable at the wrist", "pulses were not palpable at wrist"),
            # a negation or a doubt stands near, and belongs to something else
            ("palpable pulses in a pink hand", "no fever, pink hand with palpable pulses"),
            ("swelling of the calf was noted on the ward", "no fever but swelling of calf noted on the ward"),
            ("was stable and comfortable overnight", "stable overnight, not in pain, comfortable"),
            ("wound clean on inspection", "wound clean and not red on inspection"),
            ("fracture of the wrist was reduced", "suspected nerve injury; wrist fracture was reduced"),
            ("drain site dry, no fever", "no fever, dry drain site"),
        ),
    ),
    # case is never a miss; all else that is only spelling
    "form": (
        frozenset({"form"}),
        (
            ("pink, pulseless hand", "pink pulseless hand"),
            ("pink pulseless hand", "pink, pulseless hand"),
            ("two-hour wait", "two hour wait"),
            ("follow-up visit in clinic", "follow\u2013up visit in clinic"),  # en dash
            ("follow-up visit in clinic", "follow\u2011up visit in clinic"),  # non-breaking hyphen
            ("swelling - worse at night", "swelling \u2014 worse at night"),  # em dash
            ("patient's pain was controlled", "patient\u2019s pain was controlled"),  # curly apostrophe
            ("unable to make an 'OK' sign", "unable to make an \u2018OK\u2019 sign"),  # curly quotes
            ('the note said "stable overnight"', "the note said \u201cstable overnight\u201d"),
            ("10 mg of morphine", "10\u00a0mg of morphine"),  # non-breaking space
            ("swelling of the elbow", "swelling of  the elbow"),  # two spaces
            ("swelling of the elbow", "swelling of the\nelbow"),  # a line end
            ("fiancée was informed after surgery", "fiance\u0301e was informed after surgery"),  # decomposed
            ("naïve to opioids", "nai\u0308ve to opioids"),
            ("temperature of 38 °C", "temperature of 38°C"),
            ("fibula fracture", "\ufb01bula fracture"),  # ligature
            ("wound closed.", "wound closed and dressed"),  # the term ends with a full stop
            ("type-II injury of the nail", "type II injury of the nail"),
            ("anterior interosseous nerve (AIN) palsy", "anterior interosseous nerve AIN palsy"),
            ("inability to perform the 'OK sign'", "inability to perform the OK sign"),
            ("com\u00adpartment pressure was measured", "compartment pressure was measured"),  # soft hyphen
        ),
    ),
    # one word or two
    "form-or-inflection": (
        frozenset({"form", "rearranged"}),
        (
            ("post-operative bleeding from the drain", "postoperative bleeding from the drain"),
            ("re-admission with fever", "readmission with fever"),
        ),
    ),
    # articles, prepositions, auxiliaries, lead-in verbs
    "connectives": (
        frozenset({"connectives"}),
        (
            ("the delay was due to theatre availability", "delay due to theatre availability"),
            ("was taken to the operating room", "taken to operating room"),
            ("presented with a swollen knee", "swollen knee"),
            ("resulting in a fracture of the tibia", "fracture of the tibia"),
            ("swelling of the ankle", "swelling in the ankle"),
            ("pain was controlled with morphine", "pain controlled by morphine"),
            ("the wound had been closed with sutures", "wound was closed with sutures"),
            ("noted to have a tense abdomen", "tense abdomen"),
            ("has been on the surgical ward", "on surgical ward"),
            ("transferred to the intensive care unit", "transferred into intensive care unit"),
            ("sustained a laceration of the scalp", "laceration of the scalp"),
            ("the family was informed by the consultant", "family informed by consultant"),
            ("discharge to a nursing home", "discharge to nursing home"),
            ("burn to the forearm from an iron", "burn on the forearm from iron"),
            ("there was a leak around the drain", "a leak around the drain"),
        ),
    ),
    # the same content words, in another order or inflected
    "rearranged": (
        frozenset({"rearranged"}),
        (
            ("fracture of the left radius", "left radius fracture"),
            ("transferring the patient to intensive care", "patient transferred to intensive care"),
            ("swelling and bruising of the elbow", "bruising and swelling of the elbow"),
            ("surgery delayed by staff shortage", "staff shortage delayed surgery"),
            ("collapsed while gardening", "collapsing while gardening"),
            ("rupture of the spleen", "ruptured spleen"),
            ("arrived on Saturday at 20:00", "arrived at 20:00 on Saturday"),
            ("obstruction of the airway", "airway obstruction"),
            ("closing the wound in layers", "wound closed in layers"),
            ("nausea, sweating and pallor", "pallor, sweating and nausea"),
            ("falls at the nursing home", "nursing home fall"),
            ("bleeding from the drain site", "drain site bleeding"),
            ("neurovascular status was normal", "normal neurovascular status"),
        ),
    ),
    # nothing of it is said
    "absent": (
        frozenset({"absent"}),
        (
            ("ruptured ovarian cyst",),
            ("pink pulseless hand",),
            ("ketoacidosis after a missed insulin dose",),
            ("13-hour delay to surgery",),
            ("arrived on Saturday at 20:00",),
            ("left supracondylar humerus fracture",),
            ("no signs of compartment syndrome",),
            ("suspected bacterial meningitis",),
            ("retained swab after caesarean delivery",),
            ("fell from a horse",),
            ("haemolysed potassium sample",),
            ("oesophageal intubation recognised late",),
            ("allergic reaction to penicillin",),
        ),
    ),
}

SPLIT: tuple[Row, ...] = (
    ("Gartland type III fracture of the left elbow", "Gartland type III fracture", "left elbow"),
    ("crush injury to the hand from a printing press", "crush injury to the hand", "printing press"),
    ("surgery on Sunday at 09:00 by the trauma surgeon", "surgery on Sunday at 09:00", "trauma surgeon"),
    ("severe headache and stiff neck since breakfast", "severe headache since breakfast", "stiff neck"),
    ("warm pink hand with brisk capillary refill", "warm pink hand", "brisk capillary refill"),
    ("swollen calf after a long flight", "swollen calf", "long flight"),
    ("fell from a ladder while painting the ceiling", "fell from a ladder", "painting the ceiling"),
    ("central line infection with high fever", "central line infection", "high fever"),
    ("poor appetite and weight loss over the winter", "poor appetite", "weight loss over the winter"),
    ("scald to the foot from a kettle", "scald to the foot", "kettle"),
    ("delayed transfer with heavy snow", "delayed transfer", "heavy snow"),
    ("difficult airway with a broken tooth", "difficult airway", "broken tooth"),
    ("bleeding ulcer seen during endoscopy under sedation", "bleeding ulcer seen during endoscopy", "sedation"),
)
"""The term, then two signals that together hold all its content words; they do not stand side by side."""

OTHER_FIELD: tuple[tuple[Criterion, str, Literal["signals", "followup_questions"], str], ...] = (
    ("CR", "peanut allergy since childhood", "followup_questions", "Is the peanut allergy since childhood known?"),
    ("CR", "tetanus booster after the bite", "followup_questions", "Was there a tetanus booster after bite?"),
    ("CR", "forearm pressure measurement", "followup_questions", "Why was no forearm pressure measurement taken?"),
    ("CR", "smoke inhalation", "followup_questions", "Was smoke inhalation considered?"),
    ("CR", "delayed ambulance dispatch", "followup_questions", "What led to the delayed ambulance dispatch?"),
    ("CR", "13-hour delay to surgery", "followup_questions", "What caused the 13-hour delay to surgery?"),
    ("AC", "pink pulseless hand", "signals", "pink pulseless hand"),
    ("AC", "pink, pulseless hand", "signals", "pink pulseless hand on arrival"),  # but for its form
    ("AC", "burn to the forearm from an iron", "signals", "burn on the forearm from iron"),  # but for connectives
    ("AC", "surgery was scheduled for 14:00", "signals", "surgery was scheduled for 14:00"),
    ("AC", "left radius fracture", "signals", "closed left radius fracture"),
    ("AC", "ruptured spleen", "signals", "ruptured spleen found in theatre"),
    ("AC", "chest drain inserted", "followup_questions", "Why was the chest drain inserted?"),
    ("AC", "no signs of compartment syndrome", "signals", "no signs of compartment syndrome"),
)
"""Criterion, term, the field that the criterion does not read, and what stands there."""

PART: tuple[Lost, ...] = (
    Lost("arrived at 08:30 on Saturday", "arrived at 08:30", {"Saturday": ("day",)}),
    Lost("arrived at the hospital at 14:00", "arrived at the hospital", {"14:00": ("time",)}),
    Lost("surgery started at 7 pm", "surgery started", {"pm": ("time",)}),
    Lost("seen by the vascular surgeon at midnight", "seen by the vascular surgeon", {"midnight": ("time",)}),
    Lost("fracture of the left wrist", "fracture of the wrist", {"left": ("side",)}),
    Lost("bilateral ankle swelling after the flight", "ankle swelling after the flight", {"bilateral": ("side",)}),
    Lost("Gartland type III fracture of the elbow", "fracture of the elbow", {"III": ("grade",)}),
    Lost("stage 3 pressure injury on the heel", "pressure injury on the heel", {"3": ("grade",)}),
    Lost(
        "fracture of the wrist after falling from a horse",
        "fracture of the wrist",
        {"falling": ("mechanism",), "horse": ("mechanism", "other")},
    ),
    Lost("burn to the arm in a motorcycle crash", "burn to the arm", {"crash": ("mechanism",)}),
    Lost(
        "2-hour delay from arrival to surgery",
        "2-hour delay",
        {"arrival": ("reference point", "event"), "surgery": ("reference point", "event")},
    ),
    Lost(
        "wait of 40 minutes before the operation",
        "wait of 40 minutes",
        {"operation": ("reference point", "event")},
    ),
    Lost(
        "severe pain in the groin on admission", "severe pain in the groin", {"admission": ("reference point", "event")}
    ),
    Lost("tender, swollen and discoloured ankle", "tender ankle", {"discoloured": ("other",)}),
    Lost("warm hand with brisk capillary refill", "warm hand", {"capillary": ("other",)}),
    Lost("discharged home on Tuesday with crutches", "discharged home with crutches", {"Tuesday": ("day",)}),
    Lost("drain removed on postoperative day 2", "drain removed", {"2": ("day",)}),
    Lost("readmitted with fever on 12 March", "readmitted with fever", {"March": ("day",)}),
)
"""A part of the term stands in one signal, and nothing contradicts the rest."""


def look_alikes() -> Iterator[LookAlike]:
    """Give every look-alike; passages stand by turns in the signals (CR) and in the summary (AC)."""
    for group, (kinds, rows) in LOOK_ALIKES.items():
        for turn, (term, *passages) in enumerate(rows, start=1):
            criterion: Criterion = "CR" if turn % 2 else "AC"
            output = _in_signals(passages) if criterion == "CR" else _in_summary(passages)
            yield LookAlike(f"{group}-{turn:02d}-{criterion}-{_slug(term)}", criterion, term, output, kinds)
    for turn, (term, *passages) in enumerate(SPLIT, start=1):
        yield LookAlike(f"split-{turn:02d}-CR-{_slug(term)}", "CR", term, _in_signals(passages), frozenset({"split"}))
    for turn, (criterion, term, field, text) in enumerate(OTHER_FIELD, start=1):
        output = _in_field(field, text)
        name = f"other-field-{turn:02d}-{criterion}-{_slug(term)}"
        yield LookAlike(name, criterion, term, output, frozenset({"other_field"}))
    for turn, lost in enumerate(PART, start=1):
        name = f"part-{turn:02d}-CR-{_slug(lost.term)}"
        yield LookAlike(name, "CR", lost.term, _in_signals([lost.passage]), frozenset({"part"}))


def in_bay(*signals: str) -> Output:
    """Set signals into a story that has nothing to do with them, never side by side."""
    return _in_signals(list(signals))


def _in_signals(passages: list[str]) -> Output:
    signals = list(BAY.signals)
    for turn, passage in enumerate(passages):
        signals.insert(1 + 3 * turn, passage)
    return Output(tuple(signals), BAY.summary, BAY.followup_questions)


def _in_summary(passages: list[str]) -> Output:
    sentences = "".join(f" It was put down as follows: {passage}." for passage in passages)
    return Output(BAY.signals, BAY.summary + sentences, BAY.followup_questions)


def _in_field(field: Literal["signals", "followup_questions"], text: str) -> Output:
    if field == "signals":
        return _in_signals([text])
    return Output(BAY.signals, BAY.summary, (*BAY.followup_questions, text))
