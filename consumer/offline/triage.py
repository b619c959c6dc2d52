"""`safe triage`: what to change first, and what each change is worth."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from consumer.files.batches import LoadedBatch, batch_names, chosen, no_batch, usable_batches
from consumer.files.outputs import OnDuplicate, OutputFile
from consumer.files.selection import Selection, selections
from consumer.files.term_edits import EditedCase, Replacement
from consumer.judging.opinions import Opinions, with_opinions
from consumer.offline.answers import ANY_ANSWER, AnswerFilter
from consumer.offline.decisions import Decisions
from consumer.offline.proposals import Proposal, ProposedCase
from consumer.offline.scored_run import RANKS, CaseLine, ScoredRun, ShownOpinion, labels_of
from consumer.offline.scoring import score_files
from consumer.terminal import NO_BAR, Bar
from consumer.text import natural_order
from safe_core import LABELS, Label, Policy, TestCase
from safe_core.diagnosis import VERDICTS, Verdict

STEPS: Final[tuple[Verdict, ...]] = ("term", "prompt", "output")
"""The steps in the order in which they are taken, each onto those before it."""


@dataclass(frozen=True, slots=True)
class TriageRequest:
    """Which outputs are triaged against which test cases, as `safe score` selects them; no concern is all of them.

    With `include_text`, pages quote outputs (contract.md, "Confidentiality"); `answers` choose among the missed terms,
    `opinions` stand beside them, read from `opinions_file`.
    """

    test_dir: Path
    batch: str
    concern: str | None = None
    on_duplicate: OnDuplicate | None = None
    include_text: bool = False
    answers: AnswerFilter = ANY_ANSWER
    opinions: Opinions | None = None
    opinions_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Priced:
    """A proposal and what it is worth: whether it raises its case's label by itself, and behind those before it."""

    case: ProposedCase
    proposal: Proposal
    gains_alone: bool
    gains_in_order: bool

    @property
    def decided(self) -> str:
        """What people decided about it, in words."""
        return self.case.decided(self.proposal)

    @property
    def opinion(self) -> ShownOpinion | None:
        """What a model thinks of the miss."""
        return self.case.opinion(self.proposal)

    def document(self, *, include_text: bool = False) -> dict[str, Any]:
        """Give its entry in the JSON."""
        proposal, line = self.proposal, self.case.line
        text = None if proposal.passage is None else self.case.words_at(proposal.passage)
        return {
            "test_id": line.test_id,
            "batch_id": line.batch_id,
            "criterion": proposal.criterion,
            "term": proposal.term,
            "verdict": proposal.verdict,
            "remedy": proposal.remedy,
            "output_says": proposal.output_says,
            "narrative_says": proposal.narrative_says,
            "change": proposal.change,
            "replacement": list(proposal.replacement),
            "not_replaced": proposal.not_replaced or None,
            "cases_gained": {"alone": int(self.gains_alone), "in_order": int(self.gains_in_order)},
            "evidence": proposal.evidence(),
            "decided": self.decided or None,
            **({} if self.opinion is None else {"opinion": self.opinion.document}),
        } | ({"text": text} if include_text else {})


@dataclass(frozen=True, slots=True)
class Step:
    """How many proposals a step has, and the labels behind it and all steps before it."""

    verdict: Verdict
    proposals: int
    labels: Mapping[Label, int]

    def document(self) -> dict[str, Any]:
        """Give its entry in the JSON."""
        return {"verdict": self.verdict, "proposals": self.proposals, **_labels_document(self.labels)}


@dataclass(frozen=True, slots=True)
class Cause:
    """One sentence for the prompt, and what it is worth onto the replaced terms: the cases whose label it raises."""

    instruction: str
    proposals: int
    cases_gained: int


@dataclass(frozen=True)
class Triage:
    """The cases of some runs, those of them that have proposals, and the proposals in their order."""

    runs: Sequence[tuple[Selection, ScoredRun]]
    cases: Sequence[ProposedCase]
    include_text: bool = False

    @property
    def lines(self) -> list[CaseLine]:
        """Every selected case."""
        return [line for _, run in self.runs for line in run.cases]

    @property
    def now(self) -> Mapping[Label, int]:
        """The labels as they are."""
        return labels_of(line.label for line in self.lines)

    @cached_property
    def proposals(self) -> list[Priced]:
        """All of them by verdict; those of cases that gain by them first, then by batch and case."""
        priced = [each for case in self.cases for each in _priced(case)]
        gaining = {(id(each.case), each.proposal.verdict) for each in priced if each.gains_in_order}

        def order(each: Priced) -> tuple[Any, ...]:
            verdict, line = each.proposal.verdict, each.case.line
            is_idle = (id(each.case), verdict) not in gaining
            return VERDICTS.index(verdict), is_idle, natural_order(line.batch_id), natural_order(line.test_id)

        return sorted(priced, key=order)

    @property
    def changes(self) -> Mapping[EditedCase, Sequence[Replacement]]:
        """The terms that are replaced, by test case."""
        return {
            (case.line.test_id, case.before): replacements
            for case in self.cases
            if (replacements := [case.replacement(each) for each in case.proposals if each.replacement])
        }

    def of(self, verdict: Verdict) -> list[Priced]:
        """The proposals of one verdict."""
        return [each for each in self.proposals if each.proposal.verdict == verdict]

    @cached_property
    def steps(self) -> list[Step]:
        """The labels behind each step."""
        by_line = {id(case.line): case for case in self.cases}
        steps = []
        for number, verdict in enumerate(STEPS):
            taken = STEPS[: number + 1]
            labels = [
                case.label_with([each for each in case.proposals if each.verdict in taken])
                if (case := by_line.get(id(line)))
                else line.label
                for line in self.lines
            ]
            steps.append(Step(verdict, len(self.of(verdict)), labels_of(labels)))
        return steps

    @cached_property
    def causes(self) -> list[Cause]:
        """What to ask for in the prompt, what gains most first."""
        counts: Counter[str] = Counter()
        gained: Counter[str] = Counter()
        for case in self.cases:
            mine = [each for each in case.proposals if each.verdict == "prompt"]
            base = case.label_with([], onto_terms=True)
            for instruction in dict.fromkeys(each.change for each in mine):
                shared = [each for each in mine if each.change == instruction]
                counts[instruction] += len(shared)
                gained[instruction] += RANKS[case.label_with(shared, onto_terms=True)] > RANKS[base]
        causes = [Cause(instruction, count, gained[instruction]) for instruction, count in counts.items()]
        return sorted(causes, key=lambda each: (-each.cases_gained, -each.proposals, each.instruction))

    def document(self) -> dict[str, Any]:
        """Give what `--format json` prints."""
        return {
            "cases": len(self.lines),
            "now": _labels_document(self.now),
            "steps": [each.document() for each in self.steps],
            "causes": [asdict(each) for each in self.causes],
            "proposals": [each.document(include_text=self.include_text) for each in self.proposals],
        }


def triage(
    policy: Policy,
    request: TriageRequest,
    files: Sequence[OutputFile],
    bar: Bar = NO_BAR,
) -> tuple[Triage, list[str]]:
    """Score and explain the outputs, and price every proposal; gives remarks for the person who asked, too.

    Raises ConfigurationError.
    """
    names = batch_names(request.test_dir)
    if not chosen(request.batch, names):
        raise no_batch(request.test_dir, request.batch, names)
    runs: list[tuple[Selection, ScoredRun]] = []
    remarks: list[str] = []
    decisions = Decisions.to_show(request.test_dir)
    for selection in selections(request.test_dir, request.batch, request.concern):
        run, more = score_files(
            selection, files, policy, generated_at="", on_duplicate=request.on_duplicate, explain="with text",
            decisions=decisions, bar=bar,
        )  # fmt: skip
        runs.append((selection, request.answers.narrowed(with_opinions(run, request.opinions))))
        remarks.extend(more)
    told = Told(usable_batches(request.test_dir, names))
    narratives = [each.narrative or "" for _, run in runs for each in (run.explanations or {}).values()]
    bar.begins("proposing", len(narratives), sum(map(len, narratives)))
    cases = [case for selection, run in runs for case in _proposed(selection, run, told, bar)]
    return Triage(runs, cases, request.include_text), remarks


class Told:
    """The narratives of the test cases of some batches, read when they are first asked for."""

    def __init__(self, batches: Iterable[LoadedBatch]) -> None:
        self._batches = batches

    def of(self, case: EditedCase) -> set[str]:
        """Give what the batches tell that hold a test case with these expectations."""
        return self._by_case.get(case, set())

    @cached_property
    def _by_case(self) -> Mapping[EditedCase, set[str]]:
        told: dict[EditedCase, set[str]] = {}
        for batch in self._batches:
            for test_id, narratives in batch.narratives.items():
                row = batch.rows.get(test_id)
                if isinstance(row, TestCase):
                    told.setdefault((test_id, row.expectations), set()).add(narratives[0])
        return told


def _proposed(selection: Selection, run: ScoredRun, told: Told, bar: Bar) -> Iterator[ProposedCase]:
    """Give the cases with proposals: none without an output, and none that was made from another narrative."""
    for line in run.cases:
        explanation = run.explanation_of(line)
        bar(explanation is not None)
        if explanation is not None and line.has_reasons:
            expectations = selection.cases[line.test_id].test_case.expectations
            case = ProposedCase(line, explanation, expectations, partial(told.of, (line.test_id, expectations)))
            if case.proposals:
                yield case


def _priced(case: ProposedCase) -> Iterator[Priced]:
    """Price the proposals of a case: each alone, and in their order."""
    before: list[Proposal] = []
    for proposal in case.proposals:
        if proposal.verdict not in STEPS:
            yield Priced(case, proposal, gains_alone=False, gains_in_order=False)
            continue
        alone = RANKS[case.label_with([proposal])] > RANKS[case.line.label]
        in_order = RANKS[case.label_with([*before, proposal])] > RANKS[case.label_with(before)]
        before.append(proposal)
        yield Priced(case, proposal, alone, in_order)


def _labels_document(labels: Mapping[Label, int]) -> dict[str, int]:
    return {label.lower(): labels[label] for label in LABELS}
