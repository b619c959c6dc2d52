"""The worst stall of the event loop while 50 MB of expectations are loaded, and while some of them are replaced.

    python -m bench.loading [--megabytes 50] [--only LAYOUT …]

A task sleeps 5 ms at a time and measures how much too late it wakes. The table shows how long this process was busy
during that delay and, in brackets, the whole delay, which includes other work of the machine. With `--collect`,
Python's automatic garbage collection stays on. The topic layout needs the tests' broker, as bench.throughput does.
"""

import argparse
import asyncio
import gc
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.throughput import bootstrap_servers
from consumer.case_sources.folder import FolderSource, list_folder
from consumer.case_sources.source import ExpectationsKey, ExpectationsSource
from consumer.case_sources.topic import TopicSource
from consumer.errors import Transient
from consumer.kafka.connection import Connection
from consumer.kafka.patches import install_patches
from consumer.kafka.table_reader import TableReader
from consumer.settings import load
from tests.support.cases import WrittenCase, make_batches
from tests.support.outside import Outside

SEED = 20260302
NAP_SECONDS = 0.005
STEADY_SECONDS = 10.0
MB = 1_000_000


@dataclass(slots=True)
class Lateness:
    """How late the naps of a period ended; `own` is the time that this process itself was busy."""

    worst_seconds: float = 0.0
    own_seconds: float = 0.0
    naps: int = 0
    begun: float = 0.0
    ended: float = 0.0

    def line(self, what: str) -> str:
        """Write it on one line."""
        return (
            f"{what:>44}: worst stall {self.own_seconds * 1000:6.1f} ms (with others {self.worst_seconds * 1000:6.1f}) "
            f"in {self.ended - self.begun:6.2f} s, {self.naps:,} naps"
        )


@asynccontextmanager
async def watched(what: str) -> AsyncIterator[Lateness]:
    """Nap while the block runs, and print how late the naps ended."""
    lateness = Lateness(begun=time.monotonic())
    napping = asyncio.create_task(_nap(lateness))
    await asyncio.sleep(0)
    try:
        yield lateness
    finally:
        await asyncio.sleep(2 * NAP_SECONDS)
        napping.cancel()
        lateness.ended = time.monotonic()
        print(lateness.line(what), flush=True)


async def _nap(lateness: Lateness) -> None:
    while True:
        before, used = time.monotonic(), time.process_time()
        await asyncio.sleep(NAP_SECONDS)
        late = time.monotonic() - before - NAP_SECONDS
        lateness.worst_seconds = max(lateness.worst_seconds, late)
        lateness.own_seconds = max(lateness.own_seconds, min(late, time.process_time() - used))
        lateness.naps += 1


# --- folders ----------------------------------------------------------------------------------------------------------


def _entries() -> Iterator[str]:
    """An endless series of test cases, about 1.1 KB each, all different."""
    rng = random.Random(SEED)
    number = 0
    while True:
        for batch in make_batches(rng.random().__hash__(), batches=4, cases_a_batch=100):
            for case in batch.cases:
                number += 1
                yield json.dumps(_numbered(case, number), indent=1, ensure_ascii=False)


def _numbered(case: WrittenCase, number: int) -> dict[str, Any]:
    return {**case.entry, "test_id": f"{case.test_id}-{number}"}


def write_folder(folder: Path, files: int, megabytes: float) -> None:
    """Write batch files of equal size that together have this many megabytes."""
    folder.mkdir()
    entries, size = _entries(), int(megabytes * MB / files)
    for at in range(files):
        (folder / f"batch_{at}.json").write_text(_document(entries, size), encoding="utf-8")


def _document(entries: Iterator[str], size: int) -> str:
    chosen: list[str] = []
    written = 40
    while written < size or not chosen:
        chosen.append(next(entries))
        written += len(chosen[-1].encode()) + 2
    return '{"test_cases": [\n' + ",\n".join(chosen) + "\n]}\n"


def write_small_files(folder: Path, files: int, _megabytes: float) -> None:
    """Write files with one small case each, about 500 bytes."""
    folder.mkdir()
    for at in range(files):
        wanted = {
            "signal_generation": {"must_find_signals": [f"lactate {at} mmol/L", "a cold periphery"]},
            "event_summary": {"must_contain_phrases": [f"{at} minutes"]},
            "followup_questions": {"forbidden_terms": ["blame"]},
        }
        case = {"test_id": f"S-{at}", "concern_id": "S", "patient_payload": "x" * 200, "expectations": wanted}
        (folder / f"batch_{at}.json").write_text(json.dumps({"test_cases": [case]}), encoding="utf-8")


TOPIC = "topic"

LAYOUTS: dict[str, tuple[Callable[[Path, int, float], None], int]] = {
    "one file": (write_folder, 1),
    "500 files": (write_folder, 500),
    "100000 files": (write_small_files, 100_000),
    TOPIC: (write_folder, 500),
}


# --- measuring --------------------------------------------------------------------------------------------------------


async def measure(layout: str, folder: Path, megabytes: float) -> None:
    """Load a folder, scan it again, replace one of its files, and query it for a while."""
    write, files = LAYOUTS[layout]
    write(folder, files, megabytes)
    if layout == TOPIC:
        await _measure_topic(folder)
        return
    source = FolderSource(folder)
    async with watched(f"{layout}: first load"):
        await source.start()
    try:
        async with watched(f"{layout}: nothing has changed"):
            await _find_nothing(source)
        _swap(folder / "batch_0.json")
        async with watched(f"{layout}: a file was swapped"):
            await _find_nothing(source)
        await _ask_for_a_while(layout, folder, source)
    finally:
        await source.stop()


async def _measure_topic(folder: Path) -> None:
    """Read a topic that the folder was published to, then follow it while a file is replaced and published again."""
    with bootstrap_servers() as servers, Outside(servers) as outside:
        topic = f"cases-{uuid.uuid4().hex[:8]}"
        outside.create_topic(topic, config={"cleanup.policy": "compact"})
        environment = {"SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": servers}
        await _publish(folder, topic, environment)
        settings = load({}, environment).settings
        install_patches(settings)
        source = TopicSource(topic, TableReader(Connection.from_settings(settings), topic))
        try:
            async with watched(f"{TOPIC}: first load"):
                await source.start()
                await _find_nothing(source)
            _swap(folder / "batch_0.json")
            async with watched(f"{TOPIC}: a file was swapped and published"):
                await _publish(folder, topic, environment)
                await _find_nothing(source)
        finally:
            await source.stop()


async def _find_nothing(source: ExpectationsSource) -> None:
    """A key that nobody holds is decided once all has been read that there was when it was asked for."""
    while True:
        with suppress(Transient):
            await source.find([ExpectationsKey("nobody", "nothing")])
            return


async def _publish(folder: Path, topic: str, environment: dict[str, str]) -> None:
    """Run `safe publish-cases` in a separate process."""
    command = [sys.executable, "-m", "safe_scorer", "publish-cases", str(folder), "--topic", topic]
    process = await asyncio.create_subprocess_exec(*command, env=os.environ | environment, stderr=subprocess.DEVNULL)
    if await process.wait() != 0:
        raise SystemExit(f"{' '.join(command)} failed")


def _swap(file: Path) -> None:
    other = file.with_suffix(".new")
    other.write_bytes(file.read_bytes().replace(b"minutes", b"seconds", 1))
    other.replace(file)


async def _ask_for_a_while(layout: str, folder: Path, source: FolderSource) -> None:
    """Look up known keys ten times a second: what do scans of an unchanged folder cost?"""
    begun = time.monotonic()
    list_folder(folder)
    listing = time.monotonic() - begun
    document = json.loads((folder / "batch_0.json").read_bytes())
    known = ExpectationsKey("batch_0", document["test_cases"][0]["test_id"])
    used = time.process_time()
    async with watched(f"{layout}: at rest, asked ten times a second"):
        for _ in range(int(STEADY_SECONDS * 10)):
            await source.find([known])
            await asyncio.sleep(0.1)
    share = (time.process_time() - used) / STEADY_SECONDS
    print(f"{layout:>44}: listing takes {listing * 1000:.0f} ms, scans and naps {share:.1%} of a core", flush=True)


async def _idle() -> None:
    async with watched("nothing is loaded"):
        await asyncio.sleep(2.0)


def main() -> None:
    """Measure each layout in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=50.0)
    parser.add_argument("--only", nargs="*", choices=list(LAYOUTS))
    parser.add_argument("--collect", action="store_true")
    arguments = parser.parse_args()
    if not arguments.collect:
        gc.disable()
    asyncio.run(_idle())
    for at, layout in enumerate(arguments.only or LAYOUTS):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(layout, Path(folder) / str(at), arguments.megabytes))


if __name__ == "__main__":
    main()
