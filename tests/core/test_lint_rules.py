"""What lint finds in one batch document, and what copying the narrative can reach."""

from collections.abc import Sequence
from typing import Any, get_args

import pytest

from safe_core import DEFAULT_POLICY, Expectations, InvalidBatch, Policy, narrative_of, prepare
from safe_core.accepted_wordings import accepted_in
from safe_core.ceiling import Ceiling, InvalidCeiling, NarratedCase, ceiling
from safe_core.lint_rules import SEVERITIES, Code, facts_lacking, findings, longer_word, written_cases

NARRATIVE = "A girl of 9 came at 18:30 with wheeze. Theatre was called for her; salbutamol was given at once."


def a_case(
    signals: Sequence[Any] = ("wheeze",),
    forbidden: Sequence[Any] = ("blame",),
    phrases: Sequence[Any] = ("salbutamol was given",),
    **more: Any,
) -> dict[str, Any]:
    return {
        "test_id": "T1",
        "concern_id": "K07",
        "patient_payload": NARRATIVE,
        "expectations": {
            "signal_generation": {"must_find_signals": list(signals), "min_signal_count": 1},
            "followup_questions": {"forbidden_terms": list(forbidden), "required_themes": ["time of arrival"]},
            "event_summary": {"must_contain_phrases": list(phrases)},
        },
    } | more


def found(*cases: Any, **document: Any) -> list[tuple[str, str]]:
    return [(each.code, each.place) for each in findings(written_cases({"test_cases": list(cases), **document}))]


CASE = "test_cases[0] (T1)"
SIGNALS = f"{CASE}.expectations.signal_generation.must_find_signals"
FORBIDDEN = f"{CASE}.expectations.followup_questions.forbidden_terms"
PHRASES = f"{CASE}.expectations.event_summary.must_contain_phrases"


def test_a_sound_case_has_no_findings() -> None:
    assert found(a_case(description="what factory-cli writes besides")) == []


def test_a_wording_with_every_fact_of_its_term_is_sound() -> None:
    wordings = {" Wheeze": ["she was wheezing"], "salbutamol was given": ["given salbutamol", "received salbutamol"]}
    assert found(a_case(accepted_wordings=wordings)) == []


MALFORMED = [
    # (what is in place of a list of wordings, what is said of it)
    ("wheezing", 'has no list of texts, so nothing is accepted for it: write ["...", "..."]'),
    (["wheezing", 7, " "], "has wordings that are not accepted: [1] is not a string, [2] is blank"),
    (["wheezing \ud800"], "has wordings that are not accepted: [0] holds a lone surrogate"),
    (
        [" "] * 7,
        "has wordings that are not accepted: " + ", ".join(f"[{n}] is blank" for n in range(5)) + " and 2 more",
    ),
]


@pytest.mark.parametrize(("texts", "said"), MALFORMED)
def test_what_is_no_wording_is_told_with_its_place_and_what_is_wrong(texts: object, said: str) -> None:
    case: Any = a_case(accepted_wordings={"wheeze": texts})
    told = findings(written_cases({"test_cases": [case]}))
    assert [finding.sentence for finding in told] == [f'"wheeze" {said}']
    accepted = [wording for _, wordings in accepted_in(case) for wording in wordings]
    assert accepted == (["wheezing"] if isinstance(texts, list) and "wheezing" in texts else [])


@pytest.mark.parametrize(
    ("term", "wording", "lacking"),
    [
        ("metoprolol 25 mg", "metoprolol 50 mg", ["25 mg"]),
        ("no fever", "fever", ["fever"]),
        ("left knee pain", "his knee hurts", ["left"]),
        ("annual renal ultrasound", "renal ultrasound", ["annual"]),
        ("seen in 2 weeks", "seen in two weeks", []),
        ("re-laparotomy on Monday", "surgery on Monday", ["re-laparotomy"]),  # whole words
    ],
)
def test_a_wording_that_lacks_a_fact_is_told_with_what_it_lacks(term: str, wording: str, lacking: list[str]) -> None:
    assert facts_lacking(term, wording) == lacking


def test_every_code_has_a_severity() -> None:
    assert set(SEVERITIES) == set(get_args(Code))


@pytest.mark.parametrize(
    ("case", "code", "place"),
    [
        (a_case(["wheezing"]), "not_in_narrative", f"{SIGNALS}[0]"),
        (a_case(phrases=["at once", "salbutamol  was"]), "not_in_narrative", f"{PHRASES}[1]"),
        (a_case([" "]), "blank_term", f"{SIGNALS}[0]"),
        (a_case(["wheeze", " WHEEZE "]), "duplicate_term", f"{SIGNALS}[1]"),
        # however often a longer term holds it
        (a_case(["with wheeze", "wheeze", "wheeze. theatre"]), "nested_term", f"{SIGNALS}[1]"),
        (a_case(forbidden=["who is to blame", "Blame"]), "nested_term", f"{FORBIDDEN}[1]"),
        (a_case(forbidden=["Wheeze"]), "forbidden_and_required", f"{FORBIDDEN}[0]"),
        # a question that quotes what was to be found would use it; the reverse is no trap
        (a_case(forbidden=["was given"]), "forbidden_inside_required", f"{FORBIDDEN}[0]"),
        (a_case(forbidden=["arrival"]), "forbidden_inside_theme", f"{FORBIDDEN}[0]"),
        # "for" stands in the narrative
        (a_case(forbidden=["OR"]), "hits_inside_word", f"{FORBIDDEN}[0]"),
        (a_case(forbidden=["ICU"]), "may_hit_inside_word", f"{FORBIDDEN}[0]"),
        # a time inside a longer one
        (a_case(["8:30 with"]), "hits_inside_word", f"{SIGNALS}[0]"),
        (a_case(concern_id=None), "no_concern", CASE),
        (a_case(archetype="Unknown"), "placeholder_archetype", f"{CASE}.archetype"),
        (a_case(archetype=" "), "placeholder_archetype", f"{CASE}.archetype"),
        (a_case(expectations={}), "checks_nothing", f"{CASE}.expectations"),
        (a_case(patient_payload_digest="sha256:0"), "malformed_digest", f"{CASE}.patient_payload_digest"),
        (a_case(accepted_wordings=["wheeze"]), "malformed_wordings", f"{CASE}.accepted_wordings"),
        (a_case(accepted_wordings={"wheeze": ["wheezing", " "]}), "malformed_wordings", f"{CASE}.accepted_wordings"),
        (a_case(accepted_wordings={"cough": ["coughing"]}), "wording_of_no_term", f"{CASE}.accepted_wordings"),
        (a_case(accepted_wordings={"blame": ["at fault"]}), "wording_of_no_term", f"{CASE}.accepted_wordings"),
        (
            a_case(accepted_wordings={"salbutamol was given": ["she was given something"]}),
            "wording_lacks_fact",
            f"{CASE}.accepted_wordings",
        ),
        (a_case(accepted_wording={}), "misspelt_key", f"{CASE}.accepted_wording"),
        (a_case(metric_di="K07"), "misspelt_key", f"{CASE}.metric_di"),
        (a_case(must_find_signals=[]), "misplaced_key", f"{CASE}.must_find_signals"),
        # test_id is there, so nobody meant it
        (a_case(test_name="of no use"), "unknown_key", f"{CASE}.test_name"),
        (a_case(expectations=None), "invalid_case", CASE),
        (a_case(test_id="T1", metric_id=7), "invalid_case", CASE),
        (a_case(["wheeze", 7]), "invalid_case", CASE),
    ],
)
def test_each_thing_that_is_wrong_is_found_where_it_stands(case: Any, code: str, place: str) -> None:
    assert found(case) == [(code, place)]


@pytest.mark.parametrize(
    "case",
    [
        # required inside forbidden: only a question that says all of it uses it
        a_case(forbidden=["who caused the wheeze"]),
        # the same in two required lists, each of which reads its own text
        a_case(["salbutamol was given"]),
        # four letters that no common word holds, and one that the narrative only inflects
        a_case(forbidden=["xray", "call"]),
        # what is no text is another's business
        a_case(patient_payload=None),
        a_case(patient_payload=["wheeze"]),
        # a section that is not there is empty
        a_case(expectations={"event_summary": {"must_contain_phrases": ["salbutamol"]}}),
        a_case(patient_payload_digest="sha256:" + "0" * 64),
    ],
)
def test_what_is_fair_is_left_alone(case: Any) -> None:
    assert found(case) == []


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("must_find_signal", "must_find_signals"),  # also beside the right one
        ("mustFindSignals", "must_find_signals"),
        ("Must-Find Signals", "must_find_signals"),
        ("must_find", "must_find_signals"),
    ],
)
def test_a_misspelt_key_is_answered_by_the_nearest_known_one(key: str, near: str) -> None:
    case = a_case()
    case["expectations"]["signal_generation"] = {key: ["wheeze"]}
    (finding,) = findings(written_cases({"test_cases": [case]}))
    assert (finding.code, finding.path) == ("misspelt_key", f"expectations.signal_generation.{key}")
    assert f'did you mean "{near}"?' in finding.sentence


def test_a_misspelt_key_of_a_section_names_the_section() -> None:
    case = a_case()
    case["expectations"]["event_sumary"] = case["expectations"].pop("event_summary")
    assert found(case) == [("misspelt_key", f"{CASE}.expectations.event_sumary")]


def test_each_blank_term_is_named_and_what_else_is_wrong_with_the_case() -> None:
    codes = [code for code, _ in found(a_case(["", "wheeze", " "], forbidden=["blame", "blame"]))]
    assert codes == ["blank_term", "blank_term", "duplicate_term"]


def test_a_term_that_stands_three_times_is_found_twice() -> None:
    assert [place for _, place in found(a_case(["wheeze"] * 3))] == [f"{SIGNALS}[1]", f"{SIGNALS}[2]"]


def test_the_same_test_id_twice_is_worse_where_the_expectations_differ() -> None:
    assert found(a_case(), a_case()) == [("test_id_twice", "test_cases[1] (T1).test_id")]
    assert found(a_case(), a_case(["at once"])) == [("test_id_twice_differently", "test_cases[1] (T1).test_id")]


def test_a_placeholder_is_no_matter_where_the_plan_names_the_archetype() -> None:
    plan = {"scenarios": ["[Process_Auditor] a girl with wheeze"]}
    assert found(a_case(archetype="Unknown"), batch_plan=plan) == []


def test_what_is_no_test_case_is_one_finding() -> None:
    assert found("case") == [("invalid_case", "test_cases[0]")]
    with pytest.raises(InvalidBatch):
        written_cases({})


@pytest.mark.parametrize(
    ("needle", "text", "word"),
    [
        ("or", "or for", "for"),
        ("ct", "a fractured arm", "fractured"),
        ("scan", "two scans, scanned", None),  # which merely inflect it
        ("2h", "after 12h", "12h"),
        ("5 hours", "2.5 hours", "2.5 hours"),
        ("at 9", "at 9:30", "at 9:30"),
        ("at 9", "at 9. It", None),
        ("13 hour", "13 hours", None),
        ("delay", "delayed undelayed", None),  # no short word
        ("(or", "x(orb", "(orb"),
        ("or", "", None),
    ],
)
def test_a_short_term_and_a_number_may_stand_inside_a_longer_one(needle: str, text: str, word: str | None) -> None:
    assert longer_word(needle, text) == word


def test_every_one_of_thousands_of_terms_is_looked_at() -> None:
    many = [f"1x{number}" for number in range(9_000)]
    case = a_case(many, patient_payload="salbutamol was given 11x1 " * 4_000)
    assert len(found(case)) > 9_000


# --- the ceiling ------------------------------------------------------------------------------------------------------


def narrated(signals: Sequence[str], phrases: Sequence[str], narrative: str | None = NARRATIVE) -> NarratedCase:
    expectations = Expectations(tuple(signals), ("wheeze",), tuple(phrases))
    return NarratedCase(prepare(expectations), narrative, DEFAULT_POLICY.default)


CASES = (
    narrated(["WHEEZE"], ["salbutamol "]),
    narrated(["wheeze", "rash"], ["salbutamol"]),
    narrated(["stridor"], ["salbutamol"]),
    narrated(["wheeze"], [], narrative=None),
    narrated([], []),
)


def test_the_ceiling_is_what_a_copy_of_each_narrative_gets() -> None:
    # forbidden terms are no matter: a copy asks no question
    assert ceiling(CASES) == Ceiling(5, 2, 1, 1, 7, 2, 1)


def test_a_term_that_only_two_copies_in_a_row_would_hold_does_not_stand_in_the_narrative() -> None:
    case = narrated(["at once. A girl"], [])
    assert ceiling([case]) == Ceiling(1, 1, 0, 0, 1, 1, 0)


def test_the_ceiling_goes_by_the_rules_in_force() -> None:
    gentle = Policy.from_document({"thresholds": {"CR": {"pass": 0.5}}}).default
    assert ceiling([CASES[1]._replace(rules=gentle)]).passes == 1


@pytest.mark.parametrize(
    ("cases", "sentence", "pass_rate"),
    [
        (CASES[:3], "at most 1 of 3 cases would pass even if each output were a copy of its narrative", 1 / 3),
        # nobody knows of the case without a narrative, so that it cannot lower a ceiling
        (
            CASES,
            (
                "at most 2 of 4 cases would pass even if each output were a copy of its narrative "
                "(1 case without a narrative is not counted)"
            ),
            3 / 5,
        ),
        (CASES[3:4], "no case that can be scored has a narrative", 1.0),
        ((), "no case that can be scored has a narrative", 1.0),
    ],
)
def test_the_ceiling_says_how_many_can_pass(cases: Sequence[NarratedCase], sentence: str, pass_rate: float) -> None:
    assert (ceiling(cases).sentence, ceiling(cases).pass_rate) == (sentence, pass_rate)


def test_a_ceiling_reads_back_its_own_document() -> None:
    whole = ceiling(CASES)
    assert Ceiling.parse(whole.document()) == whole
    assert list(whole.document()) == [
        "cases", "pass", "review", "fail", "terms", "not_in_narrative", "without_narrative"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        ceiling(CASES).document() | {"pass": -1},
        ceiling(CASES).document() | {"pass": True},
        ceiling(CASES).document() | {"cases": 9},
        ceiling(CASES).document() | {"not_in_narrative": 8},
    ],
)
def test_a_document_that_is_no_ceiling_is_refused(document: object) -> None:
    with pytest.raises(InvalidCeiling):
        Ceiling.parse(document)


@pytest.mark.parametrize(
    ("case", "narrative"), [({"patient_payload": "x"}, "x"), ({"patient_payload": 7}, None), ({}, None), ("x", None)]
)
def test_only_a_text_is_a_narrative(case: object, narrative: str | None) -> None:
    assert narrative_of(case) == narrative
