"""How much of a case's required terms an output says, word for word or not; see lenient_scores for the numbers.

A module apart, because the diagnosis behind it takes a moment to load, and who only scores does without it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from safe_core.accepted_wordings import Accepted, is_accepted
from safe_core.diagnosis.alignment import term_of
from safe_core.diagnosis.answers import Texts, answer_in, contradicts
from safe_core.diagnosis.doubtful_hits import DoubtfulHit, DoubtfulKind, doubtful_hits
from safe_core.diagnosis.output_texts import READ_BY, texts_of
from safe_core.diagnosis.reading import MAX_WORDS, Reading, read
from safe_core.lenient_scores import Lenient, Marks, Recall, TermCriterion
from safe_core.outputs import Output
from safe_core.scoring import Details

_WHOLE: Final = 1000
_UNTRUE: Final = frozenset[DoubtfulKind](("negated", "other_value"))
"""The doubts by which a found term is not there; one within a longer word still may be."""


class Beside(NamedTuple):
    """What the texts of a case say beside its scores: the doubtful hits, and the lenient recall."""

    doubtful: tuple[DoubtfulHit, ...]
    lenient: Lenient


def beside_scores(output: Output, narrative: str | None, details: Details, accepted: Accepted = ()) -> Beside:
    """Judge the terms of a case, reading each text once; `details` are those of score() for this output."""
    known: dict[str, Reading] = {}

    def reader(text: str, most: int = MAX_WORDS) -> Reading:
        if len(text) > most:  # it may have more words than are to be read
            return read(text, most)
        return known[text] if text in known else known.setdefault(text, read(text))

    doubtful = doubtful_hits(output, narrative, details, reader)
    return Beside(doubtful, _lenient(output, details, doubtful, accepted, reader))


def marks_of(output: Output, details: Details, accepted: Accepted) -> Marks:
    """Give the numbers of a case whose narrative is not known."""
    return beside_scores(output, None, details, accepted).lenient.marks


def _lenient(
    output: Output,
    details: Details,
    doubtful: Sequence[DoubtfulHit],
    accepted: Accepted,
    reader: Callable[[str], Reading],
) -> Lenient:
    texts = texts_of(output)

    def recall(criterion: TermCriterion, found: Sequence[str], missing: Sequence[str]) -> Recall:
        untrue = sum(hit.criterion == criterion and hit.kind in _UNTRUE for hit in doubtful)
        own = Texts([text.text for text in texts if text.field in READ_BY[criterion]] if missing else [], reader)
        asked = [
            term for term in missing if not is_accepted(accepted, criterion, term, output, partial(contradicts, own))
        ]
        answers = [answer_in(term_of(term), own) for term in asked]
        there = len(found) - untrue + len(missing) - len(asked)
        return Recall(
            terms=len(found) + len(missing),
            found=len(found),
            doubtful=sum(hit.criterion == criterion for hit in doubtful),
            said=sum(answer.says == "said" for answer in answers),
            accepted=len(missing) - len(asked),
            shares=_WHOLE * there + sum(each.share for each in answers if each.says != "contradicted"),
        )

    return Lenient(
        recall("CR", details.cr_found, details.cr_missing), recall("AC", details.ac_found, details.ac_missing)
    )
