"""From files of outputs to a scored run: find the case of each, score, fold, report (contract.md, "Files").

Entries are read, scored and let go one by one: what is kept is a row for each test case.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from consumer import __version__
from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError
from consumer.files.outputs import FAILED, Entry, OnDuplicate, OutputFile, passed_over_line
from consumer.files.unread_keys import UnreadKeys
from consumer.offline.decisions import CaseDecisions, Decisions
from consumer.offline.explanations import NO_EXPECTATIONS, explained
from consumer.offline.many_diagnoses import Question
from consumer.offline.narratives import Narratives
from consumer.offline.newest_events import DatedEvent, NewestEvents
from consumer.offline.scored_run import CaseLine, ScoredRun, avoided_terms, lenient_report, unsupported_report
from consumer.offline.selection import Answers, SelectedCase, Selection
from consumer.offline.unanswering import Unanswering, without_output
from consumer.terminal import NO_BAR, Bar
from consumer.text import count_of, named, printable, visible
from consumer.wire.input_event import InputEvent
from consumer.wire.times import milliseconds_of, rfc_3339
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
    OutputField,
    Policy,
    PreparedExpectations,
    Rules,
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
from safe_core.diagnosis import DoubtfulHit, doubtful_document
from safe_core.lenient import beside_scores
from safe_core.lenient_scores import Lenient
from safe_core.narrative_digests import digest_of_narrative
from safe_core.near_violations import NearViolation, near_document, near_violations
from safe_core.unsupported import Unsupported, can_be_checked, unsupported_document, unsupported_values

Explain = Literal["without text", "with text"]
"""Whether explanations may quote what outputs say."""

_LISTED: Final = 50
_LONGEST_REMARK: Final = MAX_ID_LENGTH + 210


class Origin(NamedTuple):
    """Where the answer that stands for a case came from: the batch whose case it answers, and its file's place.

    `standing` orders entries of reports: made from the case's own narrative (0), not known (1), from another one (2).
    Wherever it comes from, a failed generation (FAILED) comes last.
    """

    standing: int
    rank: int
    file: int
    is_event: bool


class _Read(NamedTuple):
    """What the texts of an answer say beside its scores; nothing where they are read later."""

    doubtful: tuple[DoubtfulHit, ...] = ()
    unsupported: tuple[Unsupported, ...] = ()
    has_checked_values: bool = False
    lenient: Lenient | None = None


class _Answer(NamedTuple):
    """The answer that stands for a case, and what it is explained by; its output is kept only where it will be."""

    origin: Origin
    rules: Rules
    read: _Read
    narrative: str | None
    error: str | None
    output: Output | None
    not_asked_for: frozenset[OutputField]
    near: tuple[NearViolation, ...]


class Scoring:
    """The rolling state of one run; add_file() for each file in order, then finish().

    Outputs are kept if `keep`; if not `reads`, doubtful hits, unsupported values and lenient recall are left out, which
    take most of the time.
    """

    def __init__(
        self,
        selection: Selection,
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
        self._answers = Answers(selection)
        # Of selections over the same files, the first alone tells what answers none of them.
        self._others = [Answers(each) for each in selection.others] if selection.is_first else []
        self._told = Narratives(selection, self._answers)
        self._concern = _concern_in_force(selection, policy)
        self._fold = LatestResults()
        self._standing: dict[str, _Answer] = {}
        self._files: list[OutputFile] = []
        # what remarks() tells
        self._judged_by: set[JudgedBy] = set()
        self._twice: dict[str, set[int]] = {}
        self._passed_over: dict[str, None] = {}
        self._unanswering = Unanswering()
        self._newest = NewestEvents()
        self._keys = UnreadKeys()
        self._outputs = self._outdated = self._set_aside = self._set_aside_unselected = 0

    # --- reading ------------------------------------------------------------------------------------------------------

    def add_file(self, file: OutputFile, bar: Bar) -> None:
        """Score a file's entries, telling the bar of each; raises ConfigurationError for one that cannot be used."""
        self._files.append(file)
        if file.kind == "events":
            self._add_events(file, bar)
        else:
            self._add_report(file, bar)

    def _entries(self, file: OutputFile, bar: Bar) -> Iterator[tuple[int, Entry, tuple[int, ...]]]:
        """Each entry that answers a case, with its number and the ranks of the case's batches that it answers."""
        for number, entry in enumerate(file.entries()):
            self._outputs += 1
            self._keys.note(entry)
            bar(1)
            ranks = self._answers.ranks(entry)
            if ranks:
                yield number, entry, ranks
            else:
                self._note_unanswering(entry)

    def _note_unanswering(self, entry: Entry) -> None:
        is_asked = self._selection.only is None and self._selection.is_first
        if is_asked and not any(other.ranks(entry) for other in self._others):
            whys = [answers.why_none(entry) for answers in (self._answers, *self._others)]
            self._unanswering.note(entry, "other_concern" if "other_concern" in whys else whys[0])

    def _add_events(self, file: OutputFile, bar: Bar) -> None:
        """Of events for one test case the latest counts (contract.md, "Latest result"); ties go by line."""
        place = len(self._files) - 1
        for number, entry, ranks in self._entries(file, bar):
            event_time = _event_time(file, entry)
            if entry.generated_at is not None:
                self._newest.note(DatedEvent(event_time, entry.test_id, file.path, entry.place))
            version = (event_time, place, number)
            standing = FAILED if entry.standing((), self._policy.engine_texts) == FAILED else 0
            self._offer(entry, Origin(standing, min(ranks), place, is_event=True), version)

    def _add_report(self, file: OutputFile, bar: Bar) -> None:
        """In a report, two entries may not answer the same case, unless it is said which of them counts."""
        place = len(self._files) - 1
        offered: set[int] = set()
        for standing, by_rank in self._candidates(file, bar):
            for rank, (number, entry) in by_rank.items():
                if number not in offered:  # an entry that answers a case in several batches answers it in the first
                    offered.add(number)
                    self._offer(entry, Origin(standing, rank, place, is_event=False), (0, place, number))

    def _candidates(self, file: OutputFile, bar: Bar) -> Iterable[tuple[int, dict[int, tuple[int, Entry]]]]:
        """Give the entries that answer each case, by the rank of the batch, and their standing, which is the best.

        An entry that was made from the case's own narrative goes before others (contract.md, "The right patient").
        """
        found: dict[str, tuple[int, dict[int, tuple[int, Entry]]]] = {}
        for number, entry, ranks in self._entries(file, bar):
            standing = entry.standing(self._answers.narratives(entry, min(ranks)), self._policy.engine_texts)
            best, by_rank = found.get(entry.test_id, (standing, {}))
            if standing > best:
                if standing != FAILED:
                    self._pass_over(entry)
                continue
            if standing < best:
                for _, worse in by_rank.values() if best != FAILED else ():
                    self._pass_over(worse)
                by_rank = {}
            found[entry.test_id] = standing, by_rank
            for rank in ranks:
                if rank in by_rank and standing != FAILED:
                    self._twice.setdefault(entry.test_id, set()).add(standing)
                if rank not in by_rank or standing == FAILED or self._on_duplicate == "last":
                    by_rank[rank] = number, entry
        return found.values()

    def _pass_over(self, entry: Entry) -> None:
        self._passed_over[f"{entry.test_id} ({entry.place})"] = None

    # --- scoring ------------------------------------------------------------------------------------------------------

    def _offer(self, entry: Entry, origin: Origin, version: tuple[int, int, int]) -> None:
        """Score an answer, unless another one stands for its case before it."""
        answer = self._standing.get(entry.test_id)
        standing = None if answer is None else answer.origin
        is_stream = standing is not None and standing.rank == origin.rank and standing.is_event and origin.is_event
        if standing is not None and is_stream and origin.standing == standing.standing:
            self._outdated += 1  # whichever of the two it is
        if standing is not None and standing != origin:
            if not self._replaces(entry, origin, standing):
                return
            if not is_stream:
                self._fold.remove(entry.test_id)  # else the fold itself knows which is the later event
        narratives = self._answers.narratives(entry, origin.rank)
        row, rules = self._row(self._selection.cases[entry.test_id], entry, version, narratives)
        if self._fold.offer(entry.test_id, row):
            told = self._told.of_output(entry, origin.rank)
            read = self._read(entry, row, told) if self._reads else _Read()
            output = entry.output if self._keep else None
            fields = kind_of(entry.output, self._policy.engine_texts).not_asked_for
            near = near_in(self._selection.cases[entry.test_id].prepared, row, entry.output)
            self._standing[entry.test_id] = _Answer(origin, rules, read, told, entry.error, output, fields, near)

    def _read(self, entry: Entry, row: CaseRow, told: str | None) -> _Read:
        said, own = judged_texts(row, entry.output, told)
        accepted = self._selection.cases[entry.test_id].test_case.accepted_wordings
        beside = beside_scores(said, own, row.details, accepted)
        return _Read(beside.doubtful, unsupported_values(said, own), can_be_checked(own), beside.lenient)

    def _replaces(self, entry: Entry, origin: Origin, standing: Origin) -> bool:
        """Tell whether an answer may take another's place.

        Of two reports, the one made from the case's own narrative goes first. A case in several batches is answered in
        the first that has any answer. Within it, events of several files are one stream; any other two files are two
        answers. A failed generation gives way to everything, and nothing need be said of that.
        """
        if FAILED in (origin.standing, standing.standing):
            return standing.standing == FAILED
        if not (origin.is_event or standing.is_event) and origin.standing != standing.standing:
            other = f"an answer of {printable(self._files[standing.file].path.name)}"
            worse = entry.place if origin.standing > standing.standing else other
            self._passed_over[f"{entry.test_id} ({worse})"] = None
            return origin.standing < standing.standing
        if origin.rank != standing.rank:
            is_selected = max(origin.rank, standing.rank) < len(self._selection.cases[entry.test_id].batches)
            self._set_aside += is_selected
            self._set_aside_unselected += not is_selected
            return origin.rank < standing.rank
        if origin.is_event and standing.is_event:
            return True
        self._twice.setdefault(entry.test_id, set()).update((origin.standing, standing.standing))
        return self._on_duplicate == "last"

    def _row(
        self,
        selected: SelectedCase,
        entry: Entry | None,
        version: tuple[int, int, int] = (0, 0, 0),
        narratives: Collection[str] = (),
    ) -> tuple[CaseRow, Rules]:
        """Score what an entry answers; a test case without any scores as an empty output."""
        by = judged_by(selected.test_case, entry, concern_id=self._concern)
        self._judged_by.add(by)
        return judged_row(self._policy, by, selected.prepared, entry, version, narratives)

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
        test_case, answer = self._selection.cases[case.test_id].test_case, self._standing.get(case.test_id)
        return Question(
            NO_EXPECTATIONS if case.row.failed else test_case.expectations,
            (answer and answer.output) or EMPTY_OUTPUT,
            self._narrative(case.test_id),
            case.not_asked_for,
            test_case.accepted_wordings,
        )

    def _narrative(self, test_id: str) -> str | None:
        answer = self._standing.get(test_id)
        return self._told.of_case(test_id) if answer is None else answer.narrative

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
        yield from self._unanswering.remarks()
        if self._selection.is_first:
            yield from self._keys.remarks()
        called = self._selection.called
        for remark in self._remarks_on_cases():
            yield f"{called}: {remark}" if called else remark

    def _remarks_on_cases(self) -> Iterator[str]:
        yield from self._remarks_on_narratives()
        if twice := self._answered_twice():
            listed = named(twice, _LISTED, MAX_ID_LENGTH)
            count = count_of(len(twice), "test_id")
            yield f"{count} answered more than once, and only the {self._on_duplicate} answer counts: {listed}"
        if self._outdated:
            yield f"{count_of(self._outdated, 'event')} ignored: a later event has the same test_id"
        if (remark := self._newest.remark()) is not None:
            yield remark
        if self._set_aside:
            ignored = f"{count_of(self._set_aside, 'output')} ignored"
            yield f"{ignored}: an output for an earlier batch (by file name) already answers the case"
        if self._set_aside_unselected:
            ignored = f"{count_of(self._set_aside_unselected, 'output')} ignored"
            yield f"{ignored}: the batch is not selected, and another output already answers the case"
        yield from self._remarks_on_runs()
        yield from self._remarks_on_generations()
        if self._selection.only is None:
            yield from self._remarks_on_selection()

    def _remarks_on_generations(self) -> Iterator[str]:
        """Name the cases that no model answered; what a report says of it beside the outputs is quoted."""
        if failed := self._failed():
            have, each = ("1 test case has", "it") if len(failed) == 1 else (f"{len(failed)} test cases have", "each")
            told = ((test_id, self._standing[test_id].error) for test_id in failed)
            listed = named(
                [f"{test_id} ({why})" if why else test_id for test_id, why in told], _LISTED, _LONGEST_REMARK
            )
            yield f"{have} no answer, because the generation failed; {each} is scored as an empty output: {listed}"

    def _failed(self) -> list[str]:
        return [test_id for test_id in self._standing if self._fold.row(test_id).failed]

    def _remarks_on_selection(self) -> Iterator[str]:
        """Say what is of interest only where all test cases of some batches are looked at."""
        if not self._selection.others:  # each of which may be judged by other overrides
            yield from self._remarks_on_overrides()
        if not self._standing:
            yield "no output answers any selected test case: is --outputs the right file?"
        elif missing := len(self._selection.cases) - len(self._standing):
            yield without_output(missing, len(self._selection.cases))

    def _answered_twice(self) -> list[str]:
        """The cases that two answers of the same standing answer, none of a better one."""
        return [
            test_id
            for test_id, standings in self._twice.items()
            if self._standing[test_id].origin.standing in standings
        ]

    def _remarks_on_narratives(self) -> Iterator[str]:
        if self._passed_over:
            yield passed_over_line(self._passed_over)
        others = [test_id for test_id in self._standing if self._fold.row(test_id).input_matches is False]
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
        runs = Counter(self._fold.row(test_id).run_id or "" for test_id in self._standing)
        if len(runs) > 1:
            cases = [f"{run or 'no run_id'} ({count_of(cases, 'case')})" for run, cases in sorted(runs.items())]
            yield f"the outputs come from {len(runs)} runs: {named(cases, longest=MAX_ID_LENGTH + 20)}"

    # --- the report ---------------------------------------------------------------------------------------------------

    def finish(self, generated_at: str, *, allow_empty: bool) -> ScoredRun:
        """Score the cases without an output, and report.

        Raises ConfigurationError where a case is answered twice, or none at all is though that is not allowed.
        """
        self._refuse_twice()
        if not self._outputs:
            names = named([str(file.path) for file in self._files], longest=MAX_ID_LENGTH)
            raise ConfigurationError(f"{names}: no outputs, so there is nothing to score")
        self._keys.refuse()
        if not (self._standing or allow_empty):
            raise ConfigurationError(self._unanswering.refusal(self._selection.concern_id))
        cases = [self._line(test_id, selected) for test_id, selected in self._selection.cases.items()]
        missing = [case.test_id for case in cases if not case.answered]
        report = build_report(
            self._fold,
            concern_id=self._selection.concern_id,
            batch_id=self._selection.batch_id,
            generated_at=generated_at,
            scorer_version=__version__,
            fingerprint=self._policy.fingerprint,
            configuration=self._policy.configuration(),
            expected_cases=len(cases),
            complete=True,
            missing_outputs=len(missing),
            inputs=[*self._inputs()],
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

    def _line(self, test_id: str, selected: SelectedCase) -> CaseLine:
        answer = self._standing.get(test_id)
        forbidden = selected.test_case.expectations.forbidden_terms
        if answer is not None:
            row = self._fold.row(test_id)
            avoided = avoided_terms(forbidden, row.details.ah_violations)
            return CaseLine(
                selected.batch_id, test_id, row, answer.rules, answered=True, doubtful=answer.read.doubtful,
                not_asked_for=answer.not_asked_for, near=answer.near, avoided=avoided, lenient=answer.read.lenient,
                unsupported=answer.read.unsupported, has_checked_values=answer.read.has_checked_values,
            )  # fmt: skip
        row, rules = self._row(selected, None)
        self._fold.offer(test_id, row)
        lenient = beside_scores(EMPTY_OUTPUT, None, row.details).lenient if self._reads else None
        avoided = avoided_terms(forbidden, ())
        return CaseLine(selected.batch_id, test_id, row, rules, answered=False, avoided=avoided, lenient=lenient)

    def _refuse_twice(self) -> None:
        twice = self._answered_twice()
        if twice and self._on_duplicate is None:
            count = count_of(len(twice), "test_id")
            listed = named(twice, _LISTED, MAX_ID_LENGTH)
            raise ConfigurationError(
                f"more than one output for {count}: {listed}; choose with --on-duplicate first or last"
            )

    def _inputs(self) -> Iterator[dict[str, str]]:
        """The files that decided; by name alone, since folders differ from machine to machine.

        Batch files come first: the selected ones, then others that say which case an entry answers.
        """
        for batch in (*self._selection.batches, *self._answers.decisive):
            yield {"name": batch.path.name, "sha256": batch.sha256}
        for file in self._files:
            yield {"name": printable(file.path.name), "sha256": file.sha256}


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


def near_in(expected: PreparedExpectations, row: CaseRow, output: Output) -> tuple[NearViolation, ...]:
    """Give the forbidden terms that the questions of a scored output have in another form; none of a failed one."""
    if row.failed:
        return ()
    forbidden = expected.expectations.forbidden_terms
    return near_violations(forbidden, row.details.ah_violations, output.followup_questions)


def judged_texts(row: CaseRow, output: Output, narrative: str | None) -> tuple[Output, str | None]:
    """Give the texts that count beside the scores: no output of a failed generation, no other patient's narrative."""
    return EMPTY_OUTPUT if row.failed else output, None if row.input_matches is False else narrative


def judged_row(
    policy: Policy,
    by: JudgedBy,
    expected: PreparedExpectations,
    answer: Entry | InputEvent | None,
    version: tuple[int, int, int],
    narratives: Collection[str],
) -> tuple[CaseRow, Rules]:
    """Score an answer, None as an empty output, by what judges it; gives the rules in force too.

    `narratives` are the digests of the narratives that the case's holders tell.
    """
    rules = policy.rules_for(by.metric_id, by.archetype)
    failed = answer is not None and kind_of(answer.output, policy.engine_texts).generation == "failed"
    output = EMPTY_OUTPUT if answer is None else answer.output
    hits = hits_of_failure(expected) if failed else hits_in(output, expected)
    row = CaseRow.of(
        version=(not failed, *version),
        archetype=by.archetype,
        run_id=None if answer is None else answer.run_id,
        fingerprint=policy.fingerprint,
        expected=True,
        case=score_of_hits(expected, hits, rules),
        input_matches=None if answer is None or failed else do_inputs_match(answer.narrative, narratives),
    )
    return row, rules


def _event_time(file: OutputFile, entry: Entry) -> int:
    if entry.generated_at is None:
        return 0
    try:
        return milliseconds_of(entry.generated_at)
    except Poison as error:
        raise ConfigurationError(f"{visible(str(file.path))}: {entry.place}: {error.detail}") from error


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
    scoring = Scoring(selection, policy, on_duplicate, decisions, keep=explain is not None)
    for file in files:
        scoring.add_file(file, bar)
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
    scoring = Scoring(selection, policy, on_duplicate, keep=True, reads=False)
    for file in files:
        scoring.add_file(file, bar)
    run = scoring.finish("", allow_empty=True)
    return run, scoring.questions(run.cases), [*selection.remarks, *scoring.remarks()]


def moment(source_date_epoch: int | None) -> str:
    """The `generated_at` of a report: SOURCE_DATE_EPOCH, where one wants equal bytes from equal inputs, else now."""
    return rfc_3339(time.time_ns() // 1_000_000 if source_date_epoch is None else source_date_epoch * 1_000)
