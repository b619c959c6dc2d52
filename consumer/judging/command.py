"""`safe judge` from beginning to end."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from consumer.errors import ConfigurationError, Fatal, Transient
from consumer.exit_codes import EXIT_OK
from consumer.files.outputs import OnDuplicate, open_all
from consumer.files.selection import selections
from consumer.judging.asking import Asker, Cache, Opinion, Progress
from consumer.judging.calibration import (
    Calibration,
    Label,
    Measured,
    calibrate,
    disagreements,
    labels_of,
    read_calibration,
    standing_of,
)
from consumer.judging.opinions import answer_in_words, worth_in_words, written
from consumer.judging.questions import OPINION_KINDS, RUBRIC, OpinionKind, Question, Subject, open_questions
from consumer.offline.decisions import Decisions
from consumer.offline.scored_run import ScoredRun
from consumer.offline.scoring import score_files
from consumer.offline.whole_files import write_whole
from consumer.terminal import Bar, message_console, print_json, print_message, progress_bar
from consumer.text import count_of, printable, quoted, visible
from safe_core import Policy

_CHARACTERS_OF_TOKEN: Final = 4
_TOLD_EACH_SECONDS: Final = 30.0
Opinions = Mapping[Question, Opinion]


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """Which outputs of which cases are asked about, where, and what becomes of the answers."""

    outputs: Sequence[Path]
    test_dir: Path
    batch: str
    concern: str | None
    on_duplicate: OnDuplicate | None
    model: str
    base_url: str
    api_version: str | None
    timeout: float
    send_texts_to: str | None
    cache: Path | None
    at_once: int
    dry_run: bool
    output: Path | None
    format: Literal["console", "json"]
    include_text: bool


def judge_command(policy: Policy, request: JudgeRequest, calibration: Path | None) -> int:
    """Ask about what is open, print and write the opinions, give the exit code; raises ConfigurationError, Fatal."""
    calibrated = None if calibration is None else read_calibration(calibration)
    questions = [question for run in _runs(policy, request, Decisions()) for question in open_questions(run)]
    if request.dry_run:
        return _dry_run(questions)
    opinions = dict(zip(questions, (each[0] for each in _asked(questions, request)), strict=True))
    _write(request.output, written(request.model, calibrated, opinions))
    if request.format == "json":
        print_json([*_documents(opinions, calibrated, request)])
    else:
        print("\n".join(_lines(opinions, calibrated, request)))
    return EXIT_OK


def calibrate_command(policy: Policy, request: JudgeRequest, left_out: Path | None, repeat: int) -> int:
    """Ask about what people decided, print and write how far the two agree; raises ConfigurationError, Fatal."""
    runs = _runs(policy, request, Decisions.read(request.test_dir))
    labels = [label for run in runs for label in labels_of(run, _digests(left_out))]
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
    opinions = _asked(questions, request, repeat)
    result = calibrate(labels, opinions, request.model)
    document = msgspec.json.format(msgspec.json.encode(result), indent=2).decode()
    _write(request.output, document + "\n")
    print(document if request.format == "json" else "\n".join(_calibration_lines(result, labels, opinions)))
    return EXIT_OK


def _digests(path: Path | None) -> frozenset[str]:
    """Read a list of decisions, by digest, one in each line; what follows the digest is for people."""
    try:
        lines = [] if path is None else path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--leave-out {visible(str(path))} cannot be read") from error
    return frozenset(line.split()[0] for line in lines if line.strip())


def _runs(policy: Policy, request: JudgeRequest, decisions: Decisions) -> Iterator[ScoredRun]:
    files = open_all(request.outputs)
    with progress_bar(message_console(), "reading", None) as bar:
        for selection in selections(request.test_dir, request.batch, request.concern):
            run, remarks = score_files(
                selection, files, policy, generated_at="", on_duplicate=request.on_duplicate,
                explain="without text", decisions=decisions, bar=bar,
            )  # fmt: skip
            print_message(*remarks)
            yield run


def _write(path: Path | None, text: str) -> None:
    if path is not None:
        write_whole(path, text)
        print_message(f"wrote {visible(str(path))}")


def _dry_run(questions: Sequence[Question], repeat: int = 1) -> int:
    print(RUBRIC, *(question.document for question in questions), sep="\n")
    tokens = repeat * sum(len(question.document) + len(RUBRIC) for question in questions) // _CHARACTERS_OF_TOKEN
    times = f", each {repeat} times" if repeat > 1 else ""
    print_message(
        f"{count_of(len(questions), 'question')}{times}, about {tokens} tokens (estimated: {_CHARACTERS_OF_TOKEN} "
        "characters each, without the replies); nothing was sent"
    )
    return EXIT_OK


def _asked(questions: Sequence[Question], request: JudgeRequest, repeat: int = 1) -> list[list[Opinion]]:
    """Ask, with progress; raises ConfigurationError without consent or key, Fatal if the endpoint goes on failing."""
    from consumer.judging.endpoint import Address, check_consent, connected  # noqa: PLC0415  its client is an extra

    check_consent(request.base_url, request.send_texts_to)
    if request.cache is not None:
        where = visible(str(request.cache))
        print_message(f"replies are kept in {where}; they quote outputs and narratives, which may hold patient data")
    cache = Cache(request.cache)
    with progress_bar(message_console(), "asking", len(questions) * repeat) as bar:
        progress = Progress(len(questions) * repeat, _Telling(bar))

        async def ask() -> list[list[Opinion]]:
            address = Address(request.base_url, request.model, request.api_version, request.timeout)
            async with connected(address) as endpoint:
                asker = Asker(endpoint, request.model, cache, progress)
                return await asker.all(questions, at_once=request.at_once, repeats=repeat)

        try:
            return asyncio.run(ask())
        except Transient as error:
            goes_on = "; the same command goes on from there" if request.cache is not None and progress.done else ""
            raise Fatal(f"{visible(request.base_url)}: {error}{goes_on}") from error
        finally:
            print_message(progress.summary)


class _Telling:
    """Tells how far a run is: on a terminal by its bar, elsewhere by a line now and then."""

    def __init__(self, bar: Bar) -> None:
        self._bar, self._told = bar, time.monotonic()

    def __call__(self, progress: Progress) -> None:
        self._bar(1)
        self._bar.says(f"asking ({progress.tokens} tokens so far)")
        if not self._bar.is_seen and time.monotonic() - self._told > _TOLD_EACH_SECONDS:
            self._told = time.monotonic()
            print_message(progress.summary)


# --- what is printed --------------------------------------------------------------------------------------------------


def _documents(
    opinions: Opinions, calibration: Calibration | None, request: JudgeRequest
) -> Iterator[dict[str, str | None]]:
    for question, opinion in opinions.items():
        test_id, kind, criterion, term, _ = question.subject
        about = {"test_id": test_id, "kind": kind, "criterion": criterion, "term": term}
        standing = standing_of(kind, request.model, calibration)
        quote = {"quote": opinion.quote or None} if request.include_text else {}
        said = {"answer": opinion.answer, "why": opinion.why or None}
        yield {**about, **said, "model": request.model, "standing": standing, **quote}


def _lines(opinions: Opinions, calibration: Calibration | None, request: JudgeRequest) -> Iterator[str]:
    if not opinions:
        yield "Nothing is open: no miss is left to a person, and nothing stands beside the scores."
    for kind in OPINION_KINDS:
        of_kind = [(question, each) for question, each in opinions.items() if question.kind == kind]
        if of_kind:
            counts = Counter(answer_in_words(kind, each.answer) for _, each in of_kind).most_common()
            worth = worth_in_words(standing_of(kind, request.model, calibration))
            listed = ", ".join(f"{each} {count}" for each, count in counts)
            yield f"{_counted(kind, len(of_kind))}: {listed} ({visible(request.model)}, {worth})"
        for question, each in of_kind:
            quote = f": {quoted(each.quote)}" if request.include_text and each.quote else ""
            why = f" ({each.why})" if each.why else ""
            yield f"  {_called(question.subject)}: {answer_in_words(kind, each.answer)}{why}{quote}"


def _counted(kind: OpinionKind, number: int) -> str:
    return count_of(number, kind.replace("_", " "), "es" if kind == "miss" else "s")


def _called(subject: Subject) -> str:
    test_id, _, criterion, term, _ = subject
    return " ".join(filter(None, (visible(test_id), criterion, quoted(term))))


def _calibration_lines(
    result: Calibration, labels: Sequence[Label], opinions: Sequence[Sequence[Opinion]]
) -> Iterator[str]:
    for kind, measured in result.kinds.items():
        yield from _measured_lines(kind, measured)
    differing = disagreements(labels, opinions)
    if differing:
        yield f"Look again at {count_of(len(differing), 'decision')}, where the opinion differs:"
    for subject, person, opinion in differing:
        kind = subject[1]
        said = f"people say that {answer_in_words(kind, person)}, the model: {answer_in_words(kind, opinion)}"
        yield f"  {_called(subject)}: {said}"


def _measured_lines(kind: str, measured: Measured) -> Iterator[str]:
    kappa = "not defined" if measured.kappa is None else f"{measured.kappa:.2f}"
    yield f"{kind.replace('_', ' ')}: {'weak: ' + '; '.join(measured.weak) if measured.weak else 'calibrated'}"
    yield f"  agreement    {measured.agreement.in_words}, no opinion on {measured.no_opinion}"
    yield f"  kappa        {kappa}; people say yes to {measured.base_rate:.0%}"
    yield f"  sensitivity  {measured.sensitivity.in_words}"
    yield f"  specificity  {measured.specificity.in_words}"
    if measured.consistent is not None:
        yield f"  consistent   {measured.consistent.in_words} have the same opinion each time"
