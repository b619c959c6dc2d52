"""`-` as the name of a file: standard input, which can be read once."""

import sys
from pathlib import Path
from typing import Final

from consumer.errors import ConfigurationError

_DASH: Final = Path("-")
STANDARD_INPUT: Final = Path("standard input")
"""What `-` is called in messages and in reports."""


def is_standard_input(path: Path) -> bool:
    """Tell whether a path given on the command line means standard input."""
    return path == _DASH


def called(path: Path) -> Path:
    """Give the path as messages name it."""
    return STANDARD_INPUT if is_standard_input(path) else path


def read_standard_input() -> bytes:
    """Read it to the end; raises ConfigurationError if nothing comes, as when `-` is given a second time."""
    written = sys.stdin.buffer.read()
    if not written.strip():
        raise ConfigurationError(
            f"{STANDARD_INPUT}: is empty; check that the command that writes to it has succeeded, and give - only once"
        )
    return written
