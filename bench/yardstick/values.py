"""Values that nobody said, as labelled by hand, and what is told of them: in models' notes, and in single sentences."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from bench.yardstick.bounds import Bound
from bench.yardstick.labelled import LABELS, encounters, load, outputs
from safe_core import Output
from safe_core.unsupported import UnsupportedKind, unsupported_values


class Stretch(NamedTuple):
    """A value of a note, as a planted hit is shown; `kind` is that of one that is labelled as invented, else empty."""

    name: str
    start: int
    end: int
    term: str
    kind: str = ""

    @property
    def text(self) -> str:
        """Where it is."""
        return f"{self.name}, characters {self.start} to {self.end}"

    def meets(self, other: "Stretch") -> bool:
        """Tell whether two stretches overlap."""
        return self.name == other.name and self.start < other.end and other.start < self.end


def bounds() -> Iterator[Bound]:
    """Compare what is told with what is labelled; all that is told and not labelled as invented is a false alarm."""
    invented: list[Stretch] = []
    told: list[Stretch] = []
    for row in load(LABELS / "values.json"):
        name, note = f"{row['id']}/{row['system']}", outputs()[row["system"]][row["id"]]
        labelled = [each for each in row["values"] if each["label"] == "nowhere"]
        invented += [
            Stretch(name, each["start"], each["start"] + len(each["text"]), each["text"], "nowhere")
            for each in labelled
        ]
        found = unsupported_values(Output(summary=note), encounters()[row["id"]]["dialogue"])
        told += [
            Stretch(name, each.passage.start, each.passage.end, each.text) for each in found if each.kind == "nowhere"
        ]
    false = [each for each in told if not any(map(each.meets, invented))]
    missed = [each for each in invented if not any(map(each.meets, told))]
    yield Bound("values: told ones are invented", told, false, 0.92)
    yield Bound("values: invented ones are told", invented, missed, 0.85)


class SentencePair(NamedTuple):
    """What an output says, what its narrative says, and the values that are to be told of one kind."""

    sort: str
    kind: UnsupportedKind
    expected: list[str]
    narrative: str
    output: str

    @property
    def told(self) -> list[str]:
        found = unsupported_values(Output(summary=self.output), self.narrative)
        return sorted(each.text.lower() for each in found if each.kind == self.kind)

    @property
    def term(self) -> str:
        return f"{self.output!r}: {', '.join(self.told) or 'nothing'} told"

    @property
    def text(self) -> str:
        """What is compared, as a wrong case is shown."""
        return f"{self.narrative!r} has all but {', '.join(self.expected) or 'nothing'}"


def _pairs(name: str, kind: UnsupportedKind) -> Iterator[SentencePair]:
    for line in (LABELS / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            *sort, told, narrative, output = line.split("\t")
            expected = sorted(told.lower().split("; ")) if told != "-" else []
            yield SentencePair("".join(sort) or "another", kind, expected, narrative, output)


MADE: Final = [*_pairs("values_made.tsv", "nowhere")]
OF_ANOTHER: Final = [*_pairs("values_of_another.tsv", "of_something_else")]


def made_bounds() -> Iterator[Bound]:
    """Compare single sentences: what their narratives have in other words, what is invented, what is of another."""
    for name, pairs in (("values-made", MADE), ("values-of-another", OF_ANOTHER)):
        for what, is_told in (("nothing is told of what is there", False), ("what is not there is told", True)):
            of = [pair for pair in pairs if bool(pair.expected) == is_told]
            yield Bound(f"{name}: {what}", of, [pair for pair in of if pair.told != pair.expected], 0.95)
