"""How long it takes to explain misses, and how often the kind of miss is the one that a person chose.

python -m bench.diagnosis                                             the time, on generated cases
python -m bench.diagnosis --real FOLDER                               the time, on the real reports in FOLDER
python -m bench.diagnosis --real FOLDER --labels real_misses.json     also the agreement
python -m bench.diagnosis --real FOLDER --outputs run.json …          another run on the test cases in FOLDER
"""

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from safe_core import DEFAULT_POLICY, Expectations, Output, prepare, score
from safe_core.diagnosis import KINDS, Diagnosis, Miss, diagnose, doubtful_hits
from safe_core.scoring import Details
from tests.support.cases import make_batches, make_output

ALARMS = ("value", "polarity")
REPORTS = {"outputs_loop1_report.json": None, "outputs_refinery_v9.json": 12}
"""The reports with labelled misses, and how many of their first entries belong to the test cases in the same folder."""


class Case(NamedTuple):
    """One output and its expectations."""

    outputs: str
    test_id: str
    expectations: Expectations
    output: Output
    narrative: str | None


class Judged(NamedTuple):
    """A labelled miss: the kinds that a person accepts, best first, and the kind that SAFE reports."""

    allowed: tuple[str, ...]
    said: str
    miss: Miss

    @property
    def settled(self) -> str:
        """Give the kind that counts as true: the reported one if a person accepts it, otherwise the best."""
        return self.said if self.said in self.allowed else self.allowed[0]


def real_cases(folder: Path, outputs: Path | None = None) -> list[Case]:
    """Read the real reports, or the outputs of another run, with the test cases."""
    reports = {outputs: None} if outputs else {folder / name: most for name, most in REPORTS.items()}
    batches = [json.loads(path.read_text("utf-8")) for path in sorted((folder / "testcases").glob("*_batch_*.json"))]
    tests = {case["test_id"]: case for batch in batches for case in batch["test_cases"]}
    return [
        Case(
            report.name,
            entry["test_id"],
            Expectations.parse(tests[entry["test_id"]]["expectations"]),
            Output.parse(entry["engine_output"]),
            tests[entry["test_id"]].get("patient_payload"),
        )
        for report, most in reports.items()
        for entry in json.loads(report.read_text("utf-8"))["raw_results"][:most]
    ]


def generated_cases() -> list[Case]:
    """Generate cases for when there are no real ones; each answer repeats the terms with words in between."""
    rng = random.Random(20260302)
    return [
        Case(
            "generated",
            case.test_id,
            Expectations.parse(case.entry["expectations"]),
            Output.parse(rewritten(make_output(rng, case, "harm"))),
            case.entry["patient_payload"],
        )
        for batch in make_batches(20260302)
        for case in batch.cases
    ]


def rewritten(answer: dict[str, Any]) -> dict[str, Any]:
    """Reword the signals, so that most are missed, and put the whole story in the summary."""
    signals = [signal.replace(" to ", " at ").replace(" of ", " at ") for signal in answer["signals"]]
    return answer | {
        "signals": signals,
        "summary": f"{answer['raw_input'].replace(' of ', ' at ')} {answer['summary']}",
    }


def milliseconds_a_case(cases: Sequence[Case], rounds: int = 20) -> float:
    """Give the mean time of explaining the misses of one case."""
    jobs = [partial(diagnose, case.expectations, case.output, case.narrative) for case in cases]
    return mean_milliseconds(jobs, rounds)


def doubtful_milliseconds_a_case(cases: Sequence[Case], rounds: int = 20) -> float:
    """Give the mean time of finding the doubtful hits of one case that is scored."""
    jobs = [partial(doubtful_hits, case.output, case.narrative, details_of(case)) for case in cases]
    return mean_milliseconds(jobs, rounds)


def details_of(case: Case) -> Details:
    return score(prepare(case.expectations), case.output, DEFAULT_POLICY.default).details


def mean_milliseconds(jobs: Sequence[Callable[[], object]], rounds: int) -> float:
    """Give the mean time of one job over all rounds except the first, which fills caches."""
    started = time.perf_counter()
    for number in range(rounds + 1):
        if number == 1:
            started = time.perf_counter()
        for job in jobs:
            job()
    return (time.perf_counter() - started) * 1000 / (rounds * len(jobs))


def judged(cases: Sequence[Case], labels: Sequence[dict[str, Any]]) -> list[Judged]:
    """Diagnose the labelled cases and pair each label with the reported kind."""
    diagnoses: dict[tuple[str, str], Diagnosis] = {
        (case.outputs, case.test_id): diagnose(case.expectations, case.output, case.narrative) for case in cases
    }
    return [_judged(diagnoses[label["outputs"], label["test_id"]], label) for label in labels]


def _judged(diagnosis: Diagnosis, label: dict[str, Any]) -> Judged:
    misses = [miss for miss in diagnosis.misses if miss.criterion == label["criterion"]]
    miss = misses[label["place"]]
    return Judged(tuple(label["kinds"]), miss.kind, miss)


def f1_of_kinds(pairs: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Give F1 for each kind that occurs among the true ones; each pair is (true, reported)."""
    hits = Counter(true for true, said in pairs if true == said)
    true_count, said_count = Counter(true for true, _ in pairs), Counter(said for _, said in pairs)
    return {
        kind: 2 * hits[kind] / (true_count[kind] + said_count[kind])
        for kind in KINDS
        if true_count[kind] + said_count[kind]
    }


def mean(scores: dict[str, float]) -> float:
    return sum(scores.values()) / len(scores)


def print_agreement(found: Sequence[Judged]) -> None:
    """Print F1 for each kind, F1 of always reporting the most common kind, and the confusion matrix."""
    pairs = [(each.settled, each.said) for each in found]
    commonest = Counter(each.allowed[0] for each in found).most_common(1)[0][0]
    constant = [(commonest if commonest in each.allowed else each.allowed[0], commonest) for each in found]
    scores, baseline = f1_of_kinds(pairs), f1_of_kinds(constant)
    print(f"\n{len(found)} misses   F1   always {commonest!r}")
    for kind in KINDS:
        if kind in scores or kind in baseline:
            print(f"  {kind:12} {scores.get(kind, 0.0):6.3f} {baseline.get(kind, 0.0):8.3f}")
    print(f"  {'mean':12} {mean(scores):6.3f} {sum(baseline.values()) / len(scores):8.3f}")
    right = sum(true == said for true, said in pairs)
    strict = mean(f1_of_kinds([(each.allowed[0], each.said) for each in found]))
    print(f"  allowed {right} of {len(pairs)}; against the best label alone, mean F1 {strict:.3f}")
    alarms = [each for each in found if each.said in ALARMS and each.said not in each.allowed]
    print(f"  false alarms (value, polarity): {len(alarms)}")
    print_confusion(pairs)


def print_confusion(pairs: Sequence[tuple[str, str]]) -> None:
    """Print a row for each true kind and a column for each reported kind."""
    counts = Counter(pairs)
    shown = [kind for kind in KINDS if any(kind in pair for pair in pairs)]
    print("\ntrue, down; said, across\n" + " " * 12 + "".join(f"{kind:>13}" for kind in shown))
    for true in shown:
        print(f"{true:12}" + "".join(f"{counts[true, said] or '·':>13}" for said in shown))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=Path)
    parser.add_argument("--outputs", type=Path)
    parser.add_argument("--labels", type=Path)
    asked = parser.parse_args()
    cases = real_cases(asked.real, asked.outputs) if asked.real else generated_cases()
    print(f"{milliseconds_a_case(cases):.3f} ms a case, {len(cases)} {'real' if asked.real else 'generated'} cases")
    print(f"{1000 * doubtful_milliseconds_a_case(cases):.0f} µs a case for the doubtful ones of the found terms")
    if asked.labels:
        print_agreement(judged(cases, json.loads(asked.labels.read_text("utf-8"))))


if __name__ == "__main__":
    main()
