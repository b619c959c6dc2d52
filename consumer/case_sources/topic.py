"""A compacted topic of test cases: read from its beginning to its end, then followed.

One task reads records and folds them, in a thread, into a TopicIndex; look-ups only use its dicts. What the index does
not settle is decided once it has reached the end that the topic had after the call.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import structlog
from typing_extensions import override

from consumer.backoff import Backoff
from consumer.case_sources.base import LOOK_AGAIN_IN_TROUBLE_SECONDS, LOOK_AGAIN_SECONDS, IndexedSource, cancel
from consumer.case_sources.source import Answer, ExpectationsKey
from consumer.case_sources.topic_index import Survey, TopicIndex
from consumer.errors import ConfigurationError, Fatal, SafeError, Transient
from consumer.kafka.table_reader import TableSlice

ASK_EVERY_SECONDS = 0.2
"""The end of the topic is not asked for more often than this, however many callers wait for it."""
PATIENCE_SECONDS = 5.0
"""How long a call waits for the topic before it is told to come again."""
FIRST_REST_SECONDS = 0.5
LONGEST_REST_SECONDS = 10.0
NAMED_AT_ONCE = 20
"""One look at the topic names this many unusable records in the log, and counts the rest."""

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger("safe.expectations")


class Table(Protocol):
    """Reads a topic, of transactions only what is committed; consumer.kafka has the real one.

    Every method raises Transient where the brokers do not answer in time, and Fatal where they never will.
    """

    async def open(self) -> Mapping[int, int]:
        """Begin at the beginning, also after a failure; returns where each partition ends, nothing for no topic."""
        ...

    async def poll(self) -> TableSlice:
        """Give what has come since, at once if there is something; waits for half a second at most."""
        ...

    async def ends(self) -> Mapping[int, int]:
        """Ask where each partition ends, open transactions included; nothing if there is no such topic."""
        ...

    async def close(self) -> None:
        """Let go of the brokers; may be called twice."""
        ...


class TopicSource(IndexedSource):
    """The ExpectationsSource of source.py over a compacted topic; to look at it is to ask for its end.

    `clock` is monotonic. While the brokers are away, what is known is answered. find() raises Transient until the topic
    has been read to its end, while it is gone or has become empty, and where its end cannot be asked for.
    """

    name = "topic"
    unanswered_seconds = 5.0
    may_use_other_batches = False

    def __init__(
        self,
        topic: str,
        table: Table,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        super().__init__(f"the topic {topic}", clock, sleep)
        self.unusable: tuple[str, ...] = ()
        """The batches of the records that cannot be used as they are now, in order; the log has their keys."""
        self._topic = topic
        self._table = table
        self._patience_seconds = patience_seconds
        self._following: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._backoff = Backoff(FIRST_REST_SECONDS, LONGEST_REST_SECONDS)

        # What look-ups are answered from; not `_settled` while it is changed, or shows a part of a transaction.
        self._index: TopicIndex | None = None
        self._settled = False
        self._positions: Mapping[int, int] = {}
        self._had_cases = False
        self._problems: Mapping[str, str] = {}

        # What is being read: the same index while it is followed.
        self._reading = TopicIndex()
        self._must_reread = False
        self._is_held_up = False

        # Why the topic cannot be read at the moment, why it never can be, and why its end cannot be asked for.
        self._trouble: str | None = None
        self._fatal: Fatal | None = None
        self._unasked: str | None = None
        self._ends: Mapping[int, int] = {}

    async def start(self) -> None:
        """Begin to read, and wait a little for the end of a small topic; raises ConfigurationError if there is none."""
        self._following = asyncio.get_running_loop().create_task(self._follow(), name="reading the test cases")
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience_seconds):
                while self._index is None and self._fatal is None and self._doubt is None:
                    await self._news.wait()
        if self._fatal is not None:
            raise self._fatal
        if self._index is None and self._doubt is not None:
            raise ConfigurationError(
                f"{self._doubt}: `safe topics create` makes the topic that SAFE_V0_EXPECTATIONS names, and "
                "`safe publish-cases` fills it"
            )

    def trouble(self) -> str | None:
        """Say why look-ups cannot be answered; to be called in the event loop, where it has the topic looked at."""
        if self._index is not None:
            self._look_again(LOOK_AGAIN_SECONDS if self._unasked is None else LOOK_AGAIN_IN_TROUBLE_SECONDS)
        trouble = (str(self._fatal) if self._fatal else None) or self._doubt or self._trouble
        if trouble is not None or self._index is not None:
            return trouble or self._unasked or self._unanswered()
        held_up = ", held up by an open transaction" if self._is_held_up else ""
        return f"reading the test cases of {self._topic}: {self._reading.records} records so far{held_up}"

    @override
    async def stop(self) -> None:
        """End the reading; a thread that is folding ends without any effect."""
        await cancel(self._following, self._looking)
        await self._table.close()

    # --- answering

    @override
    async def _decided(self, keys: Sequence[ExpectationsKey], number: int) -> dict[ExpectationsKey, Answer]:
        try:
            async with asyncio.timeout(self._patience_seconds):
                return await super()._decided(keys, number)
        except TimeoutError as error:
            why = "a transaction is open, or many records are being written"
            unseen = f"the end of {self._topic} cannot be reached: {why}"
            raise Transient(self.trouble() or unseen) from error

    @override
    async def _index_is_ready(self) -> None:
        while not self._settled:
            await self._news.wait()
            self._raise_doubt()

    @override
    def _look_up(self, key: ExpectationsKey) -> Answer:
        index = self._index
        assert index is not None
        return self._answer(index.find(key), index.expected_cases(key.batch_id), in_batch=index.holds(key))

    @override
    def _raise_doubt(self) -> None:
        if self._fatal is not None:
            raise self._fatal
        if self._following is not None and self._following.done():
            self._following.result()  # a defect, which ends the service: nobody reads the topic any more
        super()._raise_doubt()

    # --- asking for the end

    @override
    async def _looked(self, number: int) -> None:
        """Return once the index has reached the end that the question of that number, or a later one, has found."""
        await super()._looked(number)
        ends = self._ends
        while not self._is_stale and self._unasked is None and not _reaches(self._positions, ends):
            await self._news.wait()
        self._raise_doubt()
        if self._is_stale or self._unasked is not None:
            raise Transient(self._unasked or f"the test cases of {self._topic} are being read again")

    @property
    def _is_stale(self) -> bool:
        """Whether another index is to follow: the positions of this one no longer say anything about the topic."""
        return self._must_reread or self._reading is not self._index

    @override
    async def _look(self) -> None:
        self._next_at = self._begun_at + ASK_EVERY_SECONDS
        read_before = self._positions
        try:
            self._ends = await self._table.ends()
        except SafeError as error:
            if self._unasked is None:
                _log.warning("cannot find out where the topic of test cases ends", topic=self._topic, why=str(error))
            self._unasked = str(error)
        else:
            self._unasked = None
            self._compare(read_before, self._ends)
        finally:
            self._wake()

    def _compare(self, read: Mapping[int, int], ends: Mapping[int, int]) -> None:
        """Tell by its ends whether the topic is still the one that has been read."""
        if self._is_stale:
            return
        # If it only has more partitions, what was read stays right.
        self._must_reread = ends.keys() != read.keys()
        if not ends:
            self._note_doubt(f"{self._store} is missing")
        elif any(ends.get(partition, 0) < offset for partition, offset in read.items()):
            self._must_reread = True
            self._note_doubt(
                f"{self._store} has fewer records than SAFE has read: it is not the topic that was read before"
            )

    # --- reading

    async def _follow(self) -> None:
        while True:
            try:
                await self._read()
            except SafeError as error:
                if self._trouble is None:
                    _log.warning("the test cases cannot be read", topic=self._topic, why=str(error))
                self._trouble = f"the test cases of {self._topic} cannot be read: {error}"
                self._fatal = error if isinstance(error, Fatal) else None
            self._must_reread = True
            self._wake()
            await self._sleep(self._backoff.next())

    async def _read(self) -> None:
        """Read the topic from its beginning, and follow it; returns or raises where it must be read again."""
        goal = await self._table.open()
        if not goal:
            self._note_doubt(f"{self._store} is missing")
            return
        index = self._reading = TopicIndex()
        self._must_reread = False
        touched: set[str] = set()
        has_ended = False
        while True:
            read = await self._table.poll()
            if self._must_reread:
                return
            if read.records:
                if index is self._index:
                    self._settled = False
                touched |= await asyncio.to_thread(index.fold, read.records)
            has_ended = has_ended or _reaches(read.positions, goal)
            self._is_held_up = read.is_whole and not has_ended
            if has_ended and read.is_whole:
                await self._settle(index, touched, read.positions)
                touched = set()
                await asyncio.sleep(0)  # those who waited use it before it changes again

    async def _settle(self, index: TopicIndex, touched: set[str], positions: Mapping[int, int]) -> None:
        """Let look-ups see an index that has been read to the end of a transaction."""
        is_new = index is not self._index
        survey = None
        if is_new or index.has_new_problems:
            survey = await asyncio.to_thread(index.survey, self._problems)
        self._index, self._positions, self._settled = index, positions, True
        if is_new:
            self._known.clear()
            counts = {"records": index.records, "batches": index.batches, "test_ids": len(index)}
            _log.info("test cases were read", topic=self._topic, **counts)
            if not index:
                _log.warning("the topic of test cases is empty", topic=self._topic)
        elif touched:
            # Answers of these batches, and of other batches than the key's own, may now be others.
            for key, found in [*self._known.items()]:
                if not found.in_batch or key.batch_id in touched:
                    del self._known[key]
        if survey is not None:
            self._note_problems(survey)
        self._note_recovery(index)
        self._wake()

    def _note_recovery(self, index: TopicIndex) -> None:
        self._backoff.reset()
        if self._had_cases and not index:
            # This is what a recreated topic looks like: no reason to make dead letters of what was there a moment ago.
            self._note_doubt(f"{self._store} has lost all of its test cases")
            return
        self._had_cases = bool(index)
        if self._doubt or self._trouble or self._fatal:
            _log.info("the test cases can be read again", topic=self._topic)
        self._doubt = self._trouble = self._fatal = None

    # --- reporting

    def _wake(self) -> None:
        """Wake all who wait for a change."""
        self._news.set()
        self._news = asyncio.Event()

    def _note_problems(self, survey: Survey) -> None:
        for name in survey.new[:NAMED_AT_ONCE]:
            why = survey.problems[name]
            _log.warning("a record of test cases cannot be used", topic=self._topic, key=name, why=why)
        more = len(survey.new) - NAMED_AT_ONCE
        if more > 0:
            _log.warning("more records of test cases cannot be used", topic=self._topic, records=more)
        self._problems = survey.problems
        self.unusable = survey.batches

    def _note_doubt(self, why: str) -> None:
        if self._doubt != why:
            _log.error("cannot look up test cases: the topic is unavailable", topic=self._topic, why=why)
        self._doubt = why
        self._wake()


def _reaches(positions: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    return all(positions.get(partition, 0) >= end for partition, end in ends.items())
