"""What each alert does where its series are absent, new, flap or restart, of a single worker, or nothing is scraped."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.monitoring.test_installations import IN_GRAFANA, grouped, rules
from tests.support.installations import (
    EIGHT,
    MINUTES,
    SETTINGS,
    SYMPTOMS,
    Series,
    Values,
    firing,
    healthy,
    only_what_is_read,
    promtool_test,
    world,
    write_test,
)
from tests.support.prometheus import failing

pytestmark = pytest.mark.usefixtures("promtool")
ILL = EIGHT[0]
NEW_FROM = 100
RESTARTS = range(150, 153)


def changed(name: str, change: Callable[[str, Values], Values]) -> Series:
    """The eight, of which one is ill, with the series that make it ill otherwise."""
    return world(name, ILL) | {each: change(each, values) for each, values in SYMPTOMS[name](ILL).items()}


def is_counter(series: str) -> bool:
    return series.partition("{")[0].endswith(("_total", "_count", "_bucket"))


def no_data(name: str) -> Series:
    return changed(name, lambda _, values: [None] * len(values))


def new_series(name: str) -> Series:
    return changed(name, lambda _, values: [None] * NEW_FROM + values[NEW_FROM:])


def flapping(name: str) -> Series:
    """Two minutes ill, two minutes well; what is counted goes on or stands still in turn."""
    well = healthy(ILL)

    def change(each: str, values: Values) -> Values:
        if is_counter(each):
            return _in_turns(values)
        before = well.get(each, [values[0]] * len(values))
        return [value if minute // 2 % 2 else before[minute] for minute, value in enumerate(values)]

    return changed(name, change)


def _in_turns(values: Values) -> Values:
    total, counted = 0.0, []
    for minute, value in enumerate(values):
        step = (value or 0) - (values[minute - 1] or 0) if minute else 0
        total += step if minute // 2 % 2 else 0
        counted.append(total)
    return [*counted]


def restart(name: str) -> Series:
    """Absent for three minutes; what is counted begins again from zero."""

    def change(each: str, values: Values) -> Values:
        start = values[RESTARTS.stop] if is_counter(each) else 0
        after = [None if value is None else value - (start or 0) for value in values[RESTARTS.stop :]]
        return [*values[: RESTARTS.start], *[None] * len(RESTARTS), *after]

    return changed(name, change)


def a_worker_alone(name: str) -> Series:
    others = {each for each in healthy(ILL) if 'instance="b' in each}
    return {each: values for each, values in world(name, ILL).items() if each not in others}


def nothing_scraped(name: str) -> Series:
    gone = [None] * (MINUTES + 1 - NEW_FROM)
    return {
        each: values if each in SETTINGS else [*values[:NEW_FROM], *gone] for each, values in world(name, ILL).items()
    }


SIX = (no_data, new_series, flapping, restart, a_worker_alone, nothing_scraped)
# For each of the six in turn: + where the alert fires for the ill installation, - where it is silent. Where nothing is
# scraped, no installation is known any more: that is SafeDown without one, below. Two minutes of trouble, again and
# again, are too short for what waits longer (`for`).
EXPECTED: Mapping[str, str] = {
    "SafeDown": "---++-",  # a target whose group nobody knows counts for its namespace, where others are up
    "SafeWorkerDown": "---+--",  # alone it is SafeDown
    "SafeNotReady": "-+-++-",
    "SafeLoginRefused": "-++++-",
    "SafeCertificateExpires": "-+-++-",
    "SafeStrangersInGroup": "-++++-",
    "SafePartitionWaiting": "-++++-",
    "SafePartitionHeldUp": "-++++-",
    "SafePartitionUnowned": "---++-",  # what nobody ever had is not missed
    "SafeBacklog": "-+-++-",
    "SafeResultsLate": "-++++-",
    "SafeResultsLate ticket": "-++++-",
    "SafeWorkersDiffer": "-++++-",
    "SafeRestoreFailing": "-++++-",
    "SafeDeadLetterShare": "-++++-",
    "SafeDeadLetters": "-++++-",
    "SafeExpectationsUnusable": "-+-++-",
    "SafeBatchesNotExported": "-+-++-",
    "SafeClockSkew": "-+-++-",
    "SafeBatchesReopened": "-++++-",
    "SafeSilent": "+++++-",  # other outcomes are still counted, and stand still
    "SafeBatchBelowFloor": "-++++-",
    "SafeConcernBelowFloor": "-+-++-",
    "SafeForbiddenTermUsed": "-++++-",
    "SafeInputMismatch": "-++++-",
    "SafeFailedGenerations": "-++++-",
    "SafeBatchIncomplete": "-++++-",
}


def test_what_each_alert_does_in_six_situations(tmp_path: Path) -> None:
    files: dict[tuple[str, str], Path] = {}
    for name in SYMPTOMS:
        mine = [rule for rule in rules()[name] if not rule.get("alert", "").endswith(IN_GRAFANA)]
        for situation in SIX:
            label = f"{name} {situation.__name__}"
            read = only_what_is_read(situation(name), (rule["expr"] for rule in mine))
            test = promtool_test(label, read, [firing(name, [ILL])])
            every = "1m" if situation is flapping else "5m"
            files[name, situation.__name__] = write_test(tmp_path, label, grouped(mine), [test], every=every)
    silent = failing(list(files.values()))
    found = {
        name: "".join("-" if files[name, situation.__name__] in silent else "+" for situation in SIX)
        for name in SYMPTOMS
    }
    assert found == EXPECTED


def test_where_nothing_is_scraped_one_page_without_an_installation_says_so(tmp_path: Path) -> None:
    mine = rules()["SafeDown"]
    asked = [
        {
            "expr": f'group by (alertname) (ALERTS{{alertstate="firing", alertname="{rule["alert"]}", group=""}})',
            "eval_time": f"{MINUTES - 5}m",
            "exp_samples": [{"labels": f'{{alertname="{rule["alert"]}"}}', "value": 1}],
        }
        for rule in mine
        if "alert" in rule
    ]
    read = only_what_is_read(nothing_scraped("SafeClockSkew"), (rule["expr"] for rule in mine))
    test = promtool_test("nothing", read, asked)
    assert failing([write_test(tmp_path, "nothing", grouped(mine), [test])]) == set()
