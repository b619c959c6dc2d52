"""What a worker knows of its own state, and what `/readyz`, `/livez` and the gauges say of it."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from consumer.case_sources.source import ExpectationsSource
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.cluster import Ends, Place
from consumer.kafka.logins import Login
from consumer.kafka.topics import no_leader
from consumer.telemetry.metrics import Metrics
from consumer.worker.partition_ends import PartitionEnds
from consumer.worker.poll_loop import PollLoop
from consumer.worker.startup_wait import StartupWait
from consumer.worker.topic_watch import TopicWatch

_CLUSTER_SILENT_SECONDS = 5.0
_POLL_STALLED_SECONDS = 300.0

T = TypeVar("T")


class Health:
    """The parts of a worker that exist so far; the worker sets them, probes and scrapes read them."""

    def __init__(self, login: Login | None = None) -> None:
        self.login = login
        self.clock = BrokersClock()
        self.poll_loops: Sequence[PollLoop] = ()
        self.source: ExpectationsSource | None = None
        self.topics = TopicWatch({})
        self.ends = PartitionEnds()
        self.cases_topic: str | None = None
        """The topic that look-ups of test cases are answered from, if they are."""
        self.startup_wait: StartupWait | None = None
        self.is_reading = False
        self.is_draining = False
        self._answered_at = time.monotonic()

    def note_answer(self) -> None:
        """The cluster has answered, or was not asked for a while."""
        self._answered_at = time.monotonic()

    @property
    def cluster_is_silent(self) -> bool:
        """Whether the cluster has not answered for so long that it counts as trouble."""
        return self._silence() > _CLUSTER_SILENT_SECONDS

    def _silence(self) -> float:
        return time.monotonic() - self._answered_at

    def not_ready(self) -> Sequence[str]:
        """Why it cannot serve just now, each reason in words; empty when it can."""
        troubles = ["draining"] if self.is_draining else []
        if self.startup_wait is not None and self.startup_wait.reason is not None:
            troubles.append(f"waiting for the brokers: {self.startup_wait.reason}")
        else:
            troubles += self._of_the_brokers()
        if self.topics.trouble is not None:
            troubles.append(self.topics.trouble)
        troubles += [*self._leaderless(), *self._held_up()]
        source_trouble = self.source.trouble() if self.source is not None else None
        if source_trouble is not None:
            troubles.append(f"expectations: {source_trouble}")
        if not self.poll_loops and not troubles:
            return ["starting: reading the test cases" if self.is_reading else "starting"]
        troubles += [trouble for poll_loop in self.poll_loops for trouble in poll_loop.troubles()]
        missing = self.topics.missing_brokers()
        return (
            [missing, *troubles] if troubles and missing is not None else troubles
        )  # alone, a missing broker is no trouble

    def _of_the_brokers(self) -> list[str]:
        """A refused login first: the silence is what comes of it."""
        troubles = self.login.troubles() if self.login is not None else []
        if self.cluster_is_silent and not self.is_reading:
            troubles.append(f"the cluster has not answered for {self._silence():.0f} s")
        return troubles

    def _leaderless(self) -> list[str]:
        """The partitions without a leader that ours need."""
        concerned = {
            topic: {at for at in self.topics.leaderless(topic) if any(s.needs(topic, at) for s in self.poll_loops)}
            for topic in self.topics.topics
        }
        return [no_leader(topic, partitions) for topic, partitions in concerned.items() if partitions]

    def _held_up(self) -> list[str]:
        """The partitions that hide records which ours need behind an open transaction."""
        return [
            held_up.told(self.producer_ids())
            for place, held_up in sorted(self.ends.held_up().items())
            if place[0] == self.cases_topic or any(loop.waits_for(*place) for loop in self.poll_loops)
        ]

    @property
    def topics_read(self) -> list[str]:
        """The topics of which this worker reads committed records."""
        roles = [loop.role for loop in self.poll_loops]
        read = {self.cases_topic, *(role.topic for role in roles), *(role.restored_from for role in roles)}
        return sorted(topic for topic in read if topic is not None)

    def _held_up_seconds(self) -> Mapping[Place, float]:
        """For how long the same transaction has been open in each partition that this worker reads."""
        return {place: seconds for place, seconds in sorted(self.ends.seconds().items()) if self.reads(place)}

    def reads(self, place: Place) -> bool:
        """Whether this worker reads committed records of the partition, now or when it is restored."""
        return place[0] == self.cases_topic or any(loop.reads(*place) for loop in self.poll_loops)

    def producer_ids(self) -> frozenset[int]:
        """The ids of this worker's transactional producers."""
        return frozenset().union(*(loop.producer_ids() for loop in self.poll_loops))

    def note_ends(self, answers: Mapping[Place, Ends]) -> None:
        """Take where the leaders say that partitions end."""
        self.ends.note(answers)
        held_up = self.ends.held_up()
        for loop in self.poll_loops:
            loop.note_ends(self.ends.log_ends(loop.role.topic))
            loop.held_up = frozenset(partition for topic, partition in held_up if topic == loop.role.topic)

    def remarks(self) -> Sequence[str]:
        """What is wrong although it can serve, each in words."""
        return self.clock.remarks()

    def not_live(self) -> Sequence[str]:
        """An answer at all shows that the event loop runs; polls may stop only while the cluster does not answer."""
        if self.cluster_is_silent:
            return []
        now = time.monotonic()
        return [
            f"{poll_loop.role.name}: no poll for {now - poll_loop.polled_at:.0f} s"
            for poll_loop in self.poll_loops
            if now - poll_loop.polled_at > _POLL_STALLED_SECONDS
        ]

    def aggregator_is_surely_ours(self) -> bool:
        """Whether the group still takes this worker for a member, so that its aggregates are current."""
        return any(
            poll_loop.subscription is not None and poll_loop.subscription.heartbeat_is_fresh()
            for poll_loop in self.poll_loops
            if poll_loop.role.name == "aggregator"
        )

    def _by_partition(self, ask: Callable[[PollLoop], Mapping[int, T]]) -> dict[tuple[str, int], T]:
        return {
            (poll_loop.role.topic, at): answer for poll_loop in self.poll_loops for at, answer in ask(poll_loop).items()
        }

    def connect(self, metrics: Metrics) -> None:
        """Give the gauges what they show."""
        metrics.lags = lambda: self._by_partition(PollLoop.lags)
        metrics.held_up = self._held_up_seconds
        metrics.waits = lambda: self._by_partition(PollLoop.waiting_seconds)
        metrics.clock_skew = self.clock.skew_seconds
        metrics.strangers = lambda: {poll_loop.role.group: poll_loop.strangers.count for poll_loop in self.poll_loops}
        metrics.ready = lambda: not self.not_ready()
        if (login := self.login) is not None:
            metrics.login_refused = login.logins.is_refused
            metrics.certificate_ends = lambda: login.credentials.value.ends
        source = self.source
        if source is not None:
            metrics.expectations_requests = lambda: {
                (source.name, outcome): count for outcome, count in source.requests.items()
            }
            metrics.unusable_expectations = lambda: [(source.name, part) for part in source.unusable]
