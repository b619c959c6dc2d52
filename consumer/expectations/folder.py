"""A folder of batch files as factory-cli writes them, `<batch_id>.json`, kept fresh while asked (contract, section 2).

A scan lists the folder and reads what has changed, in a thread; it makes a new FolderIndex, and look-ups go by dicts
alone: no path is ever built from an id.
"""

import asyncio
import errno
import json
import os
import stat
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import orjson
import structlog

from consumer.errors import ConfigurationError, Poison, Reason, Transient
from consumer.ports import ExpectationsKey, FoundExpectations
from safe_core import (
    BadTestCase,
    Batch,
    Expectations,
    InvalidBatch,
    PreparedExpectations,
    TestCase,
    parse_batch,
    prepare,
)

SUFFIX = ".json"
SCAN_EVERY_SECONDS = 1.0
QUICK_SCAN_SECONDS = 0.02
"""A listing that takes no longer may be repeated at once; else scans take at most a tenth of the time."""
REST_AFTER_SCAN = 10
WRITING_SECONDS = 5.0
"""So long after its last change a file that does not parse counts as being written."""
SETTLED_SECONDS = 2.0
"""A file younger than this may change again without a new time stamp (they tick coarsely), so it is read once more."""
UNANSWERED_SECONDS = 30.0
LOOK_AGAIN_SECONDS = 5.0
TRIES = 3
CACHED_ANSWERS = 100_000

_DETAIL_BYTES = 512
_NAMED = 3
_LONGEST_NAME = 60

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger("safe.expectations")


# --- a batch file's test cases ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TwiceDifferently:
    """A test_id that one batch file holds twice with different expectations, at these places of `test_cases`."""

    first: int
    second: int


Row = TestCase | BadTestCase | TwiceDifferently
"""What a batch file says of a test_id; a TestCase is the only answer that can be scored."""


def rows_of(batch: Batch) -> dict[str, Row]:
    """What a batch says of each of its test_ids: twice with equal expectations is one case, the first."""
    rows: dict[str, Row] = {}
    places: dict[str, int] = {}
    for place, case in enumerate(batch.cases):
        if case.test_id is None:
            continue
        held = rows.get(case.test_id)
        if held is None:
            rows[case.test_id], places[case.test_id] = case, place
        else:
            rows[case.test_id] = _merged(held, case, TwiceDifferently(places[case.test_id], place))
    return rows


def _merged(held: Row, case: TestCase | BadTestCase, twice: TwiceDifferently) -> Row:
    if isinstance(held, BadTestCase) or isinstance(case, BadTestCase):
        return held if isinstance(held, BadTestCase) else case
    if isinstance(held, TwiceDifferently) or held.expectations == case.expectations:
        return held
    return twice


def count_of(batch: Batch) -> int:
    """How many test cases a batch has: distinct test_ids, and each entry without a usable one."""
    test_ids = {case.test_id for case in batch.cases if case.test_id is not None}
    return len(test_ids) + sum(case.test_id is None for case in batch.cases)


def verdict(row: Row, where: str) -> TestCase | Poison:
    """The test case, or why it cannot be scored; `where` names the batch file."""
    match row:
        case BadTestCase():
            return poison("expectations_invalid", f"{where}, test_cases[{row.position}]: {row.problem}")
        case TwiceDifferently():
            places = f"test_cases[{row.first}] and [{row.second}]"
            return poison("expectations_ambiguous", f"{where} holds it twice with different expectations: {places}")
        case _:
            return row


def poison(reason: Reason, detail: str) -> Poison:
    """Poison whose detail fits into a header."""
    return Poison(reason, detail.encode()[:_DETAIL_BYTES].decode(errors="ignore"))


def shown(text: str) -> str:
    """Text as a terminal, log or header may carry it: what does not print is escaped."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def named(names: Iterable[str], most: int = _NAMED, longest: int = _LONGEST_NAME) -> str:
    """A few names, cut to their `longest` first characters, and how many more there are."""
    listed = list(names)
    texts = [shown(name if len(name) <= longest else name[: longest - 1] + "…") for name in listed[:most]]
    return ", ".join(texts) + (f" and {len(listed) - most} more" if len(listed) > most else "")


# --- listing and reading ----------------------------------------------------------------------------------------------

Signature = tuple[int, int, int, int, int]
"""What changes when a file does: times of modification and of change (ns), size, inode, device."""


def _signature(status: os.stat_result) -> Signature:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev


class ListedFile(NamedTuple):
    """A batch file that may be opened: `path` holds no link any more."""

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


def read_whole(path: str) -> tuple[bytes, Signature] | None:
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
            raw = file.read()
            after = os.fstat(descriptor)
        if _signature(before) == _signature(after) and len(raw) == after.st_size:
            return raw, _signature(after)
    return None


def parse_document(raw: bytes) -> object:
    """Parse a batch file's bytes as JSON; raises InvalidBatch with words to follow "<file>: "."""
    try:
        return _json(raw)
    except json.JSONDecodeError as error:
        raise InvalidBatch(f"not valid JSON (line {error.lineno})") from error
    except UnicodeDecodeError as error:
        raise InvalidBatch("not UTF-8") from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, a list 10,000 deep
        raise InvalidBatch("not JSON that can be read") from error


def _json(raw: bytes) -> object:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        # Python's own parser lets pass what harms one case at most: a lone surrogate, a NaN that nobody reads.
        return json.loads(raw.decode("utf-8"))


# --- the index --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BatchFile:
    """A batch file as it was last read; `rows` and `cases` are of its last good version, if it ever had one.

    `signature` is None for a file that the next scan reads again whatever it looks like. `content` is a hash of its
    bytes, `modified_at` in seconds since 1970.
    """

    signature: Signature | None
    modified_at: float
    content: int | None = None
    rows: Mapping[str, Row] | None = None
    cases: int = 0
    problem: str | None = None

    def is_being_written(self, now: float) -> bool:
        """Tell whether it does not parse, and changed so lately that it soon may."""
        return self.problem is not None and abs(now - self.modified_at) < WRITING_SECONDS


@dataclass(frozen=True, slots=True)
class FolderIndex:
    """All test cases of a folder; never changed, but followed by another.

    `holders`: test_id → name of the file that holds it, or the names in order. `shared` holds equal expectations once.
    `bad_files` names, in order, the files that cannot be used as they are now.
    """

    files: Mapping[str, BatchFile] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    holders: dict[str, str | tuple[str, ...]] = field(default_factory=dict)
    shared: dict[Expectations, Expectations] = field(default_factory=dict)
    bad_files: tuple[str, ...] = ()

    def find(self, key: ExpectationsKey, now: float) -> TestCase | Poison:
        """Find a test case by the contract's section 2; raises Transient while its file is being written."""
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
        return self._among((names,) if isinstance(names, str) else names, key.test_id)

    def _among(self, names: tuple[str, ...], test_id: str) -> TestCase | Poison:
        answers = [verdict(_rows(self.files[name])[test_id], named([name])) for name in names]
        for answer in answers:
            if isinstance(answer, Poison):
                return answer
        cases = [answer for answer in answers if isinstance(answer, TestCase)]
        if any(case.expectations != cases[0].expectations for case in cases):
            detail = f"{len(names)} batch files hold it with different expectations: {named(names)}"
            return poison("expectations_ambiguous", detail)
        return cases[0]

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
            _move(holders, name, _rows(self.files.get(name)), _rows(files.get(name)))
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
        try:
            found = read_whole(listed.path)
        except PermissionError:
            return replace(known, signature=None, modified_at=at, content=None, problem="may not be read")
        if found is None:
            return replace(known, signature=None, modified_at=wall(), content=None, problem="changed while it was read")
        raw, signature = found
        at, content = signature[0] / 1e9, hash(raw)
        kept = signature if abs(wall() - at) >= SETTLED_SECONDS else None
        if content == known.content:
            return replace(known, signature=kept, modified_at=at)
        try:
            batch = parse_batch(parse_document(raw))
        except InvalidBatch as error:
            return replace(known, signature=kept, modified_at=at, content=content, problem=str(error))
        rows = {test_id: self._compact(row) for test_id, row in rows_of(batch).items()}
        return BatchFile(kept, at, content, rows, count_of(batch))

    def _compact(self, row: Row) -> Row:
        if not isinstance(row, TestCase):
            return row
        # Ids and archetypes repeat from case to case, and so may expectations.
        return TestCase(
            row.test_id,
            row.concern_id and sys.intern(row.concern_id),
            row.archetype and sys.intern(row.archetype),
            row.metric_id and sys.intern(row.metric_id),
            self.shared.setdefault(row.expectations, row.expectations),
        )

    def _in_use(self) -> dict[Expectations, Expectations]:
        rows = (row for file in self.files.values() for row in _rows(file).values())
        return {row.expectations: row.expectations for row in rows if isinstance(row, TestCase)}


def _differ(one: BatchFile | None, other: BatchFile | None) -> bool:
    if one is None or other is None:
        return True
    return one.rows is not other.rows or one.problem != other.problem


def _rows(file: BatchFile | None) -> Mapping[str, Row]:
    return {} if file is None or file.rows is None else file.rows


def _move(
    holders: dict[str, str | tuple[str, ...]], name: str, before: Mapping[str, Row], after: Mapping[str, Row]
) -> None:
    """Make `name` a holder of `after`, and no longer of the rest of `before`."""
    for test_id in before.keys() - after.keys():
        left = tuple(other for other in _names(holders[test_id]) if other != name)
        if left:
            holders[test_id] = left if len(left) > 1 else left[0]
        else:
            del holders[test_id]
    for test_id in after.keys() - before.keys():
        others = holders.get(test_id)
        holders[test_id] = name if others is None else tuple(sorted((*_names(others), name)))


def _names(holder: str | tuple[str, ...]) -> tuple[str, ...]:
    return (holder,) if isinstance(holder, str) else holder


# --- the source -------------------------------------------------------------------------------------------------------


class FolderSource:
    """The ExpectationsSource of ports.py over a folder of batch files.

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
        self.requests = dict.fromkeys(("found", "not_found", "ambiguous", "invalid", "transient"), 0)
        self._path = Path(path)
        self._clock = clock
        self._wall = wall
        self._sleep = sleep
        self._index = FolderIndex()
        self._answers: dict[ExpectationsKey, FoundExpectations] = {}
        self._prepared: dict[Expectations, PreparedExpectations] = {}
        self._trouble: str | None = None
        self._scanning: asyncio.Task[None] | None = None
        # Scans are numbered: one that must have started after a call has a greater number than the last one begun.
        self._begun = 0
        self._finished = 0
        self._begun_at = self._next_at = clock()
        self._unanswered_since: float | None = None

    @property
    def bad_files(self) -> tuple[str, ...]:
        """Names of the files that cannot be used as they are now, in order."""
        return self._index.bad_files

    async def start(self) -> None:
        """Read the folder; raises ConfigurationError if there is none or it cannot be read."""
        await self._scanned(self._begun + 1)
        if self._trouble is not None:
            raise ConfigurationError(
                f"{self._trouble}: let SAFE_V0_EXPECTATIONS name a folder of batch files (<batch_id>.json)"
            )
        if not self._index.files:
            _log.warning("the expectations folder holds no batch file", folder=shown(str(self._path)))

    async def find(self, keys: Sequence[ExpectationsKey]) -> Mapping[ExpectationsKey, FoundExpectations | Poison]:
        """Answer every key; what is not found is decided only by a scan that started after the call.

        Raises Transient while the folder is gone, or while a file that may hold a key is being written.
        """
        scan = self._begun + 1
        if self._is_due():
            await self._scanned(scan)
        answers: dict[ExpectationsKey, FoundExpectations | Poison] = {}
        try:
            missed = self._answer(keys, answers)
            if missed:
                await self._scanned(scan)
                for key in missed:
                    answers[key] = self._decided(key)
            self._raise_trouble()
        except Transient:
            self.requests["transient"] += len(keys)
            raise
        self.requests["found"] += len(keys) - len(missed)
        for key in missed:
            answer = answers[key]
            outcome = answer.reason.removeprefix("expectations_") if isinstance(answer, Poison) else "found"
            self.requests[outcome] += 1
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

    def _answer(
        self, keys: Sequence[ExpectationsKey], answers: dict[ExpectationsKey, FoundExpectations | Poison]
    ) -> list[ExpectationsKey]:
        """Answer from what is known now, and return the keys that a new scan must decide."""
        known = self._answers
        missed = []
        for key in keys:
            answer = known.get(key)
            if answer is None:
                missed.append(key)
            else:
                answers[key] = answer
        return [key for key in missed if not self._is_found(key, answers)] if missed else missed

    def _is_found(self, key: ExpectationsKey, answers: dict[ExpectationsKey, FoundExpectations | Poison]) -> bool:
        try:
            answer = self._decided(key)
        except Transient:
            return False
        if isinstance(answer, Poison):
            return False
        answers[key] = answer
        return True

    def _decided(self, key: ExpectationsKey) -> FoundExpectations | Poison:
        self._raise_trouble()
        case = self._index.find(key, self._wall())
        if isinstance(case, Poison):
            return case
        found = FoundExpectations(
            prepared=self._prepare(case.expectations),
            concern_id=case.concern_id,
            archetype=case.archetype,
            metric_id=case.metric_id,
            expected_cases=self._index.expected_cases(key.batch_id),
            in_batch=self._index.holds(key),
        )
        if len(self._answers) >= CACHED_ANSWERS:
            self._answers.clear()
        self._answers[key] = found
        return found

    def _prepare(self, expectations: Expectations) -> PreparedExpectations:
        prepared = self._prepared.get(expectations)
        if prepared is None:
            if len(self._prepared) >= CACHED_ANSWERS:
                self._prepared.clear()
            prepared = self._prepared[expectations] = prepare(expectations)
        return prepared

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
                index, listing_seconds = await asyncio.to_thread(self._look)
            except OSError as error:
                self._fail(error)
            else:
                self._adopt(index)
                pause = REST_AFTER_SCAN * listing_seconds if listing_seconds > QUICK_SCAN_SECONDS else 0.0
                self._next_at = self._clock() + pause
            self._finished = self._begun
        finally:
            self._unanswered_since = None
            self._scanning = None

    def _look(self) -> tuple[FolderIndex, float]:
        """Work for a thread: the new index, and the seconds that listing alone took."""
        begun = self._clock()
        listing = list_folder(self._path)
        seconds = self._clock() - begun
        return self._index.followed_by(listing, self._wall), seconds

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
            _log.info("batch files were read", files=len(index.files), test_ids=len(index.holders))
        if self._trouble is not None:
            self._trouble = None
            _log.info("the expectations folder is back", folder=shown(str(self._path)))

    def _fail(self, error: OSError) -> None:
        self._note_trouble(f"cannot be read ({error.strerror})")

    def _note_trouble(self, what: str) -> None:
        trouble = f"the expectations folder {shown(str(self._path))} {what}"
        if trouble != self._trouble:
            _log.error("look-ups wait for the expectations folder", why=trouble)
        self._trouble = trouble
