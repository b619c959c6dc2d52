"""A case of `safe review`: its scores at once, its explanation when it is asked for, what was decided each time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final, NamedTuple, get_args

from consumer.files.term_edits import Accepting, Replacement
from consumer.judging.calibration import answer_of_decision
from consumer.judging.opinions import Opinions
from consumer.judging.questions import OpinionKind
from consumer.offline.answers import AnswerFilter
from consumer.offline.decisions import CaseDecision, Choice, Decisions, TermDecision
from consumer.offline.many_diagnoses import Question
from consumer.offline.pages.miss_wording import IN_WORDS, ExplainedTerm, explained_terms
from consumer.offline.pages.quotes import SideBySide, side_by_side, text_of
from consumer.offline.proposals import Proposal, ProposedCase
from consumer.offline.scored_run import CaseLine, Explanation, OpinionAbout, ShownOpinion
from consumer.offline.scoring import judged_texts
from consumer.text import quoted
from safe_core import Criterion, Expectations, Output
from safe_core.accepted_wordings import is_wording, wordings_of
from safe_core.diagnosis import Diagnosis, Miss, Remedy, diagnose
from safe_core.diagnosis.doubtful_hits import doubtful_hits
from safe_core.lint_rules import facts_lacking
from safe_core.matching_rule import normalise
from safe_core.narrative_digests import digest_of_narrative
from safe_core.unsupported import can_be_checked, unsupported_values


class ScoredCase(NamedTuple):
    """A case as it was scored, and what it is explained by; `narratives` are told by the batches that hold it."""

    line: CaseLine
    question: Question
    expectations: Expectations
    narratives: frozenset[str]


class ExplainedCase(NamedTuple):
    """What takes most of the time: why terms were missed, what is said beside the scores, and what is proposed."""

    line: CaseLine
    diagnosis: Diagnosis
    proposals: Sequence[Proposal]


def explain(case: ScoredCase) -> ExplainedCase:
    """Explain a case; computation only, so that another process may do it."""
    line, question = case.line, case.question
    said, own = judged_texts(line.row, question.output, question.narrative)
    doubtful, values = doubtful_hits(said, own, line.row.details), unsupported_values(said, own)
    line = replace(line, doubtful=doubtful, unsupported=values, has_checked_values=can_be_checked(own))
    explanation = Explanation(diagnose(*question), question.output, question.narrative)
    if not line.has_reasons:
        return ExplainedCase(line, explanation.diagnosis, ())
    proposed = ProposedCase(line, explanation, case.expectations, partial(frozenset, case.narratives))
    return ExplainedCase(line, explanation.diagnosis, proposed.proposals)


@dataclass(frozen=True, slots=True)
class Item:
    """A term of a case to decide on: a miss, a doubtful hit, or a forbidden term that was used, or nearly.

    `is_listed_twice` says that its list has it more than once; `paraphrase` are words of the output that say all of it.
    """

    explained: ExplainedTerm
    proposal: Proposal | None
    miss: Miss | None = None
    is_listed_twice: bool = False
    paraphrase: str = ""
    decision: TermDecision | None = None

    @property
    def criterion(self) -> Criterion:
        return self.explained.criterion

    @property
    def term(self) -> str:
        return self.explained.text

    @property
    def is_decided(self) -> bool:
        return self.decision is not None and self.decision.decides

    @property
    def opinion_kind(self) -> OpinionKind:
        """What a model is asked about it."""
        if self.explained.verdict is not None:
            return "miss"
        return "doubtful_hit" if self.explained.is_doubtful else "near_violation"

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
            "paraphrase": bool(self.paraphrase),
            "commented": True,
        }
        return frozenset(choice for choice in get_args(Choice) if can[choice])


_ACCEPTED_AS_THEY_ARE: Final = frozenset[Remedy](("ask", "ask_in_field", "fix_output", "correct_case"))
"""What a person may agree with, although it puts nothing in the place of the term."""


def paraphrase_of(miss: Miss | None, output: Output) -> str:
    """Give the words that say all of a missed term; "" if no passage does: what is said may be in two of them."""
    if miss is None or miss.remedy != "accept_wording" or miss.passage is None:
        return ""
    words = text_of(output, miss.passage)
    return "" if facts_lacking(miss.term, words) else words


class ReviewedCase:
    """A case as the page shows it; it is explained when that is first asked for, unless it was before."""

    def __init__(
        self, scored: ScoredCase, decisions: Callable[[], Decisions], opinions: Opinions | None = None
    ) -> None:
        self.scored = scored
        self._decisions = decisions
        self._file = opinions
        self._known: ExplainedCase | None = None

    @property
    def is_explained(self) -> bool:
        return self._known is not None

    @property
    def explained(self) -> ExplainedCase:
        """Its explanation, which takes a moment."""
        if self._known is None:
            self._known = explain(self.scored)
        return self._known

    def note(self, explained: ExplainedCase) -> None:
        """Take an explanation that was made elsewhere."""
        self._known = self._known or explained

    def note_as(self, other: "ReviewedCase | None") -> None:
        """Take the explanation of the same case before it was read again, if nothing of it has changed."""
        if other is not None and other.is_explained and other.scored == self.scored:
            self._known = other.explained

    @property
    def line(self) -> CaseLine:
        """Its scores, and what is said beside them once it is explained."""
        return self.scored.line if self._known is None else self._known.line

    @property
    def test_id(self) -> str:
        return self.scored.line.test_id

    @property
    def expectations(self) -> Expectations:
        return self.scored.expectations

    @cached_property
    def narrative(self) -> str | None:
        """The digest of its narrative."""
        return digest_of_narrative(self.scored.question.narrative)

    @cached_property
    def searched(self) -> str:
        """What a search looks at, in lower case."""
        terms = (term for each in self.expectations.lists for term in each)
        return "\n".join((self.test_id, self.scored.line.batch_id, *terms)).casefold()

    # --- what was decided ---------------------------------------------------------------------------------------------

    @property
    def term_decisions(self) -> Sequence[TermDecision]:
        """What was decided about its terms, whether this output misses them or not."""
        return [*self._decisions().of_case(self.test_id, self.narrative).terms.values()]

    @property
    def decision(self) -> CaseDecision | None:
        """The verdict on the output."""
        return self._decisions().cases.get((self.test_id, self.narrative))

    @property
    def items(self) -> list[Item]:
        """The terms to decide on, with what was decided; none of a case without an output."""
        told = self._decisions().of_case(self.test_id, self.narrative).terms
        return [replace(item, decision=told.get((item.criterion, item.term))) for item in self._undecided]

    def items_with(self, answers: AnswerFilter) -> list[tuple[int, Item]]:
        """The items whose misses have the chosen answers, each with its number."""
        return [
            (number, item)
            for number, item in enumerate(self.items)
            if not answers or (item.miss is not None and answers.has(item.miss))
        ]

    @property
    def decided(self) -> int:
        """How many of its items are decided."""
        return sum(item.is_decided for item in self.items)

    def decision_in_words(self, item: Item) -> str:
        """Say what was decided, and which of a person's own terms the narrative lacks; "" if nothing was."""
        if item.decision is None:
            return ""
        told = normalise(self.scored.question.narrative or "")
        own = item.decision.replacement if told and item.decision.choice == "edited" else ()
        foreign = [quoted(term) for term in own if normalise(term) not in told]
        warning = f"; not in the narrative: {', '.join(foreign)}" if foreign else ""
        opinion = self.opinion_on(item)
        return item.decision.in_words() + warning + (f"; opinion: {opinion.words}" if opinion else "")

    def opinion_on(self, item: Item) -> ShownOpinion | None:
        """Give a model's opinion on an item that a person has decided; None before, so that it sways nobody."""
        if self._file is None or not item.is_decided:
            return None
        return self._opinions.get((item.opinion_kind, item.criterion, item.term, -1))

    @property
    def differing(self) -> Iterator[tuple[Item, ShownOpinion]]:
        """Give the items on which a calibrated opinion differs from what a person decided."""
        for item in self.items if self._file is not None and self.is_explained else ():
            opinion = self.opinion_on(item)
            if opinion is not None and item.decision is not None and opinion.document["standing"] == "calibrated":
                person = answer_of_decision(item.opinion_kind, item.decision)
                if person is not None and opinion.document["answer"] not in {person, "no_opinion"}:
                    yield item, opinion

    @cached_property
    def _opinions(self) -> Mapping[OpinionAbout, ShownOpinion]:
        return {} if self._file is None else self._file.on(self.line, self._explanation)

    # --- what decisions change ----------------------------------------------------------------------------------------

    def replacement(self, decision: TermDecision) -> Replacement | None:
        """Give what an accepted or edited decision puts in the place of a term; None if it puts nothing there."""
        terms = self.expectations.of(decision.criterion)
        is_done = decision.applied_at is not None and decision.term in decision.replacement
        is_replaced = decision.choice in {"accepted", "edited"} and bool(decision.replacement)
        if is_done or not is_replaced or terms.count(decision.term) != 1:
            return None
        return decision.criterion, terms.index(decision.term), decision.replacement

    def accepting(self, decision: TermDecision) -> Accepting | None:
        """Give the wording that an accepted paraphrase adds to a term; None if it adds none."""
        known = wordings_of(self.scored.question.accepted, decision.term)
        is_new = decision.term in self.expectations.of(decision.criterion) and decision.words not in known
        # Builds that kept no verdict wrote no wordings, and took words that say a part of the term.
        is_paraphrase = decision.choice == "paraphrase" and decision.verdict is not None
        return (decision.term, decision.words) if is_paraphrase and is_new and is_wording(decision.words) else None

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def _explanation(self) -> Explanation:
        question = self.scored.question
        return Explanation(self.explained.diagnosis, question.output, question.narrative)

    @cached_property
    def texts(self) -> SideBySide:
        """Narrative and output, with what is spoken of marked in both."""
        return side_by_side(self._explanation, self.line.remarked)

    @cached_property
    def misses(self) -> dict[tuple[Criterion, str], Miss]:
        """Its missed terms."""
        return {(miss.criterion, miss.term): miss for miss in self.explained.diagnosis.misses}

    @cached_property
    def _undecided(self) -> list[Item]:
        proposed = self.explained.proposals
        if self.line.generation != "answered":
            return []
        proposals: dict[tuple[Criterion, str], Proposal] = {}
        for one in proposed:  # what replaces a term comes before what is proposed besides
            proposals[one.key] = one.with_replacement_of(proposals.get(one.key))
        told: dict[tuple[Criterion, str], ExplainedTerm] = {}
        for each in self._remarkable():
            key = each.criterion, each.text
            told[key] = each if key not in told or told[key].is_doubtful else told[key]
        return [self._item(each, proposals.get(key)) for key, each in told.items()]

    def _item(self, explained: ExplainedTerm, proposal: Proposal | None) -> Item:
        criterion, term = explained.criterion, explained.text
        miss = self.misses.get((criterion, term))
        is_listed_twice = self.expectations.of(criterion).count(term) > 1
        return Item(explained, proposal, miss, is_listed_twice, paraphrase_of(miss, self.scored.question.output))

    def _remarkable(self) -> Iterator[ExplainedTerm]:
        groups = explained_terms(self._explanation, self.line.remarked, shows_text=True)
        return (each for group in groups for each in group.terms if each.is_remarkable)
