"""Keys that appear twice in one object of a batch file: what is lost is named, and nothing else changes."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.cli.main import main
from consumer.errors import ConfigurationError
from consumer.files import publish_cases
from consumer.files.json_text import RepeatedKey, repeated_keys
from consumer.settings import Settings
from tests.support.case_files import GOOD, answer, write_report

FOUND = [
    # (text, line and key of each repetition)
    ('{"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]}', []),
    ('{"a": 1, "a": 1}', [(1, "a")]),
    ('{"a": {"a": 1},\n "b": [\n{"x": {}, "x": []}],\n"a": 0, "a": 0}', [(3, "x"), (4, "a"), (4, "a")]),
    # the same key in other letters of JSON
    ('{"caf\\u00e9": 1,\r\n"café": 2}', [(2, "café")]),
    # quotes, brackets and commas within strings are none
    ('{"a": "\\"a\\": {[,]}", "b": "\\\\", "c": "\\u0022"}', []),
    ('{"a\\"": "\\u0022", "a\\u0022": 2}', [(1, 'a"')]),
    # what only Python's own parser takes
    ('{"n": 123456789012345678901234567890, "a": "\\ud800"}', []),
    ('{"n": NaN,\n"n": "\\ud800"}', [(2, "n")]),
    ("[]", []),
    ('"a"', []),
]


@pytest.mark.parametrize(("text", "found"), FOUND)
def test_each_repetition_is_found_with_its_line(text: str, found: list[tuple[int, str]]) -> None:
    assert [*repeated_keys(text.encode(), json.loads(text))] == [RepeatedKey(*each) for each in found]
    marked = f"\ufeff{text}".encode()
    assert [*repeated_keys(marked, json.loads(text))] == [RepeatedKey(*each) for each in found]


class Pairs(list[tuple[str, Any]]):
    """An object with keys that may repeat."""


def written(value: object) -> str:
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(key)}: {written(each)}" for key, each in value) + "}"
    if isinstance(value, list):
        return "[" + ",\n".join(map(written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


KEYS = st.sampled_from(["a", "b", 'a"', "\\", "é", "{", ""])
VALUES = st.recursive(
    st.none() | st.integers(-5, 5) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(KEYS, inner), max_size=4).map(Pairs),
    max_leaves=12,
)


@given(VALUES)
def test_there_are_as_many_as_a_parser_loses(value: object) -> None:
    lost: list[int] = []

    def noted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        lost.append(len(pairs) - len(dict(pairs)))
        return dict(pairs)

    text = written(value)
    document = json.loads(text, object_pairs_hook=noted)
    assert len(repeated_keys(text.encode(), document)) == sum(lost)


# --- what the commands say --------------------------------------------------------------------------------------------

BATCH = """{"test_cases": [
  {"test_id": "T", "concern_id": "K07", "expectations": {
    "signal_generation": {
      "must_find_signals": ["a fever of 41"],
      "must_find_signals": ["wheeze"]
    }
  }}
]}
"""
LOST = 'cases/b1.json: a key appears twice in one object, and only the last one counts: "must_find_signals" (line 5)'


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("cases").mkdir()
    path = Path("cases/b1.json")
    path.write_text(BATCH)
    write_report(Path("run.json"), answer("T", GOOD))
    return path


@pytest.mark.parametrize(
    "command",
    [["score", "-c", "K07", "-b", "*"], ["explain", "--all"], ["explain", "--test", "T"], ["triage"]],
)
def test_it_is_said_once_and_the_last_one_counts(
    batch: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert main([*command, "-i", "run.json", "-t", str(batch.parent)]) == 0
    assert capsys.readouterr().err.count(f"safe: {LOST}\n") == 1


async def test_so_it_is_where_test_cases_are_published(
    batch: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (case,) = publish_cases.plan_cases(batch.parent).cases
    assert json.loads(case.value)["expectations"]["signal_generation"] == {"must_find_signals": ["wheeze"]}

    async def no_topics(*_: object) -> dict[str, object]:
        return {}

    monkeypatch.setattr(publish_cases, "describe_topics", no_topics)
    settings = Settings(expectations="topic:cases", kafka_bootstrap_servers="127.0.0.1:1")
    with pytest.raises(ConfigurationError, match="there is no topic cases"):
        await publish_cases.publish_cases(
            settings, batch.parent, batch="*", with_narrative=False, prune=False, dry_run=True
        )
    assert capsys.readouterr().err == f"safe: {LOST}\n"


def test_for_lint_it_is_an_error_at_its_line(batch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(batch), "--format", "json", "--fail-on", "error"]) == 1
    document = json.loads(capsys.readouterr().out)
    (found,) = [each for each in document["findings"] if each["code"] == "duplicate_key"]
    sentence = found.pop("sentence")
    assert sentence.startswith('"must_find_signals" appears twice in one object: only the last one counts')
    assert {name: found[name] for name in ("severity", "file", "line", "term", "place")} == {
        "severity": "error",
        "file": str(batch),
        "line": 5,
        "term": "must_find_signals",
        "place": "must_find_signals",
    }
    assert (document["is_clean"], document["by_severity"]["error"]) == (False, 1)
