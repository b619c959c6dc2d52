"""The text that a diagnosis points at: its place, its context, how it differs from the term, and all around it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from unicodedata import category

from rapidfuzz.distance import Indel

from consumer.offline.pages.document import Mark, MarkedText
from consumer.offline.scored_run import Explanation, Remarked
from consumer.text import escaped
from safe_core import Expectations, Output
from safe_core.diagnosis import DoubtfulHit, Evidence, Miss, Passage, diagnose
from safe_core.near_violations import NearViolation
from safe_core.unsupported import Unsupported

Stretch = tuple[int, int]
"""Start and end of a part of a text, in characters; the end is not included."""


_ONE_OF: Final = {"signals": "signal", "followup_questions": "question"}


def element_of(output: Output, passage: Passage) -> str:
    """Give the whole element that contains a passage."""
    if passage.field == "summary":
        return output.summary
    texts: tuple[str, ...] = getattr(output, passage.field)
    return texts[passage.element or 0]


def passage_of(remarked: Remarked) -> Passage:
    """Give the place of something that is said of an output beside the scores."""
    if isinstance(remarked, NearViolation):
        return Passage("followup_questions", remarked.element, remarked.start, remarked.end)
    return remarked.passage


def text_of(output: Output, passage: Passage) -> str:
    """Give the passage itself, as the output spells it."""
    return element_of(output, passage)[passage.start : passage.end]


def element_name(passage: Passage) -> str:
    """Name the element that holds a passage as people count, "signal 2" or "summary", which has no elements."""
    return passage.field if passage.element is None else f"{_ONE_OF[passage.field]} {passage.element + 1}"


def place_of(passage: Passage) -> str:
    """Say where a passage is, as "signal 2, characters 1 to 19"."""
    return f"{element_name(passage)}, {characters_of(passage)}"


def characters_of(place: Passage | Evidence) -> str:
    """Say which characters of its element or of the narrative a place has, the first one being 1."""
    return f"characters {place.start + 1} to {place.end}"


def nearest_in(narrative: str, terms: Sequence[str]) -> Mapping[str, Passage]:
    """Find the places where a narrative has terms, or comes closest to them, if it has anything like them."""
    asked = diagnose(Expectations(tuple(terms), (), ()), Output((narrative,), "", ()), None)
    near = {miss.term: miss.passage for miss in asked.misses if miss.kind != "absent" and miss.passage is not None}
    return near | {found.term: found.passage for found in asked.occurrences}


def in_narrative(explanation: Explanation, doubtful: Sequence[DoubtfulHit]) -> list[Stretch]:
    """Find the places where a case's narrative has the terms that were missed or doubted, or comes closest to them."""
    if explanation.narrative is None:
        return []
    places: list[Passage | Evidence] = [told for miss in explanation.diagnosis.misses if (told := told_of(miss))]
    if doubtful:
        places += nearest_in(explanation.narrative, [hit.term for hit in doubtful]).values()
    return [(each.start, each.end) for each in places]


def told_of(miss: Miss) -> Evidence | None:
    """Give the place where the narrative says a term, comes closest to it or says otherwise; None if it is silent."""
    told = (each for each in miss.evidence if each.side == "narrative")
    return None if miss.narrative_says == "silent" else next(told, None)


def evidence_text(explanation: Explanation, place: Evidence) -> str:
    """Give the words at a place that decides, in the output or in the narrative."""
    if place.passage is not None:
        return text_of(explanation.output, place.passage)
    return (explanation.narrative or "")[place.start : place.end]


def with_punctuation_of(term: str, text: str, passage: Passage) -> str:
    """Give a passage with the punctuation around it that the term has too, since a passage itself ends with a word."""
    start, end = passage.start, passage.end
    before, after = _AT_START.search(term), _AT_END.search(term)
    if before and text.endswith(before[0], 0, start):
        start -= len(before[0])
    if after and text.startswith(after[0], end):
        end += len(after[0])
    return text[start:end]


_AT_START: Final = re.compile(r"^[^\w\s]+")
_AT_END: Final = re.compile(r"(?<![^\w\s])[^\w\s]+$")

# --- what is marked in a text -----------------------------------------------------------------------------------------

ELLIPSIS: Final = MarkedText("…")


def marked_texts(text: str, stretches: Iterable[Stretch] = (), mark: Mark = "") -> list[MarkedText]:
    """Cut a text into the marked stretches and the text between them, whose line breaks become spaces."""
    return _marked(text, [(start, end, mark) for start, end in stretches])


def _marked(text: str, marks: Iterable[tuple[int, int, Mark]]) -> list[MarkedText]:
    found, at = [], 0
    for start, end, mark in marks:
        found += [MarkedText(on_one_line(text[at:start])), MarkedText(_visible(text[start:end]), mark)]
        at = end
    return [*found, MarkedText(on_one_line(text[at:]))]


def on_one_line(text: str) -> str:
    """Replace line breaks by spaces: they make no difference where nothing is marked."""
    return re.sub(r"[ \t]*[\r\n\t][ \t\r\n]*", " ", text)


def _visible(text: str) -> str:
    """Escape what nobody could see, such as a no-break space or an accent without its letter."""
    lone = all(category(character).startswith("M") for character in text)
    return "".join(escaped(each) if lone or not each.isprintable() else each for each in text)


_AROUND: Final = 40
"""Characters of context that a found term is shown with, on either side."""


def around(text: str, passage: Passage | Evidence) -> list[MarkedText]:
    """Point at a passage in some of its context, which is cut between words if a space is near."""
    first, last = max(0, passage.start - _AROUND), min(len(text), passage.end + _AROUND)
    if first and (space := text.find(" ", first, passage.start)) >= 0:
        first = space + 1
    if last < len(text) and (space := text.rfind(" ", passage.end, last)) >= 0:
        last = space
    quoted = marked_texts(text[first:last], [(passage.start - first, passage.end - first)], "pointed")
    return [*([ELLIPSIS] if first else []), *quoted, *([ELLIPSIS] if last < len(text) else [])]


# --- what differs -----------------------------------------------------------------------------------------------------

_WORDS: Final = re.compile(r"\d+(?:[.,:/]\d+)+|\w+|[^\w\s]")
_WORDS_AND_SPACES: Final = re.compile(r"\s+|\d+(?:[.,:/]\d+)+|\w+|[^\w\s]")


def differences(expected: str, found: str) -> tuple[list[Stretch], list[Stretch]]:
    """Give the words of each text that the other lacks; upper and lower case count as equal.

    If both have the same words, give those in a different place; if the order is the same too, compare the spaces.
    """
    first, second = _differing([*_WORDS.finditer(expected)], [*_WORDS.finditer(found)])
    if not first and not second:
        first, second = _differing([*_WORDS_AND_SPACES.finditer(expected)], [*_WORDS_AND_SPACES.finditer(found)])
    return [*_joined(first, expected)], [*_joined(second, found)]


def _differing(first: Sequence[re.Match[str]], second: Sequence[re.Match[str]]) -> tuple[list[Stretch], list[Stretch]]:
    words, others = [match[0].lower() for match in first], [match[0].lower() for match in second]
    changes = [change for change in Indel.opcodes(words, others) if change.tag != "equal"]
    lacking = [at for change in changes for at in range(change.src_start, change.src_end)]
    further = [at for change in changes for at in range(change.dest_start, change.dest_end)]
    one, other = Counter(words[at] for at in lacking), Counter(others[at] for at in further)
    moved = one & other
    if one != other:
        lacking = [at for at in lacking if words[at] not in moved]
        further = [at for at in further if others[at] not in moved]
    return [first[at].span() for at in lacking], [second[at].span() for at in further]


def _joined(stretches: Iterable[Stretch], text: str | None = None) -> Iterator[Stretch]:
    """Join stretches that overlap or, with their text, that have only space between them."""
    start, end = 0, 0
    for first, last in sorted(stretches):
        is_apart = first > end if text is None else bool(text[end:first].strip())
        if is_apart or start == end:
            if start < end:
                yield start, end
            start = first
        end = max(end, last)
    if start < end:
        yield start, end


# --- narrative and output side by side --------------------------------------------------------------------------------

Lines = Sequence[Sequence[MarkedText]]
"""A text line by line; lines without text are left out."""


class SideBySide(NamedTuple):
    """Texts line by line; `narrative` is None where the test case has none."""

    narrative: Lines | None
    signals: Sequence[Lines]
    summary: Lines
    questions: Sequence[Lines]


def side_by_side(explanation: Explanation, remarked: Sequence[Remarked]) -> SideBySide:
    """Mark the passages of misses and of what is remarked, and what the narrative has of the required terms."""
    diagnosis, output = explanation.diagnosis, explanation.output
    spoken_of = [
        *(miss.passage for miss in diagnosis.misses if miss.passage is not None),
        *(place for miss in diagnosis.misses for place in miss.also_in),
        *(each.passage for miss in diagnosis.misses for each in miss.evidence if each.passage is not None),
        *(each.passage for each in diagnosis.occurrences if each.criterion == "AH"),
        *(passage_of(each) for each in remarked if not isinstance(each, Unsupported)),
    ]
    values = [each.passage for each in remarked if isinstance(each, Unsupported)]
    told = None
    if explanation.narrative is not None:
        doubtful = [hit for hit in remarked if isinstance(hit, DoubtfulHit)]
        told = _lines(explanation.narrative, in_narrative(explanation, doubtful))

    def lines(text: str, field: str, element: int | None) -> Lines:
        return _lines(text, _within(spoken_of, field, element), _within(values, field, element))

    return SideBySide(
        told,
        [lines(text, "signals", at) for at, text in enumerate(output.signals)],
        lines(output.summary, "summary", None),
        [lines(text, "followup_questions", at) for at, text in enumerate(output.followup_questions)],
    )


def _within(passages: Iterable[Passage], field: str, element: int | None) -> Iterator[Stretch]:
    return ((each.start, each.end) for each in passages if (each.field, each.element) == (field, element))


def _lines(text: str, stretches: Iterable[Stretch], values: Iterable[Stretch] = ()) -> Lines:
    marks, lines, begin = [*_marks(stretches, values)], [], 0
    for line in text.splitlines(keepends=True):
        end = begin + len(line.rstrip())
        inside = [(max(first, begin) - begin, min(last, end) - begin, mark) for first, last, mark in marks]
        if line.strip():
            lines.append(_marked(line.rstrip(), [each for each in inside if each[0] < each[1]]))
        begin += len(line)
    return lines


def _marks(stretches: Iterable[Stretch], values: Iterable[Stretch]) -> list[tuple[int, int, Mark]]:
    """Give what is marked in a text, in order; values are marked as what they are within other stretches, too."""
    made_up = [*_joined(values)]
    found: list[tuple[int, int, Mark]] = [(first, last, "unsupported") for first, last in made_up]
    for start, end in _joined(stretches):
        at = start
        for first, last in made_up:
            if first < end and last > at:
                found.append((at, first, "pointed"))
                at = last
        found.append((at, end, "pointed"))
    return sorted(each for each in found if each[0] < each[1])
