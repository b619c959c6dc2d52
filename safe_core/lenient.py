"""How much of a case's required terms an output says, word for word or not; see lenient_scores for the numbers.

A module apart, because the diagnosis behind it takes a moment to load, and who only scores does without it.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from safe_core.diagnosis.alignment import term_of
from safe_core.diagnosis.answers import Answer, Texts, answer_in
from safe_core.diagnosis.doubtful_hits import DoubtfulHit, DoubtfulKind, doubtful_hits
from safe_core.diagnosis.output_texts import READ_BY, texts_of
from safe_core.diagnosis.reading import MAX_WORDS, Reading, read
from safe_core.lenient_scores import Lenient, Recall, TermCriterion
from safe_core.outputs import Output
from safe_core.scoring import Details

_WHOLE: Final = 1000
_UNTRUE: Final = frozenset[DoubtfulKind](("negated", "other_value"))
"""The doubts by which a found term is not there; one within a longer word still may be."""


class Beside(NamedTuple):
    """What the texts of a case say beside its scores: the doubtful hits, and the lenient recall."""

    doubtful: tuple[DoubtfulHit, ...]
    lenient: Lenient


def beside_scores(output: Output, narrative: str | None, details: Details) -> Beside:
    """Judge the terms of a case, reading each text once; `details` are those of score() for this output."""
    known: dict[str, Reading] = {}

    def reader(text: str, most: int = MAX_WORDS) -> Reading:
        if len(text) > most:  # it may have more words than are to be read
            return read(text, most)
        return known[text] if text in known else known.setdefault(text, read(text))

    doubtful = doubtful_hits(output, narrative, details, reader)
    return Beside(doubtful, _lenient(output, details, doubtful, reader))


def _lenient(
    output: Output, details: Details, doubtful: Sequence[DoubtfulHit], reader: Callable[[str], Reading]
) -> Lenient:
    texts = texts_of(output)

    def recall(criterion: TermCriterion, found: Sequence[str], missing: Sequence[str]) -> Recall:
        own = Texts([text.text for text in texts if text.field in READ_BY[criterion]] if missing else [], reader)
        return _recall(
            found, [_answer(term, own) for term in missing], [h for h in doubtful if h.criterion == criterion]
        )

    return Lenient(
        recall("CR", details.cr_found, details.cr_missing), recall("AC", details.ac_found, details.ac_missing)
    )


def _answer(term: str, texts: Texts) -> Answer:
    """Ask what the texts say of a missed term; what else is accepted for it is to be asked for here."""
    return answer_in(term_of(term), texts)


def _recall(found: Sequence[str], missed: Sequence[Answer], doubts: Sequence[DoubtfulHit]) -> Recall:
    untrue = sum(hit.kind in _UNTRUE for hit in doubts)
    return Recall(
        terms=len(found) + len(missed),
        found=len(found),
        doubtful=len(doubts),
        said=sum(answer.says == "said" for answer in missed),
        shares=_WHOLE * (len(found) - untrue) + sum(each.share for each in missed if each.says != "contradicted"),
    )
