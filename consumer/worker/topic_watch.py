"""What happens to the topics while a worker runs: deleted, refused, grown, without a leader, or a broker is missing.

A broker that lags behind the others may give one wrong answer, so nothing is believed before it is seen again: what is
fatal three times in a row; an id that was not known at the start, or a leader or a broker that came or went, twice.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Generic, TypeVar

import structlog

from consumer.errors import Fatal
from consumer.kafka.cluster import TopicsSeen
from consumer.kafka.topics import MOST_NAMED
from consumer.text import count_of, named

_log = structlog.get_logger("safe.worker")

_FATAL_ANSWERS = 3

_TopicPartition = tuple[str, int]

T = TypeVar("T")


class _SeenTwice(Generic[T]):
    """A set that changes only where two answers in a row agree."""

    def __init__(self) -> None:
        self.now: frozenset[T] = frozenset()
        self._last: frozenset[T] = frozenset()

    def note(self, seen: frozenset[T]) -> tuple[frozenset[T], frozenset[T]]:
        """Take what was seen; returns what that adds to the set, and what it removes."""
        before = self.now
        self.now = (seen & self._last) | (before & (seen | self._last))
        self._last = seen
        return self.now - before, before - self.now


class TopicWatch:
    """Judges what the cluster says of the topics, answer by answer.

    `partitions` are the counts at the start, by topic, and `ids` the topics' ids, as far as they are known. The topic
    `may_grow` may get more partitions, and `keyless` is one whose records may be in any partition.
    """

    def __init__(
        self,
        partitions: Mapping[str, int],
        ids: Mapping[str, str] = MappingProxyType({}),
        *,
        may_grow: str = "",
        keyless: str = "",
    ) -> None:
        self.trouble: str | None = None
        self._partitions = partitions
        self._may_grow = may_grow
        self._keyless = keyless
        self._in_a_row: Counter[str] = Counter()
        self._ids = dict(ids)
        self._ids_seen: Mapping[str, str] = {}
        self._leaderless = _SeenTwice[_TopicPartition]()
        self._missing_brokers = _SeenTwice[int]()
        self._addresses: dict[int, str] = {}

    @property
    def topics(self) -> list[str]:
        """The topics to ask for."""
        return list(self._partitions)

    def leaderless(self, topic: str) -> frozenset[int]:
        """The partitions of a topic that have no leader: they can be neither read nor written."""
        return frozenset(partition for name, partition in self._leaderless.now if name == topic)

    def missing_brokers(self) -> str | None:
        """A sentence that names the brokers that hold replicas of the topics and are not up; None if there are none."""
        missing = self._named_brokers(self._missing_brokers.now)
        if not missing:
            return None
        are = "broker {} is" if len(missing) == 1 else "brokers {} are"
        return f"{are.format(named(missing, MOST_NAMED))} missing from the cluster"

    def note(self, seen: TopicsSeen) -> None:
        """Take an answer of the cluster; raises Fatal where no waiting helps."""
        refused = [topic for topic in self._partitions if topic in seen.refused]
        gone = [topic for topic in self._partitions if topic not in seen.partitions and topic not in seen.refused]
        refused_for_long, gone_for_long = self._lasts("refused", refused), self._lasts("gone", gone)
        self.trouble = f"missing topic: {', '.join(gone)}" if gone else None
        if refused:
            self.trouble = f"not authorised for the topic: {', '.join(refused)}"
        if refused_for_long:
            raise Fatal(
                f"{', '.join(refused)}: not authorised for the topic any more; grant DESCRIBE, which READ and WRITE "
                "include, and start again"
            )
        if gone_for_long:
            raise Fatal(
                f"{', '.join(gone)} disappeared while in use, and the records are gone. See 'Starting over' in "
                "docs/how-to/operate.md before you create anything again"
            )
        self._check_ids(seen)
        self._note_brokers(seen)
        self._note_leaders(seen)
        self._check_counts(seen)

    def _lasts(self, what: str, topics: Collection[str]) -> bool:
        """Whether there were such topics three times in a row, this time included."""
        self._in_a_row[what] = self._in_a_row[what] + 1 if topics else 0
        return self._in_a_row[what] >= _FATAL_ANSWERS

    def _check_ids(self, seen: TopicsSeen) -> None:
        """A topic may be deleted and created again between two answers: only its id shows that."""
        recreated = [topic for topic, topic_id in seen.ids.items() if self._ids.get(topic, topic_id) != topic_id]
        for topic, topic_id in seen.ids.items():
            if self._ids_seen.get(topic) == topic_id:
                self._ids.setdefault(topic, topic_id)
        self._ids_seen = seen.ids
        if self._lasts("created again", recreated):
            raise Fatal(
                f"deleted and created again while in use: {', '.join(recreated)}. The records are gone, and earlier "
                "offsets are no longer valid. See 'Starting over' in docs/how-to/operate.md"
            )

    def _note_brokers(self, seen: TopicsSeen) -> None:
        self._addresses |= seen.brokers
        came, went = self._missing_brokers.note(seen.holders - seen.brokers.keys())
        if came:
            _log.warning("brokers are missing from the cluster", brokers=self._named_brokers(came))
        if went:
            _log.info("brokers are no longer missing", brokers=self._named_brokers(went))

    def _named_brokers(self, numbers: Collection[int]) -> list[str]:
        addresses = self._addresses
        return [f"{each} ({addresses[each]})" if each in addresses else str(each) for each in sorted(numbers)]

    def _note_leaders(self, seen: TopicsSeen) -> None:
        came, went = self._leaderless.note(
            frozenset((topic, partition) for topic, at in seen.leaderless.items() for partition in at)
        )
        for topic, partitions in _by_topic(came).items():
            _log.warning("partitions have no leader", topic=topic, partitions=partitions)
        for topic, partitions in _by_topic(went).items():
            _log.info("partitions have a leader again", topic=topic, partitions=partitions)

    def _check_counts(self, seen: TopicsSeen) -> None:
        counts = {topic: (was, seen.partitions.get(topic, was)) for topic, was in self._partitions.items()}
        changed = {topic: (was, is_) for topic, (was, is_) in counts.items() if was != is_ and topic != self._may_grow}
        if self._lasts("another count", changed):
            topic, (was, is_) = next(iter(changed.items()))
            remedy = (
                "records would no longer reach the partition that holds their state; start a new group on new "
                "topics, as 'Starting over' in docs/how-to/operate.md says"
            )
            if topic == self._keyless:
                remedy = "start the worker again"
            raise Fatal(f"{topic} now has {count_of(is_, 'partition')} instead of {was}: {remedy}")


def _by_topic(topic_partitions: Iterable[_TopicPartition]) -> dict[str, list[int]]:
    grouped = groupby(sorted(topic_partitions), key=itemgetter(0))
    return {topic: [partition for _, partition in group] for topic, group in grouped}
