"""JSON Schemas of the records that others write and read (contract.md, "Events"): the files in schemas/.

They are written by hand. Tests hold them together with what SAFE writes, field by field, and with what it takes.
"""

import json
from importlib.resources import files
from typing import Any


def event_schema(name: str) -> dict[str, Any]:
    """The schema of an event's data, with an example; the one of a dead letter is that of its headers."""
    path = files("consumer.wire") / "schemas" / f"{name}.schema.json"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema
