"""What bytes are that are no JSON in UTF-8, told by how they begin: named for a person, and never quoted.

These are what serializers and tools write by default in place of plain JSON. That they are refused is decided
elsewhere (contract.md, "Dead letters"): here it is only said what they are, and what to do.
"""

import re
from typing import Final

_FIRST: Final = rb'[\t\n\r "\[{]'
"""A character with which JSON may begin."""

_FORMATS: Final = tuple(
    (re.compile(pattern, re.DOTALL), what)
    for pattern, what in (
        (rb"\x1f\x8b", "is compressed with gzip: write it uncompressed"),
        (rb"\x28\xb5\x2f\xfd", "is compressed with zstd: write it uncompressed"),
        (rb"PK\x03\x04", "is a zip archive, not JSON"),
        # Of UTF-32 and UTF-16, the byte order mark or else the zero bytes around the first character.
        (rb"\xff\xfe\0\0|\0\0\xfe\xff|%b\0\0\0|\0\0\0%b\0\0\0" % (_FIRST, _FIRST), "is UTF-32: write it as UTF-8"),
        (rb"\xff\xfe|\xfe\xff|%b\0[^\0]|\0%b\0[^\0]" % (_FIRST, _FIRST), "is UTF-16: write it as UTF-8"),
        # A zero, and the number of a schema in four bytes.
        (
            rb"\0.{4}\s*\{",
            "begins with the five bytes that serializers of a Schema Registry put before JSON: write it without them",
        ),
        (rb"\0.{4}", "begins with a zero byte, as Avro and Protobuf of a Schema Registry do: write plain JSON"),
    )
)


def other_format(value: bytes) -> str | None:
    """Say what a value is, as the end of a sentence; None if that is not known."""
    return next((what for begins, what in _FORMATS if begins.match(value)), None)
