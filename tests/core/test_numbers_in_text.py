"""Every style of a number is that number and no other one; names that have digits are no numbers."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_core.diagnosis.numbers_in_text import Value, rival, same, values
from safe_core.mutation.quantities import spelled
from tests.support.growth import grows_as_the_length_does

# One value in two styles: typography, wording, unit.
TWINS = [
    # digit groups, decimals
    ("1 000 mg", "1000 mg"),
    ("1\u00a0000 mg", "1000 mg"),  # no-break space
    ("1\u2009000 mg", "1000 mg"),  # thin space
    ("1\u202f000 mg", "1,000 mg"),  # narrow no-break space
    ("1'000 mg", "1000 mg"),
    ("1\u2019000 mg", "1000 mg"),
    ("250,000 platelets", "250 000 platelets"),
    ("1.000.000 units", "1,000,000 units"),  # two points part digits, one may be a decimal one
    ("38,5 °C", "38.5 °C"),
    ("0,125 mg", "0.125 mg"),
    ("INR 3·2", "INR 3.2"),
    ("INR 3\u22c52", "INR 3.2"),
    ("7.30", "7.3"),
    ("pH 7.30", "pH 7.3"),
    (".5 mg", "0.5 mg"),
    ("5.0 mg", "5 mg"),
    ("\uff15\uff10 mg", "50 mg"),  # full-width digits
    ("10\u00b3", "1000"),
    ("10^3", "1000"),
    ("1.5 x 10^3", "1500"),
    ("\u22122.5", "-2.5 T-score"),
    ("T-score of \u20132.5", "T-score of -2.5"),
    ("INR today is six . seven", "INR today is 6.7"),
    ("98 point 6", "98.6"),
    ("03.08.2020", "3/8/2020"),
    ("2021-03", "March 2021"),
    ("BP 130s/80s", "BP 130s over 80s"),
    ("three quarters of an hour", "45 min"),
    ("INR today is 6 . 7", "INR today is 6.7"),
    ("point five", "0.5"),
    ("ninety eight point six", "98.6"),
    ("one point two five", "1.25"),
    ("zero point five", ".5"),
    # spoken
    ("two hundred milligrams", "200 mg"),
    ("a hundred and four", "104"),
    ("one hundred four", "104"),
    ("one oh four", "104"),
    ("Twenty-five", "25"),
    ("three thousand two hundred grams", "3200 g"),
    ("fifteen hundred", "1500"),
    ("5 thousand units", "5000 units"),
    ("one fifty", "150"),
    ("twenty twenty", "in 2020"),
    ("nineteen ninety eight", "1998"),
    ("twenty one-litre bags", "20 1-litre bags"),
    # fractions
    ("½ tablet", "0.5 tablet"),
    ("½ tablet", "half a tablet"),
    ("1/2 tablet", "half a tablet"),
    ("1⁄2 tablet", "½ tablet"),
    ("1½ tablets", "1 1/2 tablets"),
    ("1 ½ hours", "90 minutes"),
    ("one and a half hours", "1.5 hours"),
    ("two and a quarter", "2 1/4"),
    ("half an hour", "30 min"),
    ("three quarters", "¾"),
    ("two thirds", "2/3"),
    # units
    ("1 g", "1000 mg"),
    ("0.5 mg", "500 mcg"),
    ("50 µg", "50 \u03bcg"),  # micro sign, Greek letter
    ("50 ug", "50 micrograms"),
    ("500mg", "500 mg"),
    ("3 weeks", "21 days"),
    ("1 h 50 min", "110 minutes"),
    ("150", "150 mg"),  # one side bare
    ("6.7%", "6.7 percent"),
    ("6.7 per cent", "6.7 %"),
    ("6.7", "6.7%"),
    ("98.6 F", "98.6 °F"),
    ("98.6ºF", "98.6 degrees Fahrenheit"),  # an ordinal sign for a degree
    ("38.5 ℃", "38.5 degrees C"),
    ("98.6 °F", "37 °C"),
    ("98.6 degrees", "98.6 F"),
    ("72 bpm", "72 beats per minute"),
    ("18 breaths per minute", "18/min"),
    ("5.5 mmol/L", "5.5 mmol per litre"),
    ("2 mg per kg", "2 mg / kg"),
    ("1 g/dL", "1000 mg/dl"),
    ("2 x 3 cm", "2 by 3 cm"),
    ("2.0 × 3.0 cm", "20 x 30 mm"),
    ("5'4\"", "5 ft 4 in"),
    ("5 feet 4 inches", "64 inches"),
    # ratios and blood pressure
    ("214 / 118", "214/118"),
    ("130 over 80", "130/80"),
    ("one thirty over eighty", "130/80"),
    ("one fifty over ninety", "150/90"),
    ("130\u221580", "130/80"),
    ("130\uff0f80 mmHg", "130/80"),
    ("130 \u2044 80", "130/80"),
    ("2/6 murmur", "II/VI murmur"),
    ("2 out of 6", "2/6"),
    ("three over six", "3/6"),
    ("4 to 5 out of 10", "4-5/10"),
    ("120 to 135 over 75 to 85", "120-135/75-85"),
    ("1 cm x 2 cm", "1x2 cm"),
    ("an hour and a half", "90 minutes"),
    ("5'10''", "5 feet 10 inches"),
    ("july 2nd , 2019", "07/02/2019"),
    ("june of 2018", "06/2018"),
    ("march 14 1988", "3/14/1988"),  # small letters: speech recognition
    ("one second", "1 s"),
    ("7/10 pain", "seven out of ten"),
    # clocks
    ("2 pm", "14:00"),
    ("2 p.m.", "2:00 PM"),
    ("at 0915", "9:15 am"),
    ("14h15", "2:15 pm"),
    ("half past two", "2:30"),
    ("half past two", "14:30"),  # of either half of the day
    ("a quarter to nine", "8:45"),
    ("at 1430", "14:30"),
    ("1430 hours", "2.30 pm"),
    ("8 o'clock", "8:00"),
    ("noon", "12:00"),
    ("seven thirty in the morning", "7:30 am"),
    ("8 in the evening", "20:00"),
    ("one-half tablet", "½ tablet"),
    ("1-2+ edema", "1 to 2+ edema"),
    ("class III-IV", "class iii\u2013iv"),
    ("two thirty pm", "14:30"),
    # dates
    ("08/03/2020", "8/3/2020"),
    ("08/03/2020", "August 3, 2020"),
    ("3 August 2020", "2020-08-03"),
    ("Aug 3", "August 3rd"),
    ("the third of August", "Aug. 3"),
    ("8-23-97", "08/23/1997"),
    ("04/2020", "April 2020"),
    ("july fourth", "July 4"),
    ("on 8/3", "on August 3"),
    ("on 8/3", "on 8/3/2020"),  # one side without its year
    ("Tue", "Tuesday"),
    ("POD 2", "postoperative day two"),
    # grades and ordinals
    ("grade II", "grade 2"),
    ("grade two", "grade 2"),
    ("stage IIIb", "stage 3B"),
    ("class II", "class 2"),
    ("NYHA III", "NYHA 3"),
    ("third", "3rd"),
    ("2nd degree", "second-degree"),
    ("2+ edema", "2 + edema"),
    # frequencies and counts
    ("twice a day", "BID"),
    ("twice daily", "2x/day"),
    ("two times daily", "b.i.d."),
    ("2 times per day", "twice a day"),
    ("three times a day", "TID"),
    ("every 8 hours", "q8h"),
    ("every eight hours", "8-hourly"),
    ("every 4 to 6 hours", "q4-6h"),
    ("BID", "twice-daily"),
    ("3-4x a day", "3 to 4 times daily"),
    ("once", "one time"),
    ("daily", "once a day"),
    ("daily", "q24h"),
    ("every other day", "every 2 days"),
    ("weekly", "once a week"),
    ("3 times a week", "three times weekly"),
    ("qhs", "every night"),
    ("x3", "three times"),
    ("x 3 days", "3 days"),
    # ages, ranges, bounds
    ("49-year-old", "49 yo"),
    ("49 y.o.", "aged 49"),
    ("49 y/o", "49 years old"),
    ("forty nine year old", "49-year-old"),
    ("a 37 -year-old", "37 years of age"),
    ("2-3 days", "2 to 3 days"),
    ("between 2 and 3 days", "2–3 days"),
    ("two or three tablets", "2-3 tablets"),
    ("<5", "below 5"),
    ("less than 5", "< 5"),
    ("≥3", "at least 3"),
    (">= 3", "3 or more"),
    ("over 90%", ">90 percent"),
    ("about 3 hours", "~3 hours"),
    ("about 3 hours", "3 hours"),  # the same number; about does not count
    ("5 ± 2", "5 +/- 2"),
    ("b. i. d.", "bid"),
    # as notes and dialogues have them
    ("Tylenol 1,000 mg q6h", "Tylenol 1 g every 6 hours"),
    ("temp 101.2", "temperature of one hundred one point two"),
    ("pulse 88", "pulse of eighty-eight"),
    ("INR 2.5", "INR two point five"),
    ("bp one forty two over eighty eight", "BP 142/88"),
    ("25 mcg/hr", "25 micrograms per hour"),
    ("0.25mg", "250 mcg"),
    ("5-10 mg", "5 to 10 mg"),
    ("from 5 to 10 mg", "5–10 mg"),
    ("6/12/21", "June 12, 2021"),
    ("12 June 2021", "June 12th, 2021"),
    ("6 weeks", "six-week"),
    ("two-day history", "2 day history"),
    ("3 days ago", "three days ago"),
    ("three times per week", "3x weekly"),
    ("x 2 weeks", "for 2 weeks"),
    ("2 liters", "2L"),
    ("2 L NC", "2 liters"),
    ("EF 55%", "EF of fifty-five percent"),
    ("EF 55-60%", "EF 55 to 60 percent"),
    ("age 67", "67-year-old"),
    ("67F", "67 year old"),
    ("67 y/o M", "67-year-old"),
    ("A&O x3", "oriented times three"),
    ("4/5 strength", "four out of five"),
    ("stage 3 CKD", "stage III"),
    ("40 mg PO daily", "40 milligrams once a day"),
    ("HR 110s", "heart rate in the 110s"),
    ("1/2 tab", "0.5 tab"),
    ("greater than 10", "> 10"),
    ("no more than 3", "≤3"),
    ("3 mm", "0.3 cm"),
    ("2 ½", "2.5"),
    ("ten years", "10-year"),
    ("a week ago", "one week ago"),
    ("37.0°C", "37 degrees Celsius"),
    ("5 mg/day", "5 mg per day"),
    ("5 mg daily", "5 mg/day"),
    ("0.9 %", "0.9 percent"),
    ("10:30 AM", "10:30am"),
    ("at 10 a.m.", "10:00 am"),
    ("hgb 13.2", "hgb thirteen point two"),
    ("nine hundred", "900"),
    ("two thousand nineteen", "2019"),
    ("in 2019", "twenty nineteen"),
    ("one to two tablets", "1-2 tablets"),
    ("every 4-6 hours", "q4-6 hours"),
    ("every 6-8 hours", "every six to eight hours"),
    ("q.i.d.", "4 times daily"),
    ("q 12 hours", "every 12 hrs"),
    ("12-hourly", "q12h"),
    ("18 months old", "18-month-old"),
    ("5 foot 10", "5'10\""),
    ("seven point oh", "7.0"),
    ("one point oh five", "1.05"),
    ("two and a half weeks", "2.5 weeks"),
    ("once weekly", "every week"),
    ("1 in 4", "one in four"),
    ("fifty milligrams twice a day", "50 mg bid"),
    ("500 milligrams", "0.5 g"),
    ("3.5 x 2.1 x 1.0 cm", "35 x 21 x 10 mm"),
    ("GCS 15", "GCS of 15"),
    ("10 mEq", "10 milliequivalents"),
    ("a dozen", "12"),
    ("a 3-mm nodule", "3 millimeter nodule"),
    ("oxygen 98 percent on room air", "O2 98% RA"),
    ("second-degree", "2nd-degree"),
    ("70kg", "70 kilograms"),
    ("≈ 5", "about 5"),
    ("INR 2.5-3.5", "INR 2.5 to 3.5"),
    ("2-2.5", "2 to 2.5"),
    ("75 mg/m2", "75 mg/m²"),
    ("on 24.12.", "on December 24"),
    ("since 24.12.", "24 December"),
    ("fever x 3 days", "fever for 3 days"),
    ("\u00d7 3 days", "three days"),
    ("x3 days", "3 days"),
    ("20 cigarettes a day", "20 cigarettes daily"),
    ("four attacks a month", "4 attacks monthly"),
    ("10 mg at night", "10 mg every night"),
    ("15,000 cells/µL", "15 000 cells/uL"),
]
# What is another value.
DIFFERENT = [
    ("½ tablet", "1½ tablets"),
    ("½ tablet", "2 tablets"),
    ("½", "3 tablets"),
    ("2", "½"),
    ("1/2 tablet", "1 1/2 tablets"),
    ("2", "3 tablets"),
    ("one and a half hours", "half an hour"),
    ("10³", "103"),
    ("10²", "102"),
    ("1,500 mg", "1.5 mg"),
    ("1 000 mg", "100 mg"),
    ("0.5 mg", "5 mg"),
    (".5 mg", "5 mg"),
    ("38.5", "385"),
    ("INR 3·2", "INR 32"),
    ("six . seven", "six . eight"),
    ("-2.5 T-score", "2.5"),
    ("ninety eight point six", "ninety eight"),
    ("one fifty", "one fifteen"),
    ("thirteen", "thirty"),
    ("a hundred and four", "a hundred and forty"),
    ("two hundred milligrams", "two thousand milligrams"),
    ("twenty twenty", "twenty ten"),
    ("1234567", "1234568"),
    ("5 mg", "5 mcg"),
    ("5 mg", "5 g"),
    ("5 mg", "5 ml"),
    ("5 mg/kg", "6 mg/kg"),
    ("5.5 mmol/L", "5.5 mg/dL"),
    ("98.6 F", "98.6 C"),
    ("38 °C", "38.5 °C"),
    ("3 weeks", "3 days"),
    ("3 weeks", "20 days"),
    ("4 weeks", "5 weeks"),
    ("6.7%", "7.6%"),
    ("150/90", "130/80"),
    ("150/90", "150/80"),
    ("one fifty over ninety", "one fifteen over ninety"),
    ("2/6", "3/6"),
    ("II/VI", "III/VI"),
    ("5/5", "4/5"),
    ("20/20", "20/40"),
    ("2 x 3 cm", "2 x 4 cm"),
    ("2 x 3 cm", "2 x 3 mm"),
    ("2 pm", "2 am"),
    ("2 pm", "3 pm"),
    ("14:00", "14:30"),
    ("0915", "0950"),
    ("half past two", "quarter past two"),
    ("a quarter to nine", "a quarter past nine"),
    ("2:30 pm", "2:30 am"),
    ("12 am", "noon"),
    ("June 3", "June 13"),
    ("June 3", "July 3"),
    ("08/03/2020", "03/08/2020"),
    ("08/03/2020", "08/03/2021"),
    ("2020-08-03", "2020-08-13"),
    ("April 2020", "April 2021"),
    ("Monday", "Tuesday"),
    ("in 2015", "in 2016"),
    ("POD 2", "POD 3"),
    ("grade II", "grade III"),
    ("stage IIIa", "stage IIIb"),
    ("type 1", "type 2"),
    ("class II", "class IV"),
    ("second", "third"),
    ("2+", "3+"),
    ("twice daily", "three times a day"),
    ("BID", "TID"),
    ("daily", "twice daily"),
    ("every 8 hours", "every 6 hours"),
    ("q8h", "q12h"),
    ("once a week", "once a day"),
    ("every other day", "every day"),
    ("twice a week", "twice a day"),
    ("x3", "x2"),
    ("three times", "twice"),
    ("49-year-old", "48-year-old"),
    ("49 yo", "94 yo"),
    ("6-month-old", "6-year-old"),
    ("2-3 days", "3-4 days"),
    ("<5", ">5"),
    ("below 5", "below 6"),
    ("at least 3", "at most 3"),
    ("in the 120s", "in the 130s"),
    ("4 to 5 out of 10", "3 to 4 out of 10"),
    ("an hour and a half", "an hour ago"),
    ("twenty thirty minutes", "twenty forty minutes"),  # no year
    ("3 daily doses", "4 daily doses"),
    ("24 tablets", "two tablets"),
    ("5'4\"", "5'5\""),
    ("18/min", "28/min"),
    ("T2 3 mg", "T2 4 mg"),
    ("1-2+ edema", "2-3+ edema"),
    ("8 in the morning", "8 in the evening"),
    ("10 mg", "100 mg"),
    ("10 mg", "10 mcg"),
    ("twice a day", "once a day"),
    ("left 2 cm", "left 3 cm"),
    ("INR 2.5", "INR 3.5"),
    ("38.1", "39.1"),
    ("3 days", "3 weeks"),
    ("x3", "x4"),
    ("4/5", "3/5"),
    ("1+", "2+"),
    ("grade 1", "grade 2"),
    ("BP 120/80", "BP 120/90"),
    ("EF 55-60%", "EF 45-50%"),
    ("EF 55%", "EF 35%"),
    ("67-year-old", "76-year-old"),
    ("in March", "in April"),
    ("March 3, 2020", "March 3, 2021"),
    ("q6h", "q4h"),
    ("5 mg", "50 mg"),
    ("0.5", "5"),
    ("1.5 mg", "15 mg"),
    ("half a tablet", "one tablet"),
    ("half a tablet", "a quarter of a tablet"),
    ("seventeen", "seventy"),
    ("at 8 am", "at 8 pm"),
    (">5", "≤5"),
    ("between 5 and 10", "between 10 and 15"),
    ("T 98.6 F", "T 101 F"),
    ("2nd", "3rd"),
    ("on Tuesday", "on Thursday"),
    ("weekly", "monthly"),
    ("2 hours", "2 days"),
    ("1,000", "10,000"),
    ("6 . 7", "7 . 6"),
    ("II/VI", "IV/VI"),
    ("6/10", "8/10"),
    ("500 mg", "500 mL"),
    ("day 1", "day 2"),
    ("one eighty over ninety", "one eighteen over ninety"),
    ("3 kg", "3 lb"),
    ("5.2", "52"),
    ("2 puffs", "4 puffs"),
    ("2-3", "3-4"),
    ("every 6 hours", "every 6 days"),
    ("40s", "50s patient in her 50s"),
    ("1 in 4", "1 in 5"),
    ("type II", "type I"),
    ("once", "twice"),
    ("four attacks a month", "four attacks a week"),
    ("4 attacks a month", "twice a day"),
    ("5 mg a day", "5 mg twice a day"),
    ("every 6 weeks", "every 7 weeks"),
    ("on 24.12.", "on 25.12."),
    ("x 3 days", "x 4 days"),
]
# Neither the same nor an alternative.
UNLIKE = [
    ("7/10", "7/100"),
    ("2 doses", "3 nurses"),
    ("5 mg/kg", "5 mg"),  # a part of it
    ("2 g", "3 ml"),
    ("Monday", "March 12"),
    ("7/10", "130/80"),
    ("08:30", "8 mg"),
    ("<5", "3"),  # which is below 5
    (">90%", "95%"),
    ("over 90%", "90%"),  # the bound is lost, not turned
    ("2-3 days", "2 days"),
    ("2-3 times a day", "twice a day"),
    ("up to 3 times a day", "twice a day"),
    ("q8h", "TID"),  # as many a day, but not at all hours
    ("August 3", "August"),
    ("2nd", "2 mg"),
    ("grade 2", "3 mg"),
    ("once a week", "4 times a month"),  # about as often
    ("weekly", "four times monthly"),
]
NO_NUMBERS = [
    *("SARS-CoV-2", "CA 19-9", "Tc-99m", "COVID 19"),
    *("T2", "L5-S1", "L4-5", "C5/6", "B12", "HbA1c", "A1c", "a1c", "COVID-19", "SpO2", "S1 S2", "T2DM", "FEV1", "CO2"),
    *(
        "H1N1",
        "P2Y12",
        "IL-6",
        "CA-125",
        "CYP2D6",
        "5-FU",
        "SARS-CoV-2",
        "CA 19-9",
        "Tc-99m",
        "COVID 19",
        "5-HT3",
        "2D echo",
        "T12-L1",
        "omega-3",
        "G6PD",
    ),
    *(
        "no one",
        "this one",
        "one another",
        "someone",
        "once the fever fell",
        "at once",
        "half-hearted",
        "the other half",
    ),
    *("tend", "often", "weight", "height", "freight", "phone", "attend", "stone"),
    *(
        "1. Gout",
        "2) Cough",
        "\n3. Anemia",
        "IV fluids",
        "I feel well",
        "may help",
        "march on",
        "she sat",
        "a sun rash",
    ),
    *("night pain", "pain at night", "wakes at night", "worse in the morning"),
    *("pain +/- nausea", "a few days", "several weeks", "day by day", "²", "№", "at first", "V", "mi"),
]


# Texts that are one piece, repeated.
ENDLESS = [
    *(
        "1",
        "1 ",
        "1/",
        "1.",
        "1,000",
        "1 000 ",
        "one ",
        "one hundred ",
        "a ",
        "a1",
        "½",
        "²",
        "-",
        "1-",
        "iv ",
        "q",
        "at 1 ",
    ),
    *(
        "twenty-",
        "x",
        "\u00a0",
        "İ",
        "less than ",
        "between 1 and ",
        "5 mg and ",
        "every ",
        "may ",
        "six . ",
        "10^9",
        "\n1. ",
    ),
]


def only(text: str) -> Value:
    found = values(text)
    assert len(found) == 1, (text, found)
    return found[0]


def alike(left: str, right: str) -> bool:
    found, other = values(left), values(right)
    return len(found) == len(other) and all(map(same, found, other)) and bool(found)


@pytest.mark.parametrize(("left", "right"), TWINS)
def test_a_number_in_another_style_is_the_same(left: str, right: str) -> None:
    assert alike(left, right), (values(left), values(right))
    assert alike(right, left)
    assert not any(map(rival, values(left), values(right)))


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_another_number_is_another_value(left: str, right: str) -> None:
    found, other = values(left), values(right)
    assert found
    assert other
    assert not alike(left, right), (found, other)
    assert any(rival(a, b) and rival(b, a) for a in found for b in other), (found, other)


def test_events_that_are_counted_in_one_period_are_as_often_as_those_of_another() -> None:
    often, once = values("four attacks a month")[-1], only("once a week")
    assert not same(often, once)
    assert not rival(often, once)


NUMBERS = st.integers(1, 99_999)
MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905


def whole_number_styles(number: int) -> list[str]:
    """Write a dose in each usual style."""
    grouped = f"{number:,}"
    digits = [str(number), f"{number}.0", f"{number:02}", grouped, *([spelled(number)] if number < 10_000 else [])]
    digits += [grouped.replace(",", sign) for sign in (" ", "'", "\u00a0", "\u2009", "\u202f", "\u2019")]
    digits.append("".join(chr(0xFEE0 + ord(digit)) for digit in str(number)))
    return [
        *(f"{each} mg" for each in digits),
        f"{number}mg",
        f"{number}\u00a0mg",
        f"{number}-mg",
        f"{number} milligrams",
        f"{number * 1000} mcg",
    ]


def decimal_styles(whole: int, part: int) -> list[str]:
    return [f"INR {whole}{sign}{part:02}" for sign in (".", ",", "·", "\u2219", "\u22c5")] + [
        f"INR {whole} point {part:02}"
    ]


def pressure_styles(high: int, low: int) -> list[str]:
    signs = ("/", " / ", "\u2044", "\u2215", "\uff0f", " over ")
    return [*(f"{high}{sign}{low}" for sign in signs), f"{high}/{low} mmHg", f"{spelled(high)} over {spelled(low)}"]


def date_styles(year: int, month: int, day: int) -> list[str]:
    name = MONTHS[month - 1]
    numeric = [
        f"{month}/{day}/{year}",
        f"{month:02}/{day:02}/{year}",
        f"{month}-{day}-{year}",
        f"{month}/{day}/{year % 100:02}",
    ]
    return [
        *numeric,
        f"{year}-{month:02}-{day:02}",
        f"{name} {day}, {year}",
        f"{day} {name} {year}",
        f"{name[:3]}. {day}, {year}",
        f"{day:02} {name} {year}",
    ]


def time_styles(hour: int, minute: int) -> list[str]:
    half = f"{(hour - 1) % 12 + 1}:{minute:02}"
    end = "am" if hour < 12 else "pm"
    written = [f"{half} {end}", f"{half}{end}", f"{half} {end[0]}.m.", half.replace(":", ".") + f" {end}"]
    return [
        f"at {each}"
        for each in (f"{hour:02}:{minute:02}", f"{hour:02}{minute:02}", f"{hour:02}.{minute:02} hrs", *written)
    ]


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        *(
            st.tuples(st.just(style), arguments, arguments)
            for style, arguments in (
                (whole_number_styles, st.tuples(NUMBERS)),
                (decimal_styles, st.tuples(st.integers(1, 199), st.integers(1, 99))),
                (pressure_styles, st.tuples(st.integers(90, 250), st.integers(30, 89))),
                (date_styles, st.tuples(st.integers(1990, 2035), st.integers(1, 12), st.integers(1, 28))),
                (time_styles, st.tuples(st.integers(0, 23), st.integers(0, 59))),
            )
        )
    ),
    st.randoms(use_true_random=False),
)
def test_a_number_in_each_style_is_itself_and_never_another(
    drawn: tuple[Callable[..., list[str]], tuple[int, ...], tuple[int, ...]], rng: Random
) -> None:
    styles, one, other = drawn
    written = styles(*one)
    for text in written:
        assert alike(text, written[0]), (text, written[0], values(text), values(written[0]))
    if one != other:
        left, right = rng.choice(written), rng.choice(styles(*other))
        assert not alike(left, right), (left, right)
        assert any(rival(a, b) for a in values(left) for b in values(right)), (left, right)


@pytest.mark.parametrize(("left", "right"), UNLIKE)
def test_what_answers_another_question_is_neither_the_same_nor_a_rival(left: str, right: str) -> None:
    a, b = only(left), only(right)
    assert (same(a, b), same(b, a), rival(a, b), rival(b, a)) == (False,) * 4, (a, b)


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_a_name_with_digits_is_no_number(text: str) -> None:
    assert values(text) == []


_PIECES = sorted({word for row in (*TWINS, *DIFFERENT) for text in row for word in (text, *text.split(" "))})
_TEXTS = st.lists(
    st.sampled_from((*_PIECES, *NO_NUMBERS, " ", ". ", ", ", "\n", "-", "/", "İ", "ﬁ", "e\u0301")), max_size=12
)
ANY_TEXT = st.one_of(st.text(max_size=60), _TEXTS.map(" ".join), _TEXTS.map("".join))


@settings(max_examples=400, deadline=None)
@given(ANY_TEXT)
def test_places_are_in_order_and_inside_the_text(text: str) -> None:
    found = values(text)
    assert found == values(text)
    done = 0
    for value in found:
        assert done <= value.start < value.end <= len(text)
        assert text[value.start : value.end].strip() == text[value.start : value.end]
        done = value.end


@settings(max_examples=200, deadline=None)
@given(ANY_TEXT)
def test_a_value_is_itself_and_no_rival_of_itself(text: str) -> None:
    found = values(text)
    for value in found:
        assert same(value, value)
        assert not rival(value, value)
    for left in found[:6]:
        for right in found[:6]:
            assert same(left, right) == same(right, left)
            assert rival(left, right) == rival(right, left)
            assert not (same(left, right) and rival(left, right))


@pytest.mark.parametrize(("left", "right"), TWINS)
def test_values_keep_apart_inside_a_sentence(left: str, right: str) -> None:
    """A value ends where it ends: another sentence beside it changes nothing."""
    for text in (left, right):
        found = [(value.kind, value.canonical, value.bound) for value in values(f"Seen; {text}; then home")]
        assert found == [(value.kind, value.canonical, value.bound) for value in values(f"Seen; {text}")]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Dose\u00a01\u00a0000\u00a0mg \ufb01rst 3\u00a0weeks", ["1\u00a0000\u00a0mg", "\ufb01rst", "3\u00a0weeks"]),
        ("İ 98.6\u2109 and ½ tablet", ["98.6\u2109", "½"]),
        ("(below 90%), 5 mg/kg/day.", ["below 90%", "5 mg/kg", "/day"]),
        ("a 49-year-old with BP 130/80 mmHg", ["49-year-old", "130/80 mmHg"]),
        ("between 10 and 11 am, 1,2,3", ["10", "11 am", "1", "2", "3"]),
        ("2 x 500 mg", ["2", "x 500 mg"]),
        ("grade II of 2 doses twice a day", ["II", "2", "twice a day"]),  # the nouns stay words
    ],
)
def test_a_place_is_that_of_the_original(text: str, parts: list[str]) -> None:
    assert [text[value.start : value.end] for value in values(text)] == parts


@pytest.mark.parametrize("piece", ENDLESS)
def test_a_text_of_one_piece_takes_linear_time(piece: str) -> None:
    assert grows_as_the_length_does(values, piece)
