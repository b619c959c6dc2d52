"""What `safe review` shows and changes: cases with their proposals, decisions about them, and batch files."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, NamedTuple, get_args

from msgspec.structs import replace as replace_fields

from consumer.errors import ConfigurationError
from consumer.files.batches import LoadedBatch, load_batches
from consumer.files.outputs import OutputFile
from consumer.files.term_edits import Accepting, EditedCase, Replacement, edited
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
from consumer.offline.pages.miss_wording import IN_WORDS, ExplainedTerm, explained_terms
from consumer.offline.pages.quotes import SideBySide, side_by_side, text_of
from consumer.offline.proposals import Proposal
from consumer.offline.scored_run import CaseLine, Explanation, labels_of
from consumer.offline.triage import Triage, TriageRequest, triage
from consumer.offline.trust import Trust, trust
from consumer.offline.whole_files import write_whole
from consumer.terminal import message_console, progress_bar
from consumer.text import named, natural_order, quoted
from safe_core import LABELS, Criterion, Expectations, InvalidExpectations, Label, Policy, TestCase
from safe_core.diagnosis import Miss, Remedy
from safe_core.matching_rule import normalise
from safe_core.narrative_digests import digest_of_narrative


class RefusedError(Exception):
    """A decision that cannot be taken as it was sent, or batch files that cannot be changed; the message says why."""


class ChangedError(Exception):
    """A batch file has changed since it was read."""


@dataclass(frozen=True, slots=True)
class Item:
    """A term of a case to decide on: a miss, a doubtful hit, or a forbidden term that was used, or nearly.

    `is_listed_twice` says that its list has it more than once.
    """

    explained: ExplainedTerm
    proposal: Proposal | None
    miss: Miss | None = None
    is_listed_twice: bool = False
    decision: TermDecision | None = None

    @property
    def criterion(self) -> Criterion:
        return self.explained.criterion

    @property
    def term(self) -> str:
        return self.explained.text

    @property
    def heading(self) -> str:
        """What it is: who must act, as the proposal says it where there is one."""
        if self.explained.how in {"used", "near"}:
            return self.explained.how
        if self.proposal is not None:
            return IN_WORDS[self.proposal.verdict]
        return "doubtful" if self.explained.verdict is None else IN_WORDS[self.explained.verdict]

    @property
    def choices(self) -> frozenset[Choice]:
        """What can be decided."""
        proposal = self.proposal
        has_proposal = proposal is not None and (bool(proposal.replacement) or proposal.remedy in _ACCEPTED_AS_THEY_ARE)
        is_hit = proposal is None and (self.explained.is_doubtful or self.explained.how == "near")
        can = {
            "accepted": has_proposal or is_hit,
            "edited": self.criterion != "AH" and not self.is_listed_twice,
            "rejected": True,
            "paraphrase": self.miss is not None and self.miss.remedy == "accept_wording",
            "commented": True,
        }
        return frozenset(choice for choice in get_args(Choice) if can[choice])


_ACCEPTED_AS_THEY_ARE: Final = frozenset[Remedy](("ask", "ask_in_field", "fix_output", "correct_case"))
"""What a person may agree with, although it puts nothing in the place of the term."""


@dataclass(frozen=True)
class ReviewedCase:
    """A case as the page shows it; what was decided about it is looked up each time."""

    line: CaseLine
    explanation: Explanation
    expectations: Expectations
    proposals: Sequence[Proposal]
    decisions: Callable[[], Decisions]

    @property
    def test_id(self) -> str:
        return self.line.test_id

    @cached_property
    def narrative(self) -> str | None:
        """The digest of its narrative."""
        return digest_of_narrative(self.explanation.narrative)

    @property
    def items(self) -> list[Item]:
        """The terms to decide on, with what was decided; none of a case without an output."""
        told = self.decisions().of_case(self.test_id, self.narrative)
        return [replace(item, decision=told.terms.get((item.criterion, item.term))) for item in self._undecided]

    @property
    def decision(self) -> CaseDecision | None:
        """The verdict on the output."""
        return self.decisions().cases.get((self.test_id, self.narrative))

    @property
    def decided(self) -> int:
        """How many of its items are decided."""
        return sum(item.decision is not None and item.decision.decides for item in self.items)

    def decision_in_words(self, item: Item) -> str:
        """Say what was decided, and which of a person's own terms the narrative lacks; "" if nothing was."""
        if item.decision is None:
            return ""
        told = normalise(self.explanation.narrative or "")
        own = item.decision.replacement if told and item.decision.choice == "edited" else ()
        foreign = [quoted(term) for term in own if normalise(term) not in told]
        warning = f"; not in the narrative: {', '.join(foreign)}" if foreign else ""
        return item.decision.in_words() + warning

    @cached_property
    def texts(self) -> SideBySide:
        """Narrative and output, with what is spoken of marked in both."""
        return side_by_side(self.explanation, self.line.remarked)

    @cached_property
    def misses(self) -> Mapping[tuple[Criterion, str], Miss]:
        """Its missed terms."""
        return {(miss.criterion, miss.term): miss for miss in self.explanation.diagnosis.misses}

    @cached_property
    def _undecided(self) -> list[Item]:
        if self.line.generation != "answered":
            return []
        proposals: dict[tuple[Criterion, str], Proposal] = {}
        for one in self.proposals:  # what replaces a term comes before what is proposed besides
            proposals[one.key] = one.with_replacement_of(proposals.get(one.key))
        misses = self.misses
        told: dict[tuple[Criterion, str], ExplainedTerm] = {}
        for group in explained_terms(self.explanation, self.line.remarked, shows_text=True):
            for each in group.terms:
                if each.is_remarkable:
                    key = each.criterion, each.text
                    told[key] = each if key not in told or told[key].is_doubtful else told[key]
        return [
            Item(each, proposals.get(key), misses.get(key), self.expectations.of(key[0]).count(key[1]) > 1)
            for key, each in told.items()
        ]


class Agreement(NamedTuple):
    """How many cases of a label a person found safe, and how many unsafe."""

    label: Label
    safe: int
    unsafe: int


class Review:
    """The cases of some outputs, and the folder of test cases in which decisions are kept. reload() reads all again.

    Raises ConfigurationError, also where there is no case to review.
    """

    def __init__(self, policy: Policy, request: TriageRequest, outputs: Sequence[OutputFile]) -> None:
        self._policy, self._request, self._outputs = policy, request, outputs
        self.folder = request.test_dir
        self.remarks: Sequence[str] = ()
        self.reload()
        remove_unfinished(self.folder)
        if not self.cases:
            chosen = " with a missed term that has the chosen answers" if self._request.answers else ""
            raise ConfigurationError(f"there is no test case{chosen} to review")

    def reload(self) -> None:
        """Read test cases, outputs and decisions again; raises ConfigurationError."""
        self.refresh()
        self._read = load_batches(self.folder).all
        with progress_bar(message_console(), "reading", None) as bar:
            found, self.remarks = triage(self._policy, self._request, self._outputs, bar)
        self.cases: Sequence[ReviewedCase] = sorted(self._cases(found), key=_order)

    def refresh(self) -> None:
        """Read the decisions again, which another page or program may have added to."""
        self._decisions = Decisions.read(self.folder)

    def _cases(self, found: Triage) -> Iterator[ReviewedCase]:
        proposed = {id(case.line): case.proposals for case in found.cases}
        for selection, run in found.runs:
            for line in run.cases:
                explanation = run.explanation_of(line)
                if explanation is not None:
                    expectations = selection.cases[line.test_id].test_case.expectations
                    proposals = proposed.get(id(line), [])
                    yield ReviewedCase(line, explanation, expectations, proposals, lambda: self._decisions)

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
            for case in self.cases
        ]
        return trust(self._decisions.terms.values(), cases)

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
        words = _words(case, about) if choice == "paraphrase" else ""
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

    @property
    def changes(self) -> Mapping[EditedCase, Sequence[Replacement]]:
        """The terms that are to be replaced, by test case."""
        return {
            (case.test_id, case.expectations): replacements
            for case in self.cases
            if (replacements := [each for item in case.items if (each := _replacement(case, item))])
        }

    @property
    def accepted(self) -> Mapping[EditedCase, Sequence[Accepting]]:
        """The wordings that test cases are to accept, by test case."""
        return {
            (case.test_id, case.expectations): wordings
            for case in self.cases
            if (wordings := [each for item in case.items if (each := _accepting(item))])
        }

    @property
    def to_apply(self) -> int:
        """How many terms would be replaced, or get another wording."""
        return sum(map(len, (*self.changes.values(), *self.accepted.values())))

    def apply(self, at: str) -> list[str]:
        """Write the replaced terms and the accepted wordings into the batch files, and give the files' names.

        Raises ChangedError, before anything is written, if one of them has changed since it was read, or is gone.
        """
        changes, accepted = self.changes, self.accepted
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
        if changed or gone:
            files = [*changed, *gone]
            exists = "exists" if len(files) == 1 else "exist"
            raise ChangedError(
                f"{named(files, 20)} changed since this page was opened, or no longer {exists}: nothing was written. "
                "Start safe review again"
            )
        for batch, content in written:
            write_whole(batch.path, content)
        note_applied(self.folder, self._applied(), at)
        self.reload()
        return [batch.path.name for batch, _ in written]

    def _applied(self) -> Iterator[TermKey]:
        for case in self.cases:
            for item in case.items:
                if item.decision is not None and (_replacement(case, item) or _accepting(item)):
                    yield item.decision.key


_WHY_NOT: Final[Mapping[Choice, str]] = {
    "accepted": "there is no proposal to accept",
    "edited": "this term cannot be edited here: it is a forbidden one, or its list has it more than once",
    "paraphrase": "SAFE does not find that the output says this in other words, so there is no paraphrase to accept",
}


def _order(case: ReviewedCase) -> tuple[Any, ...]:
    return natural_order(case.line.batch_id), natural_order(case.test_id)


def _holds(batch: LoadedBatch, changes: Mapping[EditedCase, object]) -> bool:
    rows = batch.rows.items()
    return any((test_id, row.expectations) in changes for test_id, row in rows if isinstance(row, TestCase))


def _words(case: ReviewedCase, item: Item) -> str:
    passage = None if item.miss is None else item.miss.passage
    return "" if passage is None else text_of(case.explanation.output, passage)


def _edited(replacement: Sequence[str]) -> tuple[str, ...]:
    terms = tuple(text.strip() for text in replacement if text.strip())
    if not terms:
        raise RefusedError("write at least one term: a list of required terms must not become empty")
    try:
        Expectations(must_find_signals=terms)
    except InvalidExpectations as error:
        raise RefusedError(f"the terms cannot be used: {error}") from error
    return terms


def _accepting(item: Item) -> Accepting | None:
    """Give the wording that an accepted paraphrase adds to a term; None if it adds none."""
    decision = item.decision
    if decision is None or decision.choice != "paraphrase" or not normalise(decision.words):
        return None
    return item.term, decision.words


def _replacement(case: ReviewedCase, item: Item) -> Replacement | None:
    """Give what an accepted or edited decision puts in the place of a term; None if it puts nothing there."""
    decision = item.decision
    if decision is None or not decision.replacement or decision.choice not in {"accepted", "edited"}:
        return None
    terms = case.expectations.of(item.criterion)
    return (item.criterion, terms.index(item.term), decision.replacement) if terms.count(item.term) == 1 else None
