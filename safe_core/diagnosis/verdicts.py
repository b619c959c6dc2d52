"""Who must act on a miss: whoever wrote the term, the prompt, or nobody, since the output is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from safe_core.diagnosis.comparison import CLAIMING, MOST_TRIED, claims_alike, share_of
from safe_core.diagnosis.kinds import Evidence, Finding, value
from safe_core.diagnosis.model import InNarrative, Kind, Passage, Verdict
from safe_core.diagnosis.passages import Match, nearest
from safe_core.diagnosis.sentences import Sentences
from safe_core.diagnosis.tokens import Item

_SAME_EVENT = 0.6  # of the other words of a term stand in a sentence that is about the same
_MOST_OF_IT = 0.75  # of a term stands in each of the passages that hold it together
_SAME_CLAIM = 0.8  # of the other words of a term stand in the sentence of the narrative that may settle a denial

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


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a miss, and what contradicts the term where something does."""

    verdict: Verdict
    contradicting: Finding | None = None


def judge(
    evidence: Evidence,
    kind: Kind,
    finding: Finding,
    also_in: Sequence[Passage],
    in_narrative: InNarrative,
    narrative: Sentences | None,
) -> Judgement:
    """Give the verdict on a miss (contract.md, "Verdicts"): the first rule that holds decides.

    What stands word for word in another field is for the prompt. What contradicts is settled by the narrative. What the
    narrative does not have in these words is for the term; for all else the kind of the miss decides.
    """
    if also_in:
        return Judgement("prompt")
    if narrative is not None and (contradicting := _contradicting(evidence, kind, finding)):
        settled = _settled(evidence, *contradicting, narrative, in_narrative)
        return Judgement(settled, contradicting[1] if settled == "output" else None)
    if in_narrative == "no" or (kind == "part" and _stands_in_pieces(evidence, finding)):
        return Judgement("term")
    return Judgement(BY_KIND[kind])


def _stands_in_pieces(evidence: Evidence, finding: Finding) -> bool:
    """Tell whether each word that a passage lacks stands in another one that holds most of the term."""
    words = [item for item in finding.absent if item.role == "content"]
    if not words or len(words) < len(finding.absent):
        return False
    return all(
        any(match.share >= _MOST_OF_IT and item.key in match.keys for match in evidence.matches[:MOST_TRIED])
        for item in words
    )


def _contradicting(evidence: Evidence, kind: Kind, finding: Finding) -> tuple[Kind, Finding] | None:
    """Find what contradicts a term: in the fields that are read, or as another value in the others."""
    if kind in {"value", "polarity"}:
        return kind, finding
    if kind in {"part", "absent", "other_field"}:
        elsewhere = Evidence(evidence.term, evidence.unread, evidence.read, evidence.most_sentences)
        if found := value(elsewhere):
            return "value", found
    return None


def _settled(
    evidence: Evidence, kind: Kind, finding: Finding, narrative: Sentences, in_narrative: InNarrative
) -> Verdict:
    """Ask the narrative which of the two is right."""
    told = nearest(evidence.term, narrative, evidence.most_sentences)[:MOST_TRIED]
    backs_term = in_narrative == "yes" or any(_backs(match, kind, finding.absent) for match in told)
    backs_output = any(_backs_output(match, kind, finding) for match in told)
    if backs_term and backs_output:
        return "look"
    return "output" if backs_term else "term"


def _backs(match: Match, kind: Kind, expected: Sequence[Item]) -> bool:
    """Tell whether a sentence of the narrative says what the term says."""
    if kind == "polarity":
        return share_of(match, *CLAIMING) >= _SAME_CLAIM and claims_alike(match)
    keys = {item.key for item in match.items}
    return share_of(match, "value") >= _SAME_EVENT and all(item.key in keys for item in expected)


def _backs_output(match: Match, kind: Kind, finding: Finding) -> bool:
    """Tell whether a sentence of the narrative says what the output says instead."""
    if kind == "polarity":
        return share_of(match, *CLAIMING) >= _SAME_CLAIM and not claims_alike(match)
    if finding.instead is None or share_of(match, "value") < _SAME_EVENT:
        return False
    return any(item.key == finding.instead.item.key for item in match.items)
