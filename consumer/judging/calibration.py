"""How far a model's opinions agree with what people decided (contract.md, "Opinions")."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeVar

import msgspec

from consumer import __version__
from consumer.errors import ConfigurationError
from consumer.judging.asking import NOT_JSON, Opinion, stands_in
from consumer.judging.questions import ANSWERS, OPINION_KINDS, RUBRIC_HASH, Answer, OpinionKind, Question, questions_in
from consumer.offline.decisions import Choice, TermDecision
from consumer.offline.scored_run import ScoredRun
from consumer.text import visible
from safe_core.diagnosis import Verdict
from safe_core.intervals import wilson

Standing = Literal["calibrated", "weak", "stale", "uncalibrated"]
"""What opinions of a kind are worth: only those of a calibrated judge count as opinions."""

FEWEST: Final = 30
"""Of fewer decisions of either answer, a judge is weak."""
LEAST: Final = 0.7
"""A judge is weak if the lower bound of its sensitivity or specificity is below."""

_DECIDED: Final[Mapping[OpinionKind, Mapping[Choice, Answer]]] = {
    "miss": {"paraphrase": "said", "accepted": "not_said"},
    "doubtful_hit": {"rejected": "said", "accepted": "not_said"},
    "near_violation": {"accepted": "said", "rejected": "not_said"},
}
"""What a person says by a decision; others say nothing about the output, and values are not decided on."""
_NOT_SAID: Final = frozenset[Verdict | None](("prompt", "output"))
"""Verdicts of misses that a person agrees with only if the output does not say the term."""


class Label(NamedTuple):
    """A question with a person's answer; `digest` names the decision without telling it."""

    question: Question
    answer: Answer
    digest: str


def labels_of(run: ScoredRun, left_out: Collection[str]) -> Iterator[Label]:
    """Give the questions of an explained run that people have answered by their decisions, but those left out.

    A decision does not say on which output it was made; one by words of the output counts only where they are.
    """
    for question in questions_in(run, open_only=False):
        test_id, kind, criterion, term, _ = question.subject
        decisions = run.decisions.get(test_id)
        decision = decisions.terms.get((criterion, term)) if decisions and criterion else None
        if decision is not None and (answer := answer_of_decision(kind, decision)):
            digest = hashlib.sha256(json.dumps(decision.key).encode()).hexdigest()
            is_of_output = decision.choice != "paraphrase" or stands_in(decision.words, question.texts)
            if is_of_output and digest not in left_out:
                yield Label(question, answer, digest)


def answer_of_decision(kind: OpinionKind, decision: TermDecision) -> Answer | None:
    """Say what a person answered by a decision; None if it says nothing about the output."""
    answer = _DECIDED.get(kind, {}).get(decision.choice)
    is_about_output = kind != "miss" or answer != "not_said" or decision.verdict in _NOT_SAID
    return answer if is_about_output else None


class Share(msgspec.Struct, frozen=True):
    """How many of how many, with Wilson's 95 % interval."""

    hits: int
    of: int
    low: float
    high: float

    @property
    def in_words(self) -> str:
        return f"{self.hits} of {self.of} (95 %: {self.low:.2f} to {self.high:.2f})"


def _share(of: Sequence[bool]) -> Share:
    low, high = wilson(sum(of), len(of)) if of else (0.0, 1.0)
    return Share(sum(of), len(of), low, high)


class Measured(msgspec.Struct, frozen=True):
    """What a judge of one kind is worth; that it has no opinion counts as wrong.

    `sensitivity` is the share of `said` where people say it is said, `specificity` that of `not_said` where they say it
    is not; `base_rate` is the share of the former: near 0 or 1 kappa means little. `consistent` are the questions whose
    replies all say the same; None if each was asked once.
    """

    agreement: Share
    kappa: float | None
    base_rate: float
    no_opinion: int
    sensitivity: Share
    specificity: Share
    consistent: Share | None = None

    @property
    def weak(self) -> list[str]:
        """Say why the judge is weak; nothing if it is not."""
        shares = (("said", self.sensitivity), ("not said", self.specificity))
        few = [f'{each.of} decisions say "{name}", of {FEWEST} needed' for name, each in shares if each.of < FEWEST]
        return few or [f'"{name}" may be right in {each.low:.2f} only' for name, each in shares if each.low < LEAST]


class Calibration(msgspec.Struct, frozen=True):
    """The file of a calibration, bound to model, rubric and version."""

    safe_judge_calibration: Literal[1]
    model: str
    rubric: str
    version: str
    kinds: dict[OpinionKind, Measured]


def standing_of(kind: OpinionKind, model: str, calibration: Calibration | None) -> Standing:
    """Say what opinions of a kind by a model are worth now."""
    measured = None if calibration is None else calibration.kinds.get(kind)
    if calibration is None or measured is None:
        return "uncalibrated"
    if (calibration.model, calibration.rubric, calibration.version) != (model, RUBRIC_HASH, __version__):
        return "stale"
    return "weak" if measured.weak else "calibrated"


_File = TypeVar("_File")


def read_file(path: Path, type_: type[_File], option: str, writer: str) -> _File:
    """Read a file that a command has written; raises ConfigurationError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=type_)
    except OSError as error:
        raise ConfigurationError(f"{option} {visible(str(path))} cannot be read: {error.strerror}") from error
    except NOT_JSON as error:
        raise ConfigurationError(f"{visible(str(path))} was not written by {writer} of this version") from error


def read_calibration(path: Path) -> Calibration:
    """Read the file of a calibration; raises ConfigurationError."""
    return read_file(path, Calibration, "--calibration", "safe judge calibrate")


def calibrate(labels: Sequence[Label], opinions: Sequence[Sequence[Opinion]], model: str) -> Calibration:
    """Compare the first opinion on each labelled question with its label."""
    kinds: dict[OpinionKind, Measured] = {}
    for kind in OPINION_KINDS:
        of_kind = [pair for pair in zip(labels, opinions, strict=True) if pair[0].question.kind == kind]
        if of_kind:
            kinds[kind] = _measured(of_kind)
    return Calibration(1, model, RUBRIC_HASH, __version__, kinds)


def _measured(pairs: Sequence[tuple[Label, Sequence[Opinion]]]) -> Measured:
    answers = [(label.answer, replies[0].answer) for label, replies in pairs]
    alike = [len({each.answer for each in replies}) == 1 for _, replies in pairs if len(replies) > 1]
    return Measured(
        agreement=_share([person == opinion for person, opinion in answers]),
        kappa=_kappa(answers),
        base_rate=sum(person == "said" for person, _ in answers) / len(answers),
        no_opinion=sum(opinion == "no_opinion" for _, opinion in answers),
        sensitivity=_share([opinion == "said" for person, opinion in answers if person == "said"]),
        specificity=_share([opinion == "not_said" for person, opinion in answers if person == "not_said"]),
        consistent=_share(alike) if alike else None,
    )


def _kappa(answers: Sequence[tuple[Answer, Answer]]) -> float | None:
    """Give Cohen's kappa, with no opinion as an answer of its own; None where chance alone would always agree."""
    total, agreed = len(answers), sum(person == opinion for person, opinion in answers)
    people, model = ([pair[side] for pair in answers] for side in (0, 1))
    chance = sum(people.count(each) * model.count(each) for each in ANSWERS)
    return None if chance == total * total else (agreed * total - chance) / (total * total - chance)
