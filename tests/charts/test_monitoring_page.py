"""The steps of docs/how-to/monitoring.md, as far as they can be done without a Grafana."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from consumer.alerts.rules import settings_file
from consumer.alerts.source import load
from consumer.cli.main import main
from tests.consumer.test_readme import shell
from tests.monitoring.conftest import promtool  # noqa: F401 (a fixture)
from tests.monitoring.test_situations import MINUTES, SITUATIONS, healthy
from tests.support.chart import SETS, rendered, with_values
from tests.support.kafka_broker import PROJECT
from tests.support.prometheus import run

PAGE = (PROJECT / "docs" / "how-to" / "monitoring.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The examples in a language, without the indentation of the list that they are in."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", PAGE, re.MULTILINE | re.DOTALL)
    return [re.sub(f"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


[PROMETHEUS] = [text for text in blocks("yaml") if "scrape_configs" in text]
VALUES: list[Any] = [yaml.safe_load(text) for text in blocks("yaml") if text != PROMETHEUS]


@pytest.mark.parametrize("values", VALUES, ids=[next(iter(reversed(values))) for values in VALUES])
def test_every_example_of_values_is_one_that_the_chart_takes(values: Any) -> None:
    assert rendered(with_values(SETS["defaults"], values)).one("Deployment")


def test_on_kubernetes_it_takes_three_values_and_gives_what_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    [values] = [each for each in VALUES if "grafana" in each]
    assert values["grafana"]["alerts"].keys() == {"enabled", "datasourceUid", "floor"}
    [command] = [text for text in blocks("bash") if "--grafana" in text]
    program, *arguments, sign, _ = command.split()
    assert (program, sign) == ("safe", ">")
    assert main(arguments) == 0
    [made] = [
        each["data"]
        for each in rendered(with_values(SETS["defaults"], values)).of("ConfigMap")
        if "grafana-alerts" in each["metadata"]["name"]
    ]
    assert [*made.values()] == [capsys.readouterr().out]


@pytest.mark.usefixtures("promtool")
def test_without_kubernetes_every_command_does_what_is_said(tmp_path: Path) -> None:
    (tmp_path / "prometheus.yml").write_text(PROMETHEUS, encoding="utf-8")
    for command in blocks("bash"):
        done = shell(command, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    [group] = yaml.safe_load((tmp_path / "safe-grafana-alerts.yml").read_text(encoding="utf-8"))["groups"]
    deleted = yaml.safe_load((tmp_path / "safe-delete.yml").read_text(encoding="utf-8"))["deleteRules"]
    assert deleted == [{"orgId": group["orgId"], "uid": rule["uid"]} for rule in group["rules"]]


def test_what_is_to_be_edited_is_in_the_settings_as_the_page_names_it() -> None:
    text = settings_file()
    assert text.count('batch_id=~""') == 1
    first = text.partition("vector(0)")[2].splitlines()[1]
    assert "measure: pass_ratio" in first


@pytest.mark.parametrize(
    ("name", "fires"), [("all is well", False), ("a complete batch is bad", True), ("one result in ten does", False)]
)
def test_the_query_to_paste_answers_where_a_complete_batch_is_below_the_floor(
    name: str, fires: bool, tmp_path: Path
) -> None:
    [query] = blocks("promql")
    labels = '{cluster="c", namespace="n", group="safe-v0", concern_id="S11", batch_id="W"}'
    question = {
        "expr": query,
        "eval_time": f"{MINUTES - 5}m",
        "exp_samples": [{"labels": labels, "value": 0.3}] if fires else [],
    }
    series = [{"series": each, "values": values} for each, values in (healthy() | SITUATIONS[name]).items()]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": [question]}
    file = tmp_path / "paste.test.yml"
    file.write_text(json.dumps({"rule_files": [], "evaluation_interval": "1m", "tests": [test]}), encoding="utf-8")
    said = run("promtool", "test", "rules", file)
    assert said.returncode == 0, said.stdout + said.stderr


def test_the_alerts_that_grafana_does_not_have_are_named() -> None:
    without = [alert.name for alert in load().alerts if alert.no_grafana]
    [sentence] = re.findall(r"All alerts are\s+there but three:\s+(.*?) need", PAGE, re.DOTALL)
    assert sorted(re.findall(r"Safe\w+", sentence)) == sorted(without)
