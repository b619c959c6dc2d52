"""The file of opinions that `safe judge` writes, and how others find those on their cases (contract.md, "Opinions").

It names questions by digest, so it holds no text, no term and no id; an opinion on other texts is not found.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import msgspec

from consumer import __version__
from consumer.judging.asking import Opinion
from consumer.judging.calibration import Standing, read_file
from consumer.judging.questions import RUBRIC_HASH, Answer, OpinionKind, Question, questions_of
from consumer.offline.explanations import with_opinions as beside_entries
from consumer.offline.scored_run import CaseLine, Explanation, OpinionAbout, ScoredRun, ShownOpinion
from consumer.terminal import print_message
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
        questions = [(question, question.key(self.model)) for question, _ in questions_of(case, explanation)]
        return {
            question.subject[1:]: self._shown(question.kind, self.opinions[key])
            for question, key in questions
            if key in self.opinions
        }

    def _shown(self, kind: OpinionKind, found: Found) -> ShownOpinion:
        is_stale = self.version != __version__ and found.standing in {"calibrated", "weak"}
        standing: Standing = "stale" if is_stale else found.standing
        words = f"{answer_in_words(kind, found.answer)} ({visible(self.model)}, {worth_in_words(standing)})"
        return ShownOpinion(words, {"answer": found.answer, "model": self.model, "standing": standing})


def answer_in_words(kind: OpinionKind, answer: Answer) -> str:
    """Say an answer to a question of this kind."""
    return "no opinion" if answer == "no_opinion" else _SAID[kind][answer == "not_said"]


def worth_in_words(standing: Standing) -> str:
    """Say what the opinions of a judge are worth."""
    return standing if standing == "calibrated" else f"{standing}, counts for nothing"


def written(model: str, standings: Mapping[OpinionKind, Standing], asked: Mapping[Question, Opinion]) -> str:
    """Give the text of the file."""
    found = {question.key(model): Found(each.answer, standings[question.kind]) for question, each in asked.items()}
    return as_text(Opinions(1, model, RUBRIC_HASH, __version__, dict(sorted(found.items()))))


def as_text(document: msgspec.Struct) -> str:
    """Give a document as it is written."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def read_opinions(path: Path | None) -> Opinions | None:
    """Read a file of opinions, if there is one, and say if none can be found; raises ConfigurationError."""
    if path is None:
        return None
    read = read_file(path, Opinions, "--opinions", "safe judge")
    if read.rubric != RUBRIC_HASH:
        print_message(
            f"--opinions {path}: by another rubric than that of this version, so none is shown: run safe judge"
        )
    return read


def with_opinions(run: ScoredRun, opinions: Opinions | None) -> ScoredRun:
    """Put the opinions of a file beside what an explained run says; without a file, nothing."""
    if opinions is None or run.explanations is None:
        return run
    cases = [(case, run.explanation_of(case)) for case in run.cases]
    found = {case.test_id: replace(each, opinions=opinions.on(case, each)) for case, each in cases if each is not None}
    results = [
        beside_entries(each, found[each["test_id"]].opinions) if each["test_id"] in found else each
        for each in run.report["results"]
    ]
    return replace(run, report={**run.report, "results": results}, explanations={**run.explanations, **found})
