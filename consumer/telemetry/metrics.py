"""What Prometheus sees (contract.md, "Gauges"): tables of names, types, help texts and labels.

Gauges of batches follow committed state and are worked out when asked for; everything else is counted after the commit.
"""

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from typing_extensions import override

from consumer.dead_letter_reasons import REASONS
from consumer.text import visible
from safe_core import MAX_ID_LENGTH, BatchSnapshot
from safe_core.batch_statistics import share
from safe_core.misspelt_keys import READ_KEYS

OTHER = "other"
MAX_CONCERNS = 100
MAX_ARCHETYPES = 20
MAX_UNUSABLE = 20
SERIES_PER_BATCH = 20
"""Of a batch itself; each archetype that it shows, `other` included, adds two."""

_END_TO_END_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_SCORING_BUCKETS = (0.000005, 0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.01, 0.1, 1.0)


_Family = CounterMetricFamily | GaugeMetricFamily


class _Definition(NamedTuple):
    family: type[_Family]
    help: str
    labels: tuple[str, ...] = ()
    counted_from_zero: Sequence[str] = ()  # values of its one label that make a rate visible from the first event on


_counter = partial(_Definition, CounterMetricFamily)
_gauge = partial(_Definition, GaugeMetricFamily)

# Counted here, after each commit.
_COUNTERS: Mapping[str, _Definition] = {
    "safe_records": _counter(
        "Records whose outcome is committed.", ("outcome",), ("scored", "dead_lettered", "ignored", "foreign")
    ),
    "safe_cases": _counter("Scored cases by label.", ("concern_id", "label")),
    "safe_dead_letters": _counter("Records that became dead letters.", ("reason",), REASONS),
    "safe_empty_outputs": _counter(
        "Scored outputs whose signals, summary and follow-up questions were all empty or white space.", ("concern_id",)
    ),
    "safe_input_mismatches": _counter(
        "Scored outputs that were made from a narrative other than that of their test case.", ("concern_id",)
    ),
    "safe_near_violations": _counter(
        "Forbidden terms that a scored output's questions have in another form, which AH does not find.",
        ("concern_id",),
    ),
    "safe_unsupported_values": _counter(
        "Values of scored outputs that their narratives do not have; with SAFE_V0_UNSUPPORTED.", ("concern_id",)
    ),
    "safe_outputs_with_checked_values": _counter(
        "Scored outputs whose values were compared with their narratives; with SAFE_V0_UNSUPPORTED.", ("concern_id",)
    ),
    "safe_failed_generations": _counter(
        "Scored outputs that no model wrote: the call of the model had failed.", ("concern_id",)
    ),
    "safe_results_not_latest": _counter("Results that did not count, because a later output of their case had one."),
    "safe_event_times_ahead": _counter(
        "Outputs whose event time was too far ahead of their record, so that the record's timestamp counted instead."
    ),
    "safe_misspelt_keys": _counter(
        "Keys of scored events that nothing reads, counted by the key that is read and that they resemble.",
        ("key",),
        READ_KEYS,
    ),
    "safe_batches_reopened": _counter("Batches that a late record reopened after they were forgotten."),
    "safe_restore_failures": _counter("Failed attempts to restore a partition's state. Each is repeated."),
}

# Asked of the parts of the worker at each scrape.
_ASKED: Mapping[str, _Definition] = {
    "safe_expectations_requests": _counter("Look-ups of expectations.", ("source", "outcome")),
    "safe_expectations_unusable": _gauge(
        "Batch files, or records of a topic, that cannot be used as they are now.", ("source", "name")
    ),
    "safe_consumer_lag_records": _gauge(
        "Records from the group's committed offset to the end of the log, those behind an open transaction included.",
        ("topic", "partition"),
    ),
    "safe_partition_waiting_seconds": _gauge(
        "How long a partition of this process has been waiting or restoring. It is 0 while the partition is served.",
        ("topic", "partition"),
    ),
    "safe_partition_held_up_seconds": _gauge(
        "For how long the same transaction has been open in a partition that is read here. It is 0 while none is.",
        ("topic", "partition"),
    ),
    "safe_clock_skew_seconds": _gauge(
        "How many seconds the clock of this process is ahead of the brokers'. Negative if it is behind."
    ),
    "safe_group_strangers": _gauge(
        "Members of the consumer group that are not SAFE of this version and have taken it over. While it is not 0, "
        "this worker serves nothing of the group.",
        ("consumer_group",),
    ),
    "safe_ready": _gauge("Whether /readyz says yes: 1 or 0."),
    "safe_login_refused": _gauge(
        "Whether a broker refuses the worker's login, or the worker a broker's certificate: 1 or 0."
    ),
    "safe_tls_certificate_expiry_timestamp_seconds": _gauge(
        "When the first certificate in a file expires, in seconds since 1970: CA file and client certificate.",
        ("file",),
    ),
    "safe_build_info": _gauge(
        "Version, fingerprint of the scoring rules and consumer group of this process.",
        ("version", "fingerprint"),
    ),
    "safe_batches_not_exported": _gauge("Live batches that the cap on exported batches leaves out."),
}

_BATCH_LABELS = ("concern_id", "batch_id")
_BATCH_GAUGES: Mapping[str, _Definition] = {
    "safe_batch_pass_ratio": _gauge("Share of the batch's cases labelled Pass.", _BATCH_LABELS),
    "safe_batch_cases": _gauge("Cases of the batch by label.", (*_BATCH_LABELS, "label")),
    "safe_batch_mean_score": _gauge("Mean score over the batch's cases.", (*_BATCH_LABELS, "metric")),
    "safe_batch_mean_lenient": _gauge(
        "Mean lenient recall over the batch's cases that have it (SAFE_V0_LENIENT).", (*_BATCH_LABELS, "metric")
    ),
    "safe_batch_mean_coverage": _gauge(
        "Mean coverage over the batch's cases that have it (SAFE_V0_LENIENT).", (*_BATCH_LABELS, "metric")
    ),
    "safe_batch_metric_pass_ratio": _gauge(
        "Share of the batch's cases that passed the criterion.", (*_BATCH_LABELS, "metric")
    ),
    "safe_batch_failed_generations": _gauge(
        "Cases of the batch that no model has answered: every generation for them failed.", _BATCH_LABELS
    ),
    "safe_batch_answered_pass_ratio": _gauge(
        "Share of the batch's answered cases (all but safe_batch_failed_generations) labelled Pass.", _BATCH_LABELS
    ),
    "safe_batch_answered_mean_score": _gauge(
        "Mean score over the batch's answered cases (all but safe_batch_failed_generations).",
        (*_BATCH_LABELS, "metric"),
    ),
    "safe_batch_expected_cases": _gauge(
        "Test cases that the batch has in the folder or topic of test cases.", _BATCH_LABELS
    ),
    "safe_batch_complete": _gauge(
        "1 once the expected number of the batch's test cases (safe_batch_expected_cases) have a result, else 0.",
        _BATCH_LABELS,
    ),
    "safe_batch_last_update_timestamp_seconds": _gauge(
        "When the batch's last record was scored, in seconds since 1970.", _BATCH_LABELS
    ),
    "safe_batch_archetype_pass_ratio": _gauge(
        "Share of the archetype's cases labelled Pass.", (*_BATCH_LABELS, "archetype")
    ),
    "safe_batch_archetype_cases": _gauge("Cases of the archetype.", (*_BATCH_LABELS, "archetype")),
}
_DEFINITIONS = {**_COUNTERS, **_ASKED, **_BATCH_GAUGES}


def _family(name: str, samples: Iterable[tuple[tuple[object, ...], float]]) -> _Family:
    """Fill a family of the tables with its samples, each of the values of its labels and a number."""
    definition = _DEFINITIONS[name]
    family = definition.family(name, definition.help, labels=definition.labels)
    for labels, value in samples:
        family.add_metric(tuple(map(str, labels)), value)
    return family


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
    """The live batches of this process, shown while their partition is surely ours; of too many, the latest ones."""

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
        """The partition is served; `restored` gives the batches that it had when it was restored, once."""
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

    def exported(self) -> tuple[list[ExportedBatch], int | None]:
        """The batches to show, latest first, and how many the cap leaves out: unknown while ours may be another's."""
        if not self._is_surely_ours():
            return [], None
        live = [batch for partition in self._visible for batch in self._partitions.get(partition, {}).values()]
        live.sort(key=lambda batch: batch.last_scored_at, reverse=True)
        return live[: self._max_exported], max(0, len(live) - self._max_exported)


class Metrics:
    """All counters of the process, and the page that Prometheus scrapes."""

    def __init__(self, version: str, fingerprint: str, group: str = "") -> None:
        self._counts: dict[str, Tally[tuple[str, ...]]] = {
            name: Tally({(value,): 0 for value in definition.counted_from_zero} if definition.labels else {(): 0})
            for name, definition in _COUNTERS.items()
        }
        self._concerns: set[str] = set()
        self._build = (version, fingerprint)
        self._of_all = {"group": group} if group else {}
        self.gauges: BatchGauges | None = None
        self.clock_skew: Callable[[], float | None] = lambda: None
        self.ready: Callable[[], bool] = lambda: False
        self.login_refused: Callable[[], bool] = lambda: False
        self.certificate_ends: Callable[[], Mapping[str, float]] = dict
        self.lags: Callable[[], Mapping[tuple[str, int], int]] = dict
        self.waits: Callable[[], Mapping[tuple[str, int], float]] = dict
        self.held_up: Callable[[], Mapping[tuple[str, int], float]] = dict
        self.strangers: Callable[[], Mapping[str, int]] = dict
        self.expectations_requests: Callable[[], Mapping[tuple[str, str], int]] = dict
        self.unusable_expectations: Callable[[], Sequence[tuple[str, str]]] = list
        self.end_to_end = Histogram(
            "safe_end_to_end_seconds",
            "Time from the input record's timestamp to the commit of its result.",
            _END_TO_END_BUCKETS,
        )
        self.scoring = Histogram(
            "safe_scoring_seconds", "Time to score one output and encode its scored record.", _SCORING_BUCKETS
        )

    # --- counting -----------------------------------------------------------------------------------------------------

    def count(self, name: str, *labels: str, by: int = 1) -> None:
        """Move one counter of the table above; a concern beyond the first ones counts as `other`."""
        if _COUNTERS[name].labels[:1] == ("concern_id",):
            labels = (_bounded(labels[0], self._concerns), *labels[1:])
        self._counts[name][labels] += by

    def count_all(self, counts: Mapping[tuple[str, ...], int]) -> None:
        """Move several counters, each by its number; the name of a counter and its labels are the key."""
        for (name, *labels), by in counts.items():
            self.count(name, *labels, by=by)

    # --- the page -----------------------------------------------------------------------------------------------------

    def collect(self) -> Iterator[Metric]:
        """What prometheus_client asks a collector for."""
        return self.of_group(self._collected())

    def of_group(self, families: Iterable[Metric]) -> Iterator[Metric]:
        """Put the group on every series: only by it can two installations in one namespace be distinguished."""
        for family in families:
            for sample in family.samples:
                sample.labels.update(self._of_all)
            yield family

    def _collected(self) -> Iterator[Metric]:
        for name, counts in self._counts.items():
            yield _family(name, counts.items())
        yield self.end_to_end.collect()
        yield self.scoring.collect()
        yield _family("safe_expectations_requests", self.expectations_requests().items())
        yield _family("safe_expectations_unusable", self._unusable_expectations().items())
        yield _family("safe_consumer_lag_records", self.lags().items())
        yield _family("safe_partition_waiting_seconds", self.waits().items())
        yield _family("safe_partition_held_up_seconds", self.held_up().items())
        skew = self.clock_skew()
        yield _family("safe_clock_skew_seconds", [] if skew is None else [((), skew)])
        yield _family("safe_group_strangers", [((group,), count) for group, count in self.strangers().items()])
        yield _family("safe_ready", [((), int(self.ready()))])
        yield _family("safe_login_refused", [((), int(self.login_refused()))])
        ends = self.certificate_ends()
        yield _family("safe_tls_certificate_expiry_timestamp_seconds", [((file,), end) for file, end in ends.items()])
        yield _family("safe_build_info", [(self._build, 1)])
        yield from self._batches()

    def _unusable_expectations(self) -> Tally[tuple[str, str]]:
        """Count by source and name; beyond the first few, all are `other`."""
        parts = self.unusable_expectations()
        tally = Tally((source, visible(name)[:MAX_ID_LENGTH]) for source, name in parts[:MAX_UNUSABLE])
        tally.update((source, OTHER) for source, _ in parts[MAX_UNUSABLE:])
        return tally

    def _batches(self) -> Iterator[Metric]:
        exported, left_out = self.gauges.exported() if self.gauges is not None else ([], 0)
        shown_concerns: set[str] = set()
        series: dict[tuple[str, str], ExportedBatch] = {}
        for batch in exported:
            # Two batches of one name may both be of `other` concerns: Prometheus refuses the same series twice.
            labels = _bounded(batch.concern_id, shown_concerns), batch.batch_id
            series[labels] = _together(series[labels], batch) if labels in series else batch
        families = {name: _family(name, ()) for name in _BATCH_GAUGES}
        for labels, batch in series.items():
            _add_batch(families, labels, batch)
        yield from families.values()
        yield _family("safe_batches_not_exported", [] if left_out is None else [((), left_out)])


def _bounded(concern_id: str, named: set[str]) -> str:
    """The concern as a label: `other` once this many have been named."""
    if concern_id not in named and len(named) >= MAX_CONCERNS:
        return OTHER
    named.add(concern_id)
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
        failed_generations=a.failed_generations + b.failed_generations,
        answered_passes=a.answered_passes + b.answered_passes,
        answered_units=_sums(a.answered_units, b.answered_units),
        archetypes={
            name: _pair_sum([part.archetypes.get(name, (0, 0)) for part in (a, b)])
            for name in {**a.archetypes, **b.archetypes}
        },
        marks=a.marks.with_those_of(b.marks),
    )
    last = max(one.last_scored_at, other.last_scored_at)
    return replace(one, snapshot=snapshot, expected_cases=expected, last_scored_at=last)


def _pair_sum(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    cases, passes = zip(*pairs, strict=True)
    return sum(cases), sum(passes)


def _sums(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _add_batch(families: Mapping[str, _Family], labels: tuple[str, str], batch: ExportedBatch) -> None:
    snapshot = batch.snapshot
    families["safe_batch_pass_ratio"].add_metric(labels, snapshot.pass_ratio)
    for label, cases in snapshot.label_distribution.items():
        families["safe_batch_cases"].add_metric((*labels, label), cases)
    for criterion, mean in snapshot.mean_scores.items():
        families["safe_batch_mean_score"].add_metric((*labels, criterion), mean)
    for name in ("mean_lenient", "mean_coverage"):
        for criterion, mean in snapshot.marks.means.get(name, {}).items():
            families[f"safe_batch_{name}"].add_metric((*labels, criterion), mean)
    for criterion, ratio in snapshot.pass_ratios.items():
        families["safe_batch_metric_pass_ratio"].add_metric((*labels, criterion), ratio)
    families["safe_batch_failed_generations"].add_metric(labels, snapshot.failed_generations)
    if snapshot.answered_cases:  # of none, nothing is known
        families["safe_batch_answered_pass_ratio"].add_metric(labels, snapshot.answered_pass_ratio)
        for criterion, mean in snapshot.answered_mean_scores.items():
            families["safe_batch_answered_mean_score"].add_metric((*labels, criterion), mean)
    if batch.expected_cases is not None:
        families["safe_batch_expected_cases"].add_metric(labels, batch.expected_cases)
    families["safe_batch_complete"].add_metric(labels, int(batch.is_complete))
    families["safe_batch_last_update_timestamp_seconds"].add_metric(labels, batch.last_scored_at / 1_000)
    for archetype, (cases, passes) in _largest(snapshot.archetypes).items():
        families["safe_batch_archetype_cases"].add_metric((*labels, archetype), cases)
        families["safe_batch_archetype_pass_ratio"].add_metric((*labels, archetype), share(passes, cases))


def _largest(archetypes: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """The largest archetypes by name, all others together as `other`."""
    if len(archetypes) <= MAX_ARCHETYPES:
        return dict(archetypes)
    ordered = sorted(archetypes.items(), key=lambda entry: (-entry[1][0], entry[0]))
    kept = dict(ordered[:MAX_ARCHETYPES])
    others = [counts for _, counts in ordered[MAX_ARCHETYPES:]]
    return {**kept, OTHER: _pair_sum([kept.get(OTHER, (0, 0)), *others])}


class _Collected(CollectorRegistry):
    """Families that have been gathered already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        super().__init__()
        self._families = list(families)

    @override
    def collect(self) -> Iterable[Metric]:
        return self._families


def page(families: Iterable[Metric], encode: Callable[[CollectorRegistry], bytes] = generate_latest) -> bytes:
    """Write gathered families, in Prometheus' text format unless told otherwise; may run in a thread."""
    return encode(_Collected(families))
