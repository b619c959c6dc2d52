"""docs/reference/log-events.md names every event that a worker logs, at its level and with its fields, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "log-events.md").read_text(encoding="utf-8")
LEVELS = {"debug", "info", "warning", "error"}


class Event(NamedTuple):
    """An event as a call names it, its level, and the fields that stand there by name."""

    text: str
    level: str
    fields: frozenset[str]


def told() -> set[Event]:
    rows = re.findall(r"^\| `([^`]+)` \| (\w+) \|([^|]*)\|", PAGE, re.MULTILINE)
    return {Event(text, level, frozenset(re.findall(r"\w+", fields))) for text, level, fields in rows}


def logged() -> Iterator[Event]:
    for path in (ROOT / "consumer").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield from _event(node)


def _event(call: ast.Call) -> Iterator[Event]:
    name = ast.unparse(call.func)
    level, arguments = name.rpartition(".")[2], call.args
    fields = frozenset(each.arg for each in call.keywords if each.arg is not None)
    if name == "RateLimitedWarning":
        yield Event(_text(arguments[0]), "warning", fields | {"counts"})
    elif name == "_log.log":  # at a level that depends
        yield Event(_text(arguments[1]), "info", fields)
    elif level in LEVELS and (name.startswith("_log.") or "get_logger" in name) and _text(arguments[0]):
        yield Event(_text(arguments[0]), level, fields)


def _text(argument: ast.expr) -> str:
    """What is always said; empty for what is put together elsewhere."""
    if isinstance(argument, ast.JoinedStr):
        return "".join(_text(part) for part in argument.values)
    if isinstance(argument, ast.FormattedValue):
        return "…"
    return str(argument.value) if isinstance(argument, ast.Constant) else ""


def test_each_event_is_told_and_no_other() -> None:
    assert {(event.text, event.level) for event in logged()} == {(event.text, event.level) for event in told()}


def test_no_field_is_left_out() -> None:
    fields = {event.text: event.fields for event in told()}
    assert [(event, left) for event in logged() if (left := event.fields - fields[event.text])] == []
