"""Explained cases: what was missed and why, what was used, what was found and where.

What differs is in brackets, or marked where the format can: `[-expected and not there-]`, `{+there and not expected+}`,
and `[a term]` that is pointed at.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from consumer.offline.destinations import Format
from consumer.offline.explanations import counts_by_answer, counts_by_verdict, misses_documents, with_opinions
from consumer.offline.pages.csv_tables import EXPLAINED, beside_terms, cell, csv_text, evidence_in_words
from consumer.offline.pages.document import Document, Item, MarkedText, Name, Quote, Section, Sentence, Texts
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
from consumer.offline.pages.quotes import passage_of, text_of
from consumer.offline.pages.report_content import (
    MISMATCH,
    NOTHING_TO_CHECK,
    about_output,
    counted,
    lenient_of,
    score_of,
)
from consumer.offline.scored_run import CaseLine, Explanation, Remarked
from consumer.text import count_of, named
from safe_core import MAX_ID_LENGTH
from safe_core.diagnosis import doubtful_document
from safe_core.near_violations import near_document
from safe_core.unsupported import unsupported_document

_LONGEST_FAILURE: Final = 500
_NAMED: Final = 50


class ExplainedCase(NamedTuple):
    """A scored case and why it scored as it did."""

    case: CaseLine
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class Explained:
    """Explained cases as they are told; `beside` is what else is said of all of them, and is not in the JSON.

    Pages tell what is remarkable of each case or, with `verbose`, all that is known. They name cases that no model
    answered in a line, unless it was these that were asked for (`are_named`): there is nothing to explain.
    """

    cases: Sequence[ExplainedCase]
    beside: Sequence[str] = ()
    include_text: bool = False
    verbose: bool = False
    are_named: bool = False

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
    shown = [each for each in found.cases if each.case.generation == "answered" or found.are_named]
    others = [each.case for each in found.cases if each not in shown]
    return Document(
        "explanation",
        Sentence("Why terms were missed"),
        found.headline,
        notes=found.head,
        sections=[*(_section(each, found) for each in shown), *_unanswered(others)],
    )


def _unanswered(cases: Sequence[CaseLine]) -> Iterator[Section]:
    for generation, what in (("failed", "Failed generations"), (None, "No output")):
        if test_ids := [case.test_id for case in cases if case.generation == generation]:
            listed = Name(named(test_ids, _NAMED, MAX_ID_LENGTH))
            yield Section(Sentence(f"{what}: {count_of(len(test_ids), 'case')}"), [Sentence("{}", (listed,))])


def _section(each: ExplainedCase, found: Explained) -> Section:
    case, explanation = each
    nothing = about_output(case) or (NOTHING_TO_CHECK if all(case.row.vacuous) else None)
    scores = ", ".join(
        f"{each.criterion} {score_of(each)}{f' below {each.missed}' if each.missed else ''}" for each in case.judged
    )
    heading = f"{{}}: {case.label}{f' ({nothing})' if nothing else ''}, {scores}"
    parts = [*_about_case(each, found)]
    if case.generation == "answered" or found.verbose:
        groups = explained_terms(explanation, case.remarked, shows_text=found.include_text)
        every = (term for group in groups for term in group.terms)
        terms = (term for term in every if found.verbose or term.verdict or term.is_remarkable)
        parts += [_item(term, verbose=found.verbose) for term in terms]
    said = ((value.text, Name(value_in_words(value, explanation))) for value in case.unsupported)
    parts += [Item(Sentence("{}: {}", texts), word="value") for texts in said]
    return Section(Sentence(heading, (Name(case.test_id),)), parts or [Item(Sentence("Nothing to explain."))])


def _about_case(each: ExplainedCase, found: Explained) -> Iterator[Item]:
    case, explanation = each
    if case.input_matches is False:
        said = f"This output was {MISMATCH} than that of its test case: what follows says nothing about the prompt."
        yield Item(Sentence(said), word="Attention")
    if found.verbose:
        yield Item(Sentence("batch {}" + ("" if case.archetype is None else ", archetype {}"), _names(case)))
        yield Item(Sentence("; ".join(_numbers(case))))
    if (verdict := explanation.decisions.verdict) is not None:
        yield Item(Sentence("judged {}", (Name(verdict.in_words(shows_text=found.include_text)),)))
    if case.generation == "failed":
        # what the engine says may quote the model
        why = explanation.output.error_message.strip()[:_LONGEST_FAILURE] if found.include_text else ""
        said = "The call of the model failed, so there is nothing to explain"
        yield Item(Sentence(f"{said}: {{}}", (Name(why),)) if why else Sentence(said))


def _names(case: CaseLine) -> tuple[str, ...]:
    return tuple(Name(each) for each in (case.batch_id, case.archetype) if each is not None)


def _numbers(case: CaseLine) -> Iterator[str]:
    """Give what the scores are made of."""
    for judged in case.judged:
        beside = lenient_of(case, judged.criterion)
        yield f"{judged.criterion} {counted(case, judged.criterion)}" + (f" ({beside})" if beside else "")
    yield f"composite {score(case.row.scores.composite)}"


def _item(term: ExplainedTerm, *, verbose: bool) -> Item:
    expected = Quote(term.expected) if term.expected else Name(term.text)
    below = [Texts(what, [said]) for what, said in _about_term(term, verbose=verbose)]
    return Item(Sentence(f"{term.criterion} {{}}", (expected,)), word=_word_for(term), below=below)


def _about_term(term: ExplainedTerm, *, verbose: bool) -> Iterator[tuple[str, Sentence]]:
    if term.place:
        place = term.place if verbose else term.place.partition(",")[0]
        how = "where" if term.how == _word_for(term) else term.how
        yield how, Sentence(f"{place}: {{}}", (Quote(term.found),)) if term.found else Sentence(term.place)
    if term.narrative and term.narrative != [MarkedText(NOTHING_LIKE_IT)]:
        yield "narrative", Sentence("{}", (Quote(term.narrative),))
    if term.advice:
        yield "why", Sentence("{}" + (f" ({term.answers})" if term.answers else ""), (Name(term.advice),))
    if verbose and term.verdict:
        yield "row", Sentence("; ".join(filter(None, (term.kind, term.row))))
    yield from ((who, Sentence("{}", (Name(said),))) for who, said in term.opinions if said)


def _word_for(term: ExplainedTerm) -> str:
    if term.verdict is not None:
        return IN_WORDS[term.verdict]
    return "doubt" if term.is_doubtful else term.how


RENDERED: Final[Mapping[Format, Callable[[Explained], str]]] = {**formats(page, Explained.document), "csv": _csv}
"""Each format, and what makes it."""
