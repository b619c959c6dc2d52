"""The alert rules that Grafana itself evaluates: their form, and in promtool the alerts that come of them.

No Grafana runs here. Their fields are those of its provisioning of files: AlertRuleV1 in rules_types.go of
pkg/services/provisioning/alerting, read at six commits, the oldest from before 10.4, the newest ones after 12.1.1
(9ff3317d, 0085cf86). docs/how-to/monitoring.md says which Grafana is the first that knows a field.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from consumer.alerts.rules import Choices, grafana_rules
from consumer.alerts.source import load
from tests.monitoring.test_situations import SITUATIONS, asked, judge, told
from tests.support.dashboard import dashboard
from tests.support.prometheus import CONFIG
from tests.support.promql import OTHERS_METRICS, alerts, known_labels, known_metrics, labels_in, metrics_in

PROVISIONING = CONFIG / "grafana" / "provisioning"
SOURCE = load()
CHOICES = Choices(datasource="prometheus", floor="0.8")
TEXT = grafana_rules(SOURCE, CHOICES)
[GROUP] = yaml.safe_load(TEXT)["groups"]
RULES: Mapping[str, Any] = {rule["uid"]: rule for rule in GROUP["rules"]}
# Of AlertRuleV1; what an earlier Grafana does not know of these, it leaves out.
FIELDS = {
    "uid", "title", "condition", "for", "keepFiringFor", "noDataState", "execErrState", "isPaused", "labels",
    "annotations", "data", "notification_settings",
}  # fmt: skip
# What Grafana's templates know (pkg/services/ngalert/state/template), and Prometheus too.
TEMPLATE = re.compile(
    r"\{\{ (?:if \.Labels\.\w+|else|end|\.Labels\.\w+"
    r"|\.Values\.value\.Value(?: \| (?:humanize(?:Duration|Percentage)?|printf \"[^\"]+\"))?) \}\}"
)


def query(uid: str) -> str:
    """The PromQL of a rule."""
    return str(RULES[uid]["data"][0]["model"]["expr"])


@pytest.mark.parametrize("uid", RULES)
def test_a_rule_has_what_provisioning_knows(uid: str) -> None:
    rule = RULES[uid]
    assert rule.keys() <= FIELDS
    assert FIELDS - rule.keys() <= {"keepFiringFor", "notification_settings"}
    # A query that answers nothing means that all is well: SafeDown has a value while no worker is up.
    assert (rule["noDataState"], rule["execErrState"]) == ("OK", "Error")
    assert rule["labels"]["severity"] in {"page", "ticket"}
    value, threshold = rule["data"]
    assert value["datasourceUid"] == "prometheus"
    assert threshold["datasourceUid"] == "__expr__"
    assert threshold["refId"] == rule["condition"]
    assert threshold["model"]["expression"] == value["refId"]
    # What the query answers fires, whatever its value: it answers nothing while all is well.
    [condition] = threshold["model"]["conditions"]
    assert condition["evaluator"]["type"] == "gt"
    assert condition["evaluator"]["params"][0] < -1e9
    assert all(each["refId"] == each["model"]["refId"] for each in rule["data"])
    assert re.fullmatch("[a-z0-9-]{1,40}", uid)


def test_rules_in_another_folder_replace_none_of_these_and_those_for_another_data_source_do() -> None:
    [group] = yaml.safe_load(grafana_rules(SOURCE, replace(CHOICES, folder="East")))["groups"]
    assert RULES.keys().isdisjoint(rule["uid"] for rule in group["rules"])
    [group] = yaml.safe_load(grafana_rules(SOURCE, replace(CHOICES, datasource="new", floor="0.9")))["groups"]
    assert RULES.keys() == {rule["uid"] for rule in group["rules"]}


@pytest.mark.parametrize("uid", RULES)
def test_a_rule_leads_to_a_panel_and_a_runbook(uid: str) -> None:
    said = RULES[uid]["annotations"]
    assert said["runbook_url"] == f"docs/how-to/runbooks.md#{RULES[uid]['title'].split()[0].lower()}"
    shown = dashboard()
    assert said["__dashboardUid__"] == shown["uid"]
    assert int(said["__panelId__"]) in {panel["id"] for panel in shown["panels"]}


@pytest.mark.parametrize("uid", RULES)
def test_a_text_asks_only_for_what_grafana_knows_and_names_no_label_that_is_not_there(uid: str) -> None:
    said = RULES[uid]["annotations"]
    text = " ".join(f"{said['summary']} {said['description']}".split())
    assert re.findall(r"\{\{.*?\}\}", text) == TEMPLATE.findall(text)
    # Of an installation's labels each is asked after before it is named.
    bare = re.sub(r"\{\{ if \.Labels\.(\w+) \}\}[^{]*\{\{ \.Labels\.\1 \}\}\{\{ end \}\}", "", text)
    assert not re.search(r"\.Labels\.(cluster|namespace|group)\b", bare)


@pytest.mark.parametrize("uid", RULES)
def test_a_rule_reads_only_what_there_is_and_nothing_that_is_recorded(uid: str) -> None:
    assert metrics_in(query(uid)) <= {name for name in known_metrics() | OTHERS_METRICS if ":" not in name}
    assert labels_in(query(uid)) <= known_labels()


def test_every_alert_is_there_or_the_source_says_why_not() -> None:
    titles = {rule["title"].split()[0] for rule in RULES.values()}
    assert titles == alerts().keys() - {alert.name for alert in SOURCE.alerts if alert.no_grafana}
    assert len(RULES) == len(GROUP["rules"])


def test_nothing_is_taken_for_a_variable_of_the_environment() -> None:
    assert "$" not in TEXT


def test_nothing_that_a_folder_can_provision_has_policies() -> None:
    documents = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in PROVISIONING.rglob("*.yml")]
    assert documents
    assert [document for document in documents if "policies" in document] == []
    assert "policies:" not in (CONFIG.parent / "charts/safe/files/grafana-alerts.yml").read_text(encoding="utf-8")


def test_without_a_receiver_the_policies_of_the_organisation_apply_and_with_one_each_rule_names_it() -> None:
    assert "notification_settings" not in TEXT
    text = grafana_rules(SOURCE, Choices(datasource="x", floor="0.8", receiver='Duty "SAFE"'))
    [group] = yaml.safe_load(text)["groups"]
    assert [rule["notification_settings"] for rule in group["rules"]] == [{"receiver": 'Duty "SAFE"'}] * len(RULES)


def as_prometheus(text: str) -> list[Any]:
    """Grafana's rules as Prometheus evaluates them: both ask the query, and wait for `for`."""
    [group] = yaml.safe_load(text)["groups"]
    return [
        {
            "alert": rule["title"].split()[0],
            "expr": rule["data"][0]["model"]["expr"],
            "for": rule["for"],
            "labels": rule["labels"],
        }
        for rule in group["rules"]
    ]


@pytest.mark.usefixtures("promtool")
def test_each_situation_makes_the_same_alerts_as_those_of_prometheus(tmp_path: Path) -> None:
    without = {alert.name for alert in SOURCE.alerts if alert.no_grafana}
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "SAFE", "rules": as_prometheus(TEXT)}]}))
    firing = 'group by (alertname, severity) (ALERTS{alertstate="firing"})'
    expected = {
        name: dict.fromkeys(pages - without, "page") | dict.fromkeys(tickets - without, "ticket")
        for name, (pages, tickets) in told().items()
    }
    judge([asked(name, firing, expected[name]) for name in SITUATIONS], ["rules.yml"], tmp_path)


OF_THE_NEXT_VERSION = ("safe_batch_failed_generations", "safe_batch_answered_")


@pytest.mark.usefixtures("promtool")
def test_a_batch_of_a_worker_of_the_earlier_version_is_judged_by_all_of_its_cases(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "SAFE", "rules": as_prometheus(TEXT)}]}))
    firing = 'group by (alertname, severity) (ALERTS{alertstate="firing"})'
    names = [name for name in SITUATIONS if "batch is bad" in name]
    tests = [asked(name, firing, {"SafeBatchBelowFloor": "ticket"}) for name in names]
    for test in tests:
        given = test["input_series"]
        test["input_series"] = [each for each in given if not each["series"].startswith(OF_THE_NEXT_VERSION)]
        assert len(test["input_series"]) == len(given) - 2
    judge(tests, ["rules.yml"], tmp_path)
