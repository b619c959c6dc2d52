"""Fifty numbers in two styles each, which are equal, and fifty that are not."""

from bench.yardstick.cases import Case, labelled
from safe_core import Output

_TWINS = (
    # groups of digits
    ("paracetamol 1000 mg was given", "paracetamol 1 000 mg given"),
    ("vancomycin 1250 mg was given", "vancomycin 1,250 mg given"),
    ("platelets were 150000", "platelets 150 000"),
    ("platelets were 212000", "platelets 212,000"),
    ("heparin 5000 units was given", "heparin 5\u202f000 units given"),
    ("CSF white cells were 1200", "CSF white cells 1'200"),
    ("fluid intake was 2400 ml", "fluid intake 2\u2009400 ml"),
    # slashes
    ("blood pressure was 214/118", "blood pressure 214 / 118"),
    ("blood pressure was 132/84", "blood pressure 132⁄84"),
    ("blood pressure was 150/90", "blood pressure one fifty over ninety"),
    ("blood pressure was 128/76", "blood pressure 128 over 76"),
    ("pain was 7/10", "pain 7 out of 10"),
    ("visual acuity was 6/12", "visual acuity 6 / 12"),
    # decimals
    ("INR was 3.2", "INR 3·2"),
    ("lactate was 4.1", "lactate 4,1"),
    ("haemoglobin A1c was 6.7", "haemoglobin A1c six point seven"),
    ("digoxin 0.25 mg was given", "digoxin .25 mg given"),
    ("weight was 82 kg", "weight 82.0 kg"),
    ("creatinine was 1.4 mg/dL", "creatinine 1∙4 mg/dL"),
    ("pH was 7.21", "pH of 7·21"),
    # fractions
    ("half a tablet of bisoprolol was taken", "½ tablet of bisoprolol taken"),
    ("1.5 tablets of warfarin were taken", "1½ tablets of warfarin taken"),
    ("2.25 mg of warfarin was taken", "2¼ mg of warfarin taken"),
    ("1.5 litres of saline were given", "1 1/2 litres of saline given"),
    ("three quarters of a tablet was taken", "¾ tablet taken"),
    ("half a tablet of atenolol was taken", "1/2 tablet of atenolol taken"),
    # degrees, percent, signs
    ("temperature was 38.5 °C", "temperature 38.5ºC"),
    ("temperature was 39 degrees", "temperature 39°"),
    ("saturation was 91%", "saturation 91 percent"),
    ("ejection fraction was 35 per cent", "ejection fraction 35 %"),
    ("base excess was -8", "base excess −8"),
    ("the wound was 3 x 4 cm", "wound 3 × 4 cm"),
    # dates
    ("seen on 08/03/2020", "seen on 8/3/2020"),
    ("discharged on 1 May 2021", "discharged on 01 May 2021"),
    ("admitted on 3 March", "admitted on March 3rd"),
    ("operated on 05-09-2019", "operated on 5-9-2019"),
    ("reviewed on 12 June 2022", "reviewed on 12th of June 2022"),
    # times
    ("seen at 09:30", "seen at 9:30 am"),
    ("bleep answered at 14:05", "bleep answered at 14.05 hrs"),
    ("heparin stopped at 08:15", "heparin stopped at 0815"),
    ("fell at 20:40", "fell at 8:40 pm"),
    # ranges
    ("pain was 4-6", "pain 4–6"),
    ("5 to 7 units of insulin were taken", "5–7 units of insulin taken"),
    ("fasting for 6 to 8 hours", "fasting for 6-8 hours"),
    # words, units, superscripts
    ("twenty-four hours of observation", "24 hours of observation"),
    ("forty five minutes of exercise", "45 min of exercise"),
    ("morphine 2.5 mg was given", "morphine 2500 mcg given"),
    ("levothyroxine 100 micrograms daily", "levothyroxine 100 µg daily"),
    ("body surface was 1.8 m2", "body surface 1.8 m²"),
    ("white cells were 12 x 10^9/L", "white cells 12 × 10⁹/L"),
)
_DIFFERENCES = (
    ("half a tablet of bisoprolol was taken", "1½ tablets of bisoprolol taken"),
    ("½ tablet of bisoprolol was taken", "2 tablets of bisoprolol taken"),
    ("½ tablet of warfarin was taken", "3 tablets of warfarin taken"),
    ("1½ tablets of warfarin were taken", "½ tablet of warfarin taken"),
    ("2¼ mg of warfarin was taken", "2¾ mg of warfarin taken"),
    ("1 1/2 litres of saline were given", "1/2 litre of saline given"),
    ("paracetamol 1 000 mg was given", "paracetamol 100 mg given"),
    ("paracetamol 1000 mg was given", "paracetamol 1 500 mg given"),
    ("heparin 5,000 units was given", "heparin 50,000 units given"),
    ("platelets were 150 000", "platelets 15 000"),
    ("vancomycin 1250 mg was given", "vancomycin 1,520 mg given"),
    ("fluid intake was 2 400 ml", "fluid intake 2 700 ml"),
    ("blood pressure was 150/90", "blood pressure 130 / 80"),
    ("blood pressure was 214/118", "blood pressure 214 / 108"),
    ("blood pressure was 128/76", "blood pressure 182/76"),
    ("blood pressure was 150/90", "blood pressure one thirty over eighty"),
    ("pain was 7/10", "pain 3 out of 10"),
    ("visual acuity was 6/12", "visual acuity 6/60"),
    ("INR was 3.2", "INR 3·8"),
    ("INR was 3·2", "INR 2.3"),
    ("lactate was 4.1", "lactate 1,4"),
    ("haemoglobin A1c was 6.7", "haemoglobin A1c seven point six"),
    ("digoxin 0.25 mg was given", "digoxin 0.125 mg given"),
    ("digoxin .25 mg was given", "digoxin 25 mg given"),
    ("creatinine was 1.4 mg/dL", "creatinine 14 mg/dL"),
    ("weight was 82 kg", "weight 28 kg"),
    ("pH was 7.21", "pH of 7·41"),
    ("temperature was 38.5 °C", "temperature 36.5ºC"),
    ("temperature was 39 degrees", "temperature 37°"),
    ("saturation was 91%", "saturation 97 percent"),
    ("ejection fraction was 35%", "ejection fraction 55 per cent"),
    ("base excess was -8", "base excess −3"),
    ("the wound was 3 x 4 cm", "wound 3 × 6 cm"),
    ("seen on 08/03/2020", "seen on 8/13/2020"),
    ("discharged on 1 May 2021", "discharged on 11 May 2021"),
    ("admitted on 3 March", "admitted on March 13th"),
    ("reviewed on 12 June 2022", "reviewed on 12th of July 2022"),
    ("seen at 09:30", "seen at 9:30 pm"),
    ("bleep answered at 14:05", "bleep answered at 14.50 hrs"),
    ("heparin stopped at 08:15", "heparin stopped at 0845"),
    ("fasting for 6 to 8 hours", "fasting for 10-12 hours"),
    ("5 to 7 units of insulin were taken", "15–17 units of insulin taken"),
    ("twenty-four hours of observation", "48 hours of observation"),
    ("forty five minutes of exercise", "54 min of exercise"),
    ("morphine 2.5 mg was given", "morphine 25 mg given"),
    ("levothyroxine 100 micrograms daily", "levothyroxine 100 mg daily"),
    ("white cells were 12 x 10^9/L", "white cells 21 × 10⁹/L"),
    ("three litres of oxygen", "13 litres of oxygen"),
    ("potassium was 3.1", "potassium three point nine"),
    ("seizures 2 to 3 times a week", "seizures 5 to 6 times a week"),
)


def twins() -> list[Case]:
    """Numbers in another style: said, and never contradicted."""
    return [labelled(_pair(*pair), {"said"}, {"supported"}) for pair in _TWINS]


def differences() -> list[Case]:
    """Other numbers, in a style that hides it: contradicted."""
    return [labelled(_pair(*pair), {"contradicted"}, {"supported"}) for pair in _DIFFERENCES]


def _pair(term: str, said: str) -> Case:
    return Case(term, term, Output((said,), "The case was discussed."), f"{term[0].upper()}{term[1:]}.")
