"""Both stages over one partition in memory: inputs in, every record that they write out, no broker between."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from typing_extensions import override

from consumer.case_sources.source import ExpectationsKey, FoundExpectations
from consumer.dead_letter_reasons import Poison
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.writer import Outgoing
from consumer.telemetry.metrics import BatchGauges, Metrics
from consumer.wire.changelog import InputTopic
from consumer.wire.input_event import InputRules
from consumer.wire.record import Record
from consumer.worker import aggregator as aggregator_module
from consumer.worker import report_schedule
from consumer.worker.aggregator import AggregatorPartition
from consumer.worker.aggregator_state import AggregatorSettings
from consumer.worker.dead_letter_limit import DeadLetterLimits
from consumer.worker.dead_letter_writing import DeadLetterTopic
from consumer.worker.scorer import Beside, ScorerPartition, ScorerSettings
from consumer.worker.topic_limits import TopicLimits
from safe_core import DEFAULT_POLICY, Expectations, Policy, prepare
from safe_core.lenient import marks_of
from safe_core.narrative_digests import digest_of_narrative
from safe_core.unsupported import count_unsupported
from tests.support.cases import WrittenBatch, WrittenCase
from tests.support.marker import Marker
from tests.support.offsets import never_judged

Headers = Sequence[tuple[str, bytes | None]]
NOW = 1_795_291_200_000
GROUP = "safe-v0"
INPUT = InputTopic("AAECAwQFBgcICQoLDA3-_w", is_in_result_ids=True)


@dataclass
class Written:
    """A record as a topic holds it; as an input, it is one to be read."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int = NOW


class _Slice(Outgoing):
    """A slice that keeps its records."""

    def __init__(self) -> None:
        super().__init__(NOW)
        self.written: list[Written] = []

    @override
    def append(self, topic: str, partition: int, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        self.written.append(Written(topic, partition, len(self.written), key, value, tuple(headers)))


def _digests(case: WrittenCase) -> tuple[str, ...]:
    digest = digest_of_narrative(case.entry["patient_payload"])
    return () if digest is None else (digest,)


class _Cases:
    """An ExpectationsSource over batches of ours."""

    name = "memory"
    requests: Mapping[str, int] = {}
    unusable: Sequence[str] = ()

    def __init__(self, batches: Sequence[WrittenBatch], *, tells_narratives: bool) -> None:
        self._found = {
            ExpectationsKey(batch.batch_id, case.test_id): FoundExpectations(
                prepare(Expectations(*map(tuple, case.terms))),
                case.concern_id,
                case.entry.get("archetype"),
                None,
                len(batch.cases),
                in_batch=True,
                narratives=_digests(case) if tells_narratives else (),
            )
            for batch in batches
            for case in batch.cases
        }

    async def start(self) -> None:
        """Nothing to make ready."""

    async def find(self, keys: Sequence[ExpectationsKey]) -> Mapping[ExpectationsKey, FoundExpectations | Poison]:
        none = Poison("expectations_not_found", "no batch holds it")
        return {key: self._found.get(ExpectationsKey(key.batch_id, key.test_id), none) for key in keys}

    def trouble(self) -> str | None:
        return None

    async def stop(self) -> None:
        """Nothing to release."""


class _Clock:
    """Stands where the aggregator has the module `time`."""

    seconds = 1_000.0

    def monotonic(self) -> float:
        return self.seconds


class Chain:
    """A scorer and an aggregator with one partition; `max_value_bytes` is the limit of reports alone."""

    def __init__(
        self,
        batches: Sequence[WrittenBatch],
        *,
        policy: Policy = DEFAULT_POLICY,
        max_value_bytes: int = 1_048_576,
        lenient: bool = False,
        unsupported: bool = False,
    ) -> None:
        letters = DeadLetterTopic("dead-letter", 1, TopicLimits({"dead-letter": 8 * 1024 * 1024}), GROUP, "0.1.0")
        metrics = Metrics("0.1.0", policy.fingerprint)
        rules = InputRules(keeps_narratives=unsupported)
        scoring = ScorerSettings(
            GROUP, "0.1.0", policy, rules, None, 0, "scored", 1, INPUT, letters, DeadLetterLimits()
        )
        self._folding = AggregatorSettings(
            group=GROUP,
            fingerprint=policy.fingerprint,
            configuration=policy.configuration(),
            exactly_once=True,
            partitions=1,
            scored_topic_id=None,
            state_topic="state",
            result_topic="result",
            report_topic="report",
            dead_letters=letters,
            max_value_bytes=max_value_bytes,
            batch_ttl_seconds=604_800,
            event_time_ahead_seconds=3_600,
        )
        self.metrics = self._metrics = metrics
        self._clock = _Clock()
        beside = Beside(marks_of if lenient else None, count_unsupported if unsupported else None)
        source = _Cases(batches, tells_narratives=unsupported)
        self._scorer = ScorerPartition(0, scoring, source, metrics, lambda: NOW, never_judged, beside=beside)

    async def _nothing(self, _partition: int, _end: int) -> AsyncIterator[Sequence[Record]]:
        nothing: Sequence[Sequence[Record]] = ()
        for records in nothing:
            yield records

    async def run(self, inputs: Sequence[Written]) -> list[Written]:
        """Pass the inputs through both stages, until every batch has its report."""
        first, second = _Slice(), _Slice()
        assert await self._scorer.process(inputs, first) == len(inputs)
        self._scorer.committed(len(inputs))
        scored = [record for record in first.written if record.topic == "scored"]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(aggregator_module, "time", self._clock)
            patched.setattr(report_schedule, "time", self._clock)
            gauges = BatchGauges(1_000, lambda: True)
            clock = BrokersClock(lambda: NOW)
            aggregator = AggregatorPartition(0, self._folding, self._nothing, gauges, self._metrics, clock)
            await aggregator.restore(Marker())
            assert await aggregator.process(scored, second) == len(scored)
            self._finish(aggregator, second, len(scored))
        return first.written + second.written

    def _finish(self, aggregator: AggregatorPartition, outgoing: _Slice, next_offset: int) -> None:
        """Let time pass until no report is owed."""
        reports = -1
        while reports != (reports := sum(record.topic == "report" for record in outgoing.written)):
            self._clock.seconds += 2
            aggregator.finish(outgoing, next_offset, at_end=True)


def inputs_of(records: Sequence[Any]) -> list[Written]:
    """Give records to be written the places that one partition would give them."""
    return [
        Written("factory.generation.output", 0, offset, record.key, record.value, tuple(record.headers))
        for offset, record in enumerate(records)
    ]


def with_headers(record: Written, headers: Headers) -> Written:
    """The same record with other headers."""
    return replace(record, headers=tuple(headers))
