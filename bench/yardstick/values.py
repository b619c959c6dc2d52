"""Values of models' notes of the encounters that nobody said, as labelled by hand, and what is told of them."""

from collections.abc import Iterator
from typing import NamedTuple

from bench.yardstick.bounds import Bound
from bench.yardstick.labelled import LABELS, encounters, load, outputs
from safe_core import Output
from safe_core.unsupported import unsupported_values


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
