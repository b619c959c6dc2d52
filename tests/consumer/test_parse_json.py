"""The quick parser beside the careful one, whose answer stands: what both say of whatever text there may be."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from consumer.dead_letter_reasons import Poison
from consumer.wire import strict_json
from consumer.wire.strict_json import DEPTH_LIMIT, parse_json

spaces = st.sampled_from(["", "", "", " ", "\n", "\t", " \r\n"])
strings = st.one_of(
    st.text(max_size=12).map(json.dumps),
    st.text(max_size=12).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from(
        ['"a"', '"a"', '"b"', '""', '"\\""', '"\\\\"', '"\\":"', '"\\ud800"', '"\\ud83d\\ude00"', '"a\x01"', '":"']
    ),
)
atoms = st.one_of(
    strings,
    st.integers().map(str),
    st.integers(min_value=-(10**20), max_value=10**20).map(str),
    st.floats().map(repr),
    st.sampled_from(
        ["true", "false", "null", "-0", "0.0", "1e999", "1E2", "01", "NaN", "Infinity", "9" * 30, "1" * 18]
    ),
)


@st.composite
def an_object(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    """Write an object whose keys may be equal, with white space wherever it may stand."""
    members = draw(st.lists(st.tuples(strings, values), max_size=4))
    padded = (draw(spaces) + each + draw(spaces) for pair in members for each in pair)
    return "{" + ",".join(f"{key}:{value}" for key, value in zip(padded, padded, strict=True)) + "}"


def a_list(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(values, max_size=4).map(lambda each: "[" + ",".join(each) + "]")


documents = st.recursive(atoms, lambda values: st.one_of(an_object(values), a_list(values)), max_leaves=12)


def said(parse: object, value: bytes) -> object:
    """Give what a parser says: the document, with the types of its numbers, or the reason why there is none."""
    try:
        return repr(parse(value))  # type: ignore[operator]
    except Poison as poison:
        return poison.reason, poison.detail


@given(text=st.one_of(an_object(documents), documents, st.text(max_size=30)))
@example('{"a": 1, "a": 1}')
@example('{"a":"x","a":"y"}')
@example('{"a" :1,"b":{"a":1,"a":2}}')
@example('{"a":"\\":","a":1}')
@example('{"a":"\\\\","a":1}')
@example('{"n": 123456789012345678}')
@example('{"n": 1234567890123456789}')
@example('{"n": -123456789012345678}')
@example('{"n": 18446744073709551616}')
@example('{"n": 0.1, "m": -0}')
@example('{"a": ' + "[" * (DEPTH_LIMIT - 1) + "]" * (DEPTH_LIMIT - 1) + "}")
@example('{"a": ' + "[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT + "}")
@example('{"a": "' + "[" * 200 + '"}')
@example("\ufeff{}")
@example(" {} ")
@example("{} x")
def test_both_say_the_same_of_any_text(text: str) -> None:
    value = text.encode(errors="surrogatepass")
    assert said(parse_json, value) == said(strict_json._parsed_with_care, value)


@given(value=st.binary(max_size=40))
def test_both_say_the_same_of_any_bytes(value: bytes) -> None:
    assert said(parse_json, value) == said(strict_json._parsed_with_care, value)


@pytest.mark.parametrize(
    "text",
    [
        '{"test_id":"A","output":{"signals":["a:b","c"],"summary":"x\\ny"},"n":7,"ok":true,"none":null}',
        "{}",
        '{"a" : "b"}',
        '{"a":"\\"","b":0.5}',
        '{"a":1234567890123456789}',
        '{"a" : 1E2, "b": "\\u00e9"}',
        '{"a":' + "[" * 7 + "]" * 7 + "}",
    ],
)
def test_the_usual_is_parsed_quickly(text: str) -> None:
    assert strict_json._parsed_quickly(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":1}',
        '{"a": "\\""}',
        '{"a" : "\\u0022"}',
        '{"a":1e999}',
        '{"a":18446744073709551616}',
        '{"a":' + "[" * 8 + "]" * 8 + "}",
        "[]",
        "x",
    ],
)
def test_what_is_not_proved_is_left_to_the_careful_one(text: str) -> None:
    assert strict_json._parsed_quickly(text.encode()) is None
