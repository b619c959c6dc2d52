"""`safe dead-letters replay`: sends dead letters again to where they came from, once their cause has been fixed.

It may be done twice: the same record has the same event time and content each time, so no summary changes.
"""

import asyncio
import hashlib
import sys
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from functools import partial

from consumer.dead_letters.selection import Selection
from consumer.dead_letters.targets import Targets
from consumer.dead_letters.topic import ForeignRecords, chosen_letters, dead_letter_topic
from consumer.exit_codes import EXIT_FAIL, EXIT_OK
from consumer.kafka.connection import Connection
from consumer.kafka.publisher import Refused, Republisher, republishing
from consumer.kafka.reader import TopicScan, read_record
from consumer.kafka.topics import describe_topics
from consumer.settings import Settings
from consumer.terminal import print_message
from consumer.text import count_of, named, printable
from consumer.wire.dead_letter import Letter, LetterId, Name, sha256_of
from consumer.wire.record import Record
from consumer.wire.times import now_ms

_MOST_UNACKNOWLEDGED = 1_000
_CATCH_UP_SECONDS = 0.1

ReadRecord = Callable[[str, int, int], Awaitable[Record | None]]
"""Reads the record at a topic, partition and offset; None if it is not there any more."""


@dataclass(slots=True)
class Pace:
    """Limits how many pass per second; `clock` is monotonic, in seconds."""

    per_second: int
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _next: float = field(init=False)

    def __post_init__(self) -> None:
        self._next = self.clock()

    async def wait(self) -> None:
        """Wait until the next one may pass; after a delay, at most a tenth of a second is caught up."""
        now = self.clock()
        self._next = max(self._next, now - _CATCH_UP_SECONDS)
        if self._next > now:
            await self.sleep(self._next - now)
        self._next += 1 / self.per_second


@dataclass(slots=True)
class Repeats:
    """Recognises letters that hold the same record as an earlier letter.

    With `at_least_once` a record may become a dead letter twice, and one that is sent again and fails again does. All
    letters of a record are in one partition of the topic, so only one partition's are remembered, in 100 bytes each.
    """

    _partition: int = -1
    _seen: set[bytes] = field(default_factory=set)

    def has_seen(self, letter: Letter) -> bool:
        """Whether an earlier letter of this partition holds the same record."""
        if letter.id.partition != self._partition:
            self._partition = letter.id.partition
            self._seen.clear()
        record, source = letter.record, letter.source
        content = (source.topic, source.partition, letter.timestamp, record.key, letter.headers, letter.value_sha256)
        identity = hashlib.sha256(repr(content).encode("utf-8", "backslashreplace")).digest()
        is_repeated = identity in self._seen
        self._seen.add(identity)
        return is_repeated


@dataclass(slots=True)
class Outcome:
    """What has become of the letters so far.

    The numbers count letters, and every letter up to `reached` is done. `found` are the selected names that exist.
    """

    chosen: int = 0
    acknowledged: int = 0
    repeated: int = 0
    failed: int = 0
    reached: LetterId | None = None
    topics: dict[str, None] = field(default_factory=dict)
    other_groups: Counter[str] = field(default_factory=Counter)
    found: set[Name] = field(default_factory=set)


@dataclass(slots=True)
class Replay:
    """Sends letters again, at the given pace; without a publisher it only prints what would be sent."""

    selection: Selection
    targets: Targets
    publisher: Republisher | None
    pace: Pace
    read_source: ReadRecord
    clock_ms: Callable[[], int] = now_ms
    outcome: Outcome = field(default_factory=Outcome)
    _repeats: Repeats = field(default_factory=Repeats)
    _sent: deque[tuple[Letter, asyncio.Task[None]]] = field(default_factory=deque)
    _has_warned: bool = False

    async def run(self, topic: TopicScan) -> None:
        """Send the letters that the topic holds now; if anything stops it, a signal too, say how to continue."""
        foreign = ForeignRecords()
        letters = chosen_letters(topic, self.selection, foreign, prints_rows=self.publisher is None)
        try:
            async with aclosing(letters):
                async for letter in letters:
                    await self._take(letter)
            await self._settle(leaving=0)
        except BaseException:  # Ctrl-C too, which then ends the command as usual
            self._say_how_to_continue()
            raise
        if remark := foreign.remark():
            print_message(remark)

    def _say_how_to_continue(self) -> None:
        count, reached = self.outcome.acknowledged, None if self.selection.names else self.outcome.reached
        after = f", or run it with --after {reached} to continue where it stopped" if reached else ""
        print_message(
            f"sent {count_of(count, 'dead letter')} before the command stopped; run it again (sending a dead letter "
            f"twice changes no summary){after}"
        )

    async def _take(self, letter: Letter) -> None:
        outcome, names = self.outcome, self.selection.names
        outcome.found |= names & {letter.id, letter.source}
        if letter.group != self.targets.group and not names:
            outcome.other_groups[letter.group] += 1
            return
        objection = self.targets.objection(letter)
        if objection is None and self._repeats.has_seen(letter):
            outcome.repeated += 1
            return
        outcome.chosen += 1
        if objection is None:
            await self._send(letter)
        else:
            self._give_up(letter, objection)

    async def _send(self, letter: Letter) -> None:
        value = letter.record.value
        if letter.omitted is not None:
            source = await self.read_source(*letter.source) if self.targets.has_partition(letter) else None
            value = None if source is None else source.value
            if sha256_of(value) != letter.omitted.sha256:
                self._give_up(
                    letter,
                    f"its value was too large for a dead letter, and {letter.source} no longer holds it",
                )
                return
        # It failed at a time of the brokers: where our own clock is behind that, it is wrong.
        at_ms = max(self.clock_ms(), letter.failed_at)
        copy = self.targets.copy(letter, value, at_ms)
        if not self._has_warned and self.targets.is_expired(letter, at_ms):
            self._has_warned = True
            print_message(
                f"warning: {letter.id} is older than the retention of {copy.topic} (retention.ms), and other "
                "dead letters may be too. The broker may remove them before they are read: keep a worker running"
            )
        self.outcome.topics[copy.topic] = None
        if self.publisher is None:
            print(f"{letter.id!s:<10}  {printable(letter.reason):<22}  to {copy.topic}/{copy.partition}")
            return
        await self.pace.wait()
        self._sent.append((letter, await self.publisher.publish(copy)))
        await self._settle(leaving=_MOST_UNACKNOWLEDGED)

    def _give_up(self, letter: Letter, why: str) -> None:
        self.outcome.failed += 1
        print_message(f"{letter.id} cannot be sent again: {why}")

    async def _settle(self, *, leaving: int) -> None:
        """Count the acknowledgements that have arrived, and wait until at most this many are outstanding."""
        while self._sent and (self._sent[0][1].done() or len(self._sent) > leaving):
            letter, acknowledgement = self._sent[0]
            try:
                await acknowledgement
                self.outcome.acknowledged += 1
            except Refused as refusal:
                self._give_up(letter, str(refusal))
            self._sent.popleft()
            self.outcome.reached = letter.id

    def conclude(self) -> int:
        """Say what has become of the letters and give the exit code: 1 if one was not sent or not found."""
        outcome, is_dry_run = self.outcome, self.publisher is None
        if outcome.repeated:
            print_message(
                f"left out {count_of(outcome.repeated, 'dead letter')}, because another one holds the same record"
            )
        if outcome.other_groups:
            groups = named(f"{group} ({count})" for group, count in outcome.other_groups.most_common())
            print_message(
                f"skipped {count_of(outcome.other_groups.total(), 'dead letter')} of other groups: {groups}; "
                "--group-id chooses a group"
            )
        missing = sorted(str(name) for name in self.selection.names - outcome.found)
        if missing:
            print_message(f"there is no dead letter {named(missing)}")
        done = outcome.chosen - outcome.failed if is_dry_run else outcome.acknowledged
        where = f" to {' and '.join(outcome.topics)}" if outcome.topics else ""
        verb = "would replay" if is_dry_run else "replayed"
        print(f"{verb} {done} of {count_of(outcome.chosen, 'dead letter')}{where}", file=sys.stderr)
        return EXIT_FAIL if outcome.failed or missing else EXIT_OK


# --- the command ------------------------------------------------------------------------------------------------------


async def replay_letters(settings: Settings, selection: Selection, *, per_second: int, dry_run: bool) -> int:
    """Send dead letters again and return the exit code: 0, or 1 if some could not be sent.

    Raises ConfigurationError, Transient or Fatal, having said how many have been acknowledged by then.
    """
    connection = Connection.from_settings(settings)
    targets = Targets.of(settings, await describe_topics(settings, [settings.input_topic, settings.scored_topic]))
    async with AsyncExitStack() as stack:
        topic = await stack.enter_async_context(dead_letter_topic(settings))
        publisher = None if dry_run else await stack.enter_async_context(republishing(connection))
        replay = Replay(selection, targets, publisher, Pace(per_second), partial(read_record, connection))
        for warning in targets.warnings():
            print_message(f"warning: {warning}")
        await replay.run(topic)
    return replay.conclude()


async def count_letters(settings: Settings, selection: Selection) -> int:
    """How many dead letters of the group a replay would choose, whether or not each can be sent."""
    repeats, count = Repeats(), 0
    async with (
        dead_letter_topic(settings) as topic,
        aclosing(chosen_letters(topic, selection, ForeignRecords())) as letters,
    ):
        async for letter in letters:
            count += letter.group == settings.kafka_group_id and not repeats.has_seen(letter)
    return count
