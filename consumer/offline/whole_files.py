"""Files that appear whole or not at all."""

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from consumer.errors import ConfigurationError
from consumer.text import visible


def unwritable(path: Path, error: OSError) -> ConfigurationError:
    """Say why a file cannot be written."""
    return ConfigurationError(f"{visible(str(path))} cannot be written: {error.strerror}")


def write_whole(path: Path, text: str | bytes) -> None:
    """Write a file so that nobody ever sees a part of it; raises ConfigurationError.

    A pipe or device is written into; of a symbolic link, the file that it leads to is replaced.
    """
    encoded = text.encode() if isinstance(text, str) else text
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(encoded)
        else:
            _replace(Path(os.path.realpath(path)), encoded)
    except OSError as error:
        raise unwritable(path, error) from error


def _replace(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f".{shortened(path.name, 200)}.{secrets.token_hex(4)}")
    try:
        with unfinished.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, unfinished)
        unfinished.replace(path)
    except BaseException:  # whatever ends it, Ctrl-C too, nothing unfinished is left behind
        with suppress(OSError):
            unfinished.unlink()
        raise


def shortened(name: str, size: int) -> str:
    """The beginning of a name that takes at most `size` bytes; a file system counts them, not characters."""
    return name.encode(errors="replace")[:size].decode(errors="ignore")
