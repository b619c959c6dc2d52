"""Every bad input on the scorer's own path, decode → find expectations → score → encode, without a broker."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from typing_extensions import override

from consumer.case_sources.folder import FolderSource
from consumer.dead_letter_reasons import REASONS
from consumer.kafka.writer import Outgoing
from consumer.telemetry.metrics import Metrics
from consumer.wire.input_event import InputRules
from consumer.worker.dead_letter_limit import DeadLetterLimits
from consumer.worker.dead_letter_writing import DeadLetterTopic
from consumer.worker.scorer import ScorerPartition, ScorerSettings
from consumer.worker.topic_limits import TopicLimits
from safe_core import Policy
from tests.support.bad_inputs import (
    BAD_INPUTS,
    ID_CANARY,
    IGNORED,
    OUR_TYPE,
    SCORED,
    TEXT_CANARY,
    VALUE_LIMIT,
    BadInput,
    write_cases,
    write_traps,
)
from tests.support.offsets import never_judged

NOW = 1_795_291_200_000
POLICY = Policy.from_document({})
SETTINGS = ScorerSettings(
    group="safe-v0",
    version="0.1.0",
    policy=POLICY,
    input_rules=InputRules(max_value_bytes=VALUE_LIMIT, types=frozenset({OUR_TYPE})),
    input_start=None,
    expectations_grace_seconds=0,
    scored_topic="scored",
    scored_partitions=8,
    input_topic=None,
    dead_letters=DeadLetterTopic("dead", 4, TopicLimits({"dead": 16 << 20}), "safe-v0", "0.1.0"),
    dead_letter_limits=DeadLetterLimits(),
)


@dataclass(slots=True)
class Fetched:
    """A record as a client hands it over."""

    value: bytes | None
    key: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    timestamp: int
    topic: str = "input"
    partition: int = 0
    offset: int = 41


@dataclass(frozen=True, slots=True)
class Written:
    """A record that the scorer would have written."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]

    @property
    def verdict(self) -> str:
        """What the table calls it."""
        return SCORED if self.topic == "scored" else str(self.said("reason"))

    def said(self, name: str) -> str | None:
        """A header of a dead letter."""
        [content] = [content for key, content in self.headers if key == f"safe.dlq.{name}"]
        return None if content is None else content.decode()


class Kept(Outgoing):
    """A slice that keeps its records where a test can see them."""

    def __init__(self) -> None:
        super().__init__(NOW)
        self.written: list[Written] = []

    @override
    def append(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
    ) -> None:
        self.written.append(Written(topic, key, value, list(headers)))


@dataclass(frozen=True, slots=True)
class Seen:
    """What all of the table came to, one input at a time, and what was said meanwhile."""

    written: Mapping[int, list[Written]]
    log: str


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("bad-inputs")
    cases = write_cases(folder)
    write_traps(cases)
    with capture_logs() as lines:
        written = asyncio.run(_all_of_them(cases))
    return Seen(written, json.dumps(lines, default=str))


async def _all_of_them(cases: Path) -> dict[int, list[Written]]:
    source = FolderSource(cases)
    await source.start()
    logic = ScorerPartition(0, SETTINGS, source, Metrics("0.1.0", POLICY.fingerprint), lambda: NOW, never_judged)
    written: dict[int, list[Written]] = {}
    for number, bad in enumerate(BAD_INPUTS):
        timestamp = NOW if bad.record.timestamp is None else bad.record.timestamp
        record = Fetched(bad.record.value, bad.record.key, bad.record.headers, timestamp)
        outgoing = Kept()
        assert await logic.process([record], outgoing) == 1
        logic.committed(record.offset + 1)
        written[number] = outgoing.written
    await source.stop()
    return written


NUMBERED = pytest.mark.parametrize(
    ("number", "bad"),
    list(enumerate(BAD_INPUTS)),
    ids=[str(bad).encode("unicode_escape").decode() for bad in BAD_INPUTS],
)


@NUMBERED
def test_each_bad_input_comes_to_what_it_must(number: int, bad: BadInput, seen: Seen) -> None:
    verdicts = [each.verdict for each in seen.written[number]] or [IGNORED]
    assert len(verdicts) == 1
    assert verdicts[0] in bad.verdict
    for letter in seen.written[number]:
        if letter.topic == "dead":
            assert (letter.key, letter.value) == (bad.record.key, bad.record.value)
            assert 0 < len(str(letter.said("detail")).encode()) <= 512


def test_every_verdict_of_the_table_is_one_that_there_is() -> None:
    assert {word for bad in BAD_INPUTS for word in bad.verdict} <= {SCORED, IGNORED, *REASONS}


@pytest.mark.parametrize("canary", [TEXT_CANARY, ID_CANARY])
def test_nothing_of_an_input_is_said_about_it(canary: str, seen: Seen) -> None:
    assert canary not in seen.log
    letters = [each for written in seen.written.values() for each in written if each.topic == "dead"]
    assert [letter.said("detail") for letter in letters if canary in str(letter.said("detail"))] == []
    scored = [each for written in seen.written.values() for each in written if each.topic == "scored"]
    assert TEXT_CANARY.encode() not in b"".join(each.value or b"" for each in scored)


def test_a_byte_order_mark_is_named(seen: Seen) -> None:
    [number] = [number for number, bad in enumerate(BAD_INPUTS) if bad.row == 6]
    assert "byte order mark" in str(seen.written[number][0].said("detail"))


def test_no_two_inputs_of_the_table_are_the_same() -> None:
    records = [repr(bad.record) for bad in BAD_INPUTS]
    assert [str(bad) for bad, text in zip(BAD_INPUTS, records, strict=True) if records.count(text) > 1] == []
