"""Where an output is surer, or less sure, of what a term says than the narrative is."""

from collections.abc import Sequence
from typing import Final

from safe_core.diagnosis.comparison import MOST_TRIED
from safe_core.diagnosis.passage_denials import doubts_beside, is_negated
from safe_core.diagnosis.passages import Match, nearest
from safe_core.diagnosis.sentence_index import Sentences
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.told_words import At
from safe_core.diagnosis.word_lists.grammar_words import WEAK_WORDS
from safe_core.diagnosis.words import word_set

_CLASSES: Final = frozenset(
    ("suspected", "possible", "probable", "unlikely", "apparent", "uncertain", "considered", "sign", "confirmed")
)
_THINKING: Final = word_set("thought believed felt")
_TO_WITHIN: Final = 4  # words: "thought by his doctor to have"
_AS_SURE: Final = {"probable": "suspected"}
_SAME_CLAIM: Final = 0.7  # of the words that tell something


def changed_certainty(told: Sequence[At], matches: Sequence[Match], narrative: Sentences) -> Match | None:
    """Find the passage that says a term with another certainty than the narrative, if none has the same."""
    if not told or not matches:
        return None
    tried = matches[:MOST_TRIED]
    if not any(item.role == "certainty" for match in tried for item in (*match.term.items, *match.items)):
        return None  # as most
    same = [match for match in tried if _is_same(match)]
    if not same:
        return None
    home, term = told[0].sentence, same[0].term
    asked = _classes(term.items, 0, len(term.items) - 1)
    own = _classes(home.items, told[0].at, max(each.at for each in told if each.sentence is home))
    said = [_classes_of(match) for match in same]
    said_as = zip(same, said, strict=True)
    if any(_agrees(classes, asked, own) or (not classes and _is_opinion(match)) for match, classes in said_as):
        return None
    others = [match for match in nearest(term, narrative, MOST_TRIED) if match.sentence is not home]
    backing = [_classes_of(match) for match in others if _is_same(match)]
    return next((match for match, classes in zip(same, said, strict=True) if classes not in backing), None)


def _agrees(said: frozenset[str], asked: frozenset[str], own: frozenset[str]) -> bool:
    """Tell whether a passage is as sure as the narrative; to leave out that it is certain changes nothing."""
    if said:
        return not _ranks(said).isdisjoint(_ranks(own))
    return not asked - {"confirmed"}


def _is_opinion(match: Match) -> bool:
    """Tell whether a passage says what was "thought to" be so, which is neither sure nor unsure."""
    items = match.items[: match.last + 1]
    return any(
        item.folded in _THINKING and any(after.folded == "to" for after in items[at + 1 : at + 1 + _TO_WITHIN])
        for at, item in enumerate(items)
    )


def _ranks(classes: frozenset[str]) -> set[str]:
    """Read what is "probable" as "suspected": who thinks that something is likely suspects it."""
    return {_AS_SURE.get(each, each) for each in classes}


def _classes_of(match: Match) -> frozenset[str]:
    return _classes(match.items, match.first, match.last)


def _classes(items: Sequence[Item], first: int, last: int) -> frozenset[str]:
    places = [*range(first, last + 1), *doubts_beside(items, first, last)]
    return _CLASSES.intersection(
        items[at].key for at in places if items[at].role == "certainty" and not _is_denied(items, at)
    )


def _is_denied(items: Sequence[Item], at: int) -> bool:
    """Tell whether a certainty is none: "not yet proven"."""
    return any(item.role == "negation" for item in items[max(0, at - 2) : at])


def _is_same(match: Match) -> bool:
    """Tell whether a passage is about the same; what is denied is no doubt, but "possible, not proven" is one."""
    is_denied = is_negated(match.items, match.first, match.last, match.term.needed)
    return _share(match) >= _SAME_CLAIM and (not is_denied or bool(_classes_of(match)))


def _share(match: Match) -> float:
    """Give the share of the words that tell something of a term that a passage holds."""
    telling = [item for item in match.term.items if item.role in {"content", "value"} and item.key not in WEAK_WORDS]
    return sum(item.key in match.keys for item in telling) / len(telling) if telling else 0.0
