"""The configuration file as text: JSON with // comments, read into values by dotted keys.

Only the keys are checked here, not the values.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pydantic.alias_generators import to_camel

from consumer.errors import ConfigurationError
from consumer.settings.fields import FILE_KEYS, POLICY_KEYS

FILE_NAME: Final = "safe.config.json"
SCHEMA_KEY: Final = "$schema"  # for editors: SAFE ignores what it names

_KEYS: Final = frozenset((*FILE_KEYS.values(), *POLICY_KEYS))
_SECTIONS: Final = frozenset(key[: dot.start()] for key in _KEYS for dot in re.finditer(r"\.", key))
"""What precedes a dot in a key: an object in the file."""
_SPELLINGS: Final = {to_camel(name): key for name, key in FILE_KEYS.items()} | {
    key: key for key in (*_KEYS, *_SECTIONS, SCHEMA_KEY)
}
"""What people may write, and the key that they mean."""

_STRING: Final = r'"(?:[^"\\\r\n]|\\.)*"'


@dataclass(frozen=True, slots=True)
class ConfigurationFile:
    """The entries of the configuration file by their dotted keys; none if there is no file."""

    name: str
    entries: Mapping[str, object]


def suggestion(name: str, known: Mapping[str, str]) -> str:
    """Advise on an unknown name; `known` maps each spelling one might have meant, in any case, to the right one."""
    spellings = {spelling.lower(): right for spelling, right in known.items()}
    close = difflib.get_close_matches(name.lower(), spellings, n=1)
    return f"did you mean {spellings[close[0]]}?" if close else "remove it"


def read_configuration_file(path: str | None, folder: Path) -> ConfigurationFile:
    """Read the file that is named, or else the one in the folder, if it is there; raises ConfigurationError."""
    if path is None and not (folder / FILE_NAME).exists():
        return ConfigurationFile(FILE_NAME, {})
    name = FILE_NAME if path is None else path
    try:
        text = (folder / name).read_text(encoding="utf-8-sig")  # editors on Windows write the mark
    except OSError as error:
        origin = name if path is None else f"--config {name}"
        raise ConfigurationError(f"{origin} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{name} is not UTF-8 text; save it as UTF-8") from error
    document = _parse(text, name)
    if not isinstance(document.pop(SCHEMA_KEY, ""), str):
        raise ConfigurationError(f"{name}: {SCHEMA_KEY} is not a string; write the path or the address of the schema")
    return ConfigurationFile(name, dict(_leaves(document, name)))


def without_comments(text: str) -> str:
    """Replace // comments by blanks, which keeps lines and columns; strings are left as they are."""
    pattern = rf"{_STRING}|//[^\r\n]*"
    return re.sub(pattern, lambda found: found[0] if found[0].startswith('"') else " " * len(found[0]), text)


def _parse(text: str, name: str) -> dict[str, object]:
    try:
        plain = without_comments(text)
        document = json.loads(plain, object_pairs_hook=_unique, parse_constant=partial(_no_constant, plain))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ConfigurationError(
            f"{name} is not valid JSON (// comments are allowed): {error.msg} at {place}"
        ) from error
    except ValueError as error:
        raise ConfigurationError(f"{name} cannot be used: {error}") from error
    except RecursionError as error:
        raise ConfigurationError(f"{name} is nested too deeply") from error
    if not isinstance(document, dict):
        raise ConfigurationError(f"{name} must hold one JSON object: begin it with {{")
    return document


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {json.dumps(twice)} appears twice in one object; remove one")
    return document


def _no_constant(text: str, constant: str) -> object:
    """Refuse NaN and Infinity, which JSON does not have, with the position of the first one outside strings."""
    found = re.finditer(f"{_STRING}|{constant}", text)
    place = next(each.start() for each in found if each[0] == constant)
    raise json.JSONDecodeError(f"{constant} is not allowed in JSON (write a finite number)", text, place)


def _leaves(document: Mapping[str, object], file: str, parent: str = "") -> Iterator[tuple[str, object]]:
    """Walk the entries with their dotted keys, refusing those that no setting has."""
    for part, value in document.items():
        key = parent + part
        if "." in part and parent + part.partition(".")[0] in _KEYS | _SECTIONS:  # else it could be given twice
            raise ConfigurationError(
                f'{file}: {json.dumps(part)} is not a key; nest it, as in {{"thresholds": {{"CR": {{"pass": 0.8}}}}}}'
            )
        if key in _SECTIONS:
            if not isinstance(value, dict):
                raise ConfigurationError(f"{file}: {key} is not an object; write {{ … }} there")
            yield from _leaves(value, file, f"{key}.")
        elif key in _KEYS:
            yield key, value
        else:
            # Not the object that the key is in: nothing resembles the key more.
            near = {name: known for name, known in _SPELLINGS.items() if not key.startswith(f"{name}.")}
            advice = suggestion(key, near)
            raise ConfigurationError(f"{file}: {json.dumps(key)} is not a key that SAFE knows; {advice}")
