"""Whether a term and a passage that is compared with it claim the same: negated or not, and how sure.

Where one place of a sentence is asked about, with no term beside it, `denial_scope.is_denied_at` decides.
"""

from collections.abc import Collection, Sequence

from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.word_lists.denial_words import NOT_WORDS, PRIVATIONS
from safe_core.diagnosis.words import word_set

_BEFORE = 8  # items before a passage in which a negation may still belong to it
_TELLING_BETWEEN = 3  # words of content that it may reach over
_AFTER = 4  # items after a passage in which it may be taken back: "… was ruled out"
# Within a passage and right beside it; what breaks the reach of a denial in a whole sentence is in `denial_scope`.
_BREAKS = word_set("but with and although though while which who")
_TAKING_BACK = word_set("absent denied excluded negative never ruled lacking")
_IS = word_set("is are was were be been being as")
_NO_DOUBTS = word_set("approximate confirmed")


def is_negated(items: Sequence[Item], first: int, last: int, keys: Collection[str]) -> bool:
    """Tell whether the items `first` to `last` of a sentence are negated, in so far as they hold the keys of a term."""
    return any(items[at].role == "negation" and _reaches(items, at, keys) for at in range(first, last + 1)) or bool(
        denials_beside(items, first, last)
    )


def denials_beside(items: Sequence[Item], first: int, last: int) -> list[int]:
    """Give the places, before and after a passage, of the negations that reach it."""
    return [at for at in (_negated_before(items, first), _negated_after(items, last)) if at is not None]


def doubts(items: Sequence[Item], first: int, last: int) -> frozenset[str]:
    """Give the doubts in a passage and those that lead to it."""
    places = [*range(first, last + 1), *doubts_beside(items, first, last)]
    told = (items[at] for at in places)
    return frozenset(item.key for item in told if item.role == "certainty" and item.key not in _NO_DOUBTS)


def doubts_beside(items: Sequence[Item], first: int, last: int) -> list[int]:
    """Give the places of the doubts and certainties that lead to a passage or close it."""
    places = []
    while first and (items[first - 1].role == "certainty" or (is_grammar(items[first - 1]) and not items[first].pause)):
        first -= 1
        if items[first].role == "certainty":
            places.append(first)
    told = _told_after(items, last)
    return places if told is None else [*places, told]


def _told_after(items: Sequence[Item], last: int) -> int | None:
    """Find the doubt that closes a claim: "sepsis was suspected", not "sepsis, possible pneumonia"."""
    at = last + 1
    while at < len(items) and items[at].folded in _IS and not items[at].pause:
        at += 1
    if at == len(items) or items[at].pause or items[at].role != "certainty":
        return None
    closes = at + 1 == len(items) or items[at + 1].pause or is_grammar(items[at + 1])
    return at if closes else None


def _reaches(items: Sequence[Item], at: int, keys: Collection[str]) -> bool:
    """Tell whether a negation within a passage is about a word of the term.

    It reaches over adjectives ("no late complications") but not over "no swelling of" to the next noun; with a verb
    before it ("pulse was not palpable"), or with nothing after it ("rash absent, …"), it is about what stands before.
    """
    if items[at].folded in NOT_WORDS and at and items[at - 1].folded in _IS:
        return True
    crossed = False
    for item in items[at + 1 : at + 1 + _BEFORE]:
        if item.pause:
            return not crossed
        if item.key in keys:
            return True
        if crossed and is_grammar(item):
            return False
        crossed = crossed or not (is_grammar(item) or item.role == "certainty")
    return not crossed


def _negated_before(items: Sequence[Item], first: int) -> int | None:
    """Find the negation before a passage that reaches it."""
    telling = 0
    for at in range(first - 1, max(-1, first - 1 - _BEFORE), -1):
        if items[at + 1].pause or items[at].folded in _BREAKS:
            return None
        if items[at].role == "negation":
            return at
        telling += not is_grammar(items[at])
        if telling > _TELLING_BETWEEN:
            return None
    return None


def _negated_after(items: Sequence[Item], last: int) -> int | None:
    """Find where "was not", "was ruled out", "absent" follow at once; "no" and "without" begin something else."""
    for at in range(last + 1, min(len(items), last + 1 + _AFTER)):
        item = items[at]
        if item.pause or item.folded in _BREAKS:
            return None
        if item.role == "negation":
            takes_back = item.folded in _TAKING_BACK or (item.folded in NOT_WORDS and at > last + 1)
            return at if takes_back else None
        if item.role != "connective":
            return None
    return None


def is_lost(items: Sequence[Item], at: int) -> bool:
    """Tell whether a word is what is lost: "loss of feeling", "hearing was lost"; "pain with loss of power" is not."""
    before = next((item for item in reversed(items[:at]) if not is_grammar(item)), None)
    after = next((item for item in items[at + 1 :] if item.folded not in _IS), None)
    return (before is not None and before.folded in PRIVATIONS and not items[at].pause) or (
        after is not None and after.folded in PRIVATIONS and not after.pause
    )


def is_grammar(item: Item) -> bool:
    """Tell whether a word only links others or leads to them."""
    return item.role in {"connective", "lead-in", "relation"}
