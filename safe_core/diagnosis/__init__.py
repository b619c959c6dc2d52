"""Why a required term was not found, and which found ones the text may not mean; no score depends on it."""

from collections.abc import Collection, Iterable, Iterator
from typing import Literal, NamedTuple

from safe_core.diagnosis.diagnosis_types import (
    KINDS,
    VERDICTS,
    AbsentWord,
    Diagnosis,
    InNarrative,
    Kind,
    Miss,
    Occurrence,
    Passage,
    Verdict,
    miss_document,
)
from safe_core.diagnosis.doubtful_hits import (
    DOUBTFUL_KINDS,
    DoubtfulHit,
    DoubtfulKind,
    doubtful_document,
    doubtful_hits,
)
from safe_core.diagnosis.joined_text import JoinedText, occurrences
from safe_core.diagnosis.miss_kind_rules import Evidence, Finding, decide
from safe_core.diagnosis.output_texts import READ_BY, Element, asked_criteria, elements
from safe_core.diagnosis.passages import Term, nearest, similarity, term_of
from safe_core.diagnosis.sentence_index import Sentences
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.verdicts import Judge, Judgement
from safe_core.diagnosis.word_types import absent_word
from safe_core.expectations import Expectations, prepare
from safe_core.generations import OutputField
from safe_core.matching_rule import normalise, which_occur
from safe_core.outputs import Output
from safe_core.policy import DEFAULT_POLICY
from safe_core.scoring import score

__all__ = [
    "DOUBTFUL_KINDS",
    "KINDS",
    "VERDICTS",
    "AbsentWord",
    "Diagnosis",
    "DoubtfulHit",
    "DoubtfulKind",
    "InNarrative",
    "Kind",
    "Miss",
    "Occurrence",
    "Passage",
    "Verdict",
    "asked_criteria",
    "diagnose",
    "doubtful_document",
    "doubtful_hits",
    "miss_document",
]

_MOST_OF_IT = 0.6  # of the words that are missing stand in one place of another field
_MOST_PLACES = 20  # in fields that a criterion does not read where a term is looked for
_WORK = 2_000  # sentences that are compared with the missed terms of a case, all in all
_LEAST_SENTENCES, _MOST_SENTENCES = 2, 64  # for each of them


def diagnose(
    expectations: Expectations,
    output: Output,
    narrative: str | None,
    not_asked_for: Collection[OutputField] = (),
) -> Diagnosis:
    """Explain every missed term of a case, and say where the others stand.

    The misses of a criterion have no other reason where the model was asked for none of the fields that it reads.

    What is missing is what score() finds missing. However large they are, at most MAX_WORDS words of the output are cut
    and some 2,000 sentences compared (two for each missed term, if that is more). Only the literal searches, as in
    score() a few for each term, take time by the number of terms times the length of the texts.
    """
    details = score(prepare(expectations), output, DEFAULT_POLICY.default).details
    texts = elements(output)
    missed: list[tuple[Literal["CR", "AC"], str]] = [
        *(("CR", term) for term in details.cr_missing),
        *(("AC", term) for term in details.ac_missing),
    ]
    asked = asked_criteria(not_asked_for)
    explained = _misses([miss for miss in missed if miss[0] in asked], texts, narrative)
    stands = _in_narrative([term for _, term in missed], narrative)
    misses = (
        next(explained) if criterion in asked else Miss(criterion, term, "absent", told, None, 0.0, "not_asked_for")
        for (criterion, term), told in zip(missed, stands, strict=True)
    )
    return Diagnosis(tuple(misses), tuple(occurrences(details, texts)))


class _Fields:
    """The texts of an output by whether a criterion reads them."""

    def __init__(self, criterion: Literal["CR", "AC"], claims: Sentences, questions: Sentences) -> None:
        texts = [*claims.elements, *questions.elements]
        self.read, self.unread = claims, questions
        if criterion == "AC":
            self.read = Sentences([text for text in texts if text.field in READ_BY[criterion]])
            self.unread = Sentences([text for text in texts if text.field not in READ_BY[criterion]])
        fields = dict.fromkeys(text.field for text in self.unread.elements)
        self._joined = [JoinedText([text for text in self.unread.elements if text.field == field]) for field in fields]

    def also_in(self, term: str) -> tuple[Passage, ...]:
        """Give the places that hold the whole term in fields that are not read, each field by itself."""
        needle = normalise(term)
        return tuple(
            text.first_piece(at, at + len(needle))[1]
            for text in self._joined
            for at in text.places(needle, _MOST_PLACES)
        )


def _misses(
    missed: list[tuple[Literal["CR", "AC"], str]], texts: list[Element], narrative: str | None
) -> Iterator[Miss]:
    if not missed:
        return
    claims = Sentences([text for text in texts if text.field in READ_BY["CR"]])
    questions = Sentences([text for text in texts if text.field not in READ_BY["CR"]])
    fields = {criterion: _Fields(criterion, claims, questions) for criterion in {criterion for criterion, _ in missed}}
    told = None if narrative is None else Sentences(elements(Output(summary=narrative)))
    most = min(_MOST_SENTENCES, max(_LEAST_SENTENCES, _WORK // len(missed)))
    judges = {criterion: Judge(each.read, claims, questions, told, most) for criterion, each in fields.items()}
    stands = _in_narrative([term for _, term in missed], narrative)
    for (criterion, term), in_narrative in zip(missed, stands, strict=True):
        evidence = Evidence(term_of(term), fields[criterion].read, fields[criterion].unread, most)
        yield _miss(criterion, evidence, in_narrative, judges[criterion], fields[criterion].also_in(term), texts)


def _in_narrative(terms: list[str], narrative: str | None) -> list[InNarrative]:
    if narrative is None:
        return ["no_narrative"] * len(terms)
    found = which_occur(normalise(narrative), [normalise(term) for term in terms])
    return ["yes" if stands else "no" for stands in found]


def _miss(
    criterion: Literal["CR", "AC"],
    evidence: Evidence,
    in_narrative: InNarrative,
    judge: Judge,
    also_in: tuple[Passage, ...],
    texts: list[Element],
) -> Miss:
    kind, finding = decide(evidence)
    judgement = judge.judge(evidence, kind, finding, also_in, in_narrative)
    instead = judgement.contradicting.instead if judgement.contradicting else None
    items = _missing_items(evidence, finding, judgement)
    unsaid, lacking, apart = _unsaid(evidence, items, is_contradicted=judgement.verdict == "output")
    finding = judgement.rewording or finding
    term, passage = evidence.term, finding.passage
    found = "" if passage is None else _text_at(passage, texts)
    return Miss(
        criterion=criterion,
        term=term.text,
        kind=kind,
        in_narrative=in_narrative,
        passage=passage,
        similarity=similarity(term.text, found) if found else 0.0,
        verdict=judgement.verdict,
        absent_words=_absent_words(term, finding) if not judgement.rewording else (),
        missing_words=lacking or apart,
        partly_in=_partly_in(evidence, unsaid) if judgement.verdict == "prompt" and not also_in else None,
        also_in=also_in,
        instead=instead and instead.passage,
        in_other_words=judgement.rewording is not None,
        apart_words=apart,
        unsaid_words=unsaid,
        is_swapped=judgement.is_swapped,
        has_other_forms=found != "" and _has_other_forms(term, found),
    )


def _text_at(passage: Passage, texts: list[Element]) -> str:
    [element] = [each for each in texts if (each.field, each.element) == (passage.field, passage.element)]
    return element.text[passage.start : passage.end]


def _has_other_forms(term: Term, found: str) -> bool:
    """Tell whether a passage lacks a word that tells something as the term has it: "2 pm" is "14:00"."""
    text = normalise(found)
    return any(normalise(term.text[item.start : item.end]) not in text for item in term.essential)


def _absent_words(term: Term, finding: Finding) -> tuple[AbsentWord, ...]:
    return tuple(absent_word(term.text, term.items, item) for item in _once(finding.absent))


def _once(items: tuple[Item, ...]) -> Iterable[Item]:
    """Give items without those that stand in the same place, as the words do for which a short form stands."""
    return {item.start: item for item in items}.values()


def _partly_in(evidence: Evidence, missing: tuple[str, ...]) -> Passage | None:
    """Find most of the words that are missing in one place of a field that is not read; a question tells nothing."""
    if not missing:
        return None
    found = nearest(Term(" ".join(missing)), evidence.unread, evidence.most_sentences)
    told = (match.passage for match in found if match.share >= _MOST_OF_IT)
    return next((passage for passage in told if passage.field != "followup_questions"), None)


def _missing_items(evidence: Evidence, finding: Finding, judgement: Judgement) -> tuple[Item, ...]:
    """Give what of a term the output contradicts, or does not say together in what the criterion reads."""
    if judgement.verdict not in {"prompt", "output"}:
        return ()
    contradicted = judgement.contradicting.absent if judgement.contradicting else ()
    return (
        contradicted
        or finding.absent
        or tuple(item for item in evidence.term.essential if item.key not in evidence.read.holding)
    )


class _Unsaid(NamedTuple):
    """What an output does not say of a term, as the term spells it: all of it, what it lacks, what it has elsewhere."""

    all: tuple[str, ...]
    lacking: tuple[str, ...]
    apart: tuple[str, ...]


def _unsaid(evidence: Evidence, items: tuple[Item, ...], *, is_contradicted: bool) -> _Unsaid:
    """Sort what is not said; all of what is contradicted counts as lacking."""
    stretches: list[list[Item]] = []
    for item in items:
        # What no space separates is one word to a reader, such as the letters of a Chinese one.
        if stretches and not any(map(str.isspace, evidence.term.text[stretches[-1][-1].end : item.start])):
            stretches[-1].append(item)
        else:
            stretches.append([item])
    said = {item.key for item in evidence.term.items if item not in items}
    lacking, apart, unsaid = [], [], []
    for stretch in stretches:
        word, keys = evidence.term.text[stretch[0].start : stretch[-1].end], {item.key for item in stretch}
        unsaid.append(word)
        if is_contradicted or not keys <= evidence.read.holding.keys():
            lacking.append(word)
        elif not keys <= said:  # else the term has it twice, and it stands with the rest
            apart.append(word)
    if not lacking and not apart:
        apart = unsaid
    return _Unsaid(*(tuple(dict.fromkeys(each)) for each in (unsaid, lacking, apart)))
