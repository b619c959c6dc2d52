"""The list of guards that `make mutants` takes away: each is found where it says, so that the list cannot go stale."""

from pathlib import Path

import pytest

from tests.certify.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_each_guard_is_there_once(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
    assert mutant.test is None or (ROOT / "tests" / "consumer" / f"{mutant.test}.py").is_file()


def test_no_two_have_the_same_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
