"""How a term and a passage of an output compare."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, dropwhile, islice, takewhile

from safe_core.diagnosis.passage_denials import denials_beside, doubts, doubts_beside, is_grammar, is_negated
from safe_core.diagnosis.passages import Match, Term
from safe_core.diagnosis.tokens import Item, Role
from safe_core.diagnosis.word_lists.denial_words import PRIVATIONS
from safe_core.diagnosis.word_lists.opposites import are_antonyms, are_opposites
from safe_core.diagnosis.words import word_set

MOST_TRIED = 8
"""How many passages a rule looks at, nearest first."""

CLAIMING: tuple[Role, ...] = ("negation", "certainty", "affirmation")
"""The roles of words that say whether something is so, and how surely."""

_LINKING = word_set("of the is are was were be been")
_MOST_COMPARED = 32  # absent words of a term whose opposites are looked for
_JOINING = word_set("and but while")
_MOST_REPLACING = 2  # words beside a passage that may stand for what it lacks


def agreeing(matches: list[Match]) -> Iterator[Match]:
    """Give the nearest matches that claim what the term claims, no more and no less sure."""
    return (match for match in matches[:MOST_TRIED] if claims_alike(match))


def same_wording(match: Match) -> bool:
    """Tell whether term and passage differ by nothing but connectives and lead-in verbs."""
    expected = match.term.essential
    needed = {item.key for item in expected}
    found = [item for item in match.window if item.role not in {"connective", "lead-in"} or item.key in needed]
    return [item.wording for item in found] == [item.wording for item in expected]


def claims_alike(match: Match) -> bool:
    """Tell whether term and passage agree in being negated and in how certain they are."""
    items, keys = match.items, match.term.needed
    negated, expected = _claim(match.term)
    if negated != is_negated(items, match.first, match.last, keys):
        return negated and _may_deny(match)
    found = doubts(items, match.first, match.last)
    # A doubt may stand as a plain word on the other side: "signs of infection", "infection signs".
    differing = (found - keys.keys()) | (expected - match.keys.keys())
    return not (differing - {"sign"} if negated else differing)  # "no signs of" says "no"


@lru_cache(maxsize=1024)
def _claim(term: Term) -> tuple[bool, frozenset[str]]:
    """Tell whether a term negates, and give its doubts: once for all passages that are compared with it."""
    last = len(term.items) - 1
    return is_negated(term.items, 0, last, term.needed), doubts(term.items, 0, last)


def _may_deny(match: Match) -> bool:
    """Tell whether a word of its own stands in or leads to a passage that may say the "lack of" in other words."""
    led = takewhile(lambda item: is_grammar(item) or item.folded in PRIVATIONS, reversed(match.items[: match.first]))
    return any(item.folded in PRIVATIONS and item.key not in match.term.needed for item in (*match.window, *led))


def is_denied(match: Match) -> bool:
    """Tell whether a passage denies something where the term denies nothing."""
    term, keys = match.term.items, match.term.needed
    return is_negated(match.items, match.first, match.last, keys) and not any(item.role == "negation" for item in term)


def tells_two_things(match: Match) -> bool:
    """Tell whether a passage says more than one thing, as in "a delay and a 6-hour wait"."""
    if not match.added:
        return False
    own = {item.folded for item in match.term.items}
    if any(item.folded in _JOINING and item.folded not in own for item in match.window):
        return True
    return any(item.value for item in match.added) and any(item.pause for item in match.window[1:])


def tells_otherwise(match: Match) -> bool:
    """Tell whether another word stands in the place of a verb or an order of the term.

    "Surgery was cancelled on Friday" is not "performed on Friday", nor "after surgery" what "during surgery" is.
    """
    own = {item.folded for item in match.term.items}
    others = [item.role == "relation" and item.folded not in own for item in match.window]
    return any(others) or _has_other_verb(match)


def _has_other_verb(match: Match) -> bool:
    """Tell whether a lead-in verb of the term is lost, and another word stands between the words around it."""
    lost, added = set(match.absent), set(match.added)
    added_before = [0, *accumulate(item in added for item in match.window)]
    first = {item.key: at for at, item in reversed([*enumerate(match.window)])}
    before, is_lost = "", False
    for item in match.term.items:
        if item.key in match.term.core:
            start, end = first.get(before), first.get(item.key)
            if is_lost and start is not None and end is not None and added_before[end] > added_before[start]:
                return True
            before, is_lost = item.key, False
        is_lost = is_lost or (item.role == "lead-in" and item in lost)
    return False


def tells_by_itself(match: Match, held: Counter[str]) -> bool:
    """Tell whether what a sentence holds of a term is a phrase, or all that the sentence tells.

    "Sunday" in "arrived on Sunday" tells of the arrival, and is no piece of "surgery on Sunday".
    """
    words = held.total()
    return words > 1 or (words == 1 and words == sum(not is_grammar(item) for item in match.items))


def is_of_substance(match: Match) -> bool:
    """Tell whether a window holds a time, a day or a number of the term, or a phrase: two words of it, none between."""
    held = [item for item in match.window if item.key in match.term.core and item.role in {"value", "content"}]
    exact = any(item.value and item.value.type in {"time", "day", "number"} for item in held)
    return exact or (len({item.key for item in held}) > 1 and not match.added)


def share_of(match: Match, *but: Role) -> float:
    """Give the share of the essential items of the term, but those of some roles, that the window holds."""
    expected = _expected(match.term, but)
    if not expected:
        return 0.0
    return (expected & match.keys).total() / expected.total()


@lru_cache(maxsize=1024)
def _expected(term: Term, but: Collection[Role]) -> Counter[str]:
    """Count the essential items of a term once for all passages that are compared with it."""
    return Counter(item.key for item in term.essential if item.role not in but)


def opposite(match: Match, least: float) -> tuple[Item, int] | None:
    """Give the one absent word of the term whose opposite stands in or beside the passage, and its place there.

    At least a share of the other words has to stand there; with "before" and "after" all of them, in their order.
    """
    denied = _deniable(match)
    if denied is None or share_of(match, *CLAIMING, "relation") < least:
        return None
    sides = _outwards(match.items, match.first, match.last)
    linked = (dropwhile(lambda place: match.items[place].folded in _LINKING, side) for side in sides)
    for place in (*range(match.first, match.last + 1), *(place for side in linked for place in islice(side, 1))):
        found = match.items[place]
        if not are_opposites(denied.folded, found.folded) or found.key in match.term.needed:
            continue
        if are_antonyms(denied.folded, found.folded) and not _says_the_same_of(match, denied, place):
            continue
        is_denial = found.role == "negation"  # "absent" for "intact" is the opposite itself
        return (denied, place) if is_denial or claims_alike(match) else None
    return None


def _deniable(match: Match) -> Item | None:
    """Give the one word of content that is absent; where none is, the one relation, if all else is equal."""
    absent = [item for item in match.absent if item.role in {"content", "affirmation"}]
    if not absent and not match.added:
        own = [item.key for item in match.term.essential if item.role != "relation"]
        all_else_equal = own == [item.key for item in match.window if item.key in own]
        absent = [item for item in match.absent if item.role == "relation" and all_else_equal]
    return absent[0] if len(absent) == 1 else None


def _says_the_same_of(match: Match, denied: Item, place: int) -> bool:
    """Tell whether a word and its antonym stand beside the same word: "increased pain" is not "decreased swelling"."""
    if denied.role == "relation":
        return True
    neighbours = _neighbours(match.term.items, match.term.items.index(denied))
    tells_more = any(item != match.items[place] for item in match.added)
    return not tells_more and not neighbours.isdisjoint(_neighbours(match.items, place))


def _neighbours(items: Sequence[Item], at: int) -> frozenset[str]:
    """Give the keys of the next words on both sides that tell something, up to a comma or a conjunction."""
    outwards = _outwards(items, at, at)
    sides = (takewhile(lambda place: items[place].folded not in _JOINING, places) for places in outwards)
    telling = ((items[place].key for place in side if not is_grammar(items[place])) for side in sides)
    return frozenset(key for side in telling for key in islice(side, 1))


def _outwards(items: Sequence[Item], first: int, last: int) -> tuple[Iterator[int], Iterator[int]]:
    """Give the places before and those after a part of a sentence, nearest first, each up to a comma."""
    return (
        takewhile(lambda place: not items[place + 1].pause, range(first - 1, -1, -1)),
        takewhile(lambda place: not items[place].pause, range(last + 1, len(items))),
    )


def replacing(match: Match) -> list[int]:
    """Give the places beside a passage of the words that stand for what the term has there and the passage lacks.

    "9-day course" shows what became of "9-day stay", and "arrived at 14:00" what happened at the time.
    """
    absent = set(match.absent)
    telling = [item for item in match.term.items if not is_grammar(item) or item in absent]
    if not telling or not absent:
        return []
    before, after = _outwards(match.items, match.first, match.last)
    told = dropwhile(lambda place: match.items[place].role == "connective", before)
    return [
        *(_words_there(match.items, told, 1) if telling[0] in absent else ()),
        *(_words_there(match.items, after, _MOST_REPLACING) if telling[-1] in absent else ()),
    ]


def _words_there(items: Sequence[Item], places: Iterator[int], most: int) -> Iterator[int]:
    """Give the places of the next words, up to one that only links: it leads to something else."""
    linking = ("connective", "relation")
    joined = takewhile(lambda at: items[at].role not in linking and items[at].folded not in _JOINING, places)
    return islice(joined, most)


def claim_edges(match: Match) -> list[int]:
    """Give the places beside a passage of the words that deny it, doubt it or say the opposite, unlike the term."""
    term = match.term.items
    places = [*_opposing(match)]
    if not _claim(match.term)[0]:
        places += denials_beside(match.items, match.first, match.last)
    own = {item.key for item in term}
    places += [at for at in doubts_beside(match.items, match.first, match.last) if match.items[at].key not in own]
    return places


def _opposing(match: Match) -> Iterator[int]:
    """Give the places beside a passage, but for grammar, of the opposites of absent words."""
    for places in _outwards(match.items, match.first, match.last):
        for place in places:
            if any(are_opposites(item.folded, match.items[place].folded) for item in match.absent[:_MOST_COMPARED]):
                yield place
            if match.items[place].folded not in _LINKING and match.items[place].role != "connective":
                break


def other_value(match: Match, expected: Item) -> int | None:
    """Find another value in the window, or beside it on the side where the term has its own; give its place."""
    places = list(range(match.first, match.last + 1))
    at = match.term.items.index(expected)
    first_held, last_held = match.held
    if first_held < at:
        places += _beside(match, range(match.last + 1, len(match.items)))
    if last_held > at:
        places += _beside(match, range(match.first - 1, -1, -1))
    return next((place for place in places if _is_alternative(match, expected, match.items[place])), None)


def _beside(match: Match, places: range) -> Iterator[int]:
    """Give the places up to the first word that tells something else; values may follow each other.

    "After" and the like lead to another event, unless the term has the same word.
    """
    return takewhile(lambda place: _leads_on(match.items[place], match.term), places)


def _leads_on(item: Item, term: Term) -> bool:
    return item.role in {"connective", "lead-in", "value"} or (item.role == "relation" and item.key in term.needed)


def _is_alternative(match: Match, expected: Item, found: Item) -> bool:
    if not (expected.value and found.value) or expected.value.type == "route":  # which only the verdict asks for
        return False
    return expected.value.is_alternative(found.value) and found.key not in match.term.needed
