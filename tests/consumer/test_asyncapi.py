"""The AsyncAPI document of the topics: its official parser has nothing to say, and what it says is what SAFE does."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from consumer.cli.options import EventName
from consumer.settings import Settings
from consumer.wire.event_schemas import event_schema
from consumer.wire.headers import REPORT_TYPE, RESULT_TYPE
from tests.support.cases import event_stream, make_batches
from tests.support.chain import Chain, Written, inputs_of, with_headers
from tests.support.json_schema import draft_7
from tests.support.node import node_project, run
from tests.support.schema_changes import resolved

PROJECT = Path(__file__).parents[2]
CONFIG = PROJECT / "config"
DOCUMENT = yaml.safe_load((CONFIG / "asyncapi.yaml").read_text(encoding="utf-8"))
TRACE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
Json = Any


def parsed(parser: Path, *documents: Path) -> list[Json]:
    read: list[Json] = _plain(json.loads(run(parser, "node", "parse.mjs", *map(str, documents)).stdout))
    return read


def _plain(node: Json) -> Json:
    """Without the names that the parser gives to schemas."""
    if isinstance(node, dict):
        return {key: _plain(inner) for key, inner in node.items() if not key.startswith("x-parser")}
    return [_plain(inner) for inner in node] if isinstance(node, list) else node


@pytest.fixture(scope="module")
def parser() -> Path:
    """Where the official parser is installed."""
    return node_project(PROJECT / "tests" / "asyncapi")


@pytest.fixture(scope="module")
def document(parser: Path) -> Json:
    """The document as the parser reads it, every reference followed."""
    (document,) = parsed(parser, CONFIG / "asyncapi.yaml")
    return document


def message(document: Json, name: str) -> Json:
    (found,) = [each for each in document["messages"] if each["id"] == name]
    return found


def test_the_official_parser_finds_nothing_wrong(document: Json) -> None:
    assert document["diagnostics"] == []
    assert document["version"] == DOCUMENT["asyncapi"]


# A mutant: an edit of the document, and the word by which the parser names what is wrong.
MUTANTS: list[tuple[str, str, str]] = [
    ("address: safe.v0.result", "adress: safe.v0.result", "adress"),
    ("./schemas/result.schema.json", "./schemas/results.schema.json", "result"),
    ("#/channels/report", "#/channels/reports", "report"),
]


def test_the_parser_would_find_a_mistake(tmp_path: Path, parser: Path) -> None:
    text = (CONFIG / "asyncapi.yaml").read_text(encoding="utf-8")
    (tmp_path / "schemas").symlink_to(CONFIG / "schemas")
    mutants = [tmp_path / f"{number}.yaml" for number in range(len(MUTANTS))]
    for mutant, (right, wrong, _) in zip(mutants, MUTANTS, strict=True):
        assert right in text
        mutant.write_text(text.replace(right, wrong))
    for (_, wrong, named), read in zip(MUTANTS, parsed(parser, *mutants), strict=True):
        errors = [each for each in read["diagnostics"] if each["severity"] == 0]
        assert named in json.dumps(errors), wrong


def test_topics_are_named_as_the_settings_name_them() -> None:
    settings = Settings()
    assert {name: channel["address"] for name, channel in DOCUMENT["channels"].items()} == {
        "input": settings.input_topic,
        "result": settings.result_topic,
        "report": settings.report_topic,
        "deadLetter": settings.dead_letter_topic,
    }
    for channel in DOCUMENT["channels"].values():
        assert channel["bindings"]["kafka"]["topic"] == channel["address"]
    assert {settings.scored_topic, settings.state_topic} <= {*DOCUMENT["info"]["description"].replace(",", " ").split()}


def test_messages_are_named_by_their_event_types() -> None:
    messages = DOCUMENT["components"]["messages"]
    assert (messages["result"]["name"], messages["report"]["name"]) == (RESULT_TYPE, REPORT_TYPE)


def test_every_schema_is_one_that_is_committed() -> None:
    text = (CONFIG / "asyncapi.yaml").read_text(encoding="utf-8")
    assert not [name for name in get_args(EventName) if f"./schemas/{name}.schema.json" not in text]


def test_every_example_fits_its_message(document: Json) -> None:
    for each in document["messages"]:
        assert each["examples"], each["id"]
        for example in each["examples"]:
            assert example["payload"] is not None
            draft_7()(each["payload"]).validate(example["payload"])
            draft_7()(each["headers"]).validate(example["headers"] or {})


@pytest.fixture
async def records() -> list[Written]:
    """What a small worker writes, some of it with a trace."""
    batches = make_batches(5, batches=3, cases_a_batch=4)
    inputs = inputs_of(list(event_stream(5, batches, 30, partitions=1, poison=0.2)))
    inputs[0] = with_headers(inputs[0], [("traceparent", TRACE)])
    return await Chain(batches).run(inputs)


@pytest.mark.parametrize(("topic", "name"), [("result", "result"), ("report", "report"), ("dead-letter", "deadLetter")])
def test_what_safe_writes_fits_its_message(document: Json, records: list[Written], topic: str, name: str) -> None:
    described = message(document, name)
    written = [record for record in records if record.topic == topic]
    assert written
    for record in written:
        headers = {header: (content or b"").decode() for header, content in record.headers}
        draft_7()(described["headers"]).validate(headers)
        if name != "deadLetter":
            draft_7()(described["payload"]).validate(json.loads(record.value or b""))
            key = DOCUMENT["components"]["schemas"]["batchKey"]
            draft_7()(key).validate((record.key or b"").decode())


@pytest.mark.parametrize("name", ["result", "report"])
def test_a_header_of_another_form_does_not_fit(document: Json, name: str) -> None:
    described = message(document, name)
    headers = described["examples"][0]["headers"]
    for header in headers.keys() - {"traceparent"}:
        assert not draft_7()(described["headers"]).is_valid({**headers, header: None})
        assert not draft_7()(described["headers"]).is_valid({key: headers[key] for key in headers.keys() - {header}})


def test_payloads_are_the_committed_schemas(document: Json) -> None:
    for name in ("result", "report"):
        assert resolved(message(document, name)["payload"]) == resolved(event_schema(name))
    assert message(document, "deadLetter")["headers"] == event_schema("dead-letter")
