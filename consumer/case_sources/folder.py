"""A folder of batch files, `<batch_id>.json`, read again when they change (contract.md, "Batch files").

A look at the folder lists it and reads what has changed, in a thread. It makes a new FolderIndex; look-ups only use
its dicts: no path is ever built from an id.
"""

import asyncio
import errno
import hashlib
import os
import stat
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import structlog
from typing_extensions import override

from consumer.case_sources.base import LOOK_AGAIN_SECONDS, IndexedSource
from consumer.case_sources.cases import (
    Holders,
    Row,
    among,
    case_or_poison,
    compact,
    move,
    nameless_count,
    names_of,
    parse_in_pieces,
    poison,
    rows_of,
    without_unused,
)
from consumer.case_sources.source import Answer, ExpectationsKey
from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError, Transient
from consumer.text import composed, count_of, named, visible
from safe_core import Expectations, InvalidBatch, NoBatch, TestCase, parse_batch

SUFFIX = ".json"
DECISIONS_NAME = "safe.decisions.json"
"""The file beside the batch files that keeps what `safe review` decided; it is never read as a batch file."""
SCAN_EVERY_SECONDS = 1.0
QUICK_SCAN_SECONDS = 0.02
"""A scan that takes no longer may be repeated at once; slower ones take at most a tenth of the time."""
REST_AFTER_SCAN = 10
WRITING_SECONDS = 5.0
"""A file that does not parse counts as being written until this long after its last change."""
SETTLED_SECONDS = 2.0
"""A file younger than this may change again without a new time stamp (they tick coarsely), so it is read once more."""
TRIES = 3
NAMED_AT_ONCE = 20
"""One scan names this many files with unusable test cases in the log, and counts the rest."""
LARGEST_FILE_BYTES = 256 * 1024 * 1024
"""A batch of a hundred thousand cases has about 50 MiB. A far larger one is a mistake, and would take all memory."""

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger("safe.expectations")


# --- listing and reading ----------------------------------------------------------------------------------------------


class Signature(NamedTuple):
    """What changes when a file does."""

    modified_ns: int
    changed_ns: int
    size: int
    inode: int
    device: int


def _signature(status: os.stat_result) -> Signature:
    return Signature(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev)


class ListedFile(NamedTuple):
    """A batch file that may be opened: its `path` has no links in it any more."""

    path: str
    signature: Signature


@dataclass(frozen=True, slots=True)
class Listing:
    """A folder's batch files by name, and why others of its `.json` names are not among them."""

    root: str
    files: Mapping[str, ListedFile]
    ignored: Mapping[str, str]


def list_folder(folder: str | Path) -> Listing:
    """List the batch files of a folder's top level, hidden names left out; raises OSError.

    Links count if they stay inside the folder, as those of a Kubernetes ConfigMap do. Nothing is opened.
    """
    root = os.path.realpath(folder)
    with os.scandir(root) as entries:
        named = [entry.name for entry in entries if entry.name.endswith(SUFFIX) and not entry.name.startswith(".")]
    names = [name for name in named if name != DECISIONS_NAME]
    examined = {name: _examined(root, name) for name in names}
    files = {name: listed for name, listed in examined.items() if isinstance(listed, ListedFile)}
    return Listing(root, files, {name: why for name, why in examined.items() if isinstance(why, str)})


def _examined(root: str, name: str) -> ListedFile | str | None:
    """The file to read, or why the name is ignored; None if it is gone."""
    path = f"{root}/{name}"
    for _ in range(TRIES):  # for a moment, a ConfigMap's links point to a folder that is already gone
        try:
            status = os.lstat(path)
            if not stat.S_ISLNK(status.st_mode):
                return _regular(path, status)
            target = os.path.realpath(path)
            if os.path.commonpath((root, target)) != root:
                return "is a link that leaves the folder"
            return _regular(target, os.lstat(target))
        except FileNotFoundError:
            continue
    return "is a link to nothing" if Path(path).is_symlink() else None


def _regular(path: str, status: os.stat_result) -> ListedFile | str:
    return ListedFile(path, _signature(status)) if stat.S_ISREG(status.st_mode) else "is not a regular file"


def read_whole(path: str, most_bytes: int = LARGEST_FILE_BYTES) -> tuple[bytes, Signature] | None:
    """Read a file that nobody changes meanwhile; None if it is gone, or changed during each try.

    Raises OSError: PermissionError concerns this file alone, any other the whole folder or us (no descriptors left).
    """
    for _ in range(TRIES):
        try:
            # Since it was listed, a link, a fifo or a device may have replaced it: do not follow it, nor wait for it.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ELOOP}:
                return None
            raise
        with os.fdopen(descriptor, "rb") as file:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                return None
            raw = file.read(min(before.st_size + 1, most_bytes))  # as much memory is allocated as is asked for
            after = os.fstat(descriptor)
        if _signature(before) == _signature(after) and len(raw) == after.st_size:
            return raw, _signature(after)
    return None


# --- the index --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BatchFile:
    """A batch file as it was last read; `rows`, `cases` and `unusable` are of its last good version.

    A file that never held test cases and is about something else (contract.md, "Batch files") is `beside` the others.
    `signature` is None for a file that the next scan reads again even if it looks the same. `content` is a hash of its
    bytes, `modified_at` is in seconds since 1970. Of its `cases`, `unusable` cannot be used; `cases` is None if no
    version was ever good.
    """

    signature: Signature | None = None
    modified_at: float = 0.0
    content: int | None = None
    rows: Mapping[str, Row] = field(default_factory=dict)
    cases: int | None = None
    unusable: int = 0
    problem: str | None = None
    beside: bool = False

    def is_being_written(self, now: float) -> bool:
        """Tell whether it does not parse, but changed so recently that it soon may."""
        return self.problem is not None and not self.beside and abs(now - self.modified_at) < WRITING_SECONDS


_NO_FILE = BatchFile()


@dataclass(frozen=True, slots=True)
class FolderIndex:
    """All test cases of a folder; it is never changed but replaced by the next one.

    `holders` are names of files. `shared` has each of the expectations once, however many test cases are equal.
    `bad_files` names, in order, the files that cannot be used as they are now, and `beside` those that are about
    something else. `composed` has the names beyond ASCII by their composed form, unless two have the same.
    """

    files: Mapping[str, BatchFile] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    holders: Holders = field(default_factory=dict)
    shared: dict[Expectations, Expectations] = field(default_factory=dict)
    bad_files: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    composed: Mapping[str, str] = field(default_factory=dict)

    @property
    def batches(self) -> int:
        """How many batch files there are, whether they can be used or not."""
        return len(self.files) - len(self.beside)

    def find(self, key: ExpectationsKey, now: float) -> TestCase | Poison:
        """Find a test case (contract.md, "Look-up"); raises Transient while its file is being written."""
        own = self._own(key.batch_id)
        row = own.rows.get(key.test_id)
        if row is not None:
            # Without the file's name, which is the batch_id of the input.
            return case_or_poison(row, "the batch's own file", key.narrative)
        if own.is_being_written(now):
            raise Transient("the batch's own file is being written")
        if own.cases is None and own.problem is not None:
            return poison("expectations_invalid", f"the batch's own file: {own.problem}")
        names = self.holders.get(key.test_id)
        if names is None:
            return self._not_found(key.batch_id + SUFFIX, now)
        rows = ((name, self.files[name].rows[key.test_id]) for name in names_of(names))
        return among(rows, "batch files", key.narrative)

    def _own(self, batch_id: str) -> BatchFile:
        name = batch_id + SUFFIX
        own = self.files.get(name)
        if own is None and self.composed:  # contract.md, "Batch files": the same name in another Unicode form
            own = self.files.get(self.composed.get(composed(name), ""))
        return _NO_FILE if own is None else own

    def _not_found(self, own_name: str, now: float) -> Poison:
        bad = [name for name in self.bad_files if name != own_name]
        writing = [name for name in bad if self.files[name].is_being_written(now)]
        if writing:
            raise Transient(f"{named(writing)} is being written")
        unread = f", and {len(bad)} more cannot be read: {named(bad)}" if bad else ""
        read = f"{count_of(self.batches - len(bad), 'file')} read"
        return poison("expectations_not_found", f"no batch file contains it ({read}){unread}")

    def expected_cases(self, batch_id: str) -> int | None:
        """How many test cases the batch of that name has, None if there is none."""
        return self._own(batch_id).cases

    def holds(self, key: ExpectationsKey) -> bool:
        """Tell whether the batch of that name itself holds the test case."""
        return key.test_id in self._own(key.batch_id).rows

    def problems(self) -> dict[str, tuple[str | None, object]]:
        """Why files cannot be used, by name; an entry differs from an earlier one where the file has changed."""
        problems: dict[str, tuple[str | None, object]] = {name: (why, None) for name, why in self.ignored.items()}
        for name in self.bad_files:
            file = self.files[name]
            problems[name] = file.problem, (file.modified_at, file.content)
        return problems

    def followed_by(self, listing: Listing, wall: Callable[[], float]) -> "FolderIndex":
        """The index of a newer listing; only what has changed is read."""
        files: dict[str, BatchFile] = {}
        for name, listed in self._still_there(listing).items():
            known = self.files.get(name, _NO_FILE)
            files[name] = known if known.signature == listed.signature else self._read(name, listed, wall)
        changed = {name for name in files.keys() | self.files.keys() if self.differs(name, files)}
        if not changed:
            # Signatures and times may differ, but the answers are the same, and so are the dicts.
            return replace(self, files=files, ignored=listing.ignored)
        holders = self.holders.copy()
        for name in changed:
            move(holders, name, self.files.get(name, _NO_FILE).rows.keys(), files.get(name, _NO_FILE).rows.keys())
        shared = without_unused(self.shared, holders, (file.rows for file in files.values()))
        problems = sorted(name for name, file in files.items() if file.problem is not None)
        beside = tuple(name for name in problems if files[name].beside)
        bad = tuple(name for name in problems if not files[name].beside)
        return FolderIndex(files, listing.ignored, holders, shared, bad, beside, _by_composed_name(files))

    def _still_there(self, listing: Listing) -> dict[str, ListedFile]:
        """The listed files, and those that it missed because they were replaced while the folder was being read."""
        files = dict(listing.files)
        for name in self.files.keys() - listing.files.keys() - listing.ignored.keys():
            listed = _examined(listing.root, name)
            if isinstance(listed, ListedFile):
                files[name] = listed
        return files

    def _read(self, name: str, listed: ListedFile, wall: Callable[[], float]) -> BatchFile:
        known = replace(self.files.get(name, _NO_FILE), modified_at=listed.signature.modified_ns / 1e9)
        if listed.signature.size > LARGEST_FILE_BYTES:
            problem = f"is larger than {LARGEST_FILE_BYTES // 2**20} MiB"
            return replace(known, signature=listed.signature, content=None, problem=problem, beside=False)
        try:
            found = read_whole(listed.path)
        except PermissionError:
            return replace(known, signature=None, content=None, problem="may not be read", beside=False)
        if found is None:
            problem = "changed while it was read"
            return replace(known, signature=None, modified_at=wall(), content=None, problem=problem, beside=False)
        raw, signature = found
        at, content = signature.modified_ns / 1e9, _hash(raw)
        is_settled = abs(wall() - at) >= SETTLED_SECONDS
        known = replace(known, signature=signature if is_settled else None, modified_at=at)
        if content == known.content:
            return known
        try:
            batch = parse_batch(parse_in_pieces(raw))
        except InvalidBatch as error:
            # One that had test cases has lost them: that is for a person to look at.
            is_beside = isinstance(error, NoBatch) and known.cases is None
            return replace(known, content=content, problem=str(error), beside=is_beside)
        rows = {test_id: compact(row, self.shared) for test_id, row in rows_of(batch).items()}
        cases = len(rows) + nameless_count(batch)
        usable = sum(isinstance(row, TestCase) for row in rows.values())
        return BatchFile(known.signature, at, content, rows, cases, cases - usable)

    def differs(self, name: str, files: Mapping[str, BatchFile]) -> bool:
        """Tell whether the test cases or the problem of a file are different in `files`."""
        before, after = self.files.get(name, _NO_FILE), files.get(name, _NO_FILE)
        return before.rows is not after.rows or before.problem != after.problem


def _by_composed_name(names: Iterable[str]) -> dict[str, str]:
    by_form: dict[str, list[str]] = {}
    for name in names:
        if not name.isascii():
            by_form.setdefault(composed(name), []).append(name)
    return {form: same[0] for form, same in by_form.items() if len(same) == 1}


def _hash(raw: bytes) -> int:
    """Unlike Python's own hash, it lets other threads run meanwhile."""
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest())


# --- the source -------------------------------------------------------------------------------------------------------


class FolderSource(IndexedSource):
    """The ExpectationsSource of source.py over a folder of batch files.

    `clock` is monotonic and `wall` in seconds since 1970. find() raises Transient while the folder is gone, or while a
    file that may hold a key is being written.
    """

    name = "folder"
    unanswered_seconds = 30.0
    may_use_other_batches = True

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        super().__init__("the expectations folder", clock, sleep)
        self._path = Path(path)
        self._wall = wall
        self._index = FolderIndex()

    @property
    def unusable(self) -> tuple[str, ...]:
        """Names of the files, and of what only looks like one, that cannot be used as they are now, in order."""
        return tuple(sorted((*self._index.bad_files, *self._index.ignored)))

    async def start(self) -> None:
        """Read the folder; raises ConfigurationError if there is none or it cannot be read."""
        await self._looked(self._begun + 1)
        if self._doubt is not None:
            raise ConfigurationError(
                f"{self._doubt}: set SAFE_V0_EXPECTATIONS to a folder of batch files (<batch_id>.json)"
            )
        if not self._index.batches:
            _log.warning("the expectations folder holds no batch file", folder=visible(str(self._path)))

    def trouble(self) -> str | None:
        """Say why look-ups cannot be answered; to be called in the event loop, where it has an old view renewed."""
        self._look_again(LOOK_AGAIN_SECONDS)
        return self._unanswered() or self._doubt

    # --- answering

    @override
    async def _refresh(self, number: int) -> None:
        now = self._clock()
        is_old = self._looking is None and now - self._begun_at >= SCAN_EVERY_SECONDS and now >= self._next_at
        if is_old or self._doubt is not None:
            await self._looked(number)

    @override
    def _look_up(self, key: ExpectationsKey) -> Answer:
        case = self._index.find(key, self._wall())
        return self._answer(case, self._index.expected_cases(key.batch_id), in_batch=self._index.holds(key))

    # --- scanning

    @override
    async def _look(self) -> None:
        try:
            index, seconds = await asyncio.to_thread(self._scan)
        except OSError as error:
            self._note_doubt(f"cannot be read ({error.strerror})")
            return
        self._adopt(index)
        self._next_at = self._clock() + (REST_AFTER_SCAN * seconds if seconds > QUICK_SCAN_SECONDS else 0.0)

    def _scan(self) -> tuple[FolderIndex, float]:
        """Make the new index, in a thread, and tell how long that took, not counting the reading of changed files."""
        begun = self._clock()
        listing = list_folder(self._path)
        listed = self._clock()
        index = self._index.followed_by(listing, self._wall)
        compared = self._clock() if index.holders is self._index.holders else listed
        return index, compared - begun

    def _adopt(self, index: FolderIndex) -> None:
        before = self._index
        if before.holders and not index.holders:
            # This is what a failed mount looks like: no reason to make dead letters of what was there a moment ago.
            self._note_doubt("has lost all of its test cases")
            return
        self._index = index
        known = before.problems()
        for name, problem in index.problems().items():
            if known.get(name) != problem:
                kept = "its last good version stays in use" if name in before.files else "its test cases cannot be used"
                _log.warning(
                    "a batch file cannot be used", file=visible(name), why=problem[0], until_it_is_repaired=kept
                )
        if index.beside != before.beside:
            _log.info("files without test_cases are left out", files=len(index.beside), named=named(index.beside, 10))
        if index.holders is not before.holders:
            self._known.clear()
            _log_unusable(before, index)
            _log.info("batch files were read", files=index.batches, test_ids=len(index.holders))
        if self._doubt is not None:
            self._doubt = None
            _log.info("the expectations folder is back", folder=visible(str(self._path)))

    def _note_doubt(self, what: str) -> None:
        doubt = f"{self._store} {visible(str(self._path))} {what}"
        if doubt != self._doubt and self._finished:  # at the start, start() itself reports it
            _log.error("cannot look up test cases: the folder is unavailable", why=doubt)
        self._doubt = doubt


def _log_unusable(before: FolderIndex, index: FolderIndex) -> None:
    """Name the files, of those that are new or have changed, whose test cases cannot all be used."""
    changed = [name for name, file in index.files.items() if file.unusable and before.differs(name, index.files)]
    for name in sorted(changed)[:NAMED_AT_ONCE]:
        _log.warning(
            "test cases cannot be used: safe lint says why", file=visible(name), test_cases=index.files[name].unusable
        )
    if len(changed) > NAMED_AT_ONCE:
        _log.warning("more files have test cases that cannot be used", files=len(changed) - NAMED_AT_ONCE)
