"""Every real report through `safe score` and `safe verify`: factory-cli's own scores, and a fold apart from ours."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from tests.support.real_cases import REAL, expected_scores, real_cases_only

pytestmark = real_cases_only
Json = Any

REPORTS = [
    # (outputs, options, exit code, how many of the fifty have no output)
    ("outputs_I25_report.json", [], 1, 0),
    ("outputs_loop1_report.json", [], 1, 0),
    # twelve answers, and three more for scenarios whose test cases are not here
    ("outputs_refinery_v9.json", ["--on-duplicate", "first"], 1, 35),
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def scored(outputs: str, options: list[str], pattern: str, code: int) -> Json:
    where = ["--outputs", str(REAL / outputs), "--test-dir", str(REAL / "testcases")]
    assert main(["score", "-c", "I25", "-b", pattern, *where, *options, "-o", "report.json"]) == code
    assert main(["verify", "report.json", *where]) == 0
    return json.loads(Path("report.json").read_bytes())


def bits(scores: dict[str, float]) -> dict[str, str]:
    return {name: float(value).hex() for name, value in scores.items()}


@pytest.mark.parametrize(("outputs", "options", "code", "missing"), REPORTS)
def test_every_row_equals_the_present_scorer_to_the_last_bit(
    outputs: str, options: list[str], code: int, missing: int
) -> None:
    report = scored(outputs, options, "I25_batch_*", code)
    rows = [row for row in expected_scores() if row["outputs"] == outputs]
    results = {result["test_id"]: result for result in report["results"]}
    assert (len(results), report["missing_outputs"], report["batch_id"]) == (50, missing, "I25_combined")
    assert len(rows) in {12, 50}
    for row in rows:
        result = results[row["test_id"]]
        assert bits(result["scores"]) == bits(row["scores"])
        assert {name: result[name] for name in ("archetype", "details", "label")} == {
            name: row[name] for name in ("archetype", "details", "label")
        }


@pytest.mark.parametrize(("outputs", "options", "code", "missing"), REPORTS)
def test_all_batches_give_the_same_fifty_results(outputs: str, options: list[str], code: int, missing: int) -> None:
    """The golden set repeats twelve of the cases."""
    some, everything = (scored(outputs, options, pattern, code) for pattern in ("I25_batch_*", "*"))
    assert everything["results"] == some["results"]
    assert everything["missing_outputs"] == missing
    changing = {"generated_at", "inputs", "selection"}
    assert {name: everything[name] for name in everything.keys() - changing} == {
        name: some[name] for name in some.keys() - changing
    }


def test_the_golden_set_is_scored_by_the_outputs_of_what_it_repeats() -> None:
    golden = scored("outputs_loop1_report.json", [], "golden_set", 1)
    everything = {result["test_id"]: result for result in scored("outputs_loop1_report.json", [], "*", 1)["results"]}
    assert (len(golden["results"]), golden["missing_outputs"], golden["batch_id"]) == (12, 0, "golden_set")
    for result in golden["results"]:
        same = everything[result["test_id"]]
        assert {name: result[name] for name in ("scores", "details", "label")} == {
            name: same[name] for name in ("scores", "details", "label")
        }


def test_of_two_answers_the_one_made_from_the_cases_own_narrative_counts(capsys: pytest.CaptureFixture[str]) -> None:
    report = scored("outputs_refinery_v9.json", [], "I25_batch_*", 1)
    told = capsys.readouterr().err
    assert "7 outputs are passed over" in told
    assert "I25-BATCH1-001 (raw_results[12]), " in told
    mismatches = [result["test_id"] for result in report["results"] if result["input_matches"] is False]
    assert mismatches == ["I25-BATCH2-002", "I25-BATCH2-003", "I25-BATCH2-005"]
    assert report["input_mismatches"] == 3
    assert f"(input mismatch): {', '.join(mismatches)}" in told
    without = [result["test_id"] for result in report["results"] if result["input_matches"] is None]
    assert without == report["missing_test_ids"], "all others are known"


def exact_mean(values: list[float]) -> float:
    return float(sum(map(Fraction, values)) / len(values))


def most_common(counts: Counter[str], text: str, count: str) -> list[Json]:
    return [{text: term, count: many} for term, many in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))[:5]]


@pytest.mark.parametrize(("outputs", "options", "code", "missing"), REPORTS)
def test_the_aggregates_equal_a_fold_written_apart(outputs: str, options: list[str], code: int, missing: int) -> None:
    report = scored(outputs, options, "I25_batch_*", code)
    results: list[Json] = report["results"]
    score: Callable[[Json, str], float] = lambda result, name: result["scores"][name]  # noqa: E731 - said once
    labels = Counter(result["label"] for result in results)
    assert report["label_distribution"] == {name: labels[name] for name in ("Pass", "Review", "Fail")}
    assert report["summary"]["overall_pass_rate"] == labels["Pass"] / 50
    assert bits(report["mean_scores"]) == bits({
        name: exact_mean([score(result, name) for result in results]) for name in ("CR", "AH", "AC", "composite")
    })  # fmt: skip
    bounds = {"CR": 0.8, "AH": 1.0, "AC": 0.8}
    rates = {name: sum(score(result, name) >= bound for result in results) / 50 for name, bound in bounds.items()}
    assert report["pass_rates"] == rates | {"overall": labels["Pass"] / 50}
    by_archetype = report["by_archetype"]
    for name in {result["archetype"] for result in results}:
        group = [result for result in results if result["archetype"] == name]
        assert by_archetype[name] == {
            "count": len(group),
            **{f"mean_{c}": exact_mean([score(result, c) for result in group]) for c in bounds},
            "pass_rate": sum(result["label"] == "Pass" for result in group) / len(group),
        }
    assert sum(group["count"] for group in by_archetype.values()) == 50
    for name in ("lenient", "coverage"):
        means = {each: exact_mean([result[name][each] for result in results]) for each in ("CR", "AC")}
        assert report[f"mean_{name}"] == pytest.approx(means, rel=1e-15)
    results = [
        {
            name: value
            for name, value in result.items()
            if name in {"test_id", "archetype", "scores", "details", "terms", "label"}
        }
        for result in results
    ]
    worst = sorted(results, key=lambda result: (score(result, "composite"), result["test_id"]))[:5]
    lost = {
        kind: Counter(term for result in results for term in result["details"][criterion][name])
        for kind, criterion, name in (("cr", "CR", "missing"), ("ah", "AH", "violations"), ("ac", "AC", "missing"))
    }
    assert report["failure_analysis"] == {
        "worst_performers": worst,
        "common_CR_misses": most_common(lost["cr"], "signal", "miss_count"),
        "common_AH_violations": most_common(lost["ah"], "term", "count"),
        "common_AC_misses": most_common(lost["ac"], "phrase", "miss_count"),
    }
    assert (report["missing_outputs"], report["empty_outputs"], report["total_cases"]) == (missing, 0, 50)


def test_a_changed_digit_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    scored("outputs_loop1_report.json", [], "I25_batch_*", 1)
    text = Path("report.json").read_text(encoding="utf-8")
    assert "0.6666666666666666" in text
    Path("report.json").write_text(text.replace("0.6666666666666666", "0.6666666666666667", 1), encoding="utf-8")
    capsys.readouterr()
    where = ["--outputs", str(REAL / "outputs_loop1_report.json"), "--test-dir", str(REAL / "testcases")]
    assert main(["verify", "report.json", *where]) == 1
    assert "0.6666666666666667 in the report, 0.6666666666666666 recomputed" in capsys.readouterr().out


# --- every file that factory-cli ever wrote ---------------------------------------------------------------------------

FILES = sorted(path.relative_to(REAL).as_posix() for path in REAL.rglob("*.json")) if REAL.is_dir() else []


@pytest.mark.parametrize("file", FILES)
def test_every_file_is_scored_or_refused_in_one_sentence(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--outputs", str(REAL / file), "--test-dir", str(REAL / "testcases"), "--on-duplicate", "last"]

    code = main(["score", "-c", "I25", "-b", "*", *where])

    told = capsys.readouterr().err
    if file.startswith("outputs_"):
        assert (code, "safe: error" in told) == (1, False)
    else:
        why = "holds test cases, not outputs" if file.startswith("testcases/") else "the file is not a JSON object"
        assert (code, told) == (3, f"safe: error: {REAL / file}: {why}\n")


def test_outputs_and_plans_beside_the_batches_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = tmp_path / "cases"
    shutil.copytree(REAL / "testcases", cases)
    for number, name in enumerate(sorted(REAL.glob("outputs_*.json"))):
        shutil.copy(name, cases / f"0_run_{number}.json")
    (cases / "generation_plan.json").write_text('{"batches": [{"batch_index": 1}]}', encoding="utf-8")
    score = ["score", "-c", "I25", "-b", "*", "--outputs", str(REAL / "outputs_loop1_report.json"), "-f", "json"]

    main([*score, "--test-dir", str(cases)])
    beside = capsys.readouterr()
    main([*score, "--test-dir", str(REAL / "testcases")])

    assert json.loads(beside.out)["results"] == json.loads(capsys.readouterr().out)["results"]
    assert (
        "safe: 4 files are left out: they have no test_cases, so they are not batch files: 0_run_0.json" in beside.err
    )
