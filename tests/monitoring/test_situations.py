"""What a running installation may be in, and who is told: the table in docs/how-to/runbooks.md, situation by situation.

Each is three hours in the life of three workers, as series; at the end, promtool says which alerts fire.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.prometheus import CONFIG, run

RUNBOOKS = Path(__file__).parents[2] / "docs" / "how-to" / "runbooks.md"
MINUTES = 180
WORKERS = ("a", "b", "c")
WHERE = 'job="safe", namespace="n", cluster="c"'
W = 'concern_id="S11", batch_id="W"'
Series = dict[str, str]

pytestmark = pytest.mark.usefixtures("promtool")


def steady(value: float) -> str:
    return f"{value}x{MINUTES}"


def growing(step: float) -> str:
    return f"0+{step}x{MINUTES}"


def in_turns(*values: float) -> str:
    return " ".join(str(values[minute % len(values)]) for minute in range(MINUTES + 1))


def of_worker(worker: str, name: str, **labels: str) -> str:
    more = "".join(f', {key}="{value}"' for key, value in ({"group": "safe-v0"} | labels).items())
    return f'{name}{{{WHERE}, instance="{worker}"{more}}}'


def of_batch(name: str, **labels: str) -> str:
    return of_worker("a", name, concern_id="S11", batch_id="W", **labels)


def latency(rate: float, late: float) -> Series:
    """So many results a minute, of which that share comes late."""
    return {
        of_worker("a", "safe_end_to_end_seconds_bucket", le="30.0"): growing(rate * (1 - late)),
        of_worker("a", "safe_end_to_end_seconds_count"): growing(rate),
    }


def traffic(rate: float, *, dead: float = 0.0) -> Series:
    """So many records a minute and worker, of which that share becomes dead letters."""
    series = {of_worker(each, "safe_records_total", outcome="scored"): growing(rate * (1 - dead)) for each in WORKERS}
    for each in WORKERS:
        series[of_worker(each, "safe_records_total", outcome="dead_lettered")] = growing(rate * dead)
    return series


def lag(values: str) -> Series:
    return {of_worker("a", "safe_consumer_lag_records", topic="input", partition="0"): values}


def healthy() -> Series:
    """Three workers with two partitions each, a thousand records a minute."""
    series = traffic(1_000) | latency(3_000, 0) | lag(in_turns(0, 40, 0, 15))
    for number, worker in enumerate(WORKERS):
        series[f'up{{{WHERE}, instance="{worker}"}}'] = steady(1)
        series[of_worker(worker, "safe_build_info")] = steady(1)
        series[of_worker(worker, "safe_ready")] = steady(1)
        series[of_worker(worker, "safe_restore_failures_total")] = steady(0)
        for topic in ("input", "scored"):
            labels = {"topic": topic, "partition": str(number)}
            series[of_worker(worker, "safe_partition_waiting_seconds", **labels)] = steady(0)
    return series


def batch(*, failed: int, passed: int, complete: int | None, unanswered: int = 0) -> Series:
    """A watched batch with a floor of 0.8; `complete` is None where nobody tells how many cases there are.

    Of the failed cases, `unanswered` are failed generations.
    """
    cases = failed + passed
    series = {
        f'safe:quality_watch{{{WHERE}, group="safe-v0", {W}, owner="quality", severity="ticket"}}': steady(1),
        'safe:quality_floor{owner="quality", measure="pass_ratio"}': steady(0.8),
        of_batch("safe_batch_cases", label="Pass"): steady(passed),
        of_batch("safe_batch_cases", label="Fail"): steady(failed),
        of_batch("safe_batch_pass_ratio"): steady(passed / cases),
        of_batch("safe_batch_failed_generations"): steady(unanswered),
        of_batch("safe_batch_answered_pass_ratio"): steady(passed / (cases - unanswered)),
        of_batch("safe_batch_complete"): steady(complete or 0),
        of_batch("safe_batch_last_update_timestamp_seconds"): growing(60),
    }
    if complete is not None:
        series[of_batch("safe_batch_expected_cases")] = steady(1_000)
    return series


def gone(*workers: str) -> Series:
    """What the scrapes of workers show that stopped answering an hour ago; the others have their partitions."""
    series: Series = {}
    for name in healthy():
        if any(f'instance="{worker}"' in name for worker in workers):
            was = healthy()[name].split("x")[0]
            series[name] = f"{was}x120 {'0x60' if name.startswith('up{') else 'stale'}"
    for worker in workers:
        for topic in ("input", "scored"):
            labels = {"topic": topic, "partition": str(WORKERS.index(worker))}
            if len(workers) < len(WORKERS):
                series[of_worker("a", "safe_partition_waiting_seconds", **labels)] = f"_x121 {'0 ' * 60}"
    return series


def waiting(worker: str, **more: str) -> Series:
    """A partition that has not been served for two hours."""
    name = of_worker(worker, "safe_partition_waiting_seconds", topic="input", partition=str(WORKERS.index(worker)))
    return {name: "0x59 0+60x120", of_worker(worker, "safe_ready"): "1x59 0x121", **more}


SITUATIONS: Mapping[str, Series] = {
    "all is well": {},
    "a quiet night: no output for hours, none expected": traffic(0) | latency(0, 0) | lag(steady(0)),
    "one dead letter in a thousand records": {
        of_worker("a", "safe_dead_letters_total", reason="invalid_json"): "0x150 1x30"
    },
    "a complete batch is bad": batch(failed=700, passed=300, complete=1),
    "a batch is bad, and incomplete because one of its thousand cases became a dead letter": batch(
        failed=700, passed=299, complete=0
    ),
    "a batch is bad, and its size is unknown because its test cases come from a service": batch(
        failed=700, passed=300, complete=None
    ),
    "calls of the model fail: a quarter of a batch has no answer, and the rest is good": {
        **batch(failed=250, passed=750, complete=1, unanswered=250),
        of_worker("a", "safe_failed_generations_total", concern_id="S11"): "0x150 250x30",
    },
    "a backlog of a million is worked off within hours": lag(f"1000000-5000x{MINUTES}") | latency(3_000, 1),
    "the lag swings between 990,000 and 1,000,000 for hours": lag(in_turns(*[1_000_000] * 4, *[990_000] * 4))
    | latency(3_000, 1),
    "one result in five takes longer than half a minute": latency(3_000, 0.2),
    "one result in ten does": latency(3_000, 0.1),
    "one of three workers is gone": gone("c"),
    "all workers are gone": gone(*WORKERS),
    "a worker cannot read the state that it takes over": waiting(
        "b", **{of_worker("b", "safe_restore_failures_total"): "0x59 0+4x120"}
    ),
    "a partition is not served": waiting("b"),
    "a producer leaves a transaction open on the input": waiting("b")
    | {of_worker("b", "safe_partition_held_up_seconds", topic="input", partition="1"): "0x59 0+60x120"}
    | {of_worker("b", "safe_consumer_lag_records", topic="input", partition="1"): "0x59 0+300x120"},
    "one of three workers has other scoring rules": {
        of_worker(worker, "safe_build_info", version="1", fingerprint=rules): steady(1)
        for worker, rules in zip(WORKERS, ("sha256:x", "sha256:x", "sha256:y"), strict=True)
    },
    "the brokers refuse a worker's new login, its open connections still work": {
        of_worker("b", "safe_login_refused"): "0x60 1x120",
    },
    "a certificate expires in ten days": {
        of_worker("b", "safe_tls_certificate_expiry_timestamp_seconds", file="/etc/safe/tls/tls.crt"): steady(874_800),
    },
    "another service has joined the consumer group while no worker ran": {
        name: values
        for worker in WORKERS
        for name, values in {
            of_worker(worker, "safe_group_strangers", consumer_group="safe-v0"): "0x59 1x121",
            of_worker(worker, "safe_ready"): "1x59 0x121",
        }.items()
    }
    | traffic(0)
    | latency(0, 0),
    "the source of test cases is unavailable": {
        name: values for worker in WORKERS for name, values in waiting(worker).items()
    }
    | traffic(0)
    | latency(0, 0)
    | lag("0x59 0+3000x120"),
    "a producer floods the input with what cannot be scored": traffic(1_000, dead=0.3)
    | {of_worker("a", "safe_dead_letters_total", reason="invalid_json"): growing(900)},
    "more batches are alive than the workers export": {of_worker("a", "safe_batches_not_exported"): steady(40)},
}


def told() -> dict[str, tuple[set[str], set[str]]]:
    """What docs/how-to/runbooks.md says of each situation: which alerts page, and which are tickets."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]*) \| ([^|]*) \|$", RUNBOOKS.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: (names_in(page), names_in(ticket)) for name, page, ticket in rows if name in SITUATIONS}


def names_in(cell: str) -> set[str]:
    return set(re.findall("Safe[A-Za-z]+", cell))


def test_the_table_has_every_situation() -> None:
    assert list(told()) == list(SITUATIONS)


def asked(name: str, firing: str, expected: Mapping[str, str]) -> Any:
    """A test of one situation: which alerts fire at its end, each with its severity."""
    samples = [
        {"labels": f'{{alertname="{alert}", severity="{severity}"}}', "value": 1}
        for alert, severity in sorted(expected.items())
    ]
    series: Series = healthy() | SITUATIONS[name]
    return {
        "interval": "1m",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "promql_expr_test": [{"expr": firing, "eval_time": f"{MINUTES - 5}m", "exp_samples": samples}],
    }


def judge(tests: list[Any], rule_files: list[str], folder: Path) -> None:
    """Let promtool run them all; every five minutes is often enough for what lasts an hour."""
    document = {"rule_files": rule_files, "evaluation_interval": "5m", "tests": tests}
    file = folder / "situations.test.yml"
    file.write_text(json.dumps(document), encoding="utf-8")
    said = run("promtool", "test", "rules", file)
    assert said.returncode == 0, said.stdout + said.stderr


def test_each_situation_pages_makes_a_ticket_or_is_silent_as_the_table_says(tmp_path: Path) -> None:
    firing = 'group by (alertname, severity) (ALERTS{alertstate="firing"})'
    expected = {
        name: dict.fromkeys(pages, "page") | dict.fromkeys(tickets, "ticket")
        for name, (pages, tickets) in told().items()
    }
    rule_files = [str(CONFIG / name) for name in ("alerts-service.yml", "alerts-quality.yml")]
    judge([asked(name, firing, expected[name]) for name in SITUATIONS], rule_files, tmp_path)
