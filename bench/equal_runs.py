"""How often `safe compare` names a change between two runs of one prompt, between which there is none.

python -m bench.equal_runs                          runs that are made up: at the floor, in the middle, near the top
python -m bench.equal_runs one.json two.json …      runs of your own: JSON reports of the same cases

An equal pair is drawn from a pool of runs: each case of either side is that of any run. So the two sides differ as much
as runs do, and neither is better. The cases of one run do not depend on each other; the terms of one case do.
"""

import argparse
import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from consumer.offline.compare import compare
from consumer.offline.pages.comparison_content import NOTHING_CHANGED, headline
from consumer.offline.stored_report import read_report
from safe_core import LABELS, Expectations, Output
from tests.support.scored_runs import Sample, scored_run

SEED: Final = 20261126
PAIRS: Final = 2_000
OTHER_WORDS: Final = 2.5
"""By how much, in log odds, it is easier to say a term than to say it word for word."""


class Shape(NamedTuple):
    """Runs that are made up: how many cases, terms and runs, and how easily a term is found, in log odds."""

    name: str
    ease: float
    cases: int = 20
    terms: int = 8
    runs: int = 6


SHAPES: Final = (
    Shape("at the floor", -2.5),
    Shape("in the middle", 0.0),
    Shape("near the top", 2.5),
    Shape("200 cases at the floor", -2.5, cases=200),
)


def made_up(shape: Shape, rng: random.Random) -> list[dict[str, Any]]:
    """Give runs of one prompt: a case may be hard, and an output may leave a lot out; so terms are found together."""
    hardness = [[rng.gauss(0, 1) + rng.gauss(0, 1) for _ in range(shape.terms)] for _ in range(shape.cases)]
    return [_run(shape, hardness, rng) for _ in range(shape.runs)]


def _run(shape: Shape, hardness: Sequence[Sequence[float]], rng: random.Random) -> dict[str, Any]:
    outcomes = [_outcome(shape, hard, rng) for hard in hardness]
    samples = [_sample(number, outcome) for number, outcome in enumerate(outcomes)]
    report: dict[str, Any] = json.loads(json.dumps(scored_run(samples).report))
    for result, outcome in zip(report["results"], outcomes, strict=True):
        shares = [sum(each < NOT_SAID for each in half) / len(half) for half in _halves(outcome)]
        result["lenient"] = dict(zip(("CR", "AC"), shares, strict=True))
    return report


FOUND, SAID, NOT_SAID = range(3)


def _outcome(shape: Shape, hard: Sequence[float], rng: random.Random) -> list[int]:
    """Say of each term of an output whether it is found, only said, or neither; what is found is easier to say."""
    told = rng.gauss(0, 1)  # how much this output tells at all
    rolled = [(shape.ease + told - each, rng.random()) for each in hard]
    return [(roll > _odds(ease)) + (roll > _odds(ease + OTHER_WORDS)) for ease, roll in rolled]


def _odds(log: float) -> float:
    return 1 / (1 + math.exp(-log))


def _halves(each: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    half = len(each) // 2
    return each[:half], each[half:]


def _sample(number: int, outcome: Sequence[int]) -> Sample:
    terms = [f"finding-{each:02d}." for each in range(len(outcome))]
    signals, phrases = map(tuple, _halves(terms))
    found = " ".join(term for term, each in zip(terms, outcome, strict=True) if each == FOUND)
    return Sample(f"T-{number}", Expectations(signals, (), phrases), Output((), found or "nothing", ()))


def drawn(pool: Sequence[dict[str, Any]], rng: random.Random) -> dict[str, Any]:
    """Draw a run from a pool: each case from any of its runs."""
    results = [rng.choice(each) for each in zip(*(report["results"] for report in pool), strict=True)]
    labels = Counter(result["label"] for result in results)
    summary = {"total_cases": len(results), "overall_pass_rate": labels["Pass"] / len(results)}
    return {**pool[0], "results": results, "summary": summary | {label.lower(): labels[label] for label in LABELS}}


def named(pool: Sequence[dict[str, Any]], pairs: int, rng: random.Random) -> Counter[str]:
    """Count the headlines of equal pairs."""
    return Counter(headline(compare(drawn(pool, rng), drawn(pool, rng))) for _ in range(pairs))


def rate(headlines: Counter[str]) -> float:
    """Give the share of headlines that name a change."""
    return 1 - headlines[NOTHING_CHANGED] / headlines.total()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="*", type=Path)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    asked = parser.parse_args()
    rng = random.Random(SEED)
    pools = (
        {"these reports": [read_report(path) for path in asked.reports]}
        if asked.reports
        else {shape.name: made_up(shape, rng) for shape in SHAPES}
    )
    for name, pool in pools.items():
        headlines = named(pool, asked.pairs, rng)
        print(f"{name}: a change is named for {rate(headlines):.1%} of {asked.pairs:,} equal pairs", flush=True)


if __name__ == "__main__":
    main()
