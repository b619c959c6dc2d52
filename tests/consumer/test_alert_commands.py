"""`safe config alerts`: rules for Prometheus or for Grafana, from an installed package alone."""

import re

import pytest

from consumer.alerts.rules import Choices, grafana_rules
from consumer.alerts.source import load
from consumer.cli.main import main
from tests.support.kafka_broker import PROJECT

FOR_GRAFANA = ("--grafana", "--datasource", "x", "--floor", "0.8")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["config", "alerts", *arguments]) == 0
    return capsys.readouterr().out


def test_grafanas_rules_are_made_by_what_was_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, *FOR_GRAFANA) == grafana_rules(load(), Choices("x", "0.8"))
    chosen = ("--folder", "Quality", "--batches", "W.*", "--receiver", "Duty")
    assert printed(capsys, *FOR_GRAFANA, *chosen) == grafana_rules(
        load(), Choices("x", "0.8", "Quality", "W.*", "Duty")
    )
    assert "< 0.8333333 - 1e-12" in printed(capsys, *FOR_GRAFANA[:-1], "0.8333333")


def test_the_settings_are_those_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "--settings") == (PROJECT / "config" / "alerts-settings.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize("asked", [(), FOR_GRAFANA])
def test_runbooks_are_links_where_an_address_is_given(
    asked: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, *asked, "--runbooks", "https://git.example.org/safe/")
    found = re.findall(r"runbook_url: (\S+)", text)
    assert len(found) > 20
    assert all(each.startswith("https://git.example.org/safe/docs/how-to/runbooks.md#safe") for each in found)


def test_without_grafana_they_are_the_two_files_for_prometheus(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys)
    for name in ("service", "quality"):
        rules = (PROJECT / "config" / f"alerts-{name}.yml").read_text(encoding="utf-8").partition("\ngroups:\n")[2]
        assert rules in text
    assert text.count("\ngroups:\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--grafana", "--floor", "0.8"), "--grafana needs --datasource UID"),
        (("--grafana", "--datasource", "x"), "and --floor (the pass"),
        (("--grafana", "--datasource", "x", "--floor", "80"), "--floor 80 is not a number from 0 to 1"),
        (("--grafana", "--datasource", "x", "--floor", "80%"), "80 percent is 0.8"),
        (("--grafana", "--datasource", "", "--floor", "0.8"), "--grafana needs --datasource UID"),
        (("--grafana", "--datasource", "x", "--floor", "0.8", "--folder", ""), "--folder is empty"),
        (("--floor", "0.8"), "give --grafana, too"),
        (("--batches", ".+"), "give --grafana, too"),
        (("--settings", "--floor", "0.8"), "give --grafana, too"),
        (("--settings", "--grafana"), "give it alone"),
        (("--datasource", "x"), "give --grafana, too"),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert main(["config", "alerts", *arguments]) == 3
    assert words in capsys.readouterr().err


def test_names_and_patterns_are_quoted_where_they_are_put(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--grafana", "--datasource", "x", "--floor", "1", "--batches", r'I\d+|a"b', "--folder", 'Q "1"')
    text = printed(capsys, *asked)
    assert r'batch_id=~"I\\d+|a\"b"' in text
    assert r'folder: "Q \"1\""' in text
