"""What the demo has seen so far, dead letters included, and whether that is all."""

from typing_extensions import override

from consumer.demo.samples import Samples
from consumer.results.scorecard import Arrival, BatchCard, Scorecard
from consumer.settings import Settings
from consumer.wire.keys import parts_of
from consumer.wire.record import Record


class DemoCard(Scorecard):
    """The scorecard of the samples: their batches are there from the beginning."""

    def __init__(self, samples: Samples, settings: Settings) -> None:
        super().__init__(settings)
        self.batches = {name: BatchCard(cases) for name, cases in samples.cases.items()}
        self._events = len(samples.events)
        self._dead_letter_topic = settings.dead_letter_topic

    @override
    def note(self, record: Record) -> Arrival | None:
        return self._note_dead_letter(record) if record.topic == self._dead_letter_topic else super().note(record)

    def _note_dead_letter(self, record: Record) -> Arrival:
        headers = {name: (text or b"").decode("utf-8", "replace") for name, text in record.headers}
        reason = f"{headers.get('safe.dlq.reason', '')}: {headers.get('safe.dlq.detail', '')}"
        _batch_id, test_id = parts_of(record.key or b"/")  # the key of the sample as it was published
        self.dead_letters.append(f"{test_id}, {reason}")
        return self.arrive(Arrival(None, test_id, "", None, reason=reason))

    @property
    def is_complete(self) -> bool:
        """Whether every event has come out and every batch's last report is there."""
        return self.arrived >= self._events and all(card.is_final for card in self.batches.values())
