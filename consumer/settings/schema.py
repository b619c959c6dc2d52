"""The JSON Schema of the configuration file, by which editors complete and check it.

It is committed as config/safe.config.schema.json. Rules that a schema cannot express are in its descriptions.
"""

from collections.abc import Mapping
from typing import Any, Final

from consumer.settings.fields import FILE_KEYS, Settings
from consumer.settings.file import FILE_NAME, SCHEMA_KEY
from safe_core import CRITERIA, DEFAULT_POLICY, MAX_ID_LENGTH

_Schema = dict[str, Any]

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

_SECTIONS: Final[Mapping[str, str]] = {
    "": "The configuration of SAFE; // comments are allowed. Every key may be left out.",
    "thresholds": "A score of at least pass passes; one of at least review needs review; a lower one fails.",
    **{f"thresholds.{criterion}": "0 <= review <= pass <= 1." for criterion in CRITERIA},
    "weights": "The weights of CR, AH and AC in the composite; at least one is above 0.",
    "overrides": "Rules for some cases; archetype beats metric_id, and both beat the general settings.",
    "overrides.metric_id": "By metric_id or, for a case without one, by its concern.",
    "overrides.archetype": 'By archetype; "Unknown" is for cases without one.',
}
"""The description of each object by its dotted key; a value's own is with the setting."""


def configuration_schema() -> dict[str, Any]:
    """Make the schema from the settings and the default policy; it is nested as the file is."""
    properties = Settings.model_json_schema()["properties"]
    settings = {key: _plain(properties[name]) for name, key in FILE_KEYS.items()}
    rules = DEFAULT_POLICY.default.settings()
    layer = {key: settings.pop(key) if key in settings else _weight(key, rules[key]) for key in rules}
    by_name = {f"overrides.{kind}": _overrides(f"overrides.{kind}") for kind in ("metric_id", "archetype")}
    editor = {"type": "string", "description": "The path or the address of this schema, for editors; SAFE ignores it."}
    return {
        "$schema": DRAFT,
        "title": FILE_NAME,
        **_nested({SCHEMA_KEY: editor, **layer, **by_name, **settings}),
        "$defs": {
            "override": {
                **_nested({key: _without({"default"}, schema) for key, schema in layer.items()}),
                "description": "Each setting given here replaces the general one.",
            }
        },
    }


def _plain(schema: _Schema) -> _Schema:
    """Leave out what says nothing to editors; null is one more type, since they explain anyOf badly."""
    value, *null = schema.get("anyOf", [{}])
    assert null in ([], [{"type": "null"}]), "an optional setting is of one type or null"
    plain = _without({"title", "anyOf", "format", "writeOnly"}, schema | value)
    if null:
        plain["type"] = [plain["type"], "null"]
    if null and "enum" in plain:
        plain["enum"] = [*plain["enum"], None]
    return dict(sorted(plain.items()))


def _weight(key: str, default: object) -> _Schema:
    criterion = key.rpartition(".")[2]
    return {"default": default, "description": f"The weight of {criterion}, 0 or more.", "minimum": 0, "type": "number"}


def _overrides(key: str) -> _Schema:
    # An id (contract.md, "Input"): some character that is not blank, and no control character.
    control = {"pattern": r"[\u0000-\u001f\u007f-\u009f]"}
    return {
        "type": "object",
        "description": _SECTIONS[key],
        "propertyNames": {"maxLength": MAX_ID_LENGTH, "pattern": r"\S", "not": control},
        "additionalProperties": {"$ref": "#/$defs/override"},
    }


def _nested(leaves: Mapping[str, _Schema]) -> _Schema:
    """Build the object whose properties, at any depth, have these dotted keys; it takes no other ones."""
    root = _section([])
    for key, schema in leaves.items():
        *parents, last = key.split(".")
        within = root
        for depth, parent in enumerate(parents, start=1):
            within = within["properties"].setdefault(parent, _section(parents[:depth]))
        within["properties"][last] = schema
    return root


def _section(path: list[str]) -> _Schema:
    description = _SECTIONS[".".join(path)]
    return {"type": "object", "description": description, "properties": {}, "additionalProperties": False}


def _without(keywords: set[str], schema: _Schema) -> _Schema:
    return {keyword: value for keyword, value in schema.items() if keyword not in keywords}
