"""What is asked of a model: one closed question for each thing that rules leave open (contract.md, "Opinions").

A question is a JSON document, so that no text in it can leave its quotation marks. It has terms and texts, and no id.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final, Literal, get_args

import msgspec

from consumer.offline.pages.quotes import text_of
from consumer.offline.scored_run import CaseLine, Explanation, ScoredRun
from safe_core import Criterion, Output
from safe_core.diagnosis.output_texts import READ_BY, texts_of

OpinionKind = Literal["miss", "doubtful_hit", "near_violation", "unsupported_value"]
OPINION_KINDS: tuple[OpinionKind, ...] = get_args(OpinionKind)
Answer = Literal["said", "not_said", "no_opinion"]
ANSWERS: tuple[Answer, ...] = get_args(Answer)

Subject = tuple[str, OpinionKind, Criterion | None, str, int]
"""Of what an opinion is: test_id, kind, criterion, term or value, and where a value begins (-1 for a term)."""

_DOCUMENT: Final = tomllib.loads(resources.files(__package__).joinpath("rubric.toml").read_text(encoding="utf-8"))
RUBRIC: Final = " ".join(_DOCUMENT["rubric"].split())
"""What a model is told before each question."""
_ASKED: Final[Mapping[OpinionKind, str]] = {
    kind: " ".join(_DOCUMENT["questions"][kind].split()) for kind in OPINION_KINDS
}


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model is to answer; the quote may hold patient data."""

    answer: Literal["said", "not_said", "unclear"]
    quote: str


# Not that of msgspec: an enumeration without a type is refused by OpenAI.
REPLY_SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "enum": ["said", "not_said", "unclear"]},
        "quote": {"type": "string"},
    },
    "required": ["answer", "quote"],
    "additionalProperties": False,
}
RUBRIC_HASH: Final = hashlib.sha256(json.dumps([RUBRIC, _ASKED, REPLY_SCHEMA], sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Question:
    """One question: `subject` is never sent, `document` is, and a quote must stand in one of `texts`."""

    subject: Subject
    document: str
    texts: tuple[str, ...]

    @property
    def kind(self) -> OpinionKind:
        return self.subject[1]

    def key(self, model: str, repeat: int = 0) -> str:
        """Give the name under which a reply is kept: a digest of model, rubric and question, with no word of them."""
        of = json.dumps([model, RUBRIC_HASH, self.document, repeat])
        return hashlib.sha256(of.encode(errors="surrogatepass")).hexdigest()


def questions_in(run: ScoredRun, *, open_only: bool) -> Iterator[Question]:
    """Give what can be asked about an explained run: all, or only what rules leave open (contract.md, "Opinions")."""
    for case in run.cases:
        if (explanation := run.explanation_of(case)) is not None:
            yield from (each for each, is_open in questions_of(case, explanation) if is_open or not open_only)


def questions_of(case: CaseLine, explanation: Explanation) -> Iterator[tuple[Question, bool]]:
    """Give what can be asked about a case, and whether rules leave it open."""
    if case.has_reasons:
        yield from _of_misses(case, explanation)
        yield from _beside_scores(case, explanation)


def _of_misses(case: CaseLine, explanation: Explanation) -> Iterator[tuple[Question, bool]]:
    for miss in explanation.diagnosis.misses:
        if miss.verdict not in {"not_asked_for", "accepted"}:
            places = [each.passage for each in miss.evidence if each.passage is not None]
            places = places or ([] if miss.passage is None else [miss.passage])
            evidence = [text_of(explanation.output, place) for place in places]
            subject: Subject = (case.test_id, "miss", miss.criterion, miss.term, -1)
            is_open = miss.verdict == "look" or miss.output_says == "part"
            yield _question(subject, _read(explanation.output, miss.criterion), evidence), is_open


def _beside_scores(case: CaseLine, explanation: Explanation) -> Iterator[tuple[Question, bool]]:
    output = explanation.output
    for hit in case.doubtful:
        subject: Subject = (case.test_id, "doubtful_hit", hit.criterion, hit.term, -1)
        yield _question(subject, _read(output, hit.criterion), [text_of(output, hit.passage)]), True
    for near in case.near:
        evidence = [output.followup_questions[near.element][near.start : near.end]]
        yield _question((case.test_id, "near_violation", "AH", near.term, -1), _read(output, "AH"), evidence), True
    for value in case.unsupported:
        at = value.passage
        text = next(each for each in texts_of(output) if (each.field, each.element) == (at.field, at.element)).text
        subject = (case.test_id, "unsupported_value", None, value.text, at.start)
        yield _question(subject, {"narrative": [explanation.narrative or ""]}, [_around(text, at.start, at.end)]), True


def _read(output: Output, criterion: Criterion) -> dict[str, list[str]]:
    """Give the texts that a criterion reads, by field."""
    fields: dict[str, list[str]] = {field: [] for field in READ_BY[criterion]}
    for each in texts_of(output):
        if each.field in fields:
            fields[each.field].append(each.text)
    return fields


def _question(subject: Subject, texts: Mapping[str, Sequence[str]], evidence: Sequence[str]) -> Question:
    _, kind, _, term, _ = subject
    asked = {"question": _ASKED[kind], "term": term, "evidence": evidence, "texts": texts}
    document = json.dumps(asked, ensure_ascii=False).encode(errors="replace").decode()  # no surrogates
    return Question(subject, document, tuple(text for each in texts.values() for text in each))


_AROUND: Final = 160  # characters before and after a value


def _around(text: str, start: int, end: int) -> str:
    return text[max(0, start - _AROUND) : end + _AROUND]
