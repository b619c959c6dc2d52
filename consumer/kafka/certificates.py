"""When certificates end: the one field of them that SAFE reads itself.

Python's ssl module tells it of authorities alone, not of the certificate that a client shows. So the few elements
before it are stepped over here, as X.509 orders them (RFC 5280, section 4.1).
"""

import base64
import binascii
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

_PEM: Final = re.compile(rb"-----BEGIN (?:TRUSTED )?CERTIFICATE-----(.+?)-----END", re.DOTALL)
_VERSION: Final = 0xA0
_TIME_FORMATS: Final = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}
_BETWEEN: Final = 3
"""Serial number, signature algorithm and issuer come before the validity."""


def first_end(pem: bytes) -> float | None:
    """When the first of the certificates in a file ends, in seconds since 1970; None if it holds none."""
    ends = [end for body in _PEM.findall(pem) if (end := _end(body)) is not None]
    return min(ends, default=None)


def _end(body: bytes) -> float | None:
    """When one certificate ends; None if it is no certificate: the code that uses the file reports that."""
    try:
        [(_, certificate)] = _elements(base64.b64decode(body))
        (_, signed), *_ = _elements(certificate)
        tags = list(_elements(signed))
        validity = tags[_BETWEEN + (tags[0][0] == _VERSION)][1]
        _, (tag, text) = _elements(validity)
        return datetime.strptime(text.decode("ascii"), _TIME_FORMATS[tag]).replace(tzinfo=UTC).timestamp()
    except (ValueError, KeyError, IndexError, binascii.Error):
        return None


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and content of each element of an encoded sequence; raises IndexError where it is cut off."""
    at = 0
    while at < len(der):
        tag, length, at = der[at], der[at + 1], at + 2
        if length & 0x80:  # the number of bytes that hold the length
            size = length & 0x7F
            length, at = int.from_bytes(der[at : at + size], "big"), at + size
        if at + length > len(der):
            raise IndexError
        yield tag, der[at : at + length]
        at += length
