"""From files of outputs to a scored run: join them with the test cases, score, fold, report (contract.md, "Files").

Entries are read, scored and let go one by one: what is kept is a row for each test case.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from consumer import __version__
from consumer.files.join import Answered, Join
from consumer.files.outputs import OnDuplicate, OutputFile
from consumer.files.selection import Selection
from consumer.files.unused_outputs import without_output
from consumer.offline.decisions import CaseDecisions, Decisions
from consumer.offline.explanations import NO_EXPECTATIONS, explained
from consumer.offline.many_diagnoses import Question
from consumer.offline.scored_run import CaseLine, ScoredRun, avoided_terms, lenient_report, unsupported_report
from consumer.terminal import NO_BAR, Bar
from consumer.text import count_of, named
from consumer.wire.times import rfc_3339
from safe_core import (
    EMPTY_OUTPUT,
    LABELS,
    MAX_ID_LENGTH,
    UNKNOWN_ARCHETYPE,
    CaseRow,
    JudgedBy,
    Label,
    LatestResults,
    Output,
    Policy,
    PreparedExpectations,
    TestCase,
    build_report,
    do_inputs_match,
    hits_in,
    hits_of_failure,
    judged_by,
    kind_of,
    result_document,
    score_of_hits,
)
from safe_core.ceiling import NarratedCase
from safe_core.diagnosis import doubtful_document
from safe_core.lenient import beside_scores
from safe_core.narrative_digests import digest_of_narrative
from safe_core.near_violations import near_document, near_violations
from safe_core.unsupported import can_be_checked, unsupported_document, unsupported_values

Explain = Literal["without text", "with text"]
"""Whether explanations may quote what outputs say."""

_LISTED: Final = 50
_LONGEST_REMARK: Final = MAX_ID_LENGTH + 210


class _Told(NamedTuple):
    """What an answer is explained by; its output is kept only where it will be."""

    narrative: str | None
    error: str | None
    output: Output | None


class Scoring:
    """One run: read(), then finish().

    Outputs are kept if `keep`; if not `reads`, doubtful hits, unsupported values and lenient recall are left out, which
    take most of the time.
    """

    def __init__(
        self,
        selection: Selection,
        files: Iterable[OutputFile],
        policy: Policy,
        on_duplicate: OnDuplicate | None,
        decisions: Decisions | None = None,
        *,
        keep: bool,
        reads: bool = True,
    ) -> None:
        self._selection, self._policy, self._on_duplicate = selection, policy, on_duplicate
        self._keep, self._reads = keep, reads
        self._decisions = decisions
        self._join = Join(selection, files, policy.engine_texts, on_duplicate)
        self._concern = _concern_in_force(selection, policy)
        self._lines: dict[str, CaseLine] = {}
        self._told: dict[str, _Told] = {}
        self._judged_by: set[JudgedBy] = set()

    # --- scoring ------------------------------------------------------------------------------------------------------

    def read(self, bar: Bar) -> None:
        """Score the entries that count, telling the bar of each; raises ConfigurationError for one that is unusable."""
        for answered in self._join.answers(bar):
            entry, test_id = answered.entry, answered.entry.test_id
            self._lines[test_id] = self._line(test_id, answered)
            self._told[test_id] = _Told(answered.narrative, answered.error, entry.output if self._keep else None)

    def _line(self, test_id: str, answered: Answered | None) -> CaseLine:
        """Score what answers a case; a test case without any scores as an empty output."""
        selected = self._selection.cases[test_id]
        entry = None if answered is None else answered.entry
        by = judged_by(selected.test_case, entry, concern_id=self._concern)
        self._judged_by.add(by)
        return judged_case(
            self._policy, by, selected.test_case, selected.prepared, answered, selected.batch_id, reads=self._reads
        )

    def explained(self, run: ScoredRun, labels: Collection[Label], bar: Bar, *, include_text: bool) -> ScoredRun:
        """Explain the run that finish() has given."""
        asked = [case for case in run.cases if case.label in labels]
        narrated = [
            NarratedCase(self._selection.cases[case.test_id].prepared, self._narrative(case.test_id), case.rules)
            for case in run.cases
        ]
        return explained(run, self.questions(asked), narrated, include_text=include_text, bar=bar)

    def questions(self, cases: Iterable[CaseLine]) -> dict[str, Question]:
        """Ask why some cases scored as they did, by test_id; of a failed generation nothing is asked."""
        return {case.test_id: self._question(case) for case in cases}

    def _question(self, case: CaseLine) -> Question:
        test_case, told = self._selection.cases[case.test_id].test_case, self._told.get(case.test_id)
        return Question(
            NO_EXPECTATIONS if case.row.failed else test_case.expectations,
            (told and told.output) or EMPTY_OUTPUT,
            self._narrative(case.test_id),
            case.not_asked_for,
            test_case.accepted_wordings,
        )

    def _narrative(self, test_id: str) -> str | None:
        told = self._told.get(test_id)
        return self._join.narrative(test_id) if told is None else told.narrative

    def _decided(self) -> dict[str, CaseDecisions]:
        decisions = self._decisions
        if decisions is None or not (decisions.terms or decisions.cases):
            return {}
        return {
            test_id: decisions.of_case(test_id, digest_of_narrative(self._narrative(test_id)))
            for test_id in self._selection.cases
        }

    # --- what a person must know --------------------------------------------------------------------------------------

    def remarks(self) -> Iterator[str]:
        """What the numbers alone do not tell, once finish() has been called."""
        yield from self._join.remarks()
        called = self._selection.called
        for remark in (*self._join.remarks_on_cases(), *self._remarks_on_cases()):
            yield f"{called}: {remark}" if called else remark

    def _remarks_on_cases(self) -> Iterator[str]:
        yield from self._remarks_on_narratives()
        yield from self._remarks_on_runs()
        yield from self._remarks_on_generations()
        if self._selection.only is None:
            yield from self._remarks_on_selection()

    def _remarks_on_generations(self) -> Iterator[str]:
        """Name the cases that no model answered; what a report says of it beside the outputs is quoted."""
        if failed := [test_id for test_id, case in self._lines.items() if case.row.failed]:
            have, each = ("1 test case has", "it") if len(failed) == 1 else (f"{len(failed)} test cases have", "each")
            told = ((test_id, self._told[test_id].error) for test_id in failed)
            listed = named(
                [f"{test_id} ({why})" if why else test_id for test_id, why in told], _LISTED, _LONGEST_REMARK
            )
            yield f"{have} no answer, because the generation failed; {each} is scored as an empty output: {listed}"

    def _remarks_on_selection(self) -> Iterator[str]:
        """Say what is of interest only where all test cases of some batches are looked at."""
        if not self._selection.others:  # each of which may be judged by other overrides
            yield from self._remarks_on_overrides()
        if not self._lines:
            yield "no output answers any selected test case: is --outputs the right file?"
        elif missing := len(self._selection.cases) - len(self._lines):
            yield without_output(missing, len(self._selection.cases))

    def _remarks_on_narratives(self) -> Iterator[str]:
        others = [test_id for test_id, case in self._lines.items() if case.input_matches is False]
        if others:
            listed = named(others, _LISTED, MAX_ID_LENGTH)
            are = "1 test case is" if len(others) == 1 else f"{len(others)} test cases are"
            yield f"{are} answered only by an output that was made from another narrative (input mismatch): {listed}"

    def _remarks_on_overrides(self) -> Iterator[str]:
        """Name the overrides that judge no selected case: a name may be spelled wrongly."""
        judging = (
            ("metric_id", self._policy.metric_id, {by.metric_id for by in self._judged_by}),
            ("archetype", self._policy.archetype, {by.archetype or UNKNOWN_ARCHETYPE for by in self._judged_by}),
        )
        for kind, overrides, known in judging:
            if unused := [name for name in overrides if name not in known]:
                listed = named(unused, _LISTED, MAX_ID_LENGTH)
                yield f"overrides by {kind} that match no selected test case: {listed}"

    def _remarks_on_runs(self) -> Iterator[str]:
        runs = Counter(case.row.run_id or "" for case in self._lines.values())
        if len(runs) > 1:
            cases = [f"{run or 'no run_id'} ({count_of(cases, 'case')})" for run, cases in sorted(runs.items())]
            yield f"the outputs come from {len(runs)} runs: {named(cases, longest=MAX_ID_LENGTH + 20)}"

    # --- the report ---------------------------------------------------------------------------------------------------

    def finish(self, generated_at: str, *, allow_empty: bool) -> ScoredRun:
        """Score the cases without an output, and report.

        Raises ConfigurationError where a case is answered twice, or none at all is though that is not allowed.
        """
        self._join.refuse(allow_empty=allow_empty)
        cases = [self._lines.get(test_id) or self._line(test_id, None) for test_id in self._selection.cases]
        fold = LatestResults()
        for case in cases:
            fold.offer(case.test_id, case.row)
        missing = [case.test_id for case in cases if not case.answered]
        report = build_report(
            fold,
            concern_id=self._selection.concern_id,
            batch_id=self._selection.batch_id,
            generated_at=generated_at,
            scorer_version=__version__,
            fingerprint=self._policy.fingerprint,
            configuration=self._policy.configuration(),
            expected_cases=len(cases),
            complete=True,
            missing_outputs=len(missing),
            inputs=[*self._join.inputs()],
            results=[_result(case) for case in cases],
            lenient=lenient_report(cases),
        )
        more = {
            "doubtful_hits": sum(len(case.doubtful) for case in cases),
            "near_violations": sum(len(case.near) for case in cases),
            "unsupported": unsupported_report(cases),
            "missing_test_ids": missing,
            # what `safe verify` needs to know to make the same selection again
            "selection": {
                "concern_id": self._selection.concern_id,
                "batches": [batch.name for batch in self._selection.batches],
                "on_duplicate": self._on_duplicate,
            },
        }
        return ScoredRun(report | more, cases, decisions=self._decided())


def _concern_in_force(selection: Selection, policy: Policy) -> str:
    """Give the concern of test cases that name none, as an override spells it where no test case does.

    Upper and lower case of `--concern` must make no difference (contract.md, "Selection").
    """
    concern = selection.concern_id
    is_spelled = any(case.test_case.concern_id is not None for case in selection.cases.values())
    if is_spelled or concern in policy.metric_id:
        return concern
    return next((name for name in policy.metric_id if name.casefold() == concern.casefold()), concern)


def _result(case: CaseLine) -> dict[str, Any]:
    result = result_document(case.test_id, case.archetype, case.row)
    doubtful = [doubtful_document(hit) for hit in case.doubtful]
    about = {"input_matches": case.input_matches, "generation": case.generation}
    near = [near_document(each) for each in case.near]
    made_up = None if case.has_unchecked_values else [unsupported_document(each) for each in case.unsupported]
    listed = {"doubtful": doubtful, "near_violations": near, "unsupported": made_up}
    marks = {} if case.lenient is None else case.lenient.marks.document
    return result | {"batch_id": case.batch_id, **about, **listed, **marks}


def judged_texts(row: CaseRow, output: Output, narrative: str | None) -> tuple[Output, str | None]:
    """Give the texts that count beside the scores: no output of a failed generation, no other patient's narrative."""
    return EMPTY_OUTPUT if row.failed else output, None if row.input_matches is False else narrative


def judged_case(
    policy: Policy,
    by: JudgedBy,
    case: TestCase,
    expected: PreparedExpectations,
    answered: Answered | None,
    batch_id: str,
    *,
    reads: bool = True,
) -> CaseLine:
    """Score what answers a case, None as an empty output, by what judges it; `reads` as Scoring does."""
    rules = policy.rules_for(by.metric_id, by.archetype)
    answer = EMPTY_OUTPUT if answered is None else answered.entry.output
    kind = None if answered is None else kind_of(answer, policy.engine_texts)
    failed = kind is not None and kind.generation == "failed"
    hits = hits_of_failure(expected) if failed else hits_in(answer, expected)
    matches = None if answered is None or failed else do_inputs_match(answered.entry.narrative, answered.narratives)
    row = CaseRow.of(
        version=(not failed, *((0, 0, 0) if answered is None else answered.version)),
        archetype=by.archetype,
        run_id=None if answered is None else answered.entry.run_id,
        fingerprint=policy.fingerprint,
        expected=True,
        case=score_of_hits(expected, hits, rules),
        input_matches=matches,
    )
    said, own = judged_texts(row, answer, None if answered is None else answered.narrative)
    forbidden, used = case.expectations.forbidden_terms, row.details.ah_violations
    beside = beside_scores(said, own, row.details, case.accepted_wordings) if reads else None
    return CaseLine(
        batch_id,
        case.test_id,
        row,
        rules,
        answered=answered is not None,
        not_asked_for=frozenset() if kind is None else kind.not_asked_for,
        near=near_violations(forbidden, used, said.followup_questions),
        avoided=avoided_terms(forbidden, used),
        doubtful=() if beside is None else beside.doubtful,
        lenient=None if beside is None else beside.lenient,
        unsupported=unsupported_values(said, own) if reads else (),
        has_checked_values=reads and can_be_checked(own),
    )


def score_files(
    selection: Selection,
    files: Iterable[OutputFile],
    policy: Policy,
    *,
    generated_at: str,
    on_duplicate: OnDuplicate | None = None,
    explain: Explain | None = None,
    explained_labels: Collection[Label] = LABELS,
    allow_empty: bool = True,
    decisions: Decisions | None = None,
    bar: Bar = NO_BAR,
) -> tuple[ScoredRun, Sequence[str]]:
    """Score files against a selection; gives the run, and remarks for the person who asked for it.

    Where it is to be explained, the outputs that stand are kept in memory; `explained_labels` are those of the cases
    that are explained, and `decisions` are for the pages that show them. The bar is told of each entry that is read,
    then of each case that is explained. Raises ConfigurationError for what cannot be used, or where nothing answers any
    case and that is not allowed.
    """
    scoring = Scoring(selection, files, policy, on_duplicate, decisions, keep=explain is not None)
    scoring.read(bar)
    run = scoring.finish(generated_at, allow_empty=allow_empty)
    if explain is not None:
        run = scoring.explained(run, explained_labels, bar, include_text=explain == "with text")
    return run, [*selection.remarks, *scoring.remarks()]


def scored_unread(
    selection: Selection, files: Iterable[OutputFile], policy: Policy, on_duplicate: OnDuplicate | None, bar: Bar
) -> tuple[ScoredRun, Mapping[str, Question], Sequence[str]]:
    """Score files as score_files() does, but explain nothing and read no text beside the scores, which takes long.

    Gives the run, what to ask about each case, by test_id, and remarks. Raises ConfigurationError.
    """
    scoring = Scoring(selection, files, policy, on_duplicate, keep=True, reads=False)
    scoring.read(bar)
    run = scoring.finish("", allow_empty=True)
    return run, scoring.questions(run.cases), [*selection.remarks, *scoring.remarks()]


def moment(source_date_epoch: int | None) -> str:
    """The `generated_at` of a report: SOURCE_DATE_EPOCH, where one wants equal bytes from equal inputs, else now."""
    return rfc_3339(time.time_ns() // 1_000_000 if source_date_epoch is None else source_date_epoch * 1_000)
