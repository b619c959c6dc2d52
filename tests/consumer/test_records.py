"""What SAFE writes: keys, headers and values of its own topics."""

import hashlib
import json
import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from typing_extensions import override

from consumer.case_sources.source import FoundExpectations
from consumer.dead_letter_reasons import Poison
from consumer.kafka.writer import Outgoing
from consumer.wire.changelog import BatchRow, InputTopic, ProgressRow, transactions_of
from consumer.wire.dead_letter import dead_letter_headers
from consumer.wire.headers import (
    SCHEMA,
    NewerSchema,
    Undecodable,
    ce_source,
    check_schema,
    group_of,
    own_headers,
    report_headers,
)
from consumer.wire.input_event import InputEvent
from consumer.wire.keys import PROGRESS_KEY, batch_key, case_key, parts_of
from consumer.wire.result_event import encode_result, result_headers
from consumer.wire.scored_record import ScoredBy, decode_scored, encode_result_of, encode_scored, row_of
from consumer.wire.times import rfc_3339
from consumer.worker.dead_letter_writing import DeadLetterTopic, append_dead_letter
from consumer.worker.scorer import TopicIds, scored_record
from consumer.worker.scoring_memory import EncodedScore
from consumer.worker.topic_limits import TopicLimits
from safe_core import (
    CaseScore,
    Details,
    Expectations,
    Output,
    Passed,
    Scores,
    Terms,
    Vacuous,
    id_problem,
    prepare,
)

Headers = Sequence[tuple[str, bytes | None]]
SCORED_AT = 1_795_291_200_123
FINGERPRINT = "sha256:" + "0123456789abcdef" * 4
DIGEST = "sha256:" + hashlib.sha256(b"{}").hexdigest()


@dataclass
class Fetched:
    """A record as a client hands it over."""

    value: bytes | None = b"{}"
    headers: Headers = ()
    timestamp: int = 1_795_291_200_000
    topic: str = "factory.generation.output"
    partition: int = 0
    offset: int = 41
    key: bytes | None = b"any"


@dataclass
class Written:
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class Kept(Outgoing):
    """A slice that keeps its records where a test can see them."""

    def __init__(self) -> None:
        super().__init__(0)
        self.written: list[Written] = []

    @override
    def append(self, topic: str, partition: int, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        self.written.append(Written(topic, partition, key, value, list(headers)))

    @override
    def append_compressed(
        self, topic: str, partition: int, key: bytes | None, value: bytes, headers: Headers, max_bytes: int
    ) -> bool:
        if len(zlib.compress(value)) > max_bytes:
            return False
        self.append(topic, partition, key, value, headers)
        return True


EVENT = InputEvent("I25-BATCH1-002", "I25_batch_1", "I25", None, None, "r7", 1_795_291_200_000, Output())
FOUND = FoundExpectations(prepare(Expectations(("fever",), (), ())), "I25", None, None, 5, in_batch=True)
CASE = CaseScore(
    Scores(2 / 3, 1.0, 0.5, 0.7222222222222222),
    Details(("a", "b"), ("c",), (), ("d",), ("e",)),
    Terms(3, 2, 2),
    Passed(CR=False, AH=True, AC=False),
    Vacuous(CR=False, AH=False, AC=False),
    empty_output=False,
    label="Review",
)


def scored_value(
    case: CaseScore = CASE, event: InputEvent = EVENT, archetype: str | None = "Delay_Driver_Profiler", **record: Any
) -> bytes:
    return encode_scored(
        scored_record(
            Fetched(**record), event, "I25", FOUND,
            EncodedScore(case, encode_result_of(event.test_id, archetype, case)),
            input_matches=None, generation="answered", scored_by=ScoredBy("0.1.0", FINGERPRINT), scored_at=SCORED_AT,
            topic_ids=TopicIds(),
        )
    )  # fmt: skip


# --- keys -------------------------------------------------------------------------------------------------------------

ESCAPED: list[tuple[str, str]] = [
    ("I25", "I25"),
    ("a/b", "a%2Fb"),
    ("100%", "100%25"),
    ("%2F", "%252F"),  # what looks escaped is text
    ("%252F", "%25252F"),
    ("ä b+c", "ä b+c"),  # nothing else changes
    ("..", ".."),
]


@pytest.mark.parametrize(("part", "written"), ESCAPED)
def test_a_key_escapes_its_parts(part: str, written: str) -> None:
    assert batch_key(part, "B") == f"{written}/B"
    assert case_key("C", part, part) == f"C/{written}/{written}"


ids = st.text(max_size=20).filter(lambda text: id_problem(text) is None) | st.text("%25F/2f ab", min_size=1).filter(
    lambda text: not text.isspace()
)


@given(ids, ids, ids)
def test_the_parts_of_a_key_are_what_it_was_made_of(concern_id: str, batch_id: str, test_id: str) -> None:
    assert parts_of(batch_key(concern_id, batch_id).encode()) == (concern_id, batch_id)
    assert parts_of(case_key(concern_id, batch_id, test_id).encode()) == (concern_id, batch_id, test_id)


@given(ids, ids, ids, ids)
def test_different_batches_have_different_keys(one: str, two: str, three: str, four: str) -> None:
    assert (batch_key(one, two) == batch_key(three, four)) == ((one, two) == (three, four))


def test_no_batch_can_have_the_key_of_the_progress_row() -> None:
    assert parts_of(PROGRESS_KEY) == ("progress",)
    assert b"/" not in PROGRESS_KEY


def test_a_key_that_is_not_utf_8_is_undecodable() -> None:
    with pytest.raises(Undecodable):
        parts_of(b"\xff/b")


# --- headers ----------------------------------------------------------------------------------------------------------


def test_our_own_records_name_schema_and_group() -> None:
    assert list(own_headers("safe-v0")) == [("safe.schema", str(SCHEMA).encode()), ("safe.group", b"safe-v0")]
    assert group_of(own_headers("safe-v0")) == "safe-v0"
    assert group_of(()) is None
    assert group_of([("safe.group", None)]) is None
    check_schema(own_headers("safe-v0"))


SCHEMAS: list[tuple[bytes | None, type[Exception] | None]] = [
    (str(SCHEMA).encode(), None),
    (str(SCHEMA - 1).encode(), None),  # a reader takes the one before
    (str(SCHEMA + 1).encode(), NewerSchema),
    (b"99999999999999999999", NewerSchema),
    (b"", Undecodable),
    (b"-1", Undecodable),
    (b"1.0", Undecodable),
    (b"\xff", Undecodable),
    (None, Undecodable),
]


@pytest.mark.parametrize(("content", "raised"), SCHEMAS)
def test_a_schema_is_ours_or_newer_or_unreadable(content: bytes | None, raised: type[Exception] | None) -> None:
    headers = [("other", b"9"), ("safe.schema", content)]
    if raised is None:
        check_schema(headers)
    else:
        with pytest.raises(raised):
            check_schema(headers)


def test_a_result_is_a_cloudevent_whose_id_depends_on_its_source_alone() -> None:
    scored = decode_scored(scored_value())
    assert dict(result_headers(scored, b"I25/I25_batch_1/I25-BATCH1-002", b"/safe/safe-v0")) == {
        "ce_specversion": b"1.0",
        "ce_id": b"factory.generation.output/0/41/0123456789abcdef",
        "ce_type": b"safe:v0:result",
        "ce_source": b"/safe/safe-v0",
        "ce_time": b"2026-11-21T20:00:00.123Z",
        "ce_subject": b"I25/I25_batch_1/I25-BATCH1-002",
        "ce_dataschema": b"urn:safe:v0:result",
        "content-type": b"application/json",
    }


def test_the_id_of_a_result_has_the_topics_id_if_the_scorer_says_so() -> None:
    """A topic's name has no "@"; without it, the id is the one that all earlier versions gave."""
    scored = decode_scored(scored_value())
    by_id = structs.replace(scored, source=structs.replace(scored.source, topic_id="AAECAwQFBgcICQoLDA3-_w"))
    by_name = structs.replace(scored, input_topic_id="AAECAwQFBgcICQoLDA3-_w")
    ids = [dict(result_headers(each, b"s", b"/safe/g"))["ce_id"] for each in (by_id, by_name)]
    assert ids == [
        b"factory.generation.output@AAECAwQFBgcICQoLDA3-_w/0/41/0123456789abcdef",
        b"factory.generation.output/0/41/0123456789abcdef",
    ]
    assert decode_scored(encode_scored(by_id)) == by_id
    assert decode_scored(encode_scored(by_name)) == by_name
    name = "factory.generation.output"
    assert InputTopic.of(by_id) == InputTopic("AAECAwQFBgcICQoLDA3-_w", is_in_result_ids=True, name=name)
    assert InputTopic.of(by_name) == InputTopic("AAECAwQFBgcICQoLDA3-_w", is_in_result_ids=False, name=name)
    assert InputTopic.of(scored) == InputTopic(None, is_in_result_ids=False, name=name)


def test_a_report_is_a_cloudevent_that_says_how_far_it_covers() -> None:
    assert dict(report_headers("I25/b", 3, 17, "2026-11-21T20:00:00.000Z", ce_source("g").encode())) == {
        "ce_specversion": b"1.0",
        "ce_id": b"I25/b@3/17",
        "ce_type": b"safe:v0:report",
        "ce_source": b"/safe/g",
        "ce_time": b"2026-11-21T20:00:00.000Z",
        "ce_subject": b"I25/b",
        "ce_dataschema": b"urn:safe:v0:report",
        "content-type": b"application/json",
    }


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (SCORED_AT, "2026-11-21T20:00:00.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
    ],
)
def test_times_are_written_in_milliseconds_of_utc(milliseconds: int, text: str) -> None:
    assert rfc_3339(milliseconds) == text


# --- scored -----------------------------------------------------------------------------------------------------------

score = st.floats(0.0, 1.0)
terms = st.lists(st.text(max_size=8).filter(lambda text: "\ud800" > max(text, default="")), max_size=4).map(tuple)
cases = st.builds(
    CaseScore,
    scores=st.builds(Scores, score, score, score, score),
    details=st.builds(Details, terms, terms, terms, terms, terms),
    terms=st.builds(Terms, *[st.integers(0, 10_000)] * 3),
    passed=st.builds(Passed, *[st.booleans()] * 3),
    vacuous=st.builds(Vacuous, *[st.booleans()] * 3),
    empty_output=st.booleans(),
    label=st.sampled_from(["Pass", "Review", "Fail"]),
)


@given(case=cases, archetype=st.none() | ids, event_time=st.integers(-(2**62), 2**62), timestamp=st.integers(-1, 2**62))
def test_a_scored_record_comes_back_to_the_last_bit(
    case: CaseScore, archetype: str | None, event_time: int, timestamp: int
) -> None:
    event = EVENT._replace(event_time=event_time)
    back = decode_scored(scored_value(case, event, archetype, timestamp=timestamp, partition=2))
    row = row_of(back)
    assert (back.concern_id, back.batch_id, back.result.test_id, back.expected_cases) == (
        "I25",
        EVENT.batch_id,
        EVENT.test_id,
        5,
    )
    assert row.version == (True, event_time, 2, 41)
    assert (row.archetype, row.run_id, row.shared.fingerprint, row.shared.expected) == (
        archetype,
        "r7",
        FINGERPRINT,
        True,
    )
    assert [number.hex() for number in row.scores] == [number.hex() for number in case.scores]
    assert (row.details, row.terms, row.passed, row.vacuous) == (case.details, case.terms, case.passed, case.vacuous)
    assert (row.empty_output, row.label) == (case.empty_output, case.label)
    assert back.published_at == timestamp


def test_a_result_has_the_fields_of_the_contract_in_their_order() -> None:
    scored = decode_scored(scored_value())
    summary = {"total_cases": 5, "pass": 2, "review": 3, "fail": 0, "overall_pass_rate": 0.4}
    value = encode_result(scored, summary, complete=True, mixed_runs=False, failed_generations=2)
    expected = {
        "concern_id": "I25",
        "batch_id": "I25_batch_1",
        "timestamp": "2026-11-21T20:00:00.123Z",
        "summary": summary,
        "expected_cases": 5,
        "complete": True,
        "run_id": "r7",
        "input_matches": None,
        "generation": "answered",
        "mixed_runs": False,
        "failed_generations": 2,
        "result": {
            "test_id": "I25-BATCH1-002",
            "archetype": "Delay_Driver_Profiler",
            "scores": {"CR": 0.6666666666666666, "AH": 1.0, "AC": 0.5, "composite": 0.7222222222222222},
            "details": {
                "CR": {"found": ["a", "b"], "missing": ["c"]},
                "AH": {"violations": []},
                "AC": {"found": ["d"], "missing": ["e"]},
            },
            "terms": {"CR": 3, "AH": 2, "AC": 2},
            "label": "Review",
        },
        "source": {
            "topic": "factory.generation.output",
            "partition": 0,
            "offset": 41,
            "event_time": 1_795_291_200_000,
        },
        "scorer": {"version": "0.1.0", "fingerprint": FINGERPRINT},
        "expectations_digest": FOUND.prepared.digest,
        "output_digest": DIGEST,
    }
    assert value == json.dumps(expected, separators=(",", ":")).encode()


def unlike(change: Callable[[Any], object]) -> bytes:
    """A scored record that no SAFE would have written."""
    document = json.loads(scored_value())
    change(document)
    return json.dumps(document).encode()


FORGED: list[tuple[str, bytes | None]] = [
    ("nothing", None),
    ("no bytes", b""),
    ("not JSON", b"{"),
    ("an array", b"[]"),
    ("null", b"null"),
    ("an empty object", b"{}"),
    ("no result", unlike(lambda d: d.pop("result"))),
    ("no time of scoring", unlike(lambda d: d.pop("scored_at"))),
    ("no time of publishing", unlike(lambda d: d.pop("published_at"))),
    ("no digest", unlike(lambda d: d.pop("output_digest"))),
    ("no topic", unlike(lambda d: d["source"].pop("topic"))),
    ("no version", unlike(lambda d: d["scorer"].pop("version"))),
    ("a score that is a text", unlike(lambda d: d["result"]["scores"].update(CR="1.0"))),
    ("a score that is null", unlike(lambda d: d["result"]["scores"].update(composite=None))),
    ("a score that is true", unlike(lambda d: d["result"]["scores"].update(AH=True))),
    ("a score above 1", unlike(lambda d: d["result"]["scores"].update(AC=1.5))),
    ("a score below 0", unlike(lambda d: d["result"]["scores"].update(AC=-0.5))),
    ("an unknown label", unlike(lambda d: d["result"].update(label="Perhaps"))),
    ("a label in a list", unlike(lambda d: d["result"].update(label=["Pass"]))),
    ("details that are numbers", unlike(lambda d: d["result"]["details"]["CR"].update(missing=[1]))),
    ("details that are no list", unlike(lambda d: d["result"]["details"]["CR"].update(missing=7))),
    ("terms that are texts", unlike(lambda d: d["result"]["terms"].update(CR="3"))),
    ("two flags for three", unlike(lambda d: d.update(passed=[True, False]))),
    ("flags that are numbers", unlike(lambda d: d.update(vacuous=[5, 5, 5]))),
    ("an emptiness that is null", unlike(lambda d: d.update(empty_output=None))),
    ("a test_id that is a number", unlike(lambda d: d["result"].update(test_id=7))),
    ("a concern that is null", unlike(lambda d: d.update(concern_id=None))),
    ("a batch that is a list", unlike(lambda d: d.update(batch_id=["b"]))),
    ("an archetype that is a number", unlike(lambda d: d["result"].update(archetype=7))),
    ("a run that is an object", unlike(lambda d: d.update(run_id={}))),
    ("a fingerprint that is null", unlike(lambda d: d["scorer"].update(fingerprint=None))),
    ("an offset that is a text", unlike(lambda d: d["source"].update(offset="41"))),
    ("a time beyond 64 bits", unlike(lambda d: d["source"].update(event_time=2**63))),
    ("expected cases that are a text", unlike(lambda d: d.update(expected_cases="5"))),
    ("a time of scoring beyond the year 9999", unlike(lambda d: d.update(scored_at=10**18))),
    ("a time of scoring with a fraction", unlike(lambda d: d.update(scored_at=1.5))),
]


@pytest.mark.parametrize("value", [row[1] for row in FORGED], ids=[row[0] for row in FORGED])
def test_what_the_fold_would_choke_on_is_undecodable(value: bytes | None) -> None:
    with pytest.raises(Undecodable):
        decode_scored(value)


# --- rows of the changelog --------------------------------------------------------------------------------------------

BATCH_ROW = BatchRow(
    1_795_291_200_000, 5, 5, 18, 17, 1_795_291_200_000, FINGERPRINT, "0.1.0", "live", 1_795_291_200_000
)
INPUT = InputTopic("AAECAwQFBgcICQoLDA3-_w", is_in_result_ids=True, name="outputs")
PROGRESS_ROW = ProgressRow(
    "safe-v0", SCHEMA, 8, 18, "b2c1f3a0-0000-4000-8000-000000000001", 7, 1_795_291_200_000, INPUT
)


@pytest.mark.parametrize("row", [BATCH_ROW, structs.replace(BATCH_ROW, expected_cases=None, stage="forgotten")])
def test_a_batchs_row_comes_back(row: BatchRow) -> None:
    assert BatchRow.decode(row.encode()) == row


def test_a_progress_row_comes_back() -> None:
    assert ProgressRow.decode(PROGRESS_ROW.encode()) == PROGRESS_ROW
    assert json.loads(PROGRESS_ROW.encode()) == {
        "group": "safe-v0",
        "schema": SCHEMA,
        "partitions": 8,
        "next_offset": 18,
        "topic_id": "b2c1f3a0-0000-4000-8000-000000000001",
        "transactions": 7,
        "first_seen_at": 1_795_291_200_000,
        "input": {"id": "AAECAwQFBgcICQoLDA3-_w", "is_in_result_ids": True, "name": "outputs"},
    }


def test_a_batchs_row_of_an_older_safe_has_no_time_of_the_brokers() -> None:
    older = {name: value for name, value in structs.asdict(BATCH_ROW).items() if name != "folded_at"}
    assert BatchRow.decode(json.dumps(older).encode()) == structs.replace(BATCH_ROW, folded_at=None)


def test_a_progress_row_of_an_older_safe_lacks_what_it_did_not_know() -> None:
    older = b'{"group":"safe-v0","schema":1,"partitions":8,"next_offset":18}'
    assert ProgressRow.decode(older) == ProgressRow("safe-v0", 1, 8, 18, None, None)


@pytest.mark.parametrize("member", ["stage", "cases"])
def test_no_other_member_may_be_missing(member: str) -> None:
    row = {name: value for name, value in structs.asdict(BATCH_ROW).items() if name != member}
    with pytest.raises(Undecodable):
        BatchRow.decode(json.dumps(row).encode())


# A note, and the count that it repeats.
NOTES: list[tuple[str, int | None]] = [
    (PROGRESS_ROW.note, 7),
    ("transactions=0", 0),
    ("", None),
    ("7", None),
    ("transactions=", None),
    ("transactions=-1", None),
    ("transactions=\u0667", None),
    ("transactions=" + "9" * 5_000, None),
    ("transactions=None", None),
    ("set by hand", None),
]


@pytest.mark.parametrize(("note", "count"), NOTES)
def test_an_offsets_note_repeats_the_count_and_no_other_note_is_taken_for_it(note: str, count: int | None) -> None:
    assert transactions_of(note) == count


NO_ROWS = [
    b"",
    b"[]",
    b"{}",
    b"null",
    BATCH_ROW.encode().replace(b"1795291200000", b'"now"'),
    BATCH_ROW.encode().replace(b"18", b"null"),
]


@pytest.mark.parametrize("value", NO_ROWS)
def test_a_row_that_is_none_is_undecodable(value: bytes) -> None:
    with pytest.raises(Undecodable):
        BatchRow.decode(value)
    with pytest.raises(Undecodable):
        ProgressRow.decode(value)


# --- dead letters -----------------------------------------------------------------------------------------------------


def headers_of(record: Fetched, detail: str = "not valid JSON at character 3") -> list[tuple[str, bytes | None]]:
    poison = Poison("invalid_json", detail)
    return dead_letter_headers(record, poison, stage="scorer", group="safe-v0", version="0.1.0", failed_at=SCORED_AT)


def test_a_dead_letter_keeps_its_headers_and_tells_why() -> None:
    came: Headers = [("ce_id", b"1"), ("twice", b"a"), ("twice", b"b"), ("null", None), ("bytes", b"\xff\x00")]
    headers = headers_of(Fetched(headers=came, timestamp=-1, partition=3))
    assert headers[: len(came)] == list(came)
    assert headers[len(came) :] == [
        ("safe.dlq.reason", b"invalid_json"),
        ("safe.dlq.stage", b"scorer"),
        ("safe.dlq.detail", b"not valid JSON at character 3"),
        ("safe.dlq.topic", b"factory.generation.output"),
        ("safe.dlq.partition", b"3"),
        ("safe.dlq.offset", b"41"),
        ("safe.dlq.timestamp", b"-1"),
        ("safe.dlq.group", b"safe-v0"),
        ("safe.dlq.version", b"0.1.0"),
        ("safe.dlq.failed_at", b"2026-11-21T20:00:00.123Z"),
    ]


def test_spoofed_headers_of_a_dead_letter_are_dropped() -> None:
    spoofed: Headers = [("safe.dlq.reason", b"none"), ("safe.dlq.value_omitted", b"true"), ("safe.dlq.", None)]
    headers = headers_of(Fetched(headers=[*spoofed, ("safe.dlqx", b"kept")]))
    assert headers == [("safe.dlqx", b"kept"), *headers_of(Fetched())]


def test_a_header_whose_name_cannot_be_written_is_left_out_of_a_dead_letter() -> None:
    came: Headers = [("before", b"1"), ("caf\udce9", b"x"), ("caf\u00e9", b"2"), ("\udcff", None)]
    headers = headers_of(Fetched(headers=came))
    assert headers == [("before", b"1"), ("caf\u00e9", b"2"), *headers_of(Fetched())]
    assert all(name.encode() for name, _ in headers)


@pytest.mark.parametrize("sign", ["x", "ä", "€", "👩"])
def test_a_detail_is_cut_to_512_bytes_between_characters(sign: str) -> None:
    told = dict(headers_of(Fetched(), sign * 600))["safe.dlq.detail"]
    assert told is not None
    assert 508 < len(told) <= 512
    assert set(told.decode()) == {sign}


TOPIC = DeadLetterTopic(
    "safe.v0.dead-letter", 4, TopicLimits({"safe.v0.dead-letter": 8 * 1024 * 1024}), "safe-v0", "0.1.0"
)
POISON = Poison("too_large", "the value is too large")


def buried(record: Fetched, topic: DeadLetterTopic = TOPIC) -> Written:
    outgoing = Kept()
    append_dead_letter(outgoing, record, POISON, "scorer", topic, SCORED_AT)
    (letter,) = outgoing.written
    return letter


def test_a_dead_letter_is_the_record_byte_for_byte() -> None:
    letter = buried(Fetched(value=b"\xff\x00", key=None, partition=6))
    assert (letter.topic, letter.partition, letter.key, letter.value) == (
        "safe.v0.dead-letter",
        6 % 4,
        None,
        b"\xff\x00",
    )


INCOMPRESSIBLE = random.Random(7).randbytes(60_000)
SMALL = replace(TOPIC, limits=TopicLimits({TOPIC.name: 64 * 1024}))


def test_a_value_that_fits_compressed_stays() -> None:
    assert buried(Fetched(value=b"x" * 600_000), SMALL).value == b"x" * 600_000


def test_a_value_that_does_not_fit_is_left_out_and_told_by_its_hash() -> None:
    assert buried(Fetched(value=INCOMPRESSIBLE[:40_000]), SMALL).value is not None
    letter = buried(Fetched(value=INCOMPRESSIBLE), SMALL)
    assert letter.value is None
    assert letter.headers[-3:] == [
        ("safe.dlq.value_omitted", b"true"),
        ("safe.dlq.value_bytes", b"60000"),
        ("safe.dlq.value_sha256", hashlib.sha256(INCOMPRESSIBLE).hexdigest().encode()),
    ]


def test_a_dead_letters_headers_and_key_count_too() -> None:
    value = INCOMPRESSIBLE[:30_000]
    assert buried(Fetched(value=value, headers=[("big", INCOMPRESSIBLE[:30_000])]), SMALL).value is None
    assert buried(Fetched(value=value, key=INCOMPRESSIBLE[:30_000]), SMALL).value is None
