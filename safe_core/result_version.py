"""Which of two results of one test case is the later one (contract.md, "Latest result")."""

import struct

Version = tuple[bool, int, int, int]
"""Whether a model answered, event time in ms, source partition, source offset: the greater is the later result."""


def believed_time(stated: int, recorded: int, ahead: int) -> int:
    """Give the event time that counts, of the one that an output states (contract.md, "Times").

    It is believed up to `ahead` after the timestamp of its own record, `recorded`, which counts instead if it is later
    still. A record without a timestamp (-1) is no judge. All in ms.
    """
    return recorded if 0 <= recorded < stated - ahead else stated


_PACKED = struct.Struct(">?QQQ")
_LOWEST = 2**63
"""Added to each whole number of a version, so that packed versions compare as the versions do."""


def packed_version(version: Version) -> bytes:
    """A version in 25 bytes; raises ValueError where a number does not fit 64 bits."""
    answered, event_time, partition, offset = version
    try:
        return _PACKED.pack(answered, event_time + _LOWEST, partition + _LOWEST, offset + _LOWEST)
    except struct.error as error:
        raise ValueError("a version is a bool and three integers of 64 bits") from error


def unpacked_version(packed: bytes) -> Version:
    """The version that packed_version() packed."""
    answered, event_time, partition, offset = _PACKED.unpack(packed)
    return answered, event_time - _LOWEST, partition - _LOWEST, offset - _LOWEST


def is_older(packed: bytes, other: bytes) -> bool:
    """Tell whether the other of two packed versions is that of the later result."""
    return packed < other
