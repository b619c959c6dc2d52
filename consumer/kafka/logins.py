"""How this process logs in to the brokers: with the credentials of each moment, and what has come of it.

A refused login is a fact of its own. To a client it looks like a cluster that is silent, but waiting does not end it.
So each attempt to connect is noted here, by the address of the broker:

| what happened | what it means |
|---|---|
| a broker lets us in, or answers on a connection that was made before | all that happened before is forgotten |
| a broker refuses the login, or we refuse its certificate | a trouble, until that broker lets us in or is silent |
| the token endpoint does not answer | a trouble likewise, which ends by itself |
| nothing of these for five minutes but refusals | the process ends: only other credentials can help |

A refusal is forgotten if it is not repeated: clients try again every few seconds for as long as they need a broker.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from aiokafka.errors import SaslAuthenticationFailed
from typing_extensions import override

from consumer.errors import Fatal
from consumer.kafka.aiokafka_internals import LoginOfConnections, answered_at
from consumer.kafka.credentials import CredentialsReader
from consumer.kafka.failures import FAILURES
from consumer.kafka.oauth import Client, TokenProvider, TokenUnavailable
from consumer.kafka.refusals import Refusal, refusal_in
from consumer.settings import LastGood, Settings

REFUSED_SECONDS: Final = 300.0
"""How long a new secret may take to reach the files of a worker, after it has reached the brokers."""

_REPEATED_WITHIN_SECONDS: Final = 30.0
_ANSWERS_WITHIN_SECONDS: Final = 10.0
"""A connection that works brings an answer more often: to a heartbeat, or to the watch of the cluster."""


class _Refused(NamedTuple):
    """The latest attempt at one broker; `at` is monotonic."""

    refusal: Refusal
    at: float


class Logins:
    """What has come of the attempts to log in."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._refused: dict[str, _Refused] = {}
        self._refused_since = float("inf")
        self._heard_at = float("-inf")
        self._connections: WeakSet[Any] = WeakSet()

    def note_refusal(self, address: str, refusal: Refusal) -> None:
        """A broker refuses the login."""
        now = self._clock()
        if not self._current(now):
            self._refused_since = now
        self._refused[address] = _Refused(refusal, now)

    def note_silence(self, address: str) -> None:
        """A broker cannot be reached, or does not answer."""
        self._refused.pop(address, None)

    def note_success(self, address: str, connection: Any) -> None:
        """A broker lets us in."""
        self._refused.pop(address, None)
        self._connections.add(connection)

    def troubles(self) -> list[str]:
        """Each refusal of this moment, in a sentence."""
        now = self._clock()
        refused = self._current(now)
        if any(each.connected() and now - answered_at(each) < _ANSWERS_WITHIN_SECONDS for each in self._connections):
            return [refusal.by([address]) for address, refusal in refused.items()]
        return [refusal.by() for refusal in dict.fromkeys(refused.values())]

    def is_refused(self) -> bool:
        """Whether there is a refusal at this moment that does not end by itself."""
        return any(not refusal.ends_by_itself for refusal in self._current(self._clock()).values())

    def check(self) -> None:
        """Raise Fatal if for five minutes no broker has let us in, and no earlier connection has brought an answer."""
        now = self._clock()
        refused = dict.fromkeys(self._current(now).values())
        if any(refusal.ends_by_itself for refusal in refused):
            self._refused_since = now
        elif refused and now - max(self._refused_since, self._heard()) >= REFUSED_SECONDS:
            told = "; ".join(f"{each.by()}, for {REFUSED_SECONDS / 60:.0f} minutes; {each.remedy}" for each in refused)
            raise Fatal(told)

    def _current(self, now: float) -> dict[str, Refusal]:
        return {
            address: refused.refusal
            for address, refused in self._refused.items()
            if now - refused.at < _REPEATED_WITHIN_SECONDS
        }

    def _heard(self) -> float:
        """When a broker that has let us in has last answered."""
        self._heard_at = max(self._heard_at, *map(answered_at, self._connections), float("-inf"))
        return self._heard_at


class Login(LoginOfConnections):
    """The login of all connections of a process; `settings_now` reads the secrets, and raises ConfigurationError."""

    def __init__(self, settings_now: Callable[[], Settings], *, by_token: bool) -> None:
        self.credentials = LastGood("the login to the brokers", CredentialsReader(settings_now))
        self.logins = Logins()
        self._tokens = TokenProvider(self._client) if by_token else None

    def _client(self) -> Client:
        client = self.credentials.value.client
        assert client is not None, "the credentials are those of a client"
        return client

    @override
    async def open(self, connect: Callable[..., Awaitable[Any]], host: str, port: int, options: dict[str, Any]) -> Any:
        credentials = await self.credentials.read_again()
        options = options | credentials.options() | {"sasl_oauth_token_provider": self._tokens}
        address = f"{host}:{port}"
        try:
            connection = await connect(host, port, **options)
        except FAILURES as error:
            self._note_failure(address, error, options)
            raise
        self.logins.note_success(address, connection)
        return connection

    def _note_failure(self, address: str, error: Exception, options: Mapping[str, Any]) -> None:
        refusal = refusal_in(error, options)
        if isinstance(error, TokenUnavailable):
            refusal = Refusal(error.args[0], "wait, or look at the token endpoint", ends_by_itself=True)
        if refusal is None:
            self.logins.note_silence(address)
            return
        self.logins.note_refusal(address, refusal)
        if self._tokens is not None and isinstance(error, SaslAuthenticationFailed):
            self._tokens.note_refusal()

    def troubles(self) -> list[str]:
        """Each refusal of this moment, in a sentence; and why the credentials are perhaps not the latest ones."""
        troubles = self.logins.troubles()
        unread = self.credentials.trouble
        return [*troubles, f"the login cannot be read again: {unread}"] if troubles and unread is not None else troubles
