"""Reports of many runs over the same cases, as `safe score` writes them, and the outputs that they were made from."""

import hashlib
import json
import random
from pathlib import Path
from typing import Any

TERMS = {"CR": 5, "AC": 3}
FORBIDDEN = "guideline"
LABELS = ("Pass", "Review", "Fail")
NASTY = '</script><b>bold</b>\u2028{{ 7 * 7 }}{% endraw %}<!--"&amp;\u202e'
Json = Any


def write_runs(folder: Path, *, runs: int, cases: int, seed: int = 20260301, nasty: str = "") -> list[Path]:
    """Write a report for each run, and beside it, in outputs/, what it was made from."""
    dice = random.Random(seed)
    (folder / "outputs").mkdir(parents=True)
    skill = [0.35 + 0.4 * number / runs for number in range(runs)]
    return [_write(folder, number, cases, skill[number], dice, nasty) for number in range(runs)]


def _write(folder: Path, number: int, cases: int, skill: float, dice: random.Random, nasty: str) -> Path:
    name = f"run_{number + 1:02}"
    results = [_result(case, skill, dice, nasty) for case in range(cases)]
    entries = [_entry(each, number, nasty) for each in results]
    outputs = json.dumps({"concern_id": "K07", "raw_results": entries}).encode()
    (folder / "outputs" / f"{name}.json").write_bytes(outputs)
    counts = {label.lower(): sum(each["label"] == label for each in results) for label in LABELS}
    document = {
        "report_type": "SAFE_v0",
        "generated_at": f"2026-03-01T00:{number:02}:00Z",
        "concern_id": "K07",
        "summary": {"total_cases": cases, **counts, "overall_pass_rate": counts["pass"] / cases},
        "missing_outputs": 0,
        "missing_test_ids": [],
        "scorer": {"version": "1", "fingerprint": "sha256:1", "rule": "substring/1"},
        "inputs": [{"name": f"{name}.json", "sha256": hashlib.sha256(outputs).hexdigest()}],
        "results": results,
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _result(case: int, skill: float, dice: random.Random, nasty: str) -> Json:
    found = {criterion: [dice.random() < skill for _ in range(count)] for criterion, count in TERMS.items()}
    details: Json = {
        criterion: {
            "found": [_term(criterion, case, at, nasty) for at, each in enumerate(marks) if each],
            "missing": [_term(criterion, case, at, nasty) for at, each in enumerate(marks) if not each],
        }
        for criterion, marks in found.items()
    }
    details["AH"] = {"violations": [FORBIDDEN] if dice.random() < 0.02 else []}
    scores = {criterion: sum(marks) / len(marks) for criterion, marks in found.items()}
    scores["AH"] = float(not details["AH"]["violations"])
    scores["composite"] = sum(scores.values()) / 3
    label = "Fail" if min(scores.values()) < 0.5 else "Review" if min(scores.values()) < 0.8 else "Pass"
    return {
        "test_id": f"K07-{case:04}{nasty}",
        "batch_id": f"K07_batch_{case // 50 + 1}",
        "label": label,
        "scores": scores,
        "details": details,
        "terms": {"CR": TERMS["CR"], "AH": 1, "AC": TERMS["AC"]},
        "input_matches": True,
        "generation": "answered",
        "doubtful": [],
        "near_violations": [],
        "unsupported": [],
    }


def _term(criterion: str, case: int, at: int, nasty: str) -> str:
    return f"{criterion} {case}.{at}: blood pressure of {100 + case % 90}/60 mmHg{nasty}"


def _entry(result: Json, number: int, nasty: str) -> Json:
    output = {
        "signals": [*result["details"]["CR"]["found"], "Kanarienvogel was seen"],
        "summary": f"The summary of run {number + 1} for {result['test_id']}. {nasty}",
        "followup_questions": [],
    }
    return {"test_id": result["test_id"], "batch_id": result["batch_id"], "engine_output": output}
