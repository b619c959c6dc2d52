"""Explained cases: what was missed and why, what was used, what was found and where.

On a terminal or in a pipe, what differs is in brackets: `[-expected and not there-]`, `{+there and not expected+}`, and
`[a term]` that is pointed at. All else lists the terms that were missed or used, and those that were found in doubt.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.style import Style
from rich.text import Text

from consumer.offline.destinations import Format
from consumer.offline.explanations import counts_by_answer, counts_by_verdict, misses_documents, with_opinions
from consumer.offline.pages.console_layout import BOLD, LABEL_STYLES, RED, Layout, Line
from consumer.offline.pages.csv_tables import EXPLAINED, beside_terms, cell, csv_text, evidence_in_words
from consumer.offline.pages.document import Document, Item, Name, Section, Sentence, Texts
from consumer.offline.pages.formats import formats
from consumer.offline.pages.miss_wording import (
    IN_WORDS,
    NOTHING_LIKE_IT,
    ExplainedTerm,
    answers_in_words,
    explained_terms,
    misses_in_words,
    value_in_words,
)
from consumer.offline.pages.numbers import score
from consumer.offline.pages.quotes import ELLIPSIS, Mark, MarkedText, passage_of, text_of
from consumer.offline.pages.report_content import (
    MISMATCH,
    NOTHING_TO_CHECK,
    about_output,
    counted,
    lenient_of,
    score_of,
)
from consumer.offline.scored_run import CaseLine, Explanation, Remarked
from consumer.text import count_of, printable
from safe_core.diagnosis import doubtful_document
from safe_core.near_violations import near_document
from safe_core.unsupported import unsupported_document

_LONGEST_FAILURE: Final = 500


class _Look(NamedTuple):
    """How a mark is shown: its style, and the brackets around it, so that colour only repeats it."""

    style: Style | str = ""
    before: str = ""
    after: str = ""


_LOOKS: Final[Mapping[Mark, _Look]] = {
    "": _Look(),
    "lacking": _Look(Style(color="red", bold=True), "[-", "-]"),
    "further": _Look(Style(color="green", bold=True), "{+", "+}"),
    "pointed": _Look(Style(bold=True), "[", "]"),
}


def print_head(sentences: Sequence[str], console: Console) -> None:
    """Print what all cases together say; nothing where no term was missed."""
    layout = Layout.of(console)
    if sentences:
        layout.print(iter([*(line for each in sentences for line in layout.hanging(Text(), each)), Text()]))


def print_explanation(case: CaseLine, explanation: Explanation, console: Console, *, verbose: bool = True) -> None:
    """Print one case, text of its output included: what is remarkable of it, or with `verbose` all that is known.

    A closed pipe raises BrokenPipeError if the console is a PipedConsole.
    """
    layout = Layout.of(console)
    layout.print(_case(case, explanation, layout, verbose=verbose))


# --- a case -----------------------------------------------------------------------------------------------------------


def _case(case: CaseLine, explanation: Explanation, layout: Layout, *, verbose: bool) -> Iterator[Line]:
    yield from _heading(case, layout)
    if verbose:
        yield from layout.hanging(_INDENT, printable("; ".join(_numbers(case))))
    if explanation.decisions.verdict is not None:
        yield from layout.hanging(_INDENT, printable(f"judged {explanation.decisions.verdict.in_words()}"))
    yield from _failure(case, explanation, layout)
    if case.generation != "answered" and not verbose:
        return
    for group in explained_terms(explanation, case.remarked, shows_text=True):
        for each in group.terms:
            if verbose or each.is_remarkable:
                yield from _term(each, layout, verbose=verbose)
    for value in case.unsupported:
        lead = Text.assemble("  ", ("value  ", BOLD), printable(value.text), "  ")
        yield from layout.hanging(lead, printable(value_in_words(value, explanation)))


_INDENT: Final = Text("  ")


def _heading(case: CaseLine, layout: Layout) -> Iterator[Line]:
    if case.input_matches is False:
        warning = f"This output was {MISMATCH} than that of its test case: what follows says nothing about the prompt."
        yield from layout.wrapped(Text(warning, RED))
    scores = "  ".join(
        f"{each.criterion} {score_of(each)}{f' below {each.missed}' if each.missed else ''}" for each in case.judged
    )
    nothing = about_output(case) or (NOTHING_TO_CHECK if all(case.row.vacuous) else None)
    about = f" ({nothing})" if nothing else ""
    label = (case.label.upper(), LABEL_STYLES[case.label])
    yield from layout.hanging(Text.assemble((printable(case.test_id), BOLD), "  ", label, f"{about}  "), scores)


def _numbers(case: CaseLine) -> Iterator[str]:
    """Give what the scores are made of."""
    yield f"batch {case.batch_id}" + ("" if case.archetype is None else f", archetype {case.archetype}")
    for judged in case.judged:
        beside = lenient_of(case, judged.criterion)
        yield f"{judged.criterion} {counted(case, judged.criterion)}" + (f" ({beside})" if beside else "")
    yield f"composite {score(case.row.scores.composite)}"


def _failure(case: CaseLine, explanation: Explanation, layout: Layout) -> Iterator[Line]:
    """Say what the engine says of a call that failed: it may quote the model, as only this page and review may."""
    if case.generation == "failed":
        said = explanation.output.error_message.strip()[:_LONGEST_FAILURE]
        why = f": {printable(said)}" if said else ""
        yield from layout.hanging(_INDENT, f"The call of the model failed, so there is nothing to explain{why}")


# --- its terms --------------------------------------------------------------------------------------------------------


def _term(term: ExplainedTerm, layout: Layout, *, verbose: bool) -> Iterator[Line]:
    lead = Text.assemble("  ", (f"{_word_for(term):6} ", BOLD), f"{term.criterion}  ")
    yield from layout.hanging(lead, signed(term.expected, layout) if term.expected else printable(term.text))
    indent = Text(" " * lead.cell_len)
    for line in _about(term, layout, verbose=verbose):
        yield from layout.hanging(indent, line)


def _about(term: ExplainedTerm, layout: Layout, *, verbose: bool) -> Iterator[Text | str]:
    if term.place:
        where = f"{term.how} in {term.place if verbose else term.place.partition(',')[0]}"
        yield Text.assemble(f"{where}: ", signed(term.found, layout)) if term.found else where
    if term.narrative and term.narrative != [MarkedText(NOTHING_LIKE_IT)]:
        yield Text.assemble("the narrative says: ", signed(term.narrative, layout))
    if term.advice:
        yield printable(term.advice + (f" ({term.answers})" if term.answers else ""))
    if verbose and term.verdict:
        yield "; ".join(filter(None, (term.kind, term.row and f"row {term.row}")))
    yield from (printable(f"{who}: {said}") for who, said in term.opinions if said)


def _word_for(term: ExplainedTerm) -> str:
    if term.verdict is not None:
        return IN_WORDS[term.verdict]
    return "doubt" if term.is_doubtful else term.how


def signed(texts: Sequence[MarkedText], layout: Layout) -> Text:
    """Give a text with what differs in brackets, so that colour only repeats it."""
    parts = []
    for each in texts:
        look = _LOOKS[each.mark]
        words = layout.ellipsis if each == ELLIPSIS else printable(each.text)
        parts.append((f"{look.before}{words}{look.after}", look.style))
    return Text.assemble(*parts)


# --- JSON, CSV and pages ----------------------------------------------------------------------------------------------


class ExplainedCase(NamedTuple):
    """A scored case and why it scored as it did."""

    case: CaseLine
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class Explained:
    """Explained cases as they are told; `beside` is what else is said of all of them, and is not in the JSON."""

    cases: Sequence[ExplainedCase]
    beside: Sequence[str] = ()
    include_text: bool = False

    @property
    def headline(self) -> str:
        """Say how much there is."""
        return f"{count_of(len(self.cases), 'case')} explained"

    @property
    def head(self) -> list[str]:
        """Say what the misses of the cases that have reasons come to: by both answers, and by verdict."""
        counts = self._counts()
        return [said for said in (answers_in_words(counts), misses_in_words(counts), *self.beside) if said]

    def _counts(self) -> dict[str, Any]:
        misses = [miss for each in self.cases if each.case.has_reasons for miss in each.explanation.diagnosis.misses]
        return {"misses": len(misses), "miss_verdicts": counts_by_verdict(misses), **counts_by_answer(misses)}

    def document(self) -> dict[str, Any]:
        """Give the JSON; the counts by verdict add up to the misses of the cases that have reasons."""
        cases = [each.case for each in self.cases]
        return {
            "cases": len(cases),
            **self._counts(),
            "doubtful_hits": sum(len(case.doubtful) for case in cases),
            "near_violations": sum(len(case.near) for case in cases),
            "missing_outputs": sum(case.generation is None for case in cases),
            "failed_generations": sum(case.generation == "failed" for case in cases),
            "input_mismatches": sum(case.input_matches is False for case in cases),
            "results": [
                with_opinions(_result(each, include_text=self.include_text), each.explanation.opinions)
                for each in self.cases
            ],
        }


def _result(each: ExplainedCase, *, include_text: bool) -> dict[str, Any]:
    return {
        "test_id": each.case.test_id,
        "batch_id": each.case.batch_id,
        "archetype": each.case.archetype,
        "label": each.case.label,
        "scores": each.case.row.scores._asdict(),
        "answered": each.case.generation == "answered",
        "generation": each.case.generation,
        "input_matches": each.case.input_matches,
        "doubtful": [doubtful_document(hit) for hit in each.case.doubtful],
        "misses": misses_documents(each.explanation, include_text=include_text),
        "violations": [*_violations(each, include_text=include_text)],
        "near_violations": [*_near_violations(each, include_text=include_text)],
        "unsupported": _unsupported_documents(each.case),
        "decisions": each.explanation.decisions.document(include_text=include_text),
    }


def _violations(explained: ExplainedCase, *, include_text: bool) -> Iterator[dict[str, Any]]:
    """Give each forbidden term that was used, and the first place where it was."""
    for used in explained.explanation.diagnosis.occurrences:
        if used.criterion == "AH":
            told = {"criterion": "AH", "term": used.term, **asdict(used.passage)}
            text = {"text": text_of(explained.explanation.output, used.passage)} if include_text else {}
            yield told | text


def _unsupported_documents(case: CaseLine) -> list[dict[str, Any]] | None:
    """Give the unsupported values, None where no narrative is known with which they could be compared."""
    return None if case.has_unchecked_values else [unsupported_document(value) for value in case.unsupported]


def _near_violations(explained: ExplainedCase, *, include_text: bool) -> Iterator[dict[str, Any]]:
    for near in explained.case.near:
        text = {"text": text_of(explained.explanation.output, passage_of(near))} if include_text else {}
        yield near_document(near) | text


def _csv(found: Explained) -> str:
    columns = (*EXPLAINED, "text") if found.include_text else EXPLAINED
    rows: list[Sequence[str]] = [columns]
    for each in found.cases:
        case = each.case
        start = cell(case.batch_id), cell(case.test_id), case.label, about_output(case) or "answered"
        decided = partial(each.explanation.decisions.of_term, shows_text=found.include_text)
        for told in _told(each, include_text=found.include_text):
            told["decided"] = decided(told["criterion"], told["term"])
            values = (told.get(name) for name in columns[len(start) :])
            rows.append((*start, *("" if value is None else cell(str(value)) for value in values)))
    return csv_text(rows)


def _told(explained: ExplainedCase, *, include_text: bool) -> Iterator[dict[str, Any]]:
    """Give what is said of each term: those missed, used, and found in doubt; then what stands beside the terms."""
    output, hits = explained.explanation.output, explained.case.doubtful
    for miss in misses_documents(explained.explanation, include_text=include_text):
        places = "; ".join(f"{place['field']}[{place['element']}]" for place in miss["also_in"])
        words = "; ".join(miss["missing_words"])
        evidence = evidence_in_words(miss["evidence"])
        listed = {"missing_words": words, "also_in": places.replace("[None]", ""), "evidence": evidence}
        yield miss | listed | {"outcome": "missing"}
    kinds = {hit.term: hit.kind for hit in hits if hit.criterion == "AH"}
    for used in _violations(explained, include_text=include_text):
        yield used | {"outcome": "used", "doubtful": kinds.get(used["term"])}
    for hit in hits:
        if hit.criterion != "AH":
            text = {"text": text_of(output, hit.passage)} if include_text else {}
            yield doubtful_document(hit) | {"kind": None, "outcome": "found", "doubtful": hit.kind} | text
    remarked: tuple[Remarked, ...] = (*explained.case.near, *explained.case.unsupported)
    for beside, each in zip(beside_terms(explained.case), remarked, strict=True):
        yield beside | ({"text": text_of(output, passage_of(each))} if include_text else {})


def page(found: Explained) -> Document:
    """Give each case with the terms that were missed, used, or found in doubt."""
    return Document(
        "explanation",
        Sentence("Why terms were missed"),
        found.headline,
        notes=found.head,
        sections=[_section(each, include_text=found.include_text) for each in found.cases],
    )


def _section(each: ExplainedCase, *, include_text: bool) -> Section:
    case, explanation = each
    about = f", {nothing}" if (nothing := about_output(case)) else ""
    parts: list[Sentence | Item] = [
        Sentence(", ".join(f"{judged.criterion} {score_of(judged)}" for judged in case.judged))
    ]
    if (verdict := explanation.decisions.verdict) is not None:
        parts.append(Sentence("Judged {}", (Name(verdict.in_words(shows_text=include_text)),)))
    if case.generation == "answered":
        groups = explained_terms(explanation, case.remarked, shows_text=include_text)
        parts += [_item(term) for group in groups for term in group.terms if term.verdict or term.is_remarkable]
        said = ((value.text, Name(value_in_words(value, explanation))) for value in case.unsupported)
        parts += [Item(Sentence("{}: {}", texts), word="value") for texts in said]
    return Section(Sentence(f"{{}}: {case.label}{about}", (Name(case.test_id),)), parts)


def _item(term: ExplainedTerm) -> Item:
    about = f" ({'; '.join(filter(None, (term.kind, term.answers)))})" if term.verdict else ""
    below = [Texts.of(who, [Name(said)]) for who, said in term.opinions if said]
    # what is said of a miss may quote texts
    said, more = (term.advice, "") if term.verdict else (term.place, f". {term.advice}".rstrip())
    line = Sentence(f"{term.criterion} {{}}{about}: {{}}{more}", (term.text, Name(said)))
    return Item(line, word=_word_for(term), below=below)


RENDERED: Final[Mapping[Format, Callable[[Explained], str]]] = {**formats(page, Explained.document), "csv": _csv}
"""Each format of a file, and what makes it; to standard output, print_explanation() is the console's."""
