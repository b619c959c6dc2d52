"""How much code the diagnosis is, and how much of it one verdict runs.

A verdict is the example of a row of the verdicts, explained with the lexicon loaded and texts that were not read
before. What it enters is counted by name, in all of `safe_core`: functions, methods and properties, but neither
comprehensions nor lambdas.
"""

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from bench.yardstick.labelled import ROOT
from safe_core import Expectations, Output
from safe_core.diagnosis import diagnose
from safe_core.diagnosis.tables import VERDICT_ROWS, Example

_CORE: Final = ROOT / "safe_core"
_PACKAGES: Final = ("diagnosis", "rewording", "mutation")
_LOADING: Final = Example("three tablets", "No headache on 3 May.", "It was hers.")

Entered = dict[str, set[str]]


class Size(NamedTuple):
    """How many files a package has, and how many lines of code and of words."""

    package: str
    modules: int
    code: int
    data: int


def sizes() -> Iterator[Size]:
    """Count the lines of each package."""
    for package in _PACKAGES:
        code, data = ([*_CORE.joinpath(package).rglob(ending)] for ending in ("*.py", "*.tsv"))
        yield Size(package, len(code), sum(map(_lines, code)), sum(map(_lines, data)))


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def entered(example: Example) -> Entered:
    """Give the functions that one verdict enters, by module."""
    found: Entered = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(f"{_CORE}/") and not code.co_name.startswith("<"):
            found.setdefault(str(Path(code.co_filename).relative_to(_CORE)), set()).add(code.co_qualname)

    expectations = Expectations((), must_contain_phrases=(example.term,))
    if not example.signals:
        expectations = Expectations((example.term,))
    output = Output(example.signals, example.summary)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        diagnose(expectations, output, example.narrative)
    finally:
        sys.setprofile(before)
    return found


def print_rooms() -> None:
    """Print the sizes, what each verdict enters, and what all of them enter by module."""
    for size in sizes():
        print(f"{size.package:10}  {size.modules:3} modules  {size.code:5} lines of code  {size.data:5} of words")
    entered(_LOADING)
    verdicts = {row.name: entered(row.example) for row in VERDICT_ROWS}
    for name, found in verdicts.items():
        own = [len(functions) for module, functions in found.items() if module.startswith("diagnosis/")]
        print(
            f"{sum(map(len, found.values())):4} functions in {len(found):2} modules,"
            f" {sum(own):3} in {len(own):2} of the diagnosis: {name}"
        )
    for module in sorted(set(chain.from_iterable(verdicts.values()))):
        functions = set().union(*(found.get(module, set()) for found in verdicts.values()))
        print(f"{len(functions):4} in {module}: {', '.join(sorted(functions))}")
