"""The dashboard as a file: Grafana can read it, every query parses and asks only for what there is."""

import re
import shlex
import shutil
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from consumer.cli.main import app
from tests.support.dashboard import CHOSEN, DASHBOARD, Query, dashboard, panels, queries
from tests.support.prometheus import CONFIG, run
from tests.support.promql import GOLDEN_PAGE, OTHERS_METRICS, known_labels, known_metrics, labels_in, metrics_in

PROVISIONING = CONFIG / "grafana" / "provisioning"
QUERIES = list(queries())
COLUMNS = 24
# Grafana's names of the units that we use.
UNITS = {"bytes", "percentunit", "short", "none", "s", "cps"}
TYPES = {"stat", "timeseries", "bargauge", "table"}
DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def written(expressions: Iterable[str], folder: Path) -> Path:
    """A file of rules that holds these expressions, for promtool to parse."""
    recorded = [{"record": f"check:{number}", "expr": each} for number, each in enumerate(expressions)]
    path = folder / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": recorded}]}), encoding="utf-8")
    return path


@pytest.mark.usefixtures("promtool")
def test_every_query_parses(tmp_path: Path) -> None:
    said = run("promtool", "check", "rules", written((query.filled for query in QUERIES), tmp_path))
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.usefixtures("promtool")
def test_a_query_that_does_not_parse_is_found(tmp_path: Path) -> None:
    broken = [query.filled.replace("sum by (label)", "sum by label") for query in QUERIES]
    assert run("promtool", "check", "rules", written(broken, tmp_path)).returncode != 0


def asks_for_what_is_not(query: Query) -> set[str]:
    """Metrics, labels and variables of a query that nobody has."""
    strangers = metrics_in(query.filled) - known_metrics() - OTHERS_METRICS
    return strangers | labels_in(query.filled) - known_labels() | set(re.findall(r"\$\w*", query.filled))


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: f"{query.panel} {query.ref}")
def test_a_query_asks_only_for_what_there_is(query: Query) -> None:
    assert metrics_in(query.filled)
    assert asks_for_what_is_not(query) == set()


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: f"{query.panel} {query.ref}")
def test_what_is_shown_of_batches_is_shown_of_those_chosen(query: Query) -> None:
    chosen = 'concern_id=~"$concern", batch_id=~"$batch"'
    # Where batches are only kept or dropped by a second figure, the first has chosen already.
    figures = [name for name in re.findall(r"safe_batch_\w+", query.expression) if name != "safe_batch_complete"]
    assert query.expression.count(chosen) >= len(figures)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: f"{query.panel} {query.ref}")
def test_whatever_is_shown_is_of_the_chosen_namespace_and_workers(query: Query) -> None:
    read = re.findall(r"\b(?:safe_\w+|process_\w+|ALERTS)\b", query.expression)
    assert query.expression.count('cluster=~"$cluster", namespace=~"$namespace') == len(read)
    of_workers = [name for name in read if name != "ALERTS"]
    assert query.expression.count('group=~"$group"') == len(of_workers)
    assert query.expression.count('job=~"$job", instance=~"$instance"') == len(of_workers)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: f"{query.panel} {query.ref}")
def test_batches_of_one_name_in_two_installations_are_two(query: Query) -> None:
    assert re.findall(r"(?<!cluster, namespace, group, )concern_id, batch_id(?=[,)])", query.expression) == []


def test_every_metric_of_a_worker_is_somewhere_on_the_dashboard() -> None:
    shown = {re.sub("_(bucket|total)$", "", name) for query in QUERIES for name in metrics_in(query.expression)}
    families = re.findall(r"^# TYPE (\w+)", GOLDEN_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {re.sub("_total$", "", name) for name in families} <= shown


# --- what Grafana and its readers need --------------------------------------------------------------------------------


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_a_panel_says_what_it_shows_and_in_which_unit(panel: Any) -> None:
    assert panel["type"] in TYPES
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    assert panel["datasource"] == DATA_SOURCE
    for target in panel["targets"]:
        assert target["datasource"] == DATA_SOURCE
        assert target.get("range") or target.get("instant")
        assert (target.get("format") == "table") == (panel["type"] == "table")
        assert panel["type"] == "table" or target["legendFormat"]
    refs = [target["refId"] for target in panel["targets"]]
    assert refs == sorted(set(refs))


@pytest.mark.parametrize(
    "panel", [each for each in panels() if each["type"] == "table"], ids=lambda each: each["title"]
)
def test_a_table_names_each_of_its_columns(panel: Any) -> None:
    renamed = panel["transformations"][-1]["options"]["renameByName"]
    many = len(panel["targets"]) > 1
    assert {name for name in renamed if name.startswith("Value")} == {
        f"Value #{target['refId']}" if many else "Value" for target in panel["targets"]
    }
    named = {override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]}
    assert named | {sorting["displayName"] for sorting in panel["options"]["sortBy"]} <= set(renamed.values())


def test_panels_have_ids_and_places_of_their_own() -> None:
    everything = dashboard()["panels"]
    assert (
        len({panel["id"] for panel in everything}) == len({panel["title"] for panel in everything}) == len(everything)
    )
    for panel in everything:
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= COLUMNS
    for one, other in combinations((panel["gridPos"] for panel in everything), 2):
        assert not all(
            one[at] < other[at] + other[size] and other[at] < one[at] + one[size]
            for at, size in (("x", "w"), ("y", "h"))
        )


def test_installations_workers_concerns_and_batches_can_be_chosen() -> None:
    variables = {variable["name"]: variable for variable in dashboard()["templating"]["list"]}
    assert list(variables) == [
        "datasource", "cluster", "namespace", "group", "job", "instance", "concern", "batch",
    ]  # fmt: skip
    assert variables["datasource"]["query"] == "prometheus"
    assert [f"${name}" for name in variables if name != "datasource"] == list(CHOSEN)
    for name in [name for name in variables if name != "datasource"]:
        [(metric, label)] = re.findall(r"^label_values\((\w+).*, (\w+)\)$", variables[name]["query"]["query"])
        assert metric in known_metrics()
        assert label in known_labels()
        assert variables[name]["multi"]
        assert variables[name]["includeAll"]
        assert variables[name]["datasource"] == DATA_SOURCE
    # Where a label is absent, all are shown.
    assert [variables[name]["allValue"] for name in ("cluster", "namespace", "group")] == [".*"] * 3


def test_from_an_alert_a_link_leads_to_its_batch_and_there_are_the_commands_for_it() -> None:
    by_title = {panel["title"]: panel for panel in dashboard()["panels"]}
    variables = {variable["name"] for variable in dashboard()["templating"]["list"]}
    for title in ("Batches with alerts", "Worst batches"):
        panel = by_title[title]
        [link] = [
            each["value"][0]["url"]
            for override in panel["fieldConfig"]["overrides"]
            for each in override["properties"]
            if each["id"] == "links"
        ]
        assert set(re.findall(r"var-(\w+)=", link)) <= variables
        columns = set(panel["transformations"][-1]["options"]["renameByName"].values())
        assert set(re.findall(r"__data\.fields\.(\w+)", link)) <= columns
    text = by_title["Explain a batch"]["options"]["content"]
    [copy, explain] = re.findall(r"```\n(.*?)\n```", text, re.DOTALL)
    copying, _, file = copy.partition(" > ")
    assert file == "'${batch:raw}.jsonl'"
    commands: Any = typer.main.get_command(app)
    for given, expected in ((copying, "results"), (explain, "explain")):
        program, command, *words = shlex.split(given)
        assert (program, command) == ("safe", expected)
        commands.commands[command].make_context(command, words)  # fails unless these are options that it has


def test_the_alerts_that_fire_are_listed() -> None:
    [listed] = [panel for panel in dashboard()["panels"] if panel["type"] == "alertlist"]
    assert listed["options"]["alertName"] == "Safe"
    assert listed["options"]["stateFilter"]["firing"]
    assert not listed["options"]["stateFilter"]["normal"]


def test_grafana_is_told_of_one_data_source_and_of_the_folder_of_the_dashboard() -> None:
    [source] = yaml.safe_load((PROVISIONING / "datasources" / "prometheus.yml").read_text(encoding="utf-8"))[
        "datasources"
    ]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    prometheus = yaml.safe_load((CONFIG / "prometheus.yml").read_text(encoding="utf-8"))
    assert source["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]
    [provider] = yaml.safe_load((PROVISIONING / "dashboards" / "safe.yml").read_text(encoding="utf-8"))["providers"]
    # Its folder is the one of config/ in the container of compose.yaml.
    assert provider["options"]["path"] == f"/etc/safe/{DASHBOARD.parent.relative_to(CONFIG)}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("safe_batch_mean_score", "safe_batch_mean_scores"),  # a renamed metric
        ("sum by (reason)", "sum by (why)"),  # a renamed label
        ('label=\\"Pass\\"', 'labels=\\"Pass\\"'),  # likewise, in a matcher
        ("$__rate_interval", "$interval"),  # a variable that nobody fills in
        ("$batch", "$badge"),
    ],
)
def test_a_broken_dashboard_is_found(old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / DASHBOARD.name
    shutil.copy(DASHBOARD, broken)
    text = broken.read_text(encoding="utf-8")
    assert old in text
    broken.write_text(text.replace(old, new), encoding="utf-8")
    monkeypatch.setattr("tests.support.dashboard.DASHBOARD", broken)
    assert [query for query in queries() if asks_for_what_is_not(query)] != []
