"""One batch in the aggregator's memory: when it is complete, and what the gauges show of it."""

from dataclasses import dataclass, field

from consumer.telemetry.metrics import ExportedBatch
from consumer.wire.changelog import BatchRow
from safe_core import LatestResults


@dataclass(slots=True)
class LiveBatch:
    """One batch in memory: its fold, and what its row in the changelog says besides.

    `owed_at` is when its report is due, None while none is owed; `idle_since` is when its last record was folded, in
    this process or, as far as the brokers' time tells, in an earlier one. All three times are monotonic.
    """

    key: str
    concern_id: str
    batch_id: str
    fold: LatestResults = field(default_factory=LatestResults)
    row: BatchRow | None = None
    idle_since: float = 0.0
    report_not_before: float = 0.0
    owed_at: float | None = None
    warned_of_fingerprints: bool = False

    @property
    def is_live(self) -> bool:
        """Neither being forgotten nor forgotten."""
        return self.row is None or self.row.stage == "live"

    def is_complete(self, expected_cases: int | None) -> bool:
        """Whether as many of the batch's own test cases have a result as the source holds."""
        return expected_cases is not None and self.fold.expected_present >= expected_cases

    def exported(self) -> ExportedBatch:
        """What the gauges show of it."""
        assert self.row is not None
        return ExportedBatch(
            self.concern_id, self.batch_id, self.fold.snapshot(), self.row.expected_cases, self.row.last_scored_at
        )
