"""A folder of batch files, `<batch_id>.json`, kept fresh while asked (contract.md, "Batch files").

A scan lists the folder and reads what has changed, in a thread; it makes a new FolderIndex, and look-ups go by dicts
alone: no path is ever built from an id.
"""

import asyncio
import errno
import hashlib
import os
import stat
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import structlog

from consumer.errors import ConfigurationError, Poison, Transient
from consumer.expectations.answers import CACHED_ANSWERS, Answer, Preparer, count, no_requests, take_known
from consumer.expectations.cases import (
    Holders,
    Row,
    among,
    case_count,
    compact,
    move,
    names_of,
    parse_in_pieces,
    poison,
    rows_of,
    verdict,
)
from consumer.expectations.port import ExpectationsKey, FoundExpectations
from consumer.loop_budget import Turns
from consumer.text import named, shown
from safe_core import Expectations, InvalidBatch, TestCase, parse_batch

SUFFIX = ".json"
SCAN_EVERY_SECONDS = 1.0
QUICK_SCAN_SECONDS = 0.02
"""A scan that takes no longer may be repeated at once; else scans take at most a tenth of the time."""
REST_AFTER_SCAN = 10
WRITING_SECONDS = 5.0
"""So long after its last change a file that does not parse counts as being written."""
SETTLED_SECONDS = 2.0
"""A file younger than this may change again without a new time stamp (they tick coarsely), so it is read once more."""
UNANSWERED_SECONDS = 30.0
LOOK_AGAIN_SECONDS = 5.0
TRIES = 3
NAMED_AT_ONCE = 20
"""One scan names this many files with unusable test cases in the log, and counts the rest."""
LARGEST_FILE_BYTES = 256 * 1024 * 1024
"""A batch of a hundred thousand cases has some 50 MiB; what is far larger is a mistake, and would take all memory."""

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger("safe.expectations")


# --- listing and reading ----------------------------------------------------------------------------------------------

Signature = tuple[int, int, int, int, int]
"""What changes when a file does: times of modification and of change (ns), size, inode, device."""


def _signature(status: os.stat_result) -> Signature:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev


class ListedFile(NamedTuple):
    """A batch file that may be opened: `path` holds no link any more."""

    path: str
    signature: Signature

    @property
    def size(self) -> int:
        """In bytes."""
        return self.signature[2]


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
        names = [entry.name for entry in entries if entry.name.endswith(SUFFIX) and not entry.name.startswith(".")]
    files: dict[str, ListedFile] = {}
    ignored: dict[str, str] = {}
    for name in names:
        match _examined(root, name):
            case ListedFile() as listed:
                files[name] = listed
            case str(why):
                ignored[name] = why
            case _:
                pass
    return Listing(root, files, ignored)


def _examined(root: str, name: str) -> ListedFile | str | None:
    """What stands under a name: a file to read, or why it is ignored; None if it is gone."""
    path = f"{root}/{name}"
    for _ in range(TRIES):  # a ConfigMap's links lead for a moment to a folder that is already gone
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
    """Read a file that nobody changes meanwhile; None if it kept changing or is gone.

    Raises OSError: PermissionError is the file's own fault, any other (no descriptors left) the folder's or ours.
    """
    for _ in range(TRIES):
        try:
            # What was swapped for a link, a fifo or a device since it was listed is not followed, waited for or read.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ELOOP}:
                return None
            raise
        with os.fdopen(descriptor, "rb") as file:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                return None
            raw = file.read(min(before.st_size + 1, most_bytes))  # room is made for all that is asked for
            after = os.fstat(descriptor)
        if _signature(before) == _signature(after) and len(raw) == after.st_size:
            return raw, _signature(after)
    return None


# --- the index --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BatchFile:
    """A batch file as it was last read; `rows`, `cases`, `unusable` are of its last good version, if it ever had one.

    `signature` is None for a file that the next scan reads again whatever it looks like. `content` is a hash of its
    bytes, `modified_at` in seconds since 1970; of its `cases`, `unusable` many cannot be used.
    """

    signature: Signature | None
    modified_at: float
    content: int | None = None
    rows: Mapping[str, Row] | None = None
    cases: int = 0
    unusable: int = 0
    problem: str | None = None

    def is_being_written(self, now: float) -> bool:
        """Tell whether it does not parse, and changed so lately that it soon may."""
        return self.problem is not None and abs(now - self.modified_at) < WRITING_SECONDS


@dataclass(frozen=True, slots=True)
class FolderIndex:
    """All test cases of a folder; never changed, but followed by another.

    `holders` are names of files. `shared` holds equal expectations once.
    `bad_files` names, in order, the files that cannot be used as they are now.
    """

    files: Mapping[str, BatchFile] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    holders: Holders = field(default_factory=dict)
    shared: dict[Expectations, Expectations] = field(default_factory=dict)
    bad_files: tuple[str, ...] = ()

    def find(self, key: ExpectationsKey, now: float) -> TestCase | Poison:
        """Find a test case (contract.md, "Look-up"); raises Transient while its file is being written."""
        own_name = key.batch_id + SUFFIX
        own = self.files.get(own_name)
        if own is not None:
            row = None if own.rows is None else own.rows.get(key.test_id)
            if row is not None:
                # Without its name, which is the batch_id of the input.
                return verdict(row, "the batch's own file")
            if own.is_being_written(now):
                raise Transient("the batch's own file is being written")
            if own.rows is None:
                return poison("expectations_invalid", f"the batch's own file: {own.problem}")
        names = self.holders.get(key.test_id)
        if names is None:
            return self._not_found(own_name, now)
        return among(
            names_of(names),
            lambda name: verdict(_rows(self.files[name])[key.test_id], named([name])),
            "batch files",
        )

    def _not_found(self, own_name: str, now: float) -> Poison:
        bad = [name for name in self.bad_files if name != own_name]
        writing = [name for name in bad if self.files[name].is_being_written(now)]
        if writing:
            raise Transient(f"{named(writing)} is being written")
        unread = f", and {len(bad)} more cannot be read: {named(bad)}" if bad else ""
        return poison("expectations_not_found", f"none of {len(self.files) - len(bad)} batch files holds it{unread}")

    def expected_cases(self, batch_id: str) -> int | None:
        """How many test cases the batch of that name has, None if there is none."""
        own = self.files.get(batch_id + SUFFIX)
        return None if own is None or own.rows is None else own.cases

    def holds(self, key: ExpectationsKey) -> bool:
        """Tell whether the batch of that name itself holds the test case."""
        own = self.files.get(key.batch_id + SUFFIX)
        return own is not None and own.rows is not None and key.test_id in own.rows

    def problems(self) -> dict[str, tuple[str, object]]:
        """What to warn of, by file name; differs from an earlier one where a file has changed since."""
        told: dict[str, tuple[str, object]] = {name: (why, None) for name, why in self.ignored.items()}
        for name in self.bad_files:
            file = self.files[name]
            told[name] = (file.problem or "", (file.modified_at, file.content))
        return told

    def followed_by(self, listing: Listing, wall: Callable[[], float]) -> "FolderIndex":
        """The index of what a listing shows; only what has changed is read."""
        files: dict[str, BatchFile] = {}
        for name, listed in self._still_there(listing).items():
            known = self.files.get(name)
            unchanged = known is not None and known.signature == listed.signature
            files[name] = known if known is not None and unchanged else self._read(name, listed, wall)
        changed = {name for name in files.keys() | self.files.keys() if _differ(files.get(name), self.files.get(name))}
        if not changed:
            # Signatures and times may have: same answers, so the same dicts.
            return replace(self, files=files, ignored=listing.ignored)
        holders = self.holders.copy()
        for name in changed:
            move(holders, name, _rows(self.files.get(name)), _rows(files.get(name)))
        bad = tuple(sorted(name for name, file in files.items() if file.problem is not None))
        index = FolderIndex(files, listing.ignored, holders, self.shared, bad)
        return replace(index, shared=index._in_use()) if len(self.shared) > 2 * len(holders) + 1_000 else index

    def _still_there(self, listing: Listing) -> dict[str, ListedFile]:
        """The listing, and what it missed because it was replaced while the folder was being read."""
        files = dict(listing.files)
        for name in self.files.keys() - listing.files.keys() - listing.ignored.keys():
            listed = _examined(listing.root, name)
            if isinstance(listed, ListedFile):
                files[name] = listed
        return files

    def _read(self, name: str, listed: ListedFile, wall: Callable[[], float]) -> BatchFile:
        known = self.files.get(name, BatchFile(None, 0.0))
        at = listed.signature[0] / 1e9
        if listed.size > LARGEST_FILE_BYTES:
            problem = f"is larger than {LARGEST_FILE_BYTES // 2**20} MiB"
            return replace(known, signature=listed.signature, modified_at=at, content=None, problem=problem)
        try:
            found = read_whole(listed.path)
        except PermissionError:
            return replace(known, signature=None, modified_at=at, content=None, problem="may not be read")
        if found is None:
            return replace(known, signature=None, modified_at=wall(), content=None, problem="changed while it was read")
        raw, signature = found
        at, content = signature[0] / 1e9, _hash(raw)
        kept = signature if abs(wall() - at) >= SETTLED_SECONDS else None
        if content == known.content:
            return replace(known, signature=kept, modified_at=at)
        try:
            batch = parse_batch(parse_in_pieces(raw))
        except InvalidBatch as error:
            return replace(known, signature=kept, modified_at=at, content=content, problem=str(error))
        rows = {test_id: compact(row, self.shared) for test_id, row in rows_of(batch).items()}
        cases = case_count(batch)
        usable = sum(isinstance(row, TestCase) for row in rows.values())
        return BatchFile(kept, at, content, rows, cases, cases - usable)

    def _in_use(self) -> dict[Expectations, Expectations]:
        rows = (row for file in self.files.values() for row in _rows(file).values())
        return {row.expectations: row.expectations for row in rows if isinstance(row, TestCase)}


def _hash(raw: bytes) -> int:
    """Unlike Python's own, it lets other threads run meanwhile."""
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest())


def _differ(one: BatchFile | None, other: BatchFile | None) -> bool:
    if one is None or other is None:
        return True
    return one.rows is not other.rows or one.problem != other.problem


def _rows(file: BatchFile | None) -> Mapping[str, Row]:
    return {} if file is None or file.rows is None else file.rows


# --- the source -------------------------------------------------------------------------------------------------------


class FolderSource:
    """The ExpectationsSource of port.py over a folder of batch files.

    `clock` is monotonic and `wall` in seconds since 1970. `requests` counts keys by outcome.
    """

    name = "folder"

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.requests = no_requests()
        self._path = Path(path)
        self._clock = clock
        self._wall = wall
        self._sleep = sleep
        self._index = FolderIndex()
        self._answers: dict[ExpectationsKey, FoundExpectations] = {}
        self._preparer = Preparer()
        self._trouble: str | None = None
        self._scanning: asyncio.Task[None] | None = None
        # Scans are numbered: one that must have started after a call has a greater number than the last one begun.
        self._begun = 0
        self._finished = 0
        self._begun_at = self._next_at = clock()
        self._unanswered_since: float | None = None

    @property
    def unusable(self) -> tuple[str, ...]:
        """Names of the files, and of what only looks like one, that cannot be used as they are now, in order."""
        return tuple(sorted((*self._index.bad_files, *self._index.ignored)))

    async def start(self) -> None:
        """Read the folder; raises ConfigurationError if there is none or it cannot be read."""
        await self._scanned(self._begun + 1)
        if self._trouble is not None:
            raise ConfigurationError(
                f"{self._trouble}: let SAFE_V0_EXPECTATIONS name a folder of batch files (<batch_id>.json)"
            )
        if not self._index.files:
            _log.warning("the expectations folder holds no batch file", folder=shown(str(self._path)))

    async def find(self, keys: Sequence[ExpectationsKey]) -> Mapping[ExpectationsKey, Answer]:
        """Answer every key; what is not found is decided only by a scan that started after the call.

        Raises Transient while the folder is gone, or while a file that may hold a key is being written.
        """
        scan = self._begun + 1
        if self._is_due():
            await self._scanned(scan)
        answers: dict[ExpectationsKey, Answer] = {}
        try:
            missed = await self._answer(keys, answers)
            if missed:
                await self._scanned(scan)
                turns = Turns()
                for key in missed:
                    answers[key] = self._decided(key)
                    if turns.is_over:
                        await turns.next()
            self._raise_trouble()
        except Transient:
            self.requests["transient"] += len(keys)
            raise
        self.requests["found"] += len(keys) - len(missed)
        count(self.requests, [answers[key] for key in missed])
        return answers

    def trouble(self) -> str | None:
        """Say why look-ups cannot be answered; to be called in the event loop, where it has a stale view renewed."""
        now = self._clock()
        if self._unanswered_since is not None and now - self._unanswered_since > UNANSWERED_SECONDS:
            return f"the expectations folder has not answered for {now - self._unanswered_since:.0f} s"
        if self._scanning is None and now - self._begun_at > LOOK_AGAIN_SECONDS:
            self._begin_scan()
        return self._trouble

    async def stop(self) -> None:
        """Leave a scan that is under way to itself: its thread ends without any effect."""
        scanning = self._scanning
        if scanning is not None:
            scanning.cancel()
            await asyncio.wait({scanning})

    # --- answering

    async def _answer(
        self, keys: Sequence[ExpectationsKey], answers: dict[ExpectationsKey, Answer]
    ) -> list[ExpectationsKey]:
        """Answer from what is known now, and return the keys that a new scan must decide."""
        missed = []
        turns = Turns()
        for key in take_known(keys, self._answers, answers):
            if not self._is_found(key, answers):
                missed.append(key)
            if turns.is_over:
                await turns.next()
        return missed

    def _is_found(self, key: ExpectationsKey, answers: dict[ExpectationsKey, Answer]) -> bool:
        try:
            answer = self._decided(key)
        except Transient:
            return False
        if isinstance(answer, Poison):
            return False
        answers[key] = answer
        return True

    def _decided(self, key: ExpectationsKey) -> Answer:
        self._raise_trouble()
        case = self._index.find(key, self._wall())
        if isinstance(case, Poison):
            return case
        found = self._preparer.found(
            case, expected_cases=self._index.expected_cases(key.batch_id), in_batch=self._index.holds(key)
        )
        if len(self._answers) >= CACHED_ANSWERS:
            self._answers.clear()
        self._answers[key] = found
        return found

    def _raise_trouble(self) -> None:
        if self._trouble is not None:
            raise Transient(self._trouble)

    # --- scanning

    def _is_due(self) -> bool:
        if self._trouble is not None:
            return True
        now = self._clock()
        return self._scanning is None and now - self._begun_at >= SCAN_EVERY_SECONDS and now >= self._next_at

    async def _scanned(self, number: int) -> None:
        """Return when the scan of that number, or a later one, is over: callers share it."""
        while self._finished < number:
            await asyncio.shield(self._scanning or self._begin_scan())

    def _begin_scan(self) -> asyncio.Task[None]:
        self._scanning = asyncio.get_running_loop().create_task(self._scan(), name="scan of the expectations folder")
        return self._scanning

    async def _scan(self) -> None:
        try:
            rest = self._next_at - self._clock()
            if rest > 0:
                await self._sleep(rest)
            self._begun += 1
            self._begun_at = self._unanswered_since = self._clock()
            try:
                index, seconds = await asyncio.to_thread(self._look)
            except OSError as error:
                self._fail(error)
            else:
                self._adopt(index)
                pause = REST_AFTER_SCAN * seconds if seconds > QUICK_SCAN_SECONDS else 0.0
                self._next_at = self._clock() + pause
            self._finished = self._begun
        finally:
            self._unanswered_since = None
            self._scanning = None

    def _look(self) -> tuple[FolderIndex, float]:
        """Work for a thread: the new index, and the seconds that it took, without those of reading what has changed."""
        begun = self._clock()
        listing = list_folder(self._path)
        listed = self._clock()
        index = self._index.followed_by(listing, self._wall)
        compared = self._clock() if index.holders is self._index.holders else listed
        return index, compared - begun

    def _adopt(self, index: FolderIndex) -> None:
        before = self._index
        if before.holders and not index.holders:
            # A mount that has failed looks like this: what was there a moment ago is not a reason for dead letters.
            self._note_trouble("has lost all of its test cases")
            return
        self._index = index
        told = before.problems()
        for name, (why, change) in index.problems().items():
            if told.get(name) != (why, change):
                kept = "its last good version stays" if name in before.files else "its test cases are not there"
                _log.warning("a batch file cannot be used", file=shown(name), why=why, until_it_is_repaired=kept)
        if index.holders is not before.holders:
            self._answers.clear()
            _tell_unusable(before, index)
            _log.info("batch files were read", files=len(index.files), test_ids=len(index.holders))
        if self._trouble is not None:
            self._trouble = None
            _log.info("the expectations folder is back", folder=shown(str(self._path)))

    def _fail(self, error: OSError) -> None:
        self._note_trouble(f"cannot be read ({error.strerror})")

    def _note_trouble(self, what: str) -> None:
        trouble = f"the expectations folder {shown(str(self._path))} {what}"
        if trouble != self._trouble and self._finished:  # at start, the command itself says so
            _log.error("look-ups wait for the expectations folder", why=trouble)
        self._trouble = trouble


def _tell_unusable(before: FolderIndex, index: FolderIndex) -> None:
    """Name the files, of those that are new or have changed, whose test cases cannot all be used."""
    changed = [name for name, file in index.files.items() if file.unusable and _differ(before.files.get(name), file)]
    for name in sorted(changed)[:NAMED_AT_ONCE]:
        _log.warning(
            "test cases cannot be used: safe lint says why", file=shown(name), test_cases=index.files[name].unusable
        )
    if len(changed) > NAMED_AT_ONCE:
        _log.warning("more files have test cases that cannot be used", files=len(changed) - NAMED_AT_ONCE)
