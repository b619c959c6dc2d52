"""A login that is refused, by the brokers or by us: told apart from a cluster that is silent, and put into words."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiokafka.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    KafkaConnectionError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from consumer.kafka.oauth import TokenRefused
from consumer.text import named, visible

ALL_BROKERS: Final = "the brokers"
_MOST_NAMED: Final = 3

# How OpenSSL reports that a connection ended for other reasons than the settings.
_PEER_IN_TROUBLE = (ssl.SSLZeroReturnError, ssl.SSLEOFError)
_ALERTS_OF_TROUBLE = ("INTERNAL_ERROR", "CLOSE_NOTIFY", "USER_CANCELED")
# Alerts about the certificate that we show; a broker sends them after the handshake, as TLS 1.3 has it.
_ALERTS_OF_CERTIFICATES = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there can be no login: other credentials help, or waiting if it `ends_by_itself`.

    `remedy` says what to do. In `words`, [who] is for the brokers and [s] for the ending of a verb about one of them.
    """

    words: str
    remedy: str
    ends_by_itself: bool = False

    def by(self, brokers: Sequence[str] | None = None) -> str:
        """The sentence, about the brokers at some addresses, or about all of them."""
        who = ALL_BROKERS if brokers is None else named(brokers, _MOST_NAMED)
        return self.words.replace("[s]", "s" if brokers is not None and len(brokers) == 1 else "").replace("[who]", who)

    def with_remedy(self, brokers: Sequence[str] | None = None) -> str:
        """The sentence, and what to do."""
        return f"{self.by(brokers)}; {self.remedy}"


def refusal_in(error: Exception, options: Mapping[str, Any]) -> Refusal | None:
    """The refusal that an attempt to connect with these options has met, None if the failure is another one."""
    if isinstance(error, TokenRefused):
        return Refusal(error.why, error.remedy)
    if isinstance(error, SaslAuthenticationFailed | AuthenticationFailedError):
        return _refused_login(options)
    if isinstance(error, UnsupportedSaslMechanismError | IllegalSaslStateError):
        return Refusal(
            f"[who] refuse[s] this kind of login ({options.get('sasl_mechanism', 'none')})",
            "check SAFE_V0_KAFKA_SASL_MECHANISM and SAFE_V0_KAFKA_SECURITY_PROTOCOL",
        )
    failure = _tls_error(error)
    return None if failure is None or _is_trouble(failure) else _refused_handshake(failure)


def _refused_handshake(failure: ssl.SSLError) -> Refusal:
    reason = _reason(failure)
    if isinstance(failure, ssl.SSLCertVerificationError):
        return Refusal(
            f"the certificate of [who] is not trusted ({reason})",
            "check SAFE_V0_KAFKA_SSL_CAFILE, and that SAFE_V0_KAFKA_BOOTSTRAP_SERVERS names the brokers as their "
            "certificates do",
        )
    if any(alert in reason for alert in _ALERTS_OF_CERTIFICATES):
        return Refusal(
            f"[who] refuse[s] the client's certificate, or ask[s] for one ({reason})",
            "check SAFE_V0_KAFKA_SSL_CERTFILE and _KEYFILE, and that the brokers trust its authority",
        )
    return Refusal(
        f"no TLS connection to [who] ({reason})",
        "check SAFE_V0_KAFKA_SECURITY_PROTOCOL, SAFE_V0_KAFKA_SSL_CERTFILE and _KEYFILE",
    )


def _refused_login(options: Mapping[str, Any]) -> Refusal:
    """The broker's own words are not repeated: its login module may have put anything there."""
    mechanism = options.get("sasl_mechanism")
    if mechanism == "OAUTHBEARER":
        return Refusal(
            "[who] refuse[s] the token from SAFE_V0_KAFKA_SASL_OAUTH_TOKEN_URL (OAUTHBEARER)",
            "check that the brokers trust this issuer, and that SAFE_V0_KAFKA_SASL_OAUTH_SCOPE is what they ask for",
        )
    user = visible(str(options.get("sasl_plain_username", "")))
    return Refusal(
        f"[who] refuse[s] the login of user {user} ({mechanism}): invalid credentials",
        "check SAFE_V0_KAFKA_SASL_USERNAME, SAFE_V0_KAFKA_SASL_PASSWORD and SAFE_V0_KAFKA_SASL_MECHANISM",
    )


def _tls_error(error: Exception) -> ssl.SSLError | None:
    """What OpenSSL says, also where it is the reason that a connection which had been made was closed again."""
    told = error.__cause__ if isinstance(error, KafkaConnectionError) else error
    return told if isinstance(told, ssl.SSLError) else None


def _is_trouble(error: ssl.SSLError) -> bool:
    """Whether the peer is on its way down, rather than asks for other settings."""
    return isinstance(error, _PEER_IN_TROUBLE) or any(alert in _reason(error) for alert in _ALERTS_OF_TROUBLE)


def _reason(error: ssl.SSLError) -> str:
    return str(getattr(error, "verify_message", None) or getattr(error, "reason", None) or type(error).__name__)
