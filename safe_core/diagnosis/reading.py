"""A text as clauses of facts: what is denied, undone, doubted, supposed, past or somebody else's is decided here alone.

1. Sentences, segments, clauses. A sentence is cut at its pauses and conjunctions into segments. Segments are put
   together to clauses: a new one begins at a word such as "because" (`lexicon/ends.tsv`), at a strong pause, where a
   segment after a comma or "and" has a subject and a verb of its own, and at the comma that closes an aside ("which was
   cancelled,").
2. Scopes. A trigger (`lexicon/status.tsv`) gives its status to the facts on one side of it, within its clause:
   - after it ("no", "denies"), to the next trigger that says whether something is so, a new subject, or an adjective
     after its noun ("no edema lungs clear"); and in the further members of a list (`_goes_on`);
   - before it ("fever: none", "surgery, which was cancelled"), in the subject, and all of its members if it is a list.
   "both" is after, but before in the passive ("was declined due to") or where nothing follows; "verb" ("not") likewise,
   but never for the passive ("was not given aspirin"); "next" is the next fact alone ("non-smoker").
   What stands behind a preposition is no object: "not seen on the film" is about what was not seen.
3. Two denials that meet deny nothing ("did not deny"), nor does what only looks like one ("not only": nothing).
4. Questions say nothing until they are answered; "no" denies what was asked. A heading says no more than its text.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import groupby
from typing import NamedTuple

from safe_core.diagnosis.numbers_in_text import Value
from safe_core.diagnosis.relations import Trigger, lasting
from safe_core.diagnosis.units import FULL, WEIGHTS, Unit, units_of
from safe_core.diagnosis.words import word_set

__all__ = ["FULL", "MAX_WORDS", "Clause", "Fact", "Reading", "is_negative", "read", "whole_words"]

MAX_WORDS = 50_000
"""How many words of a text are read; no real one comes near."""

_SHORT = 2_000  # characters of a text that is remembered
_MOST_SEGMENTS = 200  # of a sentence, and units of a segment; no real one has as many
_MOST_UNITS = 400
_WEAK = WEIGHTS["weak"]


class Fact(NamedTuple):
    """A word or a value of a text: `text[start:end]`, and what the text says of it."""

    key: str
    start: int
    end: int
    weight: int
    statuses: frozenset[str] = frozenset()
    value: Value | None = None
    is_context: bool = False  # stands behind a preposition: "chest" in "no pain in the chest"
    segment: int = 0

    @property
    def tells(self) -> bool:
        """Whether it is more than a weak word."""
        return self.weight > _WEAK


class Clause(NamedTuple):
    """What is said of one subject: its facts in order, the number of its sentence, its place.

    Its place holds the words without facts beside it ("then resolved"), and what gives its facts their statuses, also
    where that is in another clause ("which was stopped"), or an answer.
    """

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
        return [[*clauses] for _, clauses in groupby(self.clauses, key=lambda clause: clause.sentence)]


def is_negative(fact: Fact) -> bool:
    """Tell whether a fact is denied or undone."""
    return not _NEGATIVE.isdisjoint(fact.statuses)


def whole_words(text: str, facts: Iterable[Fact]) -> tuple[str, ...]:
    """Give the words of a text that some facts are in, each once: "re-laparotomy", not "re" and "laparotomy"."""
    told: dict[str, None] = {}
    for fact in facts:
        around = [each for each in _WHOLE_WORD.finditer(text) if each.end() > fact.start and each.start() < fact.end]
        start = min((fact.start, *(each.start() for each in around)))
        told[text[start : max((fact.end, *(each.end() for each in around)))]] = None
    return tuple(told)


_WHOLE_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")


def read(text: str, most: int = MAX_WORDS) -> Reading:
    """Read a text; see the top of this module.

    Short texts are remembered: the misses and the doubtful hits of a case ask for the same ones, and the narratives of
    cases come again with each run. That takes a few megabytes; 45 where all texts are as long as may be.
    """
    return remembered(text) if len(text) <= min(_SHORT, most) else _read(text, most)


@lru_cache(maxsize=512)
def remembered(text: str) -> Reading:
    """Read a short text, or give what was read."""
    return _read(text, _SHORT)


def _read(text: str, most: int) -> Reading:
    clauses: list[Clause] = []
    asked: list[int] = []  # the places of the clauses that wait for an answer
    number = 0
    spoken = _SPEAKER.sub(lambda name: " " * len(name[0]), text)
    for sentence in _sentences(text, units_of(spoken, most)):
        own = _clauses(sentence.segments, number)
        if asked and (sentence.is_answer or sentence.first in _NO | _YES):
            answer = _answer(sentence)
            end = next(unit.end for segment in sentence.segments for unit in segment.units[-1:])
            for place in asked:
                clauses[place] = _with(clauses[place], answer)._replace(end=end)
            asked = []
        if not _goes_on_asking(sentence):
            asked = []
        begin = _first_asked(sentence)
        for clause in own:
            is_asked = clause.facts[0].segment >= begin
            asked += [len(clauses)] * is_asked
            clauses.append(_with(clause, "asked") if is_asked else clause)
        number += bool(own)
    return Reading(text, tuple(clauses))


# --- sentences and segments -------------------------------------------------------------------------------------------

_CONJUNCTIONS = {"and": "and", "plus": "and", "or": "or", "nor": "or"}
BE = word_set("is was were are be been being am get got gets")
_HAVE = word_set("has had have did does do will would can could may might must")
_PERSONS = word_set("he she i we you")
_PRONOUNS = _PERSONS | word_set("they it this that there")
_THINGS = word_set("help treat problem issu troubl difficulti")
"""Keys of weak words that may be denied themselves: "was not relieved" says nothing of the pain."""
_BEHIND = word_set(
    "on at in to during since after following before from by when upon within per through throughout via "
    "with for over despite regarding against post pre"
)
"""Prepositions: what stands behind one is not what a denial before it is about."""

_HARD_PAUSE = re.compile(r"[;:()\[\]–—•]|\s-+\s")
_SENTENCE_END = re.compile(r"[.!?。！？；](?=[\s\"'”’)\]•]|$)|\n|•")
_SPEAKER = re.compile(r"\[(?:[a-z]+_)?(?:doctor|patient|guest|nurse|clinician)\w*\]", re.IGNORECASE)
"""Begins a turn of a dialogue."""
_STOPPED = frozenset(("dr", "mr", "mrs", "ms", "vs", "approx", "eg", "ie", "no", "st"))


@dataclass
class _Segment:
    """The units between two pauses or conjunctions; nothing is asked of it before it has all of them."""

    before: str  # ",", "and", "or", ":" (a hard pause), how its first word begins a clause, or "" (a sentence)
    units: list[Unit] = field(default_factory=list)
    clause: int = 0

    @cached_property
    def is_bare(self) -> bool:
        """Whether it only names something: it has no verb, no trigger and no value."""
        return not any(
            unit.entry.is_polar
            or unit.entry.is_stated
            or unit.value is not None
            or unit.folded in BE
            or unit.folded in _HAVE
            or _is_verb(unit)
            for unit in self.units
        )

    @cached_property
    def is_clause(self) -> bool:
        """Whether it has a subject and a verb of its own."""
        has_subject = False
        for unit in self.units:
            if has_subject and (unit.folded in BE or unit.folded in _HAVE or unit.entry.is_stated):
                return True
            has_subject = has_subject or unit.key != "" or unit.folded in _PRONOUNS
        return False

    @cached_property
    def behind(self) -> list[bool]:
        """Of each unit, whether it stands behind a preposition.

        "No pain in the chest" denies a pain, and "the alarm of the pump was not heard" an alarm.
        """
        found: list[bool] = []
        is_behind = has_begun = has_told = False
        for at, unit in enumerate(self.units):
            if unit.entry.statuses:
                is_behind = False  # "in no acute distress"
            elif unit.entry.is_polar and unit.entry.trigger:
                is_behind, has_begun = False, unit.entry.trigger.reach in {"before", "both"}
            elif unit.folded.partition(" ")[0] in _BEHIND:
                is_behind = is_behind or has_begun
            elif unit.folded == "of" and any(each.entry.is_polar for each in self.units[at:]):
                is_behind = is_behind or has_told
            else:
                is_thing = unit.key != "" and unit.key not in _THINGS
                has_begun = has_begun or is_thing or _is_verb(unit) or unit.folded == "done"
            has_told = has_told or unit.tells
            found.append(is_behind)
        return found


def _is_verb(unit: Unit) -> bool:
    """Tell a lead-in that is a verb from "signs of" and "evidence for"."""
    return unit.entry.kind == "lead-in" and not unit.folded.endswith((" of", " for"))


@dataclass(slots=True)
class _Sentence:
    segments: list[_Segment]
    is_question: bool = False
    is_answer: bool = False  # the first sentence of another speaker's turn

    @property
    def first(self) -> str:
        """Its first word that says something."""
        folded = (unit.folded for segment in self.segments for unit in segment.units)
        return next((word for word in folded if word not in _HESITATING), "")


def _sentences(text: str, units: Iterator[Unit]) -> Iterator[_Sentence]:
    """Cut units into sentences of segments, by what stands between them."""
    sentence = _Sentence([_Segment("")])
    end, last = 0, ""
    for unit in units:
        between = text[end : unit.start]
        is_close = between in {"", " "}
        mark = "" if is_close else _end_of_sentence(between, last)
        if mark or len(sentence.segments) > _MOST_SEGMENTS or len(sentence.segments[-1].units) > _MOST_UNITS:
            sentence.is_question = "?" in between
            yield sentence
            sentence = _Sentence([_Segment("")], is_answer=mark == "]")
        if not is_close or unit.entry.begins or unit.folded in _CONJUNCTIONS:
            joint = _joint(sentence.segments[-1], unit, between)
            if joint:
                sentence.segments.append(_Segment(joint))
        sentence.segments[-1].units.append(unit)
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


def _joint(segment: _Segment, unit: Unit, between: str) -> str:
    """Say what parts a unit from a segment before it; nothing if it belongs to it."""
    begins = unit.entry.begins
    is_statement = segment.units and segment.units[-1].key and unit.folded.partition(" ")[0] in BE
    if begins and not (begins == "question" and is_statement):  # "the rash was there", not "was there a rash"
        return begins
    if unit.folded in _CONJUNCTIONS:
        return _CONJUNCTIONS[unit.folded]
    if not segment.units:
        return ""
    if _HARD_PAUSE.search(between):
        return ":"
    return "," if "," in between or "/" in between else ""


# --- clauses ----------------------------------------------------------------------------------------------------------


def _clauses(segments: Sequence[_Segment], sentence: int) -> list[Clause]:
    """Put segments together to clauses, and give their facts the statuses that the triggers say."""
    number = 0
    for at, segment in enumerate(segments):
        number += at > 0 and _begins_clause(segments, at)
        segment.clause = number
    told, triggers = _facts(segments)
    clauses: list[Clause] = []
    leading: list[Unit] = []
    for number, together in groupby(range(len(segments)), key=lambda at: segments[at].clause):
        numbers = [*together]
        facts = tuple(fact for at in numbers for fact in told[at])
        units = [unit for at in numbers for unit in segments[at].units]
        if not facts and clauses:
            clauses[-1] = clauses[-1]._replace(end=max(clauses[-1].end, units[-1].end))
        elif not facts:
            leading += units
        else:
            units = [*leading, *units, *triggers.get(number, ())]
            clauses.append(Clause(facts, sentence, min(unit.start for unit in units), max(unit.end for unit in units)))
            leading = []
            if len(clauses) > 1 and segments[facts[0].segment].before == ":":
                clauses[-2] = _headed(clauses[-2], clauses[-1], segments)
    return clauses


def _begins_clause(segments: Sequence[_Segment], at: int) -> bool:
    segment, last = segments[at], segments[at - 1]
    if segment.before == ",":
        is_listed = segment.is_bare and any(each.before == "or" for each in segments[at + 1 : at + 3])
        return (last.before == "aside" and not is_listed) or segment.is_clause
    if segment.before == "and":  # "fever and rash were denied" is one clause: its first part has no verb
        return segment.is_clause and not (last.is_bare and last.before in {"", ",", ":"})
    if segment.before == ":" and last.is_bare and at == 1:  # "Blood pressure: 120/80"
        return not all(unit.value is not None for unit in segment.units)
    return segment.before != "or"


def _headed(heading: Clause, following: Clause, segments: Sequence[_Segment]) -> Clause:
    """Let a heading say no more than what follows it: "Chest pain: denies chest pain" is no chest pain."""
    denied = {fact.key: fact.statuses for fact in following.facts if is_negative(fact)}
    is_bare = all(segments[fact.segment].is_bare for fact in heading.facts)
    if not is_bare or not all(fact.key in denied for fact in heading.facts if fact.tells):
        return heading
    facts = [fact._replace(statuses=denied.get(fact.key, fact.statuses)) for fact in heading.facts]
    return heading._replace(facts=tuple(facts))


# --- scopes -----------------------------------------------------------------------------------------------------------

_NEGATIVE = frozenset(("denied", "undone"))
_LISTING = frozenset(("denied", "supposed", "theirs"))
"""The statuses that all members of a list have."""
_LASTING = frozenset(("supposed", "theirs"))
"""The statuses that a denial does not end: "if no bleeding is seen"."""
_ONCE = Trigger("past", "after")
"""What "history of" says of all but what lasts."""
_OVER = Trigger("past", "before")
_PAST = word_set("was were did had")
_SUBJECTS = _PERSONS | word_set("patient pt")
_OPENERS = _PRONOUNS | word_set("yeah okay ok well um uh")
_ARTICLES = word_set("any a an the his her its")

_Spot = tuple[int, int]  # the number of a segment, and of a unit in it


def _facts(segments: Sequence[_Segment]) -> tuple[list[list[Fact]], dict[int, list[Unit]]]:
    """Give the facts of each segment of a sentence with their statuses, and the triggers of these by clause."""
    statuses: dict[_Spot, set[str]] = {}
    triggers: dict[int, list[Unit]] = {}
    for at, segment in enumerate(segments):
        for place, unit in enumerate(segment.units):
            trigger = unit.entry.trigger
            if trigger and trigger.reach and trigger.status != "nothing":
                for spot in _scope(segments, at, place, trigger):
                    statuses.setdefault(spot, set()).add(trigger.status)
                    triggers.setdefault(segments[spot[0]].clause, []).append(unit)
    facts = [
        [
            Fact(
                unit.key,
                unit.start,
                unit.end,
                unit.entry.weight,
                unit.entry.statuses.union(statuses.get((at, place), ())),
                unit.value,
                is_behind,
                at,
            )
            for place, (unit, is_behind) in enumerate(zip(segment.units, segment.behind, strict=True))
            if unit.key
        ]
        for at, segment in enumerate(segments)
    ]
    return facts, triggers


def _scope(segments: Sequence[_Segment], at: int, place: int, trigger: Trigger) -> list[_Spot]:
    """Give the places of the facts to which a trigger gives its status."""
    units = segments[at].units
    if _says_nothing(segments, at, place, trigger):
        return []
    if trigger == _ONCE:
        return [spot for spot in _after(segments, at, place, trigger) if _unit(segments, spot).key not in lasting()]
    if trigger.reach == "before":
        return _before(segments, at, place, trigger)
    after = _after(segments, at, place, trigger)
    is_passive = trigger.reach == "both" and any(unit.folded in BE for unit in units[max(0, place - 2) : place])
    is_empty = not _has_object(segments, after, (at, place)) if trigger.reach in {"both", "verb"} else not after
    if not (is_passive or is_empty) or (trigger.reach == "after" and trigger.status not in _NEGATIVE):
        return after
    weak = [(number, spot) for number, spot in after if is_empty and not segments[number].behind[spot]]
    return [*_before(segments, at, place, trigger), *weak] or after


def _unit(segments: Sequence[_Segment], spot: _Spot) -> Unit:
    return segments[spot[0]].units[spot[1]]


def _says_nothing(segments: Sequence[_Segment], at: int, place: int, trigger: Trigger) -> bool:
    """Tell whether a trigger says nothing here: it meets another denial, only answers, or says for how long."""
    units = segments[at].units
    before, after = units[:place], units[place + 1 :]
    if units[place].folded == "no" and after and after[0].folded in _OPENERS:
        return True  # "no I take it every day"
    if trigger == _ONCE and before and before[-1].value is not None:
        return True  # "a 3-week history of cough"
    is_done = before and (before[-1].folded in _PAST or before[-1].key)
    if (
        trigger.reach == "verb"
        and is_done
        and any(each.units[0].folded == "until" for each in segments[at + 1 : at + 2])
    ):
        return True  # "was not given until noon"
    following = next((unit for unit in after if not _is_passed_over(unit)), None)
    last = next((unit for unit in reversed(before) if not _is_passed_over(unit)), None)
    return (following is not None and _takes_back(trigger, following)) or (
        last is not None and last.entry.trigger is not None and _takes_back(last.entry.trigger, units[place])
    )


def _is_passed_over(unit: Unit) -> bool:
    return unit.entry.kind == "grammar" and unit.folded not in _BEHIND


def _takes_back(trigger: Trigger, following: Unit) -> bool:
    """Tell whether a denial is one of the denial that follows it: "did not deny", "cannot be excluded"."""
    other = following.entry.trigger
    if trigger.status != "denied" or not (following.entry.is_polar or other == _OVER):
        return False
    is_undone = other is not None and other.status == "undone"
    return trigger.reach in {"after", "verb"} or (trigger.reach == "both" and is_undone)


def _has_object(segments: Sequence[_Segment], after: Sequence[_Spot], trigger: _Spot) -> bool:
    """Tell whether what follows a trigger is more than weak words and what stands behind a preposition."""
    at, place = trigger
    units, behind = segments[at].units[place + 1 :], segments[at].behind[place:]
    own = [unit for unit, is_behind in zip(units, behind[1:], strict=True) if not is_behind or behind[0]]
    if any(unit.folded in _ARTICLES for unit in own) and after:
        return True  # "has not had any problems"
    is_told = any(unit.tells or unit.key in _THINGS for unit in own)
    return (is_told and bool(after)) or (not behind[-1] and any(number > at for number, _ in after))


def _after(segments: Sequence[_Segment], at: int, place: int, trigger: Trigger) -> list[_Spot]:
    """Give the facts that follow a trigger, also in the further members of a list that it begins."""
    found: list[_Spot] = []
    for number in range(at, len(segments)):
        if number > at and not _goes_on(segments, at, number, trigger, found):
            break
        for spot in range(place + 1 if number == at else 0, len(segments[number].units)):
            unit = segments[number].units[spot]
            is_over = (unit.entry.is_polar and trigger.status not in _LASTING) or (trigger == _ONCE and _is_verb(unit))
            if is_over or (found and _begins_statement(_unit(segments, found[-1]), unit)):
                return found
            if unit.key:
                found.append((number, spot))
                if trigger.reach == "next":
                    return found
    return found


def _begins_statement(last: Unit, unit: Unit) -> bool:
    """Tell whether a subject follows, or an adjective comes after its noun: "no fever she coughs", "lungs clear"."""
    is_after = unit.start == last.end + 1 and last.entry.kind == "fact"
    return unit.folded in _SUBJECTS or (is_after and unit.entry.kind in {"modifier", "predicate"})


def _goes_on(segments: Sequence[_Segment], at: int, number: int, trigger: Trigger, found: Sequence[_Spot]) -> bool:
    """Tell whether a segment is a further member of the list that a trigger begins.

    An "or" takes in all that is before it. Without one, a list ends where something has a place ("no pain on the left,
    numbness"), after its "and", and before what has an article, an adjective or a value of its own.
    """
    segment, last = segments[number], segments[number - 1]
    if segment.before == ":" and not found:
        return True  # "negative: fever, cough"
    if segment.clause != last.clause or segment.before not in {",", "and", "or"}:
        return False
    if segment.before == "or":
        return True
    is_weak = all(_unit(segments, spot).entry.kind == "weak" for spot in found)
    if trigger.status not in _LISTING or not segment.is_bare or is_weak:
        return False
    if any(each.before == "or" and each.clause == segment.clause for each in segments[number + 1 :]):
        return True
    first = segment.units[1 if segment.units[0].folded in _CONJUNCTIONS else 0 :][:1]
    is_closed = segment.before == "," and number - 1 > at and last.before == "and"
    return bool(first) and not is_closed and not any(last.behind) and first[0].entry.kind == "fact"


def _before(segments: Sequence[_Segment], at: int, place: int, trigger: Trigger) -> list[_Spot]:
    """Give the subject of a trigger that follows it: "fever" in "fever was denied", "surgery, which was cancelled"."""
    units = segments[at].units
    begin = max((spot + 1 for spot in range(place) if units[spot].entry.is_polar), default=0)
    found = [(at, spot) for spot in range(begin, place) if units[spot].key]
    if begin or any(unit.folded in _PERSONS for unit in units[:place]):
        return found
    joints = {",", "and", "or"} if trigger.status in _NEGATIVE else {"and", "or"}
    for number in range(at - 1, -1, -1):
        segment, following = segments[number], segments[number + 1]
        is_listed = following.before in joints and segment.clause == following.clause and segment.is_bare
        if not is_listed and (found or trigger.status == "past"):
            break
        joints = joints | {","} if following.before != "," else joints
        found += [(number, spot) for spot, unit in enumerate(segment.units) if unit.key]
    return found


# --- dialogues --------------------------------------------------------------------------------------------------------

_HESITATING = word_set("uh um hm hmm oh well okay ok ah so like you know actually i a just think mean")
_NO = word_set("no nope nah none never nothing negative not")
_YES = word_set(
    "yes yeah yep yup sure correct right mhm mm absolutely definitely sometimes occasionally little bit some lot"
)
_TAGS = word_set("okay ok alright")


def _first_asked(sentence: _Sentence) -> int:
    """Give the first segment of a sentence that asks: all do before a question mark, or those from "do you" on."""
    is_tag = {unit.folded for unit in sentence.segments[-1].units} <= _TAGS  # "I will increase it, okay?"
    if (sentence.is_question and not is_tag) or (sentence.is_answer and sentence.first == "any"):
        return 0
    questions = (at for at, segment in enumerate(sentence.segments) if segment.before == "question")
    return next(questions, len(sentence.segments))


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
    if not spoken or any(unit.tells for unit in units):
        return "asked"
    if any(unit.entry.trigger is not None and unit.entry.trigger.status == "denied" for unit in units):
        return "denied"  # "I have n't"
    return "" if spoken[-1] in BE | _HAVE else "asked"  # "I did"


def _with(clause: Clause, status: str) -> Clause:
    """Give the facts of a clause another status than that they are asked about, if any."""
    added = frozenset((status,)) if status else frozenset[str]()
    facts = [fact._replace(statuses=fact.statuses - {"asked"} | added) for fact in clause.facts]
    return clause._replace(facts=tuple(facts))
