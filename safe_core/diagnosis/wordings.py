"""Whether the sentences of an output say all of a term, in whatever form, and what they lack of it."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise, takewhile
from typing import Final

from safe_core.diagnosis.bound_values import otherwise_bound, otherwise_told
from safe_core.diagnosis.comparison import MOST_TRIED, tells_by_itself
from safe_core.diagnosis.denial_scope import Place, is_denied_at
from safe_core.diagnosis.miss_kind_rules import Evidence
from safe_core.diagnosis.passage_denials import is_lost
from safe_core.diagnosis.passages import Match
from safe_core.diagnosis.same_words import held_in_other_form, is_acronym_of, is_same_word
from safe_core.diagnosis.sentence_index import ROOT
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.values.value_types import Value
from safe_core.diagnosis.word_lists.grammar_words import CONNECTIVES, FOUND_WORDS, WEAK_WORDS
from safe_core.diagnosis.word_lists.measures import measure_of
from safe_core.diagnosis.word_lists.opposites import denied_parts
from safe_core.diagnosis.words import stem, word_set

_MOST_PIECES: Final = 3
_MOST_COMPARED: Final = 32  # words of a term that are looked for in another form
_WANTED: Final = frozenset(("content", "value", "certainty", "affirmation"))

_FALLS: Final = frozenset(("lowest", "nadir", "minimum", "fell to", "dropped to", "dipped to", "down to"))
_RISES: Final = frozenset(("highest", "peak", "peaked", "maximum", "rose to", "climbed to", "reached"))
_SAID_BY: Final = {
    "above or below above": word_set("over"),
    "above or below below": word_set("under"),
    "lie": word_set("supine"),
    "supin": word_set("lying"),
    "now": word_set("from today currently"),  # "down from 58 kg to 51 kg"
    "grow": word_set("culture cultures swab swabs"),
    "down": frozenset(("fell from", "dropped from", "decreased from", "reduced from")),  # "92, down from 121"
    "worst": _FALLS | _RISES,  # "creatinine 1.9 at worst" is a peak
    **dict.fromkeys(map(stem, word_set("lowest nadir minimum")), _FALLS),
    **dict.fromkeys(map(stem, word_set("highest peak maximum")), _RISES),
}
"""The key of a word of a term → the words of which one says it: "E. coli in blood cultures" grew there."""

_CAUSING: Final = word_set("because due owing")
_PRESSURE: Final = re.compile(r"\d{2,3}/\d{2,3}")
_REACHING: Final = frozenset(map(stem, word_set("reach amount")))
"""They only link a number to what has it: "blood loss reached 2 litres" is a blood loss of 2 litres."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The passages that hold a term together, nearest first, and what they lack of it."""

    pieces: tuple[Match, ...]
    lacking: tuple[Item, ...]

    @property
    def lost(self) -> tuple[Item, ...]:
        """What they lack, but for words that say little by themselves."""
        return tuple(item for item in self.lacking if item.key not in WEAK_WORDS)

    @property
    def lacks_denied(self) -> bool:
        """Tell whether they lack all that the term denies, though it says little: "taken but not read"."""
        term = self.pieces[0].term
        if not self.lacking or not any(item.role == "negation" for item in term.items):
            return False
        told = (at for at, item in enumerate(term.items) if item.role in {"content", "lead-in", "value"})
        denied = {term.items[at] for at in told if is_denied_at(_place(term.text, term.items, at))}
        return bool(denied) and denied <= {*self.lacking}

    @property
    def lacks_something(self) -> bool:
        """Tell whether the nearest passage lacks a word of the term, if only a verb or an order."""
        match = self.pieces[0]
        return bool(self.lacking) or any(
            item.role in {"lead-in", "relation"} and item.key not in match.keys for item in match.term.items
        )

    @property
    def is_whole(self) -> bool:
        """Tell whether the passages say all of the term."""
        return bool(self.pieces) and not self.lost


def wording(evidence: Evidence, context: Collection[str]) -> Wording:
    """Collect the passages that say a term, each as far as it tells something that the nearer ones lack.

    `context` are the keys of the sentence of the narrative that tells what the term asks for.
    """
    term = evidence.term
    wanted = [item for item in term.items if item.role in _WANTED] or list(term.essential)
    lacking = wanted
    pieces: list[Match] = []
    for match in chain(evidence.matches[:MOST_TRIED], _in_other_forms(evidence), _in_acronyms(evidence)):
        if len(pieces) == _MOST_PIECES or not lacking:
            break
        held = _held(match, wanted)
        if not held.isdisjoint(lacking) and _agrees(match) and (not pieces or _belongs(match, held, context)):
            pieces.append(match)
            lacking = [item for item in lacking if item not in held]
    return Wording(tuple(pieces), tuple(lacking))


def _in_other_forms(evidence: Evidence) -> Iterator[Match]:
    """Give the sentences that have a word of the term in another form only, each as a passage of that word."""
    for item in evidence.term.items:
        if item.role == "content" and item.key not in WEAK_WORDS:
            for key in evidence.read.by_root.get(item.folded[:ROOT], ())[:MOST_TRIED]:
                if key != item.key and is_same_word(item.folded, key):
                    for sentence in evidence.read.holding[key][:MOST_TRIED]:
                        at = next(at for at, other in enumerate(sentence.items) if other.key == key)
                        yield Match(evidence.term, sentence, at, at, 0.0)


def _in_acronyms(evidence: Evidence) -> Iterator[Match]:
    """Give the acronyms that stand for words of the term."""
    initials = {item.folded[:1] for item in evidence.term.items if item.role == "content"}
    for initial in sorted(initials & evidence.read.capitals.keys()):
        for sentence, at in islice(evidence.read.capitals[initial], evidence.most_sentences):
            if is_acronym_of(evidence.term, sentence.items[at], sentence.element.text):
                yield Match(evidence.term, sentence, at, at, 0.0)


def _held(match: Match, wanted: Sequence[Item]) -> frozenset[Item]:
    """Give those of the wanted items that a passage has, in whatever form."""
    classes = {WEAK_WORDS[item.key] for item in match.items if item.key in WEAK_WORDS}
    is_found = any(item.folded in FOUND_WORDS for item in match.items)
    told = _words_and_pairs(match.items) if any(item.key in _SAID_BY for item in wanted) else set()
    names_finding = _has_number(match) or (_is_cause(match.term.items) and _is_cause(match.items))
    measured = {measure_of(item.key) for item in match.items} - {None} if names_finding else set()
    spare = [item.value for item in match.items if item.value and item.key not in match.term.needed]
    held = frozenset(
        item
        for item in wanted
        if item.key in match.keys
        or WEAK_WORDS.get(item.key) in classes
        or (item.role == "affirmation" and is_found)
        or not told.isdisjoint(_SAID_BY.get(item.key, ()))
        or measure_of(item.key) in measured
        or (item.key == "BP" and _has_pressure(match))
        or (item.key in _REACHING and _has_number(match))
        or (item.value and any(_is_without_unit(item.value, other) for other in spare))
    )
    others = [item for item in wanted if item not in held][:_MOST_COMPARED]
    if not others:
        return held
    return held | held_in_other_form(match.term, others, match.sentence) | _denied_otherwise(match, others)


def _words_and_pairs(items: Sequence[Item]) -> set[str]:
    words = [item.folded for item in items]
    return {*words, *map(" ".join, pairwise(words))}


def _denied_otherwise(match: Match, lacking: Sequence[Item]) -> set[Item]:
    """Give the words that the term denies and the passage has with a prefix that does, or the other way round.

    "Not displaced" is "undisplaced"; so is it that way.
    """
    term, sentence = match.term, match.sentence
    may_deny = any(item.role == "negation" for item in term.items)
    held: set[Item] = set()
    for item in lacking:
        if item.role == "content" and may_deny and is_denied_at(_place(term.text, term.items, term.items.index(item))):
            forms = (part for other in match.items for part in denied_parts(other.folded))
            held |= {item for part in forms if is_same_word(item.folded, part)}
        elif item.role == "content" and sentence.may_deny and (parts := denied_parts(item.folded)):
            forms = (
                other.folded
                for at, other in enumerate(match.items)
                if is_denied_at(_place(sentence.element.text, match.items, at))
            )
            held |= {item for form in forms for part in parts if is_same_word(form, part)}
    return held


def _place(text: str, items: Sequence[Item], at: int) -> Place:
    return Place(text, items, at, at)


def _has_number(match: Match) -> bool:
    """Tell whether a passage has a number of the term, so that it says what was measured if it names a finding."""
    return any(item.value and item.value.type == "number" and item.key in match.term.core for item in match.window)


def _is_cause(items: Sequence[Item]) -> bool:
    """Tell whether something is a cause: "because of the platelets" is "because of thrombocytopenia"."""
    return any(item.folded in _CAUSING for item in items)


def _has_pressure(match: Match) -> bool:
    """Tell whether a passage has a blood pressure of the term, which needs no name: "142/78 supine"."""
    ratios = (item.value.canonical for item in match.window if item.value and item.value.scale == "ratio")
    return any(_PRESSURE.fullmatch(ratio) and f"number {ratio}" in match.term.core for ratio in ratios)


def _is_without_unit(one: Value, other: Value) -> bool:
    """Tell whether two values are one number, once with its unit and once without: "37.9 °C", "temp 37.9"."""
    named, bare = (one, other) if one.amount else (other, one)
    names_nothing = bare.scale == "bare" or bare.scale.removeprefix("of ") in CONNECTIVES
    return named.amount != "" and not bare.amount and names_nothing and bare.canonical == named.amount


def _belongs(match: Match, held: frozenset[Item], context: Collection[str]) -> bool:
    """Tell whether a further passage belongs to the term.

    A phrase of it does, and an element that tells nothing else; a single word does among words of its context.
    """
    if len(held) > 1 or tells_by_itself(match, match.term.core & match.keys):
        return True
    others = [item.key for item in match.items if item.role in _WANTED and item not in match.window]
    return bool(others) and all(key in context for key in others)


def _agrees(match: Match) -> bool:
    """Tell whether a passage denies the words that the term denies, and has its values at the same words."""
    if otherwise_bound(match) or otherwise_told(match):
        return False
    term = match.term
    if not any(item.role == "negation" for item in (*term.items, *match.items)):
        return True
    if any(item.role == "negation" for item in term.items) and _has_lost(match):
        return True
    window = range(match.first, match.last + 1)  # what stands twice is meant where the rest of the term stands
    places = {
        match.items[at].key: at
        for at in (*range(len(match.items)), *window)
        if match.items[at].role == "content" and match.items[at].key not in WEAK_WORDS
    }
    found = ((at, places.get(item.key, _place_in_other_form(item, places))) for at, item in enumerate(term.items))
    return all(
        is_denied_at(_place(term.text, term.items, at))
        == is_denied_at(_place(match.sentence.element.text, match.items, place))
        for at, place in found
        if place is not None
    )


def _has_lost(match: Match) -> bool:
    """Tell whether a word of the term is lost there, which denies it: "loss of appetite", not "no loss of appetite"."""
    words = takewhile(lambda item: item.role != "negation", match.items)
    return any(item.key in match.term.needed and is_lost(match.items, at) for at, item in enumerate(words))


def _place_in_other_form(item: Item, places: Mapping[str, int]) -> int | None:
    alike = (at for key, at in places.items() if key[:ROOT] == item.folded[:ROOT] and is_same_word(item.folded, key))
    return next(alike, None) if item.role == "content" else None
