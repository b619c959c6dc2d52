"""How a term and a passage of an output compare."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile

from safe_core.diagnosis.claims import doubts, is_negated
from safe_core.diagnosis.items import Item
from safe_core.diagnosis.opposites import are_opposites
from safe_core.diagnosis.passages import Match

MOST_TRIED = 8
"""How many passages a rule looks at, nearest first."""

CLAIMING = ("negation", "certainty", "affirmation")
"""The roles of words that say whether something is so, and how surely."""

_JOINING = frozenset(("and", "but", "while"))


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
    term, items, keys = match.term.items, match.items, match.term.needed
    negated = is_negated(term, 0, len(term) - 1, keys)
    if negated != is_negated(items, match.first, match.last, keys):
        return False
    expected, found = doubts(term, 0, len(term) - 1), doubts(items, match.first, match.last)
    # A doubt may stand as a plain word on the other side: "signs of infection", "infection signs".
    differing = (found - keys.keys()) | (expected - {item.key for item in match.window})
    return not (differing - {"sign"} if negated else differing)  # "no signs of" says "no"


def tells_two_things(match: Match) -> bool:
    """Tell whether a passage says more than one thing, as in "a delay and a 6-hour wait"."""
    if not match.added:
        return False
    own = {item.folded for item in match.term.items}
    if any(item.folded in _JOINING and item.folded not in own for item in match.window):
        return True
    return any(item.value for item in match.added) and any(item.pause for item in match.window[1:])


def share_of(match: Match, *but: str) -> float:
    """Give the share of the essential items of the term, but those of some roles, that the window holds."""
    expected = Counter(item.key for item in match.term.essential if item.role not in but)
    if not expected:
        return 0.0
    return (expected & Counter(item.key for item in match.window)).total() / expected.total()


def opposite(match: Match, least: float) -> Item | None:
    """Give the one absent word of the term whose opposite stands in or beside the passage: "stable", "unstable".

    At least a share of the other words has to stand there.
    """
    absent = [item for item in match.absent if item.role in {"content", "affirmation"}]
    if len(absent) != 1 or share_of(match, *CLAIMING) < least or not claims_alike(match):
        return None
    around = match.items[max(0, match.first - 1) : match.last + 2]
    return absent[0] if any(are_opposites(absent[0].folded, item.folded) for item in around) else None


def other_value(match: Match, expected: Item) -> int | None:
    """Find another value in the window, or beside it on the side where the term has its own; give its place."""
    places = list(range(match.first, match.last + 1))
    held = [number for number, item in enumerate(match.term.items) if item not in match.absent]
    at = match.term.items.index(expected)
    if any(number < at for number in held):
        places += _beside(match.items, range(match.last + 1, len(match.items)))
    if any(number > at for number in held):
        places += _beside(match.items, range(match.first - 1, -1, -1))
    return next((place for place in places if _is_alternative(match, expected, match.items[place])), None)


def _beside(items: Sequence[Item], places: range) -> Iterator[int]:
    """Give the places up to the first word that tells something else; values may follow each other."""
    return takewhile(lambda place: items[place].role in {"connective", "lead-in", "relation", "value"}, places)


def _is_alternative(match: Match, expected: Item, found: Item) -> bool:
    return (
        bool(expected.value and found.value and expected.value.is_alternative(found.value))
        and found.key not in match.term.needed
    )
