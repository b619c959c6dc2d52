"""The file of opinions that `safe judge` writes, and how others find those on their cases (contract.md, "Opinions").

It names questions by digest, so it holds no text, no term and no id; an opinion on other texts is not found.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import msgspec

from consumer import __version__
from consumer.errors import ConfigurationError
from consumer.judging.asking import Opinion
from consumer.judging.calibration import Calibration, Standing, standing_of
from consumer.judging.questions import RUBRIC_HASH, Answer, OpinionKind, Question, questions_of
from consumer.offline.explanations import with_opinions as beside_entries
from consumer.offline.scored_run import CaseLine, Explanation, OpinionAbout, ScoredRun, ShownOpinion
from consumer.text import visible

_SAID: Final[Mapping[OpinionKind, tuple[str, str]]] = {
    "miss": ("the output says it", "the output does not say it"),
    "doubtful_hit": ("the output means it", "the output does not mean it"),
    "near_violation": ("a question uses it", "no question uses it"),
    "unsupported_value": ("the narrative has it", "the narrative does not have it"),
}


class Found(msgspec.Struct, frozen=True):
    """An opinion, and what it is worth."""

    answer: Answer
    standing: Standing


class Opinions(msgspec.Struct, frozen=True):
    """The file."""

    safe_opinions: Literal[1]
    model: str
    rubric: str
    version: str
    opinions: dict[str, Found]

    def on(self, case: CaseLine, explanation: Explanation) -> dict[OpinionAbout, ShownOpinion]:
        """Find those on what is said about a case."""
        shown: dict[OpinionAbout, ShownOpinion] = {}
        for question, _ in questions_of(case, explanation):
            each = self.opinions.get(question.key(self.model))
            if each is not None:
                is_stale = self.version != __version__ and each.standing in {"calibrated", "weak"}
                standing: Standing = "stale" if is_stale else each.standing
                words = (
                    f"{answer_in_words(question.kind, each.answer)} ({visible(self.model)}, {worth_in_words(standing)})"
                )
                document = {"answer": each.answer, "model": self.model, "standing": standing}
                shown[question.subject[1:]] = ShownOpinion(words, document)
        return shown


def answer_in_words(kind: OpinionKind, answer: Answer) -> str:
    """Say an answer to a question of this kind."""
    return "no opinion" if answer == "no_opinion" else _SAID[kind][answer == "not_said"]


def worth_in_words(standing: Standing) -> str:
    """Say what the opinions of a judge are worth."""
    return standing if standing == "calibrated" else f"{standing}, counts for nothing"


def written(model: str, calibration: Calibration | None, asked: Mapping[Question, Opinion]) -> str:
    """Give the text of the file."""
    found = {q.key(model): Found(each.answer, standing_of(q.kind, model, calibration)) for q, each in asked.items()}
    document = Opinions(1, model, RUBRIC_HASH, __version__, dict(sorted(found.items())))
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def read_opinions(path: Path | None) -> Opinions | None:
    """Read a file of opinions, if there is one; raises ConfigurationError."""
    if path is None:
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Opinions)
    except OSError as error:
        raise ConfigurationError(f"--opinions {visible(str(path))} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{visible(str(path))} was not written by safe judge of this version") from error


def with_opinions(run: ScoredRun, opinions: Opinions | None) -> ScoredRun:
    """Put the opinions of a file beside what an explained run says; without a file, nothing."""
    if opinions is None or run.explanations is None:
        return run
    found = {case.test_id: opinions.on(case, run.explanations[case.test_id])
             for case in run.cases if case.test_id in run.explanations}  # fmt: skip
    explanations = {
        test_id: replace(each, opinions=found.get(test_id, {})) for test_id, each in run.explanations.items()
    }
    results = [beside_entries(each, found.get(each["test_id"], {})) for each in run.report["results"]]
    return replace(run, report={**run.report, "results": results}, explanations=explanations)
