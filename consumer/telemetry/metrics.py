"""What Prometheus sees (contract.md, "Gauges"): names, types and labels stand in one table each.

Gauges of batches follow committed state and are worked out when asked for; everything else is counted after the commit.
"""

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest
from typing_extensions import override

from consumer.errors import REASONS
from consumer.text import shown
from safe_core import MAX_ID_LENGTH, BatchSnapshot

OTHER = "other"
MAX_CONCERNS = 100
MAX_ARCHETYPES = 20
MAX_UNUSABLE = 20
SERIES_PER_BATCH = 14
"""Of a batch itself; each archetype that it shows, `other` included, adds two."""

_END_TO_END_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_SCORING_BUCKETS = (0.000005, 0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.01, 0.1, 1.0)


class _Definition(NamedTuple):
    help: str
    labels: tuple[str, ...]


_COUNTERS: Mapping[str, _Definition] = {
    "safe_records": _Definition("Records whose outcome is committed.", ("outcome",)),
    "safe_cases": _Definition("Scored cases by label.", ("concern_id", "label")),
    "safe_dead_letters": _Definition("Records that became dead letters.", ("reason",)),
    "safe_empty_outputs": _Definition("Scored outputs whose three fields were all empty.", ("concern_id",)),
    "safe_batches_reopened": _Definition("Batches that a late record reopened after they were forgotten.", ()),
    "safe_restore_failures": _Definition(
        "Attempts to restore a partition's state that failed and will be repeated.", ()
    ),
}

_BATCH_LABELS = ("concern_id", "batch_id")
_BATCH_GAUGES: Mapping[str, _Definition] = {
    "safe_batch_pass_ratio": _Definition("Share of the batch's cases labelled Pass.", _BATCH_LABELS),
    "safe_batch_cases": _Definition("Cases of the batch by label.", (*_BATCH_LABELS, "label")),
    "safe_batch_mean_score": _Definition("Mean score over the batch's cases.", (*_BATCH_LABELS, "metric")),
    "safe_batch_metric_pass_ratio": _Definition(
        "Share of the batch's cases that passed the criterion.", (*_BATCH_LABELS, "metric")
    ),
    "safe_batch_expected_cases": _Definition("Test cases that the source holds for the batch.", _BATCH_LABELS),
    "safe_batch_complete": _Definition(
        "Whether each test case that the source holds for the batch has a result: 1 or 0.", _BATCH_LABELS
    ),
    "safe_batch_last_update_timestamp_seconds": _Definition(
        "When the batch's last record was scored, in seconds since 1970.", _BATCH_LABELS
    ),
    "safe_batch_archetype_pass_ratio": _Definition(
        "Share of the archetype's cases labelled Pass.", (*_BATCH_LABELS, "archetype")
    ),
    "safe_batch_archetype_cases": _Definition("Cases of the archetype.", (*_BATCH_LABELS, "archetype")),
}


class Histogram:
    """Counts per bucket, cheap enough to observe every record."""

    def __init__(self, name: str, help_: str, bounds: Sequence[float]) -> None:
        self._name = name
        self._help = help_
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, values: Iterable[float]) -> None:
        """Count each of the values, in seconds."""
        for value in values:
            self._counts[bisect_left(self._bounds, value)] += 1
            self._sum += value

    def collect(self) -> Metric:
        """The histogram as Prometheus reads it: buckets are cumulative."""
        cumulative, buckets = 0, []
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            cumulative += count
            buckets.append((bound, cumulative))
        return HistogramMetricFamily(self._name, self._help, buckets=buckets, sum_value=self._sum)


@dataclass(frozen=True, slots=True)
class ExportedBatch:
    """A live batch as of the last commit that touched it."""

    concern_id: str
    batch_id: str
    snapshot: BatchSnapshot
    expected_cases: int | None
    last_scored_at: int

    @property
    def is_complete(self) -> bool:
        """Whether each of its own test cases has a result; where nobody knows how many there are, no."""
        return self.expected_cases is not None and self.snapshot.expected_present >= self.expected_cases


class BatchGauges:
    """The live batches of this process: shown while their partition is surely ours, the longest idle dropped first."""

    def __init__(self, max_exported: int, is_surely_ours: Callable[[], bool]) -> None:
        self._max_exported = max_exported
        self._is_surely_ours = is_surely_ours
        self._partitions: dict[int, dict[str, ExportedBatch]] = {}
        self._visible: set[int] = set()

    def put(self, partition: int, key: str, batch: ExportedBatch) -> None:
        """A commit has touched the batch."""
        self._partitions.setdefault(partition, {})[key] = batch

    def remove(self, partition: int, key: str) -> None:
        """The batch was forgotten."""
        self._partitions.get(partition, {}).pop(key, None)

    def show(self, partition: int, restored: Mapping[str, ExportedBatch] | None = None) -> None:
        """The partition is served; what it held when it was restored is told once."""
        if restored is not None:
            self._partitions[partition] = dict(restored)
        self._visible.add(partition)

    def hide(self, partition: int) -> None:
        """The partition may not be ours for now."""
        self._visible.discard(partition)

    def drop(self, partition: int) -> None:
        """The partition is not ours any more."""
        self._visible.discard(partition)
        self._partitions.pop(partition, None)

    def exported(self) -> tuple[list[ExportedBatch], int]:
        """The batches to show, latest first, and how many the cap leaves out."""
        if not self._is_surely_ours():
            return [], 0
        live = [batch for partition in self._visible for batch in self._partitions.get(partition, {}).values()]
        live.sort(key=lambda batch: batch.last_scored_at, reverse=True)
        return live[: self._max_exported], max(0, len(live) - self._max_exported)


class Metrics:
    """All counters of the process, and the page that Prometheus scrapes."""

    def __init__(self, version: str, fingerprint: str) -> None:
        self._counts: dict[str, Tally[tuple[str, ...]]] = {name: Tally() for name in _COUNTERS}
        self._concerns: set[str] = set()
        self._build = {"version": version, "fingerprint": fingerprint}
        self.gauges: BatchGauges | None = None
        self.ready: Callable[[], bool] = lambda: False
        self.lags: Callable[[], Mapping[tuple[str, int], int]] = dict
        self.waits: Callable[[], Mapping[tuple[str, int], float]] = dict
        self.expectations_requests: Callable[[], Mapping[tuple[str, str], int]] = dict
        self.unusable_expectations: Callable[[], Sequence[tuple[str, str]]] = list
        self.end_to_end = Histogram(
            "safe_end_to_end_seconds",
            "From the input record's timestamp to the commit of its result.",
            _END_TO_END_BUCKETS,
        )
        self.scoring = Histogram(
            "safe_scoring_seconds", "Scoring one output and encoding its scored record.", _SCORING_BUCKETS
        )
        # The zeros make a rate visible from the first event on.
        for outcome in ("scored", "dead_lettered", "ignored", "foreign"):
            self._counts["safe_records"][(outcome,)] = 0
        for reason in REASONS:
            self._counts["safe_dead_letters"][(reason,)] = 0

    # --- counting -----------------------------------------------------------------------------------------------------

    def count_slice(
        self,
        outcomes: Mapping[str, int],
        cases: Mapping[tuple[str, str], int],
        reasons: Mapping[str, int],
        empty_outputs: Mapping[str, int],
        scoring_seconds: Iterable[float],
    ) -> None:
        """Count what a committed slice of the scorer did."""
        for outcome, count in outcomes.items():
            self._counts["safe_records"][(outcome,)] += count
        for (concern_id, label), count in cases.items():
            self._counts["safe_cases"][(self._concern(concern_id), label)] += count
        for reason, count in reasons.items():
            self._counts["safe_dead_letters"][(reason,)] += count
        for concern_id, count in empty_outputs.items():
            self._counts["safe_empty_outputs"][(self._concern(concern_id),)] += count
        self.scoring.observe(scoring_seconds)

    def count(self, name: str, *labels: str, by: int = 1) -> None:
        """Move one counter of the table above."""
        self._counts[name][labels] += by

    def _concern(self, concern_id: str) -> str:
        if concern_id not in self._concerns:
            if len(self._concerns) >= MAX_CONCERNS:
                return OTHER
            self._concerns.add(concern_id)
        return concern_id

    # --- the page -----------------------------------------------------------------------------------------------------

    def collect(self) -> Iterator[Metric]:
        """What prometheus_client asks a collector for."""
        for name, definition in _COUNTERS.items():
            family = CounterMetricFamily(name, definition.help, labels=definition.labels)
            for labels, count in self._counts[name].items():
                family.add_metric(labels, count)
            if not definition.labels and not self._counts[name]:
                family.add_metric((), 0)
            yield family
        yield self.end_to_end.collect()
        yield self.scoring.collect()
        yield self._expectations()
        yield self._unusable_expectations()
        yield self._lag()
        yield self._waiting()
        yield self._readiness()
        yield self._build_info()
        yield from self._batches()

    def _build_info(self) -> Metric:
        family = GaugeMetricFamily("safe_build_info", "Version and policy of this process.", labels=tuple(self._build))
        family.add_metric(tuple(self._build.values()), 1)
        return family

    def _expectations(self) -> Metric:
        family = CounterMetricFamily(
            "safe_expectations_requests", "Look-ups of expectations.", labels=("source", "outcome")
        )
        for labels, count in self.expectations_requests().items():
            family.add_metric(labels, count)
        return family

    def _unusable_expectations(self) -> Metric:
        family = GaugeMetricFamily(
            "safe_expectations_unusable",
            "Batch files, or records of a topic, that cannot be used as they are now.",
            labels=("source", "name"),
        )
        parts = self.unusable_expectations()
        tally = Tally((source, shown(name)[:MAX_ID_LENGTH]) for source, name in parts[:MAX_UNUSABLE])
        tally.update((source, OTHER) for source, _ in parts[MAX_UNUSABLE:])
        for labels, count in tally.items():
            family.add_metric(labels, count)
        return family

    def _lag(self) -> Metric:
        family = GaugeMetricFamily(
            "safe_consumer_lag_records",
            "Records that are not yet committed, by partition.",
            labels=("topic", "partition"),
        )
        for (topic, partition), lag in self.lags().items():
            family.add_metric((topic, str(partition)), lag)
        return family

    def _waiting(self) -> Metric:
        family = GaugeMetricFamily(
            "safe_partition_waiting_seconds",
            "How long a partition of this process has been waiting or restoring, 0 while it is served.",
            labels=("topic", "partition"),
        )
        for (topic, partition), seconds in self.waits().items():
            family.add_metric((topic, str(partition)), seconds)
        return family

    def _readiness(self) -> Metric:
        return GaugeMetricFamily("safe_ready", "Whether /readyz says yes: 1 or 0.", value=int(self.ready()))

    def _batches(self) -> Iterator[Metric]:
        exported, left_out = self.gauges.exported() if self.gauges is not None else ([], 0)
        families = {
            name: GaugeMetricFamily(name, definition.help, labels=definition.labels)
            for name, definition in _BATCH_GAUGES.items()
        }
        shown_concerns: set[str] = set()
        series: dict[tuple[str, str], ExportedBatch] = {}
        for batch in exported:
            # Two batches of one name may both be of `other` concerns: Prometheus refuses a series that comes twice.
            labels = _bounded(batch.concern_id, shown_concerns), batch.batch_id
            series[labels] = _together(series[labels], batch) if labels in series else batch
        for (concern_id, _), batch in series.items():
            _add_batch(families, batch, concern_id)
        yield from families.values()
        yield GaugeMetricFamily(
            "safe_batches_not_exported", "Live batches that the cap on exported batches leaves out.", value=left_out
        )


def _bounded(concern_id: str, shown: set[str]) -> str:
    if concern_id not in shown and len(shown) >= MAX_CONCERNS:
        return OTHER
    shown.add(concern_id)
    return concern_id


def _together(one: ExportedBatch, other: ExportedBatch) -> ExportedBatch:
    """Two batches counted as one."""
    a, b = one.snapshot, other.snapshot
    expected = None
    if one.expected_cases is not None and other.expected_cases is not None:
        expected = one.expected_cases + other.expected_cases
    snapshot = BatchSnapshot(
        total_cases=a.total_cases + b.total_cases,
        labels=_sums(a.labels, b.labels),
        passed=_sums(a.passed, b.passed),
        units=_sums(a.units, b.units),
        vacuous=_sums(a.vacuous, b.vacuous),
        empty_outputs=a.empty_outputs + b.empty_outputs,
        expected_present=a.expected_present + b.expected_present,
        archetypes={
            name: (
                a.archetypes.get(name, _NONE)[0] + b.archetypes.get(name, _NONE)[0],
                a.archetypes.get(name, _NONE)[1] + b.archetypes.get(name, _NONE)[1],
            )
            for name in {**a.archetypes, **b.archetypes}
        },
    )
    last = max(one.last_scored_at, other.last_scored_at)
    return replace(one, snapshot=snapshot, expected_cases=expected, last_scored_at=last)


_NONE = (0, 0)


def _sums(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _add_batch(families: Mapping[str, GaugeMetricFamily], batch: ExportedBatch, concern_id: str) -> None:
    labels = (concern_id, batch.batch_id)
    snapshot = batch.snapshot
    families["safe_batch_pass_ratio"].add_metric(labels, snapshot.pass_ratio)
    for label, cases in snapshot.label_distribution.items():
        families["safe_batch_cases"].add_metric((*labels, label), cases)
    for criterion, mean in snapshot.mean_scores.items():
        families["safe_batch_mean_score"].add_metric((*labels, criterion), mean)
    for criterion, ratio in snapshot.pass_ratios.items():
        families["safe_batch_metric_pass_ratio"].add_metric((*labels, criterion), ratio)
    if batch.expected_cases is not None:
        families["safe_batch_expected_cases"].add_metric(labels, batch.expected_cases)
    families["safe_batch_complete"].add_metric(labels, int(batch.is_complete))
    families["safe_batch_last_update_timestamp_seconds"].add_metric(labels, batch.last_scored_at / 1_000)
    for archetype, (cases, passes) in _largest(snapshot.archetypes).items():
        families["safe_batch_archetype_cases"].add_metric((*labels, archetype), cases)
        families["safe_batch_archetype_pass_ratio"].add_metric((*labels, archetype), passes / cases if cases else 0.0)


def _largest(archetypes: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """The largest archetypes by name, all others together as `other`."""
    if len(archetypes) <= MAX_ARCHETYPES:
        return dict(archetypes)
    ordered = sorted(archetypes.items(), key=lambda entry: (-entry[1][0], entry[0]))
    kept = dict(ordered[:MAX_ARCHETYPES])
    rest = ordered[MAX_ARCHETYPES:]
    cases, passes = kept.get(OTHER, (0, 0))
    kept[OTHER] = (cases + sum(c for _, (c, _) in rest), passes + sum(p for _, (_, p) in rest))
    return kept


class _Collected(CollectorRegistry):
    """Families that have been gathered already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        super().__init__()
        self._families = list(families)

    @override
    def collect(self) -> Iterable[Metric]:
        return self._families


def page(families: Iterable[Metric]) -> bytes:
    """Write gathered families in Prometheus' text format; may run in a thread, gathering them may not."""
    return generate_latest(_Collected(families))
