"""The alerts as shipped: what they name exists, promtool runs clean, and whatever is broken in them turns it red."""

import json
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from consumer.settings import Settings
from tests.support.documents import anchors, documents
from tests.support.installations import INSTALLATION
from tests.support.pages import Page
from tests.support.prometheus import CONFIG, failing, run
from tests.support.promql import (
    GOLDEN_PAGE,
    OTHERS_METRICS,
    RULE_FILES,
    alerts,
    known_labels,
    known_metrics,
    labels_in,
    metrics_in,
    recorded,
    rules,
)

HERE = Path(__file__).parent
RUNBOOKS = HERE.parents[1] / "docs" / "how-to" / "runbooks.md"
RULE_TESTS = sorted(path.name for path in HERE.glob("*.test.yml"))
ALERTS = alerts()
needs_promtool = pytest.mark.usefixtures("promtool")


def seconds(duration: str) -> int:
    """A duration as Prometheus writes it, of one unit."""
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3_600, "d": 86_400}[duration[-1]]


# --- by the tools of the field ----------------------------------------------------------------------------------------


@needs_promtool
def test_the_page_of_a_worker_has_nothing_that_promtool_objects_to() -> None:
    said = run("promtool", "check", "metrics", given=GOLDEN_PAGE.read_text(encoding="utf-8"))
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")


@needs_promtool
def test_promtool_objects_to_a_page_of_bad_names() -> None:
    said = run(
        "promtool", "check", "metrics", given="# HELP safe_records X\n# TYPE safe_records counter\nsafe_records 1\n"
    )
    assert said.returncode != 0


@needs_promtool
def test_the_configuration_of_prometheus_and_every_rule_is_clean() -> None:
    said = run("promtool", "check", "config", CONFIG / "prometheus.yml")
    assert said.returncode == 0, said.stdout + said.stderr
    assert "warning" not in (said.stdout + said.stderr).lower()


@pytest.mark.usefixtures("amtool")
def test_the_configuration_of_alertmanager_is_clean() -> None:
    said = run("amtool", "check-config", CONFIG / "alertmanager.yml")
    assert said.returncode == 0, said.stdout + said.stderr


# --- the tests of the tests -------------------------------------------------------------------------------------------


def judged() -> dict[str, list[tuple[str, bool]]]:
    """For each alert, test by test, what was expected and when: `(name of the test, whether it fires)`, in order."""
    found: dict[str, list[tuple[str, bool]]] = {}
    for name in RULE_TESTS:
        for test in yaml.safe_load((HERE / name).read_text(encoding="utf-8"))["tests"]:
            for each in sorted(test["alert_rule_test"], key=lambda each: seconds(each["eval_time"])):
                found.setdefault(each["alertname"], []).append((test["name"], bool(each.get("exp_alerts"))))
    return found


def test_each_alert_is_seen_silent_then_firing_then_resolved() -> None:
    seen = judged()
    assert seen.keys() == ALERTS.keys()
    for name, moments in seen.items():
        whole = {test: [fires for each, fires in moments if each == test] for test, _ in moments}
        assert [False, True, False] in [_without_repeats(fires) for fires in whole.values()], name


def _without_repeats(truths: list[bool]) -> list[bool]:
    changes = [truth for before, truth in zip([None, *truths], truths, strict=False) if truth != before]
    return changes[:3]


# Whose tests must turn red, what is broken (in its file, else in that of the settings), and what stands there instead.
MUTANTS: Mapping[str, tuple[str, str, str]] = {
    "a worker must be down altogether": ("SafeDown", ">= bool 0.5) == 0", ">= bool 0.1) == 0"),
    "absence is forgotten": ("SafeDown", "or on ()\n          absent(safe_build_info)", ""),
    "a target whose group nobody knows is forgotten": ("SafeDown", "or on ($place)", "and on ($place)"),
    "no time to restart": ("SafeDown", "for: 3m", "for: 0s"),
    "one of several pages": (
        "SafeWorkerDown",
        "for: 15m\n        labels: {severity: ticket}",
        "for: 15m\n        labels: {severity: page}",
    ),
    "no time to come back": ("SafeWorkerDown", "for: 15m", "for: 1m"),
    "any backlog is high": ("SafeBacklog", "900 * sum", "90 * sum"),
    "a backlog that is worked off pages": ("SafeBacklog", "0.98", "0.5"),
    "two late results of a quiet night page": ("SafeResultsLate", ">= 100", ">= 1"),
    "a quarter is not enough": ("SafeResultsLate", "ratio_rate1h > 0.144", "ratio_rate1h > 0.5"),
    "a tenth is nothing": ("SafeResultsLate", "ratio_rate6h > 0.06", "ratio_rate6h > 0.144"),
    "what pages is a ticket, too": (
        "SafeResultsLate",
        "unless on ($here) (safe:late_results:ratio_rate1h",
        "unless on ($here) (-safe:late_results:ratio_rate1h",
    ),
    "no result is no trouble": ("SafeBacklog", "[15m])) == 0", "[15m])) == -1"),
    "readiness and partitions both page": (
        "SafeNotReady",
        "unless on ($here, instance) last_over_time(safe_partition_waiting_seconds[5m]) > 300",
        "",
    ),
    "any wait excuses": (
        "SafeNotReady",
        "safe_partition_waiting_seconds[5m]) > 300",
        "safe_partition_waiting_seconds[5m]) > 0",
    ),
    "a restart ends it": ("SafeStrangersInGroup", "max_over_time(safe_group_strangers[5m])", "safe_group_strangers"),
    "every member is a stranger": ("SafeStrangersInGroup", "[5m])) > 0", "[5m])) >= 0"),
    "a metric has another name": (
        "SafePartitionWaiting",
        "safe_partition_waiting_seconds",
        "safe_partition_wait_seconds",
    ),
    "a refusal in passing pages": ("SafeLoginRefused", "for: 1m", "for: 0s"),
    "a worker that has ended is forgotten": (
        "SafeLoginRefused",
        "last_over_time(safe_login_refused[10m])",
        "safe_login_refused",
    ),
    "two days are enough": ("SafeCertificateExpires", "14 * 86400", "2 * 86400"),
    "a ticket for each worker": (
        "SafeCertificateExpires",
        "min by ($here, file) (last_over_time(safe_tls_certificate_expiry_timestamp_seconds[5m]))",
        "safe_tls_certificate_expiry_timestamp_seconds",
    ),
    "a partition may not wait": ("SafePartitionWaiting", "> 600", "> 60"),
    "nobody remembers": ("SafePartitionUnowned", "[6h]", "[1m]"),
    "no time to change hands": ("SafePartitionUnowned", "for: 10m", "for: 0s"),
    "two pages for a cluster out of reach": ("SafePartitionUnowned", "unless on ($here) safe_ready == 0", ""),
    "two pages for no worker": ("SafePartitionUnowned", "unless on () absent(safe_build_info)", ""),
    "one topic is as good as another": ("SafePartitionUnowned", "count by ($here, topic)", "count by (job)"),
    "a failed scrape is no lag": (
        "SafeBacklog",
        "or last_over_time(safe_consumer_lag_records[2m])",
        "",
    ),
    "a transaction of the moment is lag": (
        "SafeBacklog",
        "min_over_time(safe_consumer_lag_records[1m])",
        "safe_consumer_lag_records",
    ),
    "a transaction of a minute pages": (
        "SafePartitionHeldUp",
        "_held_up_seconds[5m])) > 300",
        "_held_up_seconds[5m])) > 30",
    ),
    "each reader of a topic pages": (
        "SafePartitionHeldUp",
        "max by ($here, topic, partition) (last_over_time(safe_partition_held_up_seconds[5m]))",
        "safe_partition_held_up_seconds",
    ),
    "a partition that is held up pages twice": (
        "SafePartitionWaiting",
        "unless on ($here, topic, partition) last_over_time(safe_partition_held_up_seconds[5m]) > 300",
        "",
    ),
    "a worker whose test cases are held up pages, too": (
        "SafeNotReady",
        "unless on ($here, instance) last_over_time(safe_partition_held_up_seconds[5m]) > 300",
        "",
    ),
    "other rules are no difference": ("SafeWorkersDiffer", "version, fingerprint)", "version)"),
    "another version is no difference": ("SafeWorkersDiffer", "version, fingerprint)", "fingerprint)"),
    "installations may not differ": (
        "SafeWorkersDiffer",
        "count by ($here) (\n            group by ($here,",
        "count by ($place) (\n            group by ($here,",
    ),
    "a rollout is a ticket": ("SafeWorkersDiffer", "for: 30m", "for: 10m"),
    "a failed scrape begins anew": ("SafeWorkersDiffer", "last_over_time(safe_build_info[5m])", "safe_build_info"),
    "lag by partition": (
        "SafeBacklog",
        "sum by ($here, topic) (\n            max",
        "sum by ($here, topic, partition) (\n            max",
    ),
    "lag that stands still is none": ("SafeBacklog", ">= max_over_time", "> max_over_time"),
    "lag that is just there pages": ("SafeBacklog", "offset 10m", "offset 1s"),
    "one failed restore pages": (
        "SafeRestoreFailing",
        "increase(safe_restore_failures_total[5m])",
        "safe_restore_failures_total",
    ),
    "a broker that restarts pages": ("SafeRestoreFailing", "for: 10m", "for: 5m"),
    "a tenth is not enough": ("SafeDeadLetterShare", "> 0.05", "> 0.5"),
    "five of a hundred are too many": ("SafeDeadLetterShare", "> 0.05", ">= 0.049"),
    "what is ignored counts": ("SafeDeadLetterShare", 'outcome=~"scored|dead_lettered"', 'outcome=~".+"'),
    "one bad record of a quiet night pages": ("SafeDeadLetterShare", "[15m]", "[1h]"),
    "a burst pages": ("SafeDeadLetterShare", "for: 30m", "for: 1m"),
    "one dead letter is none": ("SafeDeadLetters", "[1h])\n          ) > 0", "[1h])\n          ) > 9"),
    "what came before the first scrape is nothing": ("SafeDeadLetters", "max_over_time", "0 * max_over_time"),
    "all that ever was": ("SafeDeadLetters", "unless last_over_time(safe_dead_letters_total[15m] offset 1h)", ""),
    "a scrape that fails makes old ones new": ("SafeDeadLetters", "total[15m] offset 1h", "total[1s] offset 1h"),
    "a pager at night for a ticket": ("SafeDeadLetters", "severity: ticket", "severity: page"),
    "a file in the writing is a ticket": ("SafeExpectationsUnusable", "for: 15m", "for: 1m"),
    "a worker that cannot say for a moment shows all": (
        "SafeBatchesNotExported",
        "last_over_time(safe_batches_not_exported[5m])",
        "safe_batches_not_exported",
    ),
    "a burst of batches is a ticket": ("SafeBatchesNotExported", "for: 1h", "for: 1m"),
    "only a clock that is ahead is wrong": (
        "SafeClockSkew",
        "abs(last_over_time(safe_clock_skew_seconds[5m]))",
        "last_over_time(safe_clock_skew_seconds[5m])",
    ),
    "a second is too much": ("SafeClockSkew", "> 60", "> 50"),
    "a clock that is being set right is a ticket": ("SafeClockSkew", "> 60\n        for: 5m", "> 60\n        for: 0s"),
    "all that were ever opened again": (
        "SafeBatchesReopened",
        "increase(safe_batches_reopened_total[1h])",
        "safe_batches_reopened_total",
    ),
    "silence is always a ticket": ("SafeSilent", " and on () safe:traffic_expected == 1", ""),
    "traffic is expected as shipped": (
        "SafeSilent",
        "traffic_expected\n        expr: vector(0)",
        "traffic_expected\n        expr: vector(1)",
    ),
    "a few cases are enough": (
        "SafeBatchBelowFloor",
        "safe:watched_batch:cases >= 20",
        "safe:watched_batch:cases >= 1",
    ),
    "a pass rate of few cases is certain": ("SafeBatchBelowFloor", "3.8416 * ", "0 * "),
    "only complete batches are judged": ("SafeBatchBelowFloor", "cases >= 20", "cases >= 20000"),
    "nothing is urgent": ("SafeBatchBelowFloor", '{{ or .Labels.severity "ticket" }}', "ticket"),
    "other teams' floors are mine": ("SafeBatchBelowFloor", "on (owner, measure)", "on (measure)"),
    "a gap resolves": (
        "SafeBatchBelowFloor",
        "last_over_time(safe_batch_answered_pass_ratio[5m])",
        "safe_batch_answered_pass_ratio",
    ),
    "nineteen are enough": ("SafeConcernBelowFloor", ">= 20", ">= 19"),
    "each batch weighs the same": (
        "SafeConcernBelowFloor",
        "* on ($here, concern_id, batch_id, owner) group_left () safe:watched_batch:cases",
        "* on ($here, concern_id, batch_id, owner) group_left () (0 * safe:watched_batch:cases + 10)",
    ),
    "one trouble, two tickets": (
        "SafeConcernBelowFloor",
        "unless on ($here, concern_id, owner, measure)",
        "or on ($here, concern_id, owner, measure)",
    ),
    "a mismatch is none": (
        "SafeInputMismatch",
        "increase(safe_input_mismatches_total[1h])",
        "0 * increase(safe_input_mismatches_total[1h])",
    ),
    "a failed generation is none": (
        "SafeFailedGenerations",
        "increase(safe_failed_generations_total[1h])",
        "0 * increase(safe_failed_generations_total[1h])",
    ),
    "a failed generation is a bad answer": (
        "SafeBatchBelowFloor",
        "safe_batch_answered_pass_ratio",
        "safe_batch_pass_ratio",
    ),
    "it lowers a mean": (
        "SafeBatchBelowFloor",
        'safe_batch_answered_mean_score{metric="CR"}',
        'safe_batch_mean_score{metric="CR"}',
    ),
    "an earlier version has no pass rate": (
        "SafeBatchBelowFloor",
        "(safe_batch_pass_ratio",
        "(safe_batch_answered_pass_ratio",
    ),
    "it has no means": (
        "SafeBatchBelowFloor",
        'safe_batch_mean_score{metric="AC"}',
        'safe_batch_answered_mean_score{metric="AC"}',
    ),
    "it has no cases": (
        "SafeBatchBelowFloor",
        ") - (max",
        ") - 0 * (max",
    ),
    "a few answers make a whole batch": (
        "SafeBatchBelowFloor",
        "unless on ($here, concern_id, batch_id) last_over_time(safe_batch_failed_generations[5m]) > 0",
        "",
    ),
    "a violation is none": ("SafeForbiddenTermUsed", ")) < 1", ")) < 0.5"),
    "a near violation is none": (
        "SafeForbiddenTermUsed",
        "increase(safe_near_violations_total[1h])",
        "0 * increase(safe_near_violations_total[1h])",
    ),
    "a new worker's near violations are none": (
        "SafeForbiddenTermUsed",
        "max_over_time(safe_near_violations_total[1h])",
        "0 * max_over_time(safe_near_violations_total[1h])",
    ),
    "those of any concern are told": (
        "SafeForbiddenTermUsed",
        "group by ($here, concern_id, owner, severity) (safe:watched_batch)",
        "group by ($here, concern_id, owner, severity) (safe_near_violations_total)",
    ),
    "any miss is a violation": ("SafeForbiddenTermUsed", 'metric="AH"}', 'metric=~"AH|CR"}'),
    "idle for a minute": ("SafeBatchIncomplete", "> 1800", "> 60"),
    "complete batches are idle, too": (
        "SafeBatchIncomplete",
        ")) == 0\n",
        ")) >= 0\n",
    ),
    "nobody knows how many, and yet": (
        "SafeBatchIncomplete",
        "and on ($here, concern_id, batch_id) last_over_time(safe_batch_expected_cases[5m])\n",
        "\n",
    ),
    "the wrong runbook": ("SafeBatchIncomplete", "#safebatchincomplete", "#safesilent"),
}


HERE_LABELS = {"$here": "cluster, namespace, job, group", "$place": "cluster, namespace, job"}


@needs_promtool
def test_alerts_fire_stay_silent_and_resolve_as_they_should_and_a_broken_one_does_not(tmp_path: Path) -> None:
    texts = {each: (CONFIG / each).read_text(encoding="utf-8") for each in RULE_FILES}
    files = [file for alert in ALERTS for file in _tests_of(alert, texts, tmp_path / alert)]
    red = {name: [*_tests_of(alert, broken, tmp_path / name)] for name, alert, broken in mutants(texts)}
    failed = failing([*files, *(file for each in red.values() for file in each)])
    assert [file for file in files if file in failed] == []
    assert [name for name, files_ in red.items() if not failed & set(files_)] == []


def mutants(texts: Mapping[str, str]) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Each mutant with its alert and its rule files."""
    for name, (alert, old, new) in MUTANTS.items():
        was, becomes = (_spelt_out(text) for text in (old, new))
        defined_in = next(each for each in RULE_FILES if f"alert: {alert}\n" in texts[each])
        broken = defined_in if was in texts[defined_in] else "alerts-settings.yml"
        assert was in texts[broken], name
        yield name, alert, {**texts, broken: texts[broken].replace(was, becomes)}


def _spelt_out(text: str) -> str:
    for short, labels in HERE_LABELS.items():
        text = text.replace(short, labels)
    return text


def _of_one_alert(alert: str, texts: Mapping[str, str]) -> tuple[dict[str, Any], set[str]]:
    """The rule files with this alert alone and the records that it reads, and all that it reads.

    The others take most of the time.
    """
    documents = {name: yaml.load(text, Loader=yaml.CSafeLoader) for name, text in texts.items()}
    groups = [group for document in documents.values() for group in document["groups"]]
    every = [rule for group in groups for rule in group["rules"]]
    read = {alert}
    while (more := {each for rule in every if _name(rule) in read for each in metrics_in(rule["expr"])}) - read:
        read |= more
    for group in groups:
        group["rules"] = [rule for rule in group["rules"] if _name(rule) in read]
    return documents, read


def _name(rule: Any) -> str:
    return str(rule.get("alert") or rule["record"])


@cache
def _written(name: str) -> dict[str, Any]:
    """The tests of alerts in a file; to parse them takes as long as to run a few."""
    document: dict[str, Any] = yaml.safe_load((HERE / name).read_text(encoding="utf-8"))
    return document


def _tests_of(alert: str, texts: Mapping[str, str], folder: Path) -> Iterator[Path]:
    """The files of tests of one alert, over these rule files, which are written into the folder beside them."""
    folder.mkdir()
    documents, read = _of_one_alert(alert, texts)
    for rules_file, document in documents.items():
        (folder / rules_file).write_text(json.dumps(document), encoding="utf-8")
    for name in RULE_TESTS:
        document = dict(_written(name))
        document["tests"] = [
            test | {"alert_rule_test": wanted, "input_series": [*_of_metrics(read, test["input_series"])]}
            for test in document["tests"]
            if (wanted := [each for each in test["alert_rule_test"] if each["alertname"] == alert])
        ]
        if document["tests"]:
            document["rule_files"] = [Path(each).name for each in document["rule_files"]]
            (folder / name).write_text(json.dumps(document), encoding="utf-8")
            yield folder / name


def _of_metrics(read: Collection[str], series: Iterable[Any]) -> Iterator[Any]:
    return (each for each in series if re.split(r"[{ ]", each["series"])[0] in read)


# --- what the rules speak of ------------------------------------------------------------------------------------------

EVERY_RULE = [rule for name in RULE_FILES for rule in rules(name)]


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.get("alert") or rule["record"])
def test_a_rule_reads_only_what_there_is(rule: Any) -> None:
    assert metrics_in(rule["expr"]) <= known_metrics() | OTHERS_METRICS
    assert labels_in(rule["expr"]) <= known_labels()


def test_what_a_query_speaks_of_is_found_in_it() -> None:
    query = 'sum by (le, topic) (rate(safe_x_bucket{reason=~"safe_y|z"}[1m])) / on (job) group_left (owner) safe:a:b'
    assert metrics_in(query) == {"safe_x_bucket", "safe:a:b"}
    assert labels_in(query) == {"le", "topic", "reason", "job", "owner"}


# What begins like a metric and is none: the version member of a file of decisions, and the package that starts.
NO_METRICS = {"safe_decisions", "safe_judge_calibration", "safe_opinions", "safe_scorer"}


def test_the_pages_for_people_name_only_metrics_that_there_are() -> None:
    for document in documents():
        code = " ".join(Page(document.read_text(encoding="utf-8")).code)
        named = {name for name in metrics_in(code) if not name.startswith(("safe_core", "safe_v0", "safe:v0:"))}
        families = {re.sub("_(total|bucket|sum|count)$", "", name) for name in known_metrics()}
        assert named <= known_metrics() | families | OTHERS_METRICS | NO_METRICS, document


# --- what whoever is woken needs --------------------------------------------------------------------------------------


AS_ITS_OWNER_SAYS = '{{ or .Labels.severity "ticket" }}'


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_how_urgent_it_is_what_is_wrong_and_where_to_read_on(name: str) -> None:
    for alert in ALERTS[name]:
        assert alert["labels"]["severity"] in {"page", "ticket", AS_ITS_OWNER_SAYS}
        assert alert["annotations"].keys() == {"summary", "description", "runbook_url"}
        page, _, anchor = alert["annotations"]["runbook_url"].partition("#")
        assert page == RUNBOOKS.relative_to(HERE.parents[1]).as_posix()
        assert anchor == name.lower()
        assert anchor in anchors(RUNBOOKS)


def test_quality_never_pages_unless_its_owner_wants_it_and_always_has_an_owner() -> None:
    for rule in rules("alerts-quality.yml"):
        if "alert" in rule:
            assert rule["labels"]["severity"] in {"ticket", AS_ITS_OWNER_SAYS}
            watched = "safe:quality_watch" in rule["expr"] or "safe:watched_" in rule["expr"]
            of_all = {
                "SafeInputMismatch",
                "SafeFailedGenerations",
                "SafeSettingsOutdated",
            }  # what is wrong in any batch
            assert watched or rule["alert"] in of_all
    for rule in rules("alerts-settings.yml"):
        assert "quality" not in rule["record"] or rule["labels"]["owner"]
        assert rule["record"] != "safe:quality_watch" or rule["labels"]["severity"] == "ticket"


def test_the_runbooks_have_a_section_for_each_alert_and_for_none_that_is_gone() -> None:
    titles = re.findall(r"^## (Safe\w+)$", RUNBOOKS.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(titles) == sorted(ALERTS)


def test_each_section_says_what_to_do_and_how_it_ends() -> None:
    _, *parts = re.split(r"^## (Safe\w+)$", RUNBOOKS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        section = text.partition("\n## ")[0]
        assert re.search(r"^1\. ", section, re.MULTILINE), name
        assert "**It ends**" in section, name


def test_alertmanager_speaks_only_of_alerts_that_there_are() -> None:
    text = (CONFIG / "alertmanager.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"Safe\w+", text)) <= ALERTS.keys()


def test_what_happens_in_one_installation_hides_nothing_in_another() -> None:
    document = yaml.safe_load((CONFIG / "alertmanager.yml").read_text(encoding="utf-8"))
    assert all(set(INSTALLATION) <= set(rule["equal"]) for rule in document["inhibit_rules"])
    routes = [document["route"], *document["route"]["routes"]]
    assert all(set(INSTALLATION) <= set(route["group_by"]) for route in routes)


def test_the_gauges_of_an_idle_batch_outlive_whatever_waits_for_them() -> None:
    prometheus = yaml.safe_load((CONFIG / "prometheus.yml").read_text(encoding="utf-8"))
    route = yaml.safe_load((CONFIG / "alertmanager.yml").read_text(encoding="utf-8"))["route"]
    longest = max(seconds(alert.get("for", "0s")) for each in ALERTS.values() for alert in each)
    scrape = seconds(prometheus["global"]["scrape_interval"])
    ttl = Settings.model_fields["batch_ttl_seconds"].default
    assert ttl > 1_800 + longest + 2 * scrape + seconds(route["group_wait"])


# --- what an operator sets --------------------------------------------------------------------------------------------


def test_as_shipped_no_batch_is_watched_and_nothing_lies_below_a_floor() -> None:
    by_name: dict[str, set[str]] = {}
    for rule in recorded():
        by_name.setdefault(rule["record"], set()).add(rule["expr"])
    [watch] = by_name["safe:quality_watch"]
    assert 'batch_id=~""' in watch
    assert by_name["safe:quality_floor"] == by_name["safe:traffic_expected"] == {"vector(0)"}


NAMED = "I25_batch_1"
OTHER = "an_I25_batch_1"


def set_up(*, fires: bool) -> Any:
    """A test for promtool: two complete batches of half a pass rate, of which one may be watched."""
    ratios = dict.fromkeys(("safe_batch_pass_ratio", "safe_batch_answered_pass_ratio"), "0.5x30")
    gauges = ratios | {"safe_batch_complete": "1x30"}
    series = [
        {"series": f'{gauge}{{job="safe", instance="a", concern_id="I25", batch_id="{batch}"}}', "values": values}
        for gauge, values in gauges.items()
        for batch in (NAMED, OTHER)
    ]
    ticket = {
        "exp_labels": {
            "severity": "ticket", "owner": "quality", "job": "safe",
            "concern_id": "I25", "batch_id": NAMED, "measure": "pass_ratio",
        },
        "exp_annotations": {
            "summary": f"Batch {NAMED}: pass_ratio is below its floor",
            "description": (
                "Its pass_ratio is 0.500 (concern I25). The batch is complete, or has enough cases to judge it by."
            ),
            "runbook_url": "docs/how-to/runbooks.md#safebatchbelowfloor",
        },
    }  # fmt: skip
    moment = {"eval_time": "15m", "alertname": "SafeBatchBelowFloor", "exp_alerts": [ticket] if fires else []}
    return {
        "rule_files": ["alerts-quality.yml", "alerts-settings.yml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "alert_rule_test": [moment]}],
    }


@needs_promtool
# Which batches are named, which floor is set, and whether a ticket comes of it.
@pytest.mark.parametrize(
    ("batches", "floor", "fires"),
    [
        ("I25_.*", "0.8", True),
        ("golden|I25_batch_.", "0.8", True),
        ("I25_.*", "0.5", False),  # at the floor is not below it
        ("I25_.*", "0", False),
        ("", "0.8", False),
        ("I25", "0.8", False),  # whole ids, not parts of them
    ],
)
def test_naming_batches_and_a_floor_is_all_that_it_takes(batches: str, floor: str, fires: bool, tmp_path: Path) -> None:
    shutil.copy(CONFIG / "alerts-quality.yml", tmp_path)
    settings = (CONFIG / "alerts-settings.yml").read_text(encoding="utf-8")
    settings = settings.replace('batch_id=~""', f'batch_id=~"{batches}"').replace("vector(0)", f"vector({floor})", 1)
    (tmp_path / "alerts-settings.yml").write_text(settings, encoding="utf-8")
    (tmp_path / "set-up.test.yml").write_text(yaml.safe_dump(set_up(fires=fires)), encoding="utf-8")
    said = run("promtool", "test", "rules", tmp_path / "set-up.test.yml")
    assert said.returncode == 0, said.stdout + said.stderr
