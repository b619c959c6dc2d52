"""The judges of JSON schemas, imported when one is first asked.

Their library compiles forty grammars as it is imported: seconds, which else each process that collects the tests takes.
"""

from functools import cache
from typing import Any


@cache
def draft_2020_12() -> Any:
    """Return the class of validators of JSON Schema 2020-12."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    return Draft202012Validator


@cache
def draft_7() -> Any:
    """Return the class of validators of JSON Schema draft 7."""
    from jsonschema import Draft7Validator  # noqa: PLC0415

    return Draft7Validator
