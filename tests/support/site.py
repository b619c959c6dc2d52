"""One installation under test: its topics, its test cases, its workers, and what must become of its inputs."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.checker import Run, check
from tests.support.oracle import CaseBook, Oracle
from tests.support.outside import Outgoing, Outside, Topics
from tests.support.waiting import wait_until
from tests.support.worker import Installation, Worker, running

REST_SECONDS = 90.0
REPORT_SECONDS = 20.0


@dataclass(slots=True)
class Site:
    """An installation of its own on a broker that others share."""

    outside: Outside
    folder: Path
    installation: Installation
    oracle: Oracle
    workers: list[Worker] = field(default_factory=list)

    @classmethod
    def build(
        cls,
        outside: Outside,
        folder: Path,
        cases: Path,
        *,
        partitions: int = 4,
        replication_factor: int = 1,
        settings: Mapping[str, str] | None = None,
        input_config: Mapping[str, str] | None = None,
        expectations: str | None = None,
    ) -> "Site":
        """Make topics and a group that nobody else has, over a folder of test cases.

        `expectations` is where the workers find them, if that is not the folder itself; a service counts no batches.
        """
        topics = Topics.fresh()
        outside.create_contract_topics(
            topics, partitions=partitions, replication_factor=replication_factor, input_config=input_config
        )
        where = expectations or str(cases)
        installation = Installation(outside.bootstrap_servers, topics, _group(), where, settings or {})
        return cls(outside, folder, installation, Oracle(CaseBook(cases, counted="://" not in where)))

    def reading_the_same_input(self, **settings: str) -> "Site":
        """Make a second installation, of another group and with empty topics, over this one's input."""
        topics = replace(Topics.fresh(), input=self.topics.input)
        partitions = self.outside.partitions(self.topics.scored)
        self.outside.create_contract_topics(topics, partitions=partitions, without_input=True)
        installation = replace(self.installation, topics=topics, group=_group(), settings=settings)
        return Site(self.outside, self.folder, installation, self.oracle)

    @property
    def topics(self) -> Topics:
        """The six topics."""
        return self.installation.topics

    @property
    def group(self) -> str:
        """The scorer's group; the aggregator's is named after it."""
        return self.installation.group

    def send(self, records: Sequence[Outgoing], *, compression: str = "none") -> list[tuple[int, int]]:
        """Write inputs."""
        return self.outside.produce(self.topics.input, records, compression=compression)

    @contextmanager
    def worker(self, *, role: str = "all", name: str = "worker") -> Iterator[Worker]:
        """Run one worker for as long as the block lasts."""
        with running(self.installation, self.folder, role=role, name=name) as worker:
            yield worker

    def spawn(self, name: str, *, role: str = "all") -> Worker:
        """Start a worker without waiting for it; `discard` ends it."""
        self.workers.append(Worker(self.installation, self.folder, role=role, name=name))
        return self.workers[-1]

    def discard(self) -> None:
        """End every worker that was spawned."""
        for worker in self.workers:
            worker.discard()

    def await_rest(self, *, within_seconds: float = REST_SECONDS) -> None:
        """Wait until every input has its outcome and every scored record its result."""
        wait_until(
            self._scorer_rests, within_seconds=within_seconds, what="the scorer has read its input", every_seconds=0.2
        )
        wanted = self._scored_ends()
        wait_until(
            lambda: self._aggregator_is_at(wanted),
            within_seconds=within_seconds,
            what=f"the aggregator has read what was scored, {wanted}",
            every_seconds=0.2,
        )
        # An offset may be seen before the outputs of the same transaction: each partition gets a marker of its own.
        self.outside.await_decided(self.topics.outputs(), within_seconds=within_seconds)

    def _scorer_rests(self) -> bool:
        return self.outside.lag(self.group, self.topics.input) == 0 and not self.outside.undecided([self.topics.scored])

    def _scored_ends(self) -> dict[int, int]:
        """The offset after each partition's last record: behind it stand only the marks of transactions."""
        return {record.partition: record.offset + 1 for record in self.outside.read(self.topics.scored)}

    def _aggregator_is_at(self, wanted: Mapping[int, int]) -> bool:
        committed = self.outside.committed(f"{self.group}.aggregator", self.topics.scored)
        return all(committed.get(partition, 0) >= offset for partition, offset in wanted.items())

    def seen(
        self, *, committed_history: Sequence[Mapping[int, int]] = (), repeats_allowed: bool = False
    ) -> tuple[Run, list[str]]:
        """Return the run at rest and what the oracle finds wrong with it; reports are given time to be published."""
        last: list[tuple[Run, list[str]]] = []

        def settled() -> bool:
            run = Run.seen_by(self.outside, self.topics, self.group, committed_history=committed_history)
            last[:] = [(run, check(run, self.oracle, repeats_allowed=repeats_allowed))]
            return not any(problem.startswith("report") for problem in last[0][1])

        try:
            wait_until(settled, within_seconds=REPORT_SECONDS, what="the reports are published", every_seconds=0.5)
        except AssertionError:
            settled()  # each look may take longer than reports may: the last one must begin when their time is over
        return last[0]  # the problems say what the reports lack


def _group() -> str:
    return f"g{uuid.uuid4().hex[:10]}"
