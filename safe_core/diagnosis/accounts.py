"""Where a narrative has two values of one thing, each from another source: the notes say this, the form says that."""

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import Final

from safe_core.diagnosis.sentence_index import ROOT, Sentences
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.told_words import PARTING, At, in_clause, shared
from safe_core.diagnosis.word_lists.near_synonyms import SYNONYMS
from safe_core.diagnosis.words import word_set

_DOCUMENTS: Final = word_set(
    "note notes entry form chart record records report letter log sheet statement clerking card diary referral "
    "register list handover printout screen display monitor label"
)
PEOPLE: Final = word_set(
    "patient mother father parents wife husband partner son daughter family relative relatives neighbour witness carer "
    "nurse midwife doctor consultant registrar surgeon anaesthetist obstetrician physician pharmacist physiotherapist "
    "therapist assistant porter paramedic paramedics crew police gp flatmate friend colleague teacher brother sister "
    "optician orthoptist pathologist radiologist dietitian"
)
_SAYING: Final = word_set(
    "say says said state states stated give gives record records recorded document documents documented note notes "
    "noted report reports reported describe describes described list lists listed estimate estimates estimated claim "
    "claims claimed recall recalls recalled read reads wrote has shows according found finds counted counts saw "
    "measured weighed"
)
_STATING: Final = word_set("say says said state states stated claim claims claimed recall recalls recalled read reads")
_FURTHER: Final = word_set("another other others second")
_METHODS: Final = word_set(
    "laboratory lab gas meter analyser analyzer cuff arterial probe oximeter sensor scales tape ultrasound dates scan "
    "monitor machine pump syringe dipstick bedside invasive"
)
_WE: Final = word_set("i we they he she")
_REFERRING: Final = word_set("that which this so")
_MOST_PLACES: Final = 16  # of the same value in a narrative
_IN: Final = word_set("in on per by")


def are_two_accounts(told: At, key: str, narrative: Sentences) -> bool:
    """Tell whether the value with a key stands beside a told one as what somebody else says of the same.

    The told one may stand there again, as in "… on 15 mg. […] The letter lists 20 mg, the patient says 15 mg."
    """
    if any(_disagree(told, other) for other in _values_at(key, narrative)):
        return True
    around = told.around().keys()
    again = (at for at in _values_at(told.item.key, narrative) if not around.isdisjoint(at.around()))
    return any(_disagree(at, other) for at in again for other in _values_at(key, narrative))


def _values_at(key: str, narrative: Sentences) -> Iterator[At]:
    sentences = narrative.holding.get(key, ())
    places = (At(each, at) for each in sentences for at, item in enumerate(each.items) if item.key == key)
    return islice(places, _MOST_PLACES)


def has_other_account(told: At, narrative: Sentences, said: Sentences) -> bool:
    """Tell whether an output gives, instead of a told value, the one that somebody else says of the same."""
    mine = told.item.value
    if mine is None or told.item.key in said.holding:
        return False
    again = islice(narrative.holding.get(told.item.key, ()), _MOST_PLACES)
    numbers = {told.sentence.number, *(sentence.number for sentence in again)}
    near = {at for number in numbers for at in range(max(0, number - 1), min(number + 2, len(narrative.sentences)))}
    items = (item for at in near for item in narrative.sentences[at].items)
    rivals = {item.key for item in items if item.value and mine.is_alternative(item.value) and item.key in said.holding}
    return any(are_two_accounts(told, key, narrative) for key in rivals)


def _place(at: At) -> tuple[int, int]:
    return at.sentence.number, at.at


def _disagree(told: At, found: At) -> bool:
    """Tell whether the second of two near values has a source, and all between them is about what the first tells.

    Two methods that measured the same at one time are two sources.
    """
    if abs(told.sentence.number - found.sentence.number) > 1:
        return False
    one, other = sorted((told, found), key=_place)
    items = other.sentence.items
    start = one.at + 1 if one.sentence is other.sentence else 0
    before = items[start : other.at]
    ends = [at for at, item in enumerate(before) if item.pause or item.folded in PARTING]
    clause = before[ends[-1] :] if ends else before
    marks = [at for at, item in enumerate(clause) if _is_mark(item)]
    if _is_measured_otherwise(one, other, before) or _is_judged_again(clause):
        return True
    if any(item.folded in _REFERRING for item in clause[:2]) and _has_source(before):  # "…, that would be 24 tablets"
        gap = clause
    elif _has_source(clause):
        gap = clause[marks[-1] + 1 :]
    elif _is_read_off(clause):
        after = takewhile(lambda item: not item.pause and item.folded not in PARTING, items[other.at + 1 :])
        gap = [*clause[marks[-1] + 1 :], *after]
    elif _has_source_after(other):
        gap = clause
    else:
        return False
    if _count_the_same(one.item, other.item):
        return True
    words = [item.key for item in one.sentence.items if item.role == "content"]
    meant = {key[:ROOT] for word in words for key in (word, *SYNONYMS.get(word, ()))}
    return all(item.key[:ROOT] in meant for item in gap if item.role == "content")


def _is_mark(item: Item) -> bool:
    return item.folded in _SAYING or item.folded in _FURTHER or item.folded in _DOCUMENTS


def _has_source(clause: Sequence[Item]) -> bool:
    words = {item.folded for item in clause}
    is_said = not words.isdisjoint(_SAYING)
    return not words.isdisjoint(_FURTHER | _STATING) or (is_said and not words.isdisjoint(_DOCUMENTS | PEOPLE))


def _is_judged_again(clause: Sequence[Item]) -> bool:
    """Read "we make it 12%" and "I timed it at nine minutes", with the value next."""
    words = [item.folded for item in clause]
    end = next((at for at in range(len(words) - 1, -1, -1) if words[at] not in {"at", "as"}), -1)
    return end > 0 and words[end] == "it" and not _WE.isdisjoint(words[:end])


def _is_measured_otherwise(one: At, other: At, before: Sequence[Item]) -> bool:
    """Tell whether two values of one thing are by two methods, and not of two times."""
    mine, its = one.sentence.items, other.sentence.items
    methods, others = (_METHODS.intersection(item.folded for item in items) for items in (mine[: one.at], before))
    if not methods or not others or not methods.isdisjoint(others):
        return False
    times = {item.key for item in its if item.value and item.value.type in {"time", "day"}}
    is_named = all(item.folded in _METHODS for item in (*mine[one.at - 1 : one.at], *before[-1:]))  # "meter 3, lab 4"
    is_same = is_named or any(item.folded == "it" for item in before)
    is_same = is_same or shared(in_clause(one.around()), in_clause(other.around())) > 0
    return is_same and times <= {item.key for item in mine}


def _is_read_off(clause: Sequence[Item]) -> bool:
    """Read "the pump shows 6 units"."""
    words = {item.folded for item in clause}
    return not (words.isdisjoint(_SAYING) or words.isdisjoint(_METHODS))


def _count_the_same(one: Item, other: Item) -> bool:
    """Tell whether two numbers count the same: "24 tablets" and "32 tablets"."""
    return (
        one.value is not None
        and other.value is not None
        and one.value.scale == other.value.scale != "bare"
        and one.value.scale.startswith("of ")
    )


def _has_source_after(at: At) -> bool:
    """Read "72 kg on the form" and "3/5 by the physiotherapist"."""
    items = at.sentence.items
    words = [item.folded for item in takewhile(lambda item: not item.pause, items[at.at + 1 :])]
    sources = _DOCUMENTS | PEOPLE if words[:1] == ["by"] else _DOCUMENTS
    return bool(words) and words[0] in _IN and not sources.isdisjoint(words[:4])
