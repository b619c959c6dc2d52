"""What an event costs, in processor time and memory, by live cases, terms, outputs, partitions and batches.

    python -m bench.cost [--rounds 1] [--events 50000] [--only NAME …]

Each line is compared with the first one of its round. All inputs are in the topic before the worker starts; the
processor time is what it uses from its first result on, the memory its peak. Every output differs from every other,
except in "repeated". Needs the tests' broker, as bench.throughput does.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from pathlib import Path

from bench.throughput import bootstrap_servers
from tests.support.cases import START
from tests.support.outside import Outgoing, Outside
from tests.support.site import Site
from tests.support.waiting import wait_until

REST_SECONDS = 1_200.0
CHUNK = 20_000


@dataclass(frozen=True, slots=True)
class Load:
    """What one run is made of; `output_bytes` is the length of a summary."""

    name: str
    batches: int = 200
    cases_a_batch: int = 5
    terms: int = 8
    output_bytes: int = 800
    partitions: int = 4
    repeated: bool = False
    events: int = 0

    @property
    def cases(self) -> int:
        """How many test cases are alive at the end."""
        return self.batches * self.cases_a_batch


BASE = Load("1,000 live cases")
LOADS = (
    BASE,
    replace(BASE, name="repeated outputs", repeated=True),
    replace(BASE, name="10,000 live cases", batches=2_000),
    replace(BASE, name="100,000 live cases", batches=2_000, cases_a_batch=50),
    replace(BASE, name="1,000,000 live cases", batches=4_000, cases_a_batch=250),
    replace(BASE, name="1 term", terms=1),
    replace(BASE, name="20 terms", terms=20),
    replace(BASE, name="200 terms", terms=200),
    replace(BASE, name="outputs of 64 KB", output_bytes=64_000, events=5_000),
    replace(BASE, name="32 partitions", partitions=32),
    replace(BASE, name="batches of 500", batches=2, cases_a_batch=500),
    replace(BASE, name="batches of 5,000", batches=2, cases_a_batch=5_000),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: events a second, processor time an event in seconds, peak memory in bytes."""

    rate: float
    cpu: float
    memory: int


def main() -> None:
    """Run each load in each round, and print the medians."""
    arguments = _arguments()
    chosen = [load for load in LOADS if not arguments.only or load.name in arguments.only or load is BASE]
    runs: dict[str, list[Measured]] = {load.name: [] for load in chosen}
    with bootstrap_servers() as servers, Outside(servers) as outside:
        for _ in range(arguments.rounds):
            for load in chosen:
                events = max(load.events or arguments.events, load.cases)
                with tempfile.TemporaryDirectory() as folder:
                    measured = _measured(outside, Path(folder), load, events)
                runs[load.name].append(measured)
                print(
                    f"{load.name:>22}: {measured.cpu * 1e6:7.1f} µs/event  {measured.rate:8,.0f} events/s  "
                    f"{measured.memory / 2**20:5.0f} MiB  ({events:,} events)", flush=True
                )  # fmt: skip
    base = statistics.median(run.cpu for run in runs[BASE.name])
    for name, measured_runs in runs.items():
        print(f"{name:>22}  {statistics.median(run.cpu for run in measured_runs) / base:6.2f} of the first line's cost")


def _measured(outside: Outside, folder: Path, load: Load, events: int) -> Measured:
    cases = folder / "cases"
    cases.mkdir()
    for batch in range(load.batches):
        document = {"test_cases": [_case(load, batch, number) for number in range(load.cases_a_batch)]}
        (cases / f"batch-{batch}.json").write_text(json.dumps(document), encoding="utf-8")
    site = Site.build(outside, folder, cases, partitions=load.partitions)
    stream = _stream(load, events)
    while chunk := list(islice(stream, CHUNK)):
        site.send(chunk)
    with site.worker(name="bench") as worker:
        wait_until(lambda: _results(site) > 0, within_seconds=REST_SECONDS, what="the first result", every_seconds=0.05)
        used, first = worker.cpu_seconds(), _results(site)
        site.await_rest(within_seconds=REST_SECONDS)
        spent, memory = worker.cpu_seconds() - used, worker.memory_bytes(peak=True)
        worker.stop()
    stamps = [record.timestamp for record in site.outside.read(site.topics.result, within_seconds=REST_SECONDS)]
    if len(stamps) != events:
        raise SystemExit(f"{load.name}: {len(stamps)} results for {events} inputs")
    return Measured(events / (max(stamps) - min(stamps)) * 1000, spent / (events - first), memory)


def _results(site: Site) -> int:
    return sum(each.stable for each in site.outside.ends(site.topics.result).values())


def _case(load: Load, batch: int, number: int) -> object:
    terms = [f"finding {term} of case {number}" for term in range(load.terms)]
    return {
        "test_id": f"B{batch}-{number}",
        "concern_id": "S11",
        "expectations": {
            "signal_generation": {"must_find_signals": terms[::2]},
            "event_summary": {"must_contain_phrases": terms[1::2]},
        },
    }


def _stream(load: Load, events: int) -> Iterator[Outgoing]:
    """Yield events over all cases in turn; their outputs hold nearly all terms."""
    for at in range(events):
        batch, number = divmod(at % load.cases, load.cases_a_batch)
        said = "; ".join(f"finding {term} of case {number}" for term in range(load.terms - at % 3 % load.terms))
        told = f"{said}. " + "The course was reviewed again. " * (load.output_bytes // 31)
        summary = told[: max(len(said), load.output_bytes)] if load.repeated else f"{told[: load.output_bytes]} {at}"
        event = {
            "test_id": f"B{batch}-{number}",
            "batch_id": f"batch-{batch}",
            "concern_id": "S11",
            "run_id": "r1",
            "generated_at": (START + timedelta(seconds=at)).isoformat(),
            "output": {"signals": ["a stable airway"], "summary": summary, "followup_questions": ["When?"]},
        }
        yield Outgoing(json.dumps(event).encode(), key=f"batch-{batch}".encode(), partition=at % load.partitions)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--events", type=int, default=50_000, help="at least one for each live case")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a load; repeats")
    return parser.parse_args()


if __name__ == "__main__":
    main()
