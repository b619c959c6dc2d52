"""Golden files: whole outputs kept beside the tests, so that a reviewer sees what a change does to them."""

import os
import re
from pathlib import Path

import pytest

UPDATE = "SAFE_TEST_UPDATE_GOLDEN"
_FOLDER = Path(__file__).parents[1] / "golden"
_OF_TEMPLATES = re.compile(r"<(style|script)>.*?</\1>", re.DOTALL)
"""What pages take from templates as it is: a change to it is seen there."""


def matches_golden(name: str, text: str, *, folder: str = "offline") -> None:
    """Fail unless the golden file of that name holds exactly this text, of a page without its styles and scripts.

    With SAFE_TEST_UPDATE_GOLDEN=1 the file is written instead, and the test fails all the same: nothing passes by it.
    """
    path = _FOLDER / folder / name
    if name.endswith(".html"):
        text = _OF_TEMPLATES.sub(r"<\1>…</\1>", text)
    if os.environ.get(UPDATE) == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        pytest.fail(f"{name} was rewritten: read what `git diff tests/golden` shows, then run without {UPDATE}")
    # Bytes, since reading as text would take one kind of line end for another.
    kept = path.read_bytes().decode() if path.exists() else None
    if kept != text:
        how = "is not there" if kept is None else "differs from what is made now"
        pytest.fail(f"tests/golden/{folder}/{name} {how}; to see how, run with {UPDATE}=1 and `git diff tests/golden`")
