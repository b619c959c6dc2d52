"""A term against a stretch of a text: typed edits, and how much of the term is there, in whole thousandths."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple

from safe_core.diagnosis import relations
from safe_core.diagnosis.numbers_in_text import rival, same
from safe_core.diagnosis.reading import FULL, Clause, Fact, is_negative, read

EditKind = Literal[
    "same", "form", "measured", "general", "perhaps", "value", "opposite", "rival", "replaced", "negated", "undone",
    "weaker", "missing",
]  # fmt: skip
OPPOSED: frozenset[EditKind] = frozenset(("value", "opposite", "rival", "replaced", "negated", "undone"))
"""The edits that cannot be true together with the term."""
KEPT: frozenset[EditKind] = frozenset(("same", "form", "general"))
"""The edits by which the text has the fact."""

_SHARES: dict[EditKind, int] = {"same": 1000, "form": 1000, "general": 1000, "perhaps": 750}
_BEST_FIRST: tuple[EditKind, ...] = (
    "same", "form", "measured", "general", "negated", "undone", "perhaps", "weaker", "value", "opposite", "rival",
    "replaced", "missing",
)  # fmt: skip
_RANK = {kind: number for number, kind in enumerate(_BEST_FIRST)}
_BESIDE = 3  # facts from a side to the word that it belongs to
_WEAKER = frozenset(("unsure", "supposed", "asked", "theirs"))
_MOST_FACTS = 128  # of a term that is compared; no real one comes near
ROOT = 6  # first letters, and more than this share of the longer word, that two forms of one word have in common
_ROOT_SHARE = 0.75


class Edit(NamedTuple):
    """What becomes of a fact of the term in the text."""

    kind: EditKind
    fact: Fact
    other: Fact | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """A term, read; one with too many facts is not compared."""

    text: str
    facts: tuple[Fact, ...]
    is_read: bool = True

    @property
    def weight(self) -> int:
        return sum(fact.weight for fact in self.facts)


@dataclass(frozen=True, slots=True)
class Alignment:
    """The edits from a term to a stretch of a text, fact by fact."""

    edits: tuple[Edit, ...]

    @property
    def share(self) -> int:
        """How much of the term the stretch has, in thousandths of its weight."""
        whole = sum(edit.fact.weight for edit in self.edits)
        return sum(edit.fact.weight * _SHARES.get(edit.kind, 0) for edit in self.edits) // whole if whole else 0


@lru_cache(maxsize=4096)
def term_of(text: str) -> Term:
    """Read a term; where all of its words say little, they count in full."""
    facts = [fact for clause in read(text).clauses for fact in clause.facts]
    if not any(fact.tells for fact in facts):
        facts = [fact._replace(weight=FULL) for fact in facts]
    return Term(text, tuple(facts), len(facts) <= _MOST_FACTS)


def align(term: Term, clauses: Sequence[Clause]) -> Alignment:
    """Find each fact of a term in some clauses: the best that stands for it."""
    facts = [(other, other.key[:ROOT], clause) for clause in clauses for other in clause.facts]
    edits = [_edit(fact, facts) for fact in term.facts]
    taken = {edit.other for edit in edits if edit.kind in KEPT}
    edits = [  # what stands for a fact is in the place of no other one
        _edit(edit.fact, [each for each in facts if each[0] not in taken])
        if edit.kind in OPPOSED and edit.other in taken
        else edit
        for edit in edits
    ]
    edits = [_sided(edit, edits[number + 1 :], clauses) for number, edit in enumerate(_measured(edits))]
    return Alignment(tuple(_bound(_generalised(edits, clauses), clauses)))


def _edit(fact: Fact, facts: Sequence[tuple[Fact, str, Clause]]) -> Edit:
    """Find the best that stands for a fact; nothing stands in the place of what is there, even if it is denied."""
    if fact.value is not None:
        near = [(other, clause) for other, _, clause in facts if other.value is not None]
    elif kin := kin_of(fact.key):
        root = fact.key[:ROOT]
        near = [(other, clause) for other, own, clause in facts if own == root or other.key in kin]
    else:
        near = [(other, clause) for other, _, clause in facts]
    found = [edit for other, clause in near if (edit := _compared(fact, other, clause))]
    return min(found, key=lambda edit: _RANK[edit.kind], default=Edit("missing", fact))


def _compared(fact: Fact, other: Fact, clause: Clause) -> Edit | None:
    """Say how a fact of a text stands to one of the term; None if they have nothing to do with each other."""
    kind: EditKind | Literal[""] = ""
    if fact.value is not None or other.value is not None:
        kind = _compared_values(fact, other)
    elif fact.key == other.key:
        kind = _kept(fact, other)
    elif fact.key in relations.affirming() and is_negative(other):
        kind = "negated"
    elif fact.key == relations.medication() and other.key in relations.drugs():
        kind = "negated" if _kept(fact, other) == "negated" else ""  # "no drug allergies": "allergic to penicillin"
    else:
        kind = related(fact.key, other.key)
        if kind == "opposite" and is_negative(fact) != is_negative(other):
            kind = "same"  # the denial of an opposite
        elif kind in {"rival", "replaced"} and is_negative(fact):
            kind = ""  # that one thing is not so says nothing of another
        elif kind in {"form", "measured"} and (kept := _kept(fact, other)) != "same":
            kind = kept
    if kind == "negated" and "undone" in fact.statuses and not _goes_on(clause):
        return None  # a mention does not contradict what a term calls off: only what goes on does
    return Edit(kind, fact, other) if kind else None


def _compared_values(fact: Fact, other: Fact) -> EditKind | Literal[""]:
    if fact.value is None or other.value is None:
        return ""
    if same(fact.value, other.value):
        return _kept(fact, other)
    return "value" if rival(fact.value, other.value) else ""


def _goes_on(clause: Clause) -> bool:
    return any(fact.key in relations.going() and not is_negative(fact) for fact in clause.facts)


def _kept(fact: Fact, other: Fact) -> EditKind:
    """Say what the statuses make of two facts with the same key."""
    if fact.statuses == other.statuses:
        return "same"
    is_past = "past" in other.statuses - fact.statuses and not is_negative(fact)
    if is_past or not _WEAKER.isdisjoint(fact.statuses ^ other.statuses):
        return "weaker"
    is_apart = (other.is_context and not fact.statuses) or (fact.is_context and not other.statuses)
    if is_negative(fact) == is_negative(other) or is_apart:
        return "same"
    return "undone" if "undone" in other.statuses else "negated"


def _measured(edits: Sequence[Edit]) -> Sequence[Edit]:
    """Take a finding with a value for what was measured: "fever of 39" is "temperature 39"; else it may be none."""
    has_value = any(edit.fact.value is not None and edit.other is not None for edit in edits)
    kind: EditKind = "form" if has_value else "perhaps"
    return [edit._replace(kind=kind) if edit.kind == "measured" else edit for edit in edits]


def _sided(edit: Edit, following: Sequence[Edit], clauses: Sequence[Clause]) -> Edit:
    """Take a side from the word that it belongs to: in "left wrist, right elbow" the wrist is not a right one."""
    if edit.fact.key not in relations.sides():
        return edit
    nouns = (each.other for each in following if each.kind in KEPT and each.fact.key not in relations.sides())
    noun = next(nouns, None)
    beside = [fact for clause in clauses for fact in sides_of(noun, clause)]
    is_there = not beside or any(fact.key == edit.fact.key for fact in beside)
    return edit if is_there else Edit("rival", edit.fact, beside[0])


def sides_of(noun: Fact | None, clause: Clause) -> Iterator[Fact]:
    """Give the side before each mention of a word."""
    for at, fact in enumerate(clause.facts):
        if noun is not None and fact.key == noun.key:
            near = reversed(clause.facts[max(0, at - _BESIDE) : at])
            yield from islice((each for each in near if each.key in relations.sides()), 1)


def _bound(edits: Sequence[Edit], clauses: Sequence[Clause]) -> Sequence[Edit]:
    """Take values and sides together: "3 mm on the left, 6 mm on the right" is not "6 mm on the left"."""
    told = [edit for edit in edits if edit.kind in KEPT and _is_attribute(edit.fact)]
    bound = []
    for edit in edits if len(told) > 1 else ():
        near = [clause.facts for clause in clauses if edit in told and edit.other in clause.facts]
        beside = [one.fact for one in told if one is not edit and one.fact.segment == edit.fact.segment]
        instead = next(filter(None, (_instead(one, edit.fact, facts) for facts in near for one in beside)), None)
        bound.append(edit if instead is None else Edit("rival", edit.fact, instead))
    return bound or edits


def _is_attribute(fact: Fact) -> bool:
    return fact.value is not None or fact.key in relations.sides()


def _instead(one: Fact, fact: Fact, facts: Sequence[Fact]) -> Fact | None:
    """Give what a clause has beside one value or side in the place of another, wherever it has the one."""
    instead = None
    held = [each for each in facts if _stands_for(one, each) == "same"]
    for segment in {each.segment for each in held}:
        others = [each for each in facts if each.segment == segment and each not in held]
        beside = {_stands_for(fact, each): each for each in others}
        instead = beside.get("value", beside.get("rival"))
        if "same" in beside or instead is None:
            return None
    return instead


def _stands_for(fact: Fact, other: Fact) -> str:
    """Say how two values of one scale, or two sides, stand to each other."""
    if fact.value is None or other.value is None:
        return _kept(fact, other) if fact.key == other.key else related(fact.key, other.key)
    return _compared_values(fact, other) if fact.value.scale == other.value.scale else ""


@lru_cache(maxsize=8192)
def kin_of(key: str) -> frozenset[str]:
    """Give a key and all others that the lexicon relates it to; nothing for a word that any denial takes back."""
    if key in relations.affirming():
        return frozenset()
    measure = relations.measures().get(key, key)
    forms = {prefix + key for prefix in _DENYING} | {key.removeprefix(prefix) for prefix in _DENYING}
    turned = {
        there + key.removeprefix(here) for pair in _TURNED for here, there in (pair, pair[::-1]) if key.startswith(here)
    }
    return frozenset(
        {key, measure, *forms, *turned, *relations.measured_as(measure)}
        | relations.opposites().get(key, frozenset())
        | relations.rivals().get(key, frozenset())
        | relations.near(key)
        | (relations.drugs() if key in relations.drugs() or key == relations.medication() else frozenset())
    )


@lru_cache(maxsize=65536)
def related(one: str, other: str) -> Literal["form", "measured", "opposite", "rival", "replaced", "perhaps", ""]:
    """Say how two different keys stand to each other."""
    if other in relations.opposites().get(one, ()) or _is_denied_form(one, other) or _is_denied_form(other, one):
        return "opposite"
    if other in relations.rivals().get(one, ()):
        return "rival"
    if one in relations.drugs() and other in relations.drugs():
        return "replaced"
    measures = relations.measures()
    if measures.get(one, one) == measures.get(other, other):
        return "measured"
    if one[:ROOT] == other[:ROOT] and _common(one, other) > _ROOT_SHARE * max(len(one), len(other)):
        return "form"
    return "perhaps" if other in relations.near(one) else ""


def _common(one: str, other: str) -> int:
    """Count the first letters that two words have in common."""
    return next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), len(one))


_DENYING = ("un", "non", "in", "im", "ir", "dis", "a")
_TURNED = (("hyper", "hypo"), ("tachy", "brady"))


def _is_denied_form(longer: str, word: str) -> bool:
    """Tell whether a word is another with a prefix that denies or turns it: "nonobstructing", "hypotension"."""
    if any(longer == prefix + word for prefix in _DENYING[:2] if len(word) > 3):
        return True
    if any(longer == prefix + word for prefix in _DENYING[2:6] if len(word) > 5):
        return True
    return any(longer.startswith(one) and other + longer[len(one) :] == word for one, other in _TURNED)


def _generalised(edits: Sequence[Edit], clauses: Sequence[Clause]) -> Sequence[Edit]:
    """Let a denial of something general deny the narrower thing that a term denies: "no pain" says "no knee pain"."""
    denied = [edit for edit in edits if is_negative(edit.fact)]
    if not denied:
        return edits
    head = next((edit for edit in reversed(denied) if not edit.fact.is_context), None)
    others = [edit.other for edit in denied if edit.kind in {"same", "form"} and edit.other]
    is_general = head is not None and head.kind in {"same", "form"}
    is_narrowed = head is not None and head.other is not None and _is_narrowed(head.other, others, clauses)
    kept = [edit.other for edit in denied if edit.kind in KEPT and edit.other is not None and is_negative(edit.other)]
    denying = {clause.sentence for clause in clauses if any(fact in clause.facts for fact in kept)}
    there = [fact for clause in clauses if clause.sentence in denying for fact in clause.facts]
    found = []
    for edit in edits:
        kind = edit.kind
        if is_general and kind == "missing" and is_negative(edit.fact):
            kind = "general"
        elif is_narrowed and edit is head and kind in KEPT:
            kind = "weaker"
        elif kind == "negated" and is_negative(edit.fact) and edit.other in there:
            kind = "same"  # what is denied of it: "the wound is free of infection"
        found.append(edit._replace(kind=kind))
    return found


def _is_narrowed(head: Fact, found: Collection[Fact], clauses: Iterable[Clause]) -> bool:
    """Tell whether a noun before what is denied, which the term does not have, makes it less: "no knee pain"."""
    return any(
        fact.end + 1 == head.start and "denied" in fact.statuses and fact.weight == FULL and fact not in found
        for clause in clauses
        for fact in clause.facts
    )


def is_said_alike(edit: Edit) -> bool:
    """Tell whether a fact of little weight is left out, or one is said with the term's own word."""
    return edit.kind == "same" if edit.fact.tells else True


def is_opposed(edit: Edit) -> bool:
    """Tell whether a fact cannot be true with the term: any opposite, or what excludes a telling word."""
    return edit.kind in OPPOSED and (edit.fact.tells or edit.kind == "opposite")
