"""Rewordings of terms: in the narrative's words, with all that the term says and the narrative has."""

import pytest

from safe_core.diagnosis.alignment import align, term_of
from safe_core.diagnosis.reading import read
from safe_core.matching_rule import normalise
from safe_core.mutation import alterations
from safe_core.rewording import Narrative

NARRATIVE = Narrative(
    "A girl arrived at the clinic at 18:00 on Sunday. Surgery was delayed until 02:00, resulting in an 8-hour wait. "
    "There were no signs of infection, and the left hand was warm. The film was normal (by report)."
)

CASES: list[tuple[str, str, list[tuple[str, ...]]]] = [
    # what the output has too comes first, then the narrative's own words
    (
        "arrived Sunday 18:00",
        "she arrived at the clinic at 18:00 on sunday.",
        [("arrived at the clinic at 18:00 on Sunday",)],
    ),
    # a fused term becomes the phrases that the output has
    (
        "surgery delayed until 02:00 with an 8-hour wait",
        "surgery was delayed until 02:00. this made an 8-hour wait.",
        [
            ("Surgery was delayed until 02:00", "an 8-hour wait"),
            ("Surgery was delayed until 02:00, resulting in an 8-hour wait",),
        ],
    ),
    # nothing replaces a term by another value
    ("9-hour wait", "nothing of it", []),
    # words that run on to a value which the term does not ask for are taken only from the output
    ("an 8-hour delay", "nothing of it", []),
    (
        "an 8-hour delay",
        "surgery was delayed until 02:00, resulting in an 8-hour wait.",
        [("delayed until 02:00, resulting in an 8-hour wait",)],
    ),
    # a denial stays
    ("there is no sign of infection", "no signs of infection were seen", [("no signs of infection",)]),
    # what the narrative does not tell cannot be said in its words
    ("severe dehydration", "dehydrated", []),
    # a term that stands in the narrative is not cut down to what the output lacks as well
    ("the left hand was warm", "nothing of it", []),
]


@pytest.mark.parametrize(("term", "read", "expected"), CASES)
def test_rewordings(term: str, read: str, expected: list[tuple[str, ...]]) -> None:
    found = [tuple(NARRATIVE.text[at.start : at.end] for at in each) for each in NARRATIVE.rewordings(term, read)]
    assert [each for number, each in enumerate(found) if each not in found[:number]] == expected


# narrative, term, and what may replace it: the first choice where the output copies the narrative; "" for nothing
CLAIMS: list[tuple[str, str, str]] = [
    # what the term denies, ends, withholds, refuses or doubts is denied in the phrase, too
    ("She is free of pain and walks well.", "no pain and walks well", "free of pain and walks well"),
    ("He failed to move the leg and fell.", "did not move the leg", "failed to move the leg"),
    ("He could not move the leg and fell.", "unable to move the leg", "could not move the leg"),
    ("He refused the transfusion at noon.", "transfusion not given at noon", "refused the transfusion at noon"),
    ("The nurse forgot to give the aspirin.", "aspirin not given by nurse", "nurse forgot to give the aspirin"),
    ("He avoided alcohol at home.", "no alcohol at home", "avoided alcohol at home"),
    ("She stopped taking aspirin at home.", "not taking aspirin at home", "stopped taking aspirin at home"),
    ("He is no longer on aspirin at home.", "stopped aspirin at home", "no longer on aspirin at home"),
    ("The abdomen is nontender today.", "abdomen not tender", "abdomen is nontender"),
    ("The ulcer healed without treatment.", "ulcer healed without any treatment", "ulcer healed without treatment"),
    ("The scan excluded fracture of the wrist.", "no fracture of wrist", "scan excluded fracture of the wrist"),
    ("There was no loss of consciousness.", "did not lose consciousness", "no loss of consciousness"),
    ("A fall, suspected to be a faint.", "suspected faint, a fall", "fall, suspected to be a faint"),
    ("He is afebrile with intact pulses.", "no fever, pulses intact", "afebrile with intact pulses"),
    # and nothing replaces it where it is not, or where something else is denied
    ("It is doubtful that he fell at home.", "did not fall at home", ""),
    ("He had dyspnea but no chest pain.", "no dyspnea, chest pain", ""),
    ("The CT did not exclude a bleed.", "no bleed on CT", ""),
    ("A fracture of the wrist was found.", "suspected fracture of wrist", ""),
    ("The discharge was complicated at noon.", "uncomplicated discharge at noon", ""),
    # no phrase is cut out of a denial that the term knows nothing of
    ("He refused surgery on Monday and consented on Tuesday.", "surgery consented Monday", ""),
    ("The ulcer healed after a week.", "ulcer healed untreated", ""),
    ("He may have fallen at home.", "he fell at home", ""),
    ("Family history of stroke in May.", "family history of a stroke", "Family history of stroke"),
    ("Family history of stroke in May.", "history of a stroke in May", ""),
    # a narrower denial says less: who has no high fever may have one
    ("She says that she has not had any high fevers.", "denies fevers", ""),
    ("No fever was found on arrival.", "denies fevers", ""),
    ("No fever, and she slept.", "denies fevers", "No fever"),
    # each value is kept, in whatever spelling; nothing replaces one by another
    ("Needle time was fifty-five minutes.", "needle time of 55 minutes", "Needle time was fifty-five minutes"),
    ("Needle time was 55 minutes.", "needle time fifty-five minutes", "Needle time was 55 minutes"),
    ("The wait was one hundred and ten minutes.", "wait of 110 minutes", "wait was one hundred and ten minutes"),
    ("Her L arm was weak on exam.", "left arm weak on exam", "L arm was weak on exam"),
    ("Her left arm was weak on exam.", "L arm weak on exam", "left arm was weak on exam"),
    ("The left arm was weak.", "right arm weak", ""),
    ("The left arm was weak. The right arm was strong.", "weak right arm", ""),
    ("Pain in the left hip and the right knee.", "right hip pain, left knee pain", ""),
    ("A dozen stitches were placed.", "12 stitches placed", "A dozen stitches were placed"),
    ("Warfarin 5 mg twice daily.", "warfarin 5 mg b.i.d.", "Warfarin 5 mg twice daily"),
    ("Warfarin 5 mg daily.", "warfarin 5 mg b.i.d.", ""),
    ("Grade II injury of the right hand.", "grade 2 injury of hand", "Grade II injury of the right hand"),
    ("A 28-year-old woman fell down.", "27-year-old woman who fell", ""),
    ("Her temperature was 42 °C with flu.", "temperature 43 °C with flu", ""),
    ("Creatinine was 1.2 on Monday and 2.4 on Friday.", "creatinine 1.2 on Friday", ""),
    ("It took more than 90 minutes to bleed.", "over 90 minutes to a bleed", "took more than 90 minutes to bleed"),
    ("Two of five swabs were positive.", "5 swabs were positive", ""),
    ("The fever was high.", "fever of 39 °C was high", ""),
    # a verb is not cut off from what says that it is so
    ("He can tolerate almonds well.", "tolerates almonds", "can tolerate almonds"),
    ("She is able to sleep a full 8 hours.", "sleeping a full 8 hours", "is able to sleep a full 8 hours"),
    ("She was doing well with her depression.", "well with depression", "doing well with her depression"),
    # a phrase is a whole constituent: nothing that the term has is cut off from it, and it goes on to a pause
    ("Lungs: resonant and equal bilaterally.", "lungs resonant and equal", "Lungs: resonant and equal bilaterally"),
    ("She tried braces most of the time.", "tried braces most of the time", "tried braces most of the time"),
    ("He runs, and enjoys living there.", "enjoying living there", "enjoys living there"),
    ("A rash of the neck was seen.", "neck rash noted", "rash of the neck was seen"),
    ("The cast was removed in clinic.", "cast was removed", "cast was removed in clinic"),
    ("Rosacea, including ocular rosacea.", "rosacea, including ocular", "Rosacea, including ocular rosacea"),
    # it leaves out a subject, but no verb before its object, and begins behind no "but"
    ("Ms. Doe is taking her iron as ordered.", "iron taken as ordered", "taking her iron as ordered"),
    ("He chews tobacco and betel.", "chewing betel and tobacco", "chews tobacco and betel"),
    ("He limps, but not from the sprain.", "sprain is not the cause", ""),
    ("The boy presents today for a cast.", "presents for a cast", "presents today for a cast"),
    # it is no part of a compound
    ("An abnormal film finding was seen.", "abnormal films", "abnormal film finding was seen"),
    ("Asthma Control Test (ACT): done.", "asthma, controlled", ""),
    ("No new imaging was obtained.", "no imaging was obtained", ""),
    # a list is denied as a whole; it may have further members, but none that narrows what is denied
    ("No goiter, thrills or rubs.", "no rubs or thrills", "No goiter, thrills or rubs"),
    ("No calf swelling on the left.", "no calf swelling", ""),
    # a phrase ends neither before its noun nor within a quotation
    ("The hand had a pink, pulseless appearance.", "pink, pulseless hand", "hand had a pink, pulseless appearance"),
    ("He fell at 10:00 on Monday after a race.", "fell Monday 10:00", "fell at 10:00 on Monday after a race"),
    ("An exam revealing normal tone.", "normal tone on exam", "exam revealing normal tone"),
    ("He could not make the 'OK sign' at all.", "unable to make the OK sign", "could not make the 'OK sign' at all"),
    ("Anterior nerve (AIN) palsy of the arm.", "AIN palsy, arm", "(AIN) palsy of the arm"),
    ("Compartment syndrome of the calf.", "calf compartment seen", "Compartment syndrome of the calf"),
]  # fmt: skip


@pytest.mark.parametrize(("narrative", "term", "expected"), CLAIMS)
def test_what_replaces_a_term_claims_the_same(narrative: str, term: str, expected: str) -> None:
    told = Narrative(narrative)
    found = next(told.rewordings(term, narrative.lower()), ())
    assert " | ".join(told.phrases(found)) == expected


def test_single_words_which_any_output_has_replace_no_phrase() -> None:
    told = Narrative("The documentation of the transfer has discrepancies.")
    found = told.rewordings("discrepancies in the documentation noted", "discrepancies. documentation.")
    assert [told.phrases(each) for each in found] == [("documentation of the transfer has discrepancies",)]


@pytest.mark.parametrize(
    ("narrative", "phrase", "told"),
    [
        ("He has no fever today.", "no fever", True),
        ("He has a fever today.", "a fever", True),
        ("He has no fever today.", "fever", False),  # it is denied
        ("A feverish child.", "fever", False),  # not as a whole word
        ("He fell. He fell twice.", "fell twice", True),
    ],
)
def test_another_narrative_tells_a_phrase_only_if_it_does_not_deny_it(narrative: str, phrase: str, told: bool) -> None:
    assert Narrative(narrative).tells(phrase) is told


def test_brackets_are_not_torn_apart() -> None:
    found = [*NARRATIVE.rewordings("the normal film, by report", "the film was normal (by report, it says)")]
    assert all(NARRATIVE.text[at.start : at.end].count("(") == 0 for each in found for at in each)


@pytest.mark.parametrize(
    ("narrative", "term", "expected"),
    [
        ("Surgical intervention was delayed until 00:00 Saturday.", "surgery Saturday 00:00", ""),
        ("Surgery was at 00:00 on Saturday.", "surgery Saturday 00:00", "Surgery was at 00:00 on Saturday"),
    ],
)
def test_a_phrase_still_says_what_happened(narrative: str, term: str, expected: str) -> None:
    told = Narrative(narrative)
    assert " | ".join(told.phrases(next(told.rewordings(term, "00:00 saturday"), ()))) == expected


WEAKER: list[tuple[str, str]] = [
    # a part of the value, the drug, the denial, the organ or the frequency is lost
    ("the potassium now was five . eight", "K 5.8"),
    ("You may use the clinda-gel, and wash your face.", "Differin 0.3% gel"),
    ("There was no effusion in the knee.", "no effusion or bruising of the knee"),
    ("An echo of the heart will be done.", "yearly echo of the heart"),
    ("Pain in the hip on walking.", "pain in the left hip on walking"),
    ("Swelling of the leg was seen.", "swelling of the lower leg seen"),
    ("He was given aspirin.", "he was given aspirin twice daily"),
    ("Fracture of the radius.", "distal fracture of the radius"),
    ("Ibuprofen helps the pain.", "naproxen helps the pain"),
    ("He has a scan of the chest on Monday.", "CT of the chest on Monday"),
    ("She had migraines.", "previous migraines"),
    # only a part of the term's own words is there
    ("Headaches are rare.", "endorses headaches"),
    ("Metoprolol 25 mg is on the list.", "continue metoprolol 25 mg"),
    # a value is bound to something else
    ("Metformin is taken. Insulin is given twice a day.", "metformin twice a day"),
    ("Left knee pain. Small effusion of the elbow.", "small effusion of left knee"),
    # a value of several digits would be found in a longer one
    ("8-hour wait.", "wait of 8 hours"),
    # what is done is lost
    ("Consent for the scan.", "consent for the scan was obtained"),
    # what is said less surely, or of something else
    ("There is concern regarding a fracture of the wrist.", "fracture of the wrist seen"),
    ("A fracture of the wrist was seen.", "concern regarding a fracture of the wrist"),
    ("The pain was aggravated by walking.", "they have not helped"),
    ("The heart has a normal rate.", "within normal limits"),
    ("She will take ibuprofen with food for a week.", "has been taking ibuprofen with food"),
    ("She has been taking her medication.", "taking medication and going to therapy"),
    ("A 62-year-old with a history of gout.", "62-year-old woman with a history of gout"),
    ("A delay of 2 hours was noted. Additional imaging was ordered.", "delay of 2 hours due to additional imaging"),
    ("Pneumonia was excluded; the headaches are rare.", "she has some headaches"),
    ("The amlodipine was held in hospital.", "amlodipine was stopped in hospital"),
    ("He was moving boxes out of his son's dorm.", "moving boxes with his son"),
    ("He has always struggled. He has asthma.", "always struggled with asthma"),
    ("No type of injury was seen since.", "has not done so since the injury"),
    ("No type of injury was seen at the time of the injury.", "has stopped since the injury"),
    ("She should see her PCP for further instructions.", "follow up with her PCP"),
    ("Possible acute disc herniation.", "likely acute disc herniation"),
    (
        "Peptic ulcer disease. Protonix 40 mg once daily.",
        "peptic ulcer disease: resolved with Protonix 40 mg once daily",
    ),
    ("Medical history of diabetes.", "medications for diabetes"),
    ("A pending Lyme titer was noted.", "pending test for Lyme disease"),
    ("An 18-hour delay due to OR availability.", "18-hour delay due to limited availability of the OR"),
    # a noun is cut, or what is denied is
    ("There is a musculoskeletal low back strain.", "musculoskeletal low back pain"),
    ("Peritoneal signs not elicited.", "no peritoneal signs on exam"),
    # a heading, a further object and an adjective of the term are found where the rest of it is
    ("Odor of the scalp. On exam, no lesions.", "Exam of the scalp: no lesions"),
    ("Slight edema. The left wrist was examined.", "Exam: left wrist: slight edema"),
    ("Her heel had inflammation. She takes ibuprofen for pain.", "takes ibuprofen for pain and inflammation"),
    ("Seen for eczema. The itch is under control.", "eczema, controlled"),
    ("Swollen elbow joints, body aches, and a rash.", "joint pain"),
    # what only holds on a condition, is planned or advised, asked, or said to somebody
    ("She should go on swimming regularly once it is better.", "swimming regularly"),
    ("Refer him to physical therapy.", "he reports that he has physical therapy"),
    ("okay and are you taking norvasc yes i am", "taking Norvasc"),
    ("and you're still taking keppra ? yes", "still taking Keppra"),
    ("you do not stretch at all", "does not stretch at all"),
    ("I still get that pain on stairs.", "still gets that pain on stairs"),
    ("it hurts when you first wake up in the morning", "when he first wakes up in the morning"),
    # subject and predicate, and a word that limits, are facts of the term, too
    ("but typing is , is difficult", "typing is difficult"),
    ("Endorses depression.", "she reports that her depression has been going well"),
    ("It is achy and dull.", "the pain is achy and dull"),
    ("A change in diet.", "her diet is the only change"),
    ("A fair amount of medications.", "doing okay with the medications"),
    ("We did the endoscopy.", "she underwent an endoscopy"),
    # nobody writes what people say to each other
    ("hard alcohol four or five times a week", "drinks alcohol 4-5x/wk"),
    ("the pressure was 140 over 85 then", "pressure of 140/85"),
    ("a score of two out of 9 was given", "score of 2/9"),
    ("the calf is nice and soft", "calf soft"),
    ("so you take it at twenty milligrams of lisinopril", "lisinopril 20 mg"),
    ("it's um the left ankle , swollen", "swollen left ankle"),
    ("the ankle on your left side is swollen", "swollen left ankle"),
    ("the left the left ankle the ankle is swollen", "swollen left ankle, both sides of the ankle"),
    ("1. ankle swelling\n2. left side", "left-sided ankle swelling"),
    ("does the left ankle hurt? no.", "left ankle hurts"),
]


@pytest.mark.parametrize(("narrative", "term"), WEAKER)
def test_what_would_say_less_or_is_no_note_replaces_nothing(narrative: str, term: str) -> None:
    told = Narrative(narrative)
    assert [told.phrases(each) for each in told.rewordings(term, normalise(narrative))] == []


def test_the_words_that_the_narrative_lacks_are_named() -> None:
    assert Narrative("Pain in the hip on walking.").lacks("severe pain in the left hip") == ("severe", "left")
    assert Narrative("No pain in the hip.").lacks("no pain in the hip") == ()


@pytest.mark.parametrize(
    ("narrative", "term", "expected"),
    [
        # other words for the same are no lack, nor is what is heard or measured, where the term says how it is
        ("Pain on palpation of the back, especially on the left.", "tender back, mostly left", True),
        ("He denies further episodes of palpitations.", "no recurrence of palpitations", True),
        ("Locking of the knee with prolonged standing.", "knee locks on standing for long", True),
        ("The whole leg is swollen.", "swelling of the entire leg", True),
        ("The hemoglobin A1c is elevated.", "A1c above target", True),
        ("The heart is regular.", "heart sounds regular on auscultation", True),
        ("No heart sounds.", "heart sounds regular", False),
    ],
)
def test_synonyms_and_what_is_heard_are_no_lack(narrative: str, term: str, expected: bool) -> None:
    assert (Narrative(narrative).lacks(term) == ()) is expected


def test_one_phrase_of_a_whole_list_is_better_than_pieces_of_it() -> None:
    told = Narrative("Neurological: significant for walking impairment and cognitive impairment.")
    found = told.rewordings("Neurological: significant for cognitive impairment and walking impairment", "")
    expected = ("Neurological: significant for walking impairment and cognitive impairment",)
    assert [told.phrases(each) for each in found] == [expected]


NOTES = [
    *((narrative, term) for narrative, term, phrases in CLAIMS if phrases),
    *((NARRATIVE.text, term) for term, _, phrases in CASES if phrases),
    ("She denies any cough or chest pain at night.", "no cough or chest pain at night"),
    ("Amlodipine 5 mg twice a day was stopped on 3 March in hospital.", "stopped amlodipine 5 mg BID on March 3"),
    ("Mild tenderness over the right lateral knee since May 2.", "R lateral knee mildly tender since 2 May"),
    ("The creatinine rose to 1.8 within 48 hours.", "creatinine of 1.8 within two days"),
    ("Acute pain in the upper back, rated 7/10.", "upper back pain, acute, 7 out of 10"),
    ("Possible fracture of the distal left radius.", "left distal radius fracture possible"),
]


@pytest.mark.parametrize(("narrative", "term"), NOTES)
def test_each_fact_of_a_term_is_one_of_its_replacement_and_no_value_is_added(narrative: str, term: str) -> None:
    told = Narrative(narrative)
    found = [told.phrases(each) for each in told.rewordings(term, normalise(narrative))]
    assert found
    for phrases in found:
        clauses = [clause for phrase in phrases for clause in read(phrase).clauses]
        assert {edit.kind for edit in align(term_of(term), clauses).edits if edit.fact.tells} <= {"same", "form"}
        values = {fact.key for clause in clauses for fact in clause.facts if fact.value is not None}
        assert values <= {fact.key for fact in term_of(term).facts} | {"clock 02:00"}  # which the output says, too


@pytest.mark.parametrize(("narrative", "term"), NOTES)
def test_a_narrative_in_which_a_fact_of_the_replacement_is_altered_does_not_contain_it(
    narrative: str, term: str
) -> None:
    for stretches in Narrative(narrative).rewordings(term, normalise(narrative)):
        phrases = Narrative(narrative).phrases(stretches)
        for each in alterations(narrative):
            if any(at.start <= each.start and each.end <= at.end for at in stretches):
                altered = normalise(each.applied(narrative))
                assert not all(normalise(phrase) in altered for phrase in phrases), each
