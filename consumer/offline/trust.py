"""How often people decided about missed terms as SAFE had said: what its verdicts are worth on one's own data."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from consumer.offline.decisions import CaseKey, Choice, TermDecision
from consumer.text import count_of
from safe_core import Criterion
from safe_core.diagnosis import VERDICTS, Verdict

_SAME: Final[Mapping[Choice, frozenset[Verdict]]] = {
    "accepted": frozenset(("term", "prompt", "output")),
    "edited": frozenset(("term",)),
    "paraphrase": frozenset(("term", "accepted")),
    "rejected": frozenset(),
}
"""The verdicts that a person agrees with by a decision."""
_LEFT: Final = frozenset[Verdict](("look", "not_asked_for"))
"""The verdicts by which SAFE leaves it to a person, so that no decision agrees with them or not."""


class Class(NamedTuple):
    """How many misses with a verdict were decided, and in how many of them people said the same."""

    verdict: Verdict
    same: int
    decided: int


class Other(NamedTuple):
    """A miss on which a person decided otherwise than SAFE; `number` is that of its case."""

    number: int
    verdict: Verdict
    decision: TermDecision


class Trust(NamedTuple):
    """What people decided, by what SAFE had said, and where the two differ; `left` counts what SAFE left to them."""

    classes: tuple[Class, ...]
    others: tuple[Other, ...]
    left: int

    @property
    def in_words(self) -> str:
        """Say it in a sentence; "" if nothing is decided."""
        decided = sum(each.decided for each in self.classes)
        if not decided:
            return ""
        same = sum(each.same for each in self.classes)
        left = f" SAFE left {self.left} more to you." if self.left else ""
        return f"Of {count_of(decided, 'miss', 'es')} that you decided, SAFE had said the same in {same}.{left}"


Said = Mapping[tuple[Criterion, str], Verdict]
"""What SAFE says of the missed terms of a case."""


def trust(decisions: Iterable[TermDecision], cases: Sequence[tuple[CaseKey, Said]]) -> Trust:
    """Compare decisions with the verdicts that SAFE had given then; where that was not kept, with those of now."""
    by_key = {key: (number, said) for number, (key, said) in enumerate(cases)}
    decided: Counter[Verdict] = Counter()
    others: list[Other] = []
    for each in decisions:
        number, said = by_key.get((each.test_id, each.narrative), (-1, {}))
        verdict = each.verdict or said.get((each.criterion, each.term))
        if each.decides and number >= 0 and verdict is not None:
            decided[verdict] += 1
            if verdict not in _LEFT and verdict not in _SAME[each.choice]:
                others.append(Other(number, verdict, each))
    otherwise = Counter(each.verdict for each in others)
    classes = (
        Class(verdict, decided[verdict] - otherwise[verdict], decided[verdict])
        for verdict in VERDICTS
        if verdict not in _LEFT and decided[verdict]
    )
    others.sort(key=lambda each: (each.number, each.decision.criterion, each.decision.term))
    return Trust(tuple(classes), tuple(others), sum(decided[verdict] for verdict in _LEFT))
