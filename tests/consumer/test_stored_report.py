"""Reports as files hold them: the parts that a command asks for, and in words what is wrong with one."""

from typing import Any

import pytest

from consumer.errors import ConfigurationError
from consumer.offline.stored_report import StoredResults, StoredRun, part_of
from tests.support.scored_runs import SMALL, scored_run


def a_report(**changes: Any) -> dict[str, Any]:
    run = {"selection": {"concern_id": "K07", "batches": ["asthma_1"], "on_duplicate": None}}
    return dict(scored_run(SMALL).report) | run | changes


def test_every_part_of_a_report_of_safe_score_can_be_had() -> None:
    report = a_report()
    results = part_of(report, StoredResults, "report.json")
    assert [result.test_id for result in results.results] == [result["test_id"] for result in report["results"]]
    assert [result.forbidden for result in results.results] == [result["terms"]["AH"] for result in report["results"]]
    assert part_of(report, StoredRun, "report.json").scorer.version == report["scorer"]["version"]


@pytest.mark.parametrize("name", ["complete", "missing_outputs", "scorer", "configuration"])
def test_what_a_report_does_not_say_is_none_and_so_is_null(name: str) -> None:
    report = a_report(**{name: None})
    assert getattr(part_of(report, StoredResults, "report.json"), name) is None
    del report[name]
    assert getattr(part_of(report, StoredResults, "report.json"), name) is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"scorer": None}, "scorer is not an object"),
        ({"scorer": {"version": 1}}, "scorer.version is not a string"),
        ({"configuration": "none"}, "configuration is not an object"),
        ({"selection": {"concern_id": "K07"}}, "selection.batches is missing"),
        ({"selection": {"concern_id": "K07", "batches": ["a", 2]}}, "selection.batches[1] is not a string"),
        ({"selection": {"concern_id": "K07", "batches": ["a/b"]}}, "selection.batches is not a list of batch names"),
    ],
)
def test_what_is_wrong_is_named_by_its_place_behind_a_name_that_no_terminal_obeys(
    changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        part_of(a_report(**changes), StoredRun, "report\x1b.json")
    assert str(refused.value) == f"report\\u001b.json: {why}"


@pytest.mark.parametrize("label", ["Good", "x - at `$.y\x1b`", "a\nb - at `$.summary`"])
def test_no_text_of_a_report_reaches_the_terminal(label: str) -> None:
    report = a_report()
    report["results"][1]["label"] = label
    with pytest.raises(ConfigurationError) as refused:
        part_of(report, StoredResults, "report.json")
    assert str(refused.value) == "report.json: results[1].label is not one of Pass, Review, Fail"
