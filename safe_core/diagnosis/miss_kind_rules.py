"""Of what kind a miss is: rules asked in order, the first that holds is said."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from safe_core.diagnosis.bound_values import handed_over, otherwise_bound, otherwise_told
from safe_core.diagnosis.comparison import (
    CLAIMING,
    MOST_TRIED,
    agreeing,
    claim_edges,
    claims_alike,
    is_denied,
    is_of_substance,
    opposite,
    other_value,
    replacing,
    same_wording,
    share_of,
    tells_by_itself,
    tells_otherwise,
    tells_two_things,
)
from safe_core.diagnosis.diagnosis_types import Field, Kind, Passage
from safe_core.diagnosis.passages import Match, Spot, Term, lookalike, nearest
from safe_core.diagnosis.sentence_index import Sentences
from safe_core.diagnosis.tokens import Item
from safe_core.matching_rule import normalise


@dataclass(frozen=True)
class Evidence:
    """A missed term, the sentences that its criterion reads, and those that it does not."""

    term: Term
    read: Sentences
    unread: Sentences
    most_sentences: int

    @cached_property
    def matches(self) -> list[Match]:
        """The passages that the criterion reads, nearest first."""
        return nearest(self.term, self.read, self.most_sentences)

    def stands_anywhere(self, expected: Item) -> bool:
        """Tell whether a value of the term stands, as a value of its type, anywhere in what the criterion reads."""
        return any(
            item.key == expected.key and item.value and expected.value and item.value.type == expected.value.type
            for sentence in self.read.holding.get(expected.key, ())
            for item in sentence.items
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """The passage that a rule points at, and the items of the term that it lacks or says otherwise."""

    passage: Passage | None
    absent: tuple[Item, ...] = ()
    instead: Spot | None = None  # the value that stands for that of the term


_SAME_EVENT = 0.6  # of the other words of the term stand beside a value that differs
_SAME_CLAIM = 0.8  # of the other words of the term stand in a passage of another polarity
_ALL_OF_IT = 0.85  # of the term stands in the elements that it is split over
_MOST_PIECES = 3
_MOST_VALUES = 16  # of a term whose rivals are looked for
_PART = 0.31  # of the term is something, even where it is neither a value nor a phrase


def form(evidence: Evidence) -> Finding | None:
    passage = evidence.read.without_form(evidence.term.folded.text)
    return Finding(passage) if passage else None


def connectives(evidence: Evidence) -> Finding | None:
    match = next(filter(same_wording, agreeing(evidence.matches)), None)
    return Finding(match.passage) if match else None


def rearranged(evidence: Evidence) -> Finding | None:
    """Find one sentence that says all of a term, and little else with it."""
    for match in agreeing(evidence.matches):
        little_else = len(match.added) <= max(2, len(match.term.essential) // 2)
        if match.term.core <= match.keys and little_else and not _tells_more(match):
            return Finding(match.passage)
    return None


def _tells_more(match: Match) -> bool:
    if tells_two_things(match) or tells_otherwise(match):
        return True
    return bool(otherwise_bound(match) or otherwise_told(match) or handed_over(match))


def value(evidence: Evidence) -> Finding | None:
    expected = [item for item in evidence.term.items if item.value and not evidence.stands_anywhere(item)]
    for match in evidence.matches[:MOST_TRIED]:
        if differing := _differing(match, expected):
            places = tuple(differing.values())
            return Finding(match.reaching(*places), tuple(differing), match.spot(places[0]))
    return None


def _differing(match: Match, expected: Iterable[Item]) -> dict[Item, int]:
    """Give the expected values that the same event has otherwise, and the places of the other values."""
    if share_of(match, "value") < _SAME_EVENT:
        return {}
    values = [item for item in expected if item.value][:_MOST_VALUES]
    return {item: at for item in values if (at := other_value(match, item)) is not None}


def polarity(evidence: Evidence) -> Finding | None:
    tried = evidence.matches[:MOST_TRIED]
    same = [match for match in tried if share_of(match, *CLAIMING) >= _SAME_CLAIM]
    if same and not any(claims_alike(match) for match in same):
        absent = tuple(item for item in same[0].absent if item.role in CLAIMING)
        return Finding(same[0].reaching(*claim_edges(same[0])), absent)
    for number, match in enumerate(tried):
        contradiction = opposite(match, _SAME_EVENT / 2)
        if contradiction and not any(contradiction[0].key in nearer.keys for nearer in tried[:number]):
            denied, place = contradiction
            return Finding(match.reaching(place), (denied,))
    return None


def split(evidence: Evidence) -> Finding | None:
    pieces = _pieces(evidence.matches)
    if not pieces or _rival(evidence) or any(otherwise_bound(match) for match in pieces):
        return None
    return Finding(pieces[0].passage)


def _rival(evidence: Evidence) -> Finding | None:
    """Find the same event with another value, though the expected one stands elsewhere: no change, and no match."""
    for match in evidence.matches[:MOST_TRIED]:
        if rivals := _differing(match, match.absent):
            return Finding(match.reaching(*rivals.values()), match.absent)
    return None


def _pieces(matches: list[Match]) -> list[Match]:
    """Find the passages of several elements that hold a term together, the largest first."""
    if not matches:
        return []
    lacking = Counter(item.key for item in matches[0].term.essential if item.role != "relation")
    total = lacking.total()
    pieces: dict[tuple[Field, int | None], Match] = {}
    for match in matches[:MOST_TRIED]:
        held = lacking & match.keys
        if tells_by_itself(match, held) and not is_denied(match) and len(pieces) < _MOST_PIECES:
            lacking -= held
            pieces.setdefault((match.sentence.element.field, match.sentence.element.element), match)
    whole = len(pieces) > 1 and lacking.total() <= (1 - _ALL_OF_IT) * total
    return list(pieces.values()) if whole else []


def part(evidence: Evidence) -> Finding | None:
    if not evidence.matches:
        return None
    match = evidence.matches[0]
    if not (is_of_substance(match) or match.share >= _PART):
        return None
    if rival := _rival(evidence):
        return rival
    return Finding(match.reaching(*claim_edges(match), *replacing(match)), match.absent or otherwise_bound(match))


def other_field(evidence: Evidence) -> Finding | None:
    if literal := evidence.unread.joined.find(normalise(evidence.term.text)):
        return Finding(literal)
    elsewhere = Evidence(evidence.term, evidence.unread, evidence.read, evidence.most_sentences)
    if finding := form(elsewhere) or connectives(elsewhere) or rearranged(elsewhere):
        return finding
    pieces = _pieces(elsewhere.matches)
    return Finding(pieces[0].passage) if pieces else None


def absent(evidence: Evidence) -> Finding:
    return Finding(lookalike(evidence.term.text, evidence.read.sentences))


RULES: Mapping[Kind, Callable[[Evidence], Finding | None]] = {
    "form": form,  # Only case, space, punctuation, quotes, dashes or Unicode differ.
    "connectives": connectives,  # Only articles, prepositions, auxiliaries or lead-in verbs differ.
    "rearranged": rearranged,  # The same content words are there, in another order or inflection.
    "value": value,  # The same event or finding is there with another number, time, day, grade, side or unit.
    "polarity": polarity,  # The same claim is there, but negated, or more or less certain.
    "split": split,  # The words are spread over several elements of the list.
    "part": part,  # A part of the term is there; the absent words are named.
    "other_field": other_field,  # It is in a field that this criterion does not read.
    "absent": absent,  # It is not there.
}
"""The rule for each kind, in the order of KINDS; the last one always holds."""


def decide(evidence: Evidence) -> tuple[Kind, Finding]:
    """Ask the rules in order; the first that holds gives the kind."""
    return next((kind, finding) for kind, rule in RULES.items() if (finding := rule(evidence)))
