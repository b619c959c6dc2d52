"""One input on the product's own path, decode → validate → score → encode, and what must hold whatever the input is.

One outcome; no exception but those that the code has names for; bounded time; nothing of the input in what SAFE says of
it; scores that an oracle written apart agrees with. Whatever breaks one of these is a Finding.
"""

import ast
import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import orjson
from structlog.testing import capture_logs
from typing_extensions import override

import consumer
import safe_core
from consumer.case_sources.cases import case_or_poison, nameless_count, parse_document, rows_of
from consumer.case_sources.source import ExpectationsKey, FoundExpectations
from consumer.dead_letter_reasons import REASONS, Poison
from consumer.kafka.writer import Outgoing
from consumer.telemetry.metrics import Metrics
from consumer.wire.input_event import InputRules
from consumer.wire.keys import parts_of
from consumer.wire.result_event import encode_result, result_headers
from consumer.wire.scored_record import ResultShape, ScoredRecord, decode_scored, row_of
from consumer.worker.dead_letter_limit import DeadLetterLimits
from consumer.worker.dead_letter_writing import DeadLetterTopic
from consumer.worker.scorer import ScorerPartition, ScorerSettings
from consumer.worker.topic_limits import TopicLimits
from safe_core import InvalidBatch, LatestResults, Policy, parse_batch, prepare
from tests.core.oracle import Settings, oracle_score
from tests.support.offsets import never_judged
from tests.support.oracle import has_failed

Headers = Sequence[tuple[str, bytes | None]]

NOW = 1_795_291_200_000
CANARY = "Qz7wKx3vNp9yTf4h"
"""Stands in the inputs, and must stand in nothing that SAFE says."""

PIECE = 64 * 1024
ALLOWED_SECONDS = 0.050
"""For each piece of the input, begun or whole."""

_RUN = 8
"""So many characters of an input in a row would be a quotation."""
_ORACLE_WORK = 200_000
"""Terms times characters up to which the oracle, which is slow, is asked."""
_HELD = 64

NOT_FOUND = Poison("expectations_not_found", "no batch holds the test case")
POLICY = Policy.from_document({})
SETTINGS = ScorerSettings(
    group="safe-v0",
    version="0.1.0",
    policy=POLICY,
    input_rules=InputRules(types=frozenset({"", "generation.output"})),
    input_start=None,
    expectations_grace_seconds=0,
    scored_topic="scored",
    scored_partitions=8,
    input_topic=None,
    dead_letters=DeadLetterTopic("dead", 4, TopicLimits({"dead": 8 * 1024 * 1024}), "safe-v0", "0.1.0"),
    dead_letter_limits=DeadLetterLimits(),
)


class Finding(AssertionError):
    """A property that does not hold, in a sentence without the input."""


@dataclass(slots=True)  # not frozen, only because the client's records are not either
class Case:
    """One record and the batch file that its test case is looked for in; all as arbitrary as anybody may write it."""

    value: bytes | None
    expectations: bytes
    headers: Headers = ()
    key: bytes | None = b"any"
    timestamp: int = NOW - 40
    offset: int = 41
    topic: str = "input"
    partition: int = 6

    @property
    def size(self) -> int:
        """Bytes of the record and of its expectations."""
        headers = sum(len(name) + len(content or b"") for name, content in self.headers)
        return len(self.value or b"") + len(self.key or b"") + headers + len(self.expectations)


class Verdict(NamedTuple):
    """What a case came to: `outcome` is scored, ignored or a reason; `detail` tells outcomes of a kind apart."""

    outcome: str
    detail: str
    seconds: float
    size: int

    @property
    def seconds_a_piece(self) -> float:
        """Processor time for each PIECE of the input, an input that is smaller being one."""
        return self.seconds / max(1.0, self.size / PIECE)


class Written(NamedTuple):
    """A record that the scorer wrote."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class _Kept(Outgoing):
    """A slice that keeps its records."""

    def __init__(self) -> None:
        super().__init__(NOW)
        self.written: list[Written] = []

    @override
    def append(self, topic: str, partition: int, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        self.written.append(Written(topic, partition, key, value, headers))


class _Counted(Metrics):
    """Metrics that remember what the last slice counted."""

    outcomes: Mapping[str, int] = {}

    @override
    def count_all(self, counts: Mapping[tuple[str, ...], int]) -> None:
        self.outcomes = {labels[0]: count for (name, *labels), count in counts.items() if name == "safe_records"}


class _OneBatch:
    """A source of expectations that holds one batch; a test_id that it lacks is answered by its first good case.

    Else no mutated id would ever be scored.
    """

    name = "fuzz"
    requests: Mapping[str, int] = {}
    unusable: Sequence[str] = ()

    def __init__(self) -> None:
        self._held: dict[bytes, Mapping[str, FoundExpectations | Poison]] = {}
        self.answers: Mapping[str, FoundExpectations | Poison] = {}
        self.first: FoundExpectations | Poison = NOT_FOUND
        self.given: FoundExpectations | Poison | None = None

    def hold(self, raw: bytes) -> None:
        """Read a batch file the way every source does, once for all cases that share it."""
        if raw not in self._held:
            if len(self._held) >= _HELD:
                self._held.clear()
            self._held[raw] = _answers(raw)
        self.answers = self._held[raw]
        good = (answer for answer in self.answers.values() if isinstance(answer, FoundExpectations))
        self.first = next(good, NOT_FOUND)

    def forget(self) -> None:
        """Read every batch file anew."""
        self._held.clear()

    async def start(self) -> None:
        """Nothing to make ready."""

    async def find(self, keys: Sequence[ExpectationsKey]) -> Mapping[ExpectationsKey, FoundExpectations | Poison]:
        """Answer the one key of a slice, and remember what was given."""
        (key,) = keys
        self.given = self.answers.get(key.test_id, self.first)
        return {key: self.given}

    def trouble(self) -> str | None:
        """None, ever."""
        return None

    async def stop(self) -> None:
        """Nothing to release."""


def _answers(raw: bytes) -> Mapping[str, FoundExpectations | Poison]:
    try:
        batch = parse_batch(parse_document(raw))
    except InvalidBatch:
        return {}
    rows = rows_of(batch)
    expected = len(rows) + nameless_count(batch)
    return {test_id: _found(case_or_poison(row, "B.json"), expected) for test_id, row in rows.items()}


def _found(case: safe_core.TestCase | Poison, expected: int) -> FoundExpectations | Poison:
    if isinstance(case, Poison):
        return case
    prepared = prepare(case.expectations)
    return FoundExpectations(prepared, case.concern_id, case.archetype, case.metric_id, expected, in_batch=True)


class Examiner:
    """Puts one case after another through a scorer's partition; close() it.

    `allowed_seconds` is for each piece of an input, None for no limit; `clock` gives processor time in seconds.
    """

    def __init__(
        self, allowed_seconds: float | None = ALLOWED_SECONDS, clock: Callable[[], float] = time.process_time
    ) -> None:
        self._allowed_seconds = float("inf") if allowed_seconds is None else allowed_seconds
        self._clock = clock
        self._source = _OneBatch()
        self._metrics = _Counted("0.1.0", POLICY.fingerprint)
        self._scorer = ScorerPartition(6, SETTINGS, self._source, self._metrics, lambda: NOW, never_judged)
        self._runner = asyncio.Runner()

    def close(self) -> None:
        """Close the event loop."""
        self._runner.close()

    def examine(self, case: Case) -> Verdict:
        """Give what the case came to; raises Finding where a property does not hold.

        A case that seems slow is run three times more, and the least time counts: others may use the processor too.
        """
        verdict = self._once(case)
        if verdict.seconds_a_piece > self._allowed_seconds / 2:
            verdict = min((verdict, *(self._anew(case) for _ in range(3))), key=lambda each: each.seconds)
            if verdict.seconds_a_piece > self._allowed_seconds:
                raise Finding(f"{verdict.seconds_a_piece * 1_000:.0f} ms for each 64 KiB of {case.size} bytes")
        return verdict

    def _anew(self, case: Case) -> Verdict:
        self._source.forget()
        return self._once(case)

    def _once(self, case: Case) -> Verdict:
        outgoing = _Kept()
        self._source.given = None
        started = self._clock()
        with capture_logs() as said:
            try:
                self._runner.run(self._through(case, outgoing))
                scored = _carried(outgoing.written)
            except Exception as error:  # the edge of the fuzz: whatever comes out here is what it looks for
                raise Finding(f"{type(error).__name__} escaped") from error
        seconds = self._clock() - started
        require(CANARY not in str(said), "the log repeats the input")
        outcome, detail = self._outcome(case, outgoing.written, scored)
        check_json(case, outcome)
        return Verdict(outcome, detail, seconds, case.size)

    async def _through(self, case: Case, outgoing: Outgoing) -> None:
        self._source.hold(case.expectations)
        await self._scorer.process([case], outgoing)
        self._scorer.committed(case.offset + 1)

    def _outcome(
        self, case: Case, written: Sequence[Written], scored: ScoredRecord[ResultShape] | None
    ) -> tuple[str, str]:
        counted = [outcome for outcome, count in self._metrics.outcomes.items() for _ in range(count)]
        require(len(counted) == 1, f"{len(counted)} outcomes were counted")
        require(len(written) == (counted != ["ignored"]), f"{len(written)} records were written")
        if not written:
            return "ignored", ""
        if scored is None:
            require(counted == ["dead_lettered"], "a dead letter was not counted as one")
            return check_dead_letter(case, written[0])
        require(counted == ["scored"], "a scored record was not counted as one")
        assert isinstance(self._source.given, FoundExpectations)
        return check_scored(case, written[0], scored, self._source.given)


def require(holds: bool, otherwise: str) -> None:  # like an assertion, also where -O takes those away
    """Raise Finding unless the property holds."""
    if not holds:
        raise Finding(otherwise)


def _carried(written: Sequence[Written]) -> ScoredRecord[ResultShape] | None:
    """Take a scored record on to its result, as the aggregator does: all that it would run of the input's making."""
    for record in written:
        if record.topic == SETTINGS.scored_topic:
            scored = decode_scored(record.value)
            fold = LatestResults()
            fold.offer(scored.result.test_id, row_of(scored))
            result = encode_result(scored, fold.summary(), complete=True, mixed_runs=False, failed_generations=0)
            json.loads(result.decode("utf-8"))
            result_headers(scored, record.key or b"", b"/safe/safe-v0")
            return scored
    return None


# --- JSON -------------------------------------------------------------------------------------------------------------

_NOT_JSON = frozenset({"not_utf8", "invalid_json"})
_JSON = frozenset({"scored", "not_object", "invalid_event", "invalid_id"})


def check_json(case: Case, outcome: str) -> None:
    """Ask another parser, as strict, whether the value is JSON at all."""
    if outcome in _NOT_JSON | _JSON:
        parses = _another_parses(case.value or b"")
        require(parses in {None, outcome in _JSON}, f"another parser would not say {outcome}")


def _another_parses(value: bytes) -> bool | None:
    """Tell whether it is JSON; None where the other parser gives up at an integer, of which SAFE reads none."""
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError as error:
        return None if error.msg.startswith("number is infinity") else False
    return True


# --- a dead letter ----------------------------------------------------------------------------------------------------


_WHERE_IT_STOOD = frozenset(f"safe.dlq.{name}" for name in ("topic", "partition", "offset", "timestamp"))
"""Not the input's to choose: where these numbers stand in it too, that is chance."""


def check_dead_letter(case: Case, written: Written) -> tuple[str, str]:
    """Hold a dead letter against the input that it is a copy of; give its reason and its detail without numbers."""
    ours = {name: content or b"" for name, content in written.headers if name.startswith("safe.dlq.")}
    kept = [header for header in written.headers if not header[0].startswith("safe.dlq.")]
    require(kept == [h for h in case.headers if not h[0].startswith("safe.dlq.")], "a header was lost or altered")
    require(written.key == case.key, "the key was altered")
    require(written.value == case.value or b"true" == ours.get("safe.dlq.value_omitted"), "the value was altered")
    reason, detail = (ours[f"safe.dlq.{name}"].decode("utf-8") for name in ("reason", "detail"))
    require(reason in REASONS and reason != "scorer_error", f"a dead letter with the reason {reason}")
    require(len(ours["safe.dlq.detail"]) <= 512, "the detail is longer than 512 bytes")
    require(all(name.encode("utf-8") for name, _ in written.headers if name), "a header's name cannot be written")
    for name, content in ours.items():
        told = content.decode("utf-8")
        require(CANARY not in told, f"{name} repeats the input")
        require(name in _WHERE_IT_STOOD or not quoted(told, case), f"{name} repeats the input")
    return reason, "".join(character for character in detail if not character.isdigit())


def quoted(said: str, case: Case) -> str | None:
    """Find a run of characters of the input in what SAFE says of it, unless the run stands in SAFE's own texts."""
    heard = [case.value or b"", case.key or b"", *(content or b"" for _, content in case.headers), case.expectations]
    for start in range(len(said) - _RUN + 1):
        run = said[start : start + _RUN]
        if not _is_ours(run) and any(run.encode() in each for each in heard):
            return run
    return None


@lru_cache(maxsize=65_536)
def _is_ours(run: str) -> bool:
    return run in _own_texts()


@lru_cache(maxsize=1)
def _own_texts() -> str:
    """Every text constant of the product, the only words that it may use of its own accord."""
    return "\n".join([*_constants(consumer), *_constants(safe_core), "safe-v0", "2026-11-21T20:00:00.000Z"])


def _constants(package: Any) -> Iterator[str]:
    for file in sorted(Path(package.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


# --- a scored record --------------------------------------------------------------------------------------------------


def check_scored(
    case: Case, written: Written, scored: ScoredRecord[ResultShape], found: FoundExpectations
) -> tuple[str, str]:
    """Hold a scored record against its input and against the oracle; give its label and what it is made of."""
    require(msgspec.json.encode(scored) == written.value, "a scored record does not survive being read")
    require(
        parts_of(written.key or b"") == (scored.concern_id, scored.batch_id, scored.result.test_id),
        "the key does not give back its parts",
    )
    require(scored.output_digest == "sha256:" + hashlib.sha256(case.value or b"").hexdigest(), "the digest is another")
    _check_terms(scored, found)
    document = json.loads(case.value or b"", parse_int=str)  # Python reads no 5,000 digits
    event = document["data"] if _is_structured(case.headers) else document
    _check_secrecy(case, written, event)
    if _work(event, found) <= _ORACLE_WORK:
        _check_scores(scored, event, found)
    row = row_of(scored)
    return "scored", f"{row.label} {row.passed} {row.vacuous} {row.empty_output} {_shape(event)}"


def _check_terms(scored: ScoredRecord[ResultShape], found: FoundExpectations) -> None:
    details = scored.result.details
    shown = [details.CR.found + details.CR.missing, details.AC.found + details.AC.missing]
    signals, forbidden, phrases = found.prepared.expectations.lists
    require([Counter(terms) for terms in shown] == [Counter(signals), Counter(phrases)], "terms were lost or made up")
    require(not Counter(details.AH.violations) - Counter(forbidden), "a violation of a term that is not forbidden")


def _is_structured(headers: Headers) -> bool:
    types = [content for name, content in headers if name.lower() == "content-type" and content is not None]
    return bool(types) and types[-1].strip().lower().startswith(b"application/cloudevents+json")


def _check_secrecy(case: Case, written: Written, event: Any) -> None:
    """No text of an output stands in a scored record, unless an id or a term says the same."""
    if CANARY.encode() in (written.value or b""):
        ids = "".join(str(event.get(name)) for name in ("test_id", "batch_id", "concern_id", "archetype", "run_id"))
        require(CANARY in ids or CANARY.encode() in case.expectations, "the scored record repeats the output")


def _texts(event: Any) -> tuple[list[str], list[str], list[str]]:
    output = event["output"] or {}
    return output.get("signals") or [], [output.get("summary") or ""], output.get("followup_questions") or []


def _work(event: Any, found: FoundExpectations) -> int:
    characters = sum(len(text) for texts in _texts(event) for text in texts)
    return characters * sum(found.prepared.terms)


def _check_scores(scored: ScoredRecord[ResultShape], event: Any, found: FoundExpectations) -> None:
    failed = has_failed(event["output"] or {})
    texts = _texts({"output": None} if failed else event)
    truth = oracle_score(found.prepared.expectations.lists, texts, Settings())
    truth["empty_output"] = truth["empty_output"] and not failed
    case = row_of(scored)
    require(case.failed == failed, "the oracle gives another generation")
    for name in ("scores", "details", "terms", "passed", "vacuous", "empty_output", "label"):
        require(getattr(case, name) == truth[name], f"the oracle gives other {name}")


def _shape(event: Any) -> str:
    return "".join("-" if event.get(name) is None else "x" for name in ("concern_id", "archetype", "run_id"))
