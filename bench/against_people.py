"""How well scores order automatic summaries as people do: MTS-Dialog's study of correlation with human scores.

python -m bench.against_people mts.json     a list of rows: dialogue, reference, summary, FactualRecall

The required phrases of a row are the clauses of its reference, cut by a rule, not by a reader. Two summaries of
one dialogue that people scored apart are in the people's order if the better one has the higher number; equal numbers
count half. Intervals are those of 1,000 samples of dialogues (bootstrap). The last row never reads the summary: what it
reaches over all rows (Spearman) says how much of that figure is the reference's doing.
"""

import argparse
import json
import random
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

from safe_core import DEFAULT_POLICY, Expectations, Output, prepare, score
from safe_core.lenient import beside_scores

SEED: Final = 20261126
SAMPLES: Final = 1_000
_CUT: Final = re.compile(r"[.;!?,](?=\s|$)|\b(?:and|or|but|which|who|while|with|that)\b", re.IGNORECASE)
_WORD: Final = re.compile(r"\w+")


class Row(NamedTuple):
    """A summary: its dialogue, what people gave it, and the numbers that are compared with that, by name."""

    dialogue: str
    people: float
    numbers: Mapping[str, float]


def clauses(reference: str) -> list[str]:
    """Cut a reference into terms."""
    return [each.strip() for each in _CUT.split(reference) if _WORD.search(each)]


def rouge_1(reference: str, summary: str) -> float:
    """Give the share of the reference's words that the summary has, each as often as it has it."""
    wanted, there = (Counter(_WORD.findall(text.lower())) for text in (reference, summary))
    return (wanted & there).total() / wanted.total() if wanted else 1.0


def judged(row: Mapping[str, Any]) -> Row:
    """Score a summary in every way."""
    terms, output = clauses(row["reference"]), Output((), row["summary"], ())
    case = score(prepare(Expectations((), (), tuple(terms))), output, DEFAULT_POLICY.default)
    lenient = beside_scores(output, None, case.details).lenient.AC
    numbers = {
        "coverage": lenient.coverage / 1000,
        "lenient AC": lenient.lenient,
        "strict AC": case.scores.AC,
        "ROUGE-1 recall": rouge_1(row["reference"], row["summary"]),
        "length of the reference only": -float(len(terms)),
    }
    return Row(row["dialogue"], float(row["FactualRecall"]), numbers)


def pairs(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Give the pairs of one dialogue that people scored apart, the better one first."""
    by_dialogue: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_dialogue[row.dialogue].append(row)
    for group in by_dialogue.values():
        for one, other in combinations(group, 2):
            if one.people != other.people:
                yield (one, other) if one.people > other.people else (other, one)


def in_order(found: Sequence[tuple[Row, Row]], name: str) -> float:
    """Give the share of pairs that a number orders as people do."""
    values = ((better.numbers[name], worse.numbers[name]) for better, worse in found)
    return statistics.fmean(1.0 if one > other else 0.5 if one == other else 0.0 for one, other in values)


def interval(rows: Sequence[Row], measure: Callable[[Sequence[Row]], float]) -> tuple[float, float]:
    """Give the 2.5 % and 97.5 % points of a measure over samples of dialogues."""
    rng = random.Random(SEED)
    by_dialogue: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_dialogue[row.dialogue].append(row)
    names = list(by_dialogue)
    found = []
    for _ in range(SAMPLES):
        drawn = enumerate(rng.choices(names, k=len(names)))
        found.append(measure([row._replace(dialogue=str(at)) for at, name in drawn for row in by_dialogue[name]]))
    cuts = statistics.quantiles(found, n=40, method="inclusive")
    return cuts[0], cuts[-1]


def spearman(rows: Sequence[Row], name: str) -> float:
    """Give the rank correlation with people over all rows."""
    people, numbers = [row.people for row in rows], [row.numbers[name] for row in rows]
    return statistics.correlation(_ranks(people), _ranks(numbers))


def _ranks(values: Sequence[float]) -> list[float]:
    below = Counter(values)
    ranks, passed = {}, 0
    for value in sorted(below):
        ranks[value] = passed + (below[value] + 1) / 2
        passed += below[value]
    return [ranks[value] for value in values]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    rows = [judged(row) for row in json.loads(parser.parse_args().rows.read_text(encoding="utf-8"))]
    found = list(pairs(rows))
    dialogues = len({row.dialogue for row in rows})
    print(f"{len(rows)} summaries of {dialogues} dialogues; {len(found)} pairs that people scored apart")
    for name in rows[0].numbers:
        low, high = interval(rows, lambda some, name=name: in_order(list(pairs(some)), name))  # type: ignore[misc]
        print(
            f"{name:30} {in_order(found, name):.3f} in the people's order ({low:.2f} to {high:.2f}); "
            f"Spearman {spearman(rows, name):.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
