"""`safe config alerts`: rules for Prometheus or for Grafana, from an installed package alone."""

import pytest

from consumer.cli.main import main
from tests.support.kafka_broker import PROJECT

GRAFANA = PROJECT / "config" / "grafana" / "provisioning" / "alerting" / "rules.yml"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["config", "alerts", *arguments]) == 0
    return capsys.readouterr().out


def test_grafanas_rules_are_those_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--grafana", "--datasource", "prometheus", "--floor", "0.8")
    assert printed(capsys, *asked) == GRAFANA.read_text(encoding="utf-8")


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
        (("--floor", "0.8"), "give --grafana, too"),
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
