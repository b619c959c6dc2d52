"""Keys that nothing reads, but that resemble one that is read: a text under such a key would be lost in silence.

What is told of a key is the known name that it resembles, so that no name from outside has to be repeated. Names that
are a little alike are told only where little may stand beside them: an event may hold any other key.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from safe_core.outputs import FAILURE_KEYS
from safe_core.remembered import Remembered

NEAR, NEARLY_EQUAL = 0.6, 0.9
"""Similarities of difflib; a key that is there too must be spelt nearly the same to be what was meant."""

SCORED_FIELDS: Final = ("signals", "summary", "followup_questions")
"""The fields of an output that some criterion reads (contract.md, "Criteria")."""

_MOST_KEYS: Final = 32
_LONGEST_KEY: Final = 48
"""Longer than any that could resemble a known one; both limits bound what a hostile object costs."""

_BETWEEN_WORDS: Final = re.compile(r"[\s_-]+")


LookAlikes = tuple[tuple[str, str], ...]
"""Keys that nothing reads, each with the known one that it resembles."""


@dataclass(frozen=True, slots=True, eq=False)  # equal to itself alone, so that it is hashed quickly
class KeyLevel:
    """What one kind of object may hold.

    Another key is told if it is near to one of `scored` that is missing, or if it is one of `read` in another spelling.
    Those of `ignored` are known, though nobody reads them.
    """

    scored: tuple[str, ...]
    read: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    known: frozenset[str] = field(init=False)
    remembered: Remembered[tuple[str, ...], LookAlikes] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", frozenset((*self.scored, *self.read, *self.ignored)))
        object.__setattr__(self, "remembered", Remembered(1024))  # the events of a producer have the same keys


OUTPUT_KEYS: Final = KeyLevel(SCORED_FIELDS, ("raw_input", "error_message"), ("model_name", "latency_ms"))
_IDS: Final = ("test_id", "batch_id", "concern_id", "archetype", "metric_id", "run_id")
EVENT_KEYS: Final = KeyLevel((), (*_IDS, "generated_at", "input_digest", "output"), FAILURE_KEYS)
READ_KEYS: Final = (*EVENT_KEYS.read, *OUTPUT_KEYS.scored, *OUTPUT_KEYS.read)
"""All keys that an event can be told to resemble."""
ENTRY_KEYS: Final = KeyLevel(
    (),
    (*_IDS, "generated_at", "input_digest", "batch_index", "engine_output", "output", *FAILURE_KEYS),
    ("message", "scenario_label", "structural", "semantic", "scores"),
)
"""Of an entry of a factory-cli report."""


def look_alikes(document: Mapping[str, object], level: KeyLevel) -> LookAlikes:
    """Give the keys of an object that resemble one that is read."""
    if level.known.issuperset(document):
        return ()
    keys = tuple(document)
    found = level.remembered.get(keys)
    return _looked_up(keys, level) if found is None else found


def _looked_up(keys: tuple[str, ...], level: KeyLevel) -> LookAlikes:
    unknown = [key for key in keys if key not in level.known and len(key) <= _LONGEST_KEY][:_MOST_KEYS]
    pairs = ((key, respelt(key, level.read) or key_meant(key, level.scored, keys)) for key in unknown)
    found = tuple((key, name) for key, name in pairs if name is not None)
    if len(keys) <= _MOST_KEYS and all(len(key) <= _LONGEST_KEY for key in keys):
        level.remembered.keep(keys, found)
    return found


def respelt(key: str, names: Collection[str]) -> str | None:
    """Give the name that a key has but for upper and lower case, and what stands between words: testId, "Test ID"."""
    if len(key) > _LONGEST_KEY:
        return None
    squeezed = _squeezed(key)
    return next((name for name in names if _squeezed(name) == squeezed), None)


def key_meant(key: str, names: Sequence[str], there: Collection[str]) -> str | None:
    """Give the name that a key is likely to be meant for: one that is missing, or `there` and spelt nearly the same."""
    if len(key) > _LONGEST_KEY:
        return None
    spelt = re.sub(r"[\s-]+", "_", key.strip()).lower()
    missing = [name for name in names if name not in there]
    near = get_close_matches(spelt, missing, 1, NEAR) or get_close_matches(spelt, names, 1, NEARLY_EQUAL)
    return near[0] if near else None


def resembling(document: Mapping[str, object], name: str) -> Iterator[str]:
    """Give the keys of an object that may be meant for a name that it lacks."""
    short = [key for key in document if len(key) <= _LONGEST_KEY][:_MOST_KEYS]
    return (key for key in short if respelt(key, [name]) or key_meant(key, [name], [name]))


def _squeezed(key: str) -> str:
    return _BETWEEN_WORDS.sub("", key).casefold()
