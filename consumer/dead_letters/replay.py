"""`safe dead-letters replay`: sends dead letters again to where they came from, once their cause has been fixed.

It may be done twice: the same record again has the same event time and content, so that no summary moves.
"""

import asyncio
import hashlib
import sys
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from consumer.dead_letters.progress import reading
from consumer.dead_letters.routes import Routes
from consumer.dead_letters.selection import Selection
from consumer.dead_letters.topic import ReadableTopic, Strangers, chosen_letters, dead_letter_topic, described, spans_of
from consumer.kafka import Connection, Copy, Refused, Span, read_record, republishing
from consumer.settings import Settings
from consumer.text import named, printable
from consumer.wire.dead_letter import Letter, Name, Place, Source, sha256_of

_MOST_UNACKNOWLEDGED = 1_000
_CATCH_UP_SECONDS = 0.1

SourceReader = Callable[[Source], Awaitable[bytes | None]]
"""Reads the value of a record where it stood; None if it is not there any more."""


class Publisher(Protocol):
    """Takes copies into its buffer, in order within a partition."""

    async def publish(self, copy: Copy) -> "asyncio.Task[None]":
        """Take one, waiting for room; the task ends with the acknowledgement, or raises Refused."""
        ...


class Pace:
    """Limits how many pass per second; `clock` is monotonic, in seconds."""

    def __init__(
        self,
        per_second: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._seconds = 1 / per_second
        self._clock = clock
        self._sleep = sleep
        self._next = clock()

    async def wait(self) -> None:
        """Return when it is the next one's turn; a short delay is caught up with, a long one is not."""
        now = self._clock()
        self._next = max(self._next, now - _CATCH_UP_SECONDS)
        if self._next > now:
            await self._sleep(self._next - now)
        self._next += self._seconds


class Repeats:
    """Tells which letters hold the same record again.

    The same source comes twice in `at_least_once`; and what was sent again and failed again, once more each time. All
    of them stand in one partition of the topic: only that one's are remembered, 100 bytes for each.
    """

    def __init__(self) -> None:
        self._partition = -1
        self._seen: set[bytes] = set()

    def has_seen(self, letter: Letter) -> bool:
        """Whether its record came before in this partition."""
        if letter.place.partition != self._partition:
            self._partition = letter.place.partition
            self._seen.clear()
        identity = _identity(letter)
        if identity in self._seen:
            return True
        self._seen.add(identity)
        return False


def _identity(letter: Letter) -> bytes:
    source = letter.source
    told = (source.topic, source.partition, letter.timestamp, letter.record.key, letter.headers, letter.value_sha256)
    return hashlib.sha256(repr(told).encode("utf-8", "backslashreplace")).digest()


@dataclass(slots=True)
class Tried:
    """What has become of the letters so far.

    `acknowledged` counts; `reached` is the last letter before which none is left to do.
    """

    chosen: int = 0
    acknowledged: int = 0
    repeated: int = 0
    hopeless: int = 0
    reached: Place | None = None
    is_warned: bool = False
    topics: dict[str, None] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)
    named: set[Name] = field(default_factory=set)


class Replay:
    """Sends letters again, each when it is its turn; without a publisher it only says what would be sent."""

    def __init__(
        self,
        selection: Selection,
        routes: Routes,
        publisher: Publisher | None,
        pace: Pace,
        read_source: SourceReader,
        clock_ms: Callable[[], int],
    ) -> None:
        self.tried = Tried()
        self._selection = selection
        self._routes = routes
        self._publisher = publisher
        self._pace = pace
        self._read_source = read_source
        self._clock_ms = clock_ms
        self._repeats = Repeats()
        self._sent: deque[tuple[Letter, asyncio.Task[None]]] = deque()

    async def run(self, topic: ReadableTopic, spans: Sequence[Span], advance: Callable[[int], None]) -> None:
        """Send what there is in these spans: what fails again meanwhile stands behind their ends."""
        strangers = Strangers()
        async with chosen_letters(topic, spans, self._selection, strangers, advance) as letters:
            async for letter in letters:
                await self._one(letter)
        await self._settle(leaving=0)
        sentence = strangers.sentence()
        if sentence is not None:
            _say(sentence)

    async def _one(self, letter: Letter) -> None:
        tried = self.tried
        tried.named |= {name for name in (letter.place, letter.source) if name in self._selection.names}
        if letter.group != self._routes.group and not self._selection.names:
            tried.others[letter.group] += 1
            return
        objection = self._routes.objection(letter)
        if objection is None and self._repeats.has_seen(letter):
            tried.repeated += 1
            return
        tried.chosen += 1
        if objection is None:
            await self._try(letter)
        else:
            self._give_up(letter, objection)

    async def _try(self, letter: Letter) -> None:
        value = letter.record.value
        if letter.omitted is not None:
            value = await self._read_source(letter.source)
            if sha256_of(value) != letter.omitted.sha256:
                self._give_up(letter, f"its value was too large, and it is not in {letter.source} any more")
                return
        now_ms = self._clock_ms()
        copy = self._routes.copy(letter, value, now_ms)
        if self._routes.is_outlived(copy, now_ms) and not self.tried.is_warned:
            self.tried.is_warned = True
            _say(
                f"warning: {letter.place} is older than {copy.topic} keeps records (retention.ms), and others may be: "
                "the broker may remove them before they are read, so let a worker run"
            )
        await self._send(letter, copy)

    async def _send(self, letter: Letter, copy: Copy) -> None:
        self.tried.topics[copy.topic] = None
        if self._publisher is None:
            print(f"{letter.place!s:<10}  {printable(letter.reason):<22}  to {copy.topic}/{copy.partition}")
            return
        await self._pace.wait()
        self._sent.append((letter, await self._publisher.publish(copy)))
        await self._settle(leaving=_MOST_UNACKNOWLEDGED)

    def _give_up(self, letter: Letter, why: str) -> None:
        self.tried.hopeless += 1
        _say(f"{letter.place} cannot be sent again: {why}")

    async def _settle(self, *, leaving: int) -> None:
        """Take note of the acknowledgements that are there, and wait until no more than this many are outstanding."""
        while self._sent and (self._sent[0][1].done() or len(self._sent) > leaving):
            letter, acknowledgement = self._sent[0]
            try:
                await acknowledgement
                self.tried.acknowledged += 1
            except Refused as refusal:
                self._give_up(letter, str(refusal))
            self._sent.popleft()
            self.tried.reached = letter.place


# --- the command ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """Which dead letters are to be sent again, and how many a second."""

    selection: Selection
    per_second: int = 500
    dry_run: bool = False


async def replay_letters(settings: Settings, request: ReplayRequest) -> int:
    """Send dead letters again and return the exit code: 0, or 1 if some could not be.

    Raises ConfigurationError, Transient or Fatal; what has been acknowledged till then is said before.
    """
    selection = request.selection
    connection = Connection.from_settings(settings)
    routes = Routes.of(settings, await described(settings, [settings.input_topic, settings.scored_topic]))
    async with AsyncExitStack() as stack:
        topic = await stack.enter_async_context(dead_letter_topic(settings))
        # Taken before anything is sent: what fails again is not chased in a circle.
        spans = await spans_of(topic, selection)
        publisher = None if request.dry_run else await stack.enter_async_context(republishing(connection))
        replay = Replay(
            selection, routes, publisher, Pace(request.per_second), _source_reader(connection, routes), _now_ms
        )
        for remark in routes.remarks:
            _say(f"warning: {remark}")
        with reading(spans, quiet=request.dry_run) as advance:
            async with telling_how_to_go_on(replay, selection):
                await replay.run(topic, spans, advance)
    return conclude(replay.tried, request)


async def count_letters(settings: Settings, selection: Selection) -> int:
    """How many dead letters a replay would choose, whether or not each can be sent."""
    routes = Routes(settings.kafka_group_id, {})
    repeats = Repeats()
    async with dead_letter_topic(settings) as topic:
        spans = await spans_of(topic, selection)
        count = 0
        with reading(spans) as advance:
            async with chosen_letters(topic, spans, selection, advance=advance) as letters:
                async for letter in letters:
                    count += letter.group == routes.group and not repeats.has_seen(letter)
    return count


def _source_reader(connection: Connection, routes: Routes) -> SourceReader:
    partitions = {route.topic: route.partitions for route in routes.by_stage.values()}

    async def read(source: Source) -> bytes | None:
        if source.partition >= partitions[source.topic]:  # asked for, it would be waited for
            return None
        record = await read_record(connection, *source)
        return None if record is None else record.value

    return read


@asynccontextmanager
async def telling_how_to_go_on(replay: Replay, selection: Selection) -> AsyncIterator[None]:
    """Whatever stops a replay, a signal too: say how far it came."""
    try:
        yield
    except BaseException:  # Ctrl-C too; it goes on its way
        reached = replay.tried.reached
        again = "" if reached is None or selection.names else f"; --after {reached} goes on where this one stopped"
        _say(f"{replay.tried.acknowledged} were acknowledged; start again: to send one twice changes no summary{again}")
        raise


def conclude(tried: Tried, request: ReplayRequest) -> int:
    """Say what has become of the letters and give the exit code."""
    missing = sorted(str(name) for name in request.selection.names - tried.named)
    if tried.repeated:
        _say(f"{tried.repeated} more hold the same record as another letter: it is sent once")
    if tried.others:
        groups = named(f"{group} ({count})" for group, count in tried.others.most_common())
        _say(f"left alone: {sum(tried.others.values())} of other groups, {groups}; --group-id chooses one")
    if missing:
        _say(f"there is no dead letter {named(missing)}")
    print(_conclusion(tried, dry_run=request.dry_run), file=sys.stderr)
    return 1 if tried.hopeless or missing else 0


def _conclusion(tried: Tried, *, dry_run: bool) -> str:
    done = tried.chosen - tried.hopeless if dry_run else tried.acknowledged
    verb = "would replay" if dry_run else "replayed"
    letters = f"{tried.chosen} dead letter{'' if tried.chosen == 1 else 's'}"
    return f"{verb} {done} of {letters}" + (f" to {' and '.join(tried.topics)}" if tried.topics else "")


def _say(sentence: str) -> None:
    print(f"safe: {printable(sentence)}", file=sys.stderr)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
