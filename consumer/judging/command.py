"""`safe judge` from beginning to end."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from consumer.errors import ConfigurationError, Fatal, Transient
from consumer.exit_codes import EXIT_OK
from consumer.files.outputs import open_all
from consumer.files.selection import selections
from consumer.judging.address import Address
from consumer.judging.asking import Asker, Cache, Opinion, Progress
from consumer.judging.calibration import (
    Calibration,
    Label,
    Measured,
    Standing,
    calibrate,
    labels_of,
    read_calibration,
    standing_of,
)
from consumer.judging.opinions import answer_in_words, as_text, worth_in_words, written
from consumer.judging.questions import OPINION_KINDS, RUBRIC, OpinionKind, Question, questions_in
from consumer.offline.decisions import Decisions
from consumer.offline.destinations import Destination, check_outside, check_writable
from consumer.offline.scored_run import ScoredRun
from consumer.offline.scoring import score_files
from consumer.offline.triage import TriageRequest
from consumer.offline.whole_files import write_whole
from consumer.terminal import message_console, print_json, print_message, progress_bar
from consumer.text import count_of, printable, quoted, visible
from safe_core import Policy

_CHARACTERS_OF_TOKEN: Final = 4
Standings = Mapping[OpinionKind, Standing]


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """Which outputs of which cases are asked about, where, and what becomes of the answers."""

    outputs: Sequence[Path]
    cases: TriageRequest
    address: Address
    send_texts_to: str | None
    dry_run: bool
    cache: Path | None
    at_once: int
    output: Path | None
    force: bool
    format: Literal["console", "json"]

    def check_places(self, read: Path | None) -> None:
        """Raise ConfigurationError if something cannot be written, or is `read` too, before anything is paid for."""
        if self.output is not None:
            asked = [Destination("json", self.output)]
            check_writable(asked, [*self.outputs, *filter(None, [read])], force=self.force)
            check_outside(asked, self.cases.test_dir)
        if self.cache is not None and os.path.realpath(self.cache) == os.path.realpath(self.cases.test_dir):
            raise ConfigurationError(
                f"--cache {visible(str(self.cache))} is the folder of the test cases, where replies would be taken for "
                "batch files; name another one"
            )

    def write(self, text: str) -> None:
        """Write the file, if there is one."""
        if self.output is not None:
            write_whole(self.output, text)
            print_message(f"wrote {visible(str(self.output))}")


def judge_command(policy: Policy, request: JudgeRequest, calibration: Path | None) -> int:
    """Ask about what is open, print and write the opinions, give the exit code; raises ConfigurationError, Fatal."""
    model = request.address.model
    measured = None if calibration is None else read_calibration(calibration)
    standings = {kind: standing_of(kind, model, measured) for kind in OPINION_KINDS}
    runs = _runs(policy, request, Decisions())
    questions = [question for run in runs for question in questions_in(run, open_only=True)]
    if request.dry_run:
        return _dry_run(questions)
    replies = _asked(questions, request, calibration)
    opinions = {question: each[0] for question, each in zip(questions, replies, strict=True)}
    request.write(written(model, standings, opinions))
    if request.format == "json":
        print_json([_document(question, each, request, standings) for question, each in opinions.items()])
    else:
        print("\n".join(_lines(opinions, request, standings)))
    return EXIT_OK


def calibrate_command(policy: Policy, request: JudgeRequest, left_out: Path | None, repeat: int) -> int:
    """Ask about what people decided, print and write how far the two agree; raises ConfigurationError, Fatal."""
    digests = _digests(left_out)
    runs = _runs(policy, request, Decisions.read(request.cases.test_dir))
    # A term that a test case lists twice has one decision.
    labels = [*{label.digest: label for run in runs for label in labels_of(run, digests)}.values()]
    if not labels:
        raise ConfigurationError(
            "no decision about these outputs says whether something is said, so there is nothing to calibrate by; "
            "decide on missed terms with safe review first"
        )
    questions = [label.question for label in labels]
    if request.dry_run:
        for label in labels:
            print(label.digest, label.answer, *(printable(str(each)) for each in label.question.subject[:4]))
        return _dry_run(questions, repeat)
    replies = _asked(questions, request, left_out, repeat)
    result = calibrate(labels, replies, request.address.model)
    request.write(as_text(result))
    lines = [*_measured_lines(result), *_differing_lines(labels, replies)]
    print(as_text(result) if request.format == "json" else "\n".join([*lines, ""]), end="")
    return EXIT_OK


def _digests(path: Path | None) -> frozenset[str]:
    """Read a list of decisions, by digest, one in each line; what follows the digest is for people."""
    try:
        text = "" if path is None else path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--leave-out {visible(str(path))} cannot be read") from error
    return frozenset(re.findall(r"^\s*([0-9a-f]{64})\b", text, re.MULTILINE))


def _runs(policy: Policy, request: JudgeRequest, decisions: Decisions) -> Iterator[ScoredRun]:
    files, cases = open_all(request.outputs), request.cases
    with progress_bar(message_console(), "reading", None) as bar:
        for selection in selections(cases.test_dir, cases.batch, cases.concern):
            run, remarks = score_files(
                selection, files, policy, generated_at="", on_duplicate=cases.on_duplicate,
                explain="without text", decisions=decisions, bar=bar,
            )  # fmt: skip
            print_message(*remarks)
            yield run


def _dry_run(questions: Sequence[Question], repeat: int = 1) -> int:
    print(RUBRIC, *(printable(question.document) for question in questions), sep="\n")
    distinct = {question.document for question in questions}
    tokens = repeat * sum(len(document) + len(RUBRIC) for document in distinct) // _CHARACTERS_OF_TOKEN
    times = f", each {repeat} times" if repeat > 1 else ""
    print_message(
        f"{count_of(len(distinct), 'question')}{times}, about {tokens} tokens (estimated: {_CHARACTERS_OF_TOKEN} "
        "characters each, without the replies); nothing was sent"
    )
    return EXIT_OK


def _asked(
    questions: Sequence[Question], request: JudgeRequest, read: Path | None, repeat: int = 1
) -> list[list[Opinion]]:
    """Ask, with progress, what is alike only once; gives the opinions on each question.

    Raises ConfigurationError without consent or key, Fatal if the endpoint goes on failing.
    """
    from consumer.judging.endpoint import connected  # noqa: PLC0415  its client is an extra

    request.address.check_consent(request.send_texts_to)
    request.check_places(read)
    if request.cache is not None:
        where = visible(str(request.cache))
        print_message(f"replies are kept in {where}; they quote outputs and narratives, which may hold patient data")
    cache = Cache(request.cache)
    keys = [[question.key(request.address.model, each) for each in range(repeat)] for question in questions]
    by_key = {key: question for question, each in zip(questions, keys, strict=True) for key in each}
    with progress_bar(message_console(), "asking", len(by_key)) as bar:
        progress = Progress(len(by_key), bar)

        async def ask() -> Mapping[str, Opinion]:
            async with connected(request.address) as asking:
                return await Asker(asking, cache, progress).all(by_key.items(), at_once=request.at_once)

        try:
            opinions = asyncio.run(ask())
        except Transient as error:
            goes_on = "; the same command goes on from there" if request.cache is not None and progress.done else ""
            raise Fatal(f"{request.address.base_url}: {error}{goes_on}") from error
        finally:
            print_message(progress.summary)
    return [[opinions[key] for key in each] for each in keys]


# --- what is printed --------------------------------------------------------------------------------------------------


def _document(
    question: Question, opinion: Opinion, request: JudgeRequest, standings: Standings
) -> dict[str, str | None]:
    test_id, kind, criterion, term, _ = question.subject
    about = {"test_id": test_id, "kind": kind, "criterion": criterion, "term": term}
    said = {"answer": opinion.answer, "why": opinion.why or None, "model": request.address.model}
    quote = {"quote": opinion.quote or None} if request.cases.include_text else {}
    return {**about, **said, "standing": standings[kind], **quote}


def _lines(opinions: Mapping[Question, Opinion], request: JudgeRequest, standings: Standings) -> Iterator[str]:
    if not opinions:
        yield "Nothing is open: no miss is left to a person, and nothing stands beside the scores."
    for kind in OPINION_KINDS:
        of_kind = [(question, each) for question, each in opinions.items() if question.kind == kind]
        if of_kind:
            counts = Counter(answer_in_words(kind, each.answer) for _, each in of_kind).most_common()
            listed = ", ".join(f"{each} {count}" for each, count in counts)
            counted = count_of(len(of_kind), kind.replace("_", " "), "es" if kind == "miss" else "s")
            yield f"{counted}: {listed} ({visible(request.address.model)}, {worth_in_words(standings[kind])})"
        for question, each in of_kind:
            quote = f": {quoted(each.quote)}" if request.cases.include_text and each.quote else ""
            why = f" ({each.why})" if each.why else ""
            yield f"  {_called(question)}: {answer_in_words(kind, each.answer)}{why}{quote}"


def _called(question: Question) -> str:
    test_id, _, criterion, term, _ = question.subject
    return " ".join(filter(None, (visible(test_id), criterion, quoted(term))))


def _measured_lines(result: Calibration) -> Iterator[str]:
    for kind, measured in result.kinds.items():
        yield f"{kind.replace('_', ' ')}: {'weak: ' + '; '.join(measured.weak) if measured.weak else 'calibrated'}"
        yield from (f"  {name:<12} {words}" for name, words in _figures(measured))


def _figures(measured: Measured) -> Iterator[tuple[str, str]]:
    kappa = "not defined" if measured.kappa is None else f"{measured.kappa:.2f}"
    yield "agreement", f"{measured.agreement.in_words}, no opinion on {measured.no_opinion}"
    yield "kappa", f"{kappa}; people say yes to {measured.base_rate:.0%}"
    yield "sensitivity", measured.sensitivity.in_words
    yield "specificity", measured.specificity.in_words
    if measured.consistent is not None:
        yield "consistent", f"{measured.consistent.in_words} have the same opinion each time"


def _differing_lines(labels: Sequence[Label], replies: Sequence[Sequence[Opinion]]) -> Iterator[str]:
    pairs = [(label, each[0].answer) for label, each in zip(labels, replies, strict=True)]
    differing = [(label, answer) for label, answer in pairs if label.answer != answer]
    if differing:
        yield f"Look again at {count_of(len(differing), 'decision')}, where the opinion differs:"
    for label, answer in differing:
        person, model = (answer_in_words(label.question.kind, each) for each in (label.answer, answer))
        yield f"  {_called(label.question)}: people say that {person}, the model: {model}"
