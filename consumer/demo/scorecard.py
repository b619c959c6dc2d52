"""What the demo has seen so far: results, reports and dead letters as they came, and whether that is all."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from consumer.offline.pages.report_content import most_frequent
from consumer.settings import Settings
from consumer.text import count_of
from consumer.wire.keys import parts_of
from consumer.wire.record import Record
from safe_core import CRITERIA, UNKNOWN_ARCHETYPE


@dataclass(frozen=True, slots=True)
class Arrival:
    """One event that came out: a result with its scores, or a dead letter (`label` is None and `reason` is not)."""

    label: str | None
    test_id: str
    archetype: str
    scores: Sequence[float] | None
    was: str | None = None
    reason: str | None = None


@dataclass(slots=True)
class BatchCard:
    """What the last result and the last report of a batch say about it."""

    expected: int
    summary: Mapping[str, Any] = field(default_factory=dict)
    scored_at: str = ""
    report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cases(self) -> int:
        """Test cases that have a result."""
        return int(self.summary.get("total_cases", 0))

    def count(self, label: str) -> int:
        """Cases with a label."""
        return int(self.summary.get(label.lower(), 0))

    @property
    def is_final(self) -> bool:
        """Whether the last report covers the last result."""
        caught_up = self.report.get("generated_at", "") >= self.scored_at
        return bool(self.summary) and caught_up and self.report.get("summary") == self.summary


class Scorecard:
    """Everything shown on the screen; only note() changes it."""

    def __init__(self, expected: Mapping[str, int], events: int, settings: Settings) -> None:
        self.batches = {batch_id: BatchCard(cases) for batch_id, cases in expected.items()}
        self.arrivals: list[Arrival] = []
        self._events = events
        self._note = {
            settings.result_topic: self._note_result,
            settings.report_topic: self._note_report,
            settings.dead_letter_topic: self._note_dead_letter,
        }
        self._sources: set[tuple[object, object]] = set()
        self._labels: dict[tuple[str, str], str] = {}

    def note(self, record: Record) -> Arrival | None:
        """Take a record of one of the three topics; returns what to show of it, if anything."""
        return self._note[record.topic](record)

    def _note_result(self, record: Record) -> Arrival | None:
        document = orjson.loads(record.value or b"")
        source, result, batch_id = document["source"], document["result"], document["batch_id"]
        identity = (source["partition"], source["offset"])
        if identity in self._sources:
            return None  # delivered at least once, shown once
        self._sources.add(identity)
        card = self.batches.setdefault(batch_id, BatchCard(document["expected_cases"] or 0))
        card.summary, card.scored_at = document["summary"], document["timestamp"]
        scores, key = result["scores"], (batch_id, result["test_id"])
        was, self._labels[key] = self._labels.get(key), result["label"]
        archetype = result["archetype"] or UNKNOWN_ARCHETYPE
        values = [scores[criterion] for criterion in CRITERIA]
        return self._arrived(Arrival(result["label"], result["test_id"], archetype, values, was))

    def _note_report(self, record: Record) -> None:
        document = orjson.loads(record.value or b"")
        self.batches.setdefault(document["batch_id"], BatchCard(0)).report = document

    def _note_dead_letter(self, record: Record) -> Arrival:
        headers = {name: (text or b"").decode("utf-8", "replace") for name, text in record.headers}
        reason = f"{headers.get('safe.dlq.reason', '')}: {headers.get('safe.dlq.detail', '')}"
        _batch_id, test_id = parts_of(record.key or b"/")  # the key of the sample as it was published
        return self._arrived(Arrival(None, test_id, "", None, reason=reason))

    def _arrived(self, arrival: Arrival) -> Arrival:
        self.arrivals.append(arrival)
        return arrival

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def is_complete(self) -> bool:
        """Whether every event has come out and every batch's last report is there."""
        return len(self.arrivals) >= self._events and all(card.is_final for card in self.batches.values())

    @property
    def dead_letters(self) -> Sequence[str]:
        """Which records became dead letters, and why."""
        return [f"{arrival.test_id}, {arrival.reason}" for arrival in self.arrivals if arrival.reason is not None]

    def most_frequent(self, how: Literal["missing", "used"]) -> list[tuple[str, int]]:
        """Required terms that were missing, or forbidden ones that were used, with counts, the most frequent first."""
        counts: Counter[str] = Counter()
        for card in self.batches.values():
            for each in most_frequent(card.report) if card.report else ():
                if each.how == how:
                    counts[each.term] += each.times
        return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))

    def remarks(self) -> list[str]:
        """What a reader must know to read the numbers: criteria with nothing to check, and empty outputs."""
        vacuous: Counter[str] = Counter()
        empty = 0
        for card in self.batches.values():
            vacuous.update(card.report.get("vacuous", {}))
            empty += card.report.get("empty_outputs", 0)
        counted = [
            f"{criterion} in {count_of(vacuous[criterion], 'case')}"
            for criterion in (*CRITERIA, "all")
            if vacuous[criterion]
        ]
        remarks = [f"scored 1.00 with nothing to check: {', '.join(counted)}"] if counted else []
        return remarks + ([f"empty outputs: {empty}"] if empty else [])
