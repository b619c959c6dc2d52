"""Why a required term was not found: what the output says of it, what the narrative says, and what follows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from rapidfuzz import fuzz

from safe_core.diagnosis.alignment import OPPOSED, Term, is_said_alike, term_of
from safe_core.diagnosis.answers import Answer, Place, Texts, answer_in
from safe_core.diagnosis.diagnosis_types import (
    Evidence,
    InNarrative,
    Miss,
    NarrativeSays,
    Occurrence,
    OutputSays,
    Passage,
)
from safe_core.diagnosis.joined_text import JoinedText
from safe_core.diagnosis.languages import is_read
from safe_core.diagnosis.output_texts import READ_BY, FieldText, OutputText, field_texts
from safe_core.diagnosis.reading import Reading, read
from safe_core.diagnosis.tables import Nearest, kind_row, verdict_row
from safe_core.matching_rule import normalise

_MOST_PLACES = 20  # in fields that a criterion does not read where a term is looked for
_MOST_COMPARED = 2_000  # characters of a term and of a passage, to say how alike they are
_MOST_QUOTED = 160  # characters around what decides
_SILENT = 333  # thousandths of a term, anywhere in a narrative that says nothing of it


class Fields:
    """The texts of an output by whether a criterion reads them; `reader` keeps what another criterion has read."""

    def __init__(
        self, criterion: Literal["CR", "AC"], texts: Sequence[OutputText], reader: Callable[[str], Reading] = read
    ) -> None:
        self._texts = texts
        self._reader = reader
        self.read = field_texts([text for text in texts if text.field in READ_BY[criterion]])
        self._unread = [text for text in texts if text.field not in READ_BY[criterion]]

    @cached_property
    def facts(self) -> Texts:
        """What the criterion reads."""
        return Texts([field.text for field in self.read], self._reader)

    @cached_property
    def claims(self) -> list[FieldText]:
        """What it does not read, but for the questions: they claim nothing."""
        return field_texts([text for text in self._unread if text.field != "followup_questions"])

    @cached_property
    def claimed(self) -> Texts:
        return Texts([field.text for field in self.claims], self._reader)

    @cached_property
    def _joined(self) -> list[JoinedText]:
        fields = dict.fromkeys(text.field for text in self._unread)
        return [JoinedText([text for text in self._unread if text.field == field]) for field in fields]

    def also_in(self, term: str) -> tuple[Passage, ...]:
        """Give the places that hold the whole term in fields that are not read, each field by itself."""
        needle = normalise(term)
        return tuple(
            text.first_piece(at, at + len(needle))[1]
            for text in self._joined
            for at in text.places(needle, _MOST_PLACES)
        )

    def text_of(self, passage: Passage) -> str:
        """Give the text of the element that a passage is in."""
        return next(each.text for each in self._texts if (each.field, each.element) == (passage.field, passage.element))

    def passages(self, place: Place | None) -> list[Passage]:
        """Give a place in what the criterion reads, element by element."""
        return [] if place is None else self.read[place.text].passages(place.start, place.end)


@dataclass(frozen=True)
class ReadNarrative:
    """The narrative of a case, read once; nothing is known of it if there is none."""

    text: str | None

    @cached_property
    def facts(self) -> Texts | None:
        return None if self.text is None or not self.text.strip() else Texts([self.text])

    def holds(self, term: str) -> InNarrative:
        """Tell whether it has a term word for word."""
        if self.text is None:
            return "no_narrative"
        return "yes" if normalise(term) in self._normalised else "no"

    @cached_property
    def _normalised(self) -> str:
        return normalise(self.text or "")


def explain(criterion: Literal["CR", "AC"], text: str, fields: Fields, narrative: ReadNarrative) -> Miss:
    """Explain a missed term."""
    term = term_of(text)
    said = answer_in(term, fields.facts)
    also_in = fields.also_in(text)
    elsewhere, share = _elsewhere(term, said, fields, also_in)
    output = _output_says(term, said, elsewhere, fields)
    story, told = _narrative_says(term, narrative)
    in_narrative = narrative.holds(text)
    has_it_too = output == "contradicted" and _has_it_too(said, narrative)
    row = verdict_row(output, story, has_it_too=has_it_too)
    passages = elsewhere or fields.passages(said.against or said.place)
    passage = passages[0] if passages else None
    found = " ".join(fields.text_of(each)[each.start : each.end] for each in passages)
    kind = kind_row(Nearest(text, output, said.deciding, found, said.sentences))
    return Miss(
        criterion=criterion,
        term=text,
        kind=kind.kind,
        in_narrative=in_narrative,
        passage=passage if said.share or said.against or elsewhere else None,
        similarity=_similarity(text, found) if found else 0.0,
        verdict=row.verdict,
        missing_words=_missing_words(text, said) if row.verdict in {"prompt", "output"} and not elsewhere else (),
        also_in=also_in,
        in_other_words=output == "said" and not all(map(is_said_alike, said.edits)),
        output_says=output,
        narrative_says=story,
        verbatim=in_narrative == "yes" and story == "supported",
        narrative_has_it_too=has_it_too,
        share=share,
        remedy=row.remedy,
        row=row.name,
        evidence=tuple(_evidence(said, fields, told, narrative, elsewhere)),
    )


def with_narrative(found: Occurrence, narrative: ReadNarrative) -> Occurrence:
    """Say of a required term that was found what the narrative says of it; one that is there verbatim is not read."""
    if found.criterion == "AH":
        return found
    holds = narrative.holds(found.term)
    says = "supported" if holds == "yes" else _narrative_says(term_of(found.term), narrative)[0]
    return replace(found, in_narrative=holds, narrative_says=says)


def _output_says(term: Term, said: Answer, elsewhere: Sequence[Passage], fields: Fields) -> OutputSays:
    if elsewhere:
        return "elsewhere"
    are_read = term.is_read and all(is_read(field.text) for field in fields.read)
    return "not_read" if said.says == "absent" and not are_read else said.says


def _elsewhere(term: Term, said: Answer, fields: Fields, also_in: Sequence[Passage]) -> tuple[Sequence[Passage], int]:
    """Give where a field that is not read says a term that the others do not, and the share of what decides."""
    if said.says not in {"part", "absent"}:
        return (), said.share
    if also_in:
        return also_in[:1], 1000
    claimed = answer_in(term, fields.claimed)
    if claimed.says != "said" or claimed.place is None:
        return (), said.share
    place = claimed.place
    return fields.claims[place.text].passages(place.start, place.end), claimed.share


def _narrative_says(term: Term, narrative: ReadNarrative) -> tuple[NarrativeSays, Answer | None]:
    if narrative.facts is None:
        return "unknown", None
    told = answer_in(term, narrative.facts)
    if told.says in {"said", "both"}:
        return "supported", told
    if not (term.facts and term.is_read) and narrative.holds(term.text) == "yes":
        return "supported", told  # "cancelled" alone has no fact to be found
    if told.says == "contradicted":
        return "contradicts", told
    if told.says == "absent" and not (term.is_read and is_read(narrative.text or "")):
        return "unknown", None
    return ("silent" if told.says == "absent" and told.cover < _SILENT else "partly"), told


def _has_it_too(said: Answer, narrative: ReadNarrative) -> bool:
    """Tell whether the narrative also says what the output says instead of the term."""
    instead = tuple(
        edit.other._replace(weight=edit.fact.weight)
        for edit in said.against_edits
        if edit.other is not None and edit.fact.tells
    )
    if narrative.facts is None or not instead:
        return False
    return answer_in(Term("", instead), narrative.facts).says in {"said", "both"}


def _similarity(term: str, passage: str) -> float:
    """Give the likeness of two texts from 0 to 100, letter by letter and whatever their case."""
    return round(fuzz.ratio(term[:_MOST_COMPARED].lower(), passage[:_MOST_COMPARED].lower()), 1)


def _missing_words(text: str, said: Answer) -> tuple[str, ...]:
    """Give what the output does not say of a term, or says otherwise, as the term spells it."""
    lost = [edit.fact for edit in said.deciding if edit.kind in OPPOSED | {"missing", "weaker"}]
    return tuple(dict.fromkeys(text[fact.start : fact.end] for fact in lost))


def _evidence(
    said: Answer, fields: Fields, told: Answer | None, narrative: ReadNarrative, elsewhere: Sequence[Passage]
) -> list[Evidence]:
    """Quote the place of the output that has most of the term, what contradicts it if that is elsewhere, and the
    narrative's."""
    own = [passage for place in (said.place, said.against) for passage in fields.passages(place)]
    passages = elsewhere or dict.fromkeys(own)
    found = [
        Evidence("output", *_cut(fields.text_of(passage), passage.start, passage.end), passage.field, passage.element)
        for passage in passages
    ]
    place = told and (told.against if told.says == "contradicted" else told.place)
    if place and narrative.text is not None:
        found.append(Evidence("narrative", *_cut(narrative.text, place.start, place.end)))
    return found


def _cut(text: str, start: int, end: int) -> tuple[int, int]:
    """Cut a stretch to what may be quoted, between words."""
    if end - start <= _MOST_QUOTED:
        return start, end
    quoted = text[start : start + _MOST_QUOTED + 1].rpartition(" ")[0].rstrip()
    return start, start + (len(quoted) or _MOST_QUOTED)
