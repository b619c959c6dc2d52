"""The segments of a sentence, and the scopes in them: which facts a trigger gives its status to (see `reading`)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from safe_core.diagnosis.relations import Trigger, lasting
from safe_core.diagnosis.units import Fact, Unit
from safe_core.diagnosis.words import word_set

CONJUNCTIONS = {"and": "and", "plus": "and", "or": "or", "nor": "or"}
BE = word_set("is was were are be been being am get got gets")
HAVE = word_set("has had have did does do will would can could may might must")
_PAST = word_set("was were did had")
_PERSONS = word_set("he she i we you")
_SUBJECTS = _PERSONS | word_set("patient pt")
_PRONOUNS = _PERSONS | word_set("they it this that there")
_ANEW = _PRONOUNS | word_set("yeah okay ok well um uh")
_THINGS = word_set("help treat problem issu troubl difficulti")
"""Keys of weak words that may be denied themselves: "was not relieved" says nothing of the pain."""
_ARTICLES = word_set("any a an the his her its")
_BEHIND = word_set(
    "on at in to during since after following before from by when upon within per through throughout via "
    "with for over despite regarding against post pre"
)
"""Prepositions: what stands behind one is not what a denial before it is about."""
_NEGATIVE = frozenset(("denied", "undone"))
_LISTING = frozenset(("denied", "supposed", "theirs"))
"""The statuses that all members of a list have."""
_LASTING = frozenset(("supposed", "theirs"))
"""The statuses that a denial does not end: "if no bleeding is seen"."""


def is_negative(fact: Fact) -> bool:
    """Tell whether a fact is denied or undone."""
    return not _NEGATIVE.isdisjoint(fact.statuses)


@dataclass
class Segment:
    """The units between two pauses or conjunctions; nothing is asked of it before it has all of them."""

    before: str  # ",", "and", "or", ":" (a hard pause), how its first word begins a clause, or "" (a sentence)
    units: list[Unit] = field(default_factory=list)
    clause: int = 0

    @cached_property
    def is_bare(self) -> bool:
        """Whether it only names something: it has no verb, no trigger and no value."""
        return not any(
            unit.is_polar
            or _is_stated(unit)
            or unit.folded in BE
            or unit.folded in HAVE
            or _is_verb(unit)
            or _is_value(unit)
            for unit in self.units
        )

    @cached_property
    def is_clause(self) -> bool:
        """Whether it has a subject and a verb of its own."""
        has_subject = False
        for unit in self.units:
            if has_subject and (unit.folded in BE or unit.folded in HAVE or _is_stated(unit)):
                return True
            has_subject = has_subject or unit.fact is not None or unit.folded in _PRONOUNS
        return False

    @cached_property
    def behind(self) -> list[bool]:
        """Of each unit, whether it stands behind a preposition.

        "No pain in the chest" denies a pain, and "the alarm of the pump was not heard" an alarm.
        """
        found: list[bool] = []
        is_behind = has_begun = has_told = False
        for at, unit in enumerate(self.units):
            if unit.fact is not None and unit.fact.statuses:
                is_behind = False  # "in no acute distress"
            elif unit.is_polar and unit.trigger:
                is_behind, has_begun = False, unit.trigger.reach in {"before", "both"}
            elif unit.folded.partition(" ")[0] in _BEHIND:
                is_behind = is_behind or has_begun
            elif unit.folded == "of" and any(each.is_polar for each in self.units[at:]):
                is_behind = is_behind or has_told
            else:
                is_thing = unit.fact is not None and unit.fact.key not in _THINGS
                has_begun = has_begun or is_thing or _is_verb(unit) or unit.folded == "done"
            has_told = has_told or (unit.fact is not None and unit.fact.tells)
            found.append(is_behind)
        return found


def _is_value(unit: Unit) -> bool:
    return unit.fact is not None and unit.fact.value is not None


def _is_stated(unit: Unit) -> bool:
    return unit.kind == "predicate" or (unit.trigger is not None and unit.trigger.status == "stated")


def _is_verb(unit: Unit) -> bool:
    """Tell a lead-in that is a verb from "signs of" and "evidence for"."""
    return unit.kind == "lead-in" and not unit.folded.endswith((" of", " for"))


_ONCE = Trigger("past", "after")
"""What "history of" says of all but what lasts."""


def _is_lasting(segments: Sequence[Segment], spot: "_Spot") -> bool:
    fact = segments[spot[0]].units[spot[1]].fact
    return fact is not None and fact.key in lasting()


_Spot = tuple[int, int]  # the number of a segment, and of a unit in it


def marked(segments: Sequence[Segment]) -> list[Fact]:
    """Give the facts of a sentence with their statuses."""
    statuses: dict[_Spot, set[str]] = {}
    for at, segment in enumerate(segments):
        for place, unit in enumerate(segment.units):
            if unit.trigger and unit.trigger.reach and unit.trigger.status != "nothing":
                for spot in _scope(segments, at, place, unit.trigger):
                    if not (unit.trigger == _ONCE and _is_lasting(segments, spot)):
                        statuses.setdefault(spot, set()).add(unit.trigger.status)
    found = []
    for at, segment in enumerate(segments):
        behind = segment.behind
        for place, unit in enumerate(segment.units):
            if unit.fact:
                key, start, end, weight, own, value, _, _ = unit.fact
                own = own.union(statuses.get((at, place), ()))
                found.append(Fact(key, start, end, weight, own, value, behind[place], at))
    return found


def _is_double(units: Sequence[Unit], place: int) -> bool:
    """Tell whether a trigger denies another one, or is denied itself: "did not deny", "cannot be excluded"."""
    trigger = units[place].trigger
    after = next((unit for unit in units[place + 1 :] if not _is_passed_over(unit)), None)
    before = next((unit for unit in reversed(units[:place]) if not _is_passed_over(unit)), None)
    denies = trigger is not None and after is not None and _denies_on(trigger, after) and _takes_back(after)
    is_denied = before is not None and before.trigger is not None and _denies_on(before.trigger, units[place])
    return denies or (is_denied and _takes_back(units[place]))


def _is_interjection(units: Sequence[Unit], place: int) -> bool:
    """Tell a "no" that only answers: "no I take it every day"."""
    return units[place].folded == "no" and any(unit.folded in _ANEW for unit in units[place + 1 : place + 2])


def _denies_on(trigger: Trigger, following: Unit) -> bool:
    """Tell whether a denial is one of the trigger that follows it: "not excluded", "denies missing doses"."""
    is_undone = following.trigger is not None and following.trigger.status == "undone"
    return trigger.status == "denied" and (
        trigger.reach in {"after", "verb"} or (trigger.reach == "both" and is_undone)
    )


def _is_passed_over(unit: Unit) -> bool:
    return unit.kind == "grammar" and unit.folded not in _BEHIND


def _takes_back(unit: Unit) -> bool:
    return unit.is_polar or (unit.trigger is not None and unit.trigger == Trigger("past", "before"))


def _scope(segments: Sequence[Segment], at: int, place: int, trigger: Trigger) -> list[_Spot]:
    """Give the places of the facts to which a trigger gives its status."""
    units = segments[at].units
    if _is_double(units, place) or _is_interjection(units, place):
        return []
    if trigger == _ONCE and any(_is_value(unit) for unit in units[max(0, place - 1) : place]):
        return []  # "a 3-week history of cough"
    if trigger.reach == "verb" and _is_late(segments, at, place):
        return []
    if trigger.reach == "before":
        return _before(segments, at, place, trigger)
    after = _after(segments, at, place, trigger)
    is_passive = trigger.reach == "both" and any(unit.folded in BE for unit in units[max(0, place - 2) : place])
    is_empty = not _has_object(segments, after, (at, place)) if trigger.reach in {"both", "verb"} else not after
    if not (is_passive or is_empty) or (trigger.reach == "after" and trigger.status not in _NEGATIVE):
        return after
    weak = [(number, spot) for number, spot in after if is_empty and not segments[number].behind[spot]]
    return [*_before(segments, at, place, trigger), *weak] or after


def _is_late(segments: Sequence[Segment], at: int, place: int) -> bool:
    """Tell whether something was done, but late: "was not given until noon"."""
    is_done = any(unit.folded in _PAST or unit.fact for unit in segments[at].units[max(0, place - 1) : place])
    return is_done and any(segment.units[0].folded == "until" for segment in segments[at + 1 : at + 2])


def _has_object(segments: Sequence[Segment], after: Sequence[_Spot], trigger: _Spot) -> bool:
    """Tell whether what follows a trigger is more than weak words and what stands behind a preposition."""
    at, place = trigger
    units, behind = segments[at].units[place + 1 :], segments[at].behind[place:]
    own = [unit for unit, is_behind in zip(units, behind[1:], strict=True) if not is_behind or behind[0]]
    if any(unit.folded in _ARTICLES for unit in own) and after:
        return True  # "has not had any problems"
    is_told = any(unit.fact is not None and (unit.fact.tells or unit.fact.key in _THINGS) for unit in own)
    return (is_told and bool(after)) or (not behind[-1] and any(number > at for number, _ in after))


def _after(segments: Sequence[Segment], at: int, place: int, trigger: Trigger) -> list[_Spot]:
    """Give the facts that follow a trigger, also in the further members of a list that it begins."""
    found: list[_Spot] = []
    for number in range(at, len(segments)):
        if number > at and not _goes_on(segments, at, number, trigger, found):
            break
        for spot in range(place + 1 if number == at else 0, len(segments[number].units)):
            unit = segments[number].units[spot]
            is_over = (unit.is_polar and trigger.status not in _LASTING) or (trigger == _ONCE and _is_verb(unit))
            if is_over or (found and _begins_anew(segments, found[-1], unit)):
                return found
            if unit.fact:
                found.append((number, spot))
                if trigger.reach == "next":
                    return found
    return found


def _begins_anew(segments: Sequence[Segment], last: _Spot, unit: Unit) -> bool:
    """Tell whether a subject follows, or an adjective comes after its noun: "no fever she coughs", "lungs clear"."""
    before = segments[last[0]].units[last[1]]
    is_after = unit.start == before.end + 1 and before.kind == "fact"
    return unit.folded in _SUBJECTS or (is_after and unit.kind in {"modifier", "predicate"})


def _goes_on(segments: Sequence[Segment], at: int, number: int, trigger: Trigger, found: Sequence[_Spot]) -> bool:
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
    if trigger.status not in _LISTING or not segment.is_bare or all(_is_weak(segments, spot) for spot in found):
        return False
    if any(each.before == "or" and each.clause == segment.clause for each in segments[number + 1 :]):
        return True
    first = segment.units[1 if segment.units[0].folded in CONJUNCTIONS else 0 :][:1]
    is_closed = segment.before == "," and number - 1 > at and last.before == "and"
    return bool(first) and not is_closed and not any(last.behind) and first[0].kind == "fact"


def _is_weak(segments: Sequence[Segment], spot: _Spot) -> bool:
    return segments[spot[0]].units[spot[1]].kind == "weak"


def _before(segments: Sequence[Segment], at: int, place: int, trigger: Trigger) -> list[_Spot]:
    """Give the subject of a trigger that follows it: "fever" in "fever was denied", "surgery, which was cancelled"."""
    units = segments[at].units
    begin = max((spot + 1 for spot in range(place) if units[spot].is_polar), default=0)
    found = [(at, spot) for spot in range(begin, place) if units[spot].fact]
    joints = {",", "and", "or"} if trigger.status in _NEGATIVE else {"and", "or"}
    for number in range(at - 1, -1, -1):
        segment, following = segments[number], segments[number + 1]
        is_listed = following.before in joints and segment.clause == following.clause and segment.is_bare
        is_aside = trigger.status == "past" and not is_listed
        if (found and not is_listed) or begin or is_aside or any(unit.folded in _PERSONS for unit in units[:place]):
            break
        joints = joints | {","} if following.before != "," else joints
        found += [(number, spot) for spot, unit in enumerate(segment.units) if unit.fact]
    return found
