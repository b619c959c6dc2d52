"""`safe verify`: a report is recomputed from its inputs, and whatever was changed is found."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from consumer import __version__
from consumer.errors import ConfigurationError
from consumer.files.outputs import OnDuplicate, open_outputs
from consumer.files.selection import select
from consumer.offline.pages.checks import VERIFIED
from consumer.offline.scoring import score_files
from consumer.offline.verify import Verification, verify
from safe_core import DEFAULT_POLICY, Policy
from tests.support.case_files import HARMFUL, a_case, answer, write_batch, write_report

AT = "2026-03-02T08:00:00.000Z"
Json = Any


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """Two batches of one concern."""
    folder = tmp_path / "cases"
    write_batch(folder, "asthma_1", a_case("A-1", archetype="Handover"), a_case("A-2"), index=1)
    write_batch(folder, "asthma_2", a_case("A-3", signals=["wheeze", "stridor"]), index=2)
    return folder


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """One passes, one is harmful, one is half there."""
    return write_report(tmp_path / "run.json", answer("A-1"), answer("A-2", HARMFUL), answer("A-3"))


def report(
    cases: Path, outputs: Path, *, policy: Policy = DEFAULT_POLICY, on_duplicate: OnDuplicate | None = None
) -> Json:
    """A report as it is read back from its file."""
    run, _ = score_files(
        select(cases, "K07", "*"), [open_outputs(outputs)], policy, generated_at=AT, on_duplicate=on_duplicate
    )
    return json.loads(json.dumps(run.report))


def verified(document: Json, cases: Path, outputs: Path) -> Verification:
    return verify(document, Path("report.json"), cases, [outputs])


def printed(found: Verification) -> list[str]:
    return VERIFIED["console"](found).splitlines()


def test_a_report_that_nobody_touched_is_verified(cases: Path, outputs: Path) -> None:
    found = verified(report(cases, outputs), cases, outputs)

    assert found.differences == []
    assert printed(found) == [
        f"verified: 3 results and every aggregate equal, 3 input files unchanged, rules {DEFAULT_POLICY.fingerprint}"
    ]


def test_the_rules_are_those_that_the_report_names_not_those_in_force(cases: Path, outputs: Path) -> None:
    policy = Policy.from_document({
        "strictAH": True,
        "weights": {"AH": 2.5},
        "thresholds": {"CR": {"pass": 0.9}},
        "overrides": {"archetype": {"Handover": {"weights": {"CR": 0}}}},
    })  # fmt: skip

    assert verified(report(cases, outputs, policy=policy), cases, outputs).differences == []


@pytest.mark.parametrize("on_duplicate", ["first", "last"])
def test_the_choice_between_two_answers_is_made_again(cases: Path, tmp_path: Path, on_duplicate: OnDuplicate) -> None:
    outputs = write_report(tmp_path / "run.json", answer("A-1"), answer("A-1", HARMFUL))

    document = report(cases, outputs, on_duplicate=on_duplicate)

    assert verified(document, cases, outputs).differences == []
    assert document["results"][0]["label"] == {"first": "Pass", "last": "Fail"}[on_duplicate]


def numbers_and_texts(document: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of each leaf."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from numbers_and_texts(value, (*path, key))
    elif isinstance(document, list):
        for place, value in enumerate(document):
            yield from numbers_and_texts(value, (*path, place))
    else:
        yield path


def changed(value: Json) -> Json:
    """The same kind of thing, slightly different: the last digit, the last letter."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value + 2**-40
        case str():
            return value[:-1] + ("x" if value[-1:] != "x" else "y")
        case _:
            return "something"


# Nothing else bears these out, or the recomputation itself goes by them.
NOT_RECOMPUTED = {("generated_at",), ("scorer", "version")}
GIVEN = {"configuration", "selection"}
# A file of outputs is known by its bytes.
NAME_OF_OUTPUTS = ("inputs", 2, "name")


def test_whatever_is_changed_is_found(cases: Path, outputs: Path) -> None:
    whole = report(cases, outputs)
    left_out = {*NOT_RECOMPUTED, NAME_OF_OUTPUTS}
    paths = [path for path in numbers_and_texts(whole) if path not in left_out and path[0] not in GIVEN]
    assert len(paths) > 100
    for path in paths:
        document = json.loads(json.dumps(whole))
        within = document
        for step in path[:-1]:
            within = within[step]
        within[path[-1]] = changed(within[path[-1]])
        assert verified(document, cases, outputs).differences, path


def test_a_batch_that_decides_though_it_is_not_selected_is_an_input(cases: Path, tmp_path: Path) -> None:
    """Without it, the entry would answer the selected case: what changed is said first."""
    outputs = write_report(tmp_path / "run.json", answer("A-1", batch_index=9), answer("A-2"))
    other = write_batch(cases, "other", a_case("A-1", signals=["stridor"]), index=9)
    write_batch(cases, "silent", a_case("A-2"), index=8)
    run, _ = score_files(select(cases, "K07", "asthma_1"), [open_outputs(outputs)], DEFAULT_POLICY, generated_at=AT)
    document = json.loads(json.dumps(run.report))

    assert [each["name"] for each in document["inputs"]] == ["asthma_1.json", "other.json", "run.json"]
    assert verified(document, cases, outputs).differences == []
    moved = outputs.rename(tmp_path / "copy.json")
    assert verified(document, cases, moved).differences == [], "a copy may have another name"

    other.unlink()
    first, *more = map(str, verified(document, cases, moved).differences)
    assert first == "inputs[1] (other.json) is only in the report"
    assert more


CHANGES: list[tuple[str, Callable[[Json], object], str]] = [
    # a digit of a score
    (
        "a score",
        lambda r: r["results"][2]["scores"].update(CR=0.51),
        "(A-3) scores.CR: 0.51 in the report, 0.5 recomputed",
    ),
    (
        "a label",
        lambda r: r["results"][1].update(label="Pass"),
        'results[1] (A-2) label: "Pass" in the report, "Fail" recomputed',
    ),
    ("a count", lambda r: r["summary"].update({"pass": 3}), "summary.pass: 3 in the report, 1 recomputed"),
    # rules that would have given other numbers
    ("a threshold", lambda r: r["configuration"]["thresholds"]["CR"].update(review=0.6), "scorer.fingerprint: "),
    ("a result taken out", lambda r: r["results"].pop(), "results"),
    ("a field taken out", lambda r: r.pop("vacuous"), "vacuous is missing from the report"),
    ("a field put in", lambda r: r.update(approved=True), "approved is only in the report"),
    ("another digest", lambda r: r["inputs"][0].update(sha256="0" * 64), "inputs[0] (asthma_1.json) sha256: "),
    ("a batch left out", lambda r: r["selection"]["batches"].pop(), "asthma_2.json"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "told"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_a_change_is_told_by_its_place(cases: Path, outputs: Path, change: Callable[[Json], object], told: str) -> None:
    document = report(cases, outputs)
    change(document)

    found = verified(document, cases, outputs)

    assert any(told in str(each) for each in found.differences), printed(found)
    assert re.fullmatch(r"NOT verified: \d+ differences?", printed(found)[0])


def test_inputs_that_have_changed_since_are_found(cases: Path, outputs: Path) -> None:
    document = report(cases, outputs)
    write_batch(cases, "asthma_2", a_case("A-3", signals=["wheeze", "stridor", "cyanosis"]), index=2)

    found = verified(document, cases, outputs)

    assert str(found.differences[0]).startswith("inputs[1] (asthma_2.json) sha256: ")
    assert printed(found)[3] == f"  {found.differences[0]}"
    assert printed(found)[3].endswith("the file has changed since")
    assert any("results[2] (A-3) " in str(each) for each in found.differences)


def test_only_the_first_differences_are_shown(cases: Path, outputs: Path) -> None:
    document = report(cases, outputs)
    for result in document["results"]:
        result["scores"] = dict.fromkeys([f"a{number}" for number in range(9)], 0.123)

    found = verified(document, cases, outputs)
    headline, _, heading, *lines, rest = printed(found)

    assert (headline, heading) == (f"NOT verified: {len(found.differences)} differences", "Differences")
    assert lines == [f"  {each}" for each in found.differences[:20]]
    assert rest == f"  and {len(found.differences) - 20} more, which the other formats list"
    assert VERIFIED["markdown"](found).count("\n- `") == len(found.differences)


def test_a_report_of_another_version_is_compared_and_named(cases: Path, outputs: Path) -> None:
    document = report(cases, outputs)
    document["scorer"]["version"] = "0.0.1"

    found = verified(document, cases, outputs)

    assert found.differences == []
    assert found.remarks == [f"the report was written by SAFE 0.0.1; this is SAFE {__version__}"]


def test_outputs_under_another_name_are_the_same_outputs(cases: Path, outputs: Path) -> None:
    document = report(cases, outputs)

    found = verified(document, cases, outputs.rename(outputs.with_name("artefact.json")))

    assert found.differences == []
    assert found.remarks == ["artefact.json was called run.json when the report was made"]


def test_rules_that_are_not_the_default_ones_are_said_aloud(cases: Path, outputs: Path) -> None:
    policy = Policy.from_document({"thresholds": {"CR": {"pass": 0, "review": 0}}})

    found = verified(report(cases, outputs, policy=policy), cases, outputs)

    (remark,) = found.remarks
    assert remark.startswith("the report's rules are not the default ones: thresholds.CR.pass 0.0 (default 0.8), thr")


UNUSABLE: list[tuple[Callable[[Json], object], str]] = [
    # a batch's report from Kafka has neither results nor inputs
    (
        lambda r: [r.pop(name) for name in ("results", "inputs", "selection")],
        "inputs, results, selection missing",
    ),
    (lambda r: r.update(selection=[]), "selection is not an object"),
    (lambda r: r["selection"].update(concern_id=None), "selection.concern_id is not a string"),
    (lambda r: r["selection"].update(batches=[]), "selection.batches is not a list of batch names"),
    (lambda r: r["selection"].update(batches=["../secret"]), "selection.batches is not a list of batch names"),
    (lambda r: r["selection"].update(batches="asthma_1"), "selection.batches is not a list"),
    (lambda r: r["selection"].update(on_duplicate="both"), "selection.on_duplicate is not one of first, last"),
    (lambda r: r.update(configuration=None), "configuration is not an object"),
    (lambda r: r["configuration"]["weights"].update(CR=-1), "configuration: weights: CR -1.0 is below 0"),
    (lambda r: r["configuration"].update(weight={}), 'configuration: unknown key "weight"; did you mean "weights"?'),
]


@pytest.mark.parametrize(("change", "why"), UNUSABLE)
def test_a_report_that_cannot_be_recomputed_is_refused(
    cases: Path, outputs: Path, change: Callable[[Json], object], why: str
) -> None:
    document = report(cases, outputs)
    change(document)
    with pytest.raises(ConfigurationError) as caught:
        verified(document, cases, outputs)
    assert str(caught.value).startswith(f"report.json: {why}")


def test_inputs_that_are_gone_are_named(cases: Path, outputs: Path) -> None:
    document = report(cases, outputs)
    (cases / "asthma_2.json").unlink()
    with pytest.raises(ConfigurationError, match=r"asthma_2\.json: there is no such batch file"):
        verified(document, cases, outputs)
