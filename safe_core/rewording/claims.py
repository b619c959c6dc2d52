"""Whether phrases of a narrative claim what a term claims, no less and not much more, in words that a note has."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from safe_core.diagnosis import relations
from safe_core.diagnosis.alignment import Edit, Term, align, term_of
from safe_core.diagnosis.numbers_in_text import rival
from safe_core.diagnosis.reading import Clause, Fact, is_negative, read
from safe_core.diagnosis.units import units_of
from safe_core.diagnosis.words import stem
from safe_core.matching_rule import normalise

_KEPT: Final = frozenset(("same", "form"))
_COUNTING_WORDS: Final = (
    "new old last next always often usual routine occasional occasionally sometimes several few couple many much more "
    "most little slightly early earlier late later before after since until while recent current currently today again "
    "past previous prior both able unable difficulty trouble good better best fine same full complete entire whole "
    "almost approximately ongoing still started start begin add onset visit obtain check provide develop occur "
    "put apply place make produce cause lead help advise discuss explain review tell try want"
)
"""Weak words that say when, how often, how much, how well or what is done; the others may be left out."""
_COUNTING: Final = frozenset(map(stem, _COUNTING_WORDS.split()))
_SPOKEN: Final = re.compile(
    r"(?<![\w-])(?:I|you|your|yours|we|us|our|me|my|mine|um|uh|uhm|hm+|mm-hmm|okay|yeah|yep|nope|wow|gon|gonna|wan|wanna"
    r"|got|gotta|kind of|sort of|kinda|sorta|like|just|really|actually|basically|pretty|stuff|lots?|guys?|maybe|know"
    r"|mean|guess|bit|lets|alright|all right|right now|oh|hey|hi|hello|nice|everything|probably|even|great|standpoint"
    r"|anywhere|else)(?![\w-])",
    re.IGNORECASE,
)
"""Who is spoken to, and fillers."""
_TAKEN_DOWN: Final = re.compile(
    r"^(?:of|and|or|to|that|which|than|by)\b|\b(?:an?|the|of|and|or|to|his|her|was|is|with)$|\bover \d|\b(\w+) \1\b"
    r"|[\n[?!]|\s[.,;:]|\.\.|n['’]t\b|\s['’](?:s|re|ve|ll|m|d)\b|\b(?:it|that|s?he|there)['’]s\b"
    r"|\w-(?:\s|$)|(?:^|\s)\d{1,2}[.)]\s",
    re.IGNORECASE,
)
"""Speech as it is taken down (cut tokens, spaces before commas, words said twice), and numbers of a list."""
_DIGIT: Final = re.compile(r"\d")
_SPELLED: Final = frozenset(("count", "frequency", "age", "ordinal", "date", "time", "grade"))
_PERIODS: Final = frozenset(map(stem, ("day", "week", "month", "year")))
_MOST_WORDS: Final = 200  # of a term
_PAST: Final = frozenset(("past",))
_DOUBTS: Final = frozenset(("unsure", "supposed", "theirs", "asked"))


@lru_cache(maxsize=512)
def clauses_of(*texts: str) -> tuple[Clause, ...]:
    """Read some texts, each for itself."""
    return tuple(clause for text in texts for clause in read(text).clauses)


def answers_how_much(fact: Fact) -> bool:
    """Tell whether a fact is a value, a period or a side, in whose place a text may have another one."""
    return fact.value is not None or fact.key in relations.sides() | _PERIODS


def is_needed(fact: Fact) -> bool:
    """Tell whether a term without a fact would claim less; not so of "given" in "aspirin not given"."""
    if fact.tells or fact.value is not None:
        return True
    if is_negative(fact):
        return fact.key not in relations.going()
    return not fact.statuses <= _PAST or fact.key in relations.going() | _COUNTING


def is_held(edit: Edit) -> bool:
    """Tell whether a text has a fact of a term, in any form and as surely; behind a preposition, a near synonym."""
    if edit.kind != "perhaps" or edit.other is None:
        return edit.kind in _KEPT
    return edit.fact.is_context and relations.rivals().keys().isdisjoint((edit.fact.key, edit.other.key))


def is_weaker(term: Term, phrases: Sequence[str]) -> bool:
    """Tell whether phrases lack a fact of a term, its value, side, denial or doubt, or are only a part of its words."""
    for edit in align(term, clauses_of(*phrases)).edits:
        is_past = edit.other is not None and edit.fact.statuses & _PAST > edit.other.statuses & _PAST
        if is_past or not (is_held(edit) or (edit.kind == "missing" and not is_needed(edit.fact))):
            return True
    return len(phrases) == 1 and _is_cut(term, phrases[0])


def _is_cut(term: Term, phrase: str) -> bool:
    """Tell whether a phrase is a part of a term's words without what this says of it: "headaches", "has headaches"."""
    at = normalise(term.text).find(normalise(phrase))
    said = [unit.start for unit in units_of(term.text, _MOST_WORDS) if unit.entry.kind in {"lead-in", "trigger"}]
    needed = [fact.start for fact in term.facts if is_needed(fact)]
    return at >= 0 and not all(at <= start < at + len(phrase) for start in (*said, *needed))


def asks_more(term: Term, phrase: str, *, is_said: bool) -> bool:
    """Tell whether a phrase claims much more than a term: a value, a side, a drug, a denial, a doubt, or many words.

    What a denial has more makes it narrower: who denies a high fever may have one. A value that does not exclude one of
    the term's is only too much where the output does not say it.
    """
    more = [edit.fact for edit in align(term_of(phrase), clauses_of(term.text)).edits if not is_held(edit)]
    telling = [fact for fact in more if fact.tells]
    return len(telling) > sum(fact.tells for fact in term.facts) or any(
        fact.key in relations.drugs()
        or (fact.key in relations.sides() and any(own.key in relations.sides() for own in term.facts))
        or is_negative(fact)
        or _DOUBTS & fact.statuses
        or (
            fact.value
            and ((not is_said and _has_digit(fact, phrase)) or any(_is_rival(fact, own) for own in term.facts))
        )
        for fact in telling
    )


def _is_rival(fact: Fact, other: Fact) -> bool:
    return bool(fact.value and other.value and rival(fact.value, other.value))


def _has_digit(fact: Fact, text: str) -> bool:
    return _DIGIT.search(text, fact.start, fact.end) is not None


def is_written(phrase: str) -> bool:
    """Tell whether a note could have a phrase: nobody is spoken to, and no measured value is spelled out."""
    return not (
        _SPOKEN.search(phrase)
        or _TAKEN_DOWN.search(phrase)
        or any(_is_spelled(fact, phrase) for clause in clauses_of(phrase) for fact in clause.facts)
    )


def _is_spelled(fact: Fact, phrase: str) -> bool:
    """Tell "six point seven", "twenty milligrams" and "two out of 6" from "6.7", "two weeks" and "twice a day"."""
    value = fact.value
    if value is None or (_has_digit(fact, phrase) and (value.kind != "ratio" or phrase[fact.start].isdigit())):
        return False
    return value.kind not in _SPELLED and value.scale != "duration"
