"""What teams ask of a chart beside the workers: names and labels, autoscalers, fences, other charts around it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from consumer.settings import Settings
from tests.support.chart import CHART, NAMESPACE, SETS, TEAMS, Values, refused, rendered, run, with_values

Json = Any


def changed(**values: Json) -> Any:
    """The manifests of the smallest set, with some values otherwise."""
    return rendered(with_values(SETS["defaults"], values))


# --- what differs from the smallest set is what was asked for ---------------------------------------------------------


def leaves(value: Json, before: str = "") -> Iterator[tuple[str, Json]]:
    """Every leaf of a document with its path; what a list holds is told apart by its name where it has one."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, f"{before}/{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, f"{before}/{inner.get('name', i) if isinstance(inner, Mapping) else i}")
    else:
        yield before, value


def by_path(values: Values) -> dict[str, Json]:
    """Every leaf of all manifests, by kind and path."""
    return {
        f"{document['kind']}{path}": value
        for document in rendered(values).documents
        if document["kind"] != "Pod"  # of `helm test`, which has what the workers have
        for path, value in leaves(document)
    }


# For each set, the paths that may differ from those of the smallest one.
ASKED_FOR: Mapping[str, tuple[str, ...]] = {
    "umbrella": (
        r"PodMonitor/.*",
        r"\w+/metadata/name",
        r".*/labels/(app.kubernetes.io/part-of|example.org/cost-centre)",
        r"Deployment/.*/(serviceAccountName|configMap/name|securityContext/seccompProfile/type)",
    ),
    "openshift": (
        r"ServiceMonitor/.*",
        r"Service/.*",
        r"Deployment/.*/securityContext/(runAsUser|runAsGroup|fsGroup)",
        r"Deployment/.*/(volumes|volumeMounts)/tls/.*",
    ),
    "keda": (
        r"ScaledObject/.*",
        r"Deployment/spec/replicas",
        r"Deployment/.*/(volumes|volumeMounts)/secrets/.*",
        r"Deployment/.*/env/SAFE_V0_SECRETS_DIR/.*",
    ),
    "argocd": (
        r"HorizontalPodAutoscaler/.*",
        r"NetworkPolicy/.*",
        r"PrometheusRule/.*",
        r"Deployment/spec/replicas",
        r".*/labels/app.kubernetes.io/part-of",
        r"Deployment/.*/(image|cpu|memory)",
    ),
    "air-gapped": (
        r"NetworkPolicy/.*",
        r"Deployment/.*/(image|imagePullPolicy)",
        r"Deployment/.*/imagePullSecrets/.*",
        r"Deployment/.*/(env|envFrom|volumes|volumeMounts)/(HTTPS_PROXY|SSL_CERT_FILE|SAFE_V0_KAFKA_CLIENT_RACK|0|corp-ca)/.*",
    ),
}
ALWAYS = (r"ConfigMap/data/safe.config.json", r"Deployment/.*/annotations/checksum/config")


@pytest.mark.parametrize("name", TEAMS)
def test_a_team_gets_what_it_asks_for_and_else_what_everyone_gets(name: str) -> None:
    ours, theirs = by_path(SETS["defaults"]), by_path(SETS[name])
    differing = {path for path in ours.keys() | theirs.keys() if ours.get(path) != theirs.get(path)}
    asked = [*ASKED_FOR[name], *ALWAYS]
    assert [path for path in sorted(differing) if not any(re.fullmatch(each, path) for each in asked)] == []
    assert [each for each in asked if not any(re.fullmatch(each, path) for path in differing)] == []


def test_there_are_five_of_them() -> None:
    assert set(TEAMS) == ASKED_FOR.keys() < SETS.keys()


# --- names and labels -------------------------------------------------------------------------------------------------


def test_a_name_of_its_own_is_that_of_every_object() -> None:
    names = {document["metadata"]["name"] for document in changed(fullnameOverride="review").documents}
    assert names == {"review", "review-test"}


def test_common_labels_are_on_everything_and_select_nothing() -> None:
    manifests = changed(
        commonLabels={"team": "quality", "app.kubernetes.io/name": "mine"}, podMonitor={"enabled": True}
    )
    for document in [*manifests.documents, manifests.pod]:
        assert document["metadata"]["labels"]["team"] == "quality"
        own = "safe-test" if document.get("kind") == "Pod" else "safe"  # the selectors ask for it
        assert document["metadata"]["labels"]["app.kubernetes.io/name"] == own
    selector = manifests.one("Deployment")["spec"]["selector"]
    assert selector == rendered(SETS["defaults"]).one("Deployment")["spec"]["selector"]


# --- autoscalers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("by", "kind"), [("cpu", "HorizontalPodAutoscaler"), ("lag", "ScaledObject")])
def test_an_autoscaler_alone_decides_how_many_workers_there_are(by: str, kind: str) -> None:
    manifests = changed(autoscaling={"by": by, "minReplicas": 3, "maxReplicas": 5})
    assert "replicas" not in manifests.one("Deployment")["spec"]
    scaler = manifests.one(kind)["spec"]
    assert scaler["scaleTargetRef"]["name"] == manifests.one("Deployment")["metadata"]["name"]
    assert {scaler.get("minReplicas", scaler.get("minReplicaCount"))} == {3}
    assert {scaler.get("maxReplicas", scaler.get("maxReplicaCount"))} == {5}


def test_the_cpu_that_is_wanted_is_a_share_of_what_the_pods_request() -> None:
    scaler = changed(autoscaling={"by": "cpu", "cpuPercent": 55}).one("HorizontalPodAutoscaler")["spec"]
    [metric] = scaler["metrics"]
    assert metric["resource"] == {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 55}}


OURS = Settings()
INPUT = (OURS.kafka_group_id, OURS.input_topic)
SCORED = (OURS.aggregator_group_id, OURS.scored_topic)


@pytest.mark.parametrize(("role", "read"), [("all", [INPUT, SCORED]), ("scorer", [INPUT]), ("aggregator", [SCORED])])
def test_the_lag_is_that_of_the_groups_whose_members_the_workers_are(role: str, read: list[tuple[str, str]]) -> None:
    scaler = changed(role=role, autoscaling={"by": "lag", "lagPerWorker": 1_000_000}).one("ScaledObject")
    triggers = [trigger["metadata"] for trigger in scaler["spec"]["triggers"]]
    assert [(trigger["consumerGroup"], trigger["topic"]) for trigger in triggers] == read
    assert {trigger["lagThreshold"] for trigger in triggers} == {"1000000"}
    assert {trigger["bootstrapServers"] for trigger in triggers} == {"broker-1:9092,broker-2:9092"}


@pytest.mark.parametrize(
    ("by", "kind", "path"),
    [
        ("cpu", "HorizontalPodAutoscaler", ("behavior",)),
        ("lag", "ScaledObject", ("advanced", "horizontalPodAutoscalerConfig", "behavior")),
    ],
)
def test_workers_are_added_only_for_what_lasts_a_minute(by: str, kind: str, path: tuple[str, ...]) -> None:
    found = changed(autoscaling={"by": by}).one(kind)["spec"]
    for name in path:
        found = found[name]
    # Of this time, the autoscaler takes the least; a scorer's open transaction is lag for a moment.
    assert found["scaleUp"]["stabilizationWindowSeconds"] == 60


def test_names_of_ones_own_are_those_that_it_asks_about() -> None:
    config = {"kafkaGroupId": "mine", "inputTopic": "outputs", "scoredTopic": "mine.scored"}
    scaler = changed(config=config, autoscaling={"by": "lag"}).one("ScaledObject")
    read = [(each["metadata"]["consumerGroup"], each["metadata"]["topic"]) for each in scaler["spec"]["triggers"]]
    assert read == [("mine", "outputs"), ("mine.aggregator", "mine.scored")]


def test_bounds_that_contradict_each_other_are_refused() -> None:
    values = with_values(SETS["defaults"], {"autoscaling": {"by": "cpu", "minReplicas": 9}})
    assert "autoscaling.minReplicas is above autoscaling.maxReplicas" in refused(values)


# --- who may connect --------------------------------------------------------------------------------------------------


def test_a_fence_lets_in_whom_it_names_and_out_to_anywhere_unless_told() -> None:
    assert changed(networkPolicy={"enabled": True}).one("NetworkPolicy")["spec"] == {
        "podSelector": {
            "matchLabels": {"app.kubernetes.io/instance": "safe"},
            "matchExpressions": [  # of the workers, and of the pod of `helm test`
                {"key": "app.kubernetes.io/name", "operator": "In", "values": ["safe", "safe-test"]}
            ],
        },
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"port": "http", "protocol": "TCP"}]}],
    }
    monitoring = [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]
    brokers = [{"ports": [{"port": 9092, "protocol": "TCP"}]}]
    fence = changed(networkPolicy={"enabled": True, "ingressFrom": monitoring, "egress": brokers})
    spec = fence.one("NetworkPolicy")["spec"]
    assert (spec["ingress"][0]["from"], spec["egress"]) == (monitoring, brokers)
    assert spec["policyTypes"] == ["Ingress", "Egress"]


# --- who scrapes ------------------------------------------------------------------------------------------------------


def test_a_service_shows_each_worker_also_one_that_is_not_ready() -> None:
    service = changed(service={"enabled": True}).one("Service")["spec"]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
    assert service["selector"] == rendered(SETS["defaults"]).one("Deployment")["spec"]["selector"]["matchLabels"]


def test_both_monitors_scrape_alike() -> None:
    limits = {"sampleLimit": 60_000}
    by_pod = changed(podMonitor={"enabled": True, "limits": limits}).one("PodMonitor")["spec"]
    by_service = changed(service={"enabled": True}, serviceMonitor={"enabled": True, "limits": limits}).one(
        "ServiceMonitor"
    )["spec"]
    assert by_pod.pop("podMetricsEndpoints") == by_service.pop("endpoints")
    assert by_pod == by_service


def test_monitors_that_cannot_work_are_refused() -> None:
    alone = with_values(SETS["defaults"], {"serviceMonitor": {"enabled": True}})
    assert "set service.enabled, or use podMonitor" in refused(alone)
    both = with_values(alone, {"service": {"enabled": True}, "podMonitor": {"enabled": True}})
    assert "would scrape each pod twice: enable one of them" in refused(both)


# --- within another chart ---------------------------------------------------------------------------------------------


def test_an_umbrella_chart_takes_it_as_a_dependency_with_a_condition(tmp_path: Path) -> None:
    umbrella = tmp_path / "review"
    umbrella.mkdir()
    dependency = {"name": "safe", "version": "0.1.0", "repository": f"file://{CHART}", "condition": "safe.enabled"}
    chart = {"apiVersion": "v2", "name": "review", "version": "1.0.0", "dependencies": [dependency]}
    (umbrella / "Chart.yaml").write_text(yaml.safe_dump(chart), encoding="utf-8")
    own = {key: value for key, value in SETS["umbrella"].items() if key != "global"}
    for enabled in (True, False):
        values = {"global": SETS["umbrella"]["global"], "safe": {**own, "enabled": enabled}}
        (umbrella / "values.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
        built = run("helm", "dependency", "build", umbrella)
        assert built.returncode == 0, built.stderr
        said = run("helm", "template", "safe", umbrella, "--namespace", NAMESPACE)
        assert said.returncode == 0, said.stderr
        documents = [document for document in yaml.safe_load_all(said.stdout) if document]
        assert documents == ([] if not enabled else list(rendered(SETS["umbrella"]).documents))
