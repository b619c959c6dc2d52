"""Lenient recall by system, beside what labels give: of the labelled misses of models' notes, how many are said.

python -m bench.lenient_by_system

A miss counts as recalled if its label, or SAFE's answer, is `said`; what was found is left out.
The interval is that of the labels' share, by encounter: the misses of one note are no independent observations.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.yardstick.cases import ENGINES, Case, judged
from bench.yardstick.labelled import LABELS, answers
from safe_core.intervals import clustered_wilson


class Recalled(NamedTuple):
    """A labelled miss: its encounter and system, and who says that the output says it."""

    encounter: str
    system: str
    by_label: bool
    by_safe: bool


def misses() -> Iterator[Recalled]:
    """Ask about each labelled miss of both sets of encounters."""
    for file in ("encounters.json", "apart/encounters.json"):
        cases: list[Case] = [*answers(LABELS / file)]
        for each in judged(ENGINES["diagnosis"], cases):
            _, _, encounter, system = each.case.name.split("/")
            yield Recalled(encounter, system, "said" in each.case.output_says, each.said.output_says == "said")


def interval(of: Sequence[Recalled]) -> tuple[float, float]:
    """Give the 95 % interval of the labels' share."""
    by_encounter: defaultdict[str, list[bool]] = defaultdict(list)
    for each in of:
        by_encounter[each.encounter].append(each.by_label)
    return clustered_wilson([(sum(said), len(said)) for said in by_encounter.values()])


def main() -> None:
    by_system: defaultdict[str, list[Recalled]] = defaultdict(list)
    for each in misses():
        by_system[each.system].append(each)
    for system, of in sorted(by_system.items()):
        low, high = interval(of)
        share = sum(each.by_safe for each in of) / len(of)
        labelled = sum(each.by_label for each in of) / len(of)
        inside = "inside" if low <= share <= high else "OUTSIDE"
        said = f"labels {labelled:.2f} ({low:.2f} to {high:.2f}); SAFE {share:.2f}, {inside}"
        print(f"{system:12} {len(of):3} misses; {said}")


if __name__ == "__main__":
    main()
