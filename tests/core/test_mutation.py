"""Mutants of narratives: planted dangers are all altered, in grammatical English, and nothing else is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core import DEFAULT_POLICY, Expectations, Output, Threshold, Thresholds, prepare
from safe_core.ceiling import NarratedCase
from safe_core.mutation import MOST_MUTANTS, MutantKind, MutatedCase, alterations

# narrative, kind, and what it becomes: the danger was planted by hand
PLANTED: list[tuple[str, MutantKind, str]] = [
    ("He denies chest pain.", "negation_removed", "He reports chest pain."),
    ("She has no known allergies.", "negation_removed", "She has known allergies."),
    ("No fracture was seen.", "negation_removed", "Fracture was seen."),
    ("There was no deformity.", "negation_removed", "There was deformity."),
    ("There was no evidence of a clot.", "negation_removed", "There was evidence of a clot."),
    ("Fell without loss of consciousness.", "negation_removed", "Fell with loss of consciousness."),
    ("Sent home without any pain.", "negation_removed", "Sent home with pain."),
    ("She never smoked.", "negation_removed", "She smoked."),
    ("He could not walk.", "negation_removed", "He could walk."),
    ("He hasn't been vomiting.", "negation_removed", "He has been vomiting."),
    ("A clot was ruled out.", "negation_removed", "A clot was confirmed."),
    ("He was unable to flex it.", "negation_removed", "He was able to flex it."),
    ("An absence of pulses.", "negation_removed", "A presence of pulses."),
    ("A lack of pulses.", "negation_removed", "The presence of pulses."),
    ("A non-displaced fracture.", "negation_removed", "A displaced fracture."),
    ("She was no longer drowsy.", "negation_removed", "She was still drowsy."),
    ("Allergies: none.", "negation_removed", "Allergies: some."),
    ("She refused surgery.", "negation_removed", "She accepted surgery."),
    ("She declined transfusion.", "negation_removed", "She accepted transfusion."),
    ("Nobody checked the pulse.", "negation_removed", "Somebody checked the pulse."),
    ("Nothing was given.", "negation_removed", "Something was given."),
    ("Hardly any pain.", "negation_removed", "Some pain."),
    ("He could hardly walk.", "negation_removed", "He could easily walk."),
    ("CT w/o contrast.", "negation_removed", "CT with contrast."),
    ("Adult, NKDA.", "negation_removed", "Adult, known drug allergies."),
    ("He is free of pain.", "negation_removed", "He has pain."),
    ("She is pain-free.", "negation_removed", "She is in pain."),
    ("A nonsmoker.", "normal_abnormal", "A smoker."),
    ("The drug was withheld.", "negation_removed", "The drug was given."),
    ("Aspirin was discontinued.", "negation_removed", "Aspirin was continued."),
    ("Pain has resolved.", "negation_removed", "Pain has persisted."),
    ("He stopped taking it.", "negation_removed", "He continued taking it."),
    ("Nil by mouth.", "negation_removed", "Fed by mouth."),
    ("The wound was infected.", "negation_added", "The wound was not infected."),
    ("There was a pucker sign.", "negation_added", "There was no pucker sign."),
    ("The film showed a fracture.", "negation_added", "The film showed no fracture."),
    ("He came with palpable pulses.", "negation_added", "He came without palpable pulses."),
    ("She can move it.", "negation_added", "She cannot move it."),
    ("In the presence of pus.", "negation_added", "In the absence of pus."),
    ("He complains of fever.", "negation_added", "He denies fever."),
    ("He took aspirin.", "negation_added", "He did not take aspirin."),
    ("Antibiotics given.", "negation_added", "Antibiotics not given."),
    ("He\u2019s diabetic.", "negation_added", "He\u2019s not diabetic."),
    ("Given 5 mg of it.", "number", "Given 2 mg of it."),
    ("Given 5 mg of it.", "number", "Given 15 mg of it."),
    ("After a 2-hour delay.", "number", "After a 12-hour delay."),
    ("An 8-year-old boy.", "number", "A 5-year-old boy."),
    ("A 13-hour wait.", "number", "A 10-hour wait."),
    ("It took one day.", "number", "It took four days."),
    ("Two doses.", "number", "Five doses."),
    ("Blood pressure 120/80.", "number", "Blood pressure 150/80."),
    ("Blood pressure 120/80.", "number", "Blood pressure 120/50."),
    ("Blood pressure 40/30.", "number", "Blood pressure 40/15."),
    ("Twenty-one tablets.", "number", "Fifty-one tablets."),
    ("A sixty-three-year-old man.", "number", "A thirty-three-year-old man."),
    ("One hundred and ten mg.", "number", "Eighty mg."),
    ("Her 2nd dose.", "number", "Her 5th dose."),
    ("The first dose.", "number", "The third dose."),
    ("Digoxin .5 mg.", "number", "Digoxin 5 mg."),
    ("Take ½ tablet.", "number", "Take ¼ tablet."),
    ("A dozen stitches.", "number", "Two dozen stitches."),
    ("For half an hour.", "number", "For an hour."),
    ("An L4-L5 fusion.", "number", "An L3-L4 fusion."),
    ("GCS E4V5M6.", "number", "GCS E4V2M6."),
    ("In 2019 it bled.", "number", "In 2016 it bled."),
    ("Weighs 10-12 kg.", "number", "Weighs 7-12 kg."),
    ("A temperature of 38.5 °C.", "number", "A temperature of 35.5 °C."),
    ("Digoxin 0.25 mg.", "number", "Digoxin 2.5 mg."),
    ("WBC 18,500.", "number", "WBC 48,500."),
    ("A Gartland type III fracture.", "number", "A Gartland type II fracture."),
    ("MMSE 22 out of 30.", "number", "MMSE 11 out of 30."),
    ("GCS 15.", "number", "GCS 12."),
    ("Adrenaline 1:1,000.", "number", "Adrenaline 1:10,000."),
    ("Take 1 000 mg.", "number", "Take 700 mg."),
    ("Take 5 000 units.", "number", "Take 2 000 units."),
    ("Platelets 234\u00a0000.", "number", "Platelets 534\u00a0000."),
    ("An INR of 3\u00b72.", "number", "An INR of 6\u00b72."),
    ("Creatinine 1,5.", "number", "Creatinine 4,5."),
    ("A pressure of 214 / 118.", "number", "A pressure of 214 / 88."),
    ("Take 1\u00bd tablets.", "number", "Take 4\u00bd tablets."),
    ("Every 8 hours.", "number", "Every 5 hours."),
    ("At half past two.", "time", "At half past seven."),
    ("Seen at 0930 hours.", "time", "Seen at 1430 hours."),
    ("Seen on Feb 29, 2024.", "time", "Seen on Feb 26, 2024."),
    ("Seen at 20:30.", "time", "Seen at 01:30."),
    ("Seen at 08:00 PM.", "time", "Seen at 01:00 PM."),
    ("Seen at 8 am.", "time", "Seen at 1 am."),
    ("Seen at 2 PM.", "time", "Seen at 2 AM."),
    ("Seen at 10 p.m.", "time", "Seen at 3 p.m."),
    ("Seen on March 31.", "time", "Seen on August 31."),
    ("Seen on 12/31/2024.", "time", "Seen on 12/28/2024."),
    ("Seen on 12/12/2024.", "time", "Seen on 12/09/2024."),
    ("Seen on the 21st of June.", "time", "Seen on the 24th of June."),
    ("He bled last night.", "time", "He bled yesterday morning."),
    ("Seen on Saturday.", "time", "Seen on Tuesday."),
    ("Seen on 2024-03-05.", "time", "Seen on 2024-03-08."),
    ("Sent home the following day.", "time", "Sent home the same day."),
    ("On day 2 it bled.", "time", "On day 5 it bled."),
    ("It began at noon.", "time", "It began at midnight."),
    ("The left arm.", "side", "The right arm."),
    ("Bilateral crackles.", "side", "Unilateral crackles."),
    ("The distal radius.", "side", "The proximal radius."),
    ("R leg pain.", "side", "L leg pain."),
    ("LLQ pain.", "side", "RLQ pain."),
    ("The ipsilateral arm.", "side", "The contralateral arm."),
    ("A normal pulse.", "normal_abnormal", "An abnormal pulse."),
    ("She was afebrile.", "normal_abnormal", "She was febrile."),
    ("A warm hand.", "normal_abnormal", "A cold hand."),
    ("An open fracture.", "normal_abnormal", "A closed fracture."),
    ("He died.", "normal_abnormal", "He survived."),
    ("Mother alive.", "normal_abnormal", "Mother dead."),
    ("A soft abdomen.", "normal_abnormal", "A rigid abdomen."),
    ("Mild pain.", "grade", "Severe pain."),
    ("A suspected stroke.", "certainty", "A confirmed stroke."),
    ("Warfarin was given.", "drug", "Apixaban was given."),
    ("Left knee: swollen.", "side", "Right knee: swollen."),
    ("[doctor] you had a fracture of your knee .", "negation_added", "[doctor] you had no fracture of your knee ."),
]

# what looks like a danger and is none, would be no English, or is a heading, a question or small talk
LEFT_ALONE = [
    "LEFT KNEE\nSeen.",
    "Left knee:\nSeen.",
    "Is the left knee open?",
    "[doctor] okay, that was good, we can do it.",
    "[patient] no .",
    "She left the ward before that.",  # no side
    "Findings consistent with it.",  # "consistent without" is no English
    "The HbA1c and SpO2 again.",  # digits of names
    "A titre 10\u207b\u00b3.",  # a power is no number of its own
    "No signs were present.",  # but for the denial that is there
]


# narrative, and what it must not become: no English, or no such day, range or number
IMPOSSIBLE = [
    ("Twenty-one tablets.", "Ten-one tablets."),
    ("Twenty-two tablets.", "Twenty-five tablets."),  # no dangerous change
    ("Her 2nd dose.", "Her 5nd dose."),
    ("Seen on March 31.", "Seen on June 31."),
    ("Seen on 12/31/2024.", "Seen on 15/31/2024."),
    ("In 2019 it bled.", "In 5019 it bled."),
    ("Watched 24/7.", "Watched 54/7."),
    ("Weighs 10-12 kg.", "Weighs 10-9 kg."),
    ("Lasted between 3 and 5 days.", "Lasted between 6 and 5 days."),
    ("Lasted between 3 and 5 days.", "Lasted between 3 and 2 days."),
    ("Blood pressure 40/30.", "Blood pressure 40/60."),
    ("Took 1 to 2 days.", "Took 4 to 2 days."),
    ("At 10^9 cells.", "At 7^9 cells."),
    ("Platelets 180 x 10³ AM sample.", "Platelets 180 x 7³ AM sample."),
    ("Seen at 10 am.", "Seen at 03 am."),
    ("Adrenaline 1:1,000.", "Adrenaline 1:4,000."),
    ("Adrenaline 1:1,000.", "Adrenaline 4:1,000."),
    ("A titre 10\u207b\u00b3.", "A titre 7\u207b\u00b3."),
    ("Seen on Feb 29, 2024.", "Seen on Feb 29, 2021."),
    ("Seen on Jan 30.", "Seen on Feb 30."),
    ("Use it 2-3 times a day.", "Use it 12-3 times a day."),
    ("Take 1 000 mg.", "Take 11 000 mg."),
    ("He is 5 ft 4 in tall.", "He is 5 ft 14 in tall."),
    ("It was not given until noon.", "It was given until noon."),
    ("His function declined over days.", "His function accepted over days."),
    ("It was when he fell.", "It was when he did not fall."),
]


@pytest.mark.parametrize(("narrative", "impossible"), IMPOSSIBLE)
def test_nothing_becomes_what_cannot_be(narrative: str, impossible: str) -> None:
    assert impossible not in [each.applied(narrative) for each in alterations(narrative)]


@pytest.mark.parametrize(("narrative", "kind", "altered"), PLANTED)
def test_each_planted_danger_is_altered(narrative: str, kind: MutantKind, altered: str) -> None:
    found = [(each.kind, each.applied(narrative)) for each in alterations(narrative)]
    assert (kind, altered) in found


@pytest.mark.parametrize("narrative", LEFT_ALONE)
def test_what_is_no_danger_is_left_alone(narrative: str) -> None:
    kinds = {each.kind for each in alterations(narrative)}
    assert kinds <= ({"negation_removed"} if narrative.startswith("No ") else set())


OF_VALUES = (
    "0 1 3 10 12 24/7 0,120/80 2024 08 ½ 1½ ³ ² ٣ ① Ⅳ IV iii x ^ - – / . , : AM pm h of day days May March Mar on in "
    "at the mg th nd st weeks between and to first two twenty one L C E V M % °C night last half morning Monday ₂ 一"
)


@given(st.lists(st.sampled_from(OF_VALUES.split()) | st.sampled_from(["", " "]), max_size=10).map("".join))
def test_any_spelling_of_values_can_be_altered_and_each_alteration_changes_it(narrative: str) -> None:
    for alteration in alterations(narrative):
        assert alteration.applied(narrative) != narrative


@given(st.text(alphabet=st.sampled_from("aeno tl8152.,:/-'%°ⅣIV\n٣²中 ") | st.characters(), max_size=80))
def test_any_text_at_all_can_be_altered_and_each_alteration_changes_it(narrative: str) -> None:
    found = list(alterations(narrative))
    assert found == list(alterations(narrative))
    assert len(set(found)) == len(found)
    for each in found:
        assert 0 <= each.start < each.end <= len(narrative)
        assert each.applied(narrative).lower() != narrative.lower()


def mutated(narrative: str, signals: list[str], phrases: list[str]) -> MutatedCase:
    expected = prepare(Expectations(tuple(signals), (), tuple(phrases)))
    return MutatedCase(NarratedCase(expected, narrative, DEFAULT_POLICY.default))


def outcomes(case: MutatedCase) -> dict[str, bool]:
    return {each.alteration.after: each.survived for each in case.mutants()}


def test_a_mutant_is_caught_by_a_term_that_it_breaks_and_survives_without() -> None:
    caught = mutated("Pain in the left arm at 20:00.", ["the left arm"], ["pain"])
    assert outcomes(caught) == {"right": False, "01:00": True}


def test_the_perfect_output_has_the_terms_that_the_narrative_lacks_each_once() -> None:
    case = mutated("Pain in the left arm.", ["arm pain", "Pain"], ["ARM PAIN", "arm pain", "left"])
    [side] = case.alterations
    assert case.output(side) == Output(summary="Pain in the right arm.\narm pain\nARM PAIN")


def test_a_suggestion_would_catch_its_survivor() -> None:
    case = mutated("He fell. There was a 2-hour delay to surgery, which was long.", ["fell"], ["delay"])
    [longer] = [each for each in case.alterations if each.after == "12"]
    assert case.suggestion(longer) == "a 2-hour delay"  # "2-hour delay" stands in "12-hour delay" too


def test_no_suggestion_where_the_lists_forgive_one_more_miss() -> None:
    words = ["he", "fell", "hurt", "arm"]
    case = mutated("He fell and hurt the left arm.", words, words)
    [side] = [each for each in case.alterations if each.kind == "side"]
    assert case.suggestion(side) is None
    [mutant] = [each for each in case.mutants() if each.alteration == side]
    assert mutant.one_miss_passes


def test_a_suggestion_goes_into_the_list_that_does_not_forgive_one_miss() -> None:
    long, short = ["he", "fell", "hurt", "arm"], ["arm"]
    for signals, phrases, lists in ((long, short, ("AC",)), (short, long, ("CR",)), (short, short, ("CR", "AC"))):
        case = mutated("He fell and hurt the left arm.", signals, phrases)
        [mutant] = [each for each in case.mutants() if each.alteration.kind == "side"]
        assert (mutant.suggestion, mutant.lists, mutant.one_miss_passes) == ("hurt the left arm", lists, False)


def test_no_suggestion_where_the_altered_text_still_has_each_phrase() -> None:
    case = mutated("9-year-old boy.", ["boy"], [])
    [longer] = [each for each in case.mutants() if each.alteration.after == "19"]
    assert (longer.survived, longer.suggestion, longer.one_miss_passes) == (True, None, False)


def test_a_sentence_with_its_full_stop_may_catch_what_no_other_phrase_does() -> None:
    case = mutated("He fell. It was delayed until 2.", ["fell"], ["delayed"])
    [longer] = [each for each in case.alterations if each.after == "12"]
    assert case.suggestion(longer) == "was delayed until 2"
    case = mutated("He fell. It was 2.", ["fell"], ["it was"])
    at_end = case.alterations[-1]._replace(start=16, end=17, after="25")
    assert case.suggestion(at_end) == "It was 2."


def test_a_suggestion_is_in_no_list_already() -> None:
    half = Threshold(review=0.5, pass_=0.5)
    rules = replace(DEFAULT_POLICY.default, thresholds=Thresholds(CR=half, AC=half))
    expected = prepare(Expectations(("left arm hurt", "x"), (), ("LEFT arm hurt", "x")))
    case = MutatedCase(NarratedCase(expected, "The left arm hurt. x", rules))
    [side] = [each for each in case.alterations if each.kind == "side"]
    assert case.suggestion(side) == "The left arm hurt"


def test_a_narrative_of_very_many_dangers_is_altered_in_the_first() -> None:
    assert len(mutated("left " * 3 * MOST_MUTANTS, ["x"], []).alterations) == MOST_MUTANTS


def test_a_case_without_a_narrative_has_no_mutants() -> None:
    with pytest.raises(ValueError, match="without a narrative"):
        MutatedCase(NarratedCase(prepare(Expectations()), None, DEFAULT_POLICY.default))
