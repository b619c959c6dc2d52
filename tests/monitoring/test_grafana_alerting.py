"""The alert rules that Grafana itself evaluates: their form, and in promtool what each query answers.

No Grafana runs here. Its provisioning is held to the fields that its documentation names.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring.test_situations import MINUTES, SITUATIONS, healthy
from tests.support.dashboard import dashboard
from tests.support.prometheus import CONFIG, run
from tests.support.promql import OTHERS_METRICS, known_labels, known_metrics, labels_in, metrics_in

FOLDER = CONFIG / "grafana" / "provisioning" / "alerting"
RUNBOOKS = (CONFIG.parent / "docs" / "how-to" / "runbooks.md").read_text(encoding="utf-8")
[GROUP] = yaml.safe_load((FOLDER / "rules.yml").read_text(encoding="utf-8"))["groups"]
RULES: Mapping[str, Any] = {rule["uid"]: rule for rule in GROUP["rules"]}
NOTIFICATIONS = yaml.safe_load((FOLDER / "notifications.yml").read_text(encoding="utf-8"))


def query(uid: str) -> str:
    """The PromQL of a rule."""
    return str(RULES[uid]["data"][0]["model"]["expr"])


@pytest.mark.parametrize("uid", RULES)
def test_a_rule_has_what_provisioning_asks_for(uid: str) -> None:
    rule = RULES[uid]
    assert rule.keys() == {
        "uid", "title", "condition", "for", "noDataState", "execErrState", "isPaused", "labels", "annotations", "data",
    }  # fmt: skip
    assert rule["noDataState"] in {"OK", "NoData", "Alerting", "KeepLast"}
    assert rule["execErrState"] in {"OK", "Error", "Alerting", "KeepLast"}
    assert rule["labels"]["severity"] in {"page", "ticket"}
    value, threshold = rule["data"]
    source = yaml.safe_load((FOLDER.parent / "datasources" / "prometheus.yml").read_text(encoding="utf-8"))
    assert value["datasourceUid"] == source["datasources"][0]["uid"]
    assert threshold["datasourceUid"] == "__expr__"
    assert threshold["refId"] == rule["condition"]
    assert threshold["model"]["expression"] == value["refId"]
    # What the query answers fires, whatever its value: it answers nothing while all is well.
    assert threshold["model"]["conditions"] == [{"evaluator": {"type": "gt", "params": [-1]}}]
    assert all(each["refId"] == each["model"]["refId"] for each in rule["data"])
    assert len(uid) <= 40


@pytest.mark.parametrize("uid", RULES)
def test_a_rule_leads_to_a_panel_and_a_runbook(uid: str) -> None:
    told = RULES[uid]["annotations"]
    page, _, anchor = told["runbook_url"].partition("#")
    assert page == "docs/how-to/runbooks.md"
    assert anchor in [title.lower() for title in re.findall(r"^## (\w+)$", RUNBOOKS, re.MULTILINE)]
    shown = dashboard()
    assert told["__dashboardUid__"] == shown["uid"]
    assert int(told["__panelId__"]) in {panel["id"] for panel in shown["panels"]}


@pytest.mark.parametrize("uid", RULES)
def test_a_rule_reads_only_what_there_is(uid: str) -> None:
    assert metrics_in(query(uid)) <= known_metrics() | OTHERS_METRICS
    assert labels_in(query(uid)) <= known_labels()


def test_nothing_is_taken_for_a_variable_of_the_environment() -> None:
    assert [file.name for file in FOLDER.glob("*.yml") if "$" in file.read_text(encoding="utf-8")] == []


def test_every_policy_has_a_receiver_that_there_is() -> None:
    receivers = {point["name"] for point in NOTIFICATIONS["contactPoints"]}
    [policy] = NOTIFICATIONS["policies"]
    assert {policy["receiver"], *(route["receiver"] for route in policy["routes"])} <= receivers


FIRING: Mapping[str, set[str]] = {
    "all is well": set(),
    "a quiet night: no output for hours, none expected": set(),
    "a complete batch is bad": {"safe-batch-pass-rate"},
    "a batch is bad, and incomplete because one of its thousand cases became a dead letter": {"safe-batch-pass-rate"},
    "a batch is bad, and its size is unknown because its test cases come from a service": {"safe-batch-pass-rate"},
    "calls of the model fail: a quarter of a batch has no answer, and the rest is good": set(),
    "one result in five takes longer than half a minute": {"safe-results-late"},
    "one of three workers is gone": set(),
    "all workers are gone": {"safe-down"},
    "a partition is not served": {"safe-partition-waiting"},
}


@pytest.mark.usefixtures("promtool")
@pytest.mark.parametrize("name", FIRING)
def test_a_query_answers_where_its_alert_should_fire(name: str, tmp_path: Path) -> None:
    assert_fire(FIRING[name], healthy() | SITUATIONS[name], tmp_path)


@pytest.mark.usefixtures("promtool")
@pytest.mark.parametrize("name", [name for name in FIRING if "batch is bad" in name])
def test_a_batch_of_a_worker_of_the_earlier_version_is_judged_by_all_of_its_cases(name: str, tmp_path: Path) -> None:
    told = {each: values for each, values in SITUATIONS[name].items() if not each.startswith(OF_THE_NEXT_VERSION)}
    assert len(told) == len(SITUATIONS[name]) - 2
    assert_fire(FIRING[name], healthy() | told, tmp_path)


OF_THE_NEXT_VERSION = ("safe_batch_failed_generations", "safe_batch_answered_")


def assert_fire(firing: set[str], situation: Mapping[str, str], folder: Path) -> None:
    """Let promtool ask every rule whether it has an answer."""
    questions = [
        {
            "expr": f"count(({query(uid)}) > -1) > bool 0 or vector(0)",
            "eval_time": f"{MINUTES - 5}m",
            "exp_samples": [{"labels": "{}", "value": int(uid in firing)}],
        }
        for uid in RULES
    ]
    series = [{"series": each, "values": values} for each, values in situation.items()]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": questions}
    file = folder / "grafana.test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [], "evaluation_interval": "1m", "tests": [test]}), encoding="utf-8")
    said = run("promtool", "test", "rules", file)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.usefixtures("promtool")
def test_a_forbidden_term_is_seen(tmp_path: Path) -> None:
    series = [
        {
            "series": f'safe_batch_mean_score{{job="safe", concern_id="S11", batch_id="{name}", metric="AH"}}',
            "values": v,
        }
        for name, v in (("bad", "0.9x10"), ("good", "1x10"))
    ]
    sample = {"labels": '{job="safe", concern_id="S11", batch_id="bad"}', "value": 0.9}
    question = {"expr": query("safe-forbidden-term"), "eval_time": "5m", "exp_samples": [sample]}
    test = {"interval": "1m", "input_series": series, "promql_expr_test": [question]}
    file = tmp_path / "grafana.test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [], "evaluation_interval": "1m", "tests": [test]}), encoding="utf-8")
    said = run("promtool", "test", "rules", file)
    assert said.returncode == 0, said.stdout + said.stderr
