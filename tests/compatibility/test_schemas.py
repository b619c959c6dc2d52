"""Every schema against its copy of the last release: what others rely on stays."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.schema_changes import input_breaks, output_breaks

PROJECT = Path(__file__).parents[2]
LAST_RELEASE = Path(__file__).parent / "0.1.0"

Schema = dict[str, Any]
Breaks = Callable[[Schema, Schema], list[str]]

# What stands where it is now, and who relies on it: whoever reads it, or whoever writes it.
COMPARED: dict[str, Breaks] = {
    "config/schemas/input.schema.json": input_breaks,
    "config/schemas/result.schema.json": output_breaks,
    "config/schemas/report.schema.json": output_breaks,
    "config/schemas/dead-letter.schema.json": output_breaks,
    "config/safe.config.schema.json": input_breaks,
}


def read(path: Path) -> Schema:
    schema: Schema = json.loads(path.read_text(encoding="utf-8"))
    return schema


@pytest.mark.parametrize("path", COMPARED)
def test_nothing_is_broken_for_those_who_rely_on_the_last_release(path: str) -> None:
    now = PROJECT / path
    assert not COMPARED[path](read(LAST_RELEASE / now.name), read(now))


def test_every_schema_is_compared() -> None:
    schemas = {path.relative_to(PROJECT).as_posix() for path in (PROJECT / "config").rglob("*.schema.json")}
    # The chart's values belong to whoever installs it: no event and no setting of the worker.
    assert schemas == set(COMPARED)
    assert {path.name for path in LAST_RELEASE.glob("*.schema.json")} == {Path(path).name for path in COMPARED}


# --- the comparison can fail ------------------------------------------------------------------------------------------

Change = Callable[[Schema], object]

BASE: Schema = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a", "description": "Words."},
        "count": {"type": "integer", "minimum": 0},
        "score": {"type": "number", "maximum": 1},
        "label": {"type": "string", "enum": ["Pass", "Fail"]},
        "note": {"type": ["string", "null"]},
        "list": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
        "by_name": {"type": "object", "additionalProperties": {"$ref": "#/$defs/group"}},
        "exact": {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": False},
    },
    "required": ["id", "count", "exact"],
    "$defs": {"group": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
}


def field(name: str, **keywords: Any) -> Change:
    """Change the keywords of a field; None takes one away."""

    def change(schema: Schema) -> None:
        target = schema["properties"].setdefault(name, {})
        target.update(keywords)
        for keyword in [each for each, content in target.items() if content is None]:
            del target[keyword]

    return change


def everywhere(*changes: Change) -> Change:
    def change(schema: Schema) -> None:
        for each in changes:
            each(schema)

    return change


def required(*names: str) -> Change:
    return lambda schema: schema.update(required=list(names))


def within(name: str, change: Change) -> Change:
    return lambda schema: change(schema["properties"][name])


def in_group(change: Change) -> Change:
    return lambda schema: change(schema["$defs"]["group"])


def without(name: str) -> Change:
    return lambda schema: schema["properties"].pop(name)


# (change, breaks readers of an output, breaks writers of an input)
CHANGES: dict[str, tuple[Change, bool, bool]] = {
    "nothing": (lambda _schema: None, False, False),
    "other words": (field("id", description="Others.", title="Id", examples=["a"]), False, False),
    "an optional field more": (field("more", type="string"), False, False),
    "a required field more": (everywhere(field("more", type="string"), required("id", "count", "exact", "more")),
                              True, True),
    "a field less": (without("note"), True, False),
    "a required field less": (everywhere(without("count"), required("id", "exact")), True, False),
    "a field that became optional": (required("id", "exact"), True, False),
    "a field that became required": (required("id", "count", "exact", "note"), False, True),
    "another type": (field("count", type="string", minimum=None), True, True),
    "an integer that became a number": (field("count", type="number"), True, False),
    "a number that became an integer": (field("score", type="integer"), False, True),
    "null as well": (field("count", type=["integer", "null"]), True, False),
    "null no more": (field("note", type="string"), False, True),
    "any type": (field("note", type=None), True, False),
    "a choice more": (field("label", enum=["Pass", "Fail", "Void"]), True, False),
    "a choice less": (field("label", enum=["Pass"]), False, True),
    "no choices any more": (field("label", enum=None), True, False),
    "choices for what had none": (field("note", enum=["a", None]), False, True),
    "a lower minimum": (field("count", minimum=-1), True, False),
    "a higher minimum": (field("count", minimum=1), False, True),
    "no minimum any more": (field("count", minimum=None), True, False),
    "a lower maximum": (field("score", maximum=0.5), False, True),
    "a higher maximum": (field("score", maximum=2), True, False),
    "longer texts": (field("id", maxLength=10), True, False),
    "shorter texts": (field("id", maxLength=8), False, True),
    "empty texts": (field("id", minLength=0), True, False),
    "more elements": (field("list", maxItems=6), True, False),
    "another pattern": (field("id", pattern="^b"), True, True),
    "no pattern any more": (field("id", pattern=None), True, False),
    "a format": (field("note", format="date-time"), False, True),
    "other elements": (field("list", items={"type": "integer"}), True, True),
    "elements of any type": (field("list", items=None), True, False),
    "a field more in exact fields": (within("exact", field("y", type="string")), True, False),
    "a field less in exact fields": (within("exact", without("x")), True, True),
    "exact fields no more": (field("exact", additionalProperties=None), True, False),
    "exact fields where there was room": (lambda schema: schema.update(additionalProperties=False), False, True),
    "another type, deep inside": (in_group(field("n", type="string")), True, True),
    "a field less, deep inside": (in_group(everywhere(without("n"), required())), True, False),
    "a field more, deep inside": (in_group(field("m", type="string")), False, False),
    "groups of any kind": (field("by_name", additionalProperties=None), True, False),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_breaks_readers_or_writers_or_neither(change: str) -> None:
    edit, breaks_readers, breaks_writers = CHANGES[change]
    changed = copy.deepcopy(BASE)
    edit(changed)
    assert bool(output_breaks(BASE, changed)) is breaks_readers, output_breaks(BASE, changed)
    assert bool(input_breaks(BASE, changed)) is breaks_writers, input_breaks(BASE, changed)


def test_a_break_is_named_by_its_place() -> None:
    changed = copy.deepcopy(BASE)
    in_group(field("n", type="string"))(changed)
    assert output_breaks(BASE, changed) == ["$.by_name.*.n may be of type string"]


def test_an_unknown_keyword_is_not_judged() -> None:
    changed = copy.deepcopy(BASE)
    field("id", contentEncoding="base64")(changed)
    with pytest.raises(AssertionError, match="does not know"):
        output_breaks(BASE, changed)
