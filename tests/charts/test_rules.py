"""The alerts that the chart installs are those of config/, and what its values set does what the settings file does."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import missing
from tests.support.chart import SETS, rendered, with_values
from tests.support.kafka_broker import PROJECT
from tests.support.prometheus import CONFIG, ToolMissingError, run, tool
from tests.support.promql import RULE_FILES

TESTS_OF_ALERTS = PROJECT / "tests" / "monitoring"
TEAM = {"owner": "quality", "batches": "I25_.*", "passRatio": 0.8}
Json = Any


@pytest.fixture(scope="module", autouse=True)
def promtool(helm: None) -> None:  # noqa: ARG001 (a chart that cannot be rendered comes first)
    """The judge of rules."""
    try:
        tool("promtool")
    except ToolMissingError as error:
        missing(str(error))


def groups(**settings: Json) -> list[Json]:
    """The groups of the rendered rules."""
    values = with_values(SETS["defaults"], {"prometheusRule": {"enabled": True} | settings})
    found: list[Json] = rendered(values).one("PrometheusRule")["spec"]["groups"]
    return found


def groups_of(name: str) -> list[Json]:
    """The groups of a file of the project."""
    found: list[Json] = yaml.safe_load((CONFIG / name).read_text(encoding="utf-8"))["groups"]
    return found


def by_name(groups: list[Json]) -> dict[str, Json]:
    return {group["name"]: group for group in groups}


def test_by_default_they_are_the_files_of_the_project_word_for_word() -> None:
    expected = [group for name in RULE_FILES for group in groups_of(name)]
    assert by_name(groups()) == by_name(expected)
    assert len(groups()) == len(expected)


@pytest.mark.parametrize("name", ["secured", "everything"])
def test_promtool_finds_nothing_wrong_with_them(name: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text(json.dumps({"groups": rendered(SETS[name]).one("PrometheusRule")["spec"]["groups"]}))
    said = run("promtool", "check", "rules", "--lint-fatal", rules)
    assert said.returncode == 0, said.stdout + said.stderr


# With what is set in the chart where the tests expect it of the settings file, or give its series themselves.
@pytest.mark.parametrize("name", sorted(path.name for path in TESTS_OF_ALERTS.glob("*.test.yml")))
def test_they_fire_and_stay_silent_as_the_files_do(name: str, tmp_path: Path) -> None:
    document = yaml.safe_load((TESTS_OF_ALERTS / name).read_text(encoding="utf-8"))
    wanted = {group["name"] for file in document["rule_files"] for group in groups_of(Path(file).name)}
    judge(document, [group for group in groups() if group["name"] in wanted], tmp_path)


def judge(document: Json, rules: list[Json], folder: Path) -> None:
    """Let promtool run a document of tests over these rules."""
    (folder / "rules.yml").write_text(json.dumps({"groups": rules}), encoding="utf-8")
    (folder / "rules.test.yml").write_text(json.dumps(document | {"rule_files": ["rules.yml"]}), encoding="utf-8")
    said = run("promtool", "test", "rules", folder / "rules.test.yml")
    assert said.returncode == 0, said.stdout + said.stderr


def half_passes(*batches: str) -> list[Json]:
    """Series of complete batches, half of whose cases pass."""
    gauges = {"safe_batch_pass_ratio": "0.5x30", "safe_batch_complete": "1x30"}
    return [
        {"series": f"{gauge}{{job='safe', concern_id='I25', batch_id={json.dumps(batch)}}}", "values": values}
        for gauge, values in gauges.items()
        for batch in batches
    ]


def ticket(owner: str, batch: str) -> Json:
    """What promtool expects of a batch's ticket."""
    return {
        "exp_labels": {
            "severity": "ticket", "owner": owner, "job": "safe",
            "concern_id": "I25", "batch_id": batch, "measure": "pass_ratio",
        },
        "exp_annotations": {
            "summary": f"Batch {batch}: pass_ratio is below its floor",
            "description": (
                "Its pass_ratio is 0.500 (concern I25). The batch is complete, or has enough cases to judge it by."
            ),
            "runbook_url": "docs/how-to/runbooks.md#safebatchbelowfloor",
        },
    }  # fmt: skip


FIRING: list[tuple[str, list[Json], list[tuple[str, str]]]] = [
    ("nobody watches", [], []),
    ("one watches, with a floor above", [TEAM], [("quality", "I25_1")]),
    ("at the floor is not below it", [TEAM | {"passRatio": 0.5}], []),
    ("no floor is set", [{"owner": "quality", "batches": "I25_.*"}], []),
    ("whole ids, not parts of them", [TEAM | {"batches": "I25"}], []),
    ("another owner", [TEAM | {"owner": "stroke"}], [("stroke", "I25_1")]),
    ("two, each with a floor of its own", [TEAM | {"passRatio": 0.4}, TEAM | {"owner": "b"}], [("b", "I25_1")]),
    ("the concern that is named", [TEAM | {"concerns": "I.*"}], [("quality", "I25_1")]),
    ("another concern", [TEAM | {"concerns": "I2"}], []),
    ("what must be quoted", [TEAM | {"batches": r'a"\\b|I\d+_1'}], [("quality", 'a"\\b'), ("quality", "I25_1")]),
]


@pytest.mark.parametrize(("quality", "tickets"), [row[1:] for row in FIRING], ids=[row[0] for row in FIRING])
def test_tickets_go_to_whoever_watches_and_set_a_floor(
    quality: list[Json], tickets: list[tuple[str, str]], tmp_path: Path
) -> None:
    moment = {
        "eval_time": "15m",
        "alertname": "SafeBatchBelowFloor",
        "exp_alerts": [ticket(owner, batch) for owner, batch in tickets],
    }
    test = {"interval": "1m", "input_series": half_passes("I25_1", 'a"\\b', "S11_1"), "alert_rule_test": [moment]}
    judge({"evaluation_interval": "1m", "tests": [test]}, groups(quality=quality), tmp_path)


def test_whoever_watches_may_be_paged(tmp_path: Path) -> None:
    page = ticket("quality", "I25_1")
    page["exp_labels"]["severity"] = "page"
    moment = {"eval_time": "15m", "alertname": "SafeBatchBelowFloor", "exp_alerts": [page]}
    test = {"interval": "1m", "input_series": half_passes("I25_1"), "alert_rule_test": [moment]}
    judge({"evaluation_interval": "1m", "tests": [test]}, groups(quality=[TEAM | {"severity": "page"}]), tmp_path)


@pytest.mark.parametrize(("expression", "silent_is_news"), [("vector(0)", False), ("vector(1)", True)])
def test_silence_is_a_ticket_where_traffic_is_expected(expression: str, silent_is_news: bool, tmp_path: Path) -> None:
    [annotations] = [
        rule["annotations"]
        for group in groups_of("alerts-service.yml")
        for rule in group["rules"]
        if rule.get("alert") == "SafeSilent"
    ]
    where_nothing_is_known = annotations | {"summary": annotations["summary"].partition("{{")[0]}
    alert = {"exp_labels": {"severity": "ticket", "job": "safe"}, "exp_annotations": where_nothing_is_known}
    moment = {"eval_time": "100m", "alertname": "SafeSilent", "exp_alerts": [alert] if silent_is_news else []}
    series = [{"series": 'safe_records_total{job="safe", outcome="scored"}', "values": "7x120"}]
    test = {"interval": "1m", "input_series": series, "alert_rule_test": [moment]}
    judge({"evaluation_interval": "1m", "tests": [test]}, groups(trafficExpected=expression), tmp_path)


def test_every_floor_of_every_team_stands_where_its_rule_reads_it() -> None:
    rules = by_name(rendered(SETS["everything"]).one("PrometheusRule")["spec"]["groups"])["safe-settings-quality"]
    floors = {
        (rule["labels"]["owner"], rule["labels"]["measure"]): rule["expr"]
        for rule in rules["rules"]
        if rule["record"] == "safe:quality_floor"
    }
    assert floors == {
        ("neurology", "pass_ratio"): "vector(0.8)",
        ("neurology", "mean_CR"): "vector(0.7)",
        ("neurology", "mean_AC"): "vector(0.65)",
        ("cardiology", "pass_ratio"): "vector(1)",
        ("cardiology", "mean_CR"): "vector(0)",
        ("cardiology", "mean_AC"): "vector(0)",
    }


def test_an_address_before_the_runbooks_makes_links_of_them() -> None:
    found = rendered(SETS["everything"]).text
    links = set(re.findall(r"runbook_url: ([^\s#]+)#", found))
    assert links == {"https://git.example.org/safe/blob/main/docs/how-to/runbooks.md"}
