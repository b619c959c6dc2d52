"""Every score, term and label that factory-cli's own scorer gives for its users' real cases."""

from typing import Any

from safe_core import (
    DEFAULT_POLICY,
    Output,
    TestCase,
    id_problem,
    known_archetype,
    parse_batch,
    prepare,
    result_document,
    score,
)
from tests.support.real_cases import REAL, expected_scores, load, real_cases_only

pytestmark = real_cases_only

# The entries of a file beyond these answer test cases that are not here.
USABLE_ENTRIES = {"outputs_refinery_v9.json": 12}


def batches() -> dict[str, dict[str, TestCase]]:
    """The test cases of each batch; all of them must be good."""
    read = {path.stem: parse_batch(load(path)).cases for path in sorted((REAL / "testcases").glob("*.json"))}
    good = {name: {case.test_id: case for case in cases if isinstance(case, TestCase)} for name, cases in read.items()}
    assert {name: len(cases) for name, cases in good.items()} == {name: len(cases) for name, cases in read.items()}
    return good


def scored_here() -> dict[tuple[str, str, str], dict[str, Any]]:
    """Score every usable entry of the three reports; golden_set.json only repeats cases of the others."""
    results: dict[tuple[str, str, str], dict[str, Any]] = {}
    places = {
        test_id: (name, case)
        for name, cases in batches().items()
        if name != "golden_set"
        for test_id, case in cases.items()
    }
    for path in sorted(REAL.glob("outputs_*.json")):
        for entry in load(path)["raw_results"][: USABLE_ENTRIES.get(path.name)]:
            batch_id, case = places[entry["test_id"]]
            archetype = known_archetype(entry.get("archetype")) or case.archetype
            rules = DEFAULT_POLICY.rules_for(case.metric_id or entry["concern_id"], archetype)
            judged = score(prepare(case.expectations), Output.parse(entry["engine_output"]), rules)
            results[path.name, batch_id, case.test_id] = result_document(case.test_id, archetype, judged)
    return results


def test_all_rows_are_equal_to_the_last_bit() -> None:
    expected = expected_scores()
    results = scored_here()
    assert len(results) == len(expected) == 112
    for row in expected:
        result = results[row["outputs"], row["batch_id"], row["test_id"]]
        assert sum(result.pop("terms").values()) > 0
        assert result == {name: row[name] for name in ("test_id", "archetype", "scores", "details", "label")}
        assert {name: value.hex() for name, value in result["scores"].items()} == {
            name: float(value).hex() for name, value in row["scores"].items()
        }


def test_the_golden_set_repeats_expectations_of_the_other_batches() -> None:
    read = batches()
    golden = read.pop("golden_set")
    others = {test_id: case for cases in read.values() for test_id, case in cases.items()}
    assert len(golden) == 12
    assert all(case.expectations == others[test_id].expectations for test_id, case in golden.items())
    assert all(id_problem(test_id) is None and case.archetype for test_id, case in (others | golden).items())
