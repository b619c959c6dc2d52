"""The bounds: of which cases, which count as wrong, and how many may be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bench.yardstick.cases import CONTRADICTING, HAS_IT, LACKING, Judged


@dataclass(frozen=True, slots=True)
class Bound:
    """One line of the table: the share that is right, and what it must be; None where a figure only informs.

    `most_wrong` is for what is counted instead: the wrong ones may be this many.
    """

    name: str
    of: Sequence[Any]
    wrong: Sequence[Any]
    least: float | None = None
    most_wrong: float | None = None

    @property
    def share(self) -> float | None:
        return 1 - len(self.wrong) / len(self.of) if self.of else None

    @property
    def verdict(self) -> str:
        """Tell whether the bound is kept; a bound of no cases is not."""
        if self.least is None and self.most_wrong is None:
            return ""
        if not self.of:
            return "NOT MEASURED"
        kept = self.share is not None and self.share >= (self.least or 0)
        return "ok" if kept and (self.most_wrong is None or len(self.wrong) <= self.most_wrong) else "short"


@dataclass(frozen=True, slots=True)
class Measure:
    """Of the cases for which `among` holds, those for which `right` does not are wrong."""

    name: str
    right: Callable[[Judged], bool]
    among: Callable[[Judged], bool] = field(default=lambda _: True)
    least: float | None = None
    most_wrong: float | None = None
    wrong_in: int = 0  # where `most_wrong` is of this many, it grows with the cases

    def measure(self, prefix: str, each: Sequence[Judged]) -> Bound:
        of = [one for one in each if self.among(one)]
        most = self.most_wrong
        if most is not None and self.wrong_in:
            most = most * len(of) / self.wrong_in
        return Bound(f"{prefix}: {self.name}", of, [one for one in of if not self.right(one)], self.least, most)


# ─── what may be asked of a case ───


def verdict_is_right(each: Judged) -> bool:
    return each.said.verdict in each.case.verdicts


def output_is_right(each: Judged) -> bool:
    return each.said.output_says in each.case.output_says


def narrative_is_right(each: Judged) -> bool:
    return each.said.narrative_says in each.case.narrative_says


def class_is_right(each: Judged) -> bool:
    """Tell said, not all there, and contradicted apart; `both` is a class of its own."""
    return _class(each.said.output_says) in {_class(says) for says in each.case.output_says}


def _class(says: str) -> str:
    return "lacking" if says in LACKING else says


def is_labelled(*says: str) -> Callable[[Judged], bool]:
    """All accepted answers of the output are among these."""
    return lambda each: each.case.output_says <= set(says)


def is_called(*says: str) -> Callable[[Judged], bool]:
    return lambda each: each.said.output_says in says


def is_not_called(*says: str) -> Callable[[Judged], bool]:
    return lambda each: each.said.output_says not in says


def story_is(*says: str) -> Callable[[Judged], bool]:
    return lambda each: each.case.narrative_says <= set(says)


def story_called(*says: str) -> Callable[[Judged], bool]:
    return lambda each: each.said.narrative_says in says


def has_no_false_alarm(each: Judged) -> bool:
    """Tell whether nothing is called wrong, or contradicted, that a person does not call so."""
    says_so = each.said.output_says in CONTRADICTING or each.said.verdict == "output"
    return not says_so or bool(each.case.output_says & CONTRADICTING)


def left_out_but_told(each: Judged) -> bool:
    return each.case.output_says <= LACKING and each.case.narrative_says <= HAS_IT


def verdict_is_not(verdict: str) -> Callable[[Judged], bool]:
    return lambda each: each.said.verdict != verdict


def was_started(each: Judged) -> bool:
    return each.case.term.endswith("was started")


def _is_of(kind: str) -> Callable[[Judged], bool]:
    return lambda each: each.case.how == kind


def _both(one: Callable[[Judged], bool], other: Callable[[Judged], bool]) -> Callable[[Judged], bool]:
    return lambda each: one(each) and other(each)


ANSWERS: Final = (
    Measure("said / not all there / contradicted", class_is_right, least=0.85),
    Measure("`said` is precise", output_is_right, is_called("said"), least=0.95),
    Measure("`said` is found", is_called("said"), is_labelled("said"), least=0.80),
    Measure("verdict, with each one's own narrative", verdict_is_right, least=0.87),
    Measure("contents left out that the narrative has are not `term`", verdict_is_not("term"), left_out_but_told, 0.95),
    Measure("no false contradicted, both or output", has_no_false_alarm, most_wrong=3, wrong_in=180),
    Measure("not left to a person (`look`)", verdict_is_not("look"), least=0.90),
    Measure("`contradicted` is found", is_called("contradicted", "both"), is_labelled("contradicted")),
    Measure("own narrative is neither silent nor contradicted", story_called(*HAS_IT), story_is(*HAS_IT), 0.98),
)
STORIES: Final = (
    Measure("has it (supported, partly)", story_called(*HAS_IT), story_is(*HAS_IT), 0.95),
    Measure("contradicts", story_called("contradicts"), story_is("contradicts"), 0.85),
    Measure("silent", story_called("silent"), story_is("silent"), 0.75),
    *(
        Measure(f"{what}, in the {kind}", story_called(what), _both(story_is(what), _is_of(kind)))
        for what in ("contradicts", "silent")
        for kind in ("dialogue", "note")
    ),
)
CONTRADICTIONS: Final = (
    Measure(
        '`contradicted` (without "was started")', is_called("contradicted"), lambda each: not was_started(each), 0.95
    ),
    Measure("never `term`", verdict_is_not("term"), most_wrong=0),
    Measure('`contradicted` with "was started"', is_called("contradicted"), was_started),
)
MIRRORS: Final = (
    Measure("never contradicted", is_not_called(*CONTRADICTING), most_wrong=0),
    Measure("said", is_called("said")),
)
TWINS: Final = (
    Measure("never contradicted", is_not_called(*CONTRADICTING), most_wrong=0),
    Measure("said", is_called("said"), least=0.96),
)
DIFFERENCES: Final = (Measure("contradicted", is_called("contradicted"), least=0.96),)
ELSEWHERE: Final = (Measure("elsewhere", is_called("elsewhere"), least=0.95),)
ALONE: Final = (
    Measure("contradicted in the sentence alone", is_called("contradicted"), least=0.92),
    Measure(
        "contradicted in the sentence alone, the term word for word in the narrative",
        is_called("contradicted"),
        lambda each: each.case.how == "verbatim",
    ),
)
WHOLE: Final = (
    Measure("never said in the whole note", is_not_called("said", "found"), most_wrong=0),
    Measure("contradicted or both in the whole note", is_called(*CONTRADICTING), least=0.90),
)
DELETED: Final = (Measure("never contradicted when the sentence is gone", is_not_called(*CONTRADICTING), most_wrong=0),)
OLD: Final = (
    Measure("verdict", verdict_is_right, lambda each: bool(each.case.verdicts)),
    Measure("output's answer", output_is_right),
    Measure("said / not all there / contradicted", class_is_right),
    Measure("narrative's answer", narrative_is_right),
    Measure("no false contradicted, both or output", has_no_false_alarm),
    Measure("not left to a person (`look`)", lambda each: each.said.verdict != "look" or "look" in each.case.verdicts),
)
REAL: Final = (Measure("verdicts of the 101", verdict_is_right, most_wrong=5), *OLD[1:])
UNTOUCHED: Final = (Measure("verdicts of the 82", verdict_is_right, most_wrong=13), *OLD[1:])
