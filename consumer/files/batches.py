"""The batch files of a folder, and which of them hold a test case."""

import hashlib
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Final

from consumer.case_sources.cases import ConflictingCases, Row, expect_the_same, parse_document, rows_of
from consumer.case_sources.folder import SUFFIX, list_folder, read_whole
from consumer.errors import ConfigurationError
from consumer.files.json_text import RepeatedKey, repeated_keys, repeated_keys_lines
from consumer.files.outputs import holds_outputs, is_own_report, readable, unusable
from consumer.text import composed, count_of, named, printable, visible
from safe_core import MAX_ID_LENGTH, Batch, InvalidBatch, NoBatch, TestCase, narrative_of, parse_batch
from safe_core.case_keys import unread_keys
from safe_core.testcases import PLANS

_BESIDE_NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class LoadedBatch:
    """A batch file of a test-dir; `name` is its batch_id, `rows` what it says of each test_id.

    `narratives` are those that its test cases tell, by test_id: several where a test_id appears several times.
    `repeated_keys` are those of which only the last one counts. `misread_keys` counts the test cases with a key which
    scoring ignores, but which resembles one that it reads, by the sentence that says so.
    """

    name: str
    path: Path
    sha256: str
    batch_index: int | None
    batch: Batch
    rows: Mapping[str, Row]
    narratives: Mapping[str, Sequence[str]]
    repeated_keys: Sequence[RepeatedKey] = ()
    misread_keys: Mapping[str, int] = field(default_factory=dict)


class HoldsNoTestCases(ConfigurationError):
    """A file of JSON beside the batches that is about something else: an error only if it was asked for by name."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{visible(str(path))}: {why}")
        self.why = why


class Batches:
    """Some batches of a test-dir, in the order of their files' names, and who holds which test_id.

    `beside` are the names of files that were looked at but hold no test cases.
    """

    def __init__(self, batches: Iterable[LoadedBatch], beside: Sequence[str] = ()) -> None:
        self.all = tuple(batches)
        self.beside = tuple(beside)
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


def load_batches(test_dir: Path, pattern: str = "*") -> Batches:
    """Load the batches of a folder whose names match a glob; raises ConfigurationError naming what cannot be used.

    A file that a wildcard matches, but that holds no test cases, is left out (contract.md, "Batch files").
    """
    loaded: list[LoadedBatch] = []
    beside: dict[str, str] = {}
    for name in chosen(pattern, batch_names(test_dir)):
        try:
            loaded.append(load_batch(test_dir, name))
        except HoldsNoTestCases as error:
            if not has_wildcard(pattern):
                raise
            beside[name + SUFFIX] = error.why
    if beside and not loaded:
        raise only_beside(test_dir, pattern, beside)
    return Batches(loaded, [*beside])


def only_beside(test_dir: Path, pattern: str, beside: Mapping[str, str]) -> ConfigurationError:
    """The error for a pattern that only files without test cases match; `beside` says why of each name."""
    if len(beside) == 1:
        ((name, why),) = beside.items()
        return unusable(test_dir / name, why)
    files = f"{visible(str(test_dir))} has no batch files (<batch_id>.json) that match --batch {visible(pattern)}"
    return ConfigurationError(f"{files}: {beside_line([*beside])}")


def beside_lines(beside: Sequence[str]) -> Iterator[str]:
    """Say which files are left out, if any are."""
    return (beside_line(names) for names in ([beside] if beside else []))


def beside_line(names: Sequence[str]) -> str:
    """Say which files hold no test cases."""
    listed = named(names, _BESIDE_NAMED, MAX_ID_LENGTH)
    if len(names) == 1:
        return f"{listed} is left out: it has no test_cases, so it is not a batch file"
    return f"{len(names)} files are left out: they have no test_cases, so they are not batch files: {listed}"


def batch_names(test_dir: Path) -> list[str]:
    """The names of a folder's batches, in the order of their files; a report that SAFE wrote there is not a batch."""
    with readable(test_dir):
        if test_dir.is_file():
            raise unusable(test_dir, "is a file, not a folder of batch files")
        files = sorted(list_folder(test_dir).files)
        return [name.removesuffix(SUFFIX) for name in files if not is_own_report(test_dir / name)]


def load_batch(test_dir: Path, name: str) -> LoadedBatch:
    """Load one batch of a folder; raises ConfigurationError naming what cannot be used."""
    path = test_dir / (name + SUFFIX)
    with readable(path):
        try:
            raw, document = read_document(path)
            batch = parse_batch(document)
        except NoBatch as error:
            raise HoldsNoTestCases(path, str(error)) from error
    digest, rows, narratives = hashlib.sha256(raw).hexdigest(), rows_of(batch), _narratives(document)
    repeated, misread = repeated_keys(raw, document), misread_keys(document)
    return LoadedBatch(name, path, digest, _batch_index(document), batch, rows, narratives, repeated, misread)


def misread_keys(document: object) -> Mapping[str, int]:
    """Count the test cases of a batch file with a key that resembles one that is read, by the sentence about it."""
    cases = document["test_cases"] if isinstance(document, dict) else ()
    return Counter(each.sentence for case in cases for each in unread_keys(case) if each.code != "unknown_key")


def key_lines(batches: Iterable[LoadedBatch]) -> Iterator[str]:
    """Say which keys of batch files are lost, because they are there twice or because scoring does not read them."""
    for batch in batches:
        yield from repeated_keys_lines([(batch.path, batch.repeated_keys)])
        yield from misread_lines(batch.path, batch.misread_keys)


def misread_lines(path: Path, misread: Mapping[str, int]) -> Iterator[str]:
    """Say which keys of a file resemble one that is read."""
    for sentence, count in islice(misread.items(), _BESIDE_NAMED):
        yield f"{visible(str(path))}: {printable(sentence)} ({count_of(count, 'test case')}; safe lint shows where)"


def read_document(path: Path) -> tuple[bytes, object]:
    """Read a batch file, of whatever size, and parse it; raises InvalidBatch, whose words follow "<file>: "."""
    try:
        whole = read_whole(os.path.realpath(path), sys.maxsize)
    except OSError as error:
        raise InvalidBatch(f"cannot be read ({error.strerror})") from error
    if whole is None:
        raise InvalidBatch("changed while it was read" if path.exists() else "is not there any more")
    if not whole[0].strip():
        raise InvalidBatch("is empty")
    document = parse_document(whole[0])
    if isinstance(document, dict) and "test_cases" not in document and holds_outputs(document):
        raise NoBatch("holds outputs, not test cases")
    return whole[0], document


def _narratives(document: object) -> dict[str, list[str]]:
    narratives: dict[str, list[str]] = {}
    for case in document["test_cases"] if isinstance(document, dict) else ():
        text = narrative_of(case)
        if text is not None and isinstance(case.get("test_id"), str):
            narratives.setdefault(case["test_id"], []).append(text)
    return narratives


def read_again(batch: LoadedBatch) -> bytes:
    """Read the file of a batch a second time; raises ConfigurationError if it has changed since."""
    with readable(batch.path):
        raw, _ = read_document(batch.path)
    if hashlib.sha256(raw).hexdigest() != batch.sha256:
        raise unusable(batch.path, "has changed while it was being read; try again when nothing writes to it")
    return raw


def _batch_index(document: object) -> int | None:
    plans = [document.get(name) for name in PLANS] if isinstance(document, dict) else []
    indexes = [plan.get("batch_index") for plan in plans if isinstance(plan, dict)]
    return next((index for index in indexes if type(index) is int), None)  # true is no index


def has_wildcard(pattern: str) -> bool:
    """Whether a pattern is more than a name."""
    return "*" in pattern or "?" in pattern


def no_batch(test_dir: Path, pattern: str, names: Sequence[str]) -> ConfigurationError:
    """The error for a pattern that none of a folder's batches matches."""
    if not names:
        return ConfigurationError(f"{visible(str(test_dir))} has no batch files (<batch_id>.json)")
    there = f"batches there: {named(names, 20, MAX_ID_LENGTH)}"
    return ConfigurationError(f"no batch matches --batch {visible(pattern)} in {visible(str(test_dir))}; {there}")


def usable_batches(test_dir: Path, names: Iterable[str]) -> Iterator[LoadedBatch]:
    """Load those batches of a folder that can be used; the others concern nobody here."""
    for name in names:
        with suppress(ConfigurationError):
            yield load_batch(test_dir, name)


def chosen(pattern: str, names: Iterable[str]) -> list[str]:
    """The names of batches that match a pattern of `*` and `?`, themselves or as files; brackets mean themselves.

    Unicode forms make no difference, unless the pattern is exactly a name.
    """
    there = [*names]
    exact = [name for name in there if pattern in (name, name + SUFFIX)]
    if exact and not has_wildcard(pattern):
        return exact
    literal = composed(pattern).replace("[", "[[]")
    forms = [(name, composed(name)) for name in there]
    return [name for name, form in forms if fnmatchcase(form, literal) or fnmatchcase(form + SUFFIX, literal)]


def differ(rows: Iterable[Row]) -> bool:
    """Whether batches disagree on what is expected of one test_id; test cases that cannot be used do not count."""
    known = list(rows)
    is_open = any(isinstance(row, ConflictingCases) for row in known)
    return is_open or not expect_the_same([row for row in known if isinstance(row, TestCase)])
