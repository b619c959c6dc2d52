"""Which lines of the lexicon and which rows of the tables change hardly any labelled verdict when they are taken away.

Each is taken away in a process of its own, forked from this one, which loads the diagnosis again without it: so nothing
that is remembered from before counts, and the diagnosis needs no way to be loaded in part. A line is tried only on the
cases that have one of its words.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.yardstick import families, labelled, numbers
from bench.yardstick.cases import ENGINES, Case
from tests.support.real_cases import REAL

FEW: Final = 3  # a line that changes fewer verdicts is idle
_DIAGNOSIS: Final = labelled.ROOT / "safe_core" / "diagnosis"
_LOADED_AGAIN: Final = ("safe_core", "bench", "tests")
_WORD = re.compile(r"\w+")
_PREFIX = 4  # letters by which a word of a line is looked for: enough for its other forms

Answers = dict[str, str]


class Removed(NamedTuple):
    """What was taken away, and how many verdicts that changed."""

    name: str
    changed: int


def every_case() -> list[Case]:
    """Give every labelled case whose texts are at hand."""
    old = chain.from_iterable(labelled.old(file) for file in labelled.OLD)
    made = (families.contradictions(), families.mirrors(), numbers.twins(), numbers.differences())
    return [*old, *labelled.pairs(), *chain.from_iterable(made), *_outside()]


def _outside() -> Iterator[Case]:
    """Give the cases whose texts are not part of the repository, and say which are missing."""
    if REAL.is_dir():
        yield from labelled.real()
    file = labelled.LABELS / "encounters.json"
    if labelled.EXTERNAL.is_dir() and file.is_file():
        yield from labelled.answers(file)
    else:
        print(f"NOT TRIED: the encounters ({file}, {labelled.EXTERNAL})", file=sys.stderr)


def answers(engine: str, positions: Sequence[int]) -> Answers:
    """Give what an engine says of the cases at these positions, in one string each."""
    cases, ask = every_case(), ENGINES[engine]
    said = {position: ask(cases[position]) for position in positions}
    return {str(at): f"{one.output_says}/{one.narrative_says}/{one.verdict}" for at, one in said.items()}


def idle(engine: str, beginning: str = "") -> Iterator[Removed]:
    """Take each line and row whose name begins so away in turn, on all cores; give those that change few verdicts."""
    cases = every_case()
    begins = [prefixes(f"{each.term} {each.narrative} {each.output}") for each in cases]
    everywhere = range(len(cases))
    before = answers(engine, everywhere)
    if in_a_fork(engine, everywhere[:FEW], _nothing) != {str(at): before[str(at)] for at in everywhere[:FEW]}:
        raise RuntimeError("what is loaded again answers otherwise although nothing was taken away")
    tried: list[tuple[str, Sequence[int], Callable[[], None]]] = []
    for path, number, line in lines(beginning):
        where = [at for at in everywhere if begins[at] & prefixes(line)]
        tried.append((f"{path.name}:{number + 1} {line}", where, without_line(path, number)))
    for table, row, name in _rows(beginning):
        tried.append((f"{table}: {name}", everywhere, _without_row(table, row)))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (name, _, _), after in zip(tried, pool.map(lambda each: in_a_fork(engine, *each[1:]), tried), strict=True):
            changed = sum(before[at] != said for at, said in after.items())
            if changed < FEW:
                yield Removed(name, changed)


def prefixes(text: str) -> set[str]:
    return {word[:_PREFIX].casefold() for word in _WORD.findall(text)}


def lines(beginning: str) -> Iterator[tuple[Path, int, str]]:
    for path in sorted(_DIAGNOSIS.joinpath("lexicon").glob(f"{beginning or '*.tsv'}*")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            if line.strip() and not line.startswith("#"):
                yield path, number, line


def _rows(beginning: str) -> Iterator[tuple[str, int, str]]:
    """Give the rows of each table: a tuple in the module of tables whose items have a name."""
    if not _DIAGNOSIS.joinpath("tables.py").is_file():
        return
    for name, table in vars(import_module("safe_core.diagnosis.tables")).items():
        if not name.startswith(beginning):
            continue
        if isinstance(table, tuple) and table and all(isinstance(getattr(row, "name", None), str) for row in table):
            yield from ((name, number, row.name) for number, row in enumerate(table))


def without_line(path: Path, number: int) -> Callable[[], None]:
    """Hide a line from all later reads of the file; a comment in its place keeps the line numbers of the others."""

    def take_away() -> None:
        read = Path.read_text

        def read_without(self: Path, *args: Any, **named: Any) -> str:  # noqa: ANN401 – as it is called
            text = read(self, *args, **named)
            if self.name != path.name or self.parent.name != "lexicon":
                return text
            lines = text.splitlines()
            lines[number] = "#"
            return "\n".join(lines)

        Path.read_text = read_without  # type: ignore[method-assign]

    return take_away


def _without_row(table: str, number: int) -> Callable[[], None]:
    """Replace a table by one without the row, in each module that has it."""

    def take_away() -> None:
        whole = getattr(import_module("safe_core.diagnosis.tables"), table)
        less = whole[:number] + whole[number + 1 :]
        for name, module in list(sys.modules.items()):
            if name.startswith("safe_core.diagnosis") and getattr(module, table, None) is whole:
                setattr(module, table, less)

    return take_away


def _nothing() -> None:
    """Take nothing away."""


def in_a_fork(
    engine: str,
    positions: Sequence[int],
    take_away: Callable[[], None],
    module: str = "bench.yardstick.idle",
    ask: str = "answers",
) -> Answers:
    """Answer in a child that has loaded everything again; what can no longer be answered has changed.

    A function of a module answers, by name: the child has to load its own.
    """
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.close(reader)
        try:
            for name in [name for name in sys.modules if name.split(".")[0] in _LOADED_AGAIN]:
                del sys.modules[name]
            take_away()
            said = getattr(import_module(module), ask)(engine, positions)
        except Exception as error:  # noqa: BLE001 – whatever fails without the line is a change
            said = dict.fromkeys(map(str, positions), repr(error))
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            json.dump(said, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        answered: Answers = json.load(pipe)
    os.waitpid(child, 0)
    return answered
