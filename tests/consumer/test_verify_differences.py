"""What `safe verify` calls a difference, and how it names it."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.offline.verify_differences import ABSENT, Difference, differences
from consumer.wire.strict_json import DEPTH_LIMIT
from safe_core import EMPTY_OUTPUT, Expectations, Output
from tests.support.scored_runs import SMALL, Sample, nasty_samples, scored_run

Report = dict[str, Any]
Steps = tuple[str | int, ...]

INPUTS = tuple({"name": f"S11_wards_{number}.json", "sha256": f"{number:02}" * 32} for number in (1, 2, 3))
FIRST = "S11-W1-001"


def report() -> Report:
    """The report of the small run, as a reader of its file has it."""
    written: Report = json.loads(json.dumps(scored_run(SMALL, inputs=INPUTS).report))
    return written


def found(edit: Callable[[Report], object]) -> list[str]:
    """The differences between an edited report and the true one, in words."""
    edited = report()
    edit(edited)
    return [str(difference) for difference in differences(edited, report())]


# --- equal ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [SMALL, nasty_samples(), SMALL[:1]], ids=["small", "nasty", "one"])
def test_a_report_that_was_written_and_read_equals_its_recomputation(samples: list[Sample]) -> None:
    true = scored_run(samples).report
    assert not list(differences(json.loads(json.dumps(true)), true))


def sorted_by_key(document: Report) -> None:
    rewritten = json.loads(json.dumps(document, sort_keys=True))
    document.clear()
    document.update(rewritten)


HARMLESS: list[tuple[str, Callable[[Report], object]]] = [
    # as jq -S writes it
    ("the order of keys", sorted_by_key),
    # as jq writes it
    ("1 for 1.0", lambda r: r["results"][0]["scores"].update(CR=1)),
    # as JavaScript never would, but others do
    ("7.0 for 7", lambda r: r["summary"].update(total_cases=7.0)),
    # the moment is no result
    ("another moment", lambda r: r.update(generated_at="2031-01-01T00:00:00.000Z")),
    # the fingerprint says what the scores depend on
    ("another version of SAFE", lambda r: r["scorer"].update(version="9.9.9")),
]


@pytest.mark.parametrize("edit", [row[1] for row in HARMLESS], ids=[row[0] for row in HARMLESS])
def test_what_changes_no_result_is_no_difference(edit: Callable[[Report], object]) -> None:
    assert found(edit) == []


# --- different, in words ----------------------------------------------------------------------------------------------

CHANGED = " – the file has changed since"
PHRASES = "results[2] (S11-W1-003) details.AC.missing"

ONE: list[tuple[str, Callable[[Report], object], str]] = [
    (
        "a score",
        lambda r: r["results"][3]["scores"].update(AC=0.25),
        "results[3] (S11-W2-001) scores.AC: 0.25 in the report, 0.5 recomputed",
    ),
    (
        "a score in its last bit",
        lambda r: r["results"][3]["scores"].update(composite=0.8333333333333333),
        "results[3] (S11-W2-001) scores.composite: 0.8333333333333333 in the report, 0.8333333333333334 recomputed",
    ),
    (
        "a label",
        lambda r: r["results"][2].update(label="Pass"),
        'results[2] (S11-W1-003) label: "Pass" in the report, "Fail" recomputed',
    ),
    (
        "null for a text",
        lambda r: r["results"][2].update(archetype=None),
        'results[2] (S11-W1-003) archetype: null in the report, "Escalation_Tracker" recomputed',
    ),
    (
        "true for 1, which are equal to Python",
        lambda r: r["results"][0]["scores"].update(CR=True),
        f"results[0] ({FIRST}) scores.CR: true in the report, 1.0 recomputed",
    ),
    (
        "0 for false, likewise",
        lambda r: r["configuration"].update(strictAH=0),
        "configuration.strictAH: 0 in the report, false recomputed",
    ),
    (
        "a digit as a text",
        lambda r: r["summary"].update(fail="3"),
        'summary.fail: "3" in the report, 3 recomputed',
    ),
    (
        "no number at all, which no JSON holds but a caller may",
        lambda r: r["mean_scores"].update(CR=float("nan")),
        "mean_scores.CR: NaN in the report, 0.5714285714285714 recomputed",
    ),
    (
        "a threshold",
        lambda r: r["configuration"]["thresholds"]["CR"].update({"pass": 0.7}),
        "configuration.thresholds.CR.pass: 0.7 in the report, 0.8 recomputed",
    ),
    (
        "a term in another spelling",
        lambda r: r["results"][2]["details"]["AC"]["missing"].__setitem__(1, "a Head CT was ordered"),
        f'{PHRASES}[1]: "a Head CT was ordered" in the report, "a head CT was ordered" recomputed',
    ),
    (
        "a term too few: those after it have moved, and are the same",
        lambda r: r["results"][2]["details"]["AC"]["missing"].pop(0),
        f'{PHRASES}[0] is missing from the report; recomputed: "a GCS of 14"',
    ),
    (
        "a term too many",
        lambda r: r["results"][2]["details"]["AC"]["missing"].insert(1, "blame"),
        f'{PHRASES}[1] is only in the report: "blame"',
    ),
    (
        "terms in another order",
        lambda r: r["results"][2]["details"]["AC"]["missing"].reverse(),
        f'{PHRASES} (the order differs from [0] on): "a head CT was ordered" in the report, "a GCS of 14" recomputed',
    ),
    (
        "a count of a common miss",
        lambda r: r["failure_analysis"]["common_AH_violations"][0].update(count=2),
        "failure_analysis.common_AH_violations[0] (negligence) count: 2 in the report, 1 recomputed",
    ),
    (
        "a missing result: those after it have moved, and are the same",
        lambda r: r["results"].pop(2),
        "results[2] (S11-W1-003) is missing from the report",
    ),
    (
        "a result too many",
        lambda r: r["results"].insert(0, {**r["results"][5], "test_id": "S11-X"}),
        "results[0] (S11-X) is only in the report",
    ),
    (
        "a result twice",
        lambda r: r["results"].append(r["results"][0]),
        f"results[7] ({FIRST}) is only in the report",
    ),
    (
        "results in another order",
        lambda r: r["results"].sort(key=lambda result: result["test_id"], reverse=True),
        f'results (the order differs from [0] on): "S11-W2-004" in the report, "{FIRST}" recomputed',
    ),
    (
        "another case in the place of one: what else it says follows from that",
        lambda r: r["results"].__setitem__(2, {**r["results"][0], "test_id": "S11-X"}),
        'results[2].test_id: "S11-X" in the report, "S11-W1-003" recomputed',
    ),
    (
        "a case under the name of another",
        lambda r: r["results"][2].update(test_id=FIRST),
        f'results[2].test_id: "{FIRST}" in the report, "S11-W1-003" recomputed',
    ),
    (
        "a result without a name",
        lambda r: r["results"][2].pop("test_id"),
        'results[2].test_id is missing from the report; recomputed: "S11-W1-003"',
    ),
    (
        "no result where one should be",
        lambda r: r["results"].__setitem__(2, 5),
        "results[2] (S11-W1-003): 5 in the report, an object recomputed",
    ),
    (
        "no list of results",
        lambda r: r.update(results={}),
        "results: an object in the report, a list of 7 recomputed",
    ),
    (
        "another file under a name",
        lambda r: r["inputs"][1].update(sha256="ff"),
        f'inputs[1] (S11_wards_2.json) sha256: "ff" in the report, "{"02" * 32}" recomputed{CHANGED}',
    ),
    (
        "a file that was not read",
        lambda r: r["inputs"].pop(0),
        "inputs[0] (S11_wards_1.json) is missing from the report",
    ),
    (
        "a file under another name",
        lambda r: r["inputs"][2].update(name="wards.json"),
        'inputs[2].name: "wards.json" in the report, "S11_wards_3.json" given instead',
    ),
    (
        "a missing field",
        lambda r: r.pop("missing_outputs"),
        "missing_outputs is missing from the report; recomputed: 1",
    ),
    (
        "a missing section",
        lambda r: r.pop("vacuous"),
        "vacuous is missing from the report",
    ),
    (
        "null for a section",
        lambda r: r.update(vacuous=None),
        "vacuous: null in the report, an object recomputed",
    ),
    (
        "a field of someone else's",
        lambda r: r.update(approved_by="N. N."),
        'approved_by is only in the report: "N. N."',
    ),
    (
        "an archetype of someone else's",
        lambda r: r["by_archetype"].update(Nobody={"count": 1}),
        "by_archetype.Nobody is only in the report",
    ),
    (
        "a field that only looks like the one that is not compared",
        lambda r: r.update({"scorer.version": "1"}),
        'scorer.version is only in the report: "1"',
    ),
    (
        "no scorer",
        lambda r: r.update(scorer="SAFE"),
        'scorer: "SAFE" in the report, an object recomputed',
    ),
]


@pytest.mark.parametrize(("edit", "line"), [row[1:] for row in ONE], ids=[row[0] for row in ONE])
def test_one_edit_is_one_difference_that_says_where_and_what(edit: Callable[[Report], object], line: str) -> None:
    assert found(edit) == [line]


def test_a_difference_shows_what_is_absent_as_absent() -> None:
    assert list(differences({"a": None}, {"b": None})) == [
        Difference("b", ABSENT, None),
        Difference("a", None, ABSENT),
    ]


def test_inputs_come_first_and_the_rest_in_the_order_in_which_safe_writes_it() -> None:
    def edit(edited: Report) -> None:
        edited.update(aside=0, complete=False, batch_id="S11_wards_9")
        edited["inputs"][0]["sha256"] = "00"
        edited["mean_scores"]["AH"] = 0.5

    lines = found(edit)
    assert [line.split(":")[0].split(" ")[0] for line in lines] == [
        "inputs[0]",
        "batch_id",
        "mean_scores.AH",
        "complete",
        "aside",
    ]


def test_results_that_moved_are_still_compared_with_their_own() -> None:
    def edit(edited: Report) -> None:
        del edited["results"][0]
        edited["results"][1]["label"] = "Pass"
        edited["results"][4]["test_id"] = "S11-X"

    assert found(edit) == [
        'results[1] (S11-W1-003) label: "Pass" in the report, "Fail" recomputed',
        'results[4].test_id: "S11-X" in the report, "S11-W2-003" recomputed',
        f"results[0] ({FIRST}) is missing from the report",
    ]


@pytest.mark.parametrize("term", ["fever", "rash"])
def test_of_a_term_that_is_listed_more_than_once_one_is_missing_and_none_has_moved(term: str) -> None:
    terms = ["fever", "fever", "rash", "fever", "rash"]
    fewer = [*terms]
    fewer.remove(term)
    (difference,) = differences({"missing": fewer}, {"missing": terms})
    assert (difference.reported, difference.recomputed) == (ABSENT, term)


# --- texts of strangers -----------------------------------------------------------------------------------------------

SHOWN: list[tuple[str, str, str]] = [
    # a terminal would obey or be fooled
    ("\x1b[2J\u202e", "a", r'x: "\u001b[2J\u202e" in the report, "a" recomputed'),
    # quotes and line ends as JSON has them: nothing ends the value but its own quote
    ('"\n in the report, "a', "a", r'x: "\"\n in the report, \"a" in the report, "a" recomputed'),
    # the first 80 characters
    ("b" * 81, "a", f'x: "{"b" * 80}…" in the report, "a" recomputed'),
    ("b" * 80, "a", f'x: "{"b" * 80}" in the report, "a" recomputed'),
    # unless these say nothing of the difference
    ("b" * 90 + "c", "b" * 90 + "d" * 61, f'x: "…{"b" * 20}c" in the report, "…{"b" * 20}{"d" * 60}…" recomputed'),
]


@pytest.mark.parametrize(("reported", "recomputed", "line"), SHOWN)
def test_a_value_is_shown_so_that_it_cannot_harm_and_can_be_told(reported: str, recomputed: str, line: str) -> None:
    assert [str(each) for each in differences({"x": reported}, {"x": recomputed})] == [line]


def test_a_place_cannot_harm_either() -> None:
    hostile = {"\x1b[2J" + "k" * 1_000: 1, "results": [{"test_id": "\u202e" + "i" * 1_000}]}
    assert [str(each) for each in differences(hostile, {"results": []})] == [
        rf"results[0] (\u202e{'i' * 79}) is only in the report",
        rf"\u001b[2J{'k' * 76} is only in the report: 1",
    ]


def test_a_report_as_deep_as_the_parser_lets_through_is_compared() -> None:
    deep: Any = 0
    for _ in range(DEPTH_LIMIT - 1):
        deep = [deep]
    assert not list(differences({"results": deep}, {"results": deepcopy(deep)}))
    line = f"results[0] ({FIRST}): a list of 1 in the report, an object recomputed"
    assert line in [str(each) for each in differences({"results": deep}, report())]


# --- any report, any edit ---------------------------------------------------------------------------------------------

words = st.sampled_from(["fever", "rash", "a wheeze", "blame", "policy", "\u202e"])
lists = st.lists(words, max_size=4).map(tuple)
samples = st.lists(
    st.builds(
        Sample,
        test_id=st.text(min_size=1, max_size=5),
        expectations=st.builds(Expectations, lists, lists, lists),
        output=st.none() | st.just(EMPTY_OUTPUT) | st.builds(Output, lists, st.lists(words).map(" ".join), lists),
        archetype=st.none() | st.sampled_from(["Safety_Signal", "A.B (c)"]),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda sample: sample.test_id,
)
reports = samples.map(lambda chosen: dict(scored_run(chosen, inputs=INPUTS[: len(chosen) % 3]).report))

NOT_COMPARED = {("generated_at",), ("scorer", "version")}
NAMES = ("test_id", "name", "signal", "term", "phrase")


def ways(document: Any, steps: Steps = ()) -> Iterator[Steps]:
    """The way to each member of every object and list of a document."""
    members: Any = ()
    if isinstance(document, dict):
        members = document.items()
    elif isinstance(document, list):
        members = enumerate(document)
    for step, member in members:
        yield (*steps, step)
        yield from ways(member, (*steps, step))


def at(document: Any, steps: Steps) -> Any:
    for step in steps:
        document = document[step]
    return document


def place(document: Any, steps: Steps) -> str:
    """How a difference names the end of a way."""
    named = ""
    for number, step in enumerate(steps):
        if isinstance(step, str):
            named += step if named == "" or named.endswith(" ") else f".{step}"
            continue
        element = at(document, steps[: number + 1])
        named += f"[{step}]"
        name = next((element[key] for key in NAMES if key in element), None) if isinstance(element, dict) else None
        if name is not None and steps[number + 1 :] not in {(key,) for key in NAMES}:
            named += f" ({name}) "
    return named


def other(value: Any) -> st.SearchStrategy[Any]:
    """What someone may have written instead of a value, often of its kind."""
    near: dict[type, st.SearchStrategy[Any]] = {
        bool: st.just(not value),
        int: st.integers(0, 9),
        float: st.floats(0, 1),
        str: words | st.sampled_from(["Pass", "Review", "Fail", "0.1.0"]),
    }
    anything: st.SearchStrategy[Any] = st.none() | st.booleans() | st.text(max_size=3) | st.just([]) | st.just({})
    chosen = near.get(type(value), st.nothing()) | anything
    return chosen.filter(lambda new: new != value or isinstance(new, bool) is not isinstance(value, bool))


@given(reports)
def test_any_report_equals_itself_read_back(document: Report) -> None:
    assert not list(differences(json.loads(json.dumps(document)), document))


@given(reports, st.data())
def test_any_single_value_changed_is_one_difference_that_names_its_place(document: Report, data: st.DataObject) -> None:
    leaves = [steps for steps in ways(document) if not isinstance(at(document, steps), dict | list)]
    steps = data.draw(st.sampled_from(leaves))
    edited = deepcopy(document)
    at(edited, steps[:-1])[steps[-1]] = data.draw(other(at(document, steps)))
    expected = [] if steps in NOT_COMPARED else [place(document, steps)]
    assert [each.place for each in differences(edited, document)] == expected


@given(reports, st.data())
def test_anything_left_out_is_one_difference_and_so_is_anything_put_in(document: Report, data: st.DataObject) -> None:
    pairs = [steps for steps in ways(document) if steps[-1] == 0 and "interval" in steps]  # the second would follow up
    steps = data.draw(st.sampled_from([steps for steps in ways(document) if steps not in pairs]))
    fewer = deepcopy(document)
    del at(fewer, steps[:-1])[steps[-1]]
    expected = steps not in NOT_COMPARED
    assert [each.reported for each in differences(fewer, document)] == [ABSENT] * expected
    assert [each.recomputed for each in differences(document, fewer)] == [ABSENT] * expected
