"""Which value belongs to which word: "pain on the left, numbness on the right" is not the other way round."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise, product

from safe_core.diagnosis.passages import Match, Term
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.word_lists.opposites import opposites_of
from safe_core.diagnosis.words import word_set

_PARTING = word_set("and but while whereas then")
_MOST_BOUND = 64  # items of a term whose values are bound to words; no real one has as many

Bound = dict[tuple[str, str], set[str]]  # word and scale → the values of that scale in its clauses


def otherwise_bound(match: Match) -> tuple[Item, ...]:
    """Give the values of a term whose words have another value in a passage, and not theirs."""
    term = match.term.items
    expected, scales = _expected(match.term)
    if not scales:
        return ()
    found = _bound(match.window, scales)
    differing = {key for bond, keys in expected.items() if keys.isdisjoint(found.get(bond, keys)) for key in keys}
    turned = [keys for scale in scales if (keys := _turned(match, scale))]
    if len(turned) < 2:  # two that turned together are clauses in another order
        differing |= {key for keys in turned for key in keys}
    if len(scales) > 1:
        differing |= _crossed(match)
    return tuple(item for item in term if item.key in differing)


def handed_over(match: Match) -> tuple[Item, ...]:
    """Give the values of a term whose words have another one in their own clauses: "lactate 6.8, potassium 4.2".

    The passage alone would be "6.8, potassium".
    """
    expected, scales = _expected(match.term)
    if not scales or len(match.window) == len(match.items):
        return ()
    found = _bound(_whole_clauses(match), scales)
    differing = {key for bond, keys in expected.items() if keys.isdisjoint(found.get(bond, keys)) for key in keys}
    return tuple(item for item in match.term.items if item.key in differing)


def has_receiver(match: Match, narrative: Iterable[Sequence[Item]]) -> bool:
    """Tell whether a value of a term that was handed over now belongs to a word that has another one in a narrative.

    Without one, as in "on admission 72 kg, at discharge weight 68 kg", it only stands in another order.
    """
    expected, scales = _expected(match.term)
    own = set[str]().union(*expected.values())
    told: Bound = {}
    for items in narrative:
        for bond, keys in _bound(items, scales).items():
            told.setdefault(bond, set()).update(keys)
    found = _bound(_whole_clauses(match), scales)
    return any(
        bond not in expected and not keys.isdisjoint(own) and bond in told and told[bond].isdisjoint(keys)
        for bond, keys in found.items()
    )


def _whole_clauses(match: Match) -> list[Item]:
    """Give the clauses in which a passage stands."""
    whole: list[Item] = []
    start = 0
    for clause in clauses(match.items):
        if start <= match.last and match.first < start + len(clause):
            whole += clause
        start += len(clause)
    return whole


def otherwise_told(match: Match) -> tuple[Item, ...]:
    """Give the words of a term whose opposite is told of the rest: the "kept" of "statin kept, aspirin stopped"."""
    keys = {item.key for item in match.items if item.role == "content"}
    return tuple(
        item
        for item in match.term.items
        if item.role == "content"
        and item.key in keys
        and (opposites := opposites_of(item.folded) & keys)
        and _is_turned(match, item, opposites)
    )


def _is_turned(match: Match, item: Item, opposites: Collection[str]) -> bool:
    """Tell whether the opposites of a word stand beside more of what a term tells with it than the word itself."""
    rest = set[str]().union(*(part for part in _parts(match.term.items) if item.key in part)) - {item.key}
    parts = [*_parts(match.items)]
    own, others = (
        max((len(rest & part) for part in parts if not part.isdisjoint(wanted)), default=0)
        for wanted in ({item.key}, opposites)
    )
    return others > own


def _parts(items: Sequence[Item]) -> Iterator[set[str]]:
    """Give what each clause tells; "C4 low with normal C3" are two."""
    parting = _PARTING | {"with"}
    starts = [0, *(at for at, item in enumerate(items) if at and (item.pause or item.folded in parting)), len(items)]
    for start, end in pairwise(starts):
        yield {item.key for item in items[start:end] if item.role in {"content", "value"}}


@lru_cache(maxsize=1024)
def _expected(term: Term) -> tuple[Bound, frozenset[str]]:
    """Bind the values of a term, and give their scales, once for all passages that are compared with it."""
    scales = frozenset(_scale(item) for item in term.items if item.value)
    return (_bound(term.items, scales), scales) if len(term.items) <= _MOST_BOUND else ({}, frozenset())


def _bound(items: Sequence[Item], scales: Collection[str]) -> Bound:
    """Bind words of content to the values in their clauses: to the one of a scale those beside it, to several all.

    A clause without such words is about those of the one before: "reflux on the left for 5 years, on the right for 2".
    """
    bound: Bound = {}
    head: list[Item] = []
    for clause in clauses(items):
        own = [item for item in clause if item.role == "content"]
        for scale in scales:
            places = [at for at, item in enumerate(clause) if _is_of(item, scale)]
            if not places:
                continue
            words = own if len(places) > 1 else [word for at in places for word in _beside(clause, at)]
            for word in words if own else head:
                bound.setdefault((word.key, scale), set()).update(clause[at].key for at in places)
        head = own or head
    return bound


def _beside(clause: Sequence[Item], at: int) -> Iterator[Item]:
    """Give the next words of content on both sides."""
    for side in (reversed(clause[:at]), clause[at + 1 :]):
        yield from islice((item for item in side if item.role == "content"), 1)


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
    one, other = items[at - 1], items[after] if after < len(items) else None
    if other is None or not (one.value and other.value) or one.value.type != other.value.type:
        return False
    return one.value.type != "number" or _scale(one) == _scale(other)


def _scale(item: Item) -> str:
    """Give the scale of a value; that of a plain number does not depend on what follows it ("7.28 arterial")."""
    scale = item.value.scale if item.value else ""
    return "bare" if scale.startswith("of ") else scale


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


def _crossed(match: Match) -> set[str]:
    """Give the values of a term that stand with each other's partners: "110 at 8, 84 at 12", "84 at 8, 110 at 12".

    So do two that each stand with another partner in the sentence: "right 38 cm" in "right 35 cm, left 38 cm".
    """
    own = {item.key for item in match.term.items if item.value}
    expected, found = _partners(match.term.items, own), _partners(match.items, own)
    parted = {
        (key, scale): held
        for (key, scale), partners in expected.items()
        if partners.isdisjoint(held := found.get((key, scale), partners))
    }
    lonely = {key for key, _ in parted}
    return {
        key
        for (key, scale), held in parted.items()
        if not lonely.isdisjoint(expected[key, scale])
        or any(not held.isdisjoint(others) for (_, other), others in expected.items() if other == scale)
    }


def _partners(items: Sequence[Item], own: Collection[str]) -> Bound:
    """Give for each value of a term, and each scale, the values of that scale that stand with it in a clause."""
    partners: Bound = {}
    for clause in clauses(items):
        values = [item for item in clause if item.value]
        for one, other in product((item for item in values if item.key in own), values):
            if one is not other:
                partners.setdefault((one.key, _scale(other)), set()).add(other.key)
    return partners


def _is_of(item: Item, scale: str) -> bool:
    return item.value is not None and _scale(item) == scale
