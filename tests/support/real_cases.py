"""The real cases of factory-cli's users, where they are at hand.

They carry no licence to redistribute and stand beside the repository, where they are at hand at all.
"""

import json
from pathlib import Path
from typing import Any

import pytest

REAL = Path(__file__).parents[2].parent / "shared" / "real"

real_cases_only = [
    pytest.mark.real_cases,
    pytest.mark.skipif(not REAL.is_dir(), reason=f"NOT CHECKED: the real cases are not there ({REAL})"),
]
"""The marks of a module whose tests need them."""


def load(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def expected_scores() -> list[Any]:
    """What factory-cli's own scorer gives, row by row."""
    rows: list[Any] = load(REAL / "expected_scores.json")
    return rows
