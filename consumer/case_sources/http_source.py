"""A service of test cases over HTTP, asked as rarely and as gently as possible.

A fresh answer in the cache costs no more than finding it in a dict. For anything else there is one Lookup per key,
however many callers wait for it: no caller owns it, so one that is cancelled takes nothing from the others. The tries
of a lookup share a deadline. All lookups share the limit of requests, the breaker, and the time until which the service
asked to be left alone.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog
from typing_extensions import override

from consumer.backoff import Backoff
from consumer.case_sources.base import LOOK_AGAIN_IN_TROUBLE_SECONDS, LOOK_AGAIN_SECONDS, CountingSource, cancel
from consumer.case_sources.case_client import CaseClient, HttpOptions, Said
from consumer.case_sources.http_breaker import Breaker
from consumer.case_sources.http_cache import AnswerCache, unraised
from consumer.case_sources.http_outages import Outage
from consumer.case_sources.source import Answer, ExpectationsKey, FoundExpectations
from consumer.errors import Transient
from consumer.loop_budget import LoopBudget

REFUSED_SECONDS = 2.0
"""How long it is remembered that a key has no test case, none that can be used, or several that differ."""
TRIES_IN_A_DEADLINE = 2
"""A request gets its share of the deadline, so that one that hangs leaves time for another."""
LOOKUPS_PER_REQUEST = 4
"""Lookups that are begun, for each request that may be under way: between two tries a lookup makes no request."""
UNANSWERED_SECONDS = 5.0
"""A request that waits longer than this is trouble, whatever its deadline."""
FAILURES_TO_REPORT = 5
"""This many failed requests in a row are an outage, which is logged."""
LEAST_SHARE_OF_THE_DEADLINE = 0.1
"""A try is not begun if less than this share of the deadline is left."""

Outcome = Said | Transient

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger("safe.expectations")


@dataclass(slots=True)
class Lookup:
    """The look-up of one key, and how many callers wait for it; its task returns a Transient rather than raise it."""

    key: ExpectationsKey
    task: "asyncio.Task[Outcome]" = field(init=False)
    waiting: int = 0
    deadline: float = 0.0


class HttpSource(CountingSource):
    """The ExpectationsSource of source.py over a service of test cases.

    `clock` is monotonic and `wall` in seconds since 1970. find() answers within the timeout; if it raises Transient,
    the answers that have come are kept for the next call. Raises ConfigurationError for an address that cannot be used.
    """

    name = "http"
    unusable: Sequence[str] = ()

    def __init__(
        self,
        base_url: str,
        options: HttpOptions,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__()
        self._options = options
        self._clock = clock
        self._sleep = sleep
        self._client = CaseClient(base_url, options, wall)
        self._cache = AnswerCache(options.cache_size)
        self._fresh_until = clock()

        self._lookups: dict[ExpectationsKey, Lookup] = {}
        self._in_progress = asyncio.Semaphore(options.max_requests * LOOKUPS_PER_REQUEST)
        self._requests = asyncio.Semaphore(options.max_requests)
        self._asked_at: dict[ExpectationsKey, float] = {}

        # What the latest request tells about the service, and how long it is left alone.
        self._last_key: ExpectationsKey | None = None
        self._failure: str | None = None
        self._heard_at = self._not_before = clock()
        self._breaker = Breaker()
        self._probing = asyncio.Lock()

    async def start(self) -> None:
        """Make ready to ask; the service need not be up. Raises ConfigurationError for a proxy that cannot be used."""
        await self._client.start()

    def trouble(self) -> str | None:
        """Say why look-ups cannot be answered; to be called in the event loop, where it has the service asked again."""
        now = self._clock()
        may_ask = not self._lookups and now >= self._not_before and not self._breaker.cools(now)
        rest = LOOK_AGAIN_SECONDS if self._failure is None else LOOK_AGAIN_IN_TROUBLE_SECONDS
        if self._last_key is not None and may_ask and now - self._heard_at >= rest:
            self._join(self._last_key)  # and never leave: readiness needs the answer itself
        if self._failure is not None:
            return str(Outage(self._failure))
        silent = now - next(iter(self._asked_at.values())) if self._asked_at else 0.0
        return str(Outage(f"has not answered for {silent:.0f} s")) if silent > UNANSWERED_SECONDS else None

    async def stop(self) -> None:
        """Cancel what is under way and close the connections."""
        self._last_key = None
        await cancel(*(lookup.task for lookup in self._lookups.values()))
        self._lookups.clear()
        await self._client.stop()

    # --- answering

    @override
    async def _find(self, keys: Sequence[ExpectationsKey]) -> Mapping[ExpectationsKey, Answer]:
        # The service is not told any narrative: what it says is kept for the outputs of all of them.
        asked = {key: key if key.narrative is None else ExpectationsKey(key.batch_id, key.test_id) for key in keys}
        said, missed = self._cache.fresh(list(asked.values()), self._clock())
        if missed:
            said |= await self._fetched(missed)
        settled = self._client.settled
        return {key: settled(said[plain], key) for key, plain in asked.items()}

    async def _fetched(self, keys: Iterable[ExpectationsKey]) -> dict[ExpectationsKey, Said]:
        lookups: dict[ExpectationsKey, Lookup] = {}
        try:
            budget = LoopBudget()
            for key in dict.fromkeys(keys):
                lookups[key] = self._join(key)
                if budget.is_spent:
                    await budget.renew()
            await asyncio.wait([lookup.task for lookup in lookups.values()], timeout=self._options.timeout_seconds)
        finally:
            # A key for which nobody waits is not asked for any more, but a request under way may end.
            for lookup in lookups.values():
                lookup.waiting -= 1
        outcomes = {key: self._outcome(lookup.task) for key, lookup in lookups.items()}
        answers = {key: unraised(outcome) for key, outcome in outcomes.items() if not isinstance(outcome, Transient)}
        for outcome in outcomes.values():
            if isinstance(outcome, Transient):
                # The caller tries again soon: what has come for it must not expire until then.
                self._fresh_until = self._clock() + self._options.timeout_seconds
                self._cache.prolong(answers, self._fresh_until)
                raise Transient(str(outcome))  # not the one that all callers share
        return answers

    def _outcome(self, task: "asyncio.Task[Outcome]") -> Outcome:
        if not task.done():
            seconds = self._options.timeout_seconds
            return Transient(f"the expectations service has not answered all look-ups within {seconds:g} s")
        return Transient("the worker is stopping") if task.cancelled() else task.result()

    # --- look-ups

    def _join(self, key: ExpectationsKey) -> Lookup:
        """Wait for a key together with the others who do."""
        lookup = self._lookups.get(key)
        if lookup is None:
            lookup = self._lookups[key] = Lookup(key)
            lookup.task = asyncio.get_running_loop().create_task(self._run(lookup), name="expectations look-up")
        lookup.waiting += 1
        return lookup

    async def _run(self, lookup: Lookup) -> Outcome:
        try:
            async with self._in_progress:
                return await self._tries(lookup)
        finally:
            self._lookups.pop(lookup.key, None)

    async def _tries(self, lookup: Lookup) -> Outcome:
        backoff = Backoff(0.1, 2.0)
        while True:
            try:
                return await self._try(lookup)
            except Outage as error:
                rest = self._rest_seconds() + backoff.next()
                if error.is_lasting or not lookup.waiting or self._clock() + rest >= self._last_try_at(lookup):
                    return Transient(str(error))  # a new one, without a traceback
            await self._sleep(rest)

    def _last_try_at(self, lookup: Lookup) -> float:
        return lookup.deadline - self._options.timeout_seconds * LEAST_SHARE_OF_THE_DEADLINE

    async def _try(self, lookup: Lookup) -> Said:
        async with self._requests:
            if not lookup.waiting:
                raise Outage("was not asked: no output is waiting for it any more", is_lasting=True)
            lookup.deadline = lookup.deadline or self._clock() + self._options.timeout_seconds
            if rest := self._rest_seconds():
                if self._clock() + rest >= self._last_try_at(lookup):
                    raise self._left_alone()
                await self._sleep(rest)
            if self._breaker.is_open:
                async with self._probing:  # one asks; the others check again once it has
                    if self._breaker.cools(self._clock()):
                        raise self._left_alone()
                    if self._breaker.is_open:
                        return await self._request(lookup)
            return await self._request(lookup)

    async def _request(self, lookup: Lookup) -> Said:
        key, now = lookup.key, self._clock()
        if now >= self._last_try_at(lookup):  # it has waited too long for its turn
            raise self._left_alone()
        seconds = min(lookup.deadline - now, self._options.timeout_seconds / TRIES_IN_A_DEADLINE)
        self._last_key = key
        self._asked_at[key] = now
        try:
            reply = await self._client.ask(key, self._cache.reply(key), seconds)
        except Outage as error:
            self._note_failure(key, error)
            raise
        finally:
            del self._asked_at[key]
            now = self._heard_at = self._clock()
        self._note_success()
        is_found = isinstance(reply.answer, FoundExpectations)
        until = max(self._fresh_until, now + self._options.cache_seconds) if is_found else now + REFUSED_SECONDS
        self._cache.keep(key, reply, until)
        return reply.answer

    # --- leaving the service alone

    def _rest_seconds(self) -> float:
        """How long the service asks to be left alone."""
        return max(0.0, self._not_before - self._clock())

    def _left_alone(self) -> Outage:
        rest = self._rest_seconds()
        why = self._failure or "has not answered in time"
        return Outage(f"{why}; SAFE asks again in {rest:.0f} s" if rest else why, is_lasting=True)

    def _note_failure(self, key: ExpectationsKey, error: Outage) -> None:
        now = self._clock()
        self._failure = error.what  # not the error, whose traceback would keep alive what it passed through
        self._not_before = max(self._not_before, now + error.retry_after_seconds)
        self._breaker.failed(key, now)
        if self._breaker.failures == FAILURES_TO_REPORT:
            _log.error("cannot look up test cases: the service is unavailable", host=self._client.host, why=str(error))

    def _note_success(self) -> None:
        if self._breaker.failures >= FAILURES_TO_REPORT:
            _log.info("the expectations service is back", host=self._client.host)
        self._failure = None
        self._breaker.succeeded()
