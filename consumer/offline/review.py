"""What `safe review` shows and changes: cases with their proposals, decisions about them, and batch files."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace as replace_fields

from consumer.errors import ConfigurationError
from consumer.files.batches import LoadedBatch, load_batches
from consumer.files.outputs import OutputFile
from consumer.files.selection import selections
from consumer.files.term_edits import EditedCase, edited
from consumer.offline.decisions import (
    CaseChoice,
    CaseDecision,
    Choice,
    Decisions,
    TermDecision,
    TermKey,
    decide_case,
    decide_term,
    note_applied,
    remove_unfinished,
    withdraw_case,
    withdraw_term,
)
from consumer.offline.review_cases import Item, ReviewedCase, ScoredCase
from consumer.offline.scored_run import RANKS, ShownOpinion, labels_of
from consumer.offline.scoring import scored_unread
from consumer.offline.triage import Told, TriageRequest
from consumer.offline.trust import Trust, trust
from consumer.offline.whole_files import write_whole
from consumer.terminal import Bar, message_console, progress_bar
from consumer.text import named, natural_order
from safe_core import LABELS, Criterion, Expectations, InvalidExpectations, Label, Policy, TestCase

_Found = TypeVar("_Found")


class RefusedError(Exception):
    """A decision that cannot be taken as it was sent, or batch files that cannot be changed; the message says why."""


class ChangedError(Exception):
    """A batch file has changed since it was read, or what is to be applied since it was shown."""


class Agreement(NamedTuple):
    """How many cases of a label a person found safe, and how many unsafe."""

    label: Label
    safe: int
    unsafe: int


class Change(NamedTuple):
    """What is put in the place of a term of a test case, or, as a further wording, beside it."""

    test_id: str
    criterion: Criterion
    term: str
    written: tuple[str, ...]
    is_wording: bool


class _Applied(NamedTuple):
    """What was written last: the files with their bytes before and after, and the decisions that were applied."""

    files: Sequence[tuple[LoadedBatch, bytes, bytes]]
    decisions: Sequence[TermKey]
    at: str


class Review:
    """The cases of some outputs, and the folder of test cases in which decisions are kept. reload() reads all again.

    Cases are scored at once and explained later: next() gives one that is to be explained, the worst first. Raises
    ConfigurationError, also where there is no case to review.
    """

    def __init__(self, policy: Policy, request: TriageRequest, outputs: Sequence[OutputFile]) -> None:
        self._policy, self._request, self._outputs = policy, request, outputs
        self.folder = request.test_dir
        self.remarks: Sequence[str] = ()
        self.cases: Sequence[ReviewedCase] = ()
        self._applied: list[_Applied] = []
        self.reload()
        remove_unfinished(self.folder)
        if not self.cases:
            raise ConfigurationError("there is no test case to review")

    def reload(self) -> None:
        """Read test cases, outputs and decisions again, and keep what still explains; raises ConfigurationError."""
        self.refresh()
        self._read = load_batches(self.folder).all
        before = {_order(case): case for case in self.cases}
        with progress_bar(message_console(), "reading", None) as bar:
            cases = [ReviewedCase(each, lambda: self._decisions, self._request.opinions) for each in self._scored(bar)]
        self.cases = sorted(cases, key=_order)
        for case in self.cases:
            case.note_as(before.get(_order(case)))
        self.wait_again()

    def wait_again(self) -> None:
        """Let every case wait that is not explained: next() has given some that nobody explained."""
        self._waiting = deque(sorted(self.cases, key=lambda case: RANKS[case.line.label]))

    def refresh(self) -> None:
        """Read the decisions again, which another page or program may have added to."""
        self._decisions = Decisions.read(self.folder)

    def _scored(self, bar: Bar) -> Iterator[ScoredCase]:
        request, remarks, told = self._request, list[str](), Told(self._read)
        for selection in selections(self.folder, request.batch, request.concern):
            run, questions, more = scored_unread(selection, self._outputs, self._policy, request.on_duplicate, bar)
            remarks += more
            for line in run.cases:
                expectations = selection.cases[line.test_id].test_case.expectations
                narratives = frozenset(told.of((line.test_id, expectations)))
                yield ScoredCase(line, questions[line.test_id], expectations, narratives)
        self.remarks = remarks

    def next(self) -> ReviewedCase | None:
        """Give a case that is to be explained, each once; None if there is none left."""
        while self._waiting:
            if not (case := self._waiting.popleft()).is_explained:
                return case
        return None

    @property
    def explained(self) -> int:
        """How many cases are explained."""
        return sum(case.is_explained for case in self.cases)

    @property
    def labels(self) -> Mapping[Label, int]:
        """How many cases have each label."""
        return labels_of(case.line.label for case in self.cases)

    @property
    def agreement(self) -> list[Agreement]:
        """What people said of the cases of each label."""
        said = Counter((case.line.label, case.decision.verdict) for case in self.cases if case.decision)
        return [Agreement(label, said[label, "safe"], said[label, "unsafe"]) for label in LABELS]

    @property
    def agreeing(self) -> tuple[int, int]:
        """How many of the verdicts agree with the labels (Pass is safe, Fail is unsafe), and of how many."""
        rows = {row.label: row for row in self.agreement}
        agree = rows["Pass"].safe + rows["Fail"].unsafe
        return agree, agree + rows["Pass"].unsafe + rows["Fail"].safe

    @property
    def trust(self) -> Trust:
        """How often people decided as SAFE had said."""
        cases = [
            ((case.test_id, case.narrative), {key: miss.verdict for key, miss in case.misses.items()})
            if case.is_explained
            else ((case.test_id, case.narrative), {})
            for case in self.cases
        ]
        return trust(self._decisions.terms.values(), cases)

    @property
    def differing(self) -> list[tuple[int, ReviewedCase, Item, ShownOpinion]]:
        """The decided terms on which a calibrated model differs, each with the number of its case."""
        return [(number, case, *each) for number, case in enumerate(self.cases) for each in case.differing]

    # --- decisions ----------------------------------------------------------------------------------------------------

    def decide(
        self,
        number: int,
        item: int,
        choice: Choice,
        *,
        by: str,
        at: str,
        seen: str,
        comment: str = "",
        replacement: Sequence[str] = (),
    ) -> None:
        """Note a decision on an item of a case, or a comment on it, which leaves what was decided as it is.

        Raises RefusedError, OutdatedError and ConfigurationError.
        """
        case = self.cases[number]
        about = case.items[item]
        if choice not in about.choices:
            raise RefusedError(_WHY_NOT[choice])
        known = about.decision
        if choice == "commented" and known is not None and known.decides:
            other = by if by != known.by else ""
            decide_term(self.folder, replace_fields(known, comment=comment, commented_by=other, at=at), seen)
            self.refresh()
            return
        if choice == "commented" and not comment:
            self.withdraw(number, item, seen=seen)
            return
        words = about.paraphrase if choice == "paraphrase" else ""
        terms = tuple(about.proposal.replacement) if choice == "accepted" and about.proposal else ()
        if choice == "edited":
            terms = _edited(replacement)
        decision = TermDecision(
            case.test_id, about.criterion, about.term, case.narrative, choice, by, at, comment, terms, words,
            verdict=None if about.miss is None else about.miss.verdict,
        )  # fmt: skip
        decide_term(self.folder, decision, seen)
        self.refresh()

    def withdraw(self, number: int, item: int, *, seen: str) -> None:
        """Take back a decision on an item of a case; raises OutdatedError and ConfigurationError."""
        case = self.cases[number]
        about = case.items[item]
        withdraw_term(self.folder, (case.test_id, case.narrative, about.criterion, about.term), seen)
        self.refresh()

    def decide_case(self, number: int, verdict: CaseChoice, *, by: str, at: str, seen: str, comment: str = "") -> None:
        """Note the verdict on a case; raises OutdatedError and ConfigurationError."""
        case = self.cases[number]
        decide_case(self.folder, CaseDecision(case.test_id, case.narrative, verdict, by, at, comment), seen)
        self.refresh()

    def withdraw_case(self, number: int, *, seen: str) -> None:
        """Take back the verdict on a case; raises OutdatedError and ConfigurationError."""
        case = self.cases[number]
        withdraw_case(self.folder, (case.test_id, case.narrative), seen)
        self.refresh()

    # --- batch files --------------------------------------------------------------------------------------------------

    def _by_case(self, ask: Callable[[ReviewedCase, TermDecision], _Found | None]) -> dict[EditedCase, list[_Found]]:
        return {
            (case.test_id, case.expectations): found
            for case in self.cases
            if (found := [each for one in case.term_decisions if (each := ask(case, one)) is not None])
        }

    @property
    def to_apply(self) -> int:
        """How many terms would be replaced, or get another wording."""
        return sum(map(len, self._by_case(_change).values()))

    @property
    def preview(self) -> Mapping[str, Sequence[Change]]:
        """What apply() would change, by the name of the file."""
        lists = self._by_case(_change)
        found = {
            batch.path.name: [
                change
                for case in batch.batch.cases
                if isinstance(case, TestCase)
                for change in lists.get((case.test_id, case.expectations), ())
            ]
            for batch in self._read
        }
        return {name: changes for name, changes in found.items() if changes}

    @property
    def seen(self) -> str:
        """What names the state of the preview, so that nothing is applied that was not shown."""
        return sha256(repr(self.preview).encode(errors="surrogatepass")).hexdigest()

    def apply(self, at: str, seen: str | None = None) -> list[str]:
        """Write the replaced terms and the accepted wordings into the batch files, and give the files' names.

        Raises ChangedError, before anything is written, if one of them has changed since it was read, or is gone, or if
        another preview was seen. Raises ConfigurationError if something cannot be written: all is as it was then.
        """
        if seen not in {None, self.seen}:
            raise ChangedError("the changes are others now: load this page again")
        changes = self._by_case(ReviewedCase.replacement)
        accepted = self._by_case(ReviewedCase.accepting)
        present = {batch.name: batch for batch in load_batches(self.folder).all}
        contents = ((batch, edited(batch, changes, accepted)) for batch in present.values())
        written = [(batch, content) for batch, content in contents if sha256(content).hexdigest() != batch.sha256]
        read = {batch.name: batch.sha256 for batch in self._read}
        changed = [batch.path.name for batch, _ in written if read.get(batch.name) != batch.sha256]
        gone = [
            batch.path.name
            for batch in self._read
            if batch.name not in present and _holds(batch, {**changes, **accepted})
        ]
        _refuse([*changed, *gone], "Start safe review again")
        applied = _Applied([(batch, batch.path.read_bytes(), content) for batch, content in written], self._keys(), at)
        self._write_or_restore(applied)
        if applied.files:
            self._applied.append(applied)
        self.reload()
        return [batch.path.name for batch, _ in written]

    def _write_or_restore(self, applied: _Applied) -> None:
        """Write the files and note the decisions; if that fails, give the files back the bytes that they had.

        Where these cannot be written either, undo() can do it later.
        """
        try:
            self._write((batch, after) for batch, _, after in applied.files)
            note_applied(self.folder, applied.decisions, applied.at)
        except BaseException as error:  # whatever ends it, Ctrl-C too, nothing stays half written
            kept = [batch.path.name for batch, before, after in applied.files if not _restored(batch, before, after)]
            if not kept:
                raise
            self._applied.append(applied)
            raise ConfigurationError(
                f"{error}. {named(kept, 20)} could not be restored: load this page again, and undo what was applied"
            ) from error

    @property
    def undoable(self) -> list[str]:
        """The names of the files that undo() would write; none if nothing was applied since the page was opened."""
        return [batch.path.name for batch, _, _ in self._applied[-1].files] if self._applied else []

    def undo(self) -> list[str]:
        """Take back what was applied last: the files are what they were, and the decisions are not yet applied.

        Raises RefusedError if there is nothing, and ChangedError, before anything is written, if a file has changed.
        """
        if not self._applied:
            raise RefusedError("nothing was applied since this page was opened")
        files, decisions, at = self._applied[-1]
        changed = [batch.path.name for batch, *known in files if _content(batch) not in known]
        _refuse(changed, "Restore them by hand")
        self._write((batch, before) for batch, before, _ in files)
        note_applied(self.folder, decisions, None, was=at)
        self._applied.pop()
        self.reload()
        return [batch.path.name for batch, _, _ in files]

    def _write(self, contents: Iterable[tuple[LoadedBatch, bytes]]) -> None:
        for batch, content in contents:
            write_whole(batch.path, content)

    def _keys(self) -> list[TermKey]:
        return [one.key for case in self.cases for one in case.term_decisions if _change(case, one)]


_WHY_NOT: Final[Mapping[Choice, str]] = {
    "accepted": "there is no proposal to accept",
    "edited": "this term cannot be edited here: it is a forbidden one, or its list has it more than once",
    "paraphrase": "SAFE does not find one passage of the output that says all of this in other words, so there is no "
    "paraphrase to accept",
}


def _order(case: ReviewedCase) -> tuple[Any, ...]:
    return natural_order(case.line.batch_id), natural_order(case.test_id)


def _holds(batch: LoadedBatch, changes: Mapping[EditedCase, object]) -> bool:
    rows = batch.rows.items()
    return any((test_id, row.expectations) in changes for test_id, row in rows if isinstance(row, TestCase))


def _edited(replacement: Sequence[str]) -> tuple[str, ...]:
    terms = tuple(text.strip() for text in replacement if text.strip())
    if not terms:
        raise RefusedError("write at least one term: a list of required terms must not become empty")
    try:
        Expectations(must_find_signals=terms)
    except InvalidExpectations as error:
        raise RefusedError(f"the terms cannot be used: {error}") from error
    return terms


def _change(case: ReviewedCase, decision: TermDecision) -> Change | None:
    """Give what a decision changes in the batch files; None if nothing."""
    replaces, wording = case.replacement(decision), case.accepting(decision)
    if replaces is None and wording is None:
        return None
    written = tuple(replaces[2]) if replaces else (decision.words,)
    return Change(case.test_id, decision.criterion, decision.term, written, is_wording=wording is not None)


def _content(batch: LoadedBatch) -> bytes | None:
    return batch.path.read_bytes() if batch.path.is_file() else None


def _restored(batch: LoadedBatch, before: bytes, after: bytes) -> bool:
    """Give a file its bytes back if they were replaced; tells whether it has them, or what somebody else wrote."""
    try:
        if _content(batch) == after:
            write_whole(batch.path, before)
    except (OSError, ConfigurationError):
        return False
    return True


def _refuse(files: Sequence[str], remedy: str) -> None:
    """Raise ChangedError if some files are not as they were."""
    if files:
        exists = "exists" if len(files) == 1 else "exist"
        raise ChangedError(
            f"{named(files, 20)} changed since this page was opened, or no longer {exists}: nothing was written. "
            f"{remedy}"
        )
