"""A large batch file is parsed in pieces, and what comes of it is what comes of it in one."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.case_sources import cases
from consumer.case_sources.cases import parse_document, parse_in_pieces
from safe_core import Batch, InvalidBatch, parse_batch

WANTED = {"signal_generation": {"must_find_signals": ["lactate 4"]}}
CASE = {"test_id": "T-1", "concern_id": "I25", "patient_payload": "a “narrative”", "expectations": WANTED}


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "_LARGE_BYTES", 0)


def at_once(raw: bytes) -> Batch | str:
    try:
        return parse_batch(parse_document(raw))
    except InvalidBatch as error:
        return re.sub(", column [0-9]+", "", str(error))  # of a large file that is cut off only the line is known


def in_pieces(raw: bytes) -> Batch | str:
    try:
        return parse_batch(parse_in_pieces(raw))
    except InvalidBatch as error:
        return re.sub(", column [0-9]+", "", str(error))  # of a large file that is cut off only the line is known


def document(*entries: Any, **more: Any) -> bytes:
    return json.dumps({"test_cases": list(entries), **more}, indent=1).encode()


@pytest.mark.parametrize(
    "raw",
    [
        document(CASE, CASE | {"test_id": "T-2"}),
        document(CASE, batch_plan={"scenarios": ["[Safety_Signal] 71yo"]}),
        document(),
        document(CASE, "no object", None, 7, [CASE]),
        document(CASE | {"test_id": "T-\ud800"}, CASE),  # a lone surrogate harms one case
        document(CASE | {"\ud800": 1}, CASE),  # also as a key
        document(CASE | {"score": float("nan")}),  # nobody reads it
        document(CASE | {"score": 1e999}),
        document(CASE).replace(b"T-1", b"T-\xff"),  # not UTF-8
        document(CASE, note="x").replace(b'"x"', b'"\xff"'),  # also where nobody reads
        document(CASE).replace(b"narrative", b"narra\ntive"),
        document(CASE)[:-1],  # half written
        document(CASE)[:40],
        document(CASE) + b" \r\n\t",
        document(CASE) + b"}",
        b'{"test_cases": [], "test_cases": ' + json.dumps([CASE]).encode() + b"}",  # the last of two stands
        b'{"test_cases": [{"test_id": "a", "test_id": "b", "expectations": {}}]}',
        b'{"test_cases": {"test_id": "a"}}',
        b'{"test_cases": null}',
        b'{"batch_plan": {}}',
        b"[1]",
        b"null",
        b"",
        b"   ",
        b"\xef\xbb\xbf" + document(CASE),
        b'{"test_cases": [1,]}',
        b'{"a": ' + b"[" * 3_000 + b"]" * 3_000 + b"}",
        b'{"test_cases": [{"test_id": ' + b"9" * 5_000 + b"}]}",
    ],
)
def test_both_ways_say_the_same(raw: bytes) -> None:
    assert in_pieces(raw) == at_once(raw)


@given(
    entries=st.lists(
        st.fixed_dictionaries({"test_id": st.text(max_size=3), "expectations": st.just(WANTED)}), max_size=4
    ),
    at=st.integers(0, 400),
    byte=st.integers(0, 255),
)
def test_both_ways_say_the_same_of_whatever_was_spoilt(entries: list[Any], at: int, byte: int) -> None:
    raw = bytearray(document(*entries))
    raw[at % len(raw)] = byte
    ours, theirs = in_pieces(bytes(raw)), at_once(bytes(raw))
    # Of a file that is cut off, the last line may be named in place of the one where a string began.
    assert ours == theirs or (isinstance(ours, str) and isinstance(theirs, str))


def test_a_large_file_is_not_parsed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The point of it: no document of the whole is ever made."""

    def refuse(_raw: bytes) -> object:
        raise AssertionError("the whole was parsed")

    monkeypatch.setattr(cases, "parse_document", refuse)
    batch = in_pieces(document(CASE, CASE | {"test_id": "T-2"}, batch_plan={"scenarios": []}))
    assert isinstance(batch, Batch)
    assert [case.test_id for case in batch.cases] == ["T-1", "T-2"]
    assert in_pieces(document(CASE)[:-1]) == "not valid JSON (line 16)", "nor one that is cut off"
