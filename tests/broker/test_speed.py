"""A fall of the speed by half turns red: SAFE beside a bare copy of the same bytes, by turns on one broker."""

import statistics
from pathlib import Path

import pytest

from bench.against_peers import BASE, cpu_ratios, in_turns, variants
from tests.support.outside import Outside

pytestmark = pytest.mark.broker

EVENTS = 20_000
ROUNDS = 3
USUAL = 4.3
"""The processor time of SAFE, its start included, as a multiple of the copy's; 4.2 to 4.3 in six rounds."""


def test_an_event_costs_less_than_twice_what_it_usually_does(outside: Outside, tmp_path: Path) -> None:
    known = variants()
    chosen = {name: known[name] for name in (BASE, "SAFE")}
    measured = [run for _, run in in_turns(outside, tmp_path, chosen, events=EVENTS, rounds=ROUNDS)]
    assert statistics.median(cpu_ratios("SAFE", measured)) < 2 * USUAL
