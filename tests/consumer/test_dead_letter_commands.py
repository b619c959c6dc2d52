"""What the dead-letter commands read, choose, print and send; the topic is a list of records."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from typing_extensions import override

from consumer.cli.main import main
from consumer.dead_letter_reasons import Poison, Reason
from consumer.dead_letters.list import ListRequest, print_letters
from consumer.dead_letters.replay import Pace, Repeats, Replay
from consumer.dead_letters.selection import Selection, moment_of, read_selection
from consumer.dead_letters.show import ShowRequest, find_letter, print_letter
from consumer.dead_letters.targets import Targets
from consumer.errors import ConfigurationError, Transient
from consumer.kafka import topics as kafka_topics
from consumer.kafka.cluster import Cluster, TopicDescription, TopicsSeen
from consumer.kafka.publisher import Copy, Refused, Republisher
from consumer.kafka.reader import Span, TopicScan
from consumer.settings import load
from consumer.wire.dead_letter import (
    Letter,
    LetterId,
    Source,
    dead_letter_headers,
    read_letter,
    read_name,
    value_omitted,
)
from consumer.wire.times import rfc_3339

INPUT, SCORED = "factory.generation.output", "safe.v0.scored"
GROUP = "safe-v0"
NOW = 1_795_291_200_000
CANARY = "Kanarienvogel"
HOUR = 3_600_000
Json = Any


@dataclass
class Kept:
    """A Kafka record."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


def buried(
    offset: int = 0,
    *,
    partition: int = 0,
    reason: str = "invalid_json",
    source: tuple[str, int, int] | None = None,
    failed_at: int = NOW,
    timestamp: int = NOW - HOUR,
    group: str = GROUP,
    stage: str = "scorer",
    value: bytes | None = CANARY.encode(),
    key: bytes | None = CANARY.encode(),
    headers: Sequence[tuple[str, bytes | None]] = (("trace", CANARY.encode()),),
    detail: str = "not valid JSON at character 3",
) -> Kept:
    """A dead letter as the worker writes it; its source is another one for each offset."""
    topic, source_partition, source_offset = source or (INPUT, partition, 1_000 + offset)
    origin = Kept(topic, source_partition, source_offset, timestamp, key, value, headers)
    told = dead_letter_headers(
        origin, Poison(cast("Reason", reason), detail), stage=stage, group=group, version="0.1.0", failed_at=failed_at
    )
    return Kept("dead", partition, offset, failed_at, key, value, told)


def letter_of(record: Kept) -> Letter:
    """The letter that a record is."""
    letter = read_letter(record)
    assert letter is not None
    return letter


@dataclass
class Shelf(TopicScan):
    """A topic in memory; it hands out two records at a time, and remembers what it was asked."""

    records: list[Kept]
    since: list[int | None] = field(default_factory=list)
    asked: list[Span] = field(default_factory=list)

    @override
    async def spans(self, since_ms: int | None = None) -> list[Span]:
        """Everything, whatever the time: the commands must look for themselves."""
        self.since.append(since_ms)
        partitions = {record.partition for record in self.records} or {0}
        ends = {p: max((r.offset + 1 for r in self.records if r.partition == p), default=0) for p in partitions}
        return [Span(partition, 0, end) for partition, end in ends.items()]

    @override
    async def read(self, span: Span) -> AsyncGenerator[Sequence[Kept], None]:
        """Yield the records of a span in pairs, with empty blocks between."""
        self.asked.append(span)
        found = [r for r in self.records if r.partition == span.partition and span.first <= r.offset < span.end]
        for at in range(0, len(found), 2):
            yield found[at : at + 2]
            yield []


async def listed(records: list[Kept], capsys: pytest.CaptureFixture[str], **request: Any) -> tuple[list[str], str]:
    """The lines on standard output, and standard error."""
    await print_letters(Shelf(records), ListRequest(request.pop("selection", Selection()), **request), source_width=40)
    printed = capsys.readouterr()
    return printed.out.splitlines(), printed.err


# --- what a letter is -------------------------------------------------------------------------------------------------


def test_what_the_worker_writes_is_read_back() -> None:
    letter = letter_of(buried(41, partition=3, reason="not_utf8", source=(INPUT, 7, 1207), timestamp=-1))
    assert letter.id == LetterId(3, 41)
    assert str(letter.id) == "3/41"
    assert letter.source == Source(INPUT, 7, 1207)
    assert (letter.reason, letter.stage, letter.detail) == ("not_utf8", "scorer", "not valid JSON at character 3")
    assert (letter.group, letter.version, letter.failed_at, letter.timestamp) == (GROUP, "0.1.0", NOW, -1)
    assert letter.headers == [("trace", CANARY.encode())]
    assert (letter.omitted, letter.value_bytes) == (None, len(CANARY))


def without(name: str) -> Kept:
    """A letter that lacks a header."""
    record = buried()
    return replace(record, headers=[header for header in record.headers if header[0] != f"safe.dlq.{name}"])


def with_header(name: str, content: bytes | None) -> Kept:
    """A letter with one header more, which counts as the last of that name."""
    record = buried()
    return replace(record, headers=[*record.headers, (f"safe.dlq.{name}", content)])


STRANGERS = [
    *map(without, ["reason", "stage", "detail", "topic", "partition", "offset", "timestamp", "group", "failed_at"]),
    Kept("dead", 0, 0, NOW, b"k", b"v"),  # no headers at all
    with_header("offset", b"forty"),
    with_header("offset", "٤١".encode()),  # digits, but not Kafka's
    with_header("offset", b"9" * 5_000),
    with_header("partition", b"-1"),
    with_header("timestamp", b"9223372036854775808"),  # beyond what a timestamp can be
    with_header("failed_at", b"yesterday"),
    with_header("failed_at", b"9999-12-31T23:59:60Z"),  # a second later no calendar goes on
    with_header("failed_at", b"0001-01-01T00:00:00+23:59"),
    with_header("value_omitted", b"true"),  # of what size?
]


@pytest.mark.parametrize("record", STRANGERS)
def test_a_record_without_the_headers_of_a_letter_is_none(record: Kept) -> None:
    assert read_letter(record) is None


def test_of_a_header_that_stands_twice_safes_own_counts_which_is_the_last() -> None:
    assert letter_of(with_header("reason", b"not_utf8")).reason == "not_utf8"


def test_an_omitted_value_is_known_by_its_size() -> None:
    record = buried(value=None)
    record.headers = [*record.headers, *value_omitted(b"x" * 9)]
    letter = letter_of(record)
    assert letter.omitted == (9, hashlib.sha256(b"x" * 9).hexdigest())
    assert letter.value_bytes == 9
    assert letter.headers == [("trace", CANARY.encode())]


NAMES = [
    ("3/41", LetterId(3, 41)),
    ("factory.generation.output/3/1207", Source(INPUT, 3, 1207)),
]


@pytest.mark.parametrize(("text", "name"), NAMES)
def test_a_letter_is_named_by_its_place_or_its_source(text: str, name: object) -> None:
    assert read_name(text) == name
    assert str(name) == text


@pytest.mark.parametrize("text", ["", "3", "3/", "/41", "/3/41", "a/b/3/41", "3/-1", "3/٤", "-3/4", "t/3/x", "3/4\x1b"])
def test_what_names_no_letter_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not the name of a dead letter") as refused:
        read_name(text)
    assert "\x1b" not in str(refused.value)


# --- which are chosen -------------------------------------------------------------------------------------------------

MOMENTS = [
    ("90s", NOW - 90_000),
    ("30m", NOW - 1_800_000),
    ("2h", NOW - 2 * HOUR),
    ("7d", NOW - 7 * 24 * HOUR),
    ("2026-11-21T20:00:00Z", NOW),
    ("2026-11-21T21:00:00.5+01:00", NOW + 500),
]


@pytest.mark.parametrize(("text", "moment"), MOMENTS)
def test_a_time_is_given_as_such_or_as_how_long_ago(text: str, moment: int) -> None:
    assert moment_of("--since", text, NOW) == moment


@pytest.mark.parametrize("text", ["", "2", "h", "2 h", "-2h", "1h30m", "2026-11-21", "2026-11-21T20:00:00", "2H", "٢h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--until"):
        moment_of("--until", text, NOW)


CHOSEN: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"reasons": ["invalid_json", "not_utf8"]}, True),
    ({"reasons": ["not_utf8"]}, False),
    ({"partitions": [7]}, True),  # the source's
    ({"partitions": [3]}, False),  # its own does not count
    ({"since": rfc_3339(NOW)}, True),
    ({"since": rfc_3339(NOW + 1)}, False),
    ({"until": rfc_3339(NOW + 1)}, True),
    ({"until": rfc_3339(NOW)}, False),
    ({"after": "3/40"}, True),
    ({"after": "2/99"}, True),
    ({"after": "3/41"}, False),
    ({"after": "4/0"}, False),
    ({"names": ["3/41"]}, True),
    ({"names": ["3/42", f"{INPUT}/7/1207"]}, True),
    ({"names": ["41/3", f"{INPUT}/3/41"]}, False),
    ({"reasons": ["invalid_json"], "partitions": [7], "since": "1h", "until": rfc_3339(NOW + 1)}, True),
]


@pytest.mark.parametrize(("given", "taken"), CHOSEN)
def test_a_letter_is_chosen_by_what_all_options_say(given: dict[str, Any], taken: bool) -> None:
    letter = letter_of(buried(41, partition=3, source=(INPUT, 7, 1207)))
    assert read_selection(**given, now_ms=NOW).takes(letter) is taken


def test_names_and_other_choices_are_not_given_together() -> None:
    with pytest.raises(ConfigurationError, match="by name or by options, not by both"):
        read_selection(names=["3/41"], since="2h", now_ms=NOW)


SPANS = [Span(1, 0, 50), Span(0, 10, 20), Span(2, 5, 5)]
NARROWED: list[tuple[dict[str, Any], list[Span]]] = [
    ({}, [Span(0, 10, 20), Span(1, 0, 50)]),  # in order, and without what is empty
    ({"after": "0/14"}, [Span(0, 15, 20), Span(1, 0, 50)]),
    ({"after": "0/3"}, [Span(0, 10, 20), Span(1, 0, 50)]),
    ({"after": "1/48"}, [Span(1, 49, 50)]),
    ({"after": "1/49"}, []),
    ({"names": ["1/7", "1/30"]}, [Span(1, 7, 31)]),
    ({"names": ["0/3"]}, []),
    ({"names": ["0/12", f"{INPUT}/0/1"]}, [Span(0, 10, 20), Span(1, 0, 50)]),  # by its source it may stand anywhere
]


@pytest.mark.parametrize(("given", "spans"), NARROWED)
def test_no_more_is_read_than_the_choice_needs(given: dict[str, Any], spans: list[Span]) -> None:
    assert read_selection(**given, now_ms=NOW).spans_to_read(SPANS) == spans


async def test_a_choice_by_time_reads_from_well_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    """A letter is stamped when its slice is begun, and tells when it failed."""
    shelf = Shelf([buried()])
    await print_letters(shelf, ListRequest(Selection(since=NOW)), source_width=40)
    assert len(capsys.readouterr().out.splitlines()) == 2
    [asked] = shelf.since
    assert asked is not None
    assert asked <= NOW - HOUR


# --- list -------------------------------------------------------------------------------------------------------------


async def test_the_table_has_a_row_for_each_letter_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    records = [
        buried(5, partition=1, reason="not_utf8", failed_at=NOW + 1, detail="byte 3 is not UTF-8"),
        buried(0),
        buried(1, failed_at=NOW - 1),
    ]
    lines, errors = await listed(records, capsys)
    header, *rows = [line.split(None, 6) for line in lines]
    assert header == ["LETTER", "FAILED_AT", "REASON", "STAGE", "SOURCE", "BYTES", "DETAIL"]
    assert rows == [
        ["0/0", rfc_3339(NOW), "invalid_json", "scorer", f"{INPUT}/0/1000", "13", "not valid JSON at character 3"],
        ["0/1", rfc_3339(NOW - 1), "invalid_json", "scorer", f"{INPUT}/0/1001", "13", "not valid JSON at character 3"],
        ["1/5", rfc_3339(NOW + 1), "not_utf8", "scorer", f"{INPUT}/1/1005", "13", "byte 3 is not UTF-8"],
    ]
    assert [line.split() for line in errors.splitlines()] == [
        ["2", "invalid_json", "first", f"{rfc_3339(NOW - 1)},", "last", rfc_3339(NOW)],
        ["1", "not_utf8", "first", f"{rfc_3339(NOW + 1)},", "last", rfc_3339(NOW + 1)],
    ]
    assert CANARY not in "".join(lines) + errors


async def test_json_has_an_object_in_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = await listed([buried(0, timestamp=-1), buried(1)], capsys, format="json")
    assert json.loads(lines[0]) == {
        "letter": "0/0",
        "failed_at": rfc_3339(NOW),
        "reason": "invalid_json",
        "stage": "scorer",
        "detail": "not valid JSON at character 3",
        "source": {"topic": INPUT, "partition": 0, "offset": 1000, "timestamp": -1},
        "group": GROUP,
        "version": "0.1.0",
        "value_bytes": 13,
        "value_omitted": False,
    }
    assert len(lines) == 2
    assert CANARY not in "".join(lines)


async def test_the_summary_alone_is_data(capsys: pytest.CaptureFixture[str]) -> None:
    records = [buried(0), buried(1), buried(2, reason="not_utf8")]
    lines, errors = await listed(records, capsys, summary_alone=True)
    assert [line.split()[:2] for line in lines] == [["2", "invalid_json"], ["1", "not_utf8"]]
    assert errors == ""
    lines, _ = await listed(records, capsys, summary_alone=True, format="json")
    assert json.loads(lines[0]) == {
        "reason": "invalid_json",
        "count": 2,
        "first": rfc_3339(NOW),
        "last": rfc_3339(NOW),
    }


async def test_a_limit_stops_the_reading_and_says_that_there_may_be_more(capsys: pytest.CaptureFixture[str]) -> None:
    lines, errors = await listed([buried(offset) for offset in range(9)], capsys, limit=3)
    assert [line.split()[0] for line in lines] == ["LETTER", "0/0", "0/1", "0/2"]
    assert "the list stops at --limit 3" in errors


async def test_strangers_are_counted_and_never_shown(capsys: pytest.CaptureFixture[str]) -> None:
    lines, errors = await listed([Kept("dead", 0, 7, NOW, b"k", CANARY.encode()), buried(8)], capsys)
    assert len(lines) == 2
    assert "ignored 1 record without the safe.dlq headers (the first is 0/7)" in errors
    assert CANARY not in errors


async def test_where_there_is_none_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert await listed([], capsys) == ([], "safe: there are no dead letters\n")
    none = Selection(reasons=frozenset(["not_utf8"]))
    assert await listed([buried()], capsys, selection=none) == (
        [],
        "safe: no dead letters match these options\n",
    )


HOSTILE = "\x1b[2J\r\n\x9b\u202e"
OBEYED = {"\x1b", "\r", "\x9b", "\u202e"}


@pytest.mark.parametrize("format_", ["console", "json"])
async def test_no_row_can_command_a_terminal(format_: Any, capsys: pytest.CaptureFixture[str]) -> None:
    record = buried(reason=HOSTILE, stage=HOSTILE, detail=HOSTILE, source=(HOSTILE, 0, 0), group=HOSTILE)
    lines, errors = await listed([record], capsys, format=format_)
    assert len(lines) == (2 if format_ == "console" else 1)
    assert len(errors.splitlines()) == 1
    assert not OBEYED & set("".join(lines) + errors)


# --- show -------------------------------------------------------------------------------------------------------------


def shown(record: Kept, capsys: pytest.CaptureFixture[str], **request: Any) -> str:
    """What `show` prints of a letter."""
    print_letter(letter_of(record), ShowRequest(LetterId(0, 0), **request))
    return capsys.readouterr().out


@pytest.mark.parametrize("format_", ["console", "json"])
def test_what_a_record_holds_is_shown_only_when_asked_for(format_: Any, capsys: pytest.CaptureFixture[str]) -> None:
    record = buried(headers=[("trace", CANARY.encode()), ("other", None)])
    closed = shown(record, capsys, format=format_)
    assert CANARY not in closed
    assert "trace" in closed
    assert hashlib.sha256(CANARY.encode()).hexdigest() in closed
    assert shown(record, capsys, format=format_, include_value=True).count(CANARY) == 3


def test_the_table_tells_everything_that_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    rows = dict(line.split(None, 1) for line in shown(buried(timestamp=-1), capsys).splitlines())
    digest = hashlib.sha256(CANARY.encode()).hexdigest()
    assert rows == {
        "letter": "0/0",
        "failed_at": rfc_3339(NOW),
        "reason": "invalid_json",
        "stage": "scorer",
        "detail": "not valid JSON at character 3",
        "source": f"{INPUT}/0/1000",
        "timestamp": "-1 (none)",
        "group": GROUP,
        "version": "0.1.0",
        "headers": "trace",
        "key": "13 bytes",
        "value": f"13 bytes, sha256 {digest}",
    }


def test_a_value_that_is_no_text_is_shown_escaped_or_in_base64(capsys: pytest.CaptureFixture[str]) -> None:
    record = buried(value=b"\xff\x1b[2J\n", key=None, headers=[(HOSTILE, HOSTILE.encode())])
    table = shown(record, capsys, include_value=True)
    assert "value: \\xff\\u001b[2J\\u000a" in table
    assert "key: none" in table
    assert not OBEYED & set(table)
    document = json.loads(shown(record, capsys, include_value=True, format="json"))
    assert document["value"] == {"base64": "/xtbMkoK"}
    assert document["key"] == {"text": None}
    assert document["headers"] == [{"name": HOSTILE, "text": HOSTILE}]


def test_raw_is_the_value_and_nothing_else(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    print_letter(letter_of(buried(value=b"\xff\x00\n")), ShowRequest(LetterId(0, 0), include_value=True, raw=True))
    assert capfdbinary.readouterr().out == b"\xff\x00\n"


def test_a_time_that_no_calendar_has_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert f"timestamp   {2**63 - 1}\n" in shown(buried(timestamp=2**63 - 1), capsys)


REFUSED_REQUESTS: list[tuple[dict[str, Any], str]] = [
    ({"raw": True}, "--include-value"),
    ({"raw": True, "include_value": True, "format": "json"}, "only one of the two"),
]


@pytest.mark.parametrize(("request_", "words"), REFUSED_REQUESTS)
def test_the_bytes_alone_are_neither_secret_nor_json(request_: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        ShowRequest(LetterId(0, 0), **request_)


async def test_a_letter_is_found_by_its_source_the_last_of_several() -> None:
    twice = [buried(3, source=(INPUT, 0, 7)), buried(4, source=(INPUT, 0, 8)), buried(5, source=(INPUT, 0, 7))]
    found = await find_letter(Shelf(twice), Source(INPUT, 0, 7))
    assert found is not None
    assert found.id == LetterId(0, 5)
    assert await find_letter(Shelf(twice), Source(INPUT, 0, 9)) is None


class Torn(Cluster):
    """A cluster in which some partitions have no leader."""

    def __init__(self, leaderless: Mapping[str, frozenset[int]]) -> None:
        self._leaderless = leaderless

    @override
    async def connect(self) -> None:
        """It answers."""

    @override
    async def stop(self) -> None:
        """Nothing was started."""

    @override
    async def describe(self, topics: Sequence[str]) -> dict[str, TopicDescription]:
        return {name: TopicDescription(name, 4, 1, {}) for name in topics}

    @override
    async def look(self, topics: Sequence[str], timeout_seconds: float = 1.0) -> TopicsSeen:
        return TopicsSeen(dict.fromkeys(topics, 4), self._leaderless, frozenset(), {1: "a:9092"})


async def test_a_partition_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load({}, {"SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}, Path("/nonexistent")).settings
    monkeypatch.setattr(kafka_topics, "Cluster", lambda _connection: Torn({"letters": frozenset({2, 3})}))
    with pytest.raises(ConfigurationError, match="partitions 2, 3 of letters have no leader: too few"):
        await kafka_topics.describe_topics(settings, ["letters"])
    monkeypatch.setattr(kafka_topics, "Cluster", lambda _connection: Torn({}))
    assert list(await kafka_topics.describe_topics(settings, ["letters"])) == ["letters"]


# --- replay -----------------------------------------------------------------------------------------------------------


def described(**changes: Any) -> dict[str, TopicDescription]:
    """The two topics that letters go back to."""
    plain = {
        INPUT: TopicDescription(INPUT, 4, 1, {"message.timestamp.type": "CreateTime"}),
        SCORED: TopicDescription(SCORED, 2, 1, {}),
    }
    return plain | changes


def targets_over(**changes: Any) -> Targets:
    """Where letters of the default settings go."""
    return Targets.of(load({}, {}, Path("/nonexistent")).settings, described(**changes))


@dataclass
class Post(Republisher):
    """Takes copies; refuses those whose value it is told to, and fails at the one whose value is `broken`."""

    refuses: frozenset[bytes] = frozenset()
    taken: list[Copy] = field(default_factory=list)

    @override
    async def publish(self, copy: Copy) -> "asyncio.Task[None]":
        """Take one; the acknowledgement comes a turn later."""
        self.taken.append(copy)
        return asyncio.create_task(self._acknowledge(copy))

    async def _acknowledge(self, copy: Copy) -> None:
        await asyncio.sleep(0)
        if copy.value == b"broken":
            raise Transient("no answer")
        if copy.value in self.refuses:
            raise Refused("the broker refuses it")


@dataclass
class Watch:
    """A clock that moves only when somebody sleeps, or is told to work."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Sleep at once."""
        self.slept.append(seconds)
        self.now += seconds


def replay_of(
    post: Post | None,
    selection: Selection | None = None,
    *,
    pace: Pace | None = None,
    sources: Mapping[Source, bytes] | None = None,
    targets: Targets | None = None,
) -> Replay:
    """A replay at NOW; what stands in the source topics is given."""
    watch = Watch()

    async def read(topic: str, partition: int, offset: int) -> Kept | None:
        value = (sources or {}).get(Source(topic, partition, offset))
        return None if value is None else Kept(topic, partition, offset, NOW - HOUR, None, value)

    given = pace or Pace(500, watch, watch.sleep)
    return Replay(selection or Selection(), targets or targets_over(), post, given, read, lambda: NOW)


async def replayed(records: list[Kept], replay: Replay) -> None:
    """Run a replay over a topic."""
    await replay.run(Shelf(records))


async def test_a_letter_is_sent_as_it_came_to_where_it_stood() -> None:
    post = Post()
    headers = [("trace", CANARY.encode()), ("trace", None)]
    await replayed([buried(2, partition=3, headers=headers, source=(INPUT, 3, 9))], replay := replay_of(post))
    assert post.taken == [Copy(INPUT, 3, NOW - HOUR, CANARY.encode(), CANARY.encode(), headers)]
    assert (replay.outcome.chosen, replay.outcome.acknowledged, replay.outcome.failed) == (1, 1, 0)


async def test_a_header_that_a_stranger_has_added_under_a_name_that_is_no_text_is_not_sent() -> None:
    post = Post()
    record = buried(2, source=(INPUT, 3, 9), headers=[("trace", b"1"), ("caf\udce9", b"x")])
    record.headers = [*record.headers, ("\udcff", b"x")]
    await replayed([record], replay_of(post))
    assert [copy.headers for copy in post.taken] == [[("trace", b"1")]]


STAMPS = [
    (NOW - HOUR, NOW - HOUR),
    (NOW + HOUR, NOW),  # a broker refuses what is far ahead
    (-1, -1),  # without a time it stays the oldest of all
    (0, 0),
]


@pytest.mark.parametrize(("came", "sent"), STAMPS)
async def test_it_keeps_its_time_but_none_later_than_now(came: int, sent: int) -> None:
    post = Post()
    await replayed([buried(timestamp=came)], replay_of(post))
    assert post.taken[0].timestamp == sent


async def test_a_clock_that_is_behind_makes_no_letter_older_than_it_is() -> None:
    post = Post()
    replay = replay_of(post)
    replay.clock_ms = lambda: NOW - 240 * HOUR
    await replayed([buried(timestamp=NOW - HOUR)], replay)
    assert post.taken[0].timestamp == NOW - HOUR, "it failed at NOW, as the brokers' clock said"


async def test_where_its_partition_is_gone_the_key_decides() -> None:
    post = Post()
    gone = [buried(0, source=(INPUT, 9, 1), key=b"21"), buried(1, source=(INPUT, 9, 2), key=None)]
    await replayed(gone, replay_of(post))
    # Java's murmur2 of "21" is -973932308: Kafka's own test has it.
    assert [copy.partition for copy in post.taken] == [(-973932308 & 0x7FFFFFFF) % 4, 0]


async def test_what_the_aggregator_buried_goes_back_to_scored() -> None:
    post = Post()
    await replayed([buried(0, partition=1, stage="aggregator", source=(SCORED, 1, 5))], replay_of(post))
    assert (post.taken[0].topic, post.taken[0].partition) == (SCORED, 1)


OBJECTIONS: list[tuple[dict[str, Any], str]] = [
    ({"source": ("somewhere.else", 0, 1)}, f"it came from somewhere.else, but the scorer reads {INPUT}"),
    ({"source": (SCORED, 0, 1)}, f"it came from {SCORED}, but the scorer reads {INPUT}"),
    ({"source": (INPUT, 0, 1), "stage": "aggregator"}, f"it came from {INPUT}, but the aggregator reads {SCORED}"),
    ({"source": (SCORED, 2, 1), "stage": "aggregator"}, f"{SCORED} has no partition 2 any more"),
    (
        {"source": ("safe.v0.state", 0, 1), "stage": "conductor"},
        "its header safe.dlq.stage is conductor, which this version does not know",
    ),
    ({"source": (f"evil{HOSTILE}", 0, 1)}, "it came from evil\\u001b"),
]


@pytest.mark.parametrize(("letter", "words"), OBJECTIONS)
async def test_what_cannot_be_sent_is_named_and_the_others_are_sent(
    letter: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    post = Post()
    await replayed([buried(0, **letter), buried(1)], replay := replay_of(post))
    assert len(post.taken) == 1
    assert replay.conclude() == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors[0].startswith("safe: 0/0 cannot be sent again: ")
    assert words in errors[0]
    assert errors[-1] == f"replayed 1 of 2 dead letters to {INPUT}"
    assert not OBEYED & set("".join(errors))


async def test_letters_of_other_groups_are_left_alone_unless_one_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    post = Post()
    theirs = [buried(0, group="theirs"), buried(1)]
    await replayed(theirs, replay := replay_of(post))
    assert replay.conclude() == 0
    assert "skipped 1 dead letter of other groups: theirs (1)" in capsys.readouterr().err
    assert len(post.taken) == 1

    selection = Selection(names=frozenset([LetterId(0, 0)]))
    await replayed(theirs, replay := replay_of(post, selection))
    assert replay.conclude() == 1
    assert "0/0 cannot be sent again: the group theirs wrote it" in capsys.readouterr().err


async def test_a_record_that_stands_there_several_times_is_sent_once(capsys: pytest.CaptureFixture[str]) -> None:
    post = Post()
    records = [
        buried(0, source=(INPUT, 0, 7)),
        buried(1, source=(INPUT, 0, 7)),  # the same source again: delivered twice
        buried(2, source=(INPUT, 0, 31), reason="not_utf8"),  # sent again, and failed again
        buried(3, source=(INPUT, 0, 8), timestamp=NOW),  # the same content at another time is another record
        buried(4, source=(INPUT, 0, 9), value=b"another"),
        buried(5, source=(INPUT, 0, 10), headers=[]),
    ]
    await replayed(records, replay := replay_of(post))
    assert len(post.taken) == 4
    assert replay.conclude() == 0
    errors = capsys.readouterr().err.splitlines()
    assert errors[-1] == f"replayed 4 of 4 dead letters to {INPUT}"
    assert errors[0].startswith("safe: left out 2 dead letters, because another one holds the same record")


def test_only_the_letters_of_one_partition_are_remembered() -> None:
    repeats = Repeats()
    for partition in range(3):
        assert [repeats.has_seen(letter_of(buried(at, partition=partition))) for at in range(2)] == [False, True]
        assert len(repeats._seen) == 1


def omitted(value: bytes, offset: int = 0) -> Kept:
    """A letter without its value."""
    record = buried(offset, value=None)
    record.headers = [*record.headers, *value_omitted(value)]
    return record


OMITTED = [
    ({Source(INPUT, 0, 1000): b"large"}, [b"large"]),
    ({Source(INPUT, 0, 1000): b"other"}, []),  # another record stands there
    ({}, []),
]


@pytest.mark.parametrize(("sources", "sent"), OMITTED)
async def test_an_omitted_value_is_fetched_and_compared(sources: dict[Source, bytes], sent: list[bytes]) -> None:
    post = Post()
    await replayed([omitted(b"large")], replay := replay_of(post, sources=sources))
    assert [copy.value for copy in post.taken] == sent
    assert replay.outcome.failed == 1 - len(sent)


async def test_what_the_broker_refuses_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    post = Post(refuses=frozenset([b"large"]))
    await replayed([buried(0, value=b"large"), buried(1)], replay := replay_of(post))
    assert replay.conclude() == 1
    errors = capsys.readouterr().err
    assert "0/0 cannot be sent again: the broker refuses it" in errors
    assert errors.splitlines()[-1] == f"replayed 1 of 2 dead letters to {INPUT}"


GOING_ON: list[tuple[list[str], str]] = [
    (
        [],
        (
            "sent 2 dead letters before the command stopped; run it again "
            "(sending a dead letter twice changes no summary), or run it with --after 0/1"
        ),
    ),
    (
        ["0/0", "0/1", "0/2"],
        (
            "sent 2 dead letters before the command stopped; run it again "
            "(sending a dead letter twice changes no summary)\n"
        ),
    ),
]


@pytest.mark.parametrize(("names", "words"), GOING_ON)
async def test_a_failure_stops_it_and_tells_what_was_acknowledged_and_how_to_go_on(
    names: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    selection = read_selection(names=names, now_ms=NOW)
    replay = replay_of(Post(), selection)
    records = [buried(0), buried(1, value=b"2"), buried(2, value=b"broken"), buried(3, value=b"4")]
    with pytest.raises(Transient):
        await replayed(records, replay)
    assert words in capsys.readouterr().err


async def test_a_dry_run_prints_what_it_would_send(capsys: pytest.CaptureFixture[str]) -> None:
    await replayed([buried(0, partition=1), buried(3, partition=2, value=b"2")], replay := replay_of(None))
    assert replay.conclude() == 0
    printed = capsys.readouterr()
    assert [line.split() for line in printed.out.splitlines()] == [
        ["1/0", "invalid_json", "to", f"{INPUT}/1"],
        ["2/3", "invalid_json", "to", f"{INPUT}/2"],
    ]
    assert printed.err == f"would replay 2 of 2 dead letters to {INPUT}\n"


async def test_a_name_that_no_letter_has_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    post = Post()
    selection = read_selection(names=["0/0", "0/9", f"{INPUT}/0/1001", f"{INPUT}/0/77"], now_ms=NOW)
    await replayed([buried(0), buried(1, value=b"2"), buried(2)], replay := replay_of(post, selection))
    assert replay.conclude() == 1
    assert len(post.taken) == 2
    assert f"there is no dead letter 0/9, {INPUT}/0/77" in capsys.readouterr().err


async def test_no_more_are_sent_in_a_second_than_asked_for() -> None:
    watch = Watch()
    pace = Pace(4, watch, watch.sleep)
    for _ in range(9):
        await pace.wait()
    assert watch.now == pytest.approx(2.0)
    assert watch.slept == [pytest.approx(0.25)] * 8


async def test_a_long_delay_is_not_caught_up_with() -> None:
    watch = Watch()
    pace = Pace(100, watch, watch.sleep)
    watch.now = 60.0  # a broker took its time
    for _ in range(31):
        await pace.wait()
    # A tenth of a second's worth at once, the others at their rate.
    assert watch.now == pytest.approx(60.2)


async def test_every_letter_waits_for_its_turn() -> None:
    watch, post = Watch(), Post()
    replay = replay_of(post, pace=Pace(2, watch, watch.sleep))
    await replayed([buried(at, value=str(at).encode()) for at in range(5)], replay)
    assert len(post.taken) == 5
    assert watch.now == pytest.approx(2.0)


KEPT = [
    ("604800000", NOW - 604_800_001, True),
    ("604800000", NOW - 604_800_000, False),
    ("604800000", -1, False),  # a broker takes the time of writing
    ("-1", 0, False),
]


@pytest.mark.parametrize(("retention", "timestamp", "warned"), KEPT)
async def test_what_is_older_than_its_topic_keeps_records_is_warned_of_once(
    retention: str, timestamp: int, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    post = Post()
    short = TopicDescription(INPUT, 4, 1, {"retention.ms": retention})
    records = [buried(at, timestamp=timestamp, value=str(at).encode()) for at in range(3)]
    await replayed(records, replay_of(post, targets=targets_over(**{INPUT: short})))
    assert len(post.taken) == 3
    assert capsys.readouterr().err.count("warning: 0/0 is older than") == warned


def test_a_topic_that_stamps_records_itself_is_warned_of() -> None:
    assert targets_over().warnings() == []
    stamping = TopicDescription(INPUT, 4, 1, {"message.timestamp.type": "LogAppendTime"})
    [warning] = targets_over(**{INPUT: stamping}).warnings()
    assert warning.startswith(f"{INPUT} has message.timestamp.type=LogAppendTime")


# --- the command line -------------------------------------------------------------------------------------------------

REFUSED: list[tuple[list[str], str]] = [
    (["list", "--reason", "bad_luck"], "'bad_luck' is not a reason; choose from empty_value, not_utf8,"),
    (["list", "--since", "yesterday"], "--since yesterday is neither a time with a zone"),
    (["list", "--limit", "0"], "must be greater than or equal to 1"),
    (["list", "--after", "x"], "--after x is not PARTITION/OFFSET of the dead-letter topic"),
    (["list", "--after", f"{INPUT}/0/1"], "is not PARTITION/OFFSET"),
    (["list", "--since", "1h", "--since", "2h"], "it is given twice"),
    (["show"], "missing LETTER; see safe dead-letters show --help"),
    (["show", "41"], "41 is not the name of a dead letter"),
    (["show", "3/41", "--raw"], "--include-value"),
    (["replay"], "no dead letters were chosen"),
    (["replay", "--dry-run"], "no dead letters were chosen"),
    (["replay", "3/41", "--reason", "not_utf8"], "by name or by options, not by both"),
    (["replay", "--all", "--rate", "0"], "must be greater than or equal to 1"),
    (["list"], "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS"),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED)
def test_what_is_asked_wrongly_is_one_sentence_and_code_3(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SAFE_V0_KAFKA_BOOTSTRAP_SERVERS", raising=False)
    assert main(["dead-letters", *arguments]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    [line] = printed.err.splitlines()
    assert words in line


@pytest.mark.parametrize("command", ["list", "show", "replay"])
def test_help_says_that_a_letter_may_hold_patient_data_or_nothing_of_it(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dead-letters", command, "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    told = {
        "list": "nothing of their contents",
        "show": "patient data",
        "replay": "stays in its topic until retention removes it",
    }
    assert told[command] in words


def test_the_source_partition_is_meant_and_help_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    main(["dead-letters", "list", "--help"])
    assert "Only from this partition of the source topic" in " ".join(capsys.readouterr().out.split())
