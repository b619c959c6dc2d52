"""The keys of a test case that are read, and what others may be meant for (contract.md, "Batch files")."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from safe_core.expectations import PLACES
from safe_core.misspelt_keys import key_meant

UnreadKind = Literal["misspelt_key", "misplaced_key", "unknown_key"]


class UnreadKey(NamedTuple):
    """A key of a test case that scoring ignores; `path` leads to it, `sentence` quotes it."""

    code: UnreadKind
    path: str
    sentence: str


class _Keys(NamedTuple):
    """The keys of one level of a test case: those that are read here, and those that factory-cli writes besides."""

    read: tuple[str, ...]
    ignored: tuple[str, ...] = ()


_LEVELS: Final[Mapping[tuple[str, ...], _Keys]] = {
    (): _Keys(
        (
            "test_id",
            "concern_id",
            "archetype",
            "metric_id",
            "patient_payload",
            "patient_payload_digest",
            "expectations",
            "accepted_wordings",
        ),
        ("description",),
    ),
    ("expectations",): _Keys(tuple(section for section, _ in PLACES.values())),
    ("expectations", "signal_generation"): _Keys(("must_find_signals",), ("min_signal_count",)),
    ("expectations", "followup_questions"): _Keys(("forbidden_terms",), ("required_themes",)),
    ("expectations", "event_summary"): _Keys(("must_contain_phrases",)),
}
_NAMES: Final = {level: frozenset((*keys.read, *keys.ignored)) for level, keys in _LEVELS.items()}
_PLACE_OF_KEY: Final = {key: ".".join(level) for level, keys in _LEVELS.items() for key in keys.read}


def unread_keys(case: object) -> Iterator[UnreadKey]:
    """Find the keys of a test case, as it is written, that nothing reads."""
    for level, known in _LEVELS.items():
        there = within(case, *level)
        if isinstance(there, (dict, Mapping)) and not (names := _NAMES[level]).issuperset(there):  # dict: quickly asked
            for key in (key for key in there if key not in names):
                code, what = _told(key, known, frozenset(name for name in known.read if name in there))
                yield UnreadKey(code, ".".join((*level, key)), what)


def within(document: object, *keys: str) -> object:
    """Give what stands under some keys, one within the other; None where there is nothing."""
    for key in keys:
        document = document.get(key) if isinstance(document, (dict, Mapping)) else None
    return document


@lru_cache(maxsize=4096)  # the same key tends to stand in every case
def _told(key: str, known: _Keys, there: frozenset[str]) -> tuple[UnreadKind, str]:
    """Say what an unknown key may be: one of another level, or a misspelt one that is missing here."""
    if key in _PLACE_OF_KEY:
        where = _PLACE_OF_KEY[key] or "the test case itself"
        return "misplaced_key", f'"{key}" is not read here, but in {where}'
    if meant := key_meant(key, known.read, there):
        return "misspelt_key", f'unknown key "{key}", which scoring ignores; did you mean "{meant}"?'
    close = key_meant(key, (*known.read, *known.ignored), ())
    hint = f'; the nearest known one is "{close}"' if close else ""
    return "unknown_key", f'unknown key "{key}", which scoring ignores{hint}'
