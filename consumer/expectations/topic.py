"""A compacted topic of test cases: read from its beginning to its end, then followed.

One task reads and folds what it reads, in a thread, into a TopicIndex; look-ups go by dicts alone. What the index at
hand does not settle is decided by one that has been at the end of the topic since it was asked for.
"""

import asyncio
import heapq
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import structlog

from consumer.errors import ConfigurationError, Fatal, Poison, SafeError, Transient
from consumer.expectations.answers import CACHED_ANSWERS, Answer, Preparer, count, no_requests, take_known
from consumer.expectations.port import ExpectationsKey, FoundExpectations
from consumer.expectations.topic_index import Survey, TopicIndex
from consumer.loop_budget import Turns
from consumer.wire.record import Record

ASK_EVERY_SECONDS = 0.2
"""The end of the topic is asked for no more often, however many wait for it."""
LOOK_AGAIN_SECONDS = 5.0
LOOK_AGAIN_IN_TROUBLE_SECONDS = 1.0
UNANSWERED_SECONDS = 5.0
PATIENCE_SECONDS = 5.0
"""How long a call waits for the topic before it is told to come again."""
FIRST_REST_SECONDS = 0.5
LONGEST_REST_SECONDS = 10.0
NAMED_AT_ONCE = 20
"""One look at the topic names this many unusable records in the log, and counts the rest."""

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger("safe.expectations")


class Slice(Protocol):
    """What one poll brought: records, in the order of their partitions, and the next offset to read of each.

    `is_whole` tells that all that was committed by then has been delivered: no transaction is cut in two.
    """

    @property
    def records(self) -> Sequence[Record]: ...

    @property
    def positions(self) -> Mapping[int, int]: ...

    @property
    def is_whole(self) -> bool: ...


class Table(Protocol):
    """Reads a topic, of transactions what is committed; consumer.kafka has the real one.

    Every method raises Transient where the brokers do not answer in time, and Fatal where they never will.
    """

    async def open(self) -> Mapping[int, int]:
        """Begin at the beginning, also after a failure; returns where each partition ends, nothing for no topic."""
        ...

    async def poll(self) -> Slice:
        """Give what has come since, at once if there is something; waits for half a second at most."""
        ...

    async def ends(self) -> Mapping[int, int]:
        """Ask where each partition ends, open transactions included; nothing if there is no such topic."""
        ...

    async def close(self) -> None:
        """Let go of the brokers; may be called twice."""
        ...


class TopicSource:
    """The ExpectationsSource of port.py over a compacted topic.

    `clock` is monotonic. `requests` counts keys by outcome. While the brokers are away, what is known is answered.
    """

    name = "topic"

    def __init__(
        self,
        topic: str,
        table: Table,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.requests = no_requests()
        self._topic = topic
        self._table = table
        self._clock = clock
        self._sleep = sleep
        self._patience_seconds = patience_seconds
        self._following: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

        # What look-ups are answered from: `_settled` unless it is being changed, or shows a part of a transaction.
        self._index: TopicIndex | None = None
        self._settled = False
        self._positions: Mapping[int, int] = {}
        self._known: dict[ExpectationsKey, FoundExpectations] = {}
        self._known_of: dict[str | None, list[ExpectationsKey]] = {}
        self._preparer = Preparer()
        self._had_cases = False
        self._told: dict[str, str] = {}
        self._unusable: tuple[str, ...] = ()

        # What is being read, the same one while it is followed. `_doubt` tells why the topic may no longer be the one
        # that was read, so that nothing at all is answered, `_trouble` why it only cannot be read at the moment.
        self._reading = TopicIndex()
        self._must_reread = False
        self._is_held_up = False
        self._rest_seconds = FIRST_REST_SECONDS
        self._doubt: str | None = None
        self._trouble: str | None = None
        self._fatal: Fatal | None = None

        # Questions for the end are numbered: one that began after a call has a greater number than the last one begun.
        self._asking: asyncio.Task[None] | None = None
        self._begun = 0
        self._finished = 0
        self._asked_at = clock() - ASK_EVERY_SECONDS
        self._ends: Mapping[int, int] = {}
        self._unasked: str | None = None

    @property
    def unusable(self) -> tuple[str, ...]:
        """The batches of the records that cannot be used as they are now, in order; the log has their keys."""
        return self._unusable

    async def start(self) -> None:
        """Begin to read, and wait a little for the end of a small topic; raises ConfigurationError if there is none."""
        self._following = asyncio.get_running_loop().create_task(self._follow(), name="reading the test cases")
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience_seconds):
                while self._index is None and self._fatal is None and self._doubt is None:
                    await self._next()
        if self._fatal is not None:
            raise self._fatal
        if self._index is None and self._doubt is not None:
            raise ConfigurationError(
                f"{self._doubt}: `safe topics create` makes the topic that SAFE_V0_EXPECTATIONS names, and "
                "`safe publish-cases` fills it"
            )

    async def find(self, keys: Sequence[ExpectationsKey]) -> Mapping[ExpectationsKey, Answer]:
        """Answer every key; what its own batch does not hold is decided only by what stood there after the call.

        Raises Transient until the topic has been read to its end, while it is gone or empty after it was not, and where
        its end cannot be asked for.
        """
        number = self._begun + 1
        answers: dict[ExpectationsKey, Answer] = {}
        try:
            self._raise_doubt()
            missed = take_known(keys, self._known, answers)
            if missed:
                await self._decide(missed, number, answers)
        except Transient:
            self.requests["transient"] += len(keys)
            raise
        self.requests["found"] += len(keys) - len(missed)
        count(self.requests, [answers[key] for key in missed])
        return answers

    def trouble(self) -> str | None:
        """Say why look-ups cannot be answered; to be called in the event loop, where it has the topic looked at."""
        now = self._clock()
        due = LOOK_AGAIN_SECONDS if self._unasked is None else LOOK_AGAIN_IN_TROUBLE_SECONDS
        if self._asking is None and now - self._asked_at > due and self._index is not None:
            self._begin_to_ask()
        if self._fatal is not None:
            return str(self._fatal)
        if self._index is None:
            return self._doubt or self._trouble or self._progress()
        return self._doubt or self._trouble or self._unasked or self._unanswered(now)

    async def stop(self) -> None:
        """End the reading; a thread that is folding ends without any effect."""
        tasks = {task for task in (self._following, self._asking) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._table.close()

    # --- answering

    async def _decide(
        self, keys: Sequence[ExpectationsKey], number: int, answers: dict[ExpectationsKey, Answer]
    ) -> None:
        try:
            async with asyncio.timeout(self._patience_seconds):
                unsure: list[ExpectationsKey] = []
                async for index, key in self._one_by_one(keys):
                    if not self._is_found_in_its_batch(index, key, answers):
                        unsure.append(key)
                if unsure:
                    await self._at_the_end(number)
                    async for index, key in self._one_by_one(unsure):
                        answers[key] = self._decided(index, key)
        except TimeoutError as error:
            unseen = f"the end of {self._topic} is not in sight: a transaction is open, or much is being written"
            raise Transient(self.trouble() or unseen) from error

    async def _one_by_one(self, keys: Sequence[ExpectationsKey]) -> AsyncIterator[tuple[TopicIndex, ExpectationsKey]]:
        """Each key with the index to look it up in, as it is at that moment; others have their turns in between."""
        index, turns = await self._settled_index(), Turns()
        for key in keys:
            if turns.is_over:
                await turns.next()
                index = await self._settled_index()
            yield index, key

    def _is_found_in_its_batch(
        self, index: TopicIndex, key: ExpectationsKey, answers: dict[ExpectationsKey, Answer]
    ) -> bool:
        if not index.holds(key):
            return False
        answer = self._decided(index, key)
        if isinstance(answer, Poison):
            return False
        answers[key] = answer
        return True

    def _decided(self, index: TopicIndex, key: ExpectationsKey) -> Answer:
        case = index.find(key)
        if isinstance(case, Poison):
            return case
        in_batch = index.holds(key)
        found = self._preparer.found(case, expected_cases=index.expected_cases(key.batch_id), in_batch=in_batch)
        if len(self._known) >= CACHED_ANSWERS:
            self._forget_all()
        if key not in self._known:
            self._known_of.setdefault(key.batch_id if in_batch else None, []).append(key)
        self._known[key] = found
        return found

    def _forget(self, batches: Iterable[str]) -> None:
        """Forget what was answered by some batches, and whatever no key's own batch has answered."""
        for batch in (*batches, None):
            for key in self._known_of.pop(batch, ()):
                self._known.pop(key, None)

    def _forget_all(self) -> None:
        self._known.clear()
        self._known_of.clear()

    def _raise_doubt(self) -> None:
        if self._fatal is not None:
            raise self._fatal
        if self._following is not None and self._following.done():
            self._following.result()  # a defect, which ends the service: nobody reads the topic any more
        if self._doubt is not None:
            raise Transient(self._doubt)

    async def _settled_index(self) -> TopicIndex:
        """The index as soon as it shows whole transactions; between this and the next await nothing changes it."""
        while self._index is None or not self._settled:
            await self._next()
            self._raise_doubt()
        return self._index

    async def _at_the_end(self, number: int) -> None:
        """Return once the index has been at the end as the question of that number, or a later one, has found it."""
        while self._finished < number:
            await asyncio.shield(self._asking or self._begin_to_ask())
        ends = self._ends
        while not self._is_stale and self._unasked is None and not _reaches(self._positions, ends):
            await self._next()
        self._raise_doubt()
        if self._is_stale or self._unasked is not None:
            raise Transient(self._unasked or f"the test cases of {self._topic} are being read again")

    @property
    def _is_stale(self) -> bool:
        """Whether another index is to follow: no position of this one says anything about the topic any more."""
        return self._must_reread or self._reading is not self._index

    async def _next(self) -> None:
        """Wait until something has changed."""
        await self._news.wait()

    def _tell(self) -> None:
        """Wake all who wait for a change."""
        self._news.set()
        self._news = asyncio.Event()

    # --- asking for the end

    def _begin_to_ask(self) -> asyncio.Task[None]:
        self._asking = asyncio.get_running_loop().create_task(self._ask(), name="end of the test cases")
        return self._asking

    async def _ask(self) -> None:
        try:
            rest = self._asked_at + ASK_EVERY_SECONDS - self._clock()
            if rest > 0:
                await self._sleep(rest)
            self._begun += 1
            self._asked_at = self._clock()
            read_before = self._positions
            try:
                self._ends = await self._table.ends()
            except SafeError as error:
                self._note_unasked(str(error))
            else:
                self._note_unasked(None)
                self._compare(read_before, self._ends)
            self._finished = self._begun
        finally:
            self._asking = None
            self._tell()

    def _note_unasked(self, why: str | None) -> None:
        if why is not None and self._unasked is None:
            _log.warning("the end of the test cases cannot be asked for", topic=self._topic, why=why)
        self._unasked = why

    def _compare(self, read: Mapping[int, int], ends: Mapping[int, int]) -> None:
        """Tell by its ends whether the topic is still the one that has been read."""
        if self._is_stale:
            return
        # If it only has more partitions, what was read stays right.
        self._must_reread = ends.keys() != read.keys()
        if not ends:
            self._note_doubt(self._missing())
        elif any(ends.get(partition, 0) < offset for partition, offset in read.items()):
            self._must_reread = True
            self._note_doubt(f"the topic {self._topic} is not the one that was read: it ends earlier")

    # --- reading

    async def _follow(self) -> None:
        while True:
            try:
                await self._read()
            except SafeError as error:
                self._note_failure(error)
            self._must_reread = True
            self._tell()
            await self._sleep(self._rest_seconds)
            self._rest_seconds = min(2 * self._rest_seconds, LONGEST_REST_SECONDS)

    async def _read(self) -> None:
        """Read the topic from its beginning, and follow it; returns or raises where it must be read again."""
        goal = await self._table.open()
        if not goal:
            self._note_doubt(self._missing())
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
                touched |= await self._folded(index, read.records)
            has_ended = has_ended or _reaches(read.positions, goal)
            self._is_held_up = read.is_whole and not has_ended
            if has_ended and read.is_whole:
                survey = await asyncio.to_thread(index.survey) if index.is_to_be_surveyed else None
                self._settle(index, touched, read.positions, survey)
                touched = set()
                await asyncio.sleep(0)  # who waited looks at it before it changes again

    async def _folded(self, index: TopicIndex, records: Sequence[Record]) -> set[str]:
        if index is self._index:
            self._settled = False
        return await asyncio.to_thread(index.fold, records)

    def _settle(
        self, index: TopicIndex, touched: set[str], positions: Mapping[int, int], survey: Survey | None
    ) -> None:
        """Let look-ups see an index that has been read to the end of a transaction."""
        last, self._index = self._index, index
        self._positions = positions
        self._settled = True
        if index is not last:
            self._forget_all()
            self._announce(index)
        elif touched:
            self._forget(touched)
        if index is not last:
            self._tell_problems(survey or Survey({}, ()), {})
        elif survey is not None:
            self._tell_problems(survey, self._told)
        self._note_recovery(index)
        self._tell()

    def _note_recovery(self, index: TopicIndex) -> None:
        self._rest_seconds = FIRST_REST_SECONDS
        if self._had_cases and not index:
            # A topic that was recreated looks like this: what was there a moment ago is no reason for dead letters.
            self._note_doubt(f"the topic {self._topic} has lost all of its test cases")
            return
        self._had_cases = bool(index)
        if self._doubt or self._trouble or self._fatal:
            _log.info("the test cases can be read again", topic=self._topic)
        self._doubt = self._trouble = self._fatal = None

    # --- telling

    def _announce(self, index: TopicIndex) -> None:
        _log.info(
            "test cases were read", topic=self._topic, records=index.records, batches=index.batches, test_ids=len(index)
        )
        if not index:
            _log.warning("the topic of test cases holds none", topic=self._topic)

    def _tell_problems(self, survey: Survey, told: dict[str, str]) -> None:
        """Name what is newly wrong; `told` is what was told of this index before, and what comes of it."""
        wrong = {name: why for name, why in survey.changed.items() if why is not None}
        new = [name for name, why in wrong.items() if self._told.get(name) != why]
        for name in heapq.nsmallest(NAMED_AT_ONCE, new):
            _log.warning("a record of test cases cannot be used", topic=self._topic, key=name, why=wrong[name])
        if len(new) > NAMED_AT_ONCE:
            more = len(new) - NAMED_AT_ONCE
            _log.warning("more records of test cases cannot be used", topic=self._topic, records=more)
        for name in survey.changed.keys() - wrong.keys():
            told.pop(name, None)
        self._told = told
        self._told |= wrong
        self._unusable = survey.batches

    def _note_doubt(self, why: str) -> None:
        if self._doubt != why:
            _log.error("look-ups wait for the test cases", topic=self._topic, why=why)
        self._doubt = why
        self._tell()

    def _note_failure(self, error: SafeError) -> None:
        if self._trouble is None:
            _log.warning("the test cases cannot be read", topic=self._topic, why=str(error))
        self._trouble = f"the test cases of {self._topic} cannot be read: {error}"
        self._fatal = error if isinstance(error, Fatal) else None

    def _missing(self) -> str:
        return f"the topic {self._topic} is missing"

    def _progress(self) -> str:
        held_up = ", held up by an open transaction" if self._is_held_up else ""
        return f"reading the test cases of {self._topic}: {self._reading.records} records so far{held_up}"

    def _unanswered(self, now: float) -> str | None:
        waiting = now - self._asked_at
        if self._asking is not None and self._begun > self._finished and waiting > UNANSWERED_SECONDS:
            return f"the topic {self._topic} has not answered for {waiting:.0f} s"
        return None


def _reaches(positions: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    return all(positions.get(partition, 0) >= end for partition, end in ends.items())
