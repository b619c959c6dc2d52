"""One term against one output: what says the same in another form, and what contradicts the narrative."""

import pytest

from safe_core import Expectations, Output
from safe_core.diagnosis import Verdict, diagnose


def verdict(term: str, signals: tuple[str, ...], narrative: str | None) -> Verdict:
    (miss,) = diagnose(Expectations((term,)), Output(signals, "The case was discussed."), narrative).misses
    return miss.verdict


@pytest.mark.parametrize(
    ("term", "said"),
    [
        ("stenosis of 70 per cent", "stenosis of 70%"),
        ("oxygen at 2 litres per minute", "oxygen at 2 L/min"),
        ("paracetamol 1 g was given", "paracetamol 1000 mg given"),
        ("weight was 72.5 kilograms", "weight 72.5 kg"),
        ("arrived at twenty past eight", "arrived at 08:20"),
        ("seen at quarter to nine", "seen at 8:45"),
        ("seen at a quarter past nine", "seen at 9:15 am"),
        ("temperature of 38.4 degrees", "temperature of 38.4 °C"),
        ("blood pressure 150 over 95", "BP 150/95"),
        ("a dozen stitches", "12 stitches"),
        ("a 3-week history of cough", "3-week cough history"),
        ("cough for 3 weeks", "three-week history of cough"),
        ("morphine 2.5 mg IV", "2.5 mg of intravenous morphine"),
        ("follow-up in the clinic", "followup in clinic"),
        ("non-weight-bearing for six weeks", "nonweightbearing for 6 weeks"),
        ("re-admitted after two days", "readmitted after 2 days"),
        ("twice-daily dressings", "dressings twice a day"),
        ("X-ray of the chest was clear", "clear chest X-ray"),
        ("a single dose of azithromycin", "single-dose azithromycin"),
        ("on the fourth of May", "on 4 May"),
        ("1,200 mL of crystalloid", "1.2 litres of crystalloid"),
        ("lactate 4", "lactate of four"),
        ("NEWS 7", "NEWS score of 7"),
        ("aged 7 months", "7-month-old"),
        ("every twelve hours", "12-hourly"),
        ("heart rate of 130 beats per minute", "HR 130 bpm"),
        ("respiratory rate 32 breaths/min", "RR 32"),
        ("SpO2 of 88 percent on air", "saturation 88% on room air"),
        ("half-hourly observations", "observations every 30 minutes"),
        ("fifty milligrams of tramadol", "tramadol 50 mg"),
        ("second-degree burn of the forearm", "second degree forearm burn"),
        ("type II diabetes", "type 2 diabetes"),
        ("ulcer had healed", "healed ulcer"),
        ("creatinine was 210 µmol/L", "creatinine 210 umol/l"),
        ("left-sided weakness", "weakness on the left side"),
        ("right hemicolectomy", "R hemicolectomy"),
        ("the abdomen was soft", "soft abdomen"),
        ("five litres", "5 L"),
        ("at midday", "at 12:00"),
        ("seven out of ten", "7/10"),
        ("30 mL/kg bolus", "bolus of 30 ml per kg"),
        ("40 units of insulin", "insulin 40 IU"),
        ("catheter removed 0915", "catheter removed at 09:15"),
        ("bleep answered 21h40", "bleep answered at 21:40"),
        ("ondansetron 4 mg IV x2", "ondansetron 4 mg IV twice"),
        ("cons informed at 09:00", "consultant informed at 09:00"),
        ("BCx x2 taken", "two blood cultures taken"),
        ("urine neg for nitrites", "urine negative for nitrites"),
        ("2 units RBC transfused", "received two units of red cells"),
        ("morphine 10 mg PO given", "oral morphine 10 mg given"),
        ("fell on POD 3", "fell on postoperative day 3"),
        ("temperature was 37.9 °C", "temp 37.9"),
        ("total hospital stay was 12 days", "hospital stay 12 days"),
        ("left nephrectomy and right pyeloplasty", "right pyeloplasty and left nephrectomy"),
        # a finding with its value names what was measured
        ("potassium was 6.7 mmol/L", "hyperkalaemia of 6.7 mmol/L"),
        ("temperature was 38.3 °C", "fever 38.3 °C"),
        ("systolic pressure of 85 mmHg", "SBP 85 mmHg"),
        ("fetal heartbeat of 122 bpm", "fetal heart rate 122"),
        # initials, acronyms, chemical symbols
        ("Blood cultures grew Escherichia coli", "E. coli in blood cultures"),
        ("Helicobacter pylori was found", "H. pylori found"),
        ("a patent foramen ovale", "PFO on echo"),
        ("EF 45%", "ejection fraction 45%"),
        ("apnoea-hypopnoea index of 46 per hour", "AHI 46/h"),
        ("sodium was 128", "Na 128"),
        # words of one meaning, and denials in one word
        ("there was no fever", "afebrile"),
        ("pruritus of both legs", "itching of both legs"),
        ("a heart attack in 2019", "myocardial infarction in 2019"),
        ("the mass was not tender", "mass non-tender"),
        ("pain on swallowing", "painful swallowing"),
        ("statin was declined", "patient declined statin"),
        # small words of order and place
        ("potassium after dialysis was 4.4 mmol/L", "post-dialysis potassium 4.4 mmol/L"),
        ("haemoglobin before transfusion was 61", "pre-transfusion Hb 61"),
        ("3.8 kg above dry weight", "3.8 kg over dry weight"),
        ("four seizures a month", "4 seizures monthly"),
        ("surgery postponed by two weeks", "surgery put off for a fortnight"),
        ("blood pressure lying was 120/70", "120/70 supine"),
        ("haemoglobin 98 in March, 110 now", "Hb up to 110 from 98 in March"),
        ("cannot feel her feet because of her diabetes", "loss of feeling in the feet from diabetes"),
    ],
)
def test_what_says_the_same_in_another_form_is_for_the_term(term: str, said: str) -> None:
    narrative = f"The story begins here. {term[0].upper()}{term[1:]}. Nothing more was said of it."
    assert verdict(term, (said,), narrative) == "term"


CLAIMS: dict[str, list[tuple[str, tuple[str, ...], str]]] = {
    "He was given 5 mg of morphine at 10:00 and 10 mg at 14:00.": [
        ("5 mg of morphine at 10:00", ("10 mg of morphine at 14:00",), "prompt/look"),
    ],
    "The left knee was swollen and the right ankle was painful.": [
        ("left knee was swollen", ("right knee swollen", "painful right ankle"), "output"),
        ("left knee was swollen", ("right ankle painful",), "prompt"),
    ],
    "She was seen on Monday and discharged on Wednesday.": [
        ("discharged on Wednesday", ("seen on Monday",), "prompt"),
        ("discharged on Wednesday", ("discharged on Thursday",), "output"),
        ("discharged on Wednesday", ("discharged on Monday",), "output/look"),
    ],
    "There was no fever. He had a cough.": [
        ("no fever", ("cough",), "prompt"),
        ("no fever", ("afebrile", "cough"), "prompt/look/term"),
        ("There was no fever", ("fever and cough",), "output"),
    ],
    "Heparin was given before the procedure.": [
        ("Heparin was given before the procedure", ("heparin given after the procedure",), "output"),
    ],
    "Metoprolol 50 mg twice daily was continued.": [
        ("Metoprolol 50 mg twice daily", ("metoprolol 50 mg once daily",), "output"),
        ("Metoprolol 50 mg twice daily", ("metoprolol 50 mg",), "prompt"),
    ],
    "Metoprolol 50 mg twice daily was continued. Ramipril 5 mg once daily was added.": [
        ("Metoprolol 50 mg twice daily", ("ramipril 5 mg once daily",), "prompt"),
        ("Ramipril 5 mg once daily was added", ("ramipril 50 mg once daily added",), "output/look"),
    ],
    "Pain was 3/10 at rest and 7/10 on walking.": [
        ("7/10 on walking", ("pain 3/10 at rest",), "prompt"),
    ],
    # what has changed sides, and what has changed sides with the order
    "Blood cultures were drawn before any antibiotics.": [
        ("cultures were drawn before any antibiotics", ("antibiotics given before the cultures were drawn",), "output"),
        ("cultures were drawn before any antibiotics", ("antibiotics only after the cultures",), "prompt/look/term"),
    ],
    "Once the scan was reported, the heparin was stopped.": [
        (
            "Once the scan was reported, the heparin was stopped",
            ("scan reported after the heparin was stopped",),
            "output",
        ),
    ],
    "Walking hurts more than sitting.": [
        ("Walking hurts more than sitting", ("sitting hurts more than walking",), "output"),
    ],
    "The rash spread from the face to the trunk.": [
        ("spread from the face to the trunk", ("rash beginning on the trunk and moving to the face",), "output"),
    ],
    "He was moved from theatre to recovery and from recovery to theatre.": [
        ("moved from theatre to recovery", ("moved from recovery to theatre",), "prompt/look"),
    ],
    # findings at each other's places, and of other people
    "TSH raised, T4 normal.": [
        ("TSH raised, T4 normal", ("normal TSH with raised T4",), "output"),
        ("TSH raised, T4 normal", ("raised TSH with normal T4",), "term"),
    ],
    "The wife wants him at home, he wants a nursing home.": [
        ("wife wants him at home", ("he wants to stay at home while his wife prefers a nursing home",), "look"),
    ],
    "The chart was signed but the drug was not given.": [
        ("drug was not given", ("chart signed but drug not given",), "term"),
    ],
    "Her mother has asthma and her sister has eczema.": [
        ("mother has asthma", ("has asthma herself",), "output"),
    ],
    "The mother gave the medicine herself.": [
        ("mother gave the medicine", ("medicine given by the mother herself",), "term/look"),
    ],
    # what has ended is no more
    "Digoxin was stopped in March.": [
        ("Digoxin was stopped in March", ("no more digoxin since March",), "prompt/look/term"),
        ("Digoxin was stopped in March", ("digoxin continued in March",), "output"),
    ],
    "There was no pain in the leg.": [
        ("no pain in the leg", ("pain with loss of power in the leg",), "output"),
    ],
    "Colonoscopy: no polyps.": [
        ("Colonoscopy: no polyps", ("nothing polypoid at colonoscopy",), "prompt/look/term"),
        ("Colonoscopy: no polyps", ("colonoscopy with polyps",), "output"),
    ],
    "Sputum was sent but has not been read.": [
        ("Sputum was sent but has not been read", ("sputum sent",), "prompt/look"),
    ],
    # an opposite of something else on the same day
    "The cyst was unchanged on Monday.": [
        ("cyst was unchanged on Monday", ("pain increased on Monday, cyst as before",), "prompt/look/term"),
        ("cyst was unchanged on Monday", ("cyst had increased on Monday",), "output"),
    ],
    "He denies chest pain.": [
        ("denies chest pain", ("chest pain",), "output"),
        ("denies chest pain", ("no chest pain",), "term"),
    ],
    "The wound was clean and dry.": [
        ("wound was clean", ("wound infected",), "look/output"),
    ],
    "A severe allergic reaction followed.": [
        ("severe allergic reaction", ("mild allergic reaction",), "output"),
        ("severe allergic reaction", ("allergic reaction",), "prompt"),
    ],
    "Two sutures were placed.": [
        ("Two sutures were placed", ("three sutures placed",), "output"),
    ],
    "The scan showed a 3 cm mass in the right lobe and a 1 cm cyst in the left lobe.": [
        ("3 cm mass in the right lobe", ("1 cm cyst in the left lobe",), "prompt"),
        ("3 cm mass in the right lobe", ("3 cm mass in the left lobe", "1 cm cyst in the left lobe"), "output"),
    ],
    "Sodium was 128 on Monday and 134 on Thursday.": [
        ("Sodium was 128 on Monday", ("sodium 134 on Monday",), "output/look"),
    ],
    "The patient may have had a seizure.": [
        ("may have had a seizure", ("seizure",), "output"),
    ],
    "Appendicitis was suspected.": [
        ("Appendicitis was suspected", ("appendicitis",), "output"),
    ],
    "Appendicitis was suspected and later confirmed at surgery.": [
        ("Appendicitis was suspected", ("appendicitis confirmed at surgery",), "prompt/look/output"),
    ],
    "No abscess was seen on CT. A week later an abscess had formed.": [
        ("No abscess was seen on CT", ("abscess one week later",), "prompt/look"),
    ],
    "Her father died of a stroke and her mother has diabetes.": [
        ("mother has diabetes", ("father has diabetes",), "output/look"),
        ("mother has diabetes", ("father died of a stroke",), "prompt"),
    ],
    "His diabetes was poorly controlled. The wound is healing well.": [
        ("diabetes was poorly controlled", ("diabetes not well controlled",), "look"),
        ("wound is healing well", ("wound not healing well",), "output"),
    ],
    "Pain was controlled with paracetamol. He tolerated the feeds.": [
        ("pain was controlled", ("pain was not adequately controlled with paracetamol",), "output/look"),
        ("tolerated the feeds", ("feeds not well tolerated",), "output/look"),
    ],
    "He was unwell with fever. Asthma is not well controlled. Blood pressure was poorly controlled.": [
        ("unwell with fever", ("fever with poor oral intake",), "prompt/look"),
        ("asthma is not well controlled", ("asthma has not been well controlled",), "term"),
        ("blood pressure was poorly controlled", ("blood pressure well above target on three drugs",), "look/prompt"),
    ],
    "Antibiotics were stopped on day 5.": [
        ("Antibiotics were stopped on day 5", ("antibiotics stopped on day 7",), "output"),
        ("Antibiotics were stopped on day 5", ("antibiotics started on day 5",), "output"),
    ],
    "He drinks 20 units of alcohol a week.": [
        ("20 units of alcohol a week", ("20 units of alcohol a day",), "output"),
    ],
    "He drinks 20 units of alcohol a week and smokes 10 cigarettes a day.": [
        ("20 units of alcohol a week", ("smokes 10 cigarettes a day",), "prompt"),
    ],
    "Ultrasound was normal. CT was not done.": [
        ("CT was not done", ("normal ultrasound", "CT done"), "output"),
        ("CT was not done", ("normal CT",), "output/look"),
    ],
    # the narrative has both values, each from another source
    "The drug chart says that 40 mg was given, but the nursing record says 60 mg.": [
        ("40 mg was given", ("60 mg was given",), "look"),
        ("40 mg was given", ("80 mg was given",), "output"),
    ],
    "One note describes a left-sided rash, another describes it on the right.": [
        ("left-sided rash", ("right-sided rash",), "look"),
    ],
    "The triage note gives pain since Monday. The clerking says since Wednesday.": [
        ("pain since Monday", ("pain since Wednesday",), "look"),
    ],
    "The nurse noted a rash at 08:00; the chart shows that the doctor came at 09:30.": [
        ("a rash at 08:00", ("rash at 09:30",), "output"),
    ],
    # a letter, a route and an anaesthetic are values
    "Throat swab grew group A streptococcus.": [
        ("grew group A streptococcus", ("group B streptococcus grown",), "output"),
    ],
    "Morphine 10 mg PO was given under GA.": [
        ("Morphine 10 mg PO", ("morphine 10 mg IV",), "output"),
        ("under GA", ("morphine given under spinal anaesthesia",), "output"),
    ],
    # what is denied in a clause of its own, or in a list
    "She was tired for a week but there was no fever.": [
        ("there was no fever", ("fever of two days",), "output"),
    ],
    "There was no hearing loss or tinnitus.": [
        ("no hearing loss or tinnitus", ("tinnitus reported",), "output"),
    ],
    "Since Thursday he is not sleeping.": [
        ("he is not sleeping", ("poor sleep",), "look/prompt"),
    ],
    "There was no wound infection. A urinary infection was treated.": [
        ("no wound infection", ("urinary infection treated",), "prompt/look"),
    ],
    "Potassium was not replaced before insulin.": [
        ("Potassium was not replaced", ("insulin without prior potassium replacement",), "term/look/prompt"),
    ],
    "Operation cancelled because of fever.": [
        ("Operation cancelled", ("operation took place despite fever",), "output"),
    ],
    "Operation cancelled on Monday. The operation took place on Thursday.": [
        ("Operation cancelled on Monday", ("operation took place on Thursday",), "prompt/look"),
    ],
    "Warfarin should have been withheld.": [
        ("Warfarin should have been withheld", ("warfarin was given",), "prompt/look"),
    ],
    # values and predicates that changed places
    "Amlodipine 5 mg and ramipril 10 mg daily.": [
        ("Amlodipine 5 mg and ramipril 10 mg", ("amlodipine 10 mg and ramipril 5 mg daily",), "output"),
    ],
    "Pulse was 110 at 08:00 and 84 at 12:00.": [
        ("Pulse was 110 at 08:00 and 84 at 12:00", ("pulse 84 at 08:00 and 110 at 12:00",), "output"),
    ],
    "Clopidogrel was continued and aspirin was stopped.": [
        ("aspirin was stopped", ("clopidogrel stopped, aspirin continued",), "output"),
        ("aspirin was stopped", ("aspirin stopped, clopidogrel continued",), "term"),
    ],
    # who did it, but not where another one did something else
    "The pharmacist noticed the error on the ward round.": [
        ("pharmacist noticed the error", ("error noticed by the nurse on the ward round",), "output"),
    ],
    "The registrar was called and the consultant came.": [
        ("registrar was called", ("consultant came",), "prompt"),
    ],
    # another value of the narrative itself
    "Lactate was 4.2 at 02:00 and 2.1 at 06:00.": [
        ("Lactate was 4.2 at 02:00", ("lactate 2.1 at 06:00",), "prompt"),
    ],
    # what is denied in one form and claimed in another
    "She does not smoke. The bowel did not perforate.": [
        ("does not smoke", ("current smoker",), "output"),
        ("does not smoke", ("non-smoker",), "term/look"),
        ("bowel did not perforate", ("bowel perforation",), "output"),
    ],
    "He does not smoke. His wife is a heavy smoker.": [
        ("He does not smoke", ("wife is a heavy smoker",), "prompt/look"),
    ],
    "There was no rash. A pulse was felt in the foot.": [
        ("There was no rash", ("non-blanching rash",), "output"),
        ("pulse was felt in the foot", ("pulseless foot",), "output/look"),
    ],
    # what is denied without any condition
    "Low mood without plans. She denies any plan or intent.": [
        ("denies any plan or intent", ("suicidal ideation with a plan",), "output"),
    ],
    "Thrombolysis was not given because the onset was unclear.": [
        ("Thrombolysis was not given", ("stroke treated with thrombolysis",), "output"),
    ],
    "He had slight breathlessness on hills.": [
        ("slight breathlessness on hills", ("denies breathlessness",), "output"),
    ],
    "He had pain on walking but no pain at rest.": [
        ("pain on walking", ("no pain at rest",), "prompt/look"),
    ],
    "A penicillin allergy was recorded.": [
        ("penicillin allergy was recorded", ("no latex allergy",), "prompt/look"),
    ],
    "Nobody checked the pump.": [
        ("Nobody checked the pump", ("pump checked",), "output"),
    ],
    # another thing of the same kind
    "He walks with a frame. The elbow was swollen.": [
        ("walks with a frame", ("walks with a stick",), "output"),
        ("elbow was swollen", ("swollen knee",), "output"),
    ],
    "The knee was swollen and the ankle was bruised.": [
        ("knee was swollen", ("ankle bruised",), "prompt/look"),
    ],
    "A plastic stent was placed. Later a metal stent replaced it.": [
        ("A plastic stent was placed", ("metal stent placed later",), "prompt/look"),
    ],
    "The source is hepatitis C negative.": [
        ("hepatitis C negative", ("hepatitis C positive source",), "output"),
    ],
    "Hepatitis C was negative. Hepatitis B was positive.": [
        ("Hepatitis C was negative", ("hepatitis B positive",), "prompt/look"),
    ],
    # opposites: predicates, states, other forms, a shorter clause
    "The left vocal cord moves normally, the right cord is fixed.": [
        ("left vocal cord moves normally", ("right cord fixed",), "prompt/look"),
        ("left vocal cord moves normally", ("left vocal cord fixed",), "output"),
    ],
    "The trolley brake was on. The bed rails were down.": [
        ("trolley brake was on", ("trolley brake off",), "output"),
        ("bed rails were down", ("bed rails up",), "output"),
    ],
    "He tolerates the mask well.": [
        ("tolerates the mask", ("intolerant of the mask",), "output"),
    ],
    "He was discharged at noon.": [
        ("He was discharged", ("charge nurse",), "prompt"),
    ],
    "Pulmonary rehabilitation was offered and he declined it for now.": [
        ("he declined it for now", ("accepted pulmonary rehabilitation",), "output"),
    ],
    "Physiotherapy was offered and he declined it. He accepted a wheelchair.": [
        ("he declined it", ("accepted a wheelchair",), "prompt/look"),
    ],
    # a day of discharge, and what is new
    "He was kept overnight and discharged next day.": [
        ("discharged next day", ("discharged the same day",), "output"),
        ("discharged next day", ("discharged on the following day",), "term/look"),
    ],
    "Known CKD stage 4.": [
        ("Known CKD stage 4", ("CKD stage 4 as a contributing factor",), "term"),
        ("Known CKD stage 4", ("new CKD stage 4",), "look/output/prompt"),
    ],
    # a test that was not done has no result
    "The pregnancy test was not yet done.": [
        ("pregnancy test was not yet done", ("pregnancy test negative",), "look/output"),
        ("pregnancy test was not yet done", ("pregnancy test not done",), "term"),
    ],
    # a denial that is kept in other words, or is one of something else
    "The images could not be transferred.": [
        ("images could not be transferred", ("transfer delayed because the images could not be sent",), "look/term"),
        ("images could not be transferred", ("image transfer failure",), "look/term"),
        ("images could not be transferred", ("images transferred at once",), "output"),
    ],
    "He recovered without neurological deficit.": [
        ("recovered without neurological deficit", ("full neurological recovery",), "prompt/look/term"),
        ("recovered without neurological deficit", ("recovered with a neurological deficit",), "output"),
    ],
    "The risk assessment was last updated on admission.": [
        (
            "risk assessment was last updated on admission",
            ("risk assessment not updated since admission",),
            "prompt/look/term",
        ),
        ("risk assessment was last updated on admission", ("risk assessment not updated on admission",), "output"),
    ],
    "Exchange transfusion was avoided.": [
        ("Exchange transfusion was avoided", ("no exchange transfusion was needed",), "prompt/look/term"),
    ],
    "The repeat sample haemolysed and was not resent.": [
        ("repeat sample haemolysed", ("sample haemolysed and not repeated",), "prompt/look/term"),
    ],
    # how sure somebody was
    "The doctor thought that a viral illness was likely.": [
        ("viral illness was likely", ("viral illness suspected by the doctor",), "term/look"),
        ("viral illness was likely", ("at first thought to have a viral illness",), "term/look"),
        ("viral illness was likely", ("viral illness",), "output"),
        ("viral illness was likely", ("confirmed viral illness",), "output"),
    ],
    "Lung cancer was confirmed on biopsy.": [
        ("Lung cancer was confirmed on biopsy", ("felt to have possible lung cancer on biopsy",), "output"),
    ],
    "The lesion of the breast was benign.": [
        ("lesion of the breast was benign", ("malignant lesion of the breast",), "output"),
    ],
    "He had a blunt injury of the abdomen.": [
        ("blunt injury of the abdomen", ("penetrating injury of the abdomen",), "output"),
    ],
    "The woman is underweight at 40 kg.": [
        ("woman is underweight", ("the woman is obese",), "output"),
    ],
    "It was a singleton pregnancy at 38 weeks.": [
        ("singleton pregnancy", ("twin pregnancy",), "output"),
    ],
    "Child abuse was suspected.": [
        ("Child abuse was suspected", ("child thought to be safe from abuse",), "look/output"),
        ("Child abuse was suspected", ("child abuse excluded",), "output"),
    ],
    "A vomiting child was seen.": [
        ("vomiting child", ("child did not vomit",), "output"),
    ],
    "He was discharged the next day.": [
        (
            "discharged the next day",
            ("admitted on 3 March and discharged on the same day as his brother",),
            "prompt/look",
        ),
    ],
    # the same thing in another order of words
    "The ligature was made from the cord of a gown.": [
        ("made from the cord of a gown", ("ligature made from a gown cord",), "term"),
    ],
    "The lens that was implanted was +23.5, and +19.0 was intended.": [
        ("lens that was implanted was +23.5", ("+23.5 lens implanted instead of +19.0",), "term"),
    ],
    "The antibiotic was changed to cefazolin on Monday.": [
        ("changed to cefazolin", ("antibiotic changed to vancomycin on Monday",), "output"),
    ],
    "Silver nitrate cautery failed.": [
        ("Silver nitrate cautery failed", ("cautery successful",), "output"),
    ],
    "The first attempt failed. The second attempt was successful.": [
        ("first attempt failed", ("second attempt successful",), "prompt/look"),
    ],
    # the value of something else
    "He had begun indapamide 2.5 mg on 11 May and sertraline 50 mg on 18 May.": [
        ("sertraline 50 mg on 18 May", ("sertraline 50 mg begun on 11 May",), "output"),
        ("sertraline 50 mg on 18 May", ("indapamide 2.5 mg begun on 11 May",), "prompt"),
    ],
    # what somebody else says of the same, however it is told
    "He has leg weakness, graded 4/5 in the admission note and 3/5 by the physiotherapist.": [
        ("graded 4/5", ("leg weakness, 3/5",), "look"),
        ("graded 4/5", ("leg weakness, graded 2/5",), "output"),
    ],
    "It measures 11 mm on the photograph, while the family doctor noted a diameter of 8 mm.": [
        ("a diameter of 8 mm", ("pigmented lesion, 11 mm",), "look"),
    ],
    "She says she swallowed 24 tablets of 500 mg. The flatmate found empty packets for 32 tablets.": [
        ("24 tablets of 500 mg", ("overdose, 32 tablets of 500 mg",), "look"),
    ],
    "The porter says that the brake was on, whereas the nurse states that it was off.": [
        ("brake was on", ("brake off",), "look"),
    ],
    # what looks like an opposite or another frequency, and is none
    "He smokes 15 a day. The tube was in at the second attempt.": [
        ("smokes 15 a day", ("smokes 15 cigarettes daily",), "term"),
        ("tube was in at the second attempt", ("intubated at the second attempt",), "look/prompt"),
    ],
    "Dose was increased to 20 mg.": [
        ("Dose was increased to 20 mg", ("dose reduced to 20 mg",), "output"),
    ],
    # values that have changed places, in one sentence and in two
    "Lactate 4.2. Potassium 6.8.": [
        ("potassium 6.8", ("Lactate 6.8, potassium 4.2.",), "output"),
        ("potassium 6.8", ("Potassium 4.2. Lactate 6.8.",), "output"),
        ("lactate 4.2", ("Potassium 6.8, the lactate was 4.2.",), "term"),
        ("lactate 4.2", ("Potassium 6.8.",), "prompt"),
    ],
    "Lactate was 4.2 mmol/L and potassium was 6.8 mmol/L.": [
        ("potassium was 6.8", ("Lactate was 6.8 mmol/L and potassium was 4.2 mmol/L.",), "output"),
    ],
    "Morphine 10 mg and ketamine 20 mg.": [
        ("ketamine 20 mg", ("Morphine 20 mg and ketamine 10 mg.",), "output"),
        ("ketamine 20 mg", ("Ketamine, 20 mg, with morphine 10 mg.",), "term"),
    ],
    "The GP gave amoxicillin on Monday. On Wednesday the rash appeared.": [
        ("rash appeared on Wednesday", ("Rash appeared on Monday. Amoxicillin was given on Wednesday.",), "output"),
        ("rash appeared on Wednesday", ("Amoxicillin on Monday, the rash on Wednesday.",), "term/look/prompt"),
    ],
    "Glucose was 2.3 mmol/L at 22:15 and 7.8 mmol/L at 22:45.": [
        ("glucose was 2.3", ("glucose 7.8 mmol/L at 22:45",), "prompt/term"),
    ],
    # numbers without the unit that the narrative has
    "Potassium 6.8 mmol/L. Weight 72 kg. Temperature 39.4 °C at noon, 38.1 °C at night.": [
        ("potassium 6.8", ("Potassium 3.9 mmol/L.",), "output"),
        ("potassium 6.8", ("Potassium was normal.",), "prompt"),
        ("weight 72", ("Weight 27 kg.",), "output"),
        ("temperature 39.4", ("temperature 36.4 °C at noon",), "output"),
        ("temperature 39.4", ("temperature 38.1 °C at night",), "prompt/term"),
    ],
    # values before what they belong to, other events, and numbers that are limits, changes, sums or in another unit
    "Morphine was given at 14:00. Ketamine was given at 15:00. The surgeon arrived at 16:00.": [
        ("morphine was given at 14:00", ("14:00: morphine given, 15:00: ketamine given.",), "term"),
        ("ketamine was given at 15:00", ("At 15:00, ketamine was given and at 16:00 the surgeon arrived.",), "term"),
    ],
    "Weight 72 kg on admission, 68 kg at discharge.": [
        ("weight 72 kg on admission", ("On admission 72 kg, at discharge weight 68 kg.",), "term"),
        ("weight 72", ("Weight fell 4 kg to 68 kg.", "Weight 159 lb at admission."), "prompt"),
        ("weight 72", ("Weight 68 kg.",), "prompt"),
    ],
    "The patient fell at 03:00. The doctor came at 05:00. The scan was done at 08:00.": [
        ("fell at 03:00", ("The fall was assessed at 05:00. The doctor was called after 03:00.",), "term/look/prompt"),
        ("scan at 08:00", ("Scan requested at 05:00. Doctor got the result after 08:00.",), "term/look/prompt"),
    ],
    "Glucose 22 mmol/L, ketones 5.1 mmol/L. Metformin 500 mg twice daily. Urea 22 mmol/L.": [
        ("ketones 5.1", ("Glucose > 11 mmol/L, ketones > 3 mmol/L: DKA.",), "prompt/look"),
        ("glucose 22", ("Glucose between 20 and 25 mmol/L.",), "prompt/look"),
        ("glucose 22", ("Glucose ~20 mmol/L.",), "prompt/look"),
        ("glucose 22", ("Glucose ≥ 20 mmol/L.",), "prompt/look"),
        ("glucose 22", ("Start 10% glucose when glucose is below 14 mmol/L.",), "prompt/look"),
        ("metformin 500", ("Metformin 1000 mg a day in two doses.",), "prompt/look"),
        ("urea 22", ("Urea three times normal (7 mmol/L).",), "prompt/look"),
        ("ketones 5.1", ("Ketones 1.5 mmol/L, glucose 22 mmol/L.",), "output"),
    ],
}
"""A narrative → terms, the signals of an output, and the verdicts that are right, perhaps one of several."""


@pytest.mark.parametrize(
    ("narrative", "term", "signals", "verdicts"),
    [(narrative, *claim) for narrative, claims in CLAIMS.items() for claim in claims],
)
def test_an_output_contradicts_where_it_says_otherwise_of_the_same(
    narrative: str, term: str, signals: tuple[str, ...], verdicts: str
) -> None:
    assert verdict(term, signals, narrative) in verdicts.split("/")


def test_a_narrative_that_was_not_given_contradicts_nothing() -> None:
    assert verdict("no fever", ("fever",), "There was no fever.") == "output"
    assert verdict("no fever", ("fever",), None) == "look"
