"""The page that Prometheus scrapes: its names are promises."""

import math
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from consumer.dead_letter_reasons import REASONS
from consumer.telemetry.metrics import (
    MAX_ARCHETYPES,
    MAX_CONCERNS,
    OTHER,
    SERIES_PER_BATCH,
    BatchGauges,
    ExportedBatch,
    Histogram,
    Metrics,
    page,
)
from safe_core import CaseRow, CaseScore, Details, Label, LatestResults, Passed, Scores, Terms, Vacuous, id_problem
from safe_core.lenient_scores import Marks
from tests.support.golden import matches_golden

# name, type, labels, help
FAMILIES: list[tuple[str, str, set[str], str]] = [
    ("safe_records", "counter", {"outcome"}, "Records whose outcome is committed."),
    ("safe_cases", "counter", {"concern_id", "label"}, "Scored cases by label."),
    ("safe_dead_letters", "counter", {"reason"}, "Records that became dead letters."),
    (
        "safe_empty_outputs",
        "counter",
        {"concern_id"},
        "Scored outputs whose signals, summary and follow-up questions were all empty or white space.",
    ),
    (
        "safe_input_mismatches",
        "counter",
        {"concern_id"},
        "Scored outputs that were made from a narrative other than that of their test case.",
    ),
    (
        "safe_near_violations",
        "counter",
        {"concern_id"},
        "Forbidden terms that a scored output's questions have in another form, which AH does not find.",
    ),
    (
        "safe_unsupported_values",
        "counter",
        {"concern_id"},
        "Values of scored outputs that their narratives do not have; with SAFE_V0_UNSUPPORTED.",
    ),
    (
        "safe_outputs_with_checked_values",
        "counter",
        {"concern_id"},
        "Scored outputs whose values were compared with their narratives; with SAFE_V0_UNSUPPORTED.",
    ),
    (
        "safe_failed_generations",
        "counter",
        {"concern_id"},
        "Scored outputs that no model wrote: the call of the model had failed.",
    ),
    (
        "safe_results_not_latest",
        "counter",
        set(),
        "Results that did not count, because a later output of their case had one.",
    ),
    (
        "safe_event_times_ahead",
        "counter",
        set(),
        "Outputs whose event time was too far ahead of their record, so that the record's timestamp counted instead.",
    ),
    (
        "safe_misspelt_keys",
        "counter",
        {"key"},
        "Keys of scored events that nothing reads, counted by the key that is read and that they resemble.",
    ),
    ("safe_batches_reopened", "counter", set(), "Batches that a late record reopened after they were forgotten."),
    (
        "safe_restore_failures",
        "counter",
        set(),
        "Failed attempts to restore a partition's state. Each is repeated.",
    ),
    ("safe_expectations_requests", "counter", {"source", "outcome"}, "Look-ups of expectations."),
    (
        "safe_expectations_unusable",
        "gauge",
        {"source", "name"},
        "Batch files, or records of a topic, that cannot be used as they are now.",
    ),
    (
        "safe_end_to_end_seconds",
        "histogram",
        set(),
        "Time from the input record's timestamp to the commit of its result.",
    ),
    ("safe_scoring_seconds", "histogram", set(), "Time to score one output and encode its scored record."),
    (
        "safe_consumer_lag_records",
        "gauge",
        {"topic", "partition"},
        "Records from the group's committed offset to the end of the log, those behind an open transaction included.",
    ),
    (
        "safe_partition_waiting_seconds",
        "gauge",
        {"topic", "partition"},
        "How long a partition of this process has been waiting or restoring. It is 0 while the partition is served.",
    ),
    (
        "safe_partition_held_up_seconds",
        "gauge",
        {"topic", "partition"},
        "For how long the same transaction has been open in a partition that is read here. It is 0 while none is.",
    ),
    (
        "safe_clock_skew_seconds",
        "gauge",
        set(),
        "How many seconds the clock of this process is ahead of the brokers'. Negative if it is behind.",
    ),
    (
        "safe_group_strangers",
        "gauge",
        {"consumer_group"},
        (
            "Members of the consumer group that are not SAFE of this version and have taken it over. While it is not "
            "0, this worker serves nothing of the group."
        ),
    ),
    ("safe_ready", "gauge", set(), "Whether /readyz says yes: 1 or 0."),
    (
        "safe_login_refused",
        "gauge",
        set(),
        "Whether a broker refuses the worker's login, or the worker a broker's certificate: 1 or 0.",
    ),
    (
        "safe_tls_certificate_expiry_timestamp_seconds",
        "gauge",
        {"file"},
        "When the first certificate in a file expires, in seconds since 1970: CA file and client certificate.",
    ),
    (
        "safe_build_info",
        "gauge",
        {"version", "fingerprint"},
        "Version, fingerprint of the scoring rules and consumer group of this process.",
    ),
    ("safe_batch_pass_ratio", "gauge", {"concern_id", "batch_id"}, "Share of the batch's cases labelled Pass."),
    ("safe_batch_cases", "gauge", {"concern_id", "batch_id", "label"}, "Cases of the batch by label."),
    ("safe_batch_mean_score", "gauge", {"concern_id", "batch_id", "metric"}, "Mean score over the batch's cases."),
    (
        "safe_batch_mean_lenient",
        "gauge",
        {"concern_id", "batch_id", "metric"},
        "Mean lenient recall over the batch's cases that have it (SAFE_V0_LENIENT).",
    ),
    (
        "safe_batch_mean_coverage",
        "gauge",
        {"concern_id", "batch_id", "metric"},
        "Mean coverage over the batch's cases that have it (SAFE_V0_LENIENT).",
    ),
    (
        "safe_batch_metric_pass_ratio",
        "gauge",
        {"concern_id", "batch_id", "metric"},
        "Share of the batch's cases that passed the criterion.",
    ),
    (
        "safe_batch_failed_generations",
        "gauge",
        {"concern_id", "batch_id"},
        "Cases of the batch that no model has answered: every generation for them failed.",
    ),
    (
        "safe_batch_answered_pass_ratio",
        "gauge",
        {"concern_id", "batch_id"},
        "Share of the batch's answered cases (all but safe_batch_failed_generations) labelled Pass.",
    ),
    (
        "safe_batch_answered_mean_score",
        "gauge",
        {"concern_id", "batch_id", "metric"},
        "Mean score over the batch's answered cases (all but safe_batch_failed_generations).",
    ),
    (
        "safe_batch_expected_cases",
        "gauge",
        {"concern_id", "batch_id"},
        "Test cases that the batch has in the folder or topic of test cases.",
    ),
    (
        "safe_batch_complete",
        "gauge",
        {"concern_id", "batch_id"},
        "1 once the expected number of the batch's test cases (safe_batch_expected_cases) have a result, else 0.",
    ),
    (
        "safe_batch_last_update_timestamp_seconds",
        "gauge",
        {"concern_id", "batch_id"},
        "When the batch's last record was scored, in seconds since 1970.",
    ),
    (
        "safe_batch_archetype_pass_ratio",
        "gauge",
        {"concern_id", "batch_id", "archetype"},
        "Share of the archetype's cases labelled Pass.",
    ),
    ("safe_batch_archetype_cases", "gauge", {"concern_id", "batch_id", "archetype"}, "Cases of the archetype."),
    (
        "safe_batches_not_exported",
        "gauge",
        set(),
        "Live batches that the cap on exported batches leaves out.",
    ),
]


class Ownership:
    """Whether the partitions are surely ours, as a test decides."""

    def __init__(self) -> None:
        self.sure = True

    def __call__(self) -> bool:
        return self.sure


def row(
    offset: int,
    label: Label,
    archetype: str | None = "A",
    composite: float = 0.5,
    *,
    answered: bool = True,
    marked: bool = False,
) -> CaseRow:
    return CaseRow.of(
        version=(answered, 0, 0, offset),
        archetype=archetype,
        run_id=None,
        fingerprint="sha256:0",
        expected=True,
        case=CaseScore(
            Scores(0.25, 1.0, 0.75, composite),
            Details((), (), (), (), ()),
            Terms(4, 0, 4),
            Passed(CR=False, AH=True, AC=label == "Pass"),
            Vacuous(CR=False, AH=True, AC=False),
            empty_output=False,
            label=label,
        ),
        marks=Marks(0.5, 1.0, 625, 1_000) if marked else None,
    )


def batch(
    concern_id: str = "S11",
    batch_id: str = "B-1",
    labels: Iterable[Label] = ("Pass",),
    *,
    archetypes: Iterable[str | None] = (),
    expected_cases: int | None = 5,
    last_scored_at: int = 1_795_291_200_500,
    marked: bool = False,
) -> ExportedBatch:
    fold = LatestResults()
    for offset, label in enumerate(labels):
        fold.offer(f"T-{offset}", row(offset, label, marked=marked))
    for offset, archetype in enumerate(archetypes):
        fold.offer(f"A-{offset}", row(offset, "Pass", archetype, marked=marked))
    return ExportedBatch(concern_id, batch_id, fold.snapshot(), expected_cases, last_scored_at)


def metrics_with(
    *batches: ExportedBatch, max_exported: int = 1_000, ours: Ownership | None = None, group: str = ""
) -> Metrics:
    metrics = Metrics("0.1.0", "sha256:0", group)
    metrics.gauges = BatchGauges(max_exported, ours or Ownership())
    for number, each in enumerate(batches):
        metrics.gauges.put(number % 2, f"{each.concern_id}/{each.batch_id}/{number}", each)
    metrics.gauges.show(0)
    metrics.gauges.show(1)
    return metrics


def samples(metrics: Metrics, name: str) -> list[Sample]:
    families = text_string_to_metric_families(page(metrics.collect()).decode())
    return [sample for family in families for sample in family.samples if sample.name == name]


def value(metrics: Metrics, name: str, **labels: str) -> float:
    (found,) = [sample.value for sample in samples(metrics, name) if sample.labels == labels]
    return float(found)


def full() -> Metrics:
    """Metrics with a sample of everything."""
    metrics = metrics_with(batch(marked=True), group="safe-v0")
    metrics.count_all(
        {
            ("safe_records", "scored"): 2,
            ("safe_cases", "S11", "Pass"): 2,
            ("safe_dead_letters", "invalid_json"): 1,
            ("safe_empty_outputs", "S11"): 1,
            ("safe_input_mismatches", "S11"): 2,
            ("safe_near_violations", "S11"): 1,
            ("safe_unsupported_values", "S11"): 3,
            ("safe_outputs_with_checked_values", "S11"): 2,
            ("safe_failed_generations", "S11"): 1,
        }
    )
    metrics.scoring.observe([0.000_02])
    metrics.count("safe_results_not_latest")
    metrics.count("safe_event_times_ahead")
    metrics.count("safe_batches_reopened")
    metrics.end_to_end.observe([0.02])
    metrics.ready = lambda: True
    metrics.clock_skew = lambda: -0.25
    metrics.certificate_ends = lambda: {"/etc/safe/tls/tls.crt": 1_800_000_000.0}
    metrics.lags = lambda: {("input", 0): 7}
    metrics.waits = lambda: {("input", 0): 2.5}
    metrics.held_up = lambda: {("input", 0): 1.5}
    metrics.strangers = lambda: {"safe-v0": 1}
    metrics.expectations_requests = lambda: {("folder", "found"): 3}
    metrics.unusable_expectations = lambda: [("folder", "broken.json")]
    return metrics


# --- the promise ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "type_", "labels", "help_"), FAMILIES, ids=[row[0] for row in FAMILIES])
def test_each_metric_has_its_name_type_labels_and_help(name: str, type_: str, labels: set[str], help_: str) -> None:
    (family,) = [f for f in text_string_to_metric_families(page(full().collect()).decode()) if f.name == name]
    assert (family.type, family.documentation) == (type_, help_)
    assert family.samples
    assert {frozenset(sample.labels) - {"le"} for sample in family.samples} == {frozenset(labels | {"group"})}


def test_there_is_no_other_metric() -> None:
    families = {family.name for family in text_string_to_metric_families(page(full().collect()).decode())}
    assert families == {name for name, *_ in FAMILIES}


def test_the_whole_page_is_as_it_was() -> None:
    matches_golden("metrics.prom", page(full().collect()).decode(), folder="monitoring")


def test_the_page_of_a_process_that_has_done_nothing_parses_and_starts_from_zero() -> None:
    metrics = Metrics("0.1.0", "sha256:0")
    counted = {sample.labels["outcome"]: sample.value for sample in samples(metrics, "safe_records_total")}
    assert counted == {"scored": 0, "dead_lettered": 0, "ignored": 0, "foreign": 0}
    assert {sample.labels["reason"] for sample in samples(metrics, "safe_dead_letters_total")} == set(REASONS)
    assert {sample.value for sample in samples(metrics, "safe_dead_letters_total")} == {0}
    assert value(metrics, "safe_batches_reopened_total") == value(metrics, "safe_restore_failures_total") == 0
    assert value(metrics, "safe_ready") == 0
    assert value(metrics, "safe_build_info", version="0.1.0", fingerprint="sha256:0") == 1


def test_a_batch_is_shown_as_it_was_committed() -> None:
    metrics = metrics_with(batch(labels=["Pass", "Pass", "Review", "Fail"], marked=True))
    ids = {"concern_id": "S11", "batch_id": "B-1"}
    assert value(metrics, "safe_batch_pass_ratio", **ids) == 0.5
    shown = {sample.labels["label"]: sample.value for sample in samples(metrics, "safe_batch_cases")}
    assert shown == {"Pass": 2, "Review": 1, "Fail": 1}
    means = {sample.labels["metric"]: sample.value for sample in samples(metrics, "safe_batch_mean_score")}
    assert means == {"CR": 0.25, "AH": 1.0, "AC": 0.75, "composite": 0.5}
    lenient = {sample.labels["metric"]: sample.value for sample in samples(metrics, "safe_batch_mean_lenient")}
    assert lenient == {"CR": 0.5, "AC": 1.0}
    coverage = {sample.labels["metric"]: sample.value for sample in samples(metrics, "safe_batch_mean_coverage")}
    assert coverage == {"CR": 0.625, "AC": 1.0}
    ratios = {sample.labels["metric"]: sample.value for sample in samples(metrics, "safe_batch_metric_pass_ratio")}
    assert ratios == {"CR": 0.0, "AH": 1.0, "AC": 0.5}
    assert value(metrics, "safe_batch_expected_cases", **ids) == 5
    assert value(metrics, "safe_batch_complete", **ids) == 0
    assert value(metrics, "safe_batch_last_update_timestamp_seconds", **ids) == 1_795_291_200.5
    assert value(metrics, "safe_batch_archetype_cases", **ids, archetype="A") == 4
    assert value(metrics, "safe_batch_archetype_pass_ratio", **ids, archetype="A") == 0.5


def test_a_failed_generation_is_left_out_of_what_tells_of_answers() -> None:
    fold = LatestResults()
    fold.offer("T-0", row(0, "Pass", composite=0.75))
    fold.offer("T-1", row(1, "Review", composite=0.75))
    for offset in range(2, 5):
        fold.offer(f"T-{offset}", row(offset, "Fail", composite=0.0, answered=False))
    one = ExportedBatch("S11", "B-1", fold.snapshot(), 5, 0)
    ids = {"concern_id": "S11", "batch_id": "B-1"}
    metrics = metrics_with(one)
    assert value(metrics, "safe_batch_pass_ratio", **ids) == 0.2  # of all cases, as ever
    assert value(metrics, "safe_batch_failed_generations", **ids) == 3
    assert value(metrics, "safe_batch_answered_pass_ratio", **ids) == 0.5
    assert value(metrics, "safe_batch_answered_mean_score", **ids, metric="composite") == 0.75
    others = [replace(one, concern_id=f"C-{number}", last_scored_at=1) for number in range(MAX_CONCERNS)]
    metrics = metrics_with(*others, one, one)  # the last two are both of `other`
    ids["concern_id"] = OTHER
    assert value(metrics, "safe_batch_failed_generations", **ids) == 6
    assert value(metrics, "safe_batch_answered_pass_ratio", **ids) == 0.5


def test_of_a_batch_without_any_answer_no_quality_is_told() -> None:
    fold = LatestResults()
    fold.offer("T", row(0, "Fail", answered=False))
    metrics = metrics_with(ExportedBatch("S11", "B-1", fold.snapshot(), 5, 0))
    assert value(metrics, "safe_batch_failed_generations", concern_id="S11", batch_id="B-1") == 1
    assert samples(metrics, "safe_batch_answered_pass_ratio") == []
    assert samples(metrics, "safe_batch_answered_mean_score") == []


def test_a_batch_whose_expected_cases_nobody_knows_has_no_such_series() -> None:
    metrics = metrics_with(batch(expected_cases=None))
    assert samples(metrics, "safe_batch_expected_cases") == []
    assert value(metrics, "safe_batch_complete", concern_id="S11", batch_id="B-1") == 0


def test_a_batch_is_complete_once_each_of_its_own_cases_has_a_result() -> None:
    metrics = metrics_with(batch(labels=["Pass", "Fail"], expected_cases=2))
    assert value(metrics, "safe_batch_complete", concern_id="S11", batch_id="B-1") == 1


def test_buckets_are_cumulative_and_a_bound_belongs_to_its_bucket() -> None:
    histogram = Histogram("safe_x_seconds", "X.", (0.1, 1.0))
    histogram.observe([0.05, 0.1, 0.100_001, 1.0, 7.0])
    shown = {sample.labels.get("le", sample.name): sample.value for sample in histogram.collect().samples}
    assert shown == {
        "0.1": 2,
        "1.0": 4,
        "+Inf": 5,
        "safe_x_seconds_count": 5,
        "safe_x_seconds_sum": pytest.approx(8.250_001),
    }


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_concerns_beyond_a_hundred_count_as_other() -> None:
    metrics = Metrics("0.1.0", "sha256:0")
    for number in range(150):
        concern_id = f"C-{number}"
        metrics.count_all({("safe_cases", concern_id, "Pass"): 1, ("safe_empty_outputs", concern_id): 1})
    metrics.count_all({("safe_cases", "C-3", "Pass"): 1, ("safe_cases", "C-149", "Pass"): 1})
    assert len(samples(metrics, "safe_cases_total")) == 101
    assert value(metrics, "safe_cases_total", concern_id="other", label="Pass") == 51
    assert value(metrics, "safe_cases_total", concern_id="C-3", label="Pass") == 2
    assert value(metrics, "safe_empty_outputs_total", concern_id="other") == 50


def test_batches_of_concerns_beyond_a_hundred_are_shown_as_other() -> None:
    metrics = metrics_with(*(batch(f"C-{n}", f"B-{n}", last_scored_at=n) for n in range(150)))
    concerns = [sample.labels["concern_id"] for sample in samples(metrics, "safe_batch_pass_ratio")]
    assert len(concerns) == 150
    assert len(set(concerns)) == 101
    assert concerns.count("other") == 50


def test_no_series_comes_twice_where_batches_of_one_name_are_all_of_other_concerns() -> None:
    metrics = metrics_with(
        *(batch(f"C-{n}", "golden", ["Pass", "Fail"], archetypes=["A"], marked=True) for n in range(104))
    )
    lines = [line for line in page(metrics.collect()).decode().splitlines() if not line.startswith("#")]
    series = [line.rpartition(" ")[0] for line in lines]
    assert len(series) == len(set(series))
    other = {"concern_id": "other", "batch_id": "golden"}
    assert value(metrics, "safe_batch_cases", **other, label="Pass") == 8
    assert value(metrics, "safe_batch_cases", **other, label="Fail") == 4
    assert value(metrics, "safe_batch_pass_ratio", **other) == 8 / 12
    assert value(metrics, "safe_batch_mean_score", **other, metric="CR") == 0.25
    assert value(metrics, "safe_batch_mean_coverage", **other, metric="CR") == 0.625
    assert value(metrics, "safe_batch_archetype_cases", **other, archetype="A") == 12
    assert value(metrics, "safe_batch_expected_cases", **other) == 20


def test_archetypes_beyond_twenty_count_as_other_the_largest_are_named() -> None:
    archetypes = [f"A{n:02d}" for n in range(30) for _ in range(1 if n < 10 else 3)]
    metrics = metrics_with(batch(labels=(), archetypes=archetypes))
    shown = {sample.labels["archetype"]: sample.value for sample in samples(metrics, "safe_batch_archetype_cases")}
    assert shown == {**{f"A{n:02d}": 3 for n in range(10, 30)}, "other": 10}


def test_an_archetype_that_is_called_other_is_counted_with_them() -> None:
    archetypes = ["other"] * 5 + [f"A{n:02d}" for n in range(30) for _ in range(2)]
    metrics = metrics_with(batch(labels=(), archetypes=archetypes))
    shown = {sample.labels["archetype"]: sample.value for sample in samples(metrics, "safe_batch_archetype_cases")}
    assert sum(shown.values()) == 65
    assert shown["other"] == 5 + 2 * (30 - 19)


def test_the_cap_drops_the_longest_idle_and_says_how_many() -> None:
    batches = [batch(batch_id=f"B-{n}", last_scored_at=(n * 7) % 10) for n in range(10)]
    metrics = metrics_with(*batches, max_exported=3)
    latest = sorted(batches, key=lambda each: -each.last_scored_at)[:3]
    shown = {sample.labels["batch_id"] for sample in samples(metrics, "safe_batch_pass_ratio")}
    assert shown == {each.batch_id for each in latest}
    assert value(metrics, "safe_batches_not_exported") == 7


def batch_series(metrics: Metrics) -> int:
    """How many series of batches the page has."""
    families = text_string_to_metric_families(page(metrics.collect()).decode())
    return sum(len(family.samples) for family in families if family.name.startswith("safe_batch_"))


# How many archetypes a batch has, how many of them are shown.
@pytest.mark.parametrize(("archetypes", "shown"), [(1, 1), (20, 20), (21, 21), (1_000, 21)])
def test_a_batch_has_so_many_series_and_no_more(archetypes: int, shown: int) -> None:
    named = [f"A-{number}" for number in range(archetypes)]
    metrics = metrics_with(batch(labels=(), archetypes=named))
    assert batch_series(metrics) == SERIES_PER_BATCH + 2 * shown
    assert batch_series(metrics) <= SERIES_PER_BATCH + 2 * (MAX_ARCHETYPES + 1) == 62
    assert batch_series(metrics_with(batch(labels=(), archetypes=named, marked=True))) == batch_series(metrics) + 4


def test_the_cap_bounds_the_page_whatever_is_live() -> None:
    named = [f"A-{number}" for number in range(30)]
    metrics = metrics_with(*(batch(f"C-{n}", f"B-{n}", (), archetypes=named) for n in range(250)), max_exported=40)
    assert batch_series(metrics) == 40 * 62
    assert value(metrics, "safe_batches_not_exported") == 210


def test_an_unusable_part_of_the_expectations_is_named_and_those_beyond_twenty_are_not() -> None:
    metrics = Metrics("0.1.0", "sha256:0")
    metrics.unusable_expectations = lambda: [("folder", f"{number:02}\u202e.json") for number in range(50)]
    shown = {sample.labels["name"]: sample.value for sample in samples(metrics, "safe_expectations_unusable")}
    assert len(shown) == 21
    assert shown["other"] == 30
    assert not any("\u202e" in name for name in shown)


# --- whose batches they are -------------------------------------------------------------------------------------------


def batches_shown(metrics: Metrics) -> set[str]:
    return {sample.labels["batch_id"] for sample in samples(metrics, "safe_batch_pass_ratio")}


def test_nothing_is_shown_while_the_partitions_are_not_surely_ours() -> None:
    ours = Ownership()
    metrics = metrics_with(batch(), ours=ours)
    ours.sure = False
    assert batches_shown(metrics) == set()
    assert samples(metrics, "safe_batches_not_exported") == [], "0 would say that all are shown"
    ours.sure = True
    assert batches_shown(metrics) == {"B-1"}


def test_a_hidden_partition_comes_back_and_a_dropped_one_does_not() -> None:
    metrics = metrics_with(batch(batch_id="B-0"), batch(batch_id="B-1"))
    gauges = metrics.gauges
    assert gauges is not None
    gauges.hide(0)
    assert batches_shown(metrics) == {"B-1"}
    gauges.show(0)
    assert batches_shown(metrics) == {"B-0", "B-1"}
    gauges.drop(0)
    assert batches_shown(metrics) == {"B-1"}
    gauges.show(0)
    assert batches_shown(metrics) == {"B-1"}


def test_a_forgotten_batch_goes_and_what_was_never_there_is_no_error() -> None:
    metrics = metrics_with(batch())
    gauges = metrics.gauges
    assert gauges is not None
    gauges.remove(0, "S11/B-1/0")
    gauges.remove(5, "S11/B-1/0")
    assert batches_shown(metrics) == set()


# --- what may stand in a label ----------------------------------------------------------------------------------------

ids = st.text(max_size=12).filter(lambda text: id_problem(text) is None) | st.sampled_from(
    ['a"b', "a\\b", "\\n", 'x\\"', '"} evil 1', "{=,}", " padded ", "\u2028", "🩺", "\u202etxt"]
)


@given(concern_id=ids, batch_id=ids, archetype=ids)
def test_any_id_comes_back_from_the_page_as_it_was(concern_id: str, batch_id: str, archetype: str) -> None:
    metrics = metrics_with(batch(concern_id, batch_id, labels=(), archetypes=[archetype]))
    metrics.count("safe_cases", concern_id, "Pass")
    labels = {"concern_id": concern_id, "batch_id": batch_id}
    assert value(metrics, "safe_batch_archetype_cases", **labels, archetype=archetype) == 1
    assert value(metrics, "safe_cases_total", concern_id=concern_id, label="Pass") == 1


@pytest.mark.parametrize("unfit", ["a\nb", "a\rb", "a\x00b", "\ud800", "a\x85b"])
def test_what_would_break_the_page_is_no_id(unfit: str) -> None:
    assert id_problem(unfit) is not None


def test_every_value_is_a_finite_number() -> None:
    for family in text_string_to_metric_families(page(full().collect()).decode()):
        assert all(math.isfinite(sample.value) for sample in family.samples)
