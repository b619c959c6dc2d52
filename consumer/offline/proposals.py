"""Proposals: what would have to change for each missed term of a case, and for each forbidden one that was used.

A term is replaced in the narrative's own words only where nothing is weakened by it (contract.md, "Proposals").
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from consumer.offline.scored_run import CaseLine, Explanation
from safe_core import Criterion, Expectations, Label, PreparedExpectations, Rules, prepare, score
from safe_core.diagnosis import Miss, Occurrence, Passage, Verdict
from safe_core.diagnosis.passages import term_of
from safe_core.lint import NarratedCase, findings, written_cases
from safe_core.matching_rule import normalise
from safe_core.mutation import MutatedCase
from safe_core.rewording import Narrative, Stretch
from safe_core.scoring import READ, CaseScore, label_of_counts

_LISTS: Final[Mapping[Criterion, str]] = {
    "CR": "must_find_signals",
    "AH": "forbidden_terms",
    "AC": "must_contain_phrases",
}
_WHERE: Final[Mapping[Criterion, str]] = {"CR": "in the signals or the summary", "AC": "in the summary"}
_NOT_REPLACED: Final = (
    "A person must change the term: no words of the narrative say the same without weakening the test case."
)
_LOOK: Final = "Only a person can tell what must change."
_OUTPUT: Final = "Nothing in the prompt or the test case: the output contradicts the narrative."


@dataclass(frozen=True, slots=True)
class Proposal:
    """What would have to change for one term; `instruction` is the cause that it shares with others, if it has one.

    `stretches` are the places of the narrative that replace the term, empty where nothing replaces it.
    """

    criterion: Criterion
    term: str
    verdict: Verdict
    change: str
    instruction: str | None = None
    replacement: tuple[str, ...] = ()
    stretches: tuple[Stretch, ...] = ()
    passage: Passage | None = None
    also_in: tuple[Passage, ...] = ()

    def evidence(self) -> dict[str, Any]:
        """Give the places that it is about, as offsets alone."""
        return {
            "narrative": [{"start": each.start, "end": each.end} for each in self.stretches],
            "output": None if self.passage is None else _place(self.passage),
            "also_in": [_place(each) for each in self.also_in],
        }


def _place(passage: Passage) -> dict[str, Any]:
    return {"field": passage.field, "element": passage.element, "start": passage.start, "end": passage.end}


class Found(NamedTuple):
    """How many terms of a case count as found or avoided although they are not."""

    CR: int = 0
    AH: int = 0
    AC: int = 0

    def and_one(self, criterion: Criterion) -> "Found":
        """Count one more."""
        return Found(*(count + (name == criterion) for name, count in zip(self._fields, self, strict=True)))


class ProposedCase:
    """A scored case that has an answer of its own, and the proposals for it.

    Raises ValueError for one without an explanation.
    """

    def __init__(self, line: CaseLine, explanation: Explanation, expectations: Expectations) -> None:
        self.line = line
        self._explanation = explanation
        self._output = explanation.output
        self.before = expectations
        self.after = expectations
        self._replaced: set[tuple[Criterion, str]] = set()
        self.proposals = [*self._terms(), *self._prompts(), *self._others()]

    @property
    def rules(self) -> Rules:
        """The rules that judge the case."""
        return self.line.rules

    def position_of(self, proposal: Proposal) -> int:
        """Give the position of a proposal's term in its list, as it was written."""
        terms: tuple[str, ...] = getattr(self.before, _LISTS[proposal.criterion])
        return terms.index(proposal.term)

    def decided(self, proposal: Proposal) -> str:
        """Say what people decided about a proposal's term; nothing if they did not. No words of outputs are quoted."""
        decision = self._explanation.decisions.get((proposal.criterion, proposal.term))
        return "" if decision is None else decision.in_words(shows_text=False)

    @property
    def changed(self) -> bool:
        """Whether a term of the case is replaced."""
        return self.after != self.before

    # --- what a proposal is worth -------------------------------------------------------------------------------------

    def label_with(self, proposals: Sequence[Proposal], *, onto_terms: bool = False) -> Label:
        """Give the label with some proposals, and all replaced terms if so: the others count their terms as found."""
        expectations = self.after if onto_terms else self.before
        found = Found()
        for each in proposals:
            if each.verdict != "term":
                found = found.and_one(each.criterion)
            elif not onto_terms:
                expectations = replaced(expectations, each)
        return self._label(expectations, found)

    def _label(self, expectations: Expectations, found: Found) -> Label:
        scored = self._scored(prepare(expectations))
        details = scored.details
        return label_of_counts(
            len(details.cr_found) + found.CR,
            len(details.ah_violations) - found.AH,
            len(details.ac_found) + found.AC,
            scored.terms,
            self.rules,
        )

    def _scored(self, expected: PreparedExpectations) -> CaseScore:
        return score(expected, self._output, self.rules)

    # --- terms --------------------------------------------------------------------------------------------------------

    @property
    def _misses(self) -> Sequence[Miss]:
        return self._explanation.diagnosis.misses

    def _terms(self) -> Iterator[Proposal]:
        """Replace each term of which the test case is to blame, where that can be done."""
        for miss in self._misses:
            if miss.verdict == "term" and (proposal := self._replacing(miss)):
                self.after = replaced(self.after, proposal)
                self._replaced.add((miss.criterion, miss.term))
                yield proposal

    @cached_property
    def _narrative(self) -> Narrative | None:
        return None if self._explanation.narrative is None else Narrative(self._explanation.narrative)

    def _replacing(self, miss: Miss) -> Proposal | None:
        """Find the first rewording that weakens nothing; none for a term that its list has twice."""
        terms = getattr(self.after, _LISTS[miss.criterion])
        if self._narrative is None or terms.count(miss.term) != 1:
            return None
        for stretches in self._narrative.rewordings(miss.term, READ[miss.criterion](self._output)):
            phrases = tuple(self._narrative.text[each.start : each.end] for each in stretches)
            proposal = Proposal(
                miss.criterion, miss.term, "term", _in_words(phrases), replacement=phrases, stretches=stretches,
                passage=miss.passage, also_in=miss.also_in,
            )  # fmt: skip
            if self._narrative.keeps(miss.term, phrases) and self._weakens_nothing(proposal):
                return proposal
        return None

    def _weakens_nothing(self, proposal: Proposal) -> bool:
        """Tell whether no score falls, no more mutants pass and nothing new is wrong with the test case."""
        expectations = replaced(self.after, proposal)
        if _normalised(expectations) == _normalised(self.after):
            return False
        now, then = (self._scored(prepare(each)).scores for each in (self.after, expectations))
        if any(new < old for old, new in zip(now, then, strict=True)):
            return False
        return not self._flaws(expectations) - self._flaws(self.after) and (
            self._survivors(expectations) <= self._survivors(self.after)
        )

    def _flaws(self, expectations: Expectations) -> Counter[str]:
        written = {
            "test_id": self.line.test_id,
            "concern_id": "any",
            "patient_payload": self._explanation.narrative,
            "expectations": {
                "signal_generation": {"must_find_signals": list(expectations.must_find_signals)},
                "followup_questions": {"forbidden_terms": list(expectations.forbidden_terms)},
                "event_summary": {"must_contain_phrases": list(expectations.must_contain_phrases)},
            },
        }
        return Counter(each.code for each in findings(written_cases({"test_cases": [written]})))

    def _survivors(self, expectations: Expectations) -> int:
        case = NarratedCase(prepare(expectations), self._explanation.narrative, self.rules)
        return MutatedCase(case).survivors

    # --- prompts, and what is left ------------------------------------------------------------------------------------

    def _prompts(self) -> Iterator[Proposal]:
        for miss in self._misses:
            if miss.verdict == "prompt":
                instruction = _instruction(miss)
                yield _about(miss, instruction, instruction)
        used = {each.term: each for each in self._explanation.diagnosis.occurrences if each.criterion == "AH"}
        for term in self.line.row.details.ah_violations:
            yield _forbidden(term, used.get(term))

    def _others(self) -> Iterator[Proposal]:
        for miss in self._misses:
            if miss.verdict == "output":
                yield _about(miss, _OUTPUT)
        for miss in self._misses:
            if miss.verdict == "look":
                yield _about(miss, _LOOK)
            elif miss.verdict == "term" and (miss.criterion, miss.term) not in self._replaced:
                yield replace(_about(miss, _NOT_REPLACED), verdict="look")


def replaced(expectations: Expectations, proposal: Proposal) -> Expectations:
    """Put the replacement of a proposal in the place of its term."""
    name = _LISTS[proposal.criterion]
    terms: tuple[str, ...] = getattr(expectations, name)
    at = terms.index(proposal.term)
    return replace(expectations, **{name: (*terms[:at], *proposal.replacement, *terms[at + 1 :])})


def _normalised(expectations: Expectations) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(map(normalise, terms)) for terms in expectations.lists)


def _in_words(phrases: Sequence[str]) -> str:
    if len(phrases) == 1:
        return "Replace the term by this phrase of the narrative."
    return f"Replace the term by these {len(phrases)} phrases of the narrative."


def _about(miss: Miss, change: str, instruction: str | None = None) -> Proposal:
    return Proposal(
        miss.criterion, miss.term, miss.verdict, change, instruction, passage=miss.passage, also_in=miss.also_in
    )


def _forbidden(term: str, used: Occurrence | None) -> Proposal:
    instruction = "Ask the follow-up questions without the forbidden terms."
    return Proposal("AH", term, "prompt", instruction, instruction, passage=None if used is None else used.passage)


# --- what to ask for --------------------------------------------------------------------------------------------------


def _instruction(miss: Miss) -> str:
    """Give the sentence for the prompt: one for all misses of one cause."""
    where = _WHERE[miss.criterion]
    elsewhere = {each.field for each in (*miss.also_in, *([miss.partly_in] if miss.partly_in else []))}
    if "signals" in elsewhere:
        return "Repeat in the summary, word for word, what the signals say."
    if elsewhere:
        return f"State {where}, too, what is said only in other fields."
    roles = {_role(word) for word in miss.missing_words}
    if "negation" in roles:
        return f"State {where} what the narrative denies or rules out, as the narrative says it."
    if "value" in roles:
        return f"Give {where} each number, time and day as the narrative has it."
    return f"Report {where} each finding and event of the narrative, in its own words."


def _role(words: str) -> str:
    roles = {"value" if item.value is not None else item.role for item in term_of(words).items}
    return "negation" if "negation" in roles else "value" if "value" in roles else "content"
