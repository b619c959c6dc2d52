"""Eight installations in one Prometheus, as series: two clusters, two namespaces, two groups; and what makes them ill.

All have workers, partitions and batches of the same names: nothing but cluster, namespace and group tells them apart.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

MINUTES = 180
ILL_FROM = 60
LATE_FROM = 130
"""Of what an alert remembers for an hour."""
INSTALLATION = ("cluster", "namespace", "group")
Values = list[float | None]
Series = dict[str, Values]


@dataclass(frozen=True, slots=True)
class Installation:
    """Where a group of workers runs."""

    cluster: str
    namespace: str
    group: str

    def series(self, name: str, worker: str | None = "a", /, **labels: str) -> str:
        """The name of a series as Prometheus has it; `up` is Prometheus' own and knows no group."""
        own = {"cluster": self.cluster, "namespace": self.namespace, "job": "safe"}
        own |= {} if worker is None else {"instance": worker}
        own |= {} if name == "up" else {"group": self.group}
        return f"{name}{{{', '.join(f'{key}={json.dumps(value)}' for key, value in (own | labels).items())}}}"


EIGHT = [Installation(*labels) for labels in product(("east", "west"), ("prod", "staging"), ("blue", "green"))]
WORKERS = ("a", "b")


def steady(value: float) -> Values:
    return [value] * (MINUTES + 1)


def growing(step: float) -> Values:
    return [step * minute for minute in range(MINUTES + 1)]


def then(before: float | None, after: float | None, *, at: int = ILL_FROM) -> Values:
    return [before if minute < at else after for minute in range(MINUTES + 1)]


def rising(step: float, *, at: int = ILL_FROM) -> Values:
    return [max(0, minute - at) * step for minute in range(MINUTES + 1)]


# --- an installation that is well -------------------------------------------------------------------------------------

BATCH = {"concern_id": "S11", "batch_id": "W"}
HALF = {"concern_id": "S11", "batch_id": "V"}


def healthy(here: Installation) -> Series:
    """Two workers, a thousand records a minute, and a good batch that is watched."""
    series: Series = {}
    for number, worker in enumerate(WORKERS):
        # Addresses of workers are their installation's own: no target serves two groups.
        series |= {
            here.series("up", _address(here, worker)): steady(1),
            here.series("safe_build_info", _address(here, worker), version="1", fingerprint="x"): steady(1),
            here.series("safe_ready", worker): steady(1),
            here.series("safe_restore_failures_total", worker): steady(0),
        }
        for topic in ("input", "scored"):
            place = {"topic": topic, "partition": str(number)}
            series[here.series("safe_partition_waiting_seconds", worker, **place)] = steady(0)
    series |= traffic(here, dead=steady(0)) | latency(here, late=0) | batch(here, BATCH, cases=30, passed=27)
    swinging = [float(40 * (minute % 2)) for minute in range(MINUTES + 1)]
    series[here.series("safe_consumer_lag_records", topic="input", partition="0")] = [*swinging]
    return series


def _address(here: Installation, worker: str) -> str:
    return f"{worker}.{here.group}"


def traffic(here: Installation, dead: Values) -> Series:
    return {
        here.series("safe_records_total", outcome="scored"): growing(1_000),
        here.series("safe_records_total", outcome="dead_lettered"): dead,
    }


def latency(here: Installation, late: float) -> Series:
    return {
        here.series("safe_end_to_end_seconds_bucket", le="30.0"): growing(1_000 * (1 - late)),
        here.series("safe_end_to_end_seconds_count"): growing(1_000),
    }


def batch(
    here: Installation, which: Mapping[str, str], *, cases: int, passed: int, complete: bool = True, at: int = 0
) -> Series:
    """A batch that is watched; from a minute on so many of its cases pass."""

    def of(name: str, **labels: str) -> str:
        return here.series(name, **which, **labels)

    ratio = then(0.9, passed / cases, at=at)
    return {
        here.series("safe:quality_watch", None, **which, owner="quality", severity="ticket"): steady(1),
        of("safe_batch_pass_ratio"): ratio,
        of("safe_batch_answered_pass_ratio"): ratio,
        of("safe_batch_cases", label="Pass"): then(0.9 * cases, passed, at=at),
        of("safe_batch_cases", label="Fail"): then(0.1 * cases, cases - passed, at=at),
        of("safe_batch_failed_generations"): steady(0),
        of("safe_batch_complete"): steady(int(complete)),
        of("safe_batch_expected_cases"): steady(100),
        of("safe_batch_last_update_timestamp_seconds"): growing(60),
        of("safe_batch_mean_score", metric="AH"): steady(1),
    }


SETTINGS: Series = {
    'safe:quality_floor{owner="quality", measure="pass_ratio"}': steady(0.8),
    "safe:traffic_expected": steady(1),
}

# --- what each alert is for -------------------------------------------------------------------------------------------


def _down(here: Installation, *workers: str) -> Series:
    series: Series = {}
    for worker in workers:
        series[here.series("up", _address(here, worker))] = then(1, 0)
        series[here.series("safe_build_info", _address(here, worker), version="1", fingerprint="x")] = then(1, None)
    return series


def _partition(here: Installation, name: str, values: Values) -> Series:
    return {here.series(name, topic="input", partition="0"): values}


SYMPTOMS: Mapping[str, Callable[[Installation], Series]] = {
    "SafeDown": lambda here: _down(here, *WORKERS),
    "SafeWorkerDown": lambda here: _down(here, "a"),
    "SafeNotReady": lambda here: {here.series("safe_ready"): then(1, 0)},
    "SafeLoginRefused": lambda here: {here.series("safe_login_refused"): then(0, 1)},
    "SafeCertificateExpires": lambda here: {
        here.series("safe_tls_certificate_expiry_timestamp_seconds", file="tls.crt"): then(9e6, 9e5)
    },
    "SafeStrangersInGroup": lambda here: {here.series("safe_group_strangers", consumer_group=here.group): then(0, 1)},
    "SafePartitionWaiting": lambda here: _partition(here, "safe_partition_waiting_seconds", rising(60)),
    "SafePartitionHeldUp": lambda here: _partition(here, "safe_partition_held_up_seconds", rising(60)),
    "SafePartitionUnowned": lambda here: _partition(here, "safe_partition_waiting_seconds", then(0, None)),
    "SafeBacklog": lambda here: _partition(here, "safe_consumer_lag_records", rising(3_000)),
    "SafeResultsLate": lambda here: latency(here, late=0.2),
    "SafeResultsLate ticket": lambda here: latency(here, late=0.1),
    "SafeWorkersDiffer": lambda here: {
        here.series("safe_build_info", _address(here, "b"), version="1", fingerprint="x"): then(1, None),
        here.series("safe_build_info", _address(here, "b"), version="1", fingerprint="y"): then(None, 1),
    },
    "SafeRestoreFailing": lambda here: {here.series("safe_restore_failures_total"): rising(4)},
    "SafeDeadLetterShare": lambda here: traffic(here, dead=rising(300)),
    "SafeDeadLetters": lambda here: {
        here.series("safe_dead_letters_total", reason="invalid_json"): then(0, 5, at=LATE_FROM)
    },
    "SafeExpectationsUnusable": lambda here: {
        here.series("safe_expectations_unusable", source="folder", name="W.json"): then(0, 1)
    },
    "SafeBatchesNotExported": lambda here: {here.series("safe_batches_not_exported"): then(0, 40)},
    "SafeClockSkew": lambda here: {here.series("safe_clock_skew_seconds"): then(0, -120)},
    "SafeBatchesReopened": lambda here: {here.series("safe_batches_reopened_total"): then(0, 3, at=LATE_FROM)},
    "SafeSilent": lambda here: {
        here.series("safe_records_total", outcome="scored"): [1_000.0 * min(each, 60) for each in range(MINUTES + 1)]
    },
    "SafeBatchBelowFloor": lambda here: batch(here, BATCH, cases=30, passed=9, at=ILL_FROM),
    # Of each too few to judge it by, of both together enough.
    "SafeConcernBelowFloor": lambda here: {
        **batch(here, BATCH, cases=15, passed=6, complete=False, at=ILL_FROM),
        **batch(here, HALF, cases=15, passed=6, complete=False, at=ILL_FROM),
    },
    "SafeForbiddenTermUsed": lambda here: {here.series("safe_batch_mean_score", **BATCH, metric="AH"): then(1, 0.9)},
    "SafeInputMismatch": lambda here: {
        here.series("safe_input_mismatches_total", concern_id="S11"): then(0, 2, at=LATE_FROM)
    },
    "SafeFailedGenerations": lambda here: {
        here.series("safe_failed_generations_total", concern_id="S11"): then(0, 2, at=LATE_FROM)
    },
    "SafeBatchIncomplete": lambda here: {
        here.series("safe_batch_complete", **BATCH): steady(0),
        here.series("safe_batch_last_update_timestamp_seconds", **BATCH): [
            60.0 * min(each, ILL_FROM) for each in range(MINUTES + 1)
        ],
    },
}


def world(name: str, ill: Installation | None) -> Series:
    """All eight, of which one has what an alert is for."""
    series = dict(SETTINGS)
    for here in EIGHT:
        series |= healthy(here)
    return series | (SYMPTOMS[name](ill) if ill else {})


def crowded(name: str) -> tuple[Series, list[Installation]]:
    """What a rule that takes the others for the first of the eight gets wrong, and where the alert fires by right.

    The first has what the alert is for; all others have what would excuse it, were they the same. Of SafeWorkerDown,
    all workers of the first are down, which is another alert, unless the others' count.
    """
    if name == "SafeWorkerDown":
        return world("SafeDown", EIGHT[0]), []
    series = world(name, EIGHT[0])
    for here in EIGHT[1:]:
        series |= EXCUSES[name](here) if name in EXCUSES else {}
    return series, EIGHT[:1]


EXCUSES: Mapping[str, Callable[[Installation], Series]] = {
    "SafeNotReady": lambda here: _partition(here, "safe_partition_waiting_seconds", rising(60)),
    "SafePartitionWaiting": lambda here: _partition(here, "safe_partition_held_up_seconds", rising(60)),
}


# --- for promtool -----------------------------------------------------------------------------------------------------


def written(values: Values) -> str:
    """Values as promtool reads them: what ends does so at once, as in a Prometheus that scrapes."""
    tokens = []
    for before, value in zip([None, *values], values, strict=False):
        tokens.append(str(value) if value is not None else "_" if before is None else "stale")
    return " ".join(tokens)


def only_what_is_read(series: Series, rules: Iterable[str]) -> Series:
    """The series whose metrics these rules speak of: all others only take time."""
    read = {name for text in rules for name in re.findall(r"[\w:]+", text)}
    return {name: values for name, values in series.items() if name.partition("{")[0] in read}


def promtool_test(name: str, series: Series, questions: Sequence[Any]) -> Any:
    """One test for promtool."""
    given = [{"series": each, "values": written(values)} for each, values in series.items()]
    return {"name": name, "interval": "1m", "input_series": given, "promql_expr_test": list(questions)}


def firing(alert: str, expected: Iterable[Installation], labels: Sequence[str] = INSTALLATION) -> Any:
    """The question where an alert fires, and the answer that promtool is to get."""
    samples = [
        {"labels": f'{{cluster="{here.cluster}", namespace="{here.namespace}", group="{here.group}"}}', "value": 1}
        for here in expected
    ]
    question = f'group by ({", ".join(labels)}) (ALERTS{{alertstate="firing", alertname="{alert}"}})'
    return {"expr": question, "eval_time": f"{MINUTES - 5}m", "exp_samples": samples}


def write_test(folder: Path, name: str, groups: Any, tests: Sequence[Any], *, every: str = "5m") -> Path:
    """Write rules, evaluated every so often, and tests of them as two files; JSON is YAML that is read faster."""
    (folder / f"{name}.rules.yml").write_text(json.dumps({"groups": groups}), encoding="utf-8")
    document = {"rule_files": [f"{name}.rules.yml"], "evaluation_interval": every, "tests": list(tests)}
    file = folder / f"{name}.test.yml"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file
