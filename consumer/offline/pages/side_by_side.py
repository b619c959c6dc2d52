"""A case's narrative and whole output, to be read side by side, with what the explanation speaks of marked."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from consumer.offline.pages.quotes import MarkedText, Stretch, marked_texts, nearest_in
from consumer.offline.scored_run import Explanation
from safe_core.diagnosis import DoubtfulHit, Passage

Lines = Sequence[Sequence[MarkedText]]
"""A text line by line; lines without text are left out."""


class SideBySide(NamedTuple):
    """Texts line by line; `narrative` is None where the test case has none."""

    narrative: Lines | None
    signals: Sequence[Lines]
    summary: Lines
    questions: Sequence[Lines]


def side_by_side(explanation: Explanation, doubtful: Sequence[DoubtfulHit]) -> SideBySide:
    """Mark the passages of misses, doubtful hits and forbidden terms, and what the narrative has of these terms."""
    diagnosis, output = explanation.diagnosis, explanation.output
    spoken_of = [
        *(miss.passage for miss in diagnosis.misses if miss.passage is not None),
        *(place for miss in diagnosis.misses for place in miss.also_in),
        *(each.passage for each in diagnosis.occurrences if each.criterion == "AH"),
        *(hit.passage for hit in doubtful),
    ]
    terms = [miss.term for miss in diagnosis.misses] + [hit.term for hit in doubtful]
    told = None
    if explanation.narrative is not None:
        places = nearest_in(explanation.narrative, terms).values()
        told = _lines(explanation.narrative, ((each.start, each.end) for each in places))
    return SideBySide(
        told,
        [_lines(text, _within(spoken_of, "signals", at)) for at, text in enumerate(output.signals)],
        _lines(output.summary, _within(spoken_of, "summary", None)),
        [
            _lines(text, _within(spoken_of, "followup_questions", at))
            for at, text in enumerate(output.followup_questions)
        ],
    )


def _within(passages: Iterable[Passage], field: str, element: int | None) -> Iterator[Stretch]:
    return ((each.start, each.end) for each in passages if (each.field, each.element) == (field, element))


def _lines(text: str, stretches: Iterable[Stretch]) -> Lines:
    marked, lines, begin = [*_merged(stretches)], [], 0
    for line in text.splitlines(keepends=True):
        end = begin + len(line.rstrip())
        inside = [(max(first, begin) - begin, min(last, end) - begin) for first, last in marked]
        if line.strip():
            lines.append(
                marked_texts(line.rstrip(), [(first, last) for first, last in inside if first < last], "pointed")
            )
        begin += len(line)
    return lines


def _merged(stretches: Iterable[Stretch]) -> Iterator[Stretch]:
    """Give stretches in order, those that overlap as one."""
    start, end = 0, 0
    for first, last in sorted(stretches):
        if first > end:
            if start < end:
                yield start, end
            start = first
        end = max(end, last)
    if start < end:
        yield start, end
