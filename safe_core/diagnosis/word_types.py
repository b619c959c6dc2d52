"""What sort of word is absent, for people: a time, a day, a side, a mechanism, …"""

from collections.abc import Sequence

from safe_core.diagnosis.diagnosis_types import AbsentWord, WordType
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.values.value_types import ValueType
from safe_core.diagnosis.words import stem, word_set

_OF_VALUES: dict[ValueType, WordType] = {"time": "time", "day": "day", "side": "side", "grade": "grade"}
_CAUSES = word_set("due because by secondary caused owing attributed")
_POINTS = word_set("from until since before after between prior following to")
_ACCIDENTS = frozenset(
    map(
        stem,
        word_set(
            "fall accident crash collision collapse trip slip assault jump blow kick strike struck throw thrown twist "
            "incident injury burn bite impact"
        ),
    )
)
_EVENT_ENDINGS = ("ed", "ing", "ion", "al", "ment", "ery")


def absent_word(text: str, items: Sequence[Item], item: Item) -> AbsentWord:
    """Name an absent word of a term as the term spells it, with its type."""
    return AbsentWord(text[item.start : item.end], _type(items, item))


def _type(items: Sequence[Item], item: Item) -> WordType:
    if item.value:
        return "time" if item.value.scale == "duration" else _OF_VALUES.get(item.value.type, "other")
    if item.role in {"certainty", "negation", "affirmation"}:
        return "certainty"
    if item.role == "relation":
        return "reference point"
    return _type_of_word(items, items.index(item))


def _type_of_word(items: Sequence[Item], at: int) -> WordType:
    item, leading = items[at], _leading(items, at)
    if (
        item.key in _ACCIDENTS
        or leading & _CAUSES
        or any(items[before].key in _ACCIDENTS for before in range(max(0, at - 3), at))
    ):
        return "mechanism"
    if leading & _POINTS:
        return "reference point"
    stands_free = at + 1 == len(items) or items[at + 1].role != "content"  # "swollen ankle" is no event
    is_event = item.role == "lead-in" or (item.folded.endswith(_EVENT_ENDINGS) and stands_free)
    return "event" if is_event else "other"


def _leading(items: Sequence[Item], at: int) -> frozenset[str]:
    """Give the connectives and relations that lead to an item, over one other word at most."""
    led: set[str] = set()
    others = 0
    for before in reversed(items[:at]):
        if before.role in {"connective", "relation"}:
            led.add(before.folded)
        elif led or (others := others + 1) > 1:
            break
    return frozenset(led)
