"""How large a batch of records each topic accepts (max.message.bytes), as its settings said a moment ago."""

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from consumer.dead_letter_reasons import Poison

RESULT_OVERHEAD_BYTES: Final = 16 * 1024
"""What a result or a row adds to a scored record at most (contract.md, "Dead letters")."""


@dataclass(frozen=True, slots=True)
class TopicLimits:
    """The limits `by_topic`; one that may not be read is not there, and then no record is too large for its topic.

    They are read again while a worker runs, and then the mapping changes: a topic whose limit has shrunk would
    otherwise hold up its partition for ever. A scored record goes to the topics `results`: as it is, as a row, or in
    a result.
    """

    by_topic: Mapping[str, int] = field(default_factory=dict)
    results: Collection[str] = ()

    def of(self, topic: str) -> int:
        """The limit of one topic."""
        return self.by_topic.get(topic, sys.maxsize)

    @property
    def scored_bytes(self) -> int:
        """How large a scored record may be."""
        return min(map(self.of, self.results), default=sys.maxsize) - RESULT_OVERHEAD_BYTES

    def result_too_large(self, size: int) -> Poison:
        """What is wrong with a scored record of this size."""
        topic = min(self.results, key=self.of, default="")
        by = f"; {topic} accepts {self.of(topic)} (max.message.bytes)" if size > self.scored_bytes else ""
        return Poison("result_too_large", f"the scored record has {size} bytes{by}")
