"""Long work in the event loop lets others run: heartbeats above all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from consumer import loop_budget
from consumer.case_sources.folder import FolderSource
from consumer.case_sources.source import ExpectationsKey
from consumer.loop_budget import LoopBudget
from tests.consumer import test_aggregator, test_scorer
from tests.support.case_files import a_case, write_batch

RECORDS = 30


@pytest.fixture(autouse=True)
def short_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each record took longer than may be."""
    monkeypatch.setattr(loop_budget, "_SECONDS", -1.0)


class Other:
    """A task that runs whenever it may, and how often it has."""

    def __init__(self) -> None:
        self.ran = 0

    async def run(self) -> None:
        while True:
            self.ran += 1
            await asyncio.sleep(0)


@asynccontextmanager
async def beside() -> AsyncIterator[Other]:
    other = Other()
    task = asyncio.create_task(other.run())
    try:
        yield other
    finally:
        task.cancel()
        await asyncio.wait({task})


def test_a_budget_is_spent_after_its_time_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LoopBudget().is_spent
    monkeypatch.setattr(loop_budget, "_SECONDS", 3_600.0)
    assert not LoopBudget().is_spent


async def test_others_run_while_a_slice_is_decoded_and_scored() -> None:
    records = [test_scorer.event(offset) for offset in range(RECORDS)]
    async with beside() as other:
        assert await test_scorer.Site().logic.process(records, test_scorer.Kept()) == RECORDS
        assert other.ran >= 2 * RECORDS


async def test_others_run_while_a_slice_is_folded() -> None:
    site = test_aggregator.Site(test_aggregator.Clock())
    records = [test_aggregator.scored(f"T{offset}", offset=offset) for offset in range(RECORDS)]
    async with beside() as other:
        assert await site.logic.process(records, test_aggregator.Kept()) == RECORDS
        assert other.ran >= RECORDS


async def test_others_run_while_test_cases_are_prepared(tmp_path: Path) -> None:
    write_batch(tmp_path, "b", *(a_case(f"A-{number}") for number in range(RECORDS)))
    source = FolderSource(tmp_path)
    await source.start()
    try:
        async with beside() as other:
            await source.find([ExpectationsKey("b", f"A-{number}") for number in range(RECORDS)])
            assert other.ran >= RECORDS
    finally:
        await source.stop()
