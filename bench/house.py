"""How far one output goes through the code until it is scored, and how long that code is: `python -m bench.house`."""

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from consumer.files.outputs import open_all
from consumer.files.selection import select
from consumer.offline.scoring import score_files
from safe_core import DEFAULT_POLICY
from tests.support.case_files import a_case, answer, write_batch, write_report
from tests.support.kafka_broker import PROJECT

FOLDERS: Final = ("consumer/offline", "consumer/files")
SUFFIXES: Final = frozenset({".py", ".j2", ".css", ".js"})
OUR_OWN: Final = ("consumer", "safe_scorer")


@contextmanager
def entered() -> Iterator[Counter[str]]:
    """Count the calls into each module of ours outside `safe_core`."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_globals.get("__name__", "")
        is_written = not frame.f_code.co_filename.startswith("<")  # else a data class made it
        if event == "call" and is_written and name.split(".", 1)[0] in OUR_OWN:
            calls[name] += 1

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def lines_of(folder: str) -> int:
    """Count the lines of a folder's code, templates included."""
    paths = (path for path in (PROJECT / folder).rglob("*") if path.suffix in SUFFIXES)
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def ways(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """Count what is entered to select a test case, and then to score its output."""
    outputs = write_report(folder / "run.json", answer("A-1"))
    with entered() as selecting:
        selection = select(folder / "cases", "K07", "*")
    with entered() as scoring:
        score_files(selection, open_all([outputs]), DEFAULT_POLICY, generated_at="")
    return selecting, scoring


def show(what: str, calls: Counter[str]) -> None:
    """Print how many modules were entered, and which."""
    print(f"{what}: {len(calls)} modules of ours outside safe_core")
    for name, count in calls.most_common():
        print(f"  {count:5}  {name}")


def main() -> None:
    """Score one case, twice: what is loaded on first use belongs to no output."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_batch(folder / "cases", "asthma_1", a_case("A-1"))
        ways(folder)
        selecting, scoring = ways(folder)
    show("From a file of outputs to its score", scoring)
    show("From a folder to its test cases, before that", selecting)
    counted = {folder: lines_of(folder) for folder in FOLDERS}
    print(json.dumps({**counted, "total": sum(counted.values())}))


if __name__ == "__main__":
    main()
