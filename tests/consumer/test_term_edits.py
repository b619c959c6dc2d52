"""Terms replaced in the text of a batch file: all else stays, byte for byte."""

import json

import pytest

from consumer.files.term_edits import MalformedWordings, TermPlace, with_terms_replaced, with_wordings

SECTIONS = '"signal_generation": {"must_find_signals": %s}, "event_summary": {"must_contain_phrases": ["x"]}'


def batch(terms: str, before: str = "") -> bytes:
    case = f'{{"test_id": "T1", "expectations": {{{SECTIONS % terms}}}}}'
    return f'{before}{{ "other": [1, {{"test_cases": ["no"]}}], "test_cases": [{{}}, {case}] }}\n'.encode()


FIRST = TermPlace(1, "CR", 0)
SECOND = TermPlace(1, "CR", 1)


@pytest.mark.parametrize(
    ("terms", "replacements", "expected"),
    [
        ('["a", "b"]', {FIRST: ["c"]}, '["c", "b"]'),
        ('["a","b"]', {FIRST: ["c", "d"]}, '["c","d","b"]'),
        ('["a", "b"]', {SECOND: ["c", "d"]}, '["a", "c", "d"]'),
        ('["a", "b"]', {FIRST: ["c", "d"], SECOND: ["e"]}, '["c", "d", "e"]'),
        ('[\r\n\t"a",\r\n\t"b"\r\n]', {SECOND: ["c", "d"]}, '[\r\n\t"a",\r\n\t"c",\r\n\t"d"\r\n]'),
        ('[ "a\\"]", "b" ]', {SECOND: ['"']}, '[ "a\\"]", "\\"" ]'),
        ('["\\u00e9", "b"]', {SECOND: ["é"]}, '["\\u00e9", "\\u00e9"]'),  # as the file writes its own
        ('["é", "b"]', {SECOND: ["ü"]}, '["é", "ü"]'),
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_only_the_terms_change(terms: str, replacements: dict[TermPlace, list[str]], expected: str, mark: str) -> None:
    changed = with_terms_replaced(batch(terms, mark), replacements)
    if mark and not terms.isascii():
        assert json.loads(changed.decode("utf-8-sig")) == json.loads(batch(expected))
    assert json.loads(changed.decode("utf-8-sig")) == json.loads(batch(expected).decode())
    if not (mark and "\\u00e9" in terms):  # with a mark the file is no ASCII, and new terms need no escapes
        assert changed == batch(expected, mark)


def test_of_a_key_that_is_given_twice_the_last_counts() -> None:
    terms = '["a"], "must_find_signals": ["b"]'
    assert with_terms_replaced(batch(terms), {FIRST: ["c"]}) == batch('["a"], "must_find_signals": ["c"]')


def test_a_place_without_a_term_is_an_error() -> None:
    with pytest.raises(KeyError):
        with_terms_replaced(batch('["a"]'), {SECOND: ["c"]})


WORDINGS = (("a", ("b", "\u00e9")),)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # behind the expectations, as they are indented
        ('{"expectations": {"x": {}}, "z": 1}', '{"expectations": {"x": {}}, "accepted_wordings": %s, "z": 1}'),
        ('{\r\n\t"expectations" : {}\r\n}', '{\r\n\t"expectations" : {},\r\n\t"accepted_wordings": %s\r\n}'),
        ('{"expectations":{}}', '{"expectations":{}, "accepted_wordings": %s}'),
        ('{\n"\\u0065xpectations":{}}', '{\n"\\u0065xpectations":{}, "accepted_wordings": %s}'),
        # in place of what says that there are none
        ('{"expectations": {}, "accepted_wordings":null}', '{"expectations": {}, "accepted_wordings":%s}'),
        ('{"accepted_wordings": {} , "expectations": {}}', '{"accepted_wordings": %s , "expectations": {}}'),
    ],
)
def test_accepted_wordings_are_written_and_nothing_else_changes(before: str, after: str) -> None:
    whole = '{"test_cases": [{"expectations": {}}, %s, {"expectations": {}}]}\n'
    changed = with_wordings((whole % before).encode(), {1: WORDINGS})
    assert changed.decode() == whole % (after % '{"a": ["b", "\\u00e9"]}')
    assert json.loads(changed)["test_cases"][1]["accepted_wordings"] == {"a": ["b", "\u00e9"]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": ["]}" ] }', '{"a": ["]}", "b", "\\u00e9" ] }'),
        ('{"a": [], "z":7}', '{"a": ["b", "\\u00e9"], "z":7}'),
        ('{"\\u0061":[null,"",{"x": 1}]}', '{"\\u0061":[null,"",{"x": 1}, "b", "\\u00e9"]}'),
        ('{"z":"odd" ,"y" : [ ] }', '{"z":"odd" ,"y" : [ ], "a": ["b", "\\u00e9"] }'),
        ('{\r\n\t"z": []\r\n}', '{\r\n\t"z": [],\r\n\t"a": ["b", "\\u00e9"]\r\n}'),
        ('{"a": [\n  "c"\n ]}', '{"a": [\n  "c",\n  "b",\n  "\\u00e9"\n ]}'),
        ('{"a": 7, "a": ["c"]}', '{"a": 7, "a": ["c", "b", "\\u00e9"]}'),
        (
            '{"a": ["c"]}, "accepted_wordings": {"z": ["d"]}',
            '{"a": ["c"]}, "accepted_wordings": {"z": ["d"], "a": ["b", "\\u00e9"]}',
        ),
    ],
)
def test_a_wording_is_added_to_those_that_are_there(before: str, after: str) -> None:
    whole = '{"test_cases": [{"expectations": {}, "accepted_wordings": %s}]}\n'
    assert with_wordings((whole % before).encode(), {0: WORDINGS}).decode() == whole % after


@pytest.mark.parametrize("written", ["[]", '"a"', "7", '{"a": "c"}', '{"a": null}', '{"a": {"c": 1}}'])
def test_nothing_is_added_to_what_is_no_object_of_lists(written: str) -> None:
    raw = f'{{"test_cases": [{{"expectations": {{}}}}, {{"expectations": {{}}, "accepted_wordings": {written}}}]}}'
    with pytest.raises(MalformedWordings) as raised:
        with_wordings(raw.encode(), {0: WORDINGS, 1: WORDINGS})
    assert raised.value.position == 1


def test_each_of_many_cases_gets_its_wordings() -> None:
    case = '{"note": "%s", "expectations": {}}' % ("text " * 100)
    raw = f'{{"test_cases": [{",".join([case] * 3_000)}]}}'.encode()
    edited = json.loads(with_wordings(raw, dict.fromkeys(range(3_000), WORDINGS)))
    assert [case["accepted_wordings"] for case in edited["test_cases"]] == [{"a": ["b", "\u00e9"]}] * 3_000
