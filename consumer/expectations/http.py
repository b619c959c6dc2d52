"""A service of test cases over HTTP, asked as rarely and as gently as can be.

What is fresh in the cache costs a look-up in a dict; everything else goes by the flights of http_flights.py.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog
from typing_extensions import override

from consumer.errors import Poison, Transient
from consumer.expectations.base import Answer, CountingSource
from consumer.expectations.http_client import CaseClient, address
from consumer.expectations.http_flights import Flight, Flights
from consumer.expectations.port import ExpectationsKey, FoundExpectations
from consumer.loop_budget import Turns

REFUSED_SECONDS = 2.0
"""So long it stands that a key has no test case, or none that can be used."""
LOOK_AGAIN_SECONDS = 5.0
LOOK_AGAIN_IN_TROUBLE_SECONDS = 1.0

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger("safe.expectations")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How the service is asked; `timeout_seconds` holds for one key, and for one call, all tries together."""

    token: str | None = field(default=None, repr=False)
    timeout_seconds: float = 10.0
    max_requests: int = 16
    cache_seconds: float = 60.0
    cache_size: int = 20_000
    use_proxy: bool = False


class HttpSource(CountingSource):
    """The ExpectationsSource of port.py over a service of test cases.

    `clock` is monotonic and `wall` in seconds since 1970. `requests` counts keys by outcome. Raises ConfigurationError
    for an address or a token that cannot be used.
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
        self._where = address(base_url, options.token)
        self._client = CaseClient(
            self._where,
            max_requests=options.max_requests,
            use_proxy=options.use_proxy,
            most_prepared=options.cache_size,
            wall=wall,
        )
        self._cache = AnswerCache(options.cache_size)
        self._fresh_until = clock()
        self._flights = Flights(
            self._ask,
            self._where.host,
            max_requests=options.max_requests,
            timeout_seconds=options.timeout_seconds,
            clock=clock,
            sleep=sleep,
        )

    async def start(self) -> None:
        """Make ready to ask; the service need not be up. Raises ConfigurationError for a proxy that cannot be used."""
        if self._where.shows_credentials:
            _log.warning(
                "credentials go over plain http:// to another machine: anyone who listens on the way can read them",
                host=self._where.host,
            )
        await self._client.start()

    @override
    async def _find(self, keys: Sequence[ExpectationsKey]) -> Mapping[ExpectationsKey, Answer]:
        """Answer every key from the cache or by the service, within the timeout; what has come is kept."""
        now = self._clock()
        answers, missed = self._cache.fresh(keys, now)
        if not missed:
            return answers
        others: dict[ExpectationsKey, Answer] = dict(self._cache.refused(missed, now))
        others |= await self._fetched([key for key in missed if key not in others])
        return answers | others

    def trouble(self) -> str | None:
        """Say why look-ups cannot be answered; to be called in the event loop, where it has the service asked again."""
        self._look_again()
        return self._flights.failing

    async def stop(self) -> None:
        """Call back what is under way and close the connections."""
        await self._flights.stop()
        await self._client.stop()

    # --- fetching -----------------------------------------------------------------------------------------------------

    async def _fetched(self, keys: Sequence[ExpectationsKey]) -> Mapping[ExpectationsKey, Answer]:
        flights: dict[ExpectationsKey, Flight] = {}
        try:
            turns = Turns()
            for key in dict.fromkeys(keys):
                flights[key] = self._flights.join(key)
                if turns.is_over:
                    await turns.next()
            if flights:
                landings = [flight.landed for flight in flights.values()]
                await asyncio.wait(landings, timeout=self._options.timeout_seconds)
        finally:
            self._flights.leave(flights.values())
        return self._landed(flights)

    def _landed(self, flights: Mapping[ExpectationsKey, Flight]) -> Mapping[ExpectationsKey, Answer]:
        answers: dict[ExpectationsKey, Answer] = {}
        troubles = []
        for key, flight in flights.items():
            outcome = flight.landed.result() if flight.landed.done() else self._late()
            if isinstance(outcome, Transient):
                troubles.append(outcome)
            else:
                answers[key] = fresh_poison(outcome) if isinstance(outcome, Poison) else outcome
        if troubles:
            # Whoever failed tries again soon: what has come for it by then must not expire under it.
            self._fresh_until = self._clock() + self._options.timeout_seconds
            self._cache.prolong(answers, self._fresh_until)
            raise troubles[0]
        return answers

    def _late(self) -> Transient:
        return Transient(
            f"the expectations service has not answered all look-ups within {self._options.timeout_seconds:g} s"
        )

    async def _ask(self, key: ExpectationsKey, seconds: float) -> Answer:
        """Ask the service itself; raises Outage."""
        kept = self._cache.get(key)
        said = await self._client.ask(key, kept.etag if kept is not None else None, seconds)
        now = self._clock()
        if isinstance(said.verdict, Poison):
            self._cache.refuse(key, said.verdict, now + REFUSED_SECONDS)
            return said.verdict
        found = said.verdict
        if found is None:
            assert kept is not None, "only what was kept can still hold"
            found = kept.found
        self._cache.keep(key, found, said.etag, max(self._fresh_until, now + self._options.cache_seconds))
        return found

    # --- looking after it ---------------------------------------------------------------------------------------------

    def _look_again(self) -> None:
        """Ask for the latest key once more if nobody has asked for anything for a while: readiness is about now."""
        key = self._flights.last_key
        if key is None or not self._flights.are_idle:
            return
        rest = LOOK_AGAIN_SECONDS if self._flights.failing is None else LOOK_AGAIN_IN_TROUBLE_SECONDS
        if self._clock() - self._flights.heard_at >= rest:
            self._flights.join(key)  # and stay: this one is asked for its own sake


# --- the cache --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Kept:
    """A test case in the cache; after `fresh_until` it must be asked for again, by its `etag` if it has one."""

    found: FoundExpectations
    etag: str | None
    fresh_until: float


class AnswerCache:
    """At most `size` test cases and as many refusals, the longest unused going first; times are the caller's."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[ExpectationsKey, Kept] = OrderedDict()
        self._refused: OrderedDict[ExpectationsKey, tuple[Poison, float]] = OrderedDict()

    def fresh(
        self, keys: Sequence[ExpectationsKey], now: float
    ) -> tuple[dict[ExpectationsKey, Answer], list[ExpectationsKey]]:
        """Give the test cases that may be used, and the keys for which there is none."""
        answers: dict[ExpectationsKey, Answer] = {}
        missed = []
        kept = self._kept
        for key in keys:  # nothing but look-ups: a slice has thousands
            entry = kept.get(key)
            if entry is not None and entry.fresh_until > now:
                answers[key] = entry.found
                kept.move_to_end(key)
            else:
                missed.append(key)
        return answers, missed

    def refused(self, keys: Sequence[ExpectationsKey], now: float) -> dict[ExpectationsKey, Poison]:
        """Give those of the keys that were refused a moment ago."""
        entries = ((key, self._refused.get(key)) for key in keys)
        return {key: fresh_poison(entry[0]) for key, entry in entries if entry is not None and entry[1] > now}

    def get(self, key: ExpectationsKey) -> Kept | None:
        """Give what is kept of a key, fresh or not."""
        return self._kept.get(key)

    def keep(self, key: ExpectationsKey, found: FoundExpectations, etag: str | None, until: float) -> None:
        """Keep a test case."""
        self._kept[key] = Kept(found, etag, until)
        self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)

    def refuse(self, key: ExpectationsKey, why: Poison, until: float) -> None:
        """Keep for a moment that a key has no test case that can be used."""
        self._kept.pop(key, None)
        self._refused[key] = why, until
        self._refused.move_to_end(key)
        while len(self._refused) > self._size:
            self._refused.popitem(last=False)

    def prolong(self, keys: Iterable[ExpectationsKey], until: float) -> None:
        """Let what is kept of these keys be used until then, if it could not be used for longer anyway."""
        for key in keys:
            entry = self._kept.get(key)
            if entry is not None:
                entry.fresh_until = max(entry.fresh_until, until)


def fresh_poison(poison: Poison) -> Poison:
    """Give an error that nobody has raised yet: each raising of the same one would lengthen its traceback."""
    return Poison(poison.reason, poison.detail)
