"""Results met before are not decoded again: what comes of them is what comes of decoding them."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.wire import scored_record
from consumer.wire.headers import Undecodable
from consumer.wire.result_event import encode_result
from consumer.wire.scored_record import (
    DetailsShape,
    FoundShape,
    ResultShape,
    ScoredBy,
    ScoredRecord,
    ScoresShape,
    SourceShape,
    TermsShape,
    ViolationsShape,
    decode_scored,
    decode_to_fold,
    encode_scored,
    row_of,
    with_believed_time,
)
from safe_core.remembered import Remembered

AHEAD_MS = 3
few = st.sampled_from
flags = st.tuples(st.booleans(), st.booleans(), st.booleans())


def a_record(test_id: str = "T", found: tuple[str, ...] = ("a",), **more: object) -> ScoredRecord[ResultShape]:
    details = DetailsShape(FoundShape(found, ("b",)), ViolationsShape(()), FoundShape((), ()))
    result = ResultShape(test_id, None, ScoresShape(0.5, 1.0, 1.0, 2.5 / 3), details, TermsShape(2, 0, 0), "Review")
    members = {
        "concern_id": "K", "batch_id": "B", "run_id": None, "result": result,
        "source": SourceShape("in", 0, 1, 2), "scorer": ScoredBy("1", "sha256:" + "a" * 64),
        "expectations_digest": "sha256:e", "output_digest": "sha256:o", "expected_cases": 3, "in_batch": True,
        "passed": (False, True, True), "vacuous": (False, True, True), "empty_output": False,
        "published_at": 5, "scored_at": 6,
    }  # fmt: skip
    return ScoredRecord(**(members | more))  # type: ignore[arg-type]  # members by name


records = st.builds(
    a_record,
    few(["T", "U"]),
    few([(), ("a",), ("a", "c")]),
    run_id=few([None, "r1", "r2"]),
    source=st.builds(SourceShape, few(["in"]), st.integers(0, 2), st.integers(0, 3), st.integers(-2, 12)),
    scorer=st.builds(ScoredBy, few(["1", "2"]), few(["sha256:" + digit * 64 for digit in "ab"])),
    in_batch=st.booleans(),
    passed=flags,
    vacuous=flags,
    empty_output=st.booleans(),
    input_matches=few([None, True, False]),
    published_at=few([-1, 0, 5]),
    generation=few(["answered", "failed"]),
)


@given(st.lists(records, min_size=1, max_size=12))
def test_the_row_and_the_result_are_those_of_a_whole_decoding(written: list[ScoredRecord[ResultShape]]) -> None:
    for each in written:
        value = encode_scored(each)
        scored, test_id, row = decode_to_fold(value, AHEAD_MS)
        whole = with_believed_time(decode_scored(value), AHEAD_MS)
        assert (test_id, row) == (whole.result.test_id, row_of(whole))
        told: dict[str, Any] = {"complete": True, "mixed_runs": False, "failed_generations": 0}
        assert encode_result(scored, {"n": 1}, **told) == encode_result(whole, {"n": 1}, **told)


@pytest.mark.parametrize("member", ["label", "scores", "details", "terms", "test_id"])
def test_a_result_that_was_never_met_is_checked(member: str) -> None:
    document = msgspec.json.decode(encode_scored(a_record(test_id=f"never met, {member}")))
    document["result"][member] = 7
    with pytest.raises(Undecodable):
        decode_to_fold(msgspec.json.encode(document), AHEAD_MS)


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b'{"result":{}}', b"\xff"])
def test_what_is_no_scored_record_is_refused(value: bytes | None) -> None:
    with pytest.raises(Undecodable):
        decode_to_fold(value, AHEAD_MS)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scored_record, "_remembered", Remembered(3))
    for number in range(10):
        decode_to_fold(encode_scored(a_record(test_id=f"T{number}")), AHEAD_MS)
        assert 1 <= len(scored_record._remembered) <= 3
    held = len(scored_record._remembered)
    decode_to_fold(encode_scored(a_record(found=("long " * 1_000,))), AHEAD_MS)
    assert len(scored_record._remembered) == held
