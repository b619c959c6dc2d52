"""What the results of `make certify` say is as important as how they are found."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.certify.results import Results, bound, breaches, code_of, table
from tests.certify.run import Order
from tests.certify.scenarios import SCENARIOS
from tests.support.kafka_cluster import java_hash

ORDER = Order(SCENARIOS[0], "exactly_once", number=2, rounds=5, seed=7, checkout=Path())
CLEAN: dict[str, Any] = {
    "scenario": SCENARIOS[0].name,
    "delivery": "exactly_once",
    "run": 2,
    "asked": 5,
    "seed": 7,
    "code": "c0de",
    "rounds": 5,
    "inputs": 1000,
    "results": 990,
    "problems": [],
    "problem_counts": {},
    "deaths": [],
    "workers": {"kill": 3, "freeze": 1},
}
DEATH = {"worker": "worker-1", "exit_code": 3, "last_words": "safe: error: …"}


def test_a_run_is_done_only_for_the_same_code_seed_and_rounds(tmp_path: Path) -> None:
    results = Results(tmp_path / "kept" / "results.jsonl")
    assert not results.has(ORDER, "c0de")

    results.add(CLEAN)

    assert results.has(ORDER, "c0de")
    assert not results.has(ORDER, "other")
    assert not results.has(replace(ORDER, seed=8), "c0de")
    assert not results.has(replace(ORDER, rounds=1), "c0de")
    assert not results.has(replace(ORDER, number=3), "c0de")
    assert not results.has(replace(ORDER, delivery="at_least_once"), "c0de")


def test_the_code_is_known_by_what_its_files_hold(tmp_path: Path) -> None:
    file = tmp_path / "consumer" / "stage.py"
    file.parent.mkdir()
    file.write_text("a guard", encoding="utf-8")
    before = code_of(tmp_path)
    (tmp_path / "README.md").write_text("no code", encoding="utf-8")
    assert code_of(tmp_path) == before

    file.write_text("no guard", encoding="utf-8")

    assert code_of(tmp_path) != before


# What makes a run a broken one, and how often it counts.
BROKEN: dict[str, tuple[dict[str, Any], int]] = {
    "nothing": ({}, 0),
    "problems of which only the first are kept": (
        {"problems": ["coverage: …"], "problem_counts": {"coverage": 600}},
        600,
    ),
    "a run that could not be finished": ({"problems": ["run: AssertionError"], "problem_counts": {}}, 1),
    "a worker that ended by itself": ({"deaths": [DEATH, DEATH]}, 2),
}


@pytest.mark.parametrize("what", BROKEN)
def test_every_problem_and_every_death_is_a_breach(what: str) -> None:
    changes, expected = BROKEN[what]

    assert breaches(CLEAN | changes) == expected


def test_the_table_adds_up_the_runs_and_bounds_only_what_never_failed() -> None:
    rows = list(table([CLEAN, CLEAN | {"run": 3}]))

    assert len(rows) == 1 + 2 * len(SCENARIOS)
    assert rows[1].split() == [
        *(
            "coordinator_killed",
            "exactly_once",
            "10",
            "60",
            "2,000",
            "1,980",
            "8",
            "0",
            "0",
            "below",
            "30.0%",
            "(95",
            "%)",
        )
    ]
    assert "below" not in next(row for row in table([CLEAN | {"deaths": [DEATH]}]) if "killed" in row)
    assert (bound(60, 0), bound(60, 1), bound(1, 0), bound(0, 0)) == ("below 5.0% (95 %)", "–", "nothing", "–")


def test_a_group_finds_its_partition_as_in_java() -> None:
    # The absolute values of Java's hashCode(); the last one has none as an int, and Kafka takes 0 for it.
    known = {"hello": 99162322, "g610fe2f2b0.aggregator": 1868803976, "polygenelubricants": 0}
    assert {text: java_hash(text) for text in known} == known
