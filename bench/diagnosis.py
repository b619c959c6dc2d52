"""How long it takes to explain misses.

python -m bench.diagnosis                                 on generated cases, and on one with a long narrative
python -m bench.diagnosis --real FOLDER                   on the real reports in FOLDER
python -m bench.diagnosis --real FOLDER --outputs run.json …    another run on the test cases in FOLDER

How often it is right, `python -m bench.yardstick` measures.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from safe_core import DEFAULT_POLICY, Expectations, Output, prepare, score
from safe_core.diagnosis import diagnose, doubtful_hits
from safe_core.scoring import Details
from tests.support.cases import make_batches, make_output

REPORTS = {"outputs_loop1_report.json": None, "outputs_refinery_v9.json": 12}
"""The reports with labelled misses, and how many of their first entries belong to the test cases in the same folder."""


class Case(NamedTuple):
    """One output and its expectations."""

    outputs: str
    test_id: str
    expectations: Expectations
    output: Output
    narrative: str | None


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


def generated_cases(seed: int = 20260302) -> list[Case]:
    """Generate cases for when there are no real ones; each answer repeats the terms with words in between."""
    rng = random.Random(seed)
    return [
        Case(
            "generated",
            case.test_id,
            Expectations.parse(case.entry["expectations"]),
            Output.parse(rewritten(make_output(rng, case, "harm"))),
            case.entry["patient_payload"],
        )
        for batch in make_batches(seed)
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
    """Give the mean processor time of one job over all rounds except the first, which fills caches."""
    started = time.process_time()
    for number in range(rounds + 1):
        if number == 1:
            started = time.process_time()
        for job in jobs:
            job()
    return (time.process_time() - started) * 1000 / (rounds * len(jobs))


def long_case(words: int = 8_000, terms: int = 20) -> Case:
    """Make a case with a narrative of this many words, out of the stories of others, and terms that are all missed."""
    stories = [case for case in generated_cases() if case.narrative]
    told = " ".join(case.narrative or "" for case in stories).split()
    narrative = " ".join((told * (1 + words // len(told)))[:words])
    wanted = [f"{term} twice" for case in stories for term in case.expectations.must_find_signals][:terms]
    return Case("long", "long", Expectations(tuple(wanted)), stories[0].output, narrative)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=Path)
    parser.add_argument("--outputs", type=Path)
    asked = parser.parse_args()
    cases = real_cases(asked.real, asked.outputs) if asked.real else generated_cases()
    print(f"{milliseconds_a_case(cases):.3f} ms a case, {len(cases)} {'real' if asked.real else 'generated'} cases")
    print(f"{1000 * doubtful_milliseconds_a_case(cases):.0f} µs a case for the doubtful ones of the found terms")
    if not asked.real:
        fresh = [case for seed in range(20) for case in generated_cases(seed)]
        print(f"{milliseconds_a_case(fresh, 1):.3f} ms a case, {len(fresh)} cases, whose texts are not remembered")
        print(f"{milliseconds_a_case([long_case()], 3):.0f} ms for 20 terms and a narrative of 8,000 words")


if __name__ == "__main__":
    main()
