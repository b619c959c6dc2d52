"""Proposals: what would have to change for each missed term of a case, and for each forbidden one that was used.

A term is replaced in the narrative's own words only where nothing is weakened by it (contract.md, "Proposals").
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Final

from consumer.files.term_edits import Replacement
from consumer.offline.pages.quotes import text_of
from consumer.offline.scored_run import CaseLine, Explanation, ShownOpinion
from consumer.text import quoted
from safe_core import Criterion, Expectations, Label, prepare, score
from safe_core.ceiling import NarratedCase
from safe_core.diagnosis import Miss, NarrativeSays, OutputSays, Passage, Remedy, Verdict
from safe_core.diagnosis.alignment import term_of
from safe_core.diagnosis.reading import is_negative
from safe_core.expectations import PLACES
from safe_core.lint_rules import findings, written_cases
from safe_core.matching_rule import normalise
from safe_core.mutation import MutatedCase
from safe_core.rewording import Narrative, Stretch, answers_how_much
from safe_core.scoring import READ, CaseScore, label_of_counts

_WHERE: Final[Mapping[Criterion, str]] = {"CR": "in the signals or the summary", "AC": "in the summary"}
_NOT_REPLACED: Final = (
    "SAFE found no phrase of the narrative that can replace the term without weakening the test case or asking for "
    "more than the term does, in words that a note would have."
)
_LACKING: Final = "No phrase of the narrative can replace the term: the sentences nearest to it do not have"
_MUST_CHANGE: Final = "A person must accept the words of the output or change the term."
_VERBATIM: Final = (
    "The narrative has the term word for word; the output seems to say it in other words or in several places."
)
_WRONG_CASE: Final = (
    "SAFE does not find this in the narrative, or the narrative says otherwise. A person must read the narrative and "
    "correct the test case; no change of the prompt gives what the model was not told."
)
_TWICE: Final = "The list has the term more than once."
_UNTOLD: Final = "The test case has no narrative to take other words from."
_FORBIDDEN: Final = "Ask the follow-up questions without the forbidden terms."
_LOOK: Final = "Only a person can tell what must change."
_NOT_ASKED: Final = "Change nothing: the model was not asked for this."
_OUTPUT: Final = "Change neither the prompt nor the test case: the output contradicts the narrative."


@dataclass(frozen=True, slots=True)
class Proposal:
    """What would have to change for one term; of verdict `prompt`, `change` is the cause that it shares with others.

    `passage` is the nearest one of the output, `contradicted_by` the words of the output that contradict the term.
    `stretches` are the places of the narrative that replace the term; `not_replaced` says why nothing replaces a term
    that output or narrative say in other words. Of a forbidden term that was used, neither is asked what it says.
    """

    criterion: Criterion
    term: str
    verdict: Verdict
    change: str
    replacement: tuple[str, ...] = ()
    not_replaced: str = ""
    stretches: tuple[Stretch, ...] = ()
    passage: Passage | None = None
    contradicted_by: Passage | None = None
    also_in: tuple[Passage, ...] = ()
    remedy: Remedy = "ask"
    output_says: OutputSays | None = None
    narrative_says: NarrativeSays | None = None

    @property
    def key(self) -> tuple[Criterion, str]:
        """What it is about."""
        return self.criterion, self.term

    def with_replacement_of(self, other: "Proposal | None") -> "Proposal":
        """Put together what is proposed for a term and what replaces it."""
        if other is None:
            return self
        return replace(self, change=f"{self.change} {other.change}", replacement=other.replacement)

    def evidence(self) -> dict[str, Any]:
        """Give the places that it is about, as offsets alone."""
        return {
            "narrative": [asdict(each) for each in self.stretches],
            "output": None if self.passage is None else asdict(self.passage),
            "also_in": [asdict(each) for each in self.also_in],
        }


class ProposedCase:
    """A scored case that has an answer of its own, and the proposals for it.

    `narratives` gives what all batches tell that hold the same case, which may differ from one to the other.
    """

    def __init__(
        self,
        line: CaseLine,
        explanation: Explanation,
        expectations: Expectations,
        narratives: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self.line = line
        self._explanation = explanation
        self._told = narratives
        self.before = self.after = expectations
        terms = [*self._terms()]
        done = {each.key for each in terms}
        left = {(miss.criterion, miss.term) for miss in self._misses if _is_worded_otherwise(miss)} - done
        self.proposals = [
            *terms,
            *(
                replace(each, not_replaced=self._why_not(each)) if each.key in left else each
                for each in (*self._prompts(), *self._others(done))
            ),
        ]

    def words_at(self, passage: Passage) -> str:
        """Give the words of the output at a passage, to be shown only where the user asked for text of outputs."""
        return text_of(self._explanation.output, passage)

    def decided(self, proposal: Proposal) -> str:
        """Say what people decided about a proposal's term; nothing if they did not. No words of outputs are quoted."""
        return self._explanation.decisions.of_term(proposal.criterion, proposal.term, shows_text=False)

    def opinion(self, proposal: Proposal) -> ShownOpinion | None:
        """Give a model's opinion on the miss that a proposal is about; None if there is none."""
        return self._explanation.opinions.get(("miss", *proposal.key, -1))

    def replacement(self, proposal: Proposal) -> Replacement:
        """Give what a proposal puts in the place of its term, as the test case has it."""
        return proposal.criterion, self.before.of(proposal.criterion).index(proposal.term), proposal.replacement

    # --- what a proposal is worth -------------------------------------------------------------------------------------

    def label_with(self, proposals: Sequence[Proposal], *, onto_terms: bool = False) -> Label:
        """Give the label with some proposals, and all replaced terms if so: the others count their terms as found."""
        expectations = self.after if onto_terms else self.before
        for each in proposals if not onto_terms else ():
            if each.replacement:
                expectations = replaced(expectations, each)
        scored = self._scored(expectations)
        missed = {"CR": scored.details.cr_missing, "AH": scored.details.ah_violations, "AC": scored.details.ac_missing}
        found = Counter(
            each.criterion
            for each in proposals
            if each.verdict != "term"
            for term in self._terms_for(each, expectations)
            if term in missed[each.criterion]
        )
        return label_of_counts(
            len(scored.details.cr_found) + found["CR"],
            len(scored.details.ah_violations) - found["AH"],
            len(scored.details.ac_found) + found["AC"],
            scored.terms,
            self.line.rules,
        )

    def _terms_for(self, proposal: Proposal, expectations: Expectations) -> Sequence[str]:
        """Give what some expectations ask for in the place of a proposal's term: the term, or what replaces it."""
        if proposal.term in expectations.of(proposal.criterion):
            return (proposal.term,)
        key = proposal.criterion, proposal.term
        return next((each.replacement for each in self.proposals if each.replacement and each.key == key), ())

    def _scored(self, expectations: Expectations) -> CaseScore:
        return score(prepare(expectations), self._explanation.output, self.line.rules)

    # --- terms --------------------------------------------------------------------------------------------------------

    @property
    def _misses(self) -> Sequence[Miss]:
        return self._explanation.diagnosis.misses

    def _terms(self) -> Iterator[Proposal]:
        """Replace each term that the output says, or the narrative words, otherwise, where that can be done."""
        for miss in self._misses:
            if _is_worded_otherwise(miss) and (proposal := self._replacing(miss)):
                self.after = replaced(self.after, proposal)
                yield proposal

    @cached_property
    def _narrative(self) -> Narrative | None:
        return None if self._explanation.narrative is None else Narrative(self._explanation.narrative)

    def _replacing(self, miss: Miss) -> Proposal | None:
        """Find the first rewording that weakens nothing; none for a term that its list has twice."""
        if self._narrative is None or self.after.of(miss.criterion).count(miss.term) != 1:
            return None
        for stretches in self._narrative.rewordings(miss.term, READ[miss.criterion](self._explanation.output)):
            phrases = self._narrative.phrases(stretches)
            these = "this phrase" if len(phrases) == 1 else f"these {len(phrases)} phrases"
            about = _about(miss, f"Replace the term with {these} from the narrative.")
            proposal = replace(about, verdict="term", replacement=phrases, stretches=stretches)
            if self._all_tell(phrases) and self._weakens_nothing(proposal):
                return proposal
        return None

    def _all_tell(self, phrases: Sequence[str]) -> bool:
        """Tell whether the phrases are in the narrative of each batch that would be changed by them."""
        return all(each.tells(phrase) for each in self._other_narratives for phrase in phrases)

    @cached_property
    def _other_narratives(self) -> list[Narrative]:
        return [Narrative(text) for text in self._told() if text != self._explanation.narrative]

    def _weakens_nothing(self, proposal: Proposal) -> bool:
        """Tell whether no list forgives more misses, no score falls, no more mutants pass, and `lint` finds no more."""
        expectations = replaced(self.after, proposal)
        if _normalised(expectations) == _normalised(self.after):
            return False
        if any(new > old for old, new in zip(self._forgiven(self.after), self._forgiven(expectations), strict=True)):
            return False
        now, then = (self._scored(each).scores for each in (self.after, expectations))
        if any(new < old for old, new in zip(now, then, strict=True)):
            return False
        return not self._flaws(expectations) - self._flaws(self.after) and (
            self._survivors(expectations) <= self._survivors(self.after)
        )

    def _forgiven(self, expectations: Expectations) -> tuple[int, int]:
        """Give how many misses of CR and of AC still pass; a list of four forgives none at 0.8, one of five does."""
        terms, rules = prepare(expectations).terms, self.line.rules
        return (
            sum(label_of_counts(found, 0, terms.AC, terms, rules) == "Pass" for found in range(terms.CR)),
            sum(label_of_counts(terms.CR, 0, found, terms, rules) == "Pass" for found in range(terms.AC)),
        )

    def _flaws(self, expectations: Expectations) -> Counter[str]:
        written = {
            "test_id": self.line.test_id,
            "concern_id": "any",
            "patient_payload": self._explanation.narrative,
            "expectations": expectations.document(),
        }
        return Counter(each.code for each in findings(written_cases({"test_cases": [written]})))

    def _survivors(self, expectations: Expectations) -> int:
        return MutatedCase(NarratedCase(prepare(expectations), self._explanation.narrative, self.line.rules)).survivors

    # --- prompts, and what is left ------------------------------------------------------------------------------------

    def _prompts(self) -> Iterator[Proposal]:
        for miss in self._misses:
            if miss.verdict == "prompt":
                yield _about(miss, _instruction(miss))
        used = {each.term: each for each in self._explanation.diagnosis.occurrences if each.criterion == "AH"}
        for term in self.line.row.details.ah_violations:
            if term in used:  # unless only some missed terms are asked about
                yield Proposal("AH", term, "prompt", _FORBIDDEN, passage=used[term].passage)

    def _others(self, replaced_terms: Collection[tuple[Criterion, str]]) -> Iterator[Proposal]:
        for miss in self._misses:
            if miss.verdict == "output":
                yield _about(miss, _OUTPUT)
        for miss in self._misses:
            if miss.verdict == "look":
                yield _about(miss, _LOOK)
            elif miss.verdict == "not_asked_for":
                yield _about(miss, _NOT_ASKED)
            elif miss.verdict == "term" and (miss.criterion, miss.term) not in replaced_terms:
                yield _about(miss, self._why_changed(miss))

    def _why_changed(self, miss: Miss) -> str:
        """Say why a person must change a term that was not replaced."""
        if miss.remedy == "correct_case":
            return _WRONG_CASE
        return f"{self._why_not(miss)} {_MUST_CHANGE}"

    def _why_not(self, about: Miss | Proposal) -> str:
        """Say why a term is not replaced."""
        if self._narrative is None:
            return _UNTOLD
        if self.before.of(about.criterion).count(about.term) > 1:
            return _TWICE
        if self._narrative.has(about.term):
            return _VERBATIM
        lacking = self._narrative.lacks(about.term)
        return f"{_LACKING} {', '.join(map(quoted, lacking))}." if lacking else _NOT_REPLACED


def _is_worded_otherwise(miss: Miss) -> bool:
    """Tell whether output or narrative say a missed term in other words."""
    is_in_question = miss.remedy != "correct_case" and miss.verdict != "not_asked_for"
    return miss.remedy == "accept_wording" or (miss.in_narrative == "no" and is_in_question)


def replaced(expectations: Expectations, proposal: Proposal) -> Expectations:
    """Put the replacement of a proposal in the place of its term."""
    terms = expectations.of(proposal.criterion)
    at = terms.index(proposal.term)
    _, name = PLACES[proposal.criterion]
    return replace(expectations, **{name: (*terms[:at], *proposal.replacement, *terms[at + 1 :])})


def _normalised(expectations: Expectations) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(map(normalise, terms)) for terms in expectations.lists)


def _about(miss: Miss, change: str) -> Proposal:
    against = miss.passage if miss.output_says in {"contradicted", "both"} else None
    return Proposal(
        miss.criterion, miss.term, miss.verdict, change,
        passage=miss.passage, contradicted_by=against, also_in=miss.also_in,
        remedy=miss.remedy, output_says=miss.output_says, narrative_says=miss.narrative_says,
    )  # fmt: skip


# --- what to ask for --------------------------------------------------------------------------------------------------


def _instruction(miss: Miss) -> str:
    """Give the sentence for the prompt: one for all misses of one cause."""
    where = _WHERE[miss.criterion]
    if miss.remedy == "ask_in_field":
        fields = {each.field for each in miss.also_in} or {"signals"}
        if "signals" in fields:
            return "Repeat in the summary, word for word, what the signals say."
        return f"Also state {where} what is said only in other fields."
    lacking = [fact for fact in term_of(miss.term).facts if miss.term[fact.start : fact.end] in miss.missing_words]
    if any(map(is_negative, lacking)):
        return f"State {where} what the narrative denies or rules out, as the narrative says it."
    if any(map(answers_how_much, lacking)):
        return f"Give {where} each number, time, day and side as the narrative has it."
    return f"Report {where} each finding and event of the narrative, in the words of the narrative."
