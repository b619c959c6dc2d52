"""The time now, and RFC 3339 times to milliseconds since 1970 and back."""

import re
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from consumer.dead_letter_reasons import Poison

# RFC 3339, section 5.6; a leap second (":60") is allowed there, 24:00 is not.
_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND


def now_ms() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def milliseconds_of(text: object) -> int:
    """Milliseconds since 1970 of an RFC 3339 time with a zone, fractions cut (contract.md, "Times")."""
    if not isinstance(text, str) or _RFC_3339.fullmatch(text) is None:
        raise Poison("invalid_event", "generated_at is not an RFC 3339 time with a zone")
    leap_ms = 0
    if ":60" in text or not text.isupper():  # Python reads neither leap seconds nor small letters
        leap_ms = 1_000 if ":60" in text else 0
        text = text.upper().replace(":60", ":59")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Poison("invalid_event", "generated_at names a day that does not exist") from None
    return (moment - _EPOCH) // _MILLISECOND + leap_ms


@lru_cache(maxsize=4_096)  # a slice has few distinct times, and formatting one costs as much as scoring a case
def rfc_3339(milliseconds: int) -> str:
    """`2026-11-21T20:00:00.000Z` of milliseconds since 1970."""
    seconds, rest = divmod(milliseconds, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}.{rest:03d}Z"


def shown_time(milliseconds: int) -> str:
    """The same of any time: one that its zone puts out of the years that can be written is their first or last."""
    return rfc_3339(min(max(milliseconds, _FIRST), _LAST))
