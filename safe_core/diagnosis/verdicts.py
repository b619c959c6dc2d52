"""Who must act on a miss: whoever wrote the term, the prompt, or nobody, since the output is wrong."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from safe_core.diagnosis.accounts import are_two_accounts, has_other_account
from safe_core.diagnosis.bound_values import handed_over, has_receiver, otherwise_bound, otherwise_told
from safe_core.diagnosis.certainty_changes import changed_certainty
from safe_core.diagnosis.changed_meaning import may_mean_otherwise
from safe_core.diagnosis.comparison import MOST_TRIED
from safe_core.diagnosis.contradictions import Contradiction, Contradictions
from safe_core.diagnosis.diagnosis_types import InNarrative, Kind, Passage, Verdict
from safe_core.diagnosis.foreign_words import foreign_words
from safe_core.diagnosis.miss_kind_rules import Evidence, Finding, decide
from safe_core.diagnosis.passages import Match, Term, nearest, term_of
from safe_core.diagnosis.plain_reading import plain_term, plainly
from safe_core.diagnosis.same_words import is_same_word
from safe_core.diagnosis.sentence_index import ROOT, Sentences
from safe_core.diagnosis.synonym_passages import is_exact, is_paraphrased
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.told_words import At, told_words
from safe_core.diagnosis.word_lists.grammar_words import WEAK_WORDS
from safe_core.diagnosis.wordings import Wording, wording
from safe_core.diagnosis.words import word_set

BY_KIND: Final[Mapping[Kind, Verdict]] = {
    "form": "term",
    "connectives": "term",
    "rearranged": "term",
    "split": "term",
    "value": "look",
    "polarity": "look",
    "part": "prompt",
    "other_field": "prompt",
    "absent": "prompt",
}
"""The verdict on a miss of each kind where neither the narrative nor another field decides."""
_SAYS_IT: Final = frozenset(kind for kind, verdict in BY_KIND.items() if verdict == "term")
_RULES: Final = frozenset(("should", "ought"))
_PLAIN_WORDS: Final = word_set("a an the of at in on and with is are was were had has")
_ABOUT_SIGNS: Final = ("<", ">", "~", "≈", "≤", "≥", "±")
_DIGIT: Final = re.compile(r"\d")
_MOST_REPLACED: Final = 2  # words of a term for each foreign one, and in any case


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a miss, and what contradicts the term or says it in other words where something does.

    It `is_swapped` if what contradicts it has the words of the term, but of something else.
    """

    verdict: Verdict
    contradicting: Finding | None = None
    rewording: Finding | None = None
    is_swapped: bool = False


class Judge:
    """Judges the misses of one criterion of a case."""

    def __init__(
        self, read: Sentences, claims: Sentences, questions: Sentences, narrative: Sentences | None, most: int
    ) -> None:
        self.read = read
        self._fields = (read, claims, questions, narrative, most)
        self._narrative = narrative
        self._claiming: list[Contradictions] = []
        self._asking: list[Contradictions] = []
        if narrative is not None:
            places = [read] if read is claims else [read, claims]
            self._claiming = [Contradictions(where, narrative, most) for where in places]
            numbered = [each for each in questions.elements if _DIGIT.search(each.text)]
            self._asking = [Contradictions(Sentences(numbered), narrative, most)] if numbered else []

    def judge(
        self, evidence: Evidence, kind: Kind, finding: Finding, also_in: Sequence[Passage], in_narrative: InNarrative
    ) -> Judgement:
        """Give the verdict on a miss (contract.md, "Verdicts"): the first rule that holds decides.

        Where that is not the term, all is read plainly once more: in other words, the output may say all of it. Where
        one reading finds the term contradicted and the other finds all of it, a person has to look.
        """
        if also_in:
            return Judgement("prompt")
        judgement = self.first_rule(evidence, kind, finding, in_narrative)
        if judgement.verdict == "term" or not (rewording := self._rewording(evidence, in_narrative)):
            return judgement
        return Judgement("look" if judgement.verdict == "output" else "term", rewording=rewording)

    def _rewording(self, evidence: Evidence, in_narrative: InNarrative) -> Finding | None:
        """Find where the output says a term in other words: the verdict is `term` where all is read plainly."""
        if self._narrative is None:
            return None
        term, judge = plain_term(evidence.term.text), self._plain
        if not (_keeps_a_word(evidence.term, term) and _may_hold_all(term, judge.read)):
            return None
        plain = Evidence(term, judge.read, evidence.unread, evidence.most_sentences)
        kind, finding = decide(plain)
        return finding if judge.first_rule(plain, kind, finding, in_narrative).verdict == "term" else None

    @cached_property
    def _plain(self) -> "Judge":
        """A judge of the same fields, read plainly."""
        read, claims, questions, narrative, most = self._fields
        told = narrative and narrative.read(plainly)
        return Judge(read.read(plainly), claims.read(plainly), questions.read(plainly), told, most)

    def first_rule(self, evidence: Evidence, kind: Kind, finding: Finding, in_narrative: InNarrative) -> Judgement:
        """Give the verdict on a miss that no other field has word for word, as all is written."""
        if kind in _SAYS_IT and not (in_narrative == "yes" and self._is_unsure(evidence)):
            return Judgement("term")
        told = self._told(evidence)
        if contradicting := self._contradicting(evidence, told):
            return contradicting
        if kind in _SAYS_IT or self._has_other_account(evidence, told):
            return Judgement("look")
        if in_narrative == "no":
            return Judgement("term")
        is_settled = _is_rule(evidence.term.items) or self._has_told(finding, told)
        is_doubtful = BY_KIND[kind] == "look" and not is_settled
        return Judgement("look" if is_doubtful else self._of_wording(evidence, told))

    def _told(self, evidence: Evidence) -> list[At]:
        return [] if self._narrative is None else told_words(evidence.term, self._narrative)

    def _has_other_account(self, evidence: Evidence, told: Sequence[At]) -> bool:
        narrative = self._narrative
        return narrative is not None and any(has_other_account(at, narrative, evidence.read) for at in told)

    def _is_unsure(self, evidence: Evidence) -> bool:
        """Tell whether a passage that has all of a term may say it with another verb, or something else."""
        said = wording(evidence, ())
        return self._is_reworded(said) or _may_mean_otherwise(evidence, said, self._told(evidence))

    def _has_told(self, finding: Finding, told: Sequence[At]) -> bool:
        """Tell whether the value that stands for that of a term is another one of the narrative."""
        if self._narrative is None or finding.instead is None:
            return False
        key = finding.instead.item.key
        disputed = (are_two_accounts(at, key, self._narrative) for at in told if at.item.value)
        return key in self._narrative.holding and not any(disputed)

    def _is_disputed(self, found: Contradiction) -> bool:
        item = found.instead.item
        return (
            item.key != found.told.item.key
            and self._narrative is not None
            and are_two_accounts(found.told, item.key, self._narrative)
        )

    def _of_wording(self, evidence: Evidence, told: Sequence[At]) -> Verdict:
        """Give the verdict by how much of a term the output says, and whether in words of its own."""
        said = wording(evidence, {item.key for at in told[:1] for item in at.sentence.items})
        if self._is_reworded(said):
            return "look"
        if said.is_whole:
            return "look" if said.lacks_denied or _may_mean_otherwise(evidence, said, told) else "term"
        return "look" if is_paraphrased(evidence.term, evidence.read, evidence.most_sentences) else "prompt"

    def _contradicting(self, evidence: Evidence, told: Sequence[At]) -> Judgement | None:
        """Find what contradicts a term, first in what the criterion reads; a question claims nothing but values."""
        if not told or self._narrative is None:
            return None
        for contradictions in self._claiming:
            if found := next(self._asked_for(evidence.term, contradictions.of(told)), None):
                return found
            is_read = contradictions.said is evidence.read
            matches = evidence.matches if is_read else nearest(evidence.term, contradictions.said, MOST_TRIED)
            term = _as_told(evidence.term, told)
            whole = matches if term is evidence.term else nearest(term, contradictions.said, MOST_TRIED)
            if swapped := self._swapped(whole):
                crossed = _in_other_company(swapped)
                own = (item for item in evidence.term.items if any(_is_told_as(item, other) for other in crossed))
                return Judgement("output", Finding(swapped.passage, tuple(own)), is_swapped=True)
            if match := changed_certainty(told, matches, self._narrative):
                certainties = tuple(item for item in evidence.term.items if item.role == "certainty")
                return Judgement("output", Finding(match.passage, certainties or evidence.term.essential))
        values = [at for at in told if at.item.value]
        asking = (each for contradictions in self._asking for each in contradictions.of(values))
        return next(self._asked_for(evidence.term, asking), None) if values else None

    def _asked_for(self, term: Term, found: Iterator[Contradiction]) -> Iterator[Judgement]:
        """Judge the contradictions of words that a term has; what is only denied or affirmed stands for nothing else.

        A value that the narrative has from another source is for a person.
        """
        for each in found:
            is_kept = not _is_rule(term.items) or _is_rule(each.instead.sentence.items)
            item = next((item for item in term.items if _is_told_as(item, each.told.item)), None)
            if is_kept and item and (item.key == each.told.item.key or self._stands_for(each.instead, each.told)):
                instead = each.instead.spot
                is_denied = item.value is None and is_same_word(instead.item.folded, item.folded)  # in another form
                is_other = instead.item.key != item.key and not is_denied
                contradicting = Finding(instead.passage, (item,), instead if is_other else None)
                yield Judgement("look") if self._is_disputed(each) else Judgement("output", contradicting)

    def _stands_for(self, found: At, told: At) -> bool:
        """Tell whether a number is given as the narrative gives its own: no limit, change, sum, estimate or other unit.

        The narrative has it nowhere.
        """
        if self._narrative is None or found.item.key in self._narrative.holding:
            return False
        known = {item.key for item in told.sentence.items}
        if found.company().isdisjoint(told.company()) or any(
            item.key not in known and item.folded not in _PLAIN_WORDS for item in found.whole_clause()
        ):
            return False
        text = found.sentence.element.text[: found.item.start].rstrip()
        return not text.endswith(_ABOUT_SIGNS) and _unit_as_written(found) == _unit_as_written(told)

    def _swapped(self, matches: Sequence[Match]) -> Match | None:
        """Find the passage that has all of a term, with its values at other words, if no place has them at these."""
        whole = [match for match in matches[:MOST_TRIED] if {item.key for item in match.absent} <= WEAK_WORDS.keys()]
        if self._narrative is None or not whole or not all(map(_in_other_company, whole)):
            return None
        narrative = (sentence.items for sentence in self._narrative.sentences)
        if not _bound_or_told_otherwise(whole[0]) and not has_receiver(whole[0], narrative):
            return None
        told = nearest(whole[0].term, self._narrative, MOST_TRIED)
        return None if any(map(_bound_or_told_otherwise, told)) else whole[0]

    def _is_reworded(self, said: Wording) -> bool:
        """Tell whether the nearest passage may say in words foreign to the narrative what it lacks of a term."""
        if self._narrative is None or not said.pieces or not said.lacks_something or any(map(is_exact, said.lost)):
            return False
        match, lost = said.pieces[0], len(said.lost)
        held = sum(item.role in {"content", "value"} and item not in said.lacking for item in match.term.essential)
        if lost > held + 1:
            return False
        foreign = len(foreign_words(match, self._narrative))
        return foreign > 0 and lost <= _MOST_REPLACED * foreign


def _is_told_as(item: Item, told: Item) -> bool:
    """Tell whether a term asks for an item of the narrative, where its number may have a unit as well."""
    mine, its = item.value, told.value
    if item.key == told.key or mine is None or its is None:
        return item.key == told.key
    return mine.type == "number" and mine.amount == "" and its.amount == mine.canonical


def _unit_as_written(at: At) -> str:
    written = at.sentence.element.text[at.item.start : at.item.end].casefold()
    return "".join(character for character in written if character.isalpha() or character in "%/°")


def _as_told(term: Term, told: Sequence[At]) -> Term:
    """Give a term that stands in one sentence of the narrative with the units that its numbers have there."""
    sentence, words = told[0].sentence, {at.item.key for at in told}
    if words <= {item.key for item in term.items} or any(at.sentence is not sentence for at in told):
        return term
    return term_of(sentence.element.text[told[0].item.start : told[-1].item.end])


def _in_other_company(match: Match) -> tuple[Item, ...]:
    return _bound_or_told_otherwise(match) or handed_over(match)


def _bound_or_told_otherwise(match: Match) -> tuple[Item, ...]:
    """Give the values and words of a term that a passage has at each other's places."""
    return otherwise_bound(match) or otherwise_told(match)


def _may_mean_otherwise(evidence: Evidence, said: Wording, told: Sequence[At]) -> bool:
    """Tell whether each passage that has all of a term may mean something else."""
    whole = [match for match in evidence.matches[:MOST_TRIED] if match.term.core <= match.keys]
    if whole:
        return all(may_mean_otherwise([match], told) for match in whole)
    return may_mean_otherwise(said.pieces, told)


def _keeps_a_word(term: Term, plain: Term) -> bool:
    """Tell whether a word of a term is read plainly as it is written: a group of words alone has too many senses."""
    kept = {item.key for item in plain.items}
    return any(item.key in kept and item.role == "content" for item in term.items)


def _may_hold_all(term: Term, read: Sentences) -> bool:
    """Tell whether each word of a term, or one that begins like it, stands anywhere: for most terms, one does not."""
    return all(
        item.key in read.holding or item.folded[:ROOT] in read.by_root or item.key in WEAK_WORDS
        for item in term.items
        if item.role == "content"
    )


def _is_rule(items: Sequence[Item]) -> bool:
    """Tell whether something should be so, which nothing contradicts that was otherwise."""
    return any(item.folded in _RULES for item in items)
