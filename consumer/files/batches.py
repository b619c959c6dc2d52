"""The batch files of a folder, and which of them hold a test case."""

import hashlib
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from consumer.expectations.cases import Row, TwiceDifferently, expect_the_same, parse_document, rows_of
from consumer.expectations.folder import SUFFIX, list_folder, read_whole
from consumer.expectations.port import ExpectationsKey
from consumer.files.outputs import Entry, is_own_report, readable, unusable
from safe_core import (
    Batch,
    InvalidBatch,
    TestCase,
    narrative_of,
    parse_batch,
)
from safe_core.testcases import PLANS


@dataclass(frozen=True, slots=True)
class LoadedBatch:
    """A batch file of a test-dir; `name` is its batch_id, `rows` what it says of each test_id."""

    name: str
    path: Path
    sha256: str
    batch_index: int | None
    batch: Batch
    rows: Mapping[str, Row]


class Batches:
    """Some batches of a test-dir, in the order of their files' names, and who holds which test_id."""

    def __init__(self, batches: Iterable[LoadedBatch]) -> None:
        self.all = tuple(batches)
        self._holders: dict[str, tuple[LoadedBatch, ...]] = {}
        for batch in self.all:
            for test_id in batch.rows:
                self._holders[test_id] = (*self._holders.get(test_id, ()), batch)

    @property
    def test_ids(self) -> Collection[str]:
        """Every test_id that some batch holds."""
        return self._holders.keys()

    def holders(self, test_id: str) -> tuple[LoadedBatch, ...]:
        """The batches that hold a test_id."""
        return self._holders.get(test_id, ())

    def answered_by(self, entry: Entry) -> tuple[LoadedBatch, ...]:
        """The holders whose case an entry answers (contract.md, "Answers").

        A batch_id, if the entry has one, decides by "Look-up"; else a batch_index that is some holder's.
        """
        holders = self.holders(entry.test_id)
        own = tuple(batch for batch in holders if batch.name == entry.batch_id)
        if own or entry.batch_index is None:
            return own or holders
        return tuple(batch for batch in holders if batch.batch_index == entry.batch_index) or holders


def load_batches(test_dir: Path, pattern: str = "*") -> Batches:
    """Load the batches of a folder whose names match a glob; raises ConfigurationError naming what cannot be used."""
    return Batches(load_batch(test_dir, name) for name in chosen(pattern, batch_names(test_dir)))


def batch_names(test_dir: Path) -> list[str]:
    """The names of a folder's batches, in the order of their files; a report that SAFE wrote there is none of them."""
    with readable(test_dir):
        files = sorted(list_folder(test_dir).files)
        return [name.removesuffix(SUFFIX) for name in files if not is_own_report(test_dir / name)]


def load_batch(test_dir: Path, name: str) -> LoadedBatch:
    """Load one batch of a folder; raises ConfigurationError naming what cannot be used."""
    path = test_dir / (name + SUFFIX)
    try:
        raw, document = read_document(path)
        batch = parse_batch(document)
    except InvalidBatch as error:
        raise unusable(path, str(error)) from error
    return LoadedBatch(name, path, hashlib.sha256(raw).hexdigest(), _batch_index(document), batch, rows_of(batch))


def read_document(path: Path) -> tuple[bytes, object]:
    """Read a batch file, of whatever size, and parse it; raises InvalidBatch, whose words follow "<file>: "."""
    try:
        whole = read_whole(os.path.realpath(path), sys.maxsize)
    except OSError as error:
        raise InvalidBatch(f"cannot be read ({error.strerror})") from error
    if whole is None:
        raise InvalidBatch("changed while it was read" if path.exists() else "is not there any more")
    return whole[0], parse_document(whole[0])


def narratives_of(batch: LoadedBatch) -> dict[str, str]:
    """The narratives of a batch's test cases that have one, by test_id; where that stands twice, the first one's.

    They are read separately, since scoring does not need them; raises ConfigurationError if the file has changed.
    """
    try:
        raw, document = read_document(batch.path)
    except InvalidBatch as error:
        raise unusable(batch.path, str(error)) from error
    if hashlib.sha256(raw).hexdigest() != batch.sha256:
        raise unusable(batch.path, "has changed while it was being read; try again when nobody writes it")
    narratives: dict[str, str] = {}
    for case in document["test_cases"] if isinstance(document, dict) else ():
        text = narrative_of(case)
        if text is not None and isinstance(case.get("test_id"), str):
            narratives.setdefault(case["test_id"], text)
    return narratives


def _batch_index(document: object) -> int | None:
    for plan in PLANS:
        within = document.get(plan) if isinstance(document, dict) else None
        index = within.get("batch_index") if isinstance(within, dict) else None
        if isinstance(index, int) and not isinstance(index, bool):
            return index
    return None


def has_wildcard(pattern: str) -> bool:
    """Tell whether a pattern is more than a name."""
    return "*" in pattern or "?" in pattern


def chosen(pattern: str, names: Iterable[str]) -> list[str]:
    """The names of batches, or of their files, that match by `*` and `?`; all else, brackets too, is as it stands."""
    signs = {"*": ".*", "?": "."}
    expression = re.compile("".join(signs.get(sign, re.escape(sign)) for sign in pattern), re.DOTALL)
    return [name for name in names if expression.fullmatch(name) or expression.fullmatch(name + SUFFIX)]


def differ(rows: Iterable[Row]) -> bool:
    """Tell whether what batches say of one test_id leaves open what is expected; unusable test cases say nothing."""
    said = list(rows)
    if any(isinstance(row, TwiceDifferently) for row in said):
        return True
    return not expect_the_same([row for row in said if isinstance(row, TestCase)])


def answers_by_case(
    entries: Iterable[Entry], batch_ids: Callable[[Entry], Iterable[str]]
) -> dict[ExpectationsKey, list[Entry]]:
    """The entries that answer each case, in their order; more than one is a case answered twice."""
    answers: dict[ExpectationsKey, list[Entry]] = {}
    for entry in entries:
        for batch_id in batch_ids(entry):
            answers.setdefault(ExpectationsKey(batch_id, entry.test_id), []).append(entry)
    return answers


def answered_twice(answers: Mapping[ExpectationsKey, Sequence[Entry]]) -> list[str]:
    """The test_ids that a file answers more than once, each named once, in order."""
    return list(dict.fromkeys(key.test_id for key, entries in answers.items() if len(entries) > 1))
