"""Words that mean the same in any clinical text, each read as the other: "pyrexia" is "fever", "afebrile" "no fever".

Only what no reader would tell apart belongs here; what may mean the same is in `synonyms`.
"""

from typing import Final

from safe_core.diagnosis.words import stem

_WORDS: Final = {
    # as it is read ← the words that say the same
    # what is denied in one word
    "no fever": "afebrile apyrexial",
    "no symptoms": "asymptomatic",
    "no pain": "painless",
    "no urine": "anuric anuria",
    "no alcohol": "teetotal teetotaller",
    "no complications": "uncomplicated",
    "no jaundice": "anicteric",
    # findings
    "fever": "febrile pyrexia pyrexial",
    "bleeding": "haemorrhage haemorrhages haemorrhaged hemorrhage hemorrhages",
    "itching": "pruritus",
    "itchy": "pruritic",
    "vomiting": "emesis",
    "nosebleed": "epistaxis",
    "swelling": "oedema edema oedematous",
    "faint": "syncope syncopal",
    "bruising": "ecchymosis ecchymoses contusion contusions",
    "redness": "erythema erythematous",
    "sweating": "diaphoresis diaphoretic sweaty",
    "seizure": "convulsion convulsions",
    "headache": "cephalalgia",
    "earache": "otalgia",
    "drowsy": "somnolent",
    "hives": "urticaria",
    "vaccination": "jab jabs immunisation immunisations immunization immunizations vaccine vaccines",
    "clot": "thrombus thrombi",
    "stones": "calculus calculi",
    "tumour": "neoplasm neoplasms",
    "normal": "unremarkable",
    "periods": "menses menstruation",
    # parts of the body
    "head": "cranial",
    "kidney": "renal",
    "liver": "hepatic",
    "heart": "cardiac",
    "stomach": "gastric",
    "belly": "tummy",
    "armpit": "axilla axillary",
    "kneecap": "patella patellar",
    "collarbone": "clavicle clavicular",
    "navel": "umbilicus",
    # medicines by their other name
    "paracetamol": "acetaminophen",
    "adrenaline": "epinephrine",
    "noradrenaline": "norepinephrine",
    "salbutamol": "albuterol",
    "furosemide": "frusemide lasix",
    "lidocaine": "lignocaine",
    "painkillers": "analgesic analgesics analgesia",
    # what is done, and by whom
    "bend": "flex flexes flexed",
    "urination": "micturition",
    "ultrasound": "ultrasonography sonography sonogram",
    "appendicectomy": "appendectomy",
    "doctor": "physician physicians",
    "physiotherapist": "physio",
    "mother": "mum mom",
    "father": "dad",
}
EQUAL_WORDS: Final = {word: tuple(read.split()) for read, words in _WORDS.items() for word in words.split()}
"""A word → those as which it is read."""

_PHRASES: Final = {
    "fracture": "broken bone|broken bones",
    "hypertension": "high blood pressure",
    "hypotension": "low blood pressure",
    "MI": "heart attack|heart attacks|myocardial infarction|myocardial infarct",
    "stroke": "cerebrovascular accident",
    "diabetes": "diabetes mellitus",
    "SOB": "sob|shortness of breath|short of breath|breathlessness|breathless|dyspnoea|dyspnea|dyspnoeic|dyspneic",
    "amenorrhoea": "periods stopped|periods had stopped|periods have stopped|absent periods",
    "haematemesis": "vomiting blood|vomited blood|hematemesis",
    "haematuria": "blood in urine|blood in the urine|hematuria",
    "haemoptysis": "coughing blood|coughing up blood|coughed up blood|hemoptysis",
    "melaena": "black stool|black stools|tarry stools|melena",
    "dysuria": "painful urination|pain on passing urine",
    "dysphagia": "difficulty swallowing|trouble swallowing",
    "myalgia": "muscle pain|muscle pains|muscle aches",
    "arthralgia": "joint pain|joint pains",
    "rhinorrhoea": "runny nose",
    "alopecia": "hair loss|loss of hair",
    "anosmia": "loss of smell",
    "amnesia": "memory loss|loss of memory",
    "diplopia": "double vision",
    "suicidal": "suicidal ideation|suicidal thoughts|suicidal ideas|thoughts of suicide|wish to die",
    "alcohol": "drinks alcohol|drinking alcohol|alcohol use|alcohol consumption|alcohol intake",
    "kneecap": "knee cap",
    "collarbone": "collar bone",
    "scapula": "shoulder blade",
    "hallux": "big toe|great toe",
    "anticoagulant": "blood thinner|blood thinners",
    "caesarean": "caesarean section|cesarean section|c section",
    "death": "passed away",
    "index": "index finger|forefinger",
    "middlefinger": "middle finger",
    "ringfinger": "ring finger",
    "littlefinger": "little finger",
    "littletoe": "little toe",
    "ascendingcolon": "ascending colon",
    "transversecolon": "transverse colon",
    "descendingcolon": "descending colon",
    "uptodate": "up to date",
    "permanently": "for good|for ever|forever",
    "ON": "switched on|turned on",
    "OFF": "switched off|turned off",
}
EQUAL_PHRASES: Final = {phrase: stem(read) for read, phrases in _PHRASES.items() for phrase in phrases.split("|")}
"""A phrase → the key of the word as which it is read."""
