"""The sets by name: each gives its lines of the table."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.yardstick import bounds, changed, families, labelled, negations, numbers, values
from bench.yardstick.bounds import Bound, Measure
from bench.yardstick.cases import Case, Engine, judged
from tests.core.planted_doubtful import PlantedHit
from tests.support.real_cases import REAL


class NotHere(Exception):
    """The texts or labels that a set needs are not at hand."""


def _measure(name: str, engine: Engine, cases: Iterable[Case], measures: Sequence[Measure]) -> list[Bound]:
    each = judged(engine, list(cases))
    return [one.measure(name, each) for one in measures]


def _made_up(
    name: str, cases: Callable[[], Iterable[Case]], measures: Sequence[Measure]
) -> Callable[[Engine], list[Bound]]:
    return lambda engine: _measure(name, engine, cases(), measures)


def _real(engine: Engine) -> list[Bound]:
    if not REAL.is_dir():
        raise NotHere(f"the real cases are not there ({REAL})")
    return _measure("real", engine, labelled.real(), bounds.REAL)


def _untouched() -> Iterator[Case]:
    """Set M of the blind ones, the only one that nothing was tuned on."""
    return (case for case in labelled.old("blind") if case.name.startswith("blind/M"))


def _elsewhere() -> Iterator[Case]:
    """The old misses that stand in a field that the criterion does not read, and in none that it reads."""
    cases = (case for file in labelled.OLD for case in labelled.old(file))
    return (case for case in cases if case.output_says == {"elsewhere"})


def _negex(engine: Engine) -> list[Bound]:
    """Denials that the doubtful hits see; they do not depend on the engine."""
    del engine
    if not (labelled.EXTERNAL / negations.CORPUS).is_file():
        raise NotHere(f"{negations.CORPUS} is not there ({labelled.EXTERNAL})")
    return [*_denials("negex", list(negations.corpus(labelled.EXTERNAL)), 0.96, 0.997)]


def _planted(engine: Engine) -> list[Bound]:
    del engine
    return [*_denials("planted", negations.planted(), None, None)]


def _denials(name: str, hits: Sequence[PlantedHit], recall: float | None, quiet: float | None) -> Iterator[Bound]:
    for what, kind, least in (("denials found", "negated", recall), ("no false alarm", None, quiet)):
        of = [hit for hit in hits if hit.kind == kind]
        yield Bound(f"{name}: {what}", of, [hit for hit in of if negations.is_wrong(hit)], least)


def _encounters(name: str, folder: str) -> Callable[[Engine], list[Bound]]:
    return lambda engine: _measure(
        name, engine, labelled.answers(_label_file(f"{folder}encounters.json")), bounds.ANSWERS
    )


def _narratives(name: str, folder: str) -> Callable[[Engine], list[Bound]]:
    """The narrative's axis: the encounters' own, and terms that another one's is silent on or that it contradicts."""

    def measured(engine: Engine) -> list[Bound]:
        cases = [
            *labelled.answers(_label_file(f"{folder}encounters.json")),
            *labelled.narratives(_label_file(f"{folder}foreign.json"), "silent"),
            *labelled.narratives(_label_file(f"{folder}contradicted.json"), "contradicts"),
        ]
        return _measure(name, engine, cases, bounds.STORIES)

    return measured


def _changed(engine: Engine) -> list[Bound]:
    if not labelled.EXTERNAL.is_dir():
        raise NotHere(f"the encounters are not there ({labelled.EXTERNAL})")
    return [
        *_measure("changed", engine, changed.alone(), bounds.ALONE),
        *_measure("changed", engine, changed.whole(), bounds.WHOLE),
        *_measure("changed", engine, changed.deleted(), bounds.DELETED),
    ]


def _label_file(name: str) -> Path:
    if not labelled.EXTERNAL.is_dir():
        raise NotHere(f"the encounters are not there ({labelled.EXTERNAL})")
    if not (path := labelled.LABELS / name).is_file():
        raise NotHere(f"nobody has written {path.relative_to(labelled.ROOT)} yet")
    return path


def _values(engine: Engine) -> list[Bound]:
    """Values that nobody said; they do not depend on the engine."""
    del engine
    _label_file("values.json")
    return [*values.bounds()]


def _values_made(engine: Engine) -> list[Bound]:
    del engine
    return [*values.made_bounds()]


SETS: Final[dict[str, Callable[[Engine], list[Bound]]]] = {
    "encounters": _encounters("encounters", ""),
    "narratives": _narratives("narratives", ""),
    "apart": _encounters("apart", "apart/"),
    "apart-narratives": _narratives("apart-narratives", "apart/"),
    "real": _real,
    "untouched": _made_up("untouched", _untouched, bounds.UNTOUCHED),
    "made": _made_up("made", lambda: labelled.old("made"), bounds.OLD),
    "developed": _made_up("developed", lambda: labelled.old("developed"), bounds.OLD),
    "blind": _made_up("blind", lambda: labelled.old("blind"), bounds.OLD),
    "pairs": _made_up("pairs", labelled.pairs, bounds.OLD),
    "elsewhere": _made_up("elsewhere", _elsewhere, bounds.ELSEWHERE),
    "contradictions": _made_up("contradictions", families.contradictions, bounds.CONTRADICTIONS),
    "mirrors": _made_up("mirrors", families.mirrors, bounds.MIRRORS),
    "twins": _made_up("twins", numbers.twins, bounds.TWINS),
    "differences": _made_up("differences", numbers.differences, bounds.DIFFERENCES),
    "changed": _changed,
    "values": _values,
    "values-made": _values_made,
    "negex": _negex,
    "planted": _planted,
}
