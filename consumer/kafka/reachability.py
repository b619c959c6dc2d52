"""Whether a broker answers at the configured addresses, and if not, whether the settings are wrong or none is up."""

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.metadata import MetadataRequest

from consumer.errors import ConfigurationError, Fatal, SafeError, Transient
from consumer.kafka.aiokafka_internals import open_connection
from consumer.kafka.broker_errors import words_of
from consumer.kafka.failures import FAILURES
from consumer.kafka.oauth import TokenUnavailable
from consumer.kafka.refusals import refusal_in
from consumer.text import named

_SERVER_SECONDS = 5.0
_MOST_NAMED = 5
_CONNECTION_OPTIONS = (
    "client_id", "security_protocol", "ssl_context", "sasl_mechanism", "sasl_plain_username", "sasl_plain_password",
    "sasl_oauth_token_provider",
)  # fmt: skip


class TurnedAway(Transient):
    """A server accepts the connection and closes it again.

    This is what wrong security settings look like, and for a moment a broker that stops or starts.
    """


async def reach(options: Mapping[str, Any]) -> None:
    """Ask one of the configured brokers something, as a client with these options would; messages name the servers.

    Then connect to one of the addresses that it gives to clients: those are what every request goes to. If none
    answers, this raises Fatal where all that are up refuse our credentials, or have certificates that we refuse;
    TurnedAway where all are up, and one closes the connection; else Transient.
    """
    configured = options["bootstrap_servers"].split(",")
    advertised = await _first_answer(configured, options)
    if not advertised or advertised & set(configured):
        return  # the answer came from such an address itself
    try:
        await _first_answer(sorted(advertised), options)
    except (Fatal, Transient) as error:
        raise type(error)(
            f"{named(configured, _MOST_NAMED)} answered, but the addresses that the brokers give to clients "
            f"(advertised.listeners) cannot be used here: {error}"
        ) from error


async def _first_answer(servers: Sequence[str], options: Mapping[str, Any]) -> frozenset[str]:
    """The addresses of all brokers, as the first of these servers that answers gives them."""
    attempts = [asyncio.ensure_future(_advertised(server, options)) for server in servers]
    try:
        for attempt in asyncio.as_completed(attempts):
            if not isinstance(answer := await attempt, SafeError):
                return answer
    finally:
        for task in attempts:
            task.cancel()
        await asyncio.gather(*attempts, return_exceptions=True)
    # In the order of the servers, so that the same failures always give the same sentence.
    raise _combined([failure for attempt in attempts if isinstance(failure := attempt.result(), SafeError)])


def unusable(servers: str, error: Transient) -> ConfigurationError:
    """The error for brokers that cannot be used, with the remedy."""
    return ConfigurationError(
        f"the brokers at {servers} cannot be used ({error}): check --bootstrap-servers "
        "(SAFE_V0_KAFKA_BOOTSTRAP_SERVERS) and the security settings (SAFE_V0_KAFKA_SECURITY_PROTOCOL)"
    )


def _combined(failures: Sequence[Fatal | Transient]) -> Fatal | Transient:
    reasons = "; ".join(map(str, failures))
    answers = [failure for failure in failures if isinstance(failure, Fatal | TurnedAway)]
    if answers and all(isinstance(answer, Fatal) for answer in answers):
        return Fatal(reasons)
    if len(answers) == len(failures):
        return TurnedAway(reasons)
    return Transient(reasons)


async def _advertised(server: str, options: Mapping[str, Any]) -> frozenset[str] | Fatal | Transient:
    """The addresses of all brokers that a server gives to clients; why it does not answer, if it does not."""
    host, _, port = server.rpartition(":")
    known = {name: options[name] for name in _CONNECTION_OPTIONS if name in options}
    connection = None
    try:
        async with asyncio.timeout(_SERVER_SECONDS):
            connection = await open_connection(host.strip("[]"), int(port), **known)
            answer = await connection.send(MetadataRequest([]))
    except TokenUnavailable as error:
        return Transient(error.args[0])
    except UnicodeError:
        return Fatal(f"{server} is not a valid host name: check --bootstrap-servers (SAFE_V0_KAFKA_BOOTSTRAP_SERVERS)")
    except FAILURES as error:
        return _explained(error, server, known)
    finally:
        if connection is not None:
            connection.close()
    return frozenset(f"{broker[1]}:{broker[2]}" for broker in answer.brokers)


def _explained(error: Exception, server: str, options: Mapping[str, Any]) -> Fatal | Transient:
    refusal = refusal_in(error, options)
    if refusal is not None:
        return Fatal(refusal.with_remedy([server]))
    if isinstance(error, ConnectionResetError | KafkaConnectionError | ssl.SSLError):
        by_certificate = options["security_protocol"] == "SSL"
        hint = "; perhaps it asks for a certificate (SAFE_V0_KAFKA_SSL_CERTFILE)" if by_certificate else ""
        return TurnedAway(f"{server} closes the connection{hint}")
    if isinstance(error, ConnectionRefusedError):
        return Transient(f"{server} refuses connections")
    if isinstance(error, TimeoutError):
        return Transient(f"{server} does not answer")
    return Transient(f"{server}: {getattr(error, 'strerror', None) or words_of(error)}")
