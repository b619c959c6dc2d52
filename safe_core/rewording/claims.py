"""Whether phrases keep what a term claims: its values and sides, what it denies or doubts, what belongs together."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from safe_core.diagnosis.alignment import Edit, Term, align, term_of
from safe_core.diagnosis.numbers_in_text import rival, same
from safe_core.diagnosis.reading import Clause, Fact, is_negative, read

SIDES = frozenset(("left", "right", "bilat", "unilat"))
KEPT = frozenset(("same", "form", "perhaps"))
_DOUBTS = frozenset(("unsure", "supposed", "theirs"))

_PRIVATIVE = re.compile(r"(?:un|non)\w{3,}|\w{3,}less")  # denies a part of itself: untreated, pulseless


@lru_cache(maxsize=512)
def clauses_of(*texts: str) -> tuple[Clause, ...]:
    """Read some texts, each for itself."""
    return tuple(clause for text in texts for clause in read(text).clauses)


def answers_how_much(fact: Fact) -> bool:
    """Tell whether a fact is a value or a side, in whose place a text may have another one."""
    return fact.value is not None or fact.key in SIDES


def is_held(edit: Edit) -> bool:
    """Tell whether a text has a fact of a term, in any form, or another value in its place."""
    is_other_value = edit.kind in {"value", "rival"} and answers_how_much(edit.fact)
    return edit.kind in KEPT or is_other_value or (edit.kind == "weaker" and not _doubts(edit.fact))


def are_kept(text: str, phrases: Sequence[str], narrative: str) -> bool:
    """Tell whether phrases of a narrative keep what a term claims.

    Where the narrative has another value in the place of one, and nowhere this one, the phrases must have that.
    """
    term, kept = term_of(text), clauses_of(*phrases)
    edits, told = align(term, kept).edits, [fact for clause in clauses_of(narrative) for fact in clause.facts]
    is_denied = any(is_negative(edit.fact) and edit.fact.tells for edit in edits)
    for edit in edits:
        is_aside = edit.kind == "missing" and not edit.fact.tells and is_denied  # the "given" of "drug not given"
        if not (is_aside or _is_kept(edit, told)):
            return False
    return not _says_another(edits, kept) and _belong_together(term, kept)


def _is_kept(edit: Edit, told: Iterable[Fact]) -> bool:
    if answers_how_much(edit.fact):
        return edit.kind in KEPT or (is_held(edit) and not any(_is_same(edit.fact, fact) for fact in told))
    if is_negative(edit.fact) or _doubts(edit.fact):
        is_general = edit.kind == "general" and not any(_is_same(edit.fact, fact) for fact in told)
        return edit.kind in KEPT or is_general
    return is_held(edit) or (edit.kind == "missing" and not _PRIVATIVE.fullmatch(edit.fact.key))


def _is_same(fact: Fact, other: Fact) -> bool:
    return fact.key == other.key or bool(fact.value and other.value and same(fact.value, other.value))


def _doubts(fact: Fact) -> bool:
    return not _DOUBTS.isdisjoint(fact.statuses)


def _says_another(edits: Sequence[Edit], kept: Iterable[Clause]) -> bool:
    """Tell whether phrases have a second value where they have the term's own: it fell "from 180 to 90 mmHg"."""
    own = [edit.fact.value for edit in edits if edit.kind in KEPT and edit.fact.value]
    others = [fact.value for clause in kept for fact in clause.facts if fact.value]
    return any(rival(one, other) for one in own for other in others)


def _belong_together(term: Term, kept: Iterable[Clause]) -> bool:
    """Tell whether each value and side of a term goes with the same words in the phrases, where these have both."""
    facts = [fact for clause in kept for fact in clause.facts]
    bound, said = _bound(term.facts), {fact.key for fact in facts}
    others = _bound(facts)
    return not any(
        keys & said and keys.isdisjoint(others.get(pair, keys)) for pair, keys in bound.items()
    )  # "left leg", where only another word has the left


def _bound(facts: Iterable[Fact]) -> Mapping[tuple[str, str], frozenset[str]]:
    """Give, for each word and each question, the values in its segments that answer it."""
    segments: dict[int, list[Fact]] = {}
    for fact in facts:
        segments.setdefault(fact.segment, []).append(fact)
    found: dict[tuple[str, str], frozenset[str]] = {}
    for segment in segments.values():
        values = [(fact.value.scale if fact.value else "side", fact.key) for fact in segment if answers_how_much(fact)]
        for word in (fact for fact in segment if fact.tells and not answers_how_much(fact)):
            for scale, key in values:
                found[word.key, scale] = found.get((word.key, scale), frozenset()) | {key}
    return found
