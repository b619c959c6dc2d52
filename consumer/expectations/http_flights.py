"""Look-ups on their way to a service: one flight per key however many wait for it, and all of them paced together.

The tries of a flight share a deadline; all flights share the slots, the breaker, and what the service says of when to
return. Nobody who waits for a flight owns it, so one that is cancelled takes nothing from the others.
"""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass, field

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from consumer.backoff import Backoff
from consumer.errors import Transient
from consumer.expectations.base import Answer
from consumer.expectations.http_client import Outage
from consumer.expectations.port import ExpectationsKey

TRIES_IN_A_DEADLINE = 2
"""A request gets its share of the deadline, so that one that hangs leaves time for another."""
FLIGHTS_PER_SLOT = 4
"""Between two tries a flight holds no slot; this bounds how many there are of them."""
UNANSWERED_SECONDS = 5.0
"""A request that waits longer than this is trouble, whatever its deadline."""
FAILURES_TO_TELL = 5
"""This many failed requests in a row are an outage, which is logged."""
LEAST_SHARE_OF_THE_DEADLINE = 0.1
"""A try that would have less of it left is not begun."""

Outcome = Answer | Transient
Ask = Callable[[ExpectationsKey, float], Awaitable[Answer]]

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger("safe.expectations")

_backoff = wait_random_exponential(multiplier=0.1, max=2.0)


@dataclass(eq=False, slots=True)
class Flight:
    """One key on its way, and how many wait for it."""

    key: ExpectationsKey
    landed: "asyncio.Future[Outcome]"
    waiting: int = 0
    deadline: float = 0.0


class Flights:
    """Asks by `ask(key, seconds)`, which answers or raises Outage, at most `max_requests` at once.

    A key has `timeout_seconds` from its first try to its last; `host` names the service in the log.
    """

    def __init__(
        self,
        ask: Ask,
        host: str,
        *,
        max_requests: int,
        timeout_seconds: float,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.last_key: ExpectationsKey | None = None
        self.heard_at = clock()
        """When the latest request ended."""
        self._failing: str | None = None
        self._ask = ask
        self._host = host
        self._max_requests = max_requests
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._sleep = sleep
        self._breaker = Breaker()
        self._probing = asyncio.Lock()
        self._slots = asyncio.Semaphore(max_requests)
        self._not_before = self.heard_at
        self._flights: dict[ExpectationsKey, Flight] = {}
        self._queue: deque[Flight] = deque()
        self._airborne: set[asyncio.Task[None]] = set()
        self._asked_at: dict[Flight, float] = {}

    # --- waiting ------------------------------------------------------------------------------------------------------

    def join(self, key: ExpectationsKey) -> Flight:
        """Wait for a key together with the others; each that has joined must leave."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = Flight(key, asyncio.get_running_loop().create_future())
            self._queue.append(flight)
        flight.waiting += 1
        self._launch()
        return flight

    def leave(self, flights: Iterable[Flight]) -> None:
        """Wait no longer; what nobody waits for is not asked any more, but what is under way may land."""
        for flight in flights:
            flight.waiting -= 1

    @property
    def failing(self) -> str | None:
        """Why there are no answers: the latest request has failed, or waits for longer than it should."""
        if self._failing is not None:
            return str(Outage(self._failing))
        silent = self._clock() - next(iter(self._asked_at.values())) if self._asked_at else 0.0
        return str(Outage(f"has not answered for {silent:.0f} s")) if silent > UNANSWERED_SECONDS else None

    @property
    def are_idle(self) -> bool:
        """Whether nothing is on its way, and something may be."""
        now = self._clock()
        return not self._flights and now >= self._not_before and not self._breaker.cools(now)

    async def stop(self) -> None:
        """Call everything back; may be called twice."""
        self.last_key = None
        self._queue.clear()
        for flight in self._flights.values():
            self._land(flight, Transient("the worker is stopping"))
        airborne = set(self._airborne)
        for task in airborne:
            task.cancel()
        if airborne:
            await asyncio.wait(airborne)
        self._flights.clear()

    # --- flying -------------------------------------------------------------------------------------------------------

    def _launch(self) -> None:
        while self._queue and len(self._airborne) < self._max_requests * FLIGHTS_PER_SLOT:
            task = asyncio.get_running_loop().create_task(self._fly(self._queue.popleft()), name="expectations look-up")
            self._airborne.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._airborne.discard(task)
        self._launch()

    async def _fly(self, flight: Flight) -> None:
        try:
            self._land(flight, await self._retrying(flight)(self._try, flight))
        except Outage as error:
            self._land(flight, Transient(str(error)))  # a new one, without a traceback
        except Exception as error:  # noqa: BLE001 - a defect must reach those who wait, not this task
            flight.landed.set_exception(error)
        finally:
            self._flights.pop(flight.key, None)

    def _land(self, flight: Flight, outcome: Outcome) -> None:
        if not flight.landed.done():
            flight.landed.set_result(outcome)

    def _retrying(self, flight: Flight) -> AsyncRetrying:
        def wait(state: RetryCallState) -> float:
            return self._rest() + _backoff(state)

        def is_over(state: RetryCallState) -> bool:
            return not flight.waiting or self._clock() + state.upcoming_sleep >= self._last_call(flight)

        return AsyncRetrying(
            retry=retry_if_exception(_may_pass), wait=wait, stop=is_over, sleep=self._sleep, reraise=True
        )

    def _last_call(self, flight: Flight) -> float:
        return flight.deadline - self._timeout_seconds * LEAST_SHARE_OF_THE_DEADLINE

    async def _try(self, flight: Flight) -> Answer:
        async with self._slots:
            if not flight.waiting:
                raise Outage("was not asked: nobody waits any more", is_lasting=True)
            flight.deadline = flight.deadline or self._clock() + self._timeout_seconds
            await self._keep_away(flight)
            if self._breaker.is_open:
                async with self._probing:  # one asks; the others look again when it is back
                    if self._breaker.cools(self._clock()):
                        raise self._left_alone()
                    if self._breaker.is_open:
                        return await self._request(flight)
            return await self._request(flight)

    async def _request(self, flight: Flight) -> Answer:
        now = self._clock()
        if now >= self._last_call(flight):  # whose wait for its turn took too long
            raise self._left_alone()
        seconds = min(flight.deadline - now, self._timeout_seconds / TRIES_IN_A_DEADLINE)
        self.last_key = flight.key
        self._asked_at[flight] = now
        try:
            answer = await self._ask(flight.key, seconds)
        except Outage as error:
            self._note_failure(flight.key, error)
            raise
        finally:
            del self._asked_at[flight]
            self.heard_at = self._clock()
        self._note_success()
        return answer

    # --- what the service is spared -----------------------------------------------------------------------------------

    def _rest(self) -> float:
        return max(0.0, self._not_before - self._clock())

    async def _keep_away(self, flight: Flight) -> None:
        """Wait for as long as the service has asked us to; raises Outage where that is too long for the flight."""
        rest = self._rest()
        if rest and self._clock() + rest >= self._last_call(flight):
            raise self._left_alone()
        if rest:
            await self._sleep(rest)

    def _left_alone(self) -> Outage:
        rest = self._rest()
        why = self._failing or "has not answered in time"
        return Outage(f"{why}; it is left alone for {rest:.0f} s" if rest else why, is_lasting=True)

    def _note_failure(self, key: ExpectationsKey, error: Outage) -> None:
        now = self._clock()
        self._failing = error.what  # not the error: its traceback would keep what it went through
        self._not_before = max(self._not_before, now + error.retry_after_seconds)
        self._breaker.failed(key, now)
        if self._breaker.failures == FAILURES_TO_TELL:
            _log.error("look-ups wait for the expectations service", host=self._host, why=str(error))

    def _note_success(self) -> None:
        if self._breaker.failures >= FAILURES_TO_TELL:
            _log.info("the expectations service is back", host=self._host)
        self._failing = None
        self._breaker.succeeded()


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, Outage) and not error.is_lasting


# --- the breaker ------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True, slots=True)
class Breaker:
    """What does not answer is left alone for a while, then asked once; pure, time is an argument.

    Closed while all is well, open after failures in a row; once it has cooled, one caller at a time may try.

    It opens when `limit` different keys have failed with no success between: one key that always fails is no reason to
    keep the others waiting, and few keys do no harm, since each waits longer from try to try.
    """

    limit: int = 5
    first_seconds: float = 0.5
    longest_seconds: float = 4.0
    uniform: Callable[[float, float], float] = random.uniform
    failures: int = field(default=0, init=False)
    """How many requests have failed since the last success."""
    _failed: set[Hashable] = field(default_factory=set, init=False)
    _cool_at: float | None = field(default=None, init=False)
    _backoff: Backoff = field(init=False)

    def __post_init__(self) -> None:
        self._backoff = Backoff(self.first_seconds, self.longest_seconds, self.uniform)

    @property
    def is_open(self) -> bool:
        """Whether requests are held back, but for one at a time once it has cooled."""
        return self._cool_at is not None

    def cools(self, now: float) -> bool:
        """Whether it is open and nothing at all may be asked yet."""
        return self._cool_at is not None and now < self._cool_at

    def succeeded(self) -> None:
        """An answer came, whatever it says: all may ask again."""
        self.failures = 0
        self._failed.clear()
        self._backoff.reset()
        self._cool_at = None

    def failed(self, key: Hashable, now: float) -> None:
        """No answer came; what was already under way when it opened does not prolong it."""
        self.failures += 1
        if len(self._failed) < self.limit:
            self._failed.add(key)
        if len(self._failed) >= self.limit and not self.cools(now):
            self._cool_at = now + self._backoff.next()
