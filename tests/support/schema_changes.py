"""What a later JSON Schema breaks for those who rely on an earlier one: readers of outputs, writers of inputs.

It knows the keywords that SAFE's schemas use, and refuses to judge any other.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

_SILENT = {"$schema", "$id", "$defs", "title", "description", "default", "examples"}
_STRUCTURE = {"type", "enum", "properties", "required", "items", "additionalProperties"}
_BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems"), operator.ge),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems"), operator.le),
}
# Two of these that differ are taken to exclude each other.
_FORMS = ("pattern", "format", "const", "not", "propertyNames", "uniqueItems")
_KNOWN = _SILENT | _STRUCTURE | {*_BOUNDS, *_FORMS}
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})


def output_breaks(old: Schema, new: Schema) -> list[str]:
    """Say what of a new output a reader of the old one cannot take, or misses.

    A field may be added where the old schema left room; it is optional, since records without it stay in the topics.
    """
    old, new = resolved(old), resolved(new)
    return [*_refusals(new, old, "$"), *_losses(old, new, "$")]


def input_breaks(old: Schema, new: Schema) -> list[str]:
    """Say what an old writer may send that the new schema refuses."""
    return list(_refusals(resolved(old), resolved(new), "$"))


def resolved(schema: Schema) -> dict[str, Any]:
    """Write out every local reference where it stands."""
    definitions = schema.get("$defs", {})

    def opened(node: Any) -> Any:
        if isinstance(node, dict) and "$ref" in node:
            return opened(definitions[node["$ref"].removeprefix("#/$defs/")])
        if isinstance(node, dict):
            return {key: opened(inner) for key, inner in node.items() if key != "$defs"}
        return [opened(inner) for inner in node] if isinstance(node, list) else node

    found: dict[str, Any] = opened(schema)
    return found


# --- what fits one schema and not the other ---------------------------------------------------------------------------


def _refusals(given: Schema, rules: Schema, path: str) -> Iterator[str]:
    """What fits the schema `given` and is refused by `rules`."""
    for schema in (given, rules):
        unknown = set(schema) - _KNOWN
        assert not unknown, f"{path}: the comparison does not know {unknown}"
    yield from _of_types(given, rules, path)
    yield from _of_forms(given, rules, path)
    yield from _of_members(given, rules, path)
    if "items" in rules and "array" in _types(given):
        yield from _refusals(given.get("items", {}), rules["items"], f"{path}[]")


def _types(schema: Schema) -> frozenset[str]:
    named = schema.get("type", _TYPES)
    types = frozenset([named]) if isinstance(named, str) else frozenset(named)
    return types | {"integer"} if "number" in types else types


def _of_types(given: Schema, rules: Schema, path: str) -> Iterator[str]:
    if refused := _types(given) - _types(rules):
        yield f"{path} may be of type {', '.join(sorted(refused))}"
    if "enum" in rules and (others := {*given.get("enum", ["anything"])} - {*rules["enum"]}):
        yield f"{path} may be {', '.join(sorted(map(str, others)))}"


def _of_forms(given: Schema, rules: Schema, path: str) -> Iterator[str]:
    for keyword, fits in _BOUNDS.items():
        # What stays below a bound does not pass it.
        strict = given.get("exclusive" + keyword[0].upper() + keyword[1:])
        bound = given.get(keyword, strict)
        if keyword in rules and not (bound is not None and fits(bound, rules[keyword])):
            yield f"{path} may pass the {keyword} {rules[keyword]}"
    for keyword in _FORMS:
        if keyword in rules and given.get(keyword) != rules[keyword]:
            yield f"{path} may have another {keyword}"


def _of_members(given: Schema, rules: Schema, path: str) -> Iterator[str]:
    if missing := {*rules.get("required", ())} - {*given.get("required", ())}:
        yield f"{path} may lack {', '.join(sorted(missing))}"
    known, others = rules.get("properties", {}), rules.get("additionalProperties", True)
    for name, schema in given.get("properties", {}).items():
        if name in known:
            yield from _refusals(schema, known[name], f"{path}.{name}")
        elif others is False:
            yield f"{path} may have {name}"
    yield from _of_others(given.get("additionalProperties", True), others, path)


def _of_others(given: Any, rules: Any, path: str) -> Iterator[str]:
    """Members that neither schema lists."""
    if rules is False and given is not False:
        yield f"{path} may have members that are not listed"
    elif isinstance(rules, Mapping) and given is not False:
        yield from _refusals({} if given is True else given, rules, f"{path}.*")


# --- what a reader misses ---------------------------------------------------------------------------------------------


def _losses(old: Schema, new: Schema, path: str) -> Iterator[str]:
    """Fields that are gone, and new ones that older records do not have."""
    before, after = old.get("properties", {}), new.get("properties", {})
    yield from (f"{path}.{name} is gone" for name in before if name not in after)
    required = new.get("required", ())
    yield from (f"{path}.{name} is required, but older records lack it" for name in required if name not in before)
    for name in before.keys() & after.keys():
        yield from _losses(before[name], after[name], f"{path}.{name}")
    for keyword, place in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(old.get(keyword), Mapping) and isinstance(new.get(keyword), Mapping):
            yield from _losses(old[keyword], new[keyword], path + place)
