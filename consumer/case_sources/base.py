"""What the sources of test cases have in common: they count look-ups, and two of them answer from an index."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from typing_extensions import override

from consumer.case_sources.source import Answer, ExpectationsKey, FoundExpectations
from consumer.dead_letter_reasons import Poison
from consumer.errors import Transient
from consumer.loop_budget import LoopBudget
from safe_core import TestCase, prepare
from safe_core.remembered import Remembered

CACHED_ANSWERS = 30_000
"""Each takes up to about 4 KB: its key, its test case, and what scoring prepares of it."""
LOOK_AGAIN_SECONDS = 5.0
"""If nobody has asked for this long, readiness has the store looked at."""
LOOK_AGAIN_IN_TROUBLE_SECONDS = 1.0


class CountingSource(ABC):
    """Counts in `requests` how keys were answered."""

    def __init__(self) -> None:
        self.requests = dict.fromkeys(("found", "not_found", "ambiguous", "invalid", "transient"), 0)

    async def find(self, keys: Sequence[ExpectationsKey]) -> Mapping[ExpectationsKey, Answer]:
        """Answer every key; raises Transient while the source cannot be asked."""
        try:
            answers = await self._find(keys)
        except Transient:
            self.requests["transient"] += len(keys)
            raise
        refused = [answer for answer in map(answers.get, keys) if isinstance(answer, Poison)]
        self.requests["found"] += len(keys) - len(refused)
        for answer in refused:
            self.requests[answer.reason.removeprefix("expectations_")] += 1
        return answers

    @abstractmethod
    async def _find(self, keys: Sequence[ExpectationsKey]) -> Mapping[ExpectationsKey, Answer]: ...


class IndexedSource(CountingSource):
    """Answers from an index of a whole store, such as a folder, which it looks at again before it decides a miss.

    All callers share one look at a time. Looks are numbered: one that begins after a call has a greater number than the
    last one that has begun by then. `store` names the store in messages.
    """

    unanswered_seconds: float
    """A look that takes longer is reported as trouble."""
    may_use_other_batches: bool
    """Whether a test case of another batch than the key's own is an answer without a later look."""

    def __init__(self, store: str, clock: Callable[[], float], sleep: Callable[[float], Awaitable[object]]) -> None:
        super().__init__()
        self._store = store
        self._clock = clock
        self._sleep = sleep
        self._doubt: str | None = None
        """Why nothing at all can be answered: the store may no longer be the one that the index shows."""
        self._known: Remembered[ExpectationsKey, FoundExpectations] = Remembered(CACHED_ANSWERS)
        self._prepare = lru_cache(CACHED_ANSWERS)(prepare)
        self._looking: asyncio.Task[None] | None = None
        self._begun = self._finished = 0
        self._begun_at = self._next_at = clock()

    async def stop(self) -> None:
        """Cancel a look that is under way; if it runs in a thread, that ends without any effect."""
        await cancel(self._looking)

    # --- answering

    @override
    async def _find(self, keys: Sequence[ExpectationsKey]) -> Mapping[ExpectationsKey, Answer]:
        number = self._begun + 1
        await self._refresh(number)
        self._raise_doubt()
        known = self._known
        answers: dict[ExpectationsKey, Answer] = {key: known[key] for key in keys if key in known}
        unknown = [key for key in keys if key not in answers]
        if unknown:
            answers |= await self._decided(unknown, number)
        return answers

    async def _decided(self, keys: Sequence[ExpectationsKey], number: int) -> dict[ExpectationsKey, Answer]:
        """Answer what is certain at once, and the rest after a look of that number, or a later one."""
        answers = await self._looked_up(keys, self._certain)
        uncertain = [key for key in keys if key not in answers]
        if uncertain:
            await self._looked(number)
            answers |= await self._looked_up(uncertain, self._look_up)
        return answers

    async def _looked_up(
        self, keys: Sequence[ExpectationsKey], look_up: Callable[[ExpectationsKey], Answer | None]
    ) -> dict[ExpectationsKey, Answer]:
        """The answers to these keys, as far as there are any; other tasks have their turns in between."""
        answers: dict[ExpectationsKey, Answer] = {}
        await self._index_is_ready()
        budget = LoopBudget()
        for key in keys:
            answer = look_up(key)
            if answer is not None:
                answers[key] = answer
            if isinstance(answer, FoundExpectations):
                self._known.keep(key, answer)
            if budget.is_spent:
                await budget.renew()
                await self._index_is_ready()
        return answers

    def _certain(self, key: ExpectationsKey) -> FoundExpectations | None:
        try:
            answer = self._look_up(key)
        except Transient:
            return None
        if isinstance(answer, FoundExpectations) and (answer.in_batch or self.may_use_other_batches):
            return answer
        return None

    def _answer(self, case: TestCase | Poison, expected_cases: int | None, *, in_batch: bool) -> Answer:
        if isinstance(case, Poison):
            return case
        return FoundExpectations.of(case, self._prepare(case.expectations), expected_cases, in_batch=in_batch)

    async def _refresh(self, number: int) -> None:
        """Wait for a look of that number if the index is too old to answer anything from it."""

    async def _index_is_ready(self) -> None:
        """Wait until the index may be looked at: until the next await, nothing changes it."""
        self._raise_doubt()

    def _raise_doubt(self) -> None:
        if self._doubt is not None:
            raise Transient(self._doubt)

    @abstractmethod
    def _look_up(self, key: ExpectationsKey) -> Answer:
        """Look a key up in the index; raises Transient."""

    # --- looking at the store

    @abstractmethod
    async def _look(self) -> None:
        """Look at the store once."""

    async def _looked(self, number: int) -> None:
        """Return when the look of that number, or a later one, is over."""
        while self._finished < number:
            await asyncio.shield(self._looking or self._begin_look())

    def _begin_look(self) -> asyncio.Task[None]:
        self._looking = asyncio.get_running_loop().create_task(self._look_when_due(), name=f"look at {self._store}")
        return self._looking

    async def _look_when_due(self) -> None:
        try:
            rest = self._next_at - self._clock()
            if rest > 0:
                await self._sleep(rest)
            self._begun += 1
            self._begun_at = self._clock()
            await self._look()
            self._finished = self._begun
        finally:
            self._looking = None

    def _look_again(self, after_seconds: float) -> None:
        """Begin a look if the last one began longer ago than this: readiness is about now."""
        if self._looking is None and self._clock() - self._begun_at > after_seconds:
            self._begin_look()

    def _unanswered(self) -> str | None:
        seconds = self._clock() - self._begun_at
        if self._looking is None or self._begun == self._finished or seconds <= self.unanswered_seconds:
            return None
        return f"{self._store} has not answered for {seconds:.0f} s"


async def cancel(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel tasks and wait for their end."""
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)
