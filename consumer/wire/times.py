"""The time now, and RFC 3339 times to milliseconds since 1970 and back."""

import re
import time
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from consumer.errors import Poison

# RFC 3339, section 5.6; a leap second (":60") is allowed there, 24:00 is not.
_RFC_3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.(\d+))?"
    r"(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = _EPOCH.toordinal()
_MILLISECOND = timedelta(milliseconds=1)


def now_ms() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def milliseconds_of(text: object) -> int:
    """Milliseconds since 1970 of an RFC 3339 time with a zone, fractions cut (contract.md, "Times")."""
    if not isinstance(text, str) or (match := _RFC_3339.fullmatch(text)) is None:
        raise Poison("invalid_event", "generated_at is not an RFC 3339 time with a zone")
    try:
        return (datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        return _leap_milliseconds(match)


def _leap_milliseconds(match: re.Match[str]) -> int:
    """The same for what Python's parser refuses: a leap second, small letters, a day that does not exist."""
    year, month, day, hour, minute, second, fraction, sign, zone_hours, zone_minutes = match.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        raise Poison("invalid_event", "generated_at names a day that does not exist") from None
    seconds = days * 86_400 + int(hour) * 3_600 + int(minute) * 60 + int(second)
    if sign is not None:
        zone_seconds = int(zone_hours) * 3_600 + int(zone_minutes) * 60
        seconds += zone_seconds if sign == "-" else -zone_seconds
    return seconds * 1_000 + int(((fraction or "") + "000")[:3])


@lru_cache(maxsize=4_096)  # a slice has few distinct times, and formatting one costs as much as scoring a case
def rfc_3339(milliseconds: int) -> str:
    """`2026-11-21T20:00:00.000Z` of milliseconds since 1970."""
    seconds, rest = divmod(milliseconds, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"
