"""Whether phrases of a narrative claim what a term claims, no less and not much more, in words that a note has."""

import re
from collections import Counter
from collections.abc import Sequence, Set
from functools import lru_cache
from itertools import pairwise
from typing import Final

from safe_core.diagnosis import relations
from safe_core.diagnosis.alignment import Edit, Term, align, term_of
from safe_core.diagnosis.numbers_in_text import rival
from safe_core.diagnosis.reading import Clause, Fact, is_negative, read
from safe_core.diagnosis.units import units_of
from safe_core.diagnosis.words import stem, word_set
from safe_core.matching_rule import normalise

_KEPT: Final = frozenset(("same", "form"))
_COUNTING_WORDS: Final = (
    "new old last next always often usual routine occasion occasional occasionally sometimes several few couple many "
    "much more most little slightly early earlier late later before after since until while recent current currently "
    "today again past previous prior both able unable difficulty trouble good better best fine same full complete "
    "entire whole almost approximately ongoing still started start begin add onset visit obtain check provide develop "
    "occur put apply place make produce cause lead help advise discuss explain review tell try want concern follow "
    "man woman male female lady gentleman boy girl work lot"
)
"""Weak words that say when, how often, how much, how well, who or what is done; the others may be left out."""
_COUNTING: Final = frozenset(map(stem, _COUNTING_WORDS.split()))
_HEADS: Final = frozenset(map(stem, ("auscultation", "inspection", "sounds", "calibre", "caliber")))
"""What is heard or looked at, where the term says how it is: "heart sounds regular", "of normal calibre"."""
_HEDGING_WORDS: Final = (
    "concern worry worried fear question try want plan check evaluation screening approximately almost roughly"
)
_HEDGING: Final = frozenset(map(stem, _HEDGING_WORDS.split()))
"""Words that make what follows less sure: "concern of a fracture" is no fracture."""
_SPOKEN: Final = re.compile(
    r"(?<![\w-])(?:I|you|your|yours|we|us|our|me|my|mine|um|uh|uhm|hm+|mm-hmm|okay|yeah|yep|nope|wow|gon|gonna|wan|wanna"
    r"|got|gotta|kind of|sort of|kinda|sorta|like|just|really|actually|basically|pretty|stuff|lots?|guys?|maybe|know"
    r"|mean|guess|bit|lets|alright|all right|right now|oh|hey|hi|hello|nice|everything|probably|even|great|standpoint"
    r"|anywhere|else|go ahead|yes|yep|take care|back in|(?:first|second|third) problem)(?![\w-])",
    re.IGNORECASE,
)
"""Who is spoken to, and fillers."""
_NO_JOINT: Final = (
    r"\b(?!(?:that|and|but|or|when|which|because|as|if|than|who|while|since|where|what|after|before)\b)\w+"
)
_TAKEN_DOWN: Final = re.compile(
    r"\bbased$|\bover \d|\bdid (?!not\b)|\bcould (?:be|get|have|become|cause)\b"
    r"|\b(\w+) (?:an? |the )?\1\b|\b(\w{6})\w* \2|\s-\w|\b(?:at|in|on|of) th(?:at|is) (?!time)\w"
    rf"|{_NO_JOINT} (?:they|he|she|it|there) (?:do|does|did|is|are|was|were|has|have|had)\b"
    r"|[\n[?!;]|\s[.,;:]|\.\.|n['’]t\b|\s['’](?:s|re|ve|ll|m|d)\b|\b(?:it|that|s?he|there)['’]s\b"
    r"|['’]s (?:not|been|now|still|very|good|better|fine|clear|normal|stable|an?|the|in|on|at|under)\b"
    r"|\w-(?:\s|$)|(?:^|\s)\d{1,2}[.)]\s"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten) or (?:two|three|four|five|six|seven|eight|nine|ten)\b",
    re.IGNORECASE,
)
"""Speech as it is taken down (cut tokens, spaces before commas, words said twice), and numbers of a list."""
_DIGIT: Final = re.compile(r"\d")
_IS: Final = re.compile(r"\b(?:is|are|was|were) \Z")
_JOINTS: Final = re.compile(r"[,/]|\b(?:and|or|nor)\b", re.IGNORECASE)
_SPELLED: Final = frozenset(("count", "frequency", "age", "ordinal", "date", "time", "grade"))
_PERIODS: Final = frozenset(map(stem, ("day", "week", "month", "year")))
_OF_PATIENT: Final = frozenset(("take", "use", "wear", "drink", "eat", "smoke"))
_OF_PATIENT_AS: Final = re.compile(
    r"\b(?:take[ns]?|taking|took|us(?:e[sd]?|ing)|wear(?:s|ing)?|wor[en]|drink(?:s|ing)?|dr[au]nk|eat(?:s|en|ing)?|ate"
    r"|smok(?:e[sd]?|ing))\b",
    re.IGNORECASE,
)
"""What a patient does, and in which forms; others order, prescribe or recommend."""
_GENITIVE: Final = re.compile(r"(\w+)['’]s\b")
_WAYS: Final = (
    (
        word_set("stop stopped discontinue discontinued ceased quit withdrawn abandoned"),
        word_set("hold held holding withheld paused suspended postponed deferred rescheduled"),
        word_set("refused declined refuses declines"),
        word_set("missed skipped omitted"),
        word_set("cancelled canceled"),
    ),
    (
        word_set("likely probable probably suspected presumed suspicious"),
        word_set("possible possibly perhaps maybe might could questionable unclear equivocal"),
    ),
)
"""Of how something is undone, and of how sure it is: words that say the same."""
_ENDED: Final = word_set("resolved subsided disappeared")
_ONLY: Final = word_set("only solely exclusively")
_WELL: Final = word_set("okay ok alright")
_ADVISED: Final = word_set("should must")
_TOLD: Final = word_set("reports reported notes noted states stated says said admits endorses")
_PLANNED: Final = word_set("will recommend recommended refer referred order ordered consider considered")
_OPERATING_ROOM: Final = re.compile(r"\bOR\b")
_ADJECTIVES: Final = frozenset(("predicate", "modifier", "weak"))
_HAVING: Final = frozenset(("has", "have", "had"))
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
    if fact.key in _HEADS and not is_negative(fact):
        return False
    if fact.tells or fact.value is not None:
        return True
    if is_negative(fact):
        return fact.key not in relations.going()
    return not fact.statuses <= _PAST or fact.key in relations.going() | _COUNTING


def is_held(edit: Edit) -> bool:
    """Tell whether a text has a fact of a term, in any form and as surely; behind a preposition, a near synonym.

    What denies the opposite says less: who was not helped may be no worse.
    """
    if edit.other is not None and edit.fact.key != edit.other.key and is_negative(edit.fact) != is_negative(edit.other):
        return False
    if edit.kind != "perhaps" or edit.other is None:
        return edit.kind in _KEPT
    return edit.fact.is_context and relations.rivals().keys().isdisjoint((edit.fact.key, edit.other.key))


def is_weaker(term: Term, phrases: Sequence[str]) -> bool:
    """Tell whether phrases lack a fact of a term, its value, side, denial or doubt, or are only a part of its words."""
    for edit in align(term, clauses_of(*phrases)).edits:
        is_past = edit.other is not None and edit.fact.statuses & _PAST > edit.other.statuses & _PAST
        is_left_out = edit.kind == "missing" and not is_needed(edit.fact)
        if is_past or _is_told_to(edit, term, phrases) or not (is_held(edit) or is_left_out):
            return True
    lost = len(_OPERATING_ROOM.findall(term.text)) > sum(len(_OPERATING_ROOM.findall(each)) for each in phrases)
    if lost or _is_one_for_two(term, phrases) or _is_of_somebody(term, phrases) or _is_so_in_another_way(term, phrases):
        return True
    return len(phrases) == 1 and _is_cut(term, phrases[0])


def _is_one_for_two(term: Term, phrases: Sequence[str]) -> bool:
    """Tell whether a word is in the place of two: "it is | achy" says less than "the pain is achy"."""
    clauses = clauses_of(*phrases)
    edits = [edit for edit in align(term, clauses).edits if edit.other and is_held(edit) and edit.fact.tells]
    single = [edit for edit in edits if " " not in term.text[edit.fact.start : edit.fact.end]]
    asked = Counter(edit.other.key for edit in single if edit.other)
    return not asked <= Counter(fact.key for clause in clauses for fact in clause.facts)


def _is_told_to(edit: Edit, term: Term, phrases: Sequence[str]) -> bool:
    """Tell whether one of two only says what somebody should do: "take ibuprofen", "has been taking ibuprofen"."""
    own = _OF_PATIENT_AS.fullmatch(term.text, edit.fact.start, edit.fact.end)
    forms = (form[0].lower() for phrase in phrases for form in _OF_PATIENT_AS.finditer(phrase))
    return own is not None and any((form in _OF_PATIENT) != (own[0].lower() in _OF_PATIENT) for form in forms)


def _is_of_somebody(term: Term, phrases: Sequence[str]) -> bool:
    """Tell whether a word of a term is only in the genitive: "with his son" is not "in his son's room"."""
    owners = {stem(match[1].lower()) for phrase in phrases for match in _GENITIVE.finditer(phrase)}
    own = {stem(match[1].lower()) for match in _GENITIVE.finditer(term.text)}
    return any(fact.key in owners - own for fact in term.facts)


def _is_so_in_another_way(term: Term, phrases: Sequence[str]) -> bool:
    """Tell whether something is undone or doubted in another way: what is held may go on, what is likely may not be."""
    units = [units_of(text, _MOST_WORDS) for text in (term.text, "\n".join(phrases))]
    own, others = (frozenset(word for unit in each for word in unit.folded.split()) for each in units)
    if any(own & words and not others & words for words in (_ENDED, _ONLY, _WELL)) or (others - own) & _ADVISED:
        return True
    if own & _TOLD and (others - own) & _PLANNED:
        return True
    return any(_ways(own, ways) and _ways(others, ways) not in {frozenset(), _ways(own, ways)} for ways in _WAYS)


def _ways(words: Set[str], ways: Sequence[Set[str]]) -> frozenset[int]:
    return frozenset(number for number, way in enumerate(ways) if way & words)


def _is_cut(term: Term, phrase: str) -> bool:
    """Tell whether a phrase is a part of a term's words without what this says of it: "headaches", "has headaches"."""
    at = normalise(term.text).find(normalise(phrase))
    said = [
        unit.start
        for unit in units_of(term.text, _MOST_WORDS)
        if unit.entry.kind in {"lead-in", "trigger"} or (" " not in phrase and unit.folded in _HAVING)
    ]
    needed = [fact.start for fact in term.facts if is_needed(fact)]
    return at >= 0 and not all(at <= start < at + len(phrase) for start in (*said, *needed))


def asks_more(term: Term, phrase: str, *, is_said: bool) -> bool:
    """Tell whether a phrase claims much more than a term: a value, a side, a drug, a denial, a doubt, or many words.

    What a denial has more makes it narrower: who denies a high fever may have one. A value that does not exclude one of
    the term's is only too much where the output does not say it.
    """
    edits = align(term_of(phrase), clauses_of(term.text)).edits
    more = [edit.fact for edit in edits if not is_held(edit)]
    telling = [fact for fact in more if fact.tells]
    if any(fact.key in _HEDGING for fact in more) or _is_narrowed(edits, phrase):
        return True
    return len(telling) > _most_added(term) or any(
        fact.key in relations.drugs()
        or (fact.key in relations.sides() and any(own.key in relations.sides() for own in term.facts))
        or _DOUBTS & fact.statuses
        or _is_so(fact, phrase)
        or (
            fact.value
            and ((not is_said and _has_digit(fact, phrase)) or any(_is_rival(fact, own) for own in term.facts))
        )
        for fact in telling
    )


def _is_so(fact: Fact, phrase: str) -> bool:
    """Tell whether a fact is what a phrase says of its subject: "headaches are | rare"."""
    return _IS.search(phrase[: fact.start]) is not None and not phrase[: fact.end].endswith(("ed", "en", "ly"))


def _is_narrowed(edits: Sequence[Edit], phrase: str) -> bool:
    """Tell whether something is denied in fewer cases than the term denies it: "no high fever", "no new films".

    A further member of a list is none: who has no chills or fever has no fever.
    """
    begin = min((edit.fact.start for edit in edits if is_negative(edit.fact)), default=len(phrase))
    starts = [begin, *(joint.end() for joint in _JOINTS.finditer(phrase, begin)), len(phrase)]
    for start, end in pairwise(starts):
        item = [edit for edit in edits if start <= edit.fact.start < end]
        more = [edit.fact for edit in item if not is_held(edit) and (edit.fact.tells or counts(edit.fact))]
        if any(fact.is_context for fact in more) or (more and any(map(is_held, item))):
            return True
    return False


def _most_added(term: Term) -> int:
    """Give how many facts a phrase may add: none to one that only says how something is, as "within normal limits"."""
    own = [fact for fact in term.facts if fact.tells]
    return len(own) if any(not (answers_how_much(fact) or is_adjective(fact)) for fact in own) else 0


def is_adjective(fact: Fact) -> bool:
    """Tell whether a fact only says how something is: "normal", "chronic"."""
    return relations.weak().get((fact.key,)) in _ADJECTIVES


def counts(fact: Fact) -> bool:
    """Tell whether a weak word says when, how often or how much."""
    return fact.key in _COUNTING


def _is_rival(fact: Fact, other: Fact) -> bool:
    return bool(fact.value and other.value and rival(fact.value, other.value))


def _has_digit(fact: Fact, text: str) -> bool:
    return _DIGIT.search(text, fact.start, fact.end) is not None


def is_written(phrase: str) -> bool:
    """Tell whether a note could have a phrase: nobody is spoken to, and no measured value is spelled out."""
    return not (
        _SPOKEN.search(phrase)
        or _TAKEN_DOWN.search(phrase)
        or _is_open(phrase)
        or any(_is_spelled(fact, phrase) for clause in clauses_of(phrase) for fact in clause.facts)
    )


def _is_open(phrase: str) -> bool:
    """Tell whether a phrase ends before what its last word denies or doubts: "peritoneal signs not"."""
    *_, last = units_of(phrase, _MOST_WORDS)
    trigger = last.entry.trigger
    return trigger is not None and trigger.reach in {"after", "verb", "next"}


def _is_spelled(fact: Fact, phrase: str) -> bool:
    """Tell "six point seven", "twenty milligrams" and "two out of 6" from "6.7", "two weeks" and "twice a day"."""
    value = fact.value
    if value is None or (_has_digit(fact, phrase) and (value.kind != "ratio" or phrase[fact.start].isdigit())):
        return False
    return value.kind not in _SPELLED and value.scale != "duration"
