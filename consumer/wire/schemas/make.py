"""JSON Schemas of what stands in the topics that others read and write (contract.md, "Events").

They are made from the models and committed under config/schemas/; what they cannot say stands in their descriptions.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from consumer.errors import REASONS
from consumer.settings.schema import DRAFT
from consumer.wire.headers import REPORT_TYPE, RESULT_TYPE
from consumer.wire.schemas.examples import EVENT_EXAMPLES
from consumer.wire.schemas.shapes import CLOSED, WORDS, ReportEvent, SummarisedResult
from safe_core import MAX_ID_LENGTH

_Schema = dict[str, Any]

_MOMENT: Final = {
    "format": "date-time",
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
}
_DIGEST: Final = {"pattern": "^sha256:[0-9a-f]{64}$"}
_WRITTEN_ID: Final = {"minLength": 1, "maxLength": MAX_ID_LENGTH}

_FORMS: Final[Mapping[str, _Schema]] = {
    **dict.fromkeys(("timestamp", "generated_at"), _MOMENT),
    **dict.fromkeys(("fingerprint", "expectations_digest", "output_digest"), _DIGEST),
    **dict.fromkeys(("test_id", "batch_id", "concern_id", "archetype", "run_id"), _WRITTEN_ID),
}
"""The form of the texts in fields of these names, in whatever class."""

_CLASSES: Final = {each.__name__: each for each in WORDS}

# --- making -----------------------------------------------------------------------------------------------------------


def _event(type_: str, model: type[Struct]) -> _Schema:
    """Make the schema of an event's data, every object written out where it stands."""
    _, components = msgspec.json.schema_components([model])
    schema = _opened({"$ref": f"#/$defs/{model.__name__}"}, components)
    return {"$schema": DRAFT, "title": type_, **schema}


def _opened(schema: _Schema, components: Mapping[str, _Schema]) -> _Schema:
    """Put a component in the place of each reference to it, with its words; null is one more type."""
    if "anyOf" in schema:
        value, null = schema["anyOf"]
        assert null == {"type": "null"}, "an optional field is of one type or null"
        opened = _opened(value, components)
        return opened | {"type": [opened["type"], "null"]}
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _object(_CLASSES[name], components[name], components)
    inner = {key: _opened(schema[key], components) for key in ("items", "additionalProperties") if key in schema}
    return _typed(schema | inner)


def _typed(schema: _Schema) -> _Schema:
    """A choice is of a type as well, and the bounds of what 64 bits can hold say nothing."""
    if "enum" in schema:
        return {"type": "string", **schema}
    if schema.get("type") == "integer" and schema.get("minimum", 0) < 0:
        return {"type": "integer"}
    return schema


def _object(class_: type[Struct], component: _Schema, components: Mapping[str, _Schema]) -> _Schema:
    fields = {name: _opened(schema, components) for name, schema in component["properties"].items()}
    properties = {
        name: schema | _form(name, schema) | {"description": WORDS[class_][name]} for name, schema in fields.items()
    }
    closed = {"additionalProperties": False} if class_ in CLOSED else {}
    return {
        "type": "object",
        "description": component["description"],
        "properties": properties,
        "required": component["required"],
        **closed,
    }


def _form(name: str, schema: _Schema) -> _Schema:
    return _FORMS.get(name, {}) if schema["type"] in ("string", ["string", "null"]) else {}


# --- input ------------------------------------------------------------------------------------------------------------

# No control character anywhere, and something that is not blank.
_ID: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_ID_LENGTH,
    "pattern": r"^(?![\s\S]*[\u0000-\u001f\u007f-\u009f])[\s\S]*\S",
}
_RFC_3339: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?"
    r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)


def _optional(schema: _Schema, words: str) -> _Schema:
    return schema | {"type": [schema["type"], "null"], "description": words}


def _input() -> _Schema:
    texts: _Schema = {"type": "array", "items": {"type": "string"}}
    text: _Schema = {"type": "string"}
    moment = text | {"format": "date-time", "pattern": _RFC_3339}
    output = {
        "signals": _optional(texts, "The signals that the model found; empty where absent or null."),
        "summary": _optional(text, "The summary of the event; empty where absent or null."),
        "followup_questions": _optional(texts, "The questions that the model asks; empty where absent or null."),
    }
    return {
        "$schema": DRAFT,
        "title": "generation output",
        "type": "object",
        "description": "An output to score. Unknown fields are ignored, at any depth; a key may stand only once.",
        "properties": {
            "test_id": _ID | {"description": "The test case that was answered."},
            "batch_id": _ID | {"description": "The batch; its test case of that id is looked for first."},
            "concern_id": _optional(_ID, "The concern; else the test case's. One of them must name it."),
            "archetype": _optional(_ID, 'The archetype; else, and where it is "Unknown", the test case\'s.'),
            "metric_id": _optional(_ID, "Whose overrides apply; else the test case's, else the concern."),
            "run_id": _optional(_ID, "Which run of a prompt over the batch the output comes from."),
            "generated_at": _optional(
                moment,
                "When it was generated, with a zone: the latest output of a test case counts. Else the record's.",
            ),
            "output": {
                "type": ["object", "null"],
                "description": "What the model wrote; null is an empty output.",
                "properties": output,
            },
        },
        "required": ["test_id", "batch_id", "output"],
    }


# --- dead letters -----------------------------------------------------------------------------------------------------

_DECIMAL: Final = {"type": "string", "pattern": "^-?[0-9]+$"}
_TEXT: Final = {"type": "string"}


def _dead_letter() -> _Schema:
    headers: dict[str, _Schema] = {
        "reason": {
            "type": "string",
            "enum": list(REASONS),
            "description": "Why it can never be scored; a closed list.",
        },
        "stage": {"type": "string", "enum": ["scorer", "aggregator"], "description": "Which stage refused it."},
        "detail": _TEXT | {"maxLength": 512, "description": "The reason in words, which never repeat the input."},
        "topic": _TEXT | {"description": "The topic that it was read from."},
        "partition": _DECIMAL | {"description": "Its partition there."},
        "offset": _DECIMAL | {"description": "Its offset there."},
        "timestamp": _DECIMAL | {"description": "Its timestamp there, in ms since 1970; -1 where it had none."},
        "group": _TEXT | {"description": "The group id of the SAFE that refused it."},
        "version": _TEXT | {"description": "The version of that SAFE."},
        "failed_at": {"type": "string", **_MOMENT, "description": "When it was refused."},
    }
    omitted: dict[str, _Schema] = {
        "value_omitted": {"type": "string", "const": "true", "description": "The value was too large even here."},
        "value_bytes": _DECIMAL | {"description": "How many bytes the value had."},
        "value_sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "The value's SHA-256."},
    }
    return {
        "$schema": DRAFT,
        "title": "headers of a dead letter",
        "type": "object",
        "description": "What SAFE adds to the headers of an input, which are kept. UTF-8 text, numbers in decimal.",
        "properties": {f"safe.dlq.{name}": schema for name, schema in (headers | omitted).items()},
        "required": [f"safe.dlq.{name}" for name in headers],
    }


_MAKERS: Final[Mapping[str, Callable[[], _Schema]]] = {
    "input": _input,
    "result": lambda: _event(RESULT_TYPE, SummarisedResult),
    "report": lambda: _event(REPORT_TYPE, ReportEvent),
    "dead-letter": _dead_letter,
}

EVENTS: Final = tuple(_MAKERS)
"""The names of the schemas: those of their files under config/schemas/, without the suffix."""


def event_schema(name: str) -> dict[str, Any]:
    """Make one of the schemas, with an example; the one of a dead letter is that of its headers."""
    return _MAKERS[name]() | {"examples": [EVENT_EXAMPLES[name]]}
