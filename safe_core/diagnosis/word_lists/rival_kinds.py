"""Words of one kind of which only one is true of a thing: another one in its place is another finding."""

from typing import Final

from safe_core.diagnosis.words import stem

# The words between two bars mean the same here; those of a line stand against each other.
_LINES: Final = (
    # things and what they are made of
    "plastic | metal metallic | silicone | ceramic | glass | wooden",
    "green | white | brown | black | yellow | red | pink | blue | purple",
    "suture sutures stitch stitches | staple staples | glue | clip clips",
    "cast plaster | splint | sling | brace",
    "stick cane | frame zimmer walker rollator | crutches crutch | wheelchair",
    "tablet tablets | capsule capsules | syrup | cream | ointment | patch | inhaler | suppository",
    "platelets | plasma | cryoprecipitate",
    # how something is done
    "forceps | ventouse | caesarean cesarean",
    "laparoscopic keyhole | open | robotic | percutaneous",
    "CT | MRI | ultrasound | XR",
    "ambulance | taxi | car | bus | helicopter | bicycle bike | motorcycle motorbike",
    # people and times
    "boy | girl",
    "man | woman",
    (
        "mother | father | brother | sister | son | daughter | wife | husband | aunt | uncle | nephew | niece | "
        "grandmother | grandfather | neighbour | flatmate | motherinlaw | fatherinlaw | sisterinlaw | brotherinlaw | "
        "daughterinlaw | soninlaw | herself himself"
    ),
    "breakfast | lunch | dinner supper",
    "summer | autumn | winter",
    # parts of the body
    "shoulder | elbow | wrist | hip | knee | ankle",
    "humerus humeral | radius | ulna | femur | tibia | fibula | collarbone | scapula | kneecap",
    "thigh | calf | shin | forearm",
    "thumb | index | middlefinger | ringfinger | littlefinger | toe",
    "hallux | littletoe",
    "frontal | parietal | temporal | occipital | cerebellar",
    "cervical | thoracic | lumbar | sacral",
    "LAD lad | circumflex | RCA rca",
    "mitral | aortic | tricuspid",
    "atrial | ventricular",
    (
        "oesophagus oesophageal | stomach duodenum duodenal | jejunum jejunal | ileum ileal | caecum caecal | "
        "ascendingcolon | transversecolon | descendingcolon | sigmoid | rectum rectal"
    ),
    "kidney | liver | spleen splenic | pancreas pancreatic | lung",
    "eye | ear | nose",
    # what is found
    "carcinoma | adenoma | lymphoma | sarcoma | melanoma",
    "coli | klebsiella | pseudomonas | proteus | candida | aureus | pneumoniae | pyogenes | faecalis | difficile",
    # medicines of one class
    "heparin | enoxaparin | dalteparin | warfarin | apixaban | rivaroxaban | edoxaban | dabigatran",
    "aspirin | clopidogrel | ticagrelor | prasugrel",
    "bisoprolol | atenolol | metoprolol | propranolol | carvedilol",
    "ramipril | lisinopril | enalapril | perindopril | losartan | candesartan",
    "amlodipine | nifedipine | diltiazem | verapamil",
    "furosemide | bumetanide | spironolactone | eplerenone | bendroflumethiazide | hydrochlorothiazide",
    "atorvastatin | simvastatin | rosuvastatin | pravastatin",
    "morphine | oxycodone | fentanyl | codeine | tramadol | hydromorphone | alfentanil",
    "ibuprofen | naproxen | diclofenac | paracetamol",
    (
        "amoxicillin | flucloxacillin | ceftriaxone | cefuroxime | meropenem | piperacillin | gentamicin | "
        "vancomycin | clarithromycin | doxycycline | ciprofloxacin | metronidazole | trimethoprim | nitrofurantoin"
    ),
    "sertraline | citalopram | escitalopram | fluoxetine | mirtazapine | venlafaxine | amitriptyline",
    "olanzapine | risperidone | quetiapine | haloperidol | clozapine | aripiprazole",
    "diazepam | lorazepam | midazolam | clonazepam",
    "levetiracetam | phenytoin | valproate | lamotrigine | carbamazepine",
    "prednisolone | hydrocortisone | dexamethasone | methylprednisolone",
    "omeprazole | lansoprazole | pantoprazole | ranitidine",
    "ondansetron | metoclopramide | cyclizine | prochlorperazine",
    "propofol | ketamine | etomidate | thiopental",
    "rocuronium | suxamethonium | atracurium | vecuronium",
    "adrenaline | noradrenaline | metaraminol | vasopressin | dobutamine | ephedrine | phenylephrine",
    "salbutamol | ipratropium | salmeterol | tiotropium",
    # medicines whose names are taken for each other
    "lamotrigine | lamivudine",
    "hydroxyzine | hydralazine",
    "azathioprine | azithromycin",
    "carbamazepine | carbimazole",
    "chlorpromazine | chlorpropamide",
    "clonidine | clozapine | clonazepam",
    "dopamine | dobutamine",
    "methotrexate | metolazone",
    "penicillamine | penicillin",
    "quinine | quinidine",
    "sulfasalazine | sulfadiazine",
    "vinblastine | vincristine",
    "metformin | gliclazide | insulin | sitagliptin | empagliflozin | dapagliflozin",
)

_RIVALS: dict[str, set[str]] = {}
for _line in _LINES:
    _kinds = [{stem(word) for word in kind.split()} for kind in _line.split("|")]
    for _kind in _kinds:
        for _word in _kind:
            _RIVALS.setdefault(_word, set()).update(*(other for other in _kinds if other is not _kind))

RIVALS: Final = {word: frozenset(others) for word, others in _RIVALS.items()}
"""The stem of a word, as `exact_synonyms` reads it → the stems of those that stand against it."""
