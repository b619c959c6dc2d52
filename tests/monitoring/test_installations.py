"""Eight installations in one Prometheus: of these the ill one is named, by Prometheus' rules and by Grafana's."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from consumer.alerts.rules import Choices, grafana_rules, prometheus_rules
from consumer.alerts.source import Source, load
from tests.support.installations import (
    EIGHT,
    INSTALLATION,
    SETTINGS,
    SYMPTOMS,
    Installation,
    Series,
    crowded,
    firing,
    healthy,
    only_what_is_read,
    promtool_test,
    world,
    write_test,
)
from tests.support.kafka_broker import PROJECT
from tests.support.prometheus import failing, run

pytestmark = pytest.mark.usefixtures("promtool")
FILES = ("service", "quality")
IN_GRAFANA = " in Grafana"
Rule = Any


def key(name: str, severity: str) -> str:
    """What an alert is called here: of two of one name, the ticket is another."""
    return f"{name} ticket" if (name, severity) == ("SafeResultsLate", "ticket") else name


@cache
def rules(without: str = "") -> Mapping[str, list[Rule]]:
    """For each alert its rules: what it reads of records, in order, itself, and the same in Grafana."""
    source = load(without)
    every = [
        rule
        for file in FILES
        for group in yaml.load(prometheus_rules(source, file), Loader=yaml.CSafeLoader)["groups"]
        for rule in group["rules"]
    ]
    found: dict[str, list[Rule]] = {}
    for rule in (rule for rule in every if "alert" in rule):
        named = rule | {"alert": key(rule["alert"], rule["labels"]["severity"])}
        found[named["alert"]] = [*_read_by(rule, every), named]
    for name, rule in _of_grafana(source).items():
        found[name].append(rule)
    return found


def _read_by(rule: Rule, every: list[Rule]) -> list[Rule]:
    """The records that a rule reads, and those that these read."""
    read, names = [], set(re.findall(r"safe:[\w:]+", rule["expr"]))
    for record in reversed([each for each in every if each.get("record")]):
        if record["record"] in names:
            read.append(record)
            names |= set(re.findall(r"safe:[\w:]+", record["expr"]))
    return read[::-1]


def _of_grafana(source: Source) -> dict[str, Rule]:
    text = grafana_rules(source, Choices(datasource="prometheus", floor="0.8"))
    [group] = yaml.load(text, Loader=yaml.CSafeLoader)["groups"]
    rules = {}
    for rule in group["rules"]:
        name = key(rule["title"].partition(" ")[0], rule["labels"]["severity"])
        rules[name] = {
            "alert": name + IN_GRAFANA,
            "expr": rule["data"][0]["model"]["expr"],
            "for": rule["for"],
            "labels": rule["labels"],
        }
    return rules


def asked(name: str, ill: Installation | None, series: Series, expected: list[Installation]) -> Any:
    """A test of one alert, of Prometheus and of Grafana."""
    named = [rule["alert"] for rule in rules()[name] if "alert" in rule]
    read = only_what_is_read(series, (rule["expr"] for rule in rules()[name]))
    return promtool_test(f"{name} at {ill}", read, [firing(each, expected) for each in named])


def grouped(rules: list[Rule]) -> list[Any]:
    return [{"name": "rules", "rules": rules}]


def test_there_is_a_symptom_for_each_alert() -> None:
    assert SYMPTOMS.keys() == rules().keys() - {"SafeSettingsOutdated"}  # which is about no installation


@pytest.mark.parametrize("name", SYMPTOMS)
def test_of_eight_installations_the_ill_one_is_named_and_no_other(name: str, tmp_path: Path) -> None:
    tests = [asked(name, ill, world(name, ill), [ill]) for ill in EIGHT]
    tests.append(asked(name, None, world(name, None), []))
    said = run("promtool", "test", "rules", write_test(tmp_path, "eight", grouped(rules()[name]), tests))
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("name", ["SafeBatchBelowFloor", "SafeConcernBelowFloor"])
def test_what_two_prometheus_have_scraped_is_not_counted_twice(name: str, tmp_path: Path) -> None:
    """Of 15 cases no batch can be judged; both batches of the concern have 30."""
    series = dict(SETTINGS) | healthy(EIGHT[0]) | SYMPTOMS["SafeConcernBelowFloor"](EIGHT[0])
    twice = {
        each if each.startswith("safe:") else f'{each[:-1]}, replica="{replica}"}}': values
        for each, values in series.items()
        for replica in ("a", "b")
    }
    read = only_what_is_read(twice, (rule["expr"] for rule in rules()[name]))
    named = [rule["alert"] for rule in rules()[name] if "alert" in rule]
    expected = EIGHT[:1] if name == "SafeConcernBelowFloor" else []
    test = promtool_test(name, read, [firing(each, expected) for each in named])
    said = run("promtool", "test", "rules", write_test(tmp_path, "twice", grouped(rules()[name]), [test]))
    assert said.returncode == 0, said.stdout + said.stderr


# --- each label of an installation is needed --------------------------------------------------------------------------

# Whose rules name no label, so that none can be left out: they have all labels of the worker's own series.
NAME_NO_LABEL = ("SafeLoginRefused", "SafeRestoreFailing", "SafeClockSkew")


def test_each_label_of_an_installation_is_missed_where_a_rule_does_without_it(tmp_path: Path) -> None:
    """Each alert without each label, under a name of its own, must give another answer; promtool is started once."""
    files: dict[tuple[str, str], Path] = {}
    for label in INSTALLATION:
        for name in SYMPTOMS:
            mutant = [rule for rule in rules(without=label)[name] if not rule.get("alert", "").endswith(IN_GRAFANA)]
            mutant[-1] = mutant[-1] | {"alert": f"{name} without {label}"}
            series, expected = crowded(name)
            read = only_what_is_read(series, (rule["expr"] for rule in mutant))
            test = promtool_test(f"{name} without {label}", read, [firing(mutant[-1]["alert"], expected)])
            files[name, label] = write_test(tmp_path, f"{name} without {label}", grouped(mutant), [test])
    failed = failing(list(files.values()))
    green = {mutant for mutant, file in files.items() if file not in failed}
    assert green == {(name, label) for name in NAME_NO_LABEL for label in INSTALLATION}


# --- a settings file of the version before ----------------------------------------------------------------------------

BEFORE = PROJECT / "tests" / "compatibility" / "0.1.0" / "alerts-settings.yml"
NOW = PROJECT / "config" / "alerts-settings.yml"
OF_THE_SETTINGS = (
    "SafeBatchBelowFloor", "SafeConcernBelowFloor", "SafeForbiddenTermUsed", "SafeBatchIncomplete", "SafeSilent",
)  # fmt: skip


def settings(file: Path) -> list[Any]:
    """Its groups, as somebody edits them who watches every batch of a concern, with a floor, and expects traffic."""
    text = file.read_text(encoding="utf-8").replace('batch_id=~""', 'batch_id=~"W|V"')
    text = text.replace("vector(0)", "vector(0.8)", 1)
    head, _, traffic = text.rpartition("vector(0)")
    groups: list[Any] = yaml.safe_load(f"{head}vector(1){traffic}")["groups"]
    return groups


def with_settings(file: Path, name: str, installations: list[Installation]) -> tuple[list[Any], Series]:
    """The rules with this file, and some installations of which the first has what the alert is for."""
    series: Series = {}
    for here in installations:
        series |= healthy(here)
    series |= SYMPTOMS[name](installations[0])
    own = {each: values for each, values in series.items() if not each.startswith("safe:")}
    prometheus = [rule for rule in rules()[name] if not rule.get("alert", "").endswith(IN_GRAFANA)]
    return settings(file) + grouped(prometheus), own


@pytest.mark.parametrize("name", OF_THE_SETTINGS)
@pytest.mark.parametrize("file", [BEFORE, NOW], ids=["of the version before", "of now"])
def test_a_settings_file_of_the_version_before_gives_the_same_alerts(name: str, file: Path, tmp_path: Path) -> None:
    groups, series = with_settings(file, name, EIGHT[:1])
    tests = [promtool_test(name, series, [firing(name, EIGHT[:1])])]
    said = run("promtool", "test", "rules", write_test(tmp_path, "settings", groups, tests))
    assert said.returncode == 0, said.stdout + said.stderr


# Of eight batches of one name, the old file cannot say which it means.
@pytest.mark.parametrize(("file", "is_outdated"), [(BEFORE, True), (NOW, False)])
def test_where_it_cannot_know_which_batch_is_meant_an_alert_says_so(
    file: Path, is_outdated: bool, tmp_path: Path
) -> None:
    groups, series = with_settings(file, "SafeBatchBelowFloor", EIGHT)
    groups += [{"name": "outdated", "rules": rules()["SafeSettingsOutdated"][-1:]}]
    outdated = {
        "expr": 'count by (owner) (ALERTS{alertstate="firing", alertname="SafeSettingsOutdated"})',
        "eval_time": "175m",
        "exp_samples": [{"labels": '{owner="quality"}', "value": 1}] if is_outdated else [],
    }
    named = firing("SafeBatchBelowFloor", [] if is_outdated else EIGHT[:1])
    test = promtool_test("settings", series, [outdated, named])
    said = run("promtool", "test", "rules", write_test(tmp_path, "settings", groups, [test]))
    assert said.returncode == 0, said.stdout + said.stderr


def test_the_settings_keep_every_label_of_an_installation() -> None:
    recorded = [rule for group in settings(NOW) for rule in group["rules"]]
    [watch] = [rule["expr"] for rule in recorded if rule["record"] == "safe:quality_watch"]
    [labels] = re.findall(r"group by \(([^)]*)\)", watch)
    assert set(INSTALLATION) <= set(labels.split(", "))
