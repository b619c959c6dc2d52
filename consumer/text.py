"""Names and texts from outside, made safe for a terminal, a log or a header."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

_NAMED = 3
_LONGEST_NAME = 60


def visible(text: str) -> str:
    """Escape every invisible character, for a message that must show exactly what was there."""
    return "".join(character if character.isprintable() else escaped(character) for character in text)


def printable(text: str) -> str:
    """Escape what a terminal would obey or be fooled by: C0, DEL, C1, bidi marks, line separators, lone surrogates."""
    return _UNPRINTABLE.sub(lambda found: escaped(found[0]), text)


def without_tricks(text: str) -> str:
    """Escape the same, but for the control characters below U+0020, such as the line feeds between lines."""
    return _TRICKS.sub(lambda found: escaped(found[0]), text)


def quoted(text: str) -> str:
    """Give a text printable and in quotation marks."""
    return f'"{printable(text)}"'


_TRICKY: Final = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_TRICKS: Final = re.compile(f"[{_TRICKY}]")
_UNPRINTABLE: Final = re.compile(f"[\x00-\x1f{_TRICKY}]")


def escaped(character: str) -> str:
    """Give a character as JSON and Python write it, such as "\\u001b"."""
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def is_utf8(name: str) -> bool:
    """Whether a header's name was valid UTF-8; bytes that were not have been decoded as lone surrogates."""
    return name.isascii() or _SURROGATE.search(name) is None


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def composed(name: str) -> str:
    """Give a name in the one Unicode form in which equal letters are equal: file systems write "é" as one or as two."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def named(names: Iterable[str], most: int = _NAMED, longest: int = _LONGEST_NAME) -> str:
    """A few names, cut to their `longest` first characters, and how many more there are."""
    listed = list(names)
    texts = [visible(name if len(name) <= longest else name[: longest - 1] + "…") for name in listed[:most]]
    return ", ".join(texts) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def count_of(count: int, thing: str, ending: str = "s") -> str:
    """Give "1 case", or "2 cases"."""
    return f"{count} {thing}{'' if count == 1 else ending}"


def natural_order(name: str) -> tuple[tuple[str, int], ...]:
    """Give a key to sort names by, in which the tenth batch follows the ninth: I25_batch_2 before I25_batch_10."""
    texts_and_numbers = _DIGITS.split(name)
    texts, numbers = texts_and_numbers[::2], texts_and_numbers[1::2]
    return (*zip(texts, map(int, numbers), strict=False), (texts[-1], -1), (name, -1))


_DIGITS: Final = re.compile("([0-9]+)")
