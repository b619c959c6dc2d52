"""What the chart ships for those who watch: Grafana's alerts, topics, a test of the release, and where it may be."""

import json
import re
from typing import Any

import pytest
import yaml

from consumer.alerts.rules import Choices, grafana_rules
from consumer.alerts.source import load
from consumer.cli.main import main
from consumer.settings import Settings
from tests.charts.test_strimzi import MANIFESTS
from tests.support.chart import NAMESPACE, SETS, refused, rendered, with_values

Json = Any
TWO_VALUES_AND_A_FLOOR = {"enabled": True, "datasourceUid": "prometheus", "floor": 0.8}


def changed(**values: Json) -> Any:
    """The manifests of the smallest set, with some values otherwise."""
    return rendered(with_values(SETS["defaults"], values))


def grafana_alerts(manifests: Any) -> Json:
    """The ConfigMap for the sidecar."""
    [found] = [each for each in manifests.of("ConfigMap") if "grafana-alerts" in each["metadata"]["name"]]
    return found


def shipped_rules(manifests: Any) -> str:
    """Its only file."""
    [text] = grafana_alerts(manifests)["data"].values()
    return str(text)


# --- Grafana's own alerts ---------------------------------------------------------------------------------------------


def test_two_values_and_a_floor_are_enough_for_grafanas_alerts() -> None:
    manifests = changed(grafana={"alerts": TWO_VALUES_AND_A_FLOOR})
    assert grafana_alerts(manifests)["metadata"]["labels"]["grafana_alert"] == "1"
    assert shipped_rules(manifests) == grafana_rules(load(), Choices("prometheus", "0.8"))


def test_releases_for_two_data_sources_put_two_files_with_other_rules_beside_each_other() -> None:
    two = (TWO_VALUES_AND_A_FLOOR, TWO_VALUES_AND_A_FLOOR | {"datasourceUid": "east", "folder": "East"})
    one, other = (grafana_alerts(changed(grafana={"alerts": each}))["data"] for each in two)
    assert one.keys().isdisjoint(other)
    uids = [set(re.findall("uid: (safe-.*)", text)) for text in (*one.values(), *other.values())]
    assert len(uids[0]) == len(uids[1]) > 20
    assert uids[0].isdisjoint(uids[1])


def test_the_command_prints_what_the_chart_ships(capsys: pytest.CaptureFixture[str]) -> None:
    values = SETS["everything"]["grafana"]["alerts"]
    options = [f"--{name}={values[name]}" for name in ("floor", "batches", "folder", "receiver", "runbooks")]
    options.append(f"--datasource={values['datasourceUid']}")
    assert main(["config", "alerts", "--grafana", *options]) == 0
    printed = capsys.readouterr().out
    assert "notification_settings" in printed
    assert shipped_rules(rendered(SETS["everything"])) == printed


def test_what_is_told_is_in_every_rule_and_a_batch_pattern_is_quoted() -> None:
    text = shipped_rules(rendered(SETS["everything"]))
    [group] = yaml.safe_load(text)["groups"]
    assert group["folder"] == "Quality"
    for rule in group["rules"]:
        assert rule["data"][0]["datasourceUid"] == "mimir"
        assert rule["notification_settings"] == {"receiver": "Duty"}
        assert rule["annotations"]["runbook_url"].startswith(
            "https://git.example.org/safe/blob/main/docs/how-to/runbooks.md#"
        )
    [floor] = [rule for rule in group["rules"] if rule["uid"].startswith("safe-batch-below-floor-")]
    assert "< 0.85 - 1e-12" in floor["data"][0]["model"]["expr"]
    assert (
        f"batch_id=~{json.dumps(SETS['everything']['grafana']['alerts']['batches'])}"
        in floor["data"][0]["model"]["expr"]
    )
    assert "@" not in text


@pytest.mark.parametrize(
    ("without", "sentence"),
    [("datasourceUid", "set grafana.alerts.datasourceUid"), ("floor", "set grafana.alerts.floor to the pass rate")],
)
def test_what_has_no_default_is_asked_for_in_a_sentence(without: str, sentence: str) -> None:
    alerts = {key: value for key, value in TWO_VALUES_AND_A_FLOOR.items() if key != without}
    assert sentence in refused(with_values(SETS["defaults"], {"grafana": {"alerts": alerts}}))


def test_a_floor_may_come_from_the_command_line_of_helm_where_it_is_a_string() -> None:
    as_text = grafana_alerts(changed(grafana={"alerts": TWO_VALUES_AND_A_FLOOR | {"floor": "0.8"}}))
    assert as_text == grafana_alerts(changed(grafana={"alerts": TWO_VALUES_AND_A_FLOOR}))
    assert "/grafana/alerts/floor" in refused(
        with_values(SETS["defaults"], {"grafana": {"alerts": TWO_VALUES_AND_A_FLOOR | {"floor": "80"}}})
    )


def test_sidecars_find_dashboard_and_alerts_where_and_by_what_they_are_told() -> None:
    about = [each["metadata"] for each in rendered(SETS["everything"]).of("ConfigMap")]
    found = {each["labels"]["grafana"]: each for each in about if "grafana" in each["labels"]}
    assert {each["namespace"] for each in found.values()} == {"monitoring"}
    assert {label: each["annotations"] for label, each in found.items()} == {
        "yes": {"grafana_folder": "Quality"},
        "alerts": {"example.org/team": "quality"},
    }


# --- what a monitor may be told ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["podMonitor", "serviceMonitor"])
def test_a_monitor_is_told_how_long_and_how_much_a_scrape_may_be(kind: str) -> None:
    told = {"enabled": True, "scrapeTimeout": "12s", "sampleLimit": 5000, "limits": {"labelLimit": 30}}
    relabelings = [{"action": "labeldrop", "regex": "fingerprint"}]
    manifests = changed(**{kind: told | {"metricRelabelings": relabelings}, "service": {"enabled": True}})
    spec = manifests.one(kind[0].upper() + kind[1:])["spec"]
    [endpoint] = spec["podMetricsEndpoints" if kind == "podMonitor" else "endpoints"]
    assert (endpoint["scrapeTimeout"], endpoint["metricRelabelings"]) == ("12s", relabelings)
    assert (spec["sampleLimit"], spec["labelLimit"]) == (5000, 30)


def test_rules_may_have_annotations() -> None:
    assert rendered(SETS["everything"]).one("PrometheusRule")["metadata"]["annotations"] == {
        "example.org/team": "quality"
    }


# --- pods -------------------------------------------------------------------------------------------------------------


def test_names_are_resolved_as_told_and_more_containers_run_beside_the_worker() -> None:
    pod = rendered(SETS["everything"]).pod["spec"]
    assert pod["dnsConfig"] == {"options": [{"name": "ndots", "value": "1"}]}
    assert pod["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert [container["name"] for container in pod["containers"]] == ["safe", "proxy"]


@pytest.mark.parametrize(
    ("registry", "repository", "expected"),
    [
        ("mirror.example.org", "team/safe", "mirror.example.org/team/safe"),
        ("mirror.example.org", "safe", "mirror.example.org/safe"),
        ("mirror.example.org", "mirror.example.org/team/safe", "mirror.example.org/team/safe"),
    ],
)
def test_an_umbrellas_registry_is_where_the_image_comes_from(registry: str, repository: str, expected: str) -> None:
    manifests = changed(**{"global": {"imageRegistry": registry}, "image": {"repository": repository}})
    assert manifests.container["image"].rpartition(":")[0] == expected


def test_an_umbrellas_pull_secrets_are_used_too() -> None:
    told = {"global": {"imagePullSecrets": ["a", {"name": "b"}]}, "imagePullSecrets": [{"name": "c"}]}
    assert changed(**told).pod["spec"]["imagePullSecrets"] == [{"name": "c"}, {"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"imageRegistry": "mirror.example.org"}, "image.repository names another registry: registry.example.org/safe"),
        ({"imageTag": "7"}, "global.imageTag does nothing here"),
        ({"image": {"registry": "r"}}, "global.image does nothing here"),
    ],
)
def test_what_is_global_and_would_be_ignored_is_refused(told: Json, sentence: str) -> None:
    assert sentence in refused(with_values(SETS["defaults"], {"global": told}))


@pytest.mark.parametrize(("word", "kind"), [("lag", "ScaledObject"), ("cpu", "HorizontalPodAutoscaler")])
def test_an_autoscaler_may_be_asked_for_by_one_word(word: str, kind: str) -> None:
    short, long = changed(autoscaling=word), changed(autoscaling={"by": word})
    assert short.one(kind) == long.one(kind)
    assert short.documents == long.documents
    assert "/autoscaling" in refused(with_values(SETS["defaults"], {"autoscaling": "keda"}))


# --- a test of the release --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
def test_helm_test_tries_the_release_as_its_workers_have_it(name: str) -> None:
    manifests = rendered(SETS[name])
    pod = manifests.one("Pod")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    [container] = pod["spec"]["containers"]
    assert container["args"][:2] == ["config", "check"]
    assert container["args"][2:] == manifests.container["args"][1:]
    for key in ("image", "env", "volumeMounts", "securityContext"):
        assert container[key] == manifests.container[key]
    assert pod["spec"]["volumes"] == manifests.pod["spec"]["volumes"]
    selected = manifests.one("Deployment")["spec"]["selector"]["matchLabels"].items()
    assert not selected <= pod["metadata"]["labels"].items()


# --- topics -----------------------------------------------------------------------------------------------------------


def test_topics_are_those_of_the_page_for_strimzi_and_are_kept() -> None:
    topics = changed(kafkaTopics={"enabled": True, "cluster": "main"}).of("KafkaTopic")
    wanted = [each["spec"] for each in MANIFESTS if each["kind"] == "KafkaTopic"]
    assert [topic["spec"] for topic in topics] == wanted
    for topic in topics:
        assert topic["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
        assert topic["metadata"]["labels"]["strimzi.io/cluster"] == "main"
        assert topic["metadata"]["namespace"] == NAMESPACE


def test_topics_have_the_names_of_the_configuration_and_a_namespace_of_their_own() -> None:
    names = {
        key: f"Team_{key}"
        for key in ("inputTopic", "scoredTopic", "stateTopic", "resultTopic", "reportTopic", "deadLetterTopic")
    }
    topics = rendered(with_values(SETS["everything"], {"config": names})).of("KafkaTopic")
    assert [topic["spec"]["topicName"] for topic in topics] == list(names.values())  # no topic of test cases: a folder
    for topic in topics:
        assert re.fullmatch("[a-z0-9.-]+", topic["metadata"]["name"])
        assert topic["metadata"]["namespace"] == "kafka"
        assert (topic["spec"]["partitions"], topic["spec"]["replicas"]) == (16, 5)
    fields = {re.sub("([A-Z])", r"_\1", key).lower() for key in names}
    assert fields <= Settings.model_fields.keys()


def test_topics_need_the_name_of_their_cluster() -> None:
    assert "set kafkaTopics.cluster" in refused(with_values(SETS["defaults"], {"kafkaTopics": {"enabled": True}}))
