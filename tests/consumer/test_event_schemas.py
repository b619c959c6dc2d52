"""The schemas of the events: what is committed, what SAFE writes, and what it takes."""

import copy
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from consumer.cli.main import main
from consumer.cli.options import EventName
from consumer.dead_letter_reasons import REASONS, Poison
from consumer.wire.event_schemas import event_schema
from consumer.wire.headers import REPORT_TYPE, RESULT_TYPE
from consumer.wire.input_event import InputEvent, InputRules, decode
from consumer.wire.scored_record import ResultShape, ScoredBy, SourceShape
from consumer.worker.report_size import STEPS
from safe_core import DEFAULT_POLICY, MAX_ID_LENGTH, Policy
from tests.support.cases import encoded, event_stream, make_batches
from tests.support.chain import Chain, Written, inputs_of
from tests.support.json_schema import draft_7, draft_2020_12
from tests.support.outside import Outgoing
from tests.support.schema_changes import resolved

SCHEMAS = Path(__file__).parents[2] / "config" / "schemas"
EVENTS = get_args(EventName)
Schema = dict[str, Any]


def whole_schema(name: str) -> Schema:
    """The schema of an event with every definition written out where it is used."""
    return resolved(event_schema(name))


def nodes(schema: Any) -> Iterator[Schema]:
    """Every schema within a schema, itself first."""
    yield schema
    for inner in schema.get("$defs", {}).values():
        yield from nodes(inner)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from nodes(schema[keyword])
    for inner in schema.get("properties", {}).values():
        yield from nodes(inner)


# --- what is committed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVENTS)
def test_the_committed_schema_is_what_the_command_prints(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", name]) == 0
    committed = (SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8")
    assert committed == capsys.readouterr().out, "indent it by two, with one line break at the end"


def test_nothing_else_is_committed_there() -> None:
    assert {path.name for path in SCHEMAS.iterdir()} == {f"{name}.schema.json" for name in EVENTS}


@pytest.mark.parametrize("name", EVENTS)
def test_a_schema_is_one_of_its_draft_and_means_the_same_in_the_older_one_of_asyncapi(name: str) -> None:
    schema = event_schema(name)
    assert schema["$schema"] == draft_2020_12().META_SCHEMA["$id"]
    draft_2020_12().check_schema(schema)
    draft_7().check_schema(schema)
    of_both_drafts = {
        "$schema", "title", "description", "examples", "type", "enum", "const", "properties", "required", "items",
        "additionalProperties", "$id", "minimum", "maximum", "minLength", "maxLength", "maxItems", "pattern", "format",
        "$defs", "$ref",
    }  # fmt: skip
    assert not {keyword for node in nodes(schema) for keyword in node} - of_both_drafts
    # The older draft ignores what stands beside a reference, and generators of types make a second type of it.
    assert not [node for node in nodes(schema) if "$ref" in node and len(node) > 1]


@pytest.mark.parametrize("name", EVENTS)
def test_every_object_with_fields_has_a_name_of_its_own_for_generators_of_types(name: str) -> None:
    schema = event_schema(name)
    named = [schema, *schema.get("$defs", {}).values()]
    assert not [node for node in nodes(schema) if "properties" in node and "title" not in node and node not in named]


def test_a_definition_is_the_same_in_every_schema_that_has_it() -> None:
    definitions = [item for name in EVENTS for item in event_schema(name).get("$defs", {}).items()]
    by_name = dict(definitions)
    assert all(by_name[name] == node for name, node in definitions)
    assert {"CaseResult", "Summary"} <= by_name.keys()


@pytest.mark.parametrize("name", EVENTS)
def test_every_field_has_a_description_and_the_example_fits(name: str) -> None:
    schema = whole_schema(name)
    fields = [field for node in nodes(schema) for field in node.get("properties", {}).items()]
    assert fields
    assert not [key for key, inner in fields if not inner["description"].endswith((".", "total_cases."))]
    (example,) = schema["examples"]
    draft_2020_12()(closed(schema)).validate(example)


def plain(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    """What a schema says of types, bounds and fields alone; every reference followed, null as one more type."""
    if "$ref" in schema:
        return plain(components[schema["$ref"].rpartition("/")[2]], components)
    if "anyOf" in schema:
        value, null = schema["anyOf"]
        return plain(value, components) | {"type": [plain(value, components)["type"], null["type"]]}
    kept = {key: schema[key] for key in ("type", "enum", "minimum", "maximum", "required") if key in schema}
    if abs(kept.get("minimum", 0)) > 1:  # what 64 bits can hold says nothing
        del kept["minimum"], kept["maximum"]
    inner = {key: plain(schema[key], components) for key in ("items", "additionalProperties") if schema.get(key)}
    properties = {name: plain(each, components) for name, each in schema.get("properties", {}).items()}
    return {"type": "string"} | kept | inner | ({"properties": properties} if properties else {})


@pytest.mark.parametrize(("field", "shape"), [("result", ResultShape), ("source", SourceShape), ("scorer", ScoredBy)])
def test_what_the_aggregator_passes_on_is_described_as_it_is_checked(field: str, shape: type[msgspec.Struct]) -> None:
    (reference,), components = msgspec.json.schema_components([shape])
    described = whole_schema("result")["properties"][field]
    assert plain(described, {}) == plain(reference, components)


def test_schemas_agree_with_the_code_and_with_each_other() -> None:
    result, report = whole_schema("result"), whole_schema("report")
    assert (result["title"], report["title"]) == (RESULT_TYPE, REPORT_TYPE)
    worst = report["properties"]["failure_analysis"]["properties"]["worst_performers"]["items"]
    assert worst == result["properties"]["result"]
    assert result["properties"]["summary"] == report["properties"]["summary"]
    assert report["properties"]["truncated"]["items"]["enum"] == sorted(name for name, _ in STEPS)
    ids = [node for name in EVENTS for node in nodes(whole_schema(name)) if node.get("minLength") == 1]
    assert {node["maxLength"] for node in ids} == {MAX_ID_LENGTH}


def test_examples_are_of_the_default_policy() -> None:
    (result,), (report,) = event_schema("result")["examples"], event_schema("report")["examples"]
    fingerprint = DEFAULT_POLICY.fingerprint
    assert result["scorer"]["fingerprint"] == report["scorer"]["fingerprint"] == fingerprint
    assert report["fingerprints"] == {fingerprint: 2}
    assert report["configuration"] == DEFAULT_POLICY.configuration()


def test_the_reasons_of_dead_letters_are_a_closed_list() -> None:
    assert event_schema("dead-letter")["properties"]["safe.dlq.reason"]["enum"] == list(REASONS)


# --- what SAFE writes -------------------------------------------------------------------------------------------------

BATCHES = make_batches(7, batches=5, cases_a_batch=9)
# Overrides of every kind, so that each of their fields stands in a report.
EVERY_SETTING = {
    "thresholds": {criterion: {"pass": 0.9, "review": 0.4} for criterion in ("CR", "AH", "AC")},
    "weights": {"CR": 2, "AH": 1, "AC": 0.5},
    "strictAH": True,
}
OVERRIDDEN = Policy.from_document(
    {"overrides": {"metric_id": {"S11": EVERY_SETTING}, "archetype": {"Unknown": EVERY_SETTING}}}
)


def closed(schema: Schema) -> Schema:
    """The same schema without room for fields that it does not list."""
    strict = copy.deepcopy(schema)
    for node in nodes(strict):
        if "properties" in node:
            node["additionalProperties"] = False
    return strict


def fields_of(schema: Schema, path: str = "$") -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        yield from fields_of(inner, f"{path}.{name}")
    for keyword, place in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(keyword), dict):
            yield from fields_of(schema[keyword], path + place)


def fields_in(document: Any, schema: Schema, path: str = "$") -> Iterator[str]:
    """The fields of a document, named as those of its schema."""
    if isinstance(document, list):
        for each in document:
            yield from fields_in(each, schema["items"], f"{path}[]")
    elif isinstance(document, Mapping):
        listed = schema.get("properties", {})
        for name, inner in document.items():
            if name in listed:
                yield f"{path}.{name}"
                yield from fields_in(inner, listed[name], f"{path}.{name}")
            elif isinstance(schema.get("additionalProperties"), dict):
                yield from fields_in(inner, schema["additionalProperties"], f"{path}.*")


async def written(**changes: Any) -> list[Written]:
    stream = [*event_stream(7, BATCHES, 120, partitions=1, repeated=0.4, late=0.2, poison=0.1)]
    case = BATCHES[0].cases[0]
    ahead = {"test_id": case.test_id, "batch_id": case.batch_id, "output": None, "generated_at": "2062-01-01T00:00:00Z"}
    return await Chain(BATCHES, **changes).run(inputs_of([*stream, Outgoing(encoded(ahead))]))


def values(records: list[Written], topic: str) -> list[Any]:
    return [json.loads(record.value or b"") for record in records if record.topic == topic]


@pytest.fixture
async def records() -> list[Written]:
    """What a small worker has written, all in order, and the same where no report fits."""
    return [*await written(policy=OVERRIDDEN, lenient=True), *await written(max_value_bytes=600)]


@pytest.mark.parametrize("name", ["result", "report"])
async def test_what_safe_writes_fits_and_has_every_field_and_no_other(name: str, records: list[Written]) -> None:
    schema = whole_schema(name)
    fits = draft_2020_12()(closed(schema))
    documents = values(records, name)
    assert len(documents) >= len(BATCHES)
    for document in documents:
        fits.validate(document)
    seen = {field for document in documents for field in fields_in(document, schema)}
    assert seen == set(fields_of(schema))


def test_all_steps_of_shortening_a_report_are_in_the_schema(records: list[Written]) -> None:
    steps = {step for document in values(records, "report") for step in document.get("truncated", ())}
    assert steps >= {"worst_performers.details", "common_terms"}


def test_the_headers_of_dead_letters_fit(records: list[Written]) -> None:
    fits = draft_2020_12()(event_schema("dead-letter"))
    letters = [record for record in records if record.topic == "dead-letter"]
    assert letters
    for letter in letters:
        fits.validate({name: (content or b"").decode() for name, content in letter.headers})


async def test_a_report_of_another_configuration_has_none() -> None:
    fits = draft_2020_12()(event_schema("report"))
    report = copy.deepcopy(values(await written(), "report")[0])
    fits.validate(report | {"configuration": None})


# Each is one edit of the example that a reader could not take.
BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("result", {"timestamp": "2026-11-21"}),
    ("result", {"summary": None}),
    ("result", {"summary": {"total_cases": 1, "pass": 1, "review": 0, "fail": 0}}),  # a field is missing
    ("result", {"expected_cases": "5"}),
    ("result", {"expectations_digest": "2b1f"}),
    ("report", {"report_type": "SAFE_v1"}),
    ("report", {"by_archetype": {"X": {"count": 1}}}),
    ("report", {"truncated": ["results"]}),
    ("report", {"runs": {"r": -1}}),
    ("dead-letter", {"safe.dlq.reason": "other"}),
    ("dead-letter", {"safe.dlq.offset": "x"}),
]


@pytest.mark.parametrize(("name", "edit"), BROKEN)
def test_a_changed_event_does_not_fit(name: str, edit: dict[str, Any]) -> None:
    schema = event_schema(name)
    assert not draft_2020_12()(schema).is_valid(schema["examples"][0] | edit)


EXACT = ["summary", "result.scores", "result.details", "result.details.CR", "result.details.AH", "result.details.AC"]


@pytest.mark.parametrize("path", EXACT)
def test_summary_scores_and_details_have_exactly_their_fields(path: str) -> None:
    schema = event_schema("result")
    document = copy.deepcopy(schema["examples"][0])
    target = document
    for name in path.split("."):
        target = target[name]
    target["more"] = 1
    assert not draft_2020_12()(schema).is_valid(document)


def test_elsewhere_a_later_version_may_add_fields() -> None:
    schema = event_schema("result")
    draft_2020_12()(schema).validate(schema["examples"][0] | {"more": 1})


# --- what it takes ----------------------------------------------------------------------------------------------------


@cache
def of_inputs() -> Any:
    return draft_2020_12()(event_schema("input"))


def event(**changes: Any) -> dict[str, Any]:
    return {"test_id": "T", "batch_id": "B", "output": {}} | changes


def decoded(document: object) -> InputEvent | None:
    value = document if isinstance(document, bytes) else json.dumps(document).encode()
    return decode(Written("input", 0, 0, None, value, ()), InputRules())


def is_taken(document: object) -> bool:
    try:
        return decoded(document) is not None
    except Poison:
        return False


TAKEN = [
    event(),
    event(output=None),
    event(output={"signals": None, "summary": None, "followup_questions": None, "more": 1}),
    event(output={"signals": ["a", ""], "summary": " ", "followup_questions": []}),
    event(output={"summary": "ENGINE_ERROR", "error_message": "429"}),
    event(output={"error_message": {"code": 429}}),
    event(concern_id=None, archetype=None, metric_id=None, run_id=None, generated_at=None),
    event(test_id="x" * 256),
    event(batch_id="\u2028a / % \U0001f600"),  # any printable character, and some that are not
    event(generated_at="2026-03-02T09:30:00.1239+05:30"),
    event(generated_at="2016-12-31t23:59:60z"),
    event(more={"deep": [1]}),
    event(input_digest="sha256:" + 64 * "0"),
    event(input_digest=None),
    event(input_digest=" \t"),
    event(input_digest=1),
]
REFUSED = [
    [],
    {"batch_id": "B", "output": {}},
    {"test_id": "T", "batch_id": "B"},
    event(input_digest="sha256:0"),
    event(input_digest="SHA256:" + 64 * "0"),
    event(input_digest="sha256:" + 64 * "A"),
    event(test_id=1),
    event(test_id=None),
    event(test_id=""),
    event(test_id="  "),
    event(test_id="x" * 257),
    event(batch_id="a\nb"),
    event(concern_id="a\u0085b"),
    event(archetype="\u007f"),
    event(metric_id=["m"]),
    event(run_id="\u2028"),
    event(run_id="r\n"),
    event(generated_at="2026-03-02T09:30:00"),
    event(generated_at="2026-03-02T24:00:00Z"),
    event(generated_at=1795291200000),
    event(output=[]),
    event(output={"summary": 5}),
    event(output={"signals": "a"}),
    event(output={"followup_questions": ["a", None]}),
]


@pytest.mark.parametrize("document", TAKEN, ids=lambda document: json.dumps(document)[:60])
def test_what_fits_is_taken(document: object) -> None:
    of_inputs().validate(document)
    assert is_taken(document)


@pytest.mark.parametrize("document", REFUSED, ids=lambda document: json.dumps(document)[:60])
def test_what_does_not_fit_is_refused(document: object) -> None:
    assert not of_inputs().is_valid(document)
    assert not is_taken(document)


BEYOND: list[bytes] = [
    b'{"test_id": "T", "test_id": "T", "batch_id": "B", "output": {}}',  # a key that stands twice
    b'{"test_id": "T", "batch_id": "B", "output": {"summary": "\\ud800"}}',  # a lone surrogate
    json.dumps(event(more=[[[[]]] * 2] * 2)).replace("[[", "[" * 70).replace("]]", "]" * 70).encode(),  # too deep
    json.dumps(event(generated_at="2026-02-30T00:00:00Z")).encode(),  # a day that does not exist
]


@pytest.mark.parametrize("value", BEYOND)
def test_some_rules_no_schema_can_tell(value: bytes) -> None:
    of_inputs().validate(json.loads(value))
    assert not is_taken(value)


def test_a_field_that_decoding_reads_is_in_the_schema() -> None:
    """Each field matters to the decoder: a number in its place, or a text of one letter, is refused or changes much."""
    properties = event_schema("input")["properties"]
    assert not [name for name in properties if is_taken(event(**{name: 1})) and is_taken(event(**{name: "1"}))]
    untold = decoded(event())
    fields = properties["output"]["properties"]

    def changes_nothing(name: str, value: object) -> bool:
        changed = event(output={name: value})
        return is_taken(changed) and decoded(changed) == untold

    assert not [name for name in fields if all(changes_nothing(name, value) for value in (1, "a"))]


def test_a_schema_that_does_not_exist_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "scored"]) == 3
    assert "result" in capsys.readouterr().err
