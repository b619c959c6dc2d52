"""A text as clauses of facts: what is denied, undone, doubted, supposed, past or somebody else's is decided here alone.

1. Sentences, segments, clauses. A sentence is cut at its pauses and conjunctions into segments. Segments are put
   together to clauses: a new one begins at a word such as "because" (`lexicon/ends.tsv`), at a strong pause, where a
   segment after a comma or "and" has a subject and a verb of its own, and at the comma that closes an aside ("which was
   cancelled,").
2. Scopes. A trigger (`lexicon/status.tsv`) gives its status to the facts on one side of it, within its clause:
   - after it ("no", "denies"), to the next trigger that says whether something is so, a new subject, or an adjective
     after its noun ("no edema lungs clear"); and in the further members of a list (`scopes._goes_on`);
   - before it ("fever: none", "surgery, which was cancelled"), in the subject, and all of its members if it is a list.
   "both" is after, but before in the passive ("was declined due to") or where nothing follows; "verb" ("not") likewise,
   but never for the passive ("was not given aspirin"); "next" is the next fact alone ("non-smoker").
   What stands behind a preposition is no object: "not seen on the film" is about what was not seen.
3. Two denials that meet deny nothing ("did not deny"), nor does what only looks like one ("not only": nothing).
4. Questions say nothing until they are answered; "no" denies what was asked. A heading says no more than its text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import NamedTuple

from safe_core.diagnosis.scopes import BE, CONJUNCTIONS, HAVE, Segment, is_negative, marked
from safe_core.diagnosis.units import FULL, Fact, Unit, units_of
from safe_core.diagnosis.words import word_set

__all__ = ["FULL", "MAX_WORDS", "Clause", "Fact", "Reading", "is_negative", "read"]

MAX_WORDS = 50_000
"""How many words of a text are read; no real one comes near."""

_SHORT = 2_000  # characters of a text that is remembered
_MOST_SEGMENTS = 200  # of a sentence, and units of a segment; no real one has as many
_MOST_UNITS = 400

_HARD_PAUSE = re.compile(r"[;:()\[\]–—•]|\s-+\s")
_SENTENCE_END = re.compile(r"[.!?。！？；](?=[\s\"'”’)\]•]|$)|\n|•")
_SPEAKER = re.compile(r"\[(?:[a-z]+_)?(?:doctor|patient|guest|nurse|clinician)\w*\]", re.IGNORECASE)
"""Begins a turn of a dialogue."""
_STOPPED = frozenset(("dr", "mr", "mrs", "ms", "vs", "approx", "eg", "ie", "no", "st"))


class Clause(NamedTuple):
    """What is said of one subject: its facts in order, the number of its sentence, its place."""

    facts: tuple[Fact, ...]
    sentence: int
    start: int
    end: int


@dataclass(frozen=True)
class Reading:
    """The clauses of a text, and where each fact is."""

    text: str
    clauses: tuple[Clause, ...]

    @cached_property
    def sentences(self) -> list[list[Clause]]:
        """The clauses by sentence."""
        found: list[list[Clause]] = []
        for clause in self.clauses:
            while len(found) <= clause.sentence:
                found.append([])
            found[clause.sentence].append(clause)
        return found


def read(text: str, most: int = MAX_WORDS) -> Reading:
    """Read a text; see the top of this module.

    Short texts are remembered: the misses and the doubtful hits of a case ask for the same ones, and the narratives of
    cases come again with each run. That takes a few megabytes; 45 where all texts are as long as may be.
    """
    return remembered(text) if len(text) <= min(_SHORT, most) else _read(text, most)


def _read(text: str, most: int) -> Reading:
    clauses: list[Clause] = []
    asked: list[int] = []  # the places of the clauses that wait for an answer
    number = 0
    spoken = _SPEAKER.sub(lambda name: " " * len(name[0]), text)
    for sentence in _sentences(text, units_of(spoken, most)):
        own = _clauses(sentence.segments, number)
        if asked and (sentence.is_answer or sentence.first in _NO | _YES):
            answer = _answer(sentence)
            for place in asked:
                clauses[place] = _answered(clauses[place], answer)
            asked = []
        if not _goes_on_asking(sentence):
            asked = []
        questions = _asked(sentence, own)
        asked += range(len(clauses) + len(own) - len(questions), len(clauses) + len(own))
        clauses += own[: len(own) - len(questions)]
        clauses += [_with(clause, "asked") for clause in questions]
        number += bool(own)
    return Reading(text, tuple(clauses))


@lru_cache(maxsize=512)
def remembered(text: str) -> Reading:
    """Read a short text, or give what was read."""
    return _read(text, _SHORT)


# --- sentences and segments -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Sentence:
    segments: list[Segment]
    is_question: bool = False
    is_answer: bool = False  # the first sentence of another speaker's turn

    @property
    def first(self) -> str:
        """Its first word that says something."""
        folded = (unit.folded for segment in self.segments for unit in segment.units)
        return next((word for word in folded if word not in _HESITATING), "")


def _sentences(text: str, units: Iterator[Unit]) -> Iterator[_Sentence]:
    """Cut units into sentences of segments, by what stands between them."""
    sentence = _Sentence([Segment("")])
    end, last = 0, ""
    for unit in units:
        between = text[end : unit.start]
        is_close = between in {"", " "}
        mark = "" if is_close else _end_of_sentence(between, last)
        if mark or len(sentence.segments) > _MOST_SEGMENTS or len(sentence.segments[-1].units) > _MOST_UNITS:
            sentence.is_question = "?" in between
            yield sentence
            sentence = _Sentence([Segment("")], is_answer=mark == "]")
        if is_close and not unit.begins and unit.folded not in CONJUNCTIONS:
            sentence.segments[-1].units.append(unit)
        else:
            _add(sentence.segments, unit, between)
        end, last = unit.end, unit.folded
    sentence.is_question = "?" in text[end:]
    yield sentence


def _end_of_sentence(between: str, last: str) -> str:
    """Give what ends a sentence: a mark, or the bracket of a speaker's name."""
    if _SPEAKER.search(between):
        return "]"
    found = _SENTENCE_END.search(between)
    if not found or (found[0] == "." and last in _STOPPED and between.startswith(".") and "\n" not in between):
        return ""
    return found[0]


def _add(segments: list[Segment], unit: Unit, between: str) -> None:
    """Add a unit to the last segment, or to a new one where a pause or a conjunction is before it."""
    has_units = bool(segments[-1].units)
    if unit.begins and not (unit.begins == "question" and _is_statement(segments[-1], unit)):
        segments.append(Segment(unit.begins))
    elif unit.folded in CONJUNCTIONS:
        segments.append(Segment(CONJUNCTIONS[unit.folded]))
    elif has_units and _HARD_PAUSE.search(between):
        segments.append(Segment(":"))
    elif has_units and ("," in between or "/" in between):
        segments.append(Segment(","))
    segments[-1].units.append(unit)


def _is_statement(segment: Segment, unit: Unit) -> bool:
    """Tell "the rash was there" from "was there a rash"."""
    return bool(segment.units) and segment.units[-1].fact is not None and unit.folded.partition(" ")[0] in BE


# --- clauses ----------------------------------------------------------------------------------------------------------


def _clauses(segments: Sequence[Segment], sentence: int) -> list[Clause]:
    """Put segments together to clauses, and give their facts the statuses that the triggers say."""
    number = 0
    for at, segment in enumerate(segments):
        number += at > 0 and _begins_clause(segments, at)
        segment.clause = number
    clauses: list[Clause] = []
    for _, together in groupby(marked(segments), key=lambda each: segments[each.segment].clause):
        facts = tuple(together)
        units = [unit for each in segments if each.clause == segments[facts[0].segment].clause for unit in each.units]
        clauses.append(Clause(facts, sentence, units[0].start, units[-1].end))
        if len(clauses) > 1 and segments[facts[0].segment].before == ":":
            clauses[-2] = _headed(clauses[-2], clauses[-1], segments)
    return clauses


def _headed(heading: Clause, following: Clause, segments: Sequence[Segment]) -> Clause:
    """Let a heading say no more than what follows it: "Chest pain: denies chest pain" is no chest pain."""
    denied = {fact.key: fact.statuses for fact in following.facts if is_negative(fact)}
    is_bare = all(segments[fact.segment].is_bare for fact in heading.facts)
    if not is_bare or not all(fact.key in denied for fact in heading.facts if fact.tells):
        return heading
    facts = [fact._replace(statuses=denied.get(fact.key, fact.statuses)) for fact in heading.facts]
    return heading._replace(facts=tuple(facts))


def _begins_clause(segments: Sequence[Segment], at: int) -> bool:
    segment, last = segments[at], segments[at - 1]
    if segment.before == ",":
        is_listed = segment.is_bare and any(each.before == "or" for each in segments[at + 1 : at + 3])
        return (last.before == "aside" and not is_listed) or segment.is_clause
    if segment.before == "and":  # "fever and rash were denied" is one clause: its first part has no verb
        return segment.is_clause and not (last.is_bare and last.before in {"", ",", ":"})
    if segment.before == ":" and last.is_bare and at == 1:  # "Blood pressure: 120/80"
        return not all(unit.fact is not None and unit.fact.value is not None for unit in segment.units)
    return segment.before != "or"


# --- dialogues --------------------------------------------------------------------------------------------------------

_HESITATING = word_set("uh um hm hmm oh well okay ok ah so like you know actually i a just think mean")
_NO = word_set("no nope nah none never nothing negative not")
_YES = word_set(
    "yes yeah yep yup sure correct right mhm mm absolutely definitely sometimes occasionally little bit some lot"
)

_TAGS = word_set("okay ok alright")


def _asked(sentence: _Sentence, clauses: Sequence[Clause]) -> list[Clause]:
    """Give the clauses of a sentence that ask: all before a question mark, or from "do you" on."""
    questions = [at for at, segment in enumerate(sentence.segments) if segment.before == "question"]
    is_tag = {unit.folded for unit in sentence.segments[-1].units} <= _TAGS  # "I will increase it, okay?"
    is_question = (sentence.is_question and not is_tag) or (sentence.is_answer and sentence.first == "any")
    begin = 0 if is_question else questions[0] if questions else len(sentence.segments)
    return [clause for clause in clauses if clause.facts[0].segment >= begin]


def _goes_on_asking(sentence: _Sentence) -> bool:
    """Tell whether a question is a further one of those before it: "any numbness? any tingling?"."""
    return not sentence.is_answer and sentence.is_question and sentence.first in {"any", "or"}


def _answer(sentence: _Sentence) -> str:
    """Say what an answer makes of a question: "denied", "" (it is so), or "asked" (nobody knows)."""
    units = [unit for segment in sentence.segments for unit in segment.units]
    spoken = [word for unit in units for word in unit.folded.split() if word not in _HESITATING]
    if spoken and spoken[0] in _NO:
        return "denied"
    if spoken and spoken[0] in _YES:
        return ""
    if not spoken or any(unit.fact is not None and unit.fact.tells for unit in units):
        return "asked"
    if any(unit.trigger is not None and unit.trigger.status == "denied" for unit in units):
        return "denied"  # "I have n't"
    return "" if spoken[-1] in BE | HAVE else "asked"  # "I did"


def _answered(clause: Clause, answer: str) -> Clause:
    bare = [fact._replace(statuses=fact.statuses - {"asked"}) for fact in clause.facts]
    return _with(clause._replace(facts=tuple(bare)), answer)


def _with(clause: Clause, status: str) -> Clause:
    if not status:
        return clause
    return clause._replace(facts=tuple(fact._replace(statuses=fact.statuses | {status}) for fact in clause.facts))
