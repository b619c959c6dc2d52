"""The tables of the diagnosis as people read them: diagnosis.md has each row, contract.md each verdict."""

import os
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from safe_core.diagnosis.diagnosis_types import NARRATIVE_SAYS, OUTPUT_SAYS
from safe_core.diagnosis.tables import verdict_row
from tests.support.diagnosis_page import diagnosis_page
from tests.support.golden import UPDATE

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "explanation" / "diagnosis.md"
CONTRACT = DOCS / "contract.md"


def test_the_tables_of_the_page_are_what_would_be_generated_now() -> None:
    committed = PAGE.read_text(encoding="utf-8")
    made = diagnosis_page(committed)
    if os.environ.get(UPDATE) == "1":
        PAGE.write_text(made, encoding="utf-8")
        pytest.fail(f"{PAGE.name} was rewritten: read what `git diff docs` shows, then run without {UPDATE}")
    assert committed == made, f"the tables of the code have changed: run this test with {UPDATE}=1"


def stated_verdicts() -> dict[tuple[Any, Any], list[tuple[str, str]]]:
    """What the contract's table has for each pair of answers: verdict and remedy, once or by `narrative_has_it_too`."""
    section = CONTRACT.read_text(encoding="utf-8").partition("\n### Verdicts\n")[2]
    table = section[section.index("\n|") :].lstrip().partition("\n\n")[0]
    head, _, *lines = (line.strip("|").split("|") for line in table.splitlines())
    return {
        (output, narrative): re.findall(r"`(\w+)`: `(\w+)`", cell)
        for first, *cells in lines
        for output in re.findall(r"`(\w+)`", first)
        for names, cell in zip(head[1:], cells, strict=True)
        for narrative in re.findall(r"`(\w+)`", names)
    }


def test_the_contract_states_the_verdict_of_every_pair_of_answers() -> None:
    stated = stated_verdicts()
    assert stated.keys() == set(product(OUTPUT_SAYS, NARRATIVE_SAYS))
    for (output, narrative), verdicts in stated.items():
        rows = [verdict_row(output, narrative, has_it_too=has_it_too) for has_it_too in (False, True)]
        decided = list(dict.fromkeys((row.verdict, row.remedy) for row in rows))
        assert decided == verdicts, f"{output}, {narrative}: the cell of {CONTRACT.name} (Verdicts) says otherwise"
