"""What one `safe score` has found: the report, and behind it each case with the rules that judged it.

Every format is made from this alone, so that all of them say the same.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from consumer.offline.decisions import NO_DECISIONS, CaseDecisions
from safe_core import (
    CRITERIA,
    LABELS,
    CaseRow,
    Criterion,
    Generation,
    Label,
    Output,
    OutputField,
    Rules,
    Threshold,
)
from safe_core.diagnosis import Diagnosis, DoubtfulHit
from safe_core.lenient_scores import RECALLED, Lenient, MarksTotal, by_term
from safe_core.near_violations import NearViolation
from safe_core.unsupported import UNSUPPORTED_KINDS, Unsupported

Outcome = Literal["found", "missing", "used"]
Remarked = DoubtfulHit | NearViolation | Unsupported
RANKS: Mapping[Label, int] = {label: rank for rank, label in enumerate(reversed(LABELS))}
"""Labels in the order in which they rise: the worst is 0."""


def labels_of(labels: Iterable[Label]) -> dict[Label, int]:
    """Count how often there is each label."""
    counts = Counter(labels)
    return {label: counts[label] for label in LABELS}


@dataclass(frozen=True, slots=True)
class CaseLine:
    """One scored test case; `answered` is False where no output stood for it, and it was scored as an empty one.

    `doubtful` are the found terms that the text may not mean (contract.md, "Doubtful hits"), `near` the forbidden ones
    that a question has in another form ("Near violations"), `avoided` the forbidden ones that no question has word for
    word, `not_asked_for` the fields of its output that the model was not asked for ("Failed generations"), `lenient`
    what the output says of its terms, word for word or not ("Lenient recall"), `unsupported` the values that the
    narrative does not have ("Unsupported values"), if there is one with which they could be compared
    (`has_checked_values`).
    """

    batch_id: str
    test_id: str
    row: CaseRow
    rules: Rules
    answered: bool
    doubtful: tuple[DoubtfulHit, ...] = ()
    not_asked_for: frozenset[OutputField] = frozenset()
    near: tuple[NearViolation, ...] = ()
    avoided: tuple[str, ...] = ()
    lenient: Lenient | None = None
    unsupported: tuple[Unsupported, ...] = ()
    has_checked_values: bool = False

    @property
    def archetype(self) -> str | None:
        return self.row.archetype

    @property
    def label(self) -> Label:
        return self.row.label

    @property
    def input_matches(self) -> bool | None:
        """Whether the output was made from the case's own narrative; None: not known, or there is no output."""
        return self.row.input_matches

    @property
    def generation(self) -> Generation | None:
        """Whether a model wrote its output; None where there is no output."""
        if not self.answered:
            return None
        return "failed" if self.row.failed else "answered"

    @property
    def has_reasons(self) -> bool:
        """Whether its misses say anything: not without an answer of a model, nor with one of another patient."""
        return self.generation == "answered" and self.input_matches is not False

    @property
    def has_unchecked_values(self) -> bool:
        """Whether a model wrote values that could not be compared with any narrative."""
        return self.generation == "answered" and not self.has_checked_values

    @property
    def remarked(self) -> tuple[Remarked, ...]:
        """What is said of its output beside the scores."""
        return (*self.doubtful, *self.near, *self.unsupported)

    @property
    def outcomes(self) -> tuple[tuple[Criterion, Outcome, tuple[str, ...]], ...]:
        """The terms that were found, missing, or used though forbidden."""
        details = self.row.details
        return (
            ("CR", "found", details.cr_found),
            ("CR", "missing", details.cr_missing),
            ("AH", "used", details.ah_violations),
            ("AC", "found", details.ac_found),
            ("AC", "missing", details.ac_missing),
        )

    @property
    def judged(self) -> tuple["Judged", ...]:
        """The criteria in the order CR, AH, AC, each with the thresholds that judge it."""
        return tuple(
            Judged(criterion, getattr(self.row.scores, criterion), getattr(self.rules.thresholds, criterion))
            for criterion in CRITERIA
        )


def avoided_terms(forbidden: Iterable[str], used: Collection[str]) -> tuple[str, ...]:
    """Give the forbidden terms that no question has, in their order."""
    return tuple(term for term in forbidden if term not in used)


def lenient_report(cases: Iterable[CaseLine]) -> dict[str, Any]:
    """Give what a report says of lenient recall and coverage; nothing without a case that has them."""
    judged = [case.lenient for case in cases if case.lenient is not None]
    if not judged:
        return {}
    terms = {criterion: by_term([getattr(each, criterion) for each in judged]) for criterion in RECALLED}
    return {**MarksTotal.of(each.marks for each in judged).means, "lenient_terms": terms}


def unsupported_report(cases: Sequence[CaseLine]) -> dict[str, int]:
    """Count the unsupported values of all cases by kind, and the outputs that could be checked for them, or not."""
    values = [value for case in cases for value in case.unsupported]
    return {
        **{kind: sum(value.kind == kind for value in values) for kind in UNSUPPORTED_KINDS},
        "checked": sum(case.generation == "answered" and case.has_checked_values for case in cases),
        "unchecked": sum(case.has_unchecked_values for case in cases),
    }


@dataclass(frozen=True, slots=True)
class Judged:
    """The score of one criterion, and the thresholds that judge it."""

    criterion: Criterion
    score: float
    threshold: Threshold

    @property
    def label(self) -> Label:
        """What the case would be labelled if this criterion alone counted; the worst of the three labels the case."""
        if self.score < self.threshold.review:
            return "Fail"
        return "Review" if self.score < self.threshold.pass_ else "Pass"

    @property
    def missed(self) -> str | None:
        """The bound that was missed, as "review 0.5" for a failure, else "pass 0.8"; None where there is none."""
        if self.label == "Pass":
            return None
        return f"review {self.threshold.review}" if self.label == "Fail" else f"pass {self.threshold.pass_}"


OpinionAbout = tuple[str, str | None, str, int]
"""What an opinion is about: its kind, the criterion, the term or value, and where a value begins (-1 for a term)."""


class ShownOpinion(NamedTuple):
    """An opinion of a model, as pages say it, and as JSON has it (contract.md, "Opinions")."""

    words: str
    document: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one case scored as it did; `output` is what was scored, to be shown only where ScoredRun.shows_text.

    `narrative` is what the prompt was told, None where the test case does not say; `decisions` are what people decided
    about the case while its narrative was the same, and `opinions` those of a model, where they are asked for.
    """

    diagnosis: Diagnosis
    output: Output
    narrative: str | None = None
    decisions: CaseDecisions = NO_DECISIONS
    opinions: Mapping[OpinionAbout, ShownOpinion] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A whole run: `report` is the JSON report (contract.md, "Report"), `cases` are in the order of its `results`.

    `decision` is the gate's line where one was asked for, else None; `explanations` are by test_id, None where nobody
    asked for them. Text of outputs stands in no page unless `shows_text` (contract.md, "Confidentiality"). `decisions`
    are what people decided, by test_id, for the pages that show it.
    """

    report: Mapping[str, Any]
    cases: Sequence[CaseLine]
    decision: str | None = None
    explanations: Mapping[str, Explanation] | None = None
    shows_text: bool = False
    decisions: Mapping[str, CaseDecisions] = field(default_factory=dict)

    @property
    def verdict(self) -> Label:
        """The worst label of any case, which is what the exit code says (contract.md, "Exit codes")."""
        present = {case.label for case in self.cases}
        return next(label for label in reversed(LABELS) if label in present)

    def explanation_of(self, case: CaseLine) -> Explanation | None:
        """Give the explanation of a case, None where nobody asked for any."""
        return None if self.explanations is None else self.explanations.get(case.test_id)

    @property
    def has_batches(self) -> bool:
        """Whether the cases are of more than one batch."""
        return len({case.batch_id for case in self.cases}) > 1

    def labelled(self, label: Label) -> list[CaseLine]:
        """The cases with this label, in the order of the report."""
        return [case for case in self.cases if case.label == label]

    def worst_first(self) -> list[CaseLine]:
        """The cases that fail, then those to review, then the passing ones; each lot in the order of the report."""
        return [case for label in reversed(LABELS) for case in self.labelled(label)]
