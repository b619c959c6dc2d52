"""What the signals do, without a worker."""

import asyncio
import logging
import threading
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from consumer.telemetry import logs
from consumer.worker.inspection import Inspection

PLANTED = "planted-4711"


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """Take back what configure() changes for the process."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:], root.level = handlers, level


async def test_each_thread_and_task_is_named_with_where_it_stands_and_no_value() -> None:
    async def waits_for_ever(_secret: str) -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(waits_for_ever(PLANTED), name="a patient one")
    await asyncio.sleep(0)
    with capture_logs() as said:
        thread = threading.Thread(target=Inspection(asyncio.get_running_loop(), "info", "json").log_stacks)
        thread.start()
        await asyncio.to_thread(thread.join)
    task.cancel()
    [line] = said
    assert any(frame.endswith("in BaseEventLoop.run_forever") for frame in line["threads"]["MainThread"])
    [patient] = [each for each in line["tasks"] if each.startswith("a patient one: ")]
    assert patient.endswith("waits_for_ever")
    assert PLANTED not in str(line)


@pytest.mark.usefixtures("logging_as_before")
async def test_debug_lines_are_switched_on_and_off() -> None:
    logs.configure("warning", "json")
    inspection = Inspection(asyncio.get_running_loop(), "warning", "json")
    levels = []
    for _ in range(3):
        inspection.switch_debug()
        levels.append(logging.getLogger().level)
    assert levels == [logging.DEBUG, logging.WARNING, logging.DEBUG]
