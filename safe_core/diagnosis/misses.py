"""Why a required term was not found: what the output says of it, what the narrative says, and what follows."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import groupby
from typing import Literal

from rapidfuzz import fuzz

from safe_core.accepted_wordings import Accepted, is_accepted
from safe_core.diagnosis.alignment import OPPOSED, Term, is_said_alike, term_of
from safe_core.diagnosis.answers import Answer, Place, Texts, answer_in, contradicts
from safe_core.diagnosis.diagnosis_types import (
    Diagnosis,
    Evidence,
    InNarrative,
    Miss,
    NarrativeSays,
    Occurrence,
    OutputSays,
)
from safe_core.diagnosis.languages import is_read
from safe_core.diagnosis.output_texts import READ_BY, JoinedText, OutputText, Piece, asked_criteria, texts_of
from safe_core.diagnosis.reading import Reading, read, whole_words
from safe_core.diagnosis.tables import Nearest, kind_row, verdict_row
from safe_core.expectations import Expectations, prepare
from safe_core.generations import OutputField
from safe_core.matching_rule import normalise
from safe_core.outputs import Output
from safe_core.policy import DEFAULT_POLICY, Criterion
from safe_core.scoring import Details, score

_MOST_PLACES = 20  # in fields that a criterion does not read where a term is looked for
_MOST_COMPARED = 2_000  # characters of a term and of a passage, to say how alike they are
_MOST_QUOTED = 160  # characters around what decides
_SILENT = 333  # thousandths of a term, anywhere in a narrative that says nothing of it
_LOOKS = 100_000  # occurrences that are asked whether they stand inside a word, over all terms of a case


def diagnose(
    expectations: Expectations,
    output: Output,
    narrative: str | None,
    not_asked_for: Collection[OutputField] = (),
    accepted: Accepted = (),
) -> Diagnosis:
    """Explain every missed term of a case, and say where the others stand.

    The misses of a criterion have no other reason where the model was asked for none of the fields that it reads; nor
    has a miss of which the output has an accepted wording.
    What is missing is what score() finds missing. Each text is read once; a term is compared with a bounded number of
    sentences.
    """
    details = score(prepare(expectations), output, DEFAULT_POLICY.default).details
    texts, told = texts_of(output), ReadNarrative(narrative)
    reader = cache(read)  # both criteria read the summary
    misses: list[Miss] = []
    missed: tuple[tuple[Literal["CR", "AC"], tuple[str, ...]], ...] = (
        ("CR", details.cr_missing),
        ("AC", details.ac_missing),
    )
    for criterion, terms in missed:
        sides = Sides(criterion, texts, reader)
        for term in terms:
            miss = Miss(criterion, term, "absent", told.holds(term), None, 0.0, "not_asked_for")
            if criterion in asked_criteria(not_asked_for):
                miss = explain(criterion, term, sides, told)
            if is_accepted(accepted, criterion, term, output, sides.contradicts):
                miss = replace(miss, verdict="accepted", remedy="none", row="", missing_words=())
            misses.append(miss)
    return Diagnosis(tuple(misses), tuple(_occurrences(details, texts, told)))


def _occurrences(details: Details, texts: Sequence[OutputText], told: "ReadNarrative") -> list[Occurrence]:
    """Give the first occurrence of each term that was found or used, in the order CR, AH, AC."""
    every: tuple[tuple[Criterion, tuple[str, ...]], ...] = (
        ("CR", details.cr_found),
        ("AH", details.ah_violations),
        ("AC", details.ac_found),
    )
    looks = _LOOKS // max(100, sum(len(terms) for _, terms in every))
    found = []
    for criterion, terms in every:
        joined = JoinedText([text for text in texts if text.field in READ_BY[criterion]] if terms else [])
        for term in terms:
            needle = normalise(term)
            at = joined.text.find(needle)
            if at >= 0:
                _, passage = joined.pieces(at, at + len(needle))[0]
                inside_word = joined.only_inside_words(needle, looks)
                one = Occurrence(criterion, term, passage, inside_word)
                found.append(one if criterion == "AH" else told.beside(one))
    return found


class Fields:
    """Some fields of an output. The elements of each are read as lines: neighbours are neighbouring sentences."""

    def __init__(self, texts: Sequence[OutputText], reader: Callable[[str], Reading]) -> None:
        self._reader = reader
        self._fields = [JoinedText([*each], "\n", str) for _, each in groupby(texts, key=lambda text: text.field)]

    @cached_property
    def facts(self) -> Texts:
        """What they say; read when somebody asks."""
        return Texts([field.text for field in self._fields], self._reader)

    @property
    def are_english(self) -> bool:
        """Whether all of them can be read."""
        return all(is_read(field.text) for field in self._fields)

    def pieces(self, place: Place | None) -> list[Piece]:
        """Give a place, element by element."""
        return [] if place is None else self._fields[place.text].pieces(place.start, place.end)


class Sides:
    """The texts of an output by whether a criterion reads them."""

    def __init__(self, criterion: Criterion, texts: Sequence[OutputText], reader: Callable[[str], Reading]) -> None:
        unread = [text for text in texts if text.field not in READ_BY[criterion]]
        self._unread = [JoinedText([*each]) for _, each in groupby(unread, key=lambda text: text.field)]
        self.own = Fields([text for text in texts if text.field in READ_BY[criterion]], reader)
        self.claims = Fields([text for text in unread if text.field != "followup_questions"], reader)
        """What it does not read, but for the questions: they claim nothing."""

    def contradicts(self, wording: str) -> bool:
        """Tell whether what it reads says the contrary of a wording."""
        return contradicts(self.own.facts, wording)

    def also_in(self, term: str) -> list[Piece]:
        """Give the places that hold the whole term in fields that are not read, each field by itself."""
        needle = normalise(term)
        return [
            text.pieces(at, at + len(needle))[0] for text in self._unread for at in text.places(needle, _MOST_PLACES)
        ]


@dataclass(frozen=True)
class ReadNarrative:
    """The narrative of a case, read once; nothing is known of it if there is none."""

    text: str | None

    @cached_property
    def facts(self) -> Texts | None:
        return None if self.text is None or not self.text.strip() else Texts([self.text])

    @cached_property
    def _normalised(self) -> str:
        return normalise(self.text or "")

    def holds(self, term: str) -> InNarrative:
        """Tell whether it has a term word for word."""
        if self.text is None:
            return "no_narrative"
        return "yes" if normalise(term) in self._normalised else "no"

    def beside(self, found: Occurrence) -> Occurrence:
        """Say what it says of a term that was found; one that it has word for word is not read."""
        holds = self.holds(found.term)
        says = "supported" if holds == "yes" else self.says(term_of(found.term))[0]
        return replace(found, in_narrative=holds, narrative_says=says)

    def says(self, term: Term) -> tuple[NarrativeSays, Answer | None]:
        """Say what it says of a term."""
        if self.facts is None:
            return "unknown", None
        told = answer_in(term, self.facts)
        if told.says in {"said", "both"}:
            return "supported", told
        if not (term.facts and term.is_read) and self.holds(term.text) == "yes":
            return "supported", told  # "cancelled" alone has no fact to be found
        if told.says == "contradicted":
            return "contradicts", told
        if told.says == "absent" and not (term.is_read and is_read(self.text or "")):
            return "unknown", None
        return ("silent" if told.says == "absent" and told.cover < _SILENT else "partly"), told

    def has_too(self, said: Answer) -> bool:
        """Tell whether it also says what the output says instead of a term."""
        instead = tuple(
            edit.other._replace(weight=edit.fact.weight)
            for edit in said.against_edits
            if edit.other is not None and edit.fact.tells
        )
        if self.facts is None or not instead:
            return False
        return answer_in(Term("", instead), self.facts).says in {"said", "both"}


def explain(criterion: Literal["CR", "AC"], text: str, sides: Sides, narrative: ReadNarrative) -> Miss:
    """Explain a missed term."""
    term = term_of(text)
    said = answer_in(term, sides.own.facts)
    also_in = sides.also_in(text)
    elsewhere, share = _elsewhere(term, said, sides, also_in)
    output: OutputSays = "elsewhere" if elsewhere else said.says
    if output == "absent" and not (term.is_read and sides.own.are_english):
        output = "not_read"
    story, told = narrative.says(term)
    in_narrative = narrative.holds(text)
    has_it_too = output == "contradicted" and narrative.has_too(said)
    row = verdict_row(output, story, has_it_too=has_it_too)
    pieces = elsewhere or sides.own.pieces(said.against or said.place)
    found = " ".join(own.text[place.start : place.end] for own, place in pieces)
    return Miss(
        criterion=criterion,
        term=text,
        kind=kind_row(Nearest(text, output, said.deciding, found, said.sentences)).kind,
        in_narrative=in_narrative,
        passage=pieces[0][1] if pieces and (said.share or said.against or elsewhere) else None,
        similarity=_similarity(text, found) if found else 0.0,
        verdict=row.verdict,
        missing_words=_missing_words(text, said) if row.verdict in {"prompt", "output"} and not elsewhere else (),
        also_in=tuple(place for _, place in also_in),
        in_other_words=output == "said" and not all(map(is_said_alike, said.edits)),
        output_says=output,
        narrative_says=story,
        verbatim=in_narrative == "yes" and story == "supported",
        narrative_has_it_too=has_it_too,
        share=share,
        remedy=row.remedy,
        row=row.name,
        evidence=tuple(_evidence(said, sides, told, narrative.text, elsewhere)),
    )


def _elsewhere(term: Term, said: Answer, sides: Sides, also_in: Sequence[Piece]) -> tuple[Sequence[Piece], int]:
    """Give where a field that is not read says a term that the others do not, and the share of what decides."""
    if said.says not in {"part", "absent"}:
        return (), said.share
    if also_in:
        return also_in[:1], 1000
    claimed = answer_in(term, sides.claims.facts)
    return (sides.claims.pieces(claimed.place), claimed.share) if claimed.says == "said" else ((), said.share)


def _similarity(term: str, passage: str) -> float:
    """Give the likeness of two texts from 0 to 100, letter by letter and whatever their case."""
    return round(fuzz.ratio(term[:_MOST_COMPARED].lower(), passage[:_MOST_COMPARED].lower()), 1)


def _missing_words(text: str, said: Answer) -> tuple[str, ...]:
    """Give what the output does not say of a term, or says otherwise, as the term spells it."""
    return whole_words(text, [edit.fact for edit in said.deciding if edit.kind in OPPOSED | {"missing", "weaker"}])


def _evidence(
    said: Answer, sides: Sides, told: Answer | None, narrative: str | None, elsewhere: Sequence[Piece]
) -> list[Evidence]:
    """Quote the place of the output that has most of the term, what contradicts it if that is elsewhere, and the
    narrative's."""
    own = [piece for place in (said.place, said.against) for piece in sides.own.pieces(place)]
    found = [
        Evidence("output", *_cut(text.text, place.start, place.end), place.field, place.element)
        for text, place in elsewhere or dict.fromkeys(own)
    ]
    place = told and (told.against if told.says == "contradicted" else told.place)
    if place and narrative is not None:
        found.append(Evidence("narrative", *_cut(narrative, place.start, place.end)))
    return found


def _cut(text: str, start: int, end: int) -> tuple[int, int]:
    """Cut a stretch to what may be quoted, between words."""
    if end - start <= _MOST_QUOTED:
        return start, end
    quoted = text[start : start + _MOST_QUOTED + 1].rpartition(" ")[0].rstrip()
    return start, start + (len(quoted) or _MOST_QUOTED)
