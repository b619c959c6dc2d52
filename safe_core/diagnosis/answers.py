"""What some texts say of a term: all of it, a part, nothing, or the contrary (contract.md, "Two answers").

A term is aligned with each sentence that has a part of it, alone and with the next one. The stretch with the largest
share decides whether the term is said. A single clause contradicts it: something in it excludes a fact of the term, and
the clause has most of the rest of the term, near that.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from safe_core.diagnosis.alignment import (
    KEPT,
    OPPOSED,
    ROOT,
    Alignment,
    Edit,
    Term,
    align,
    is_opposed,
    kin_of,
    related,
    sides_of,
    term_of,
)
from safe_core.diagnosis.numbers_in_text import same
from safe_core.diagnosis.reading import FULL, Clause, Fact, Reading, is_negative, read
from safe_core.diagnosis.relations import affirming, drugs, going, key_of, sides

Says = Literal["both", "said", "contradicted", "part", "absent"]

_SAID, _SAID_LIGHTLY, _PART = 770, 670, 333  # thousandths of a term; lightly if only words of less weight are missing
_MOST_FOREIGN = 12  # telling facts of something else, between those that say a term
_MOST_SENTENCES = 24  # that a term is compared with: those that have most of it
_MOST_QUOTED = 160  # characters
_NEAR = 6  # facts between what excludes something and the rest of the term
_SHORT = 4  # telling facts of a clause that says one thing
_ALIKE = frozenset(("form", "measured", "perhaps", "opposite"))


class Place(NamedTuple):
    """A stretch of one of the texts: `texts[text][start:end]`."""

    text: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What some texts say of a term, where they have most of it, and where they say otherwise."""

    says: Says
    share: int  # thousandths of the term in the nearest stretch
    cover: int  # thousandths of the term that are anywhere in the texts
    place: Place | None = None
    sentences: int = 0  # how many the nearest stretch takes
    edits: tuple[Edit, ...] = ()  # of the nearest stretch
    against: Place | None = None
    against_edits: tuple[Edit, ...] = ()  # of the clause that contradicts

    @property
    def deciding(self) -> tuple[Edit, ...]:
        """The edits of the place that decides."""
        return self.against_edits or self.edits


class Texts:
    """Some texts, each read once for any number of terms."""

    def __init__(self, texts: Sequence[str], reader: Callable[[str], Reading] = read) -> None:
        self.texts = texts
        self.sentences = [(number, own) for number, text in enumerate(texts) for own in reader(text).sentences]

    @cached_property
    def holding(self) -> dict[str, list[int]]:
        """The sentences that have a key, by their numbers."""
        found: dict[str, list[int]] = {}
        for number, (_, clauses) in enumerate(self.sentences):
            for key in {fact.key for clause in clauses for fact in clause.facts}:
                found.setdefault(key, []).append(number)
        return found

    @cached_property
    def _by_root(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key in self.holding:
            found.setdefault(key[:ROOT], []).append(key)
        return found

    def like(self, fact: Fact) -> list[str]:
        """Give the keys that are there and stand for a fact, or are related to it."""
        if fact.value is not None:
            return [fact.key] if fact.key in self.holding else []
        near = kin_of(fact.key).union((fact.key,), self._by_root.get(fact.key[:ROOT], ()))
        return [key for key in near if key in self.holding and (key == fact.key or related(fact.key, key) in _ALIKE)]

    @cached_property
    def with_values(self) -> list[int]:
        """The numbers of the sentences that have a value."""
        return sorted({number for key, numbers in self.holding.items() if " " in key for number in numbers})

    def window(self, number: int, most: int) -> list[Clause]:
        """Give the clauses of a sentence and of those after it in the same text, `most` sentences in all."""
        text = self.sentences[number][0]
        own = self.sentences[number : number + most]
        return [clause for at, clauses in own if at == text for clause in clauses]

    def around(self, number: int) -> list[Clause]:
        """Give the clauses of a sentence, of the one before it and of the one after it."""
        first = number - 1 if number and self.sentences[number - 1][0] == self.sentences[number][0] else number
        return self.window(first, number - first + 2)


def answer(term: str, texts: Sequence[str]) -> Answer:
    """Say what some texts say of a term."""
    return answer_in(term_of(term), Texts(texts))


def contradicts(texts: Texts, wording: str) -> bool:
    """Tell whether some texts say the contrary of a wording, which may stand in them all the same: "Denies SOB."."""
    return answer_in(term_of(wording), texts).says == "contradicted"


def answer_in(term: Term, texts: Texts) -> Answer:
    """Say what some texts say of a term; the first answer that holds, in the order of the contract."""
    if not term.is_read:
        return Answer("absent", 0, 0)
    like = [texts.like(fact) for fact in term.facts]
    held = _held(term, like, texts)
    near = sorted(held, key=lambda number: (-held[number], number))[:_MOST_SENTENCES]
    best = _nearest(term, texts, near, held)
    is_said = _is_said(best.found) and _is_of_one_piece(term, best, texts)
    against, edits = next(_contradictions(term, texts, near, best.found if is_said else None), (None, ()))
    if against is None and not is_said:
        against, edits = _other_side(term, texts, best.found)
    if against and ((against.text == best.text and _is_patched(term, best)) or _has_more(edits, best.found.edits)):
        is_said = False
    says: Says = "part" if best.found.share >= _PART else "absent"
    if is_said:
        says = "both" if against else "said"
    elif against:
        says = "contradicted"
    cover = sum(fact.weight for fact, keys in zip(term.facts, like, strict=True) if keys)
    return Answer(
        says,
        best.found.share,
        1000 * cover // term.weight if cover else 0,
        _place(best),
        best.sentences,
        best.found.edits,
        against,
        edits,
    )


def _held(term: Term, like: Sequence[Sequence[str]], texts: Texts) -> dict[int, int]:
    """Give, by its number, how much of a term a sentence has, or of what is related to it."""
    found: dict[int, int] = {}
    for fact, keys in zip(term.facts, like, strict=True):
        for number in {number for key in keys for number in texts.holding[key]}:
            found[number] = found.get(number, 0) + fact.weight
    if all(fact.value is not None for fact in term.facts):  # another value has nothing in common with it
        found |= {number: 0 for number in texts.with_values if number not in found}
    return found


# --- said -------------------------------------------------------------------------------------------------------------


class _Stretch(NamedTuple):
    """Some neighbouring clauses of a text, and what a term becomes there."""

    found: Alignment = Alignment(())
    text: int = 0
    clauses: Sequence[Clause] = ()
    sentences: int = 0


def _nearest(term: Term, texts: Texts, near: Sequence[int], held: Mapping[int, int]) -> _Stretch:
    """Find the stretch of one or two sentences with the largest share; the shorter one of two."""
    best = _Stretch()
    is_denied = any(map(is_negative, term.facts))  # something more general may be denied instead
    anywhere = sum(fact.weight for fact in term.facts if is_denied or fact.value is not None)
    for most in (1, 2):
        for number in near:
            there = sum(held.get(each, 0) for each in range(number, number + most))
            if 1000 * min(term.weight, there + anywhere) <= best.found.share * term.weight:
                continue
            clauses = texts.window(number, most)
            found = align(term, clauses)
            if found.share > best.found.share:
                best = _Stretch(found, texts.sentences[number][0], clauses, most)
    return best


def _is_patched(term: Term, best: _Stretch) -> bool:
    """Tell whether what says a term is only put together from several clauses."""
    return not any(_is_said(align(term, [clause])) for clause in best.clauses)


def _has_more(against: Sequence[Edit], best: Sequence[Edit]) -> bool:
    """Tell whether the clause that contradicts a term lacks nothing of it, while what says it lacks something."""
    return bool(_lacking(best)) and not _lacking(against)


def _lacking(edits: Sequence[Edit]) -> list[Fact]:
    return [edit.fact for edit in edits if edit.kind == "missing"]


def _place(best: _Stretch) -> Place | None:
    """Give the clauses that have a part of a term, or the stretch from its first fact to its last if they are long."""
    facts = [edit.other for edit in best.found.edits if edit.other is not None]
    own = [clause for clause in best.clauses if any(fact in clause.facts for fact in facts)]
    if not own:
        return None
    start, end = min(clause.start for clause in own), max(clause.end for clause in own)
    if end - start > _MOST_QUOTED:
        start, end = min(fact.start for fact in facts), max(fact.end for fact in facts)
    return Place(best.text, start, end)


def _is_said(found: Alignment) -> bool:
    """Tell whether a stretch says a term: all but little of it, and each value and side."""
    lost: Counter[int] = Counter()  # by place: the facts of one phrase are lost together
    for edit in found.edits:
        lost[edit.fact.start] += edit.fact.weight if edit.kind in {"missing", "weaker", "perhaps"} else 0
    is_light = all(weight < FULL for weight in lost.values())
    if found.share < (_SAID_LIGHTLY if is_light else _SAID):
        return False
    if not any(edit.kind in KEPT and edit.fact.tells for edit in found.edits):
        return False  # near synonyms alone
    left = [edit for edit in found.edits if edit.fact.tells and edit.kind in {"missing", "weaker"}]
    has_all = not any(edit.fact.value is not None or edit.fact.key in sides() for edit in left)
    return has_all and not any(edit.kind in OPPOSED for edit in found.edits)


_ORDER = frozenset(("from", "before", "after", "by", "than"))
_TURNED = (frozenset(("from", "to")), frozenset(("from", "into")), frozenset(("before", "after")))
_ROLES = _ORDER.union(*_TURNED)


def _is_of_one_piece(term: Term, best: _Stretch, texts: Texts) -> bool:
    """Tell whether a text says a term the same way round, with little else between: a garbled one has every word."""
    told = [fact for clause in best.clauses for fact in clause.facts]
    own = {edit.other.start for edit in best.found.edits if edit.other is not None and edit.fact.tells}
    # Of a general denial ("no problems" for "no hip problems"), no fact that tells is in the text itself.
    between = {fact.start for fact in told if own and fact.tells and min(own) < fact.start < max(own)}
    if len(between - own) > _MOST_FOREIGN:
        return False
    here = _roles(term.text, 0, term.facts)
    there = _roles(texts.texts[best.text], best.clauses[0].start, told)
    pairs = [
        (here.get(edit.fact.start, ""), there.get(edit.other.start, ""))
        for edit in best.found.edits
        if edit.kind in KEPT and edit.other is not None
    ]
    lost, gained = ({pair[side] for pair in pairs if pair[0] != pair[1]} for side in (0, 1))
    return _ORDER.isdisjoint(lost & gained) and not any(frozenset(pair) in _TURNED for pair in pairs)


def _roles(text: str, end: int, facts: Sequence[Fact]) -> dict[int, str]:
    """Give, by the place of a fact, the preposition before it or before its adjective: which way round it is.

    So "the fit before the headache" is not "the headache before the fit".
    """
    found: dict[int, str] = {}
    role = ""
    for fact in facts:
        if text[fact.start : fact.end].lower() not in _ROLES:
            between = text[end : fact.start]
            words = reversed(between.lower().split())
            role = next((word for word in words if word in _ROLES), role if between == " " else "")
            found[fact.start], end = role, fact.end
    return found


# --- contradicted -----------------------------------------------------------------------------------------------------


def _contradictions(
    term: Term, texts: Texts, near: Sequence[int], said: Alignment | None
) -> Iterator[tuple[Place, tuple[Edit, ...]]]:
    """Give the clauses that contradict a term; of one that is said, only those that have all the rest of it."""
    for number in near:
        text, clauses = texts.sentences[number]
        for clause in clauses:
            found = align(term, [clause])
            opposed = [
                edit
                for edit in found.edits
                if is_opposed(edit) and not _is_there_too(edit, clauses) and _is_of_term(edit, found)
            ]
            if opposed and (said is None or _lacking(said.edits)) and not _holds(found, opposed, clause):
                found, opposed = _widened(term, found, clause, texts.around(number))
                opposed = [edit for edit in opposed if said is None or edit.fact in _lacking(said.edits)]
            if opposed and _holds(found, opposed, clause) and (not said or _is_whole(found, opposed, clause)):
                yield Place(text, clause.start, clause.end), found.edits


def _is_of_term(edit: Edit, found: Alignment) -> bool:
    """Tell whether what takes back a "positive" denies something of the term, and not just anything."""
    if edit.fact.key not in affirming() or edit.other is None:
        return True
    return any(
        each.other is not None and each.other.segment == edit.other.segment and each.fact.key not in sides()
        for each in found.edits
        if each is not edit
    )


def _widened(term: Term, found: Alignment, clause: Clause, around: Sequence[Clause]) -> tuple[Alignment, list[Edit]]:
    """Take the rest of a term from the sentences beside, where a clause only denies a part, or names another side."""
    beside = align(term, around).edits
    pairs = list(zip(found.edits, beside, strict=True))
    matched = [edit.other for edit in found.edits]
    is_bare = all(fact in matched or is_negative(fact) or not fact.tells for fact in clause.facts)
    opposed = [
        edit
        for edit, other in pairs
        if is_opposed(edit) and other.kind not in KEPT and edit.fact.key not in affirming()
        if edit.fact.key in sides() or (is_bare and edit.kind in {"negated", "undone"})
    ]
    edits = [other if edit.kind == "missing" and other.kind in KEPT else edit for edit, other in pairs]
    return Alignment(tuple(edits)), opposed


def _is_there_too(edit: Edit, clauses: Sequence[Clause]) -> bool:
    """Tell whether the sentence has a value of the term, too ("10 mg for a week, then 5 mg"), or both sides."""
    value, facts = edit.fact.value, [fact for clause in clauses for fact in clause.facts]
    if value is None:
        return edit.fact.key == key_of("bilateral") and {"left", "right"} <= {fact.key for fact in facts}
    return edit.kind == "value" and any(fact.value is not None and same(value, fact.value) for fact in facts)


def _other_side(term: Term, texts: Texts, best: Alignment) -> tuple[Place | None, tuple[Edit, ...]]:
    """Give the clause that has another side of what the term names, if none has the term's own, and most is there."""
    for side, noun in zip(term.facts, term.facts[1:], strict=False):
        rest = [edit for edit in best.edits if edit.fact.tells and edit.fact is not side]
        kept = [edit for edit in rest if edit.kind in KEPT]
        if side.key not in sides() or noun.key in sides() or 3 * _weight(kept) < 2 * _weight(rest):
            continue
        found = [
            (text, clause, beside)
            for text, clauses in (texts.sentences[number] for number in texts.holding.get(noun.key, ()))
            for clause in clauses
            for beside in sides_of(noun, clause)
            if not beside.statuses
        ]
        if found and not any(beside.key in {side.key, key_of("bilateral")} for _, _, beside in found):
            text, clause, beside = found[0]
            edits = [Edit("rival", side, beside) if edit.fact is side else edit for edit in best.edits]
            return Place(text, clause.start, clause.end), tuple(edits)
    return None, ()


def _holds(found: Alignment, opposed: Sequence[Edit], clause: Clause) -> bool:
    """Tell whether a clause speaks of the same thing: it has half of the term beside the fact that it excludes."""
    polar = [edit for edit in opposed if edit.kind in {"negated", "undone"}]
    if polar and not _is_as_wide(polar, found, clause):
        return False
    main = max(polar or opposed, key=lambda edit: edit.fact.weight)
    others = [edit for edit in found.edits if edit is not main and edit.fact.key not in going()]
    if polar:
        others = [edit for edit in others if edit.kind in KEPT or edit in polar or not _may_lack(edit.fact)]
    if not any(edit.fact.tells for edit in others):
        return (bool(polar) and "denied" not in main.fact.statuses) or not _is_long(clause)
    kept = [edit for edit in others if edit.kind in KEPT or edit in polar] if polar else _near(found, opposed, clause)
    return 2 * _weight(kept) >= _weight(others)


def _near(found: Alignment, opposed: Sequence[Edit], clause: Clause) -> list[Edit]:
    """Give what a clause has of a term, if a part of it is near what is opposed."""
    kept = [edit for edit in found.edits if edit.kind in KEPT]
    if all(edit.fact.key in drugs() for edit in opposed) and any(is_negative(edit.fact) for edit in kept):
        return []  # that one drug does not help says nothing of another
    near = [
        edit
        for edit in kept
        if edit.fact.tells and edit.other in clause.facts and any(_is_near(edit, each, clause) for each in opposed)
    ]
    if any(edit.fact.value is None for edit in near):
        return kept  # the clause speaks of it: the rest of the term counts wherever it is
    is_of_kind = any(edit.kind in {"rival", "opposite"} for edit in opposed)  # "atenolol 50 mg" for "metoprolol 50 mg"
    return near if is_of_kind else []


def _may_lack(fact: Fact) -> bool:
    """Tell whether a denial denies a fact's term though it says nothing of the fact: "no headache" no severe one."""
    return fact.weight < FULL or _is_dose(fact)  # what is stopped has no dose


def _is_dose(fact: Fact) -> bool:
    return fact.value is not None and fact.value.kind in {"quantity", "frequency"}


def _weight(edits: Sequence[Edit]) -> int:
    return sum(edit.fact.weight for edit in edits)


def _is_long(clause: Clause) -> bool:
    return sum(fact.tells for fact in clause.facts) > _SHORT


def _is_whole(found: Alignment, opposed: Sequence[Edit], clause: Clause) -> bool:
    """Tell whether a clause says all of a term but for what is opposed, of one thing and of no time of its own."""
    others = [edit for edit in found.edits if edit not in opposed and edit.fact.tells]
    is_timed = any(
        "past" in fact.statuses or (fact.value is not None and fact.value.kind in {"date", "time"})
        for fact in clause.facts
    )
    is_beside = any(edit.kind == "rival" and edit.fact.key not in sides() for edit in opposed)  # the wrist hurts, too
    return not is_timed and not is_beside and all(edit.kind in KEPT for edit in others)


def _is_near(kept: Edit, opposed: Edit, clause: Clause) -> bool:
    """Tell whether two facts of a clause belong together; a value belongs to the words of its own segment."""
    one, other = kept.other, opposed.other
    if one is None or other is None:
        return False
    own = [fact for fact in clause.facts if fact.segment == other.segment and fact is not other]
    if other.value is None or any(fact.key == one.key for fact in own):
        return abs(clause.facts.index(one) - clause.facts.index(other)) <= _NEAR
    words = [fact for fact in own if fact.tells and fact.value is None]
    return not words and one.segment == other.segment - 1


def _is_as_wide(polar: Sequence[Edit], found: Alignment, clause: Clause) -> bool:
    """Tell whether what is denied is no narrower than what the term says, or what is said no wider than it denies."""
    matched = {edit.other.key for edit in polar if edit.other is not None}
    lost = [edit.fact for edit in found.edits if edit.kind == "missing" and edit.fact.tells]
    for fact, other in ((edit.fact, edit.other) for edit in polar if edit.other is not None):
        beside = [each for each in clause.facts if each.segment == other.segment and is_negative(each)]
        if is_negative(other) and any(
            each.tells and not each.is_context and each.key not in matched for each in beside
        ):
            return False
        if not is_negative(other) and any(
            each.segment == fact.segment and not ("undone" in each.statuses and _is_dose(each)) for each in lost
        ):
            return False
    return True
