"""What every page says about a miss, and about a term that was found: its kind, its place, its text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

from consumer.offline.decisions import CaseDecisions
from consumer.offline.explanations import ANSWER_FIELDS
from consumer.offline.pages import quotes
from consumer.offline.pages.document import MarkedText
from consumer.offline.scored_run import Explanation, OpinionAbout, Remarked, ShownOpinion
from consumer.text import count_of
from safe_core import Criterion, Output
from safe_core.diagnosis import VERDICTS, DoubtfulHit, DoubtfulKind, Evidence, Kind, Miss, Occurrence, Passage, Verdict
from safe_core.diagnosis.tables import VERDICT_ROWS
from safe_core.near_violations import NearKind, NearViolation
from safe_core.unsupported import Unsupported, UnsupportedKind

KIND_LABELS: Final[Mapping[Kind, str]] = {
    "form": "case or punctuation differs",
    "connectives": "small words or endings differ",
    "rearranged": "rearranged",
    "value": "value differs",
    "polarity": "polarity or certainty differs",
    "split": "split over elements",
    "part": "only in part",
    "other_field": "in another field",
    "absent": "not there",
}

KIND_ADVICE: Final[Mapping[Kind, str]] = {
    "form": "Only case, spaces, punctuation or special characters differ: no content is lost.",
    "connectives": "All its content words are there: shorten the term to these words.",
    "rearranged": "The same words are there in another order or form, or apart: shorten the term to its key words.",
    "value": "A number, time, day, grade, side or unit is different: check which of the two is right.",
    "polarity": "It is negated, or said with more or less certainty than expected: check which of the two is right.",
    "split": "The output rightly lists separately what the term joins: split the term.",
    "part": "Only part of it is there: see what the output says instead; ask for it in the prompt or shorten the term.",
    "other_field": "It is in a field that this criterion does not check: ask for it in the right field.",
    "absent": "Nothing like it was found: ask for it in the prompt.",
}

_SAID_OTHERWISE: Final = "in other words"
"""In the place of the kind, which compares the words as they are written."""
VERDICT_LABELS: Final[Mapping[Verdict, str]] = {
    "term": "change the term",
    "prompt": "ask for it in the prompt",
    "output": "the output is wrong",
    "look": "look at it yourself",
    "not_asked_for": "the model was not asked for it",
    "accepted": "the output has a wording that the test case accepts",
}

IN_WORDS: Final[Mapping[Verdict, str]] = {each: each.replace("_", " ") for each in VERDICTS}
"""Verdicts as pages write them."""

_FIELD_OF: Final[Mapping[Criterion, str]] = {
    "CR": "the signals or the summary",
    "AC": "the summary",
    "AH": "the follow-up questions",
}
"""Where a criterion looks, in words."""


def misses_in_words(report: Mapping[str, Any]) -> str | None:
    """Count a report's misses by verdict, as "152 misses: 60 term (change the term), 92 prompt (…)".

    Those of cases without an output, or with one of another patient, have no reasons and are not counted; None if there
    is nothing to count.
    """
    counts: Mapping[Verdict, int] = report.get("miss_verdicts") or {}
    total = sum(counts.values())
    if not total:
        return None
    labels = dict(VERDICT_LABELS)
    counted = (result for result in report.get("results", ()) if result.get("input_matches") is not False)
    misses = (miss for result in counted for miss in result.get("misses", ()))
    if reworded := sum(miss["verdict"] == "term" and miss.get("in_other_words", False) for miss in misses):
        labels["term"] += f"; compare {reworded} of them with the output first"
    verdicts = ", ".join(f"{counts[each]} {IN_WORDS[each]} ({labels[each]})" for each in VERDICTS if counts.get(each))
    return f"{count_of(total, 'miss', 'es')}: {verdicts}"


def answers_in_words(report: Mapping[str, Any]) -> str | None:
    """Count a report's misses by both answers, as "117 misses: 83 said, 34 part; in the narrative: 117 supported".

    The most frequent answers are first. None if there is nothing to count.
    """
    output, narrative = (report.get(name) or {} for name in ANSWER_FIELDS)
    if not any(output.values()):
        return None
    return f"{count_of(sum(output.values()), 'miss', 'es')}: {_most_first(output)}; narrative: {_most_first(narrative)}"


def _most_first(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda each: -each[1]) if count)


_SETTLED: Final = frozenset[Verdict](("not_asked_for", "accepted"))
"""The verdicts with which there is nothing to do."""


def answers_of(miss: Miss) -> str:
    """Give both answers about a miss, and that the narrative words it otherwise if it does; "" where nobody asked."""
    if miss.verdict in _SETTLED:
        return ""
    is_worded_otherwise = miss.narrative_says in {"supported", "partly"} and not miss.verbatim
    otherwise = " in other words" if is_worded_otherwise else ""
    return f"output: {miss.output_says}; narrative: {miss.narrative_says}{otherwise}"


def remark_on(miss: Miss) -> str:
    """Describe a miss without quoting the output: verdict, both answers, kind, and the place."""
    if miss.verdict in _SETTLED:
        return IN_WORDS[miss.verdict]
    found = miss.also_in[0] if miss.also_in else miss.passage
    place = f", {quotes.place_of(found)}" if found else ""
    kind = _SAID_OTHERWISE if miss.in_other_words else KIND_LABELS[miss.kind]
    kind = "word for word in another field" if miss.also_in else kind
    return f"{miss.verdict}: {kind}{place}; {answers_of(miss)}"


# --- why a miss has its verdict ---------------------------------------------------------------------------------------


_ROWS: Final = {row.name: row for row in VERDICT_ROWS}
_UNKNOWN: Final = "The test case has no narrative, so SAFE cannot tell whether the model was told this."
_NOT_READ: Final = (
    "The narrative is blank or not in English, or the term is too long, so SAFE cannot tell whether the model was told "
    "this."
)


def reason(miss: Miss, quoted: Explanation | None) -> str:
    """Say in a sentence or two why a miss has its verdict, and what to do; texts are quoted only where they may be."""
    if miss.verdict == "not_asked_for":
        return f"The model was not asked for {_FIELD_OF[miss.criterion]}: neither the term nor the prompt is to blame."
    if miss.verdict == "accepted":
        return "The output has a wording that the test case accepts for this term: there is nothing to change."
    return " ".join((_ROWS[miss.row].why, *_detail(miss, quoted)))


def _detail(miss: Miss, quoted: Explanation | None) -> Iterator[str]:
    """Say what is missing or contradicted, and where."""
    match miss.output_says:
        case "elsewhere":
            found = miss.also_in or filter(None, [miss.passage])
            places = ", ".join(dict.fromkeys(map(quotes.element_name, found)))
            how = "word for word " if miss.also_in else ""
            yield f"It is {how}in {places}; {miss.criterion} checks {_FIELD_OF[miss.criterion]}."
        case "contradicted" if miss.narrative_says != "contradicts":
            yield _contradiction(miss, quoted)
        case "both":
            yield f"The places: {' and '.join(_places(miss, 'output', quoted))}."
        case "part" if miss.missing_words:
            yield f"The nearest passage does not say {_listed(miss.missing_words)}."
    if miss.narrative_says == "contradicts":
        says = "The narrative says" if quoted else "See the narrative,"
        yield from (f"{says} {place}." for place in _places(miss, "narrative", quoted))
    elif miss.narrative_says == "unknown" and miss.verdict == "prompt":
        yield _UNKNOWN if miss.in_narrative == "no_narrative" else _NOT_READ


def _contradiction(miss: Miss, quoted: Explanation | None) -> str:
    *_, place = _places(miss, "output", quoted)
    said = place if quoted else f"something else in {place}"
    told = "the term and the narrative say" if miss.verdict == "output" else "the term says"
    too = ", and so does the narrative" if miss.narrative_has_it_too else ""
    # of a denial, its words without "not" would say the opposite
    words = [miss.term.strip()] if miss.kind == "polarity" or not miss.missing_words else miss.missing_words
    return f"The output says {said}{too}; {told} {_listed(words)}."


def _places(miss: Miss, side: Literal["output", "narrative"], quoted: Explanation | None) -> list[str]:
    """Quote the places that decide, or name them where no text may be shown."""
    places = [each for each in miss.evidence if each.side == side]
    if quoted is not None:
        return [f'"{quotes.on_one_line(quotes.evidence_text(quoted, each))}"' for each in places]
    return [quotes.place_of(each.passage) if each.passage else quotes.characters_of(each) for each in places]


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


# --- the terms of a case ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExplainedTerm:
    """A term of a case and what an explanation says of it; what it says nothing of is empty.

    `expected` (the term), `found` (the output's words) and `narrative` (the narrative's words) are filled only where
    text of outputs may be shown. `how` is the name under which a page shows `found`, `row` what decided the verdict.
    """

    criterion: Criterion
    text: str
    kind: str = ""
    verdict: Verdict | None = None
    place: str = ""
    answers: str = ""
    row: str = ""
    advice: str = ""
    expected: Sequence[MarkedText] = ()
    found: Sequence[MarkedText] = ()
    narrative: Sequence[MarkedText] = ()
    how: str = "found"
    is_doubtful: bool = False
    decided: str = ""
    opinion: str = ""

    @property
    def opinions(self) -> Sequence[tuple[str, str]]:
        """What people decided about it, and what a model thinks of it."""
        return ("decided", self.decided), ("opinion", self.opinion)

    @property
    def is_remarkable(self) -> bool:
        """Whether there is something to do about it: it was missed, used, or found in doubt."""
        return self.verdict not in {None, "accepted"} or self.is_doubtful or self.how in {"used", "near"}


class Group(NamedTuple):
    """Terms under a heading; `loud` marks a fault of the test itself, which a page shows most prominently."""

    heading: str
    terms: Sequence[ExplainedTerm]
    loud: bool = False


DOUBTFUL: Final = "Found, but perhaps not meant"
DOUBTS: Final[Mapping[DoubtfulKind, str]] = {
    "inside_word": "It is found only inside a longer word or number.",
    "negated": "The text denies it; neither the term nor the narrative does.",
    "other_value": "The value beside it is not the one in the narrative.",
}
_DENIED_UNTOLD: Final = "The text denies it; the term does not."
NEAR_LABELS: Final[Mapping[NearKind, str]] = {
    "spelling": "It is spelled otherwise (spaces, hyphens, apostrophes, Unicode), so AH does not find it.",
    "synonym": "A word that means the same is there in its place, so AH does not find it.",
}
UNSUPPORTED: Final = "Values that the narrative does not have"
NEAR: Final = "Forbidden terms in another form, which AH does not find"
USED, FOUND = "Forbidden terms that were used", "Required terms that were found"
_HEADINGS: Final[Mapping[Verdict, str]] = {
    "term": "Missed: change the term (term)",
    "prompt": "Missed: ask for it in the prompt (prompt)",
    "output": "Missed: the output contradicts the narrative (output)",
    "look": "Missed: only a person can tell (look)",
    "not_asked_for": "Missed: the model was not asked for it (not asked for)",
    "accepted": "Missed, but the output has an accepted wording (accepted)",
}
MISSED: Final = "Missed"
NOTHING_LIKE_IT: Final = "nothing like it"


def explained_terms(explanation: Explanation, remarked: Sequence[Remarked], *, shows_text: bool) -> list[Group]:
    """Group what an explanation says about each term: misses by verdict, doubtful hits, last what was found.

    With `shows_text` the output and the narrative are quoted (contract.md, "Confidentiality").
    """
    diagnosis = explanation.diagnosis
    quoted = explanation if shows_text else None
    groups = [
        Group(
            heading,
            [_miss(miss, quoted) for miss in diagnosis.misses if miss.verdict == verdict],
            verdict == "term",
        )
        for verdict, heading in _HEADINGS.items()
    ]
    used = [_occurrence(each, quoted) for each in diagnosis.occurrences if each.criterion == "AH"]
    found = [_occurrence(each, quoted) for each in diagnosis.occurrences if each.criterion != "AH"]
    is_told = explanation.narrative is not None
    doubted = [_doubted(each, quoted, is_told=is_told) for each in remarked if isinstance(each, DoubtfulHit)]
    near = [_near(each, quoted) for each in remarked if isinstance(each, NearViolation)]
    listed = (*groups, Group(DOUBTFUL, doubted), Group(USED, used), Group(NEAR, near), Group(FOUND, found))
    groups = [with_decisions(group, explanation.decisions, shows_text=shows_text) for group in listed if group.terms]
    return groups if not explanation.opinions else [_with_opinions(group, explanation.opinions) for group in groups]


def with_decisions(group: Group, decisions: CaseDecisions, *, shows_text: bool) -> Group:
    """Say of each term what people decided about it."""
    terms = [
        replace(each, decided=decisions.of_term(each.criterion, each.text, shows_text=shows_text))
        for each in group.terms
    ]
    return group._replace(terms=terms)


def _with_opinions(group: Group, opinions: Mapping[OpinionAbout, ShownOpinion]) -> Group:
    """Say of each term what a model thinks of it."""
    kinds = {"used": "", "found": "", "near": "near_violation"}

    def opinion(term: ExplainedTerm) -> str:
        kind = "miss" if term.verdict else "doubtful_hit" if term.is_doubtful else kinds.get(term.how, "")
        found = opinions.get((kind, term.criterion, term.text, -1))
        return "" if found is None else found.words

    return group._replace(terms=[replace(each, opinion=opinion(each)) for each in group.terms])


UNSUPPORTED_LABELS: Final[Mapping[UnsupportedKind, str]] = {
    "nowhere": "not in the narrative",
    "of_something_else": "in the narrative, but of something else",
}


def unsupported_in_words(value: Unsupported) -> str:
    """Say how the narrative lacks a value, where the output has it, and what the narrative has instead."""
    nearest = f"; the narrative has {value.nearest}" if value.nearest else ""
    return f"{UNSUPPORTED_LABELS[value.kind]}, {quotes.place_of(value.passage)}{nearest}"


def value_in_words(value: Unsupported, explanation: Explanation | None) -> str:
    """Say the same, and what a model thinks of it."""
    about = ("unsupported_value", None, value.text, value.passage.start)
    opinion = None if explanation is None else explanation.opinions.get(about)
    return unsupported_in_words(value) + ("" if opinion is None else f"; opinion: {opinion.words}")


def near_term(near: NearViolation, found: Sequence[MarkedText] = ()) -> ExplainedTerm:
    """Say of a forbidden term how a question has it in another form, and where."""
    place, advice = quotes.place_of(quotes.passage_of(near)), NEAR_LABELS[near.kind]
    return ExplainedTerm("AH", near.term, kind=near.kind, place=place, advice=advice, found=found, how="near")


def _near(near: NearViolation, quoted: Explanation | None) -> ExplainedTerm:
    return near_term(near, _context(quotes.passage_of(near), quoted))


def _context(passage: Passage, quoted: Explanation | None) -> Sequence[MarkedText]:
    return () if quoted is None else quotes.around(quotes.element_of(quoted.output, passage), passage)


def _doubted(hit: DoubtfulHit, quoted: Explanation | None, *, is_told: bool) -> ExplainedTerm:
    return ExplainedTerm(
        hit.criterion,
        hit.term,
        place=quotes.place_of(hit.passage),
        advice=_DENIED_UNTOLD if hit.kind == "negated" and not is_told else DOUBTS[hit.kind],
        found=_context(hit.passage, quoted),
        is_doubtful=True,
    )


def _miss(miss: Miss, quoted: Explanation | None) -> ExplainedTerm:
    expected, found = ((), ()) if quoted is None else _side_by_side(miss, quoted.output)
    is_worded_otherwise = not miss.verbatim and miss.narrative_says != "unknown"
    place = "" if quoted else NOTHING_LIKE_IT
    if miss.passage:
        place = f"{quotes.place_of(miss.passage)}, {miss.similarity:.0f}% alike"
    return ExplainedTerm(
        miss.criterion,
        miss.term,
        kind=_SAID_OTHERWISE if miss.in_other_words else KIND_LABELS[miss.kind],
        verdict=miss.verdict,
        place=place,
        answers=answers_of(miss),
        row=f"{miss.row} (share: {miss.share} of 1000; remedy: {miss.remedy})" if miss.row else "",
        advice=reason(miss, quoted),
        expected=expected,
        found=found,
        narrative=_in_narrative(quoted.narrative, quotes.told_of(miss)) if quoted and is_worded_otherwise else (),
        how=_name_of_passage(miss),
    )


def _name_of_passage(miss: Miss) -> str:
    if miss.in_other_words:
        return _SAID_OTHERWISE
    return "nearest" if miss.passage and miss.passage not in miss.also_in else "found"


def _side_by_side(miss: Miss, output: Output) -> tuple[Sequence[MarkedText], Sequence[MarkedText]]:
    """Give the term and what was found; differences are marked if the two have more in common than not."""
    expected = miss.term.strip()
    if miss.passage is None:
        return quotes.marked_texts(expected), quotes.marked_texts(NOTHING_LIKE_IT)
    found = quotes.with_punctuation_of(expected, quotes.element_of(output, miss.passage), miss.passage)
    lacking, further = ([], []) if miss.kind == "absent" else quotes.differences(expected, found)
    return quotes.marked_texts(expected, lacking, "lacking"), quotes.marked_texts(found, further, "further")


def _in_narrative(narrative: str | None, nearest: Evidence | None) -> Sequence[MarkedText]:
    """Quote how the narrative puts a term, if at all."""
    if narrative is None:
        return ()
    return quotes.marked_texts(NOTHING_LIKE_IT) if nearest is None else quotes.around(narrative, nearest)


def _occurrence(occurrence: Occurrence, quoted: Explanation | None) -> ExplainedTerm:
    used = occurrence.criterion == "AH"
    found = _context(occurrence.passage, quoted if used or occurrence.inside_word else None)
    return ExplainedTerm(
        occurrence.criterion,
        occurrence.term,
        place=quotes.place_of(occurrence.passage),
        advice="It appears only inside longer words, and may not be meant." if occurrence.inside_word else "",
        found=found,
        how="used" if used else "found",
    )
