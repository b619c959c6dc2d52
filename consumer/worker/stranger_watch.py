"""Where others than SAFE have the consumer group: what is said of them, and when the worker ends.

See "Ownership" in contract.md.
"""

import time
from collections.abc import Callable

import structlog

from consumer.errors import Fatal
from consumer.kafka.group_members import Stranger
from consumer.text import named

_log = structlog.get_logger("safe.stage")

LASTS_SECONDS = 600.0
"""After this long, as the group's coordinator answers, the worker ends: somebody must decide whose group it is."""

_LONGEST_NAME = 120


class StrangerWatch:
    """Follows one group from the moment in which a worker is turned away, until it gets partitions from SAFE again.

    `trouble` says who is there, None while nobody is; `count` is how many, at least one while there is trouble.
    """

    def __init__(self, group: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.trouble: str | None = None
        self.count = 0
        self._group = group
        self._clock = clock
        self._seconds = 0.0
        self._answered_at: float | None = None
        self._known: frozenset[Stranger] = frozenset()

    def note(self, found: frozenset[Stranger]) -> None:
        """Note that the group turns this worker away, and whom it has; raises Fatal if that lasts."""
        now = self._clock()
        self._seconds += 0.0 if self._answered_at is None else now - self._answered_at
        self._answered_at = now
        who = self._name(found)
        if self._seconds > LASTS_SECONDS:
            raise Fatal(
                f"group {self._group} has had members that are not SAFE of this version for "
                f"{self._seconds / 60:.0f} minutes ({who}): stop them, or choose another SAFE_V0_KAFKA_GROUP_ID. "
                "If they are workers of an earlier version, see 'Upgrade' in docs/how-to/operate.md"
            )

    def note_silence(self) -> None:
        """Note that the brokers do not answer: until they do, nobody knows who is there, and no time counts."""
        self._answered_at = None

    def note_turned_away(self) -> None:
        """Note that the group turns this worker away, but does not say whom it has."""
        self.note_silence()
        self._name(frozenset())

    def _name(self, found: frozenset[Stranger]) -> str:
        before = self.trouble
        self._known = found or self._known  # the coordinator does not name anyone while the group rebalances
        self.count = max(1, len(self._known))
        who = named(sorted(map(str, self._known)), longest=_LONGEST_NAME) or "the brokers do not say who"
        self.trouble = (
            f"group {self._group} has members that are not SAFE of this version ({who}): nothing is served until they "
            "leave"
        )
        if self.trouble != before:
            _log.warning("others have the consumer group", group=self._group, members=sorted(map(str, self._known)))
        return who

    def note_gone(self) -> None:
        """Note that the group has assigned partitions as SAFE does."""
        if self.trouble is not None:
            _log.info("the consumer group has SAFE's workers alone again", group=self._group)
        self.trouble, self.count, self._known = None, 0, frozenset()
        self._seconds, self._answered_at = 0.0, None
