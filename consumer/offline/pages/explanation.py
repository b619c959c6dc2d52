"""One case explained on a terminal, or in a pipe: what was missed and why, what was used, what was found and where.

A terminal has its lines wrapped, anything else gets each whole. What differs is marked beneath: `-` is expected and not
there, `+` is there and not expected, `^` points at a term. Colour only repeats that.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from consumer.offline.pages.kinds import KIND_ADVICE, KIND_LABELS, NOT_IN_NARRATIVE
from consumer.offline.pages.quotes import Stretch, around, differences, element_of, place_of
from consumer.offline.pages.words import counted, score, without_output
from consumer.offline.scored_run import CaseLine, Explanation
from consumer.text import printable
from safe_core import CRITERIA, Expectations, Label, Output
from safe_core.diagnosis import InNarrative, Miss, Occurrence, Passage, diagnose

_BOLD, _DIM = Style(bold=True), Style(dim=True)
_LABEL_STYLES: Final = {
    "Pass": Style(color="green", bold=True),
    "Review": Style(color="black", bgcolor="yellow"),
    "Fail": Style(color="red", bold=True),
}
_LEAST_CELLS: Final = 20
_LINES_AT_ONCE: Final = 1_000


def print_explanation(case: CaseLine, explanation: Explanation, narrative: str | None, console: Console) -> None:
    """Print one case, text of its output included; `narrative` is what the model was given, None where nobody knows.

    A closed pipe raises BrokenPipeError if the console is a PipedConsole.
    """
    lines = explanation_lines(case, explanation, narrative, console)
    while block := list(islice(lines, _LINES_AT_ONCE)):
        console.print(Text("\n").join(block), soft_wrap=True)


def explanation_lines(
    case: CaseLine, explanation: Explanation, narrative: str | None, console: Console
) -> Iterator[Text]:
    """Yield the lines of one case as they fit the console."""
    sheet = _Sheet.of(console)
    diagnosis, output = explanation.diagnosis, explanation.output
    yield from _heading(case, sheet)
    yield from _misses(diagnosis.misses, output, narrative, sheet)
    used = [each for each in diagnosis.occurrences if each.criterion == "AH"]
    found = [each for each in diagnosis.occurrences if each.criterion != "AH"]
    yield from _section("Forbidden terms that were used", _occurrences(used, output, sheet), sheet)
    yield from _section("Required terms that were found", _occurrences(found, output, sheet), sheet)


# --- the sheet --------------------------------------------------------------------------------------------------------


class _Mark(NamedTuple):
    """How a stretch of text is told from what is around it: a sign beneath it, and a style where there are styles."""

    sign: str
    style: Style


_LACKING: Final = _Mark("-", Style(color="red", bold=True))
_FURTHER: Final = _Mark("+", Style(color="green", bold=True))
_POINTED: Final = _Mark("^", Style(bold=True))


@dataclass(frozen=True, slots=True)
class _Sheet:
    """What is written on; `width` in cells, None where a line may be as long as it is."""

    console: Console
    width: int | None
    ascii_only: bool

    @classmethod
    def of(cls, console: Console) -> "_Sheet":
        return cls(console, console.width if console.is_terminal else None, console.options.ascii_only)

    @property
    def ellipsis(self) -> str:
        return "..." if self.ascii_only else "…"

    def hanging(self, lead: Text, text: Text, mark: _Mark | None = None) -> Iterator[Text]:
        """Put a text behind a lead, what does not fit below itself, and signs below what is in the mark's style."""
        indent = " " * lead.cell_len
        for line in self._wrapped(text, lead.cell_len):
            line.rstrip()
            yield lead + line
            lead = Text(indent)
            if mark is not None and (signs := _signs(line, mark)):
                yield Text(indent) + Text(signs, mark.style)

    def _wrapped(self, text: Text, indent: int) -> Sequence[Text]:
        if self.width is None or text.cell_len <= self.width - indent:
            return [text]
        # On a terminal too narrow for anything, a column of single letters would help nobody.
        return [*text.wrap(self.console, max(self.width - indent, _LEAST_CELLS))]

    def row(self, name: str, text: Text, mark: _Mark | None = None) -> Iterator[Text]:
        """Give a named row below a term's title."""
        return self.hanging(Text.assemble((f"    {name:11}", _DIM)), text, mark)


def _signs(line: Text, mark: _Mark) -> str:
    """Give the line of signs that stands below a line, empty if nothing in it is marked."""
    marked = {at for span in line.spans if span.style == mark.style for at in range(span.start, span.end)}
    return "".join((mark.sign if at in marked else " ") * cell_len(char) for at, char in enumerate(line.plain)).rstrip()


def _section(heading: str, lines: Iterable[Text], sheet: _Sheet) -> Iterator[Text]:
    """Give lines below a heading, which is not there without any."""
    for number, line in enumerate(lines):
        if not number:
            yield Text()
            yield from sheet.hanging(Text(), Text(heading, _BOLD))
        yield line


# --- text from outside ------------------------------------------------------------------------------------------------


def _marked(text: str, stretches: Iterable[Stretch], mark: _Mark) -> Text:
    """Give a text from outside as it can be printed, some stretches of it in a mark's style."""
    shown, at = Text(), 0
    for start, end in stretches:
        shown.append(_unmarked(text[at:start]))
        piece = printable(text[start:end])
        # what nobody could see, and no sign could stand below
        shown.append(piece if cell_len(piece) else _escaped(piece), mark.style)
        at = end
    return shown.append(_unmarked(text[at:]))


def _unmarked(text: str) -> str:
    """Give a text with line breaks, where they make no difference, as spaces."""
    return printable(_BREAKS.sub(" ", text))


_BREAKS: Final = re.compile(r"[ \t]*[\r\n\t][ \t\r\n]*")


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in text)


def _quoted(text: str) -> Text:
    return Text(f'"{printable(text)}"')


# --- the case ---------------------------------------------------------------------------------------------------------


def _heading(case: CaseLine, sheet: _Sheet) -> Iterator[Text]:
    title = Text.assemble((printable(case.test_id), _BOLD), "  ", (case.label.upper(), _LABEL_STYLES[case.label]))
    if nothing := without_output(case):
        title.append(f"  ({nothing})")
    yield from sheet.hanging(Text(), title)
    archetype = "" if case.archetype is None else f", archetype {printable(case.archetype)}"
    yield from sheet.hanging(Text("  "), Text(f"batch {printable(case.batch_id)}{archetype}"))
    yield Text()
    missed = {shortfall.criterion: shortfall for shortfall in case.shortfalls}
    for criterion in CRITERIA:
        line = Text(f"{criterion} ")
        if criterion in missed:
            shortfall = missed[criterion]
            name, bound = shortfall.bound
            label: Label = "Fail" if shortfall.fails else "Review"
            line.append(score(shortfall.score, bound)).append(f"  {counted(case, criterion)}, ")
            line.append(f"below {name} {bound}", _LABEL_STYLES[label])
        else:
            line.append(f"{score(getattr(case.row.scores, criterion))}  {counted(case, criterion)}")
        yield from sheet.hanging(Text("  "), line)
    yield Text(f"  composite {score(case.row.scores.composite)}")


# --- the misses -------------------------------------------------------------------------------------------------------

_ORDER: Final[tuple[InNarrative, ...]] = ("no", "yes", "no_narrative")
_HEADINGS: Final[dict[InNarrative, str]] = {
    "no": f"Missed, and {NOT_IN_NARRATIVE}",
    "yes": "Missed, though the narrative has it",
    "no_narrative": "Missed; without a narrative nobody can tell whether it was there to be found",
}


def _misses(misses: Sequence[Miss], output: Output, narrative: str | None, sheet: _Sheet) -> Iterator[Text]:
    ordered = sorted(misses, key=lambda miss: _ORDER.index(miss.in_narrative))
    for stands, group in groupby(ordered, key=lambda miss: miss.in_narrative):
        lines = (
            line
            for number, miss in enumerate(group)
            for line in _miss(miss, output, narrative, sheet, first=not number)
        )
        yield from _section(_HEADINGS[stands], lines, sheet)


def _miss(miss: Miss, output: Output, narrative: str | None, sheet: _Sheet, *, first: bool) -> Iterator[Text]:
    if not first:
        yield Text()
    yield Text.assemble(f"  {miss.criterion}  ", (KIND_LABELS[miss.kind], _BOLD))
    yield from _side_by_side(miss, _found(miss, output), sheet)
    if miss.in_narrative == "no" and narrative is not None:
        yield from _in_narrative(miss, narrative, sheet)
    if miss.passage:
        yield from sheet.row("where", Text(f"{place_of(miss.passage)}, {miss.similarity:.0f}% alike"))
    if miss.absent_words:
        words = ", ".join(f"{printable(each.word)} ({each.type})" for each in miss.absent_words)
        yield from sheet.row("lacks", Text(words))
    if miss.in_narrative != "no":  # there the heading says what to do, whatever the kind
        yield from sheet.row("advice", Text(KIND_ADVICE[miss.kind]))


def _found(miss: Miss, output: Output) -> str | None:
    """Give the passage, with the punctuation around it that the term has too: a passage ends with a word."""
    if miss.passage is None:
        return None
    text, (start, end) = element_of(output, miss.passage), (miss.passage.start, miss.passage.end)
    before, after = _AT_START.search(miss.term.strip()), _AT_END.search(miss.term.strip())
    if before and text.endswith(before[0], 0, start):
        start -= len(before[0])
    if after and text.startswith(after[0], end):
        end += len(after[0])
    return text[start:end]


_AT_START: Final = re.compile(r"^[^\w\s]+")
_AT_END: Final = re.compile(r"(?<![^\w\s])[^\w\s]+$")


def _side_by_side(miss: Miss, found: str | None, sheet: _Sheet) -> Iterator[Text]:
    """Give the term above what was found, with marks where the two have more in common than not."""
    expected = miss.term.strip()
    if found is None:
        yield from sheet.row("expected", _marked(expected, (), _LACKING))
        yield from sheet.row("found", Text("nothing like it"))
        return
    lacking, further = ([], []) if miss.kind == "absent" else differences(expected, found)
    yield from sheet.row("expected", _marked(expected, lacking, _LACKING), _LACKING)
    yield from sheet.row("nearest" if miss.kind == "absent" else "found", _marked(found, further, _FURTHER), _FURTHER)


def _in_narrative(miss: Miss, narrative: str, sheet: _Sheet) -> Iterator[Text]:
    """Show how the narrative words it, if at all."""
    asked = diagnose(Expectations((miss.term,), (), ()), Output((narrative,), "", ()), None)
    nearest = next((each for each in asked.misses if each.passage and each.kind != "absent"), None)
    if nearest is None or nearest.passage is None:
        yield from sheet.row("narrative", Text("nothing like it"))
        return
    yield from sheet.row("narrative", _in_context(narrative, nearest.passage, sheet.ellipsis), _POINTED)


# --- what was found ---------------------------------------------------------------------------------------------------


def _occurrences(occurrences: Iterable[Occurrence], output: Output, sheet: _Sheet) -> Iterator[Text]:
    for each in occurrences:
        yield from sheet.hanging(Text(f"  {each.criterion}  "), _quoted(each.term))
        yield from sheet.row("where", Text(place_of(each.passage)))
        if each.criterion == "AH" or each.inside_word:
            shown = _in_context(element_of(output, each.passage), each.passage, sheet.ellipsis)
            yield from sheet.row("used" if each.criterion == "AH" else "found", shown, _POINTED)
        if each.inside_word:
            yield from sheet.row("attention", Text("it appears only inside longer words, and may not be meant"))


def _in_context(text: str, passage: Passage, ellipsis: str) -> Text:
    """Give a passage, pointed at, with what stands around it."""
    first, last = around(text, passage)
    shown = _marked(text[first:last], [(passage.start - first, passage.end - first)], _POINTED)
    return Text.assemble(ellipsis if first else "", shown, ellipsis if last < len(text) else "")
