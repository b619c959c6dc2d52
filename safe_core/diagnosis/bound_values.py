"""Which value belongs to which word: "pain on the left, numbness on the right" is not the other way round."""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from safe_core.diagnosis.passages import Match
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.words import word_set

_PARTING = word_set("and but while whereas then")
_MOST_BOUND = 64  # items of a term whose values are bound to words; no real one has as many

Bound = dict[tuple[str, str], set[str]]  # word and scale → the values of that scale in its clauses


def otherwise_bound(match: Match) -> tuple[Item, ...]:
    """Give the values of a term whose words have another value in a passage, and not theirs."""
    term = match.term.items
    scales = {item.value.scale for item in term if item.value}
    if not scales or len(term) > _MOST_BOUND:
        return ()
    expected, found = _bound(term, scales), _bound(match.window, scales)
    differing = {key for bond, keys in expected.items() if keys.isdisjoint(found.get(bond, keys)) for key in keys}
    differing |= {key for scale in scales for key in _turned(match, scale)}
    return tuple(item for item in term if item.key in differing)


def _bound(items: Sequence[Item], scales: Collection[str]) -> Bound:
    """Bind each word of content to the values in its clauses."""
    bound: Bound = {}
    for clause in clauses(items):
        values = [(item.value.scale, item.key) for item in clause if item.value and item.value.scale in scales]
        for item in clause:
            if item.role == "content":
                for scale, key in values:
                    bound.setdefault((item.key, scale), set()).add(key)
    return bound


def clauses(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Cut at commas and conjunctions with a value on both sides, but not within "left and right"."""
    last_value = max((at for at, item in enumerate(items) if item.value), default=-1)
    clause: list[Item] = []
    has_value = False
    for at, item in enumerate(items):
        parts = item.pause or item.folded in _PARTING
        if parts and has_value and at <= last_value and not _joins_values(items, at):
            yield clause
            clause, has_value = [], False
        clause.append(item)
        has_value = has_value or item.value is not None
    yield clause


def _joins_values(items: Sequence[Item], at: int) -> bool:
    after = at + 1 if items[at].folded in _PARTING else at
    return items[at - 1].value is not None and after < len(items) and items[after].value is not None


def _turned(match: Match, scale: str) -> list[str]:
    """Give the values that changed places among words that did not: "left arm weaker than right"."""
    core = match.term.core
    term, window = (
        [item for item in items if item.key in core and (item.role == "content" or _is_of(item, scale))]
        for items in (match.term.items, match.window)
    )
    if any(_is_of(one, scale) and _is_of(other, scale) for one, other in pairwise(term)):
        return []  # "left and right" is "right and left"
    values = [item.key for item in term if item.value]
    found = [item.key for item in window if item.value]
    same_words = [item.key for item in term if not item.value] == [item.key for item in window if not item.value]
    return values if same_words and values != found and sorted(values) == sorted(found) else []


def _is_of(item: Item, scale: str) -> bool:
    return item.value is not None and item.value.scale == scale
