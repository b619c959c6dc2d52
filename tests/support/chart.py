"""The chart as Helm renders it for some values, and the tools that judge manifests and Dockerfiles."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import missing
from tests.support.kafka_broker import PROJECT

CHART = PROJECT / "charts" / "safe"
TOOLS = PROJECT / ".cache" / "chart-tools" / "bin"
NAMESPACE = "scoring"
TOOL_SECONDS = 600.0
OPERATORS_KINDS = ("PodMonitor", "PrometheusRule", "ServiceMonitor", "ScaledObject", "KafkaTopic")
Json = Any
Values = Mapping[str, Json]

# --- value sets -------------------------------------------------------------------------------------------------------

_IMAGE = {"repository": "registry.example.org/safe"}
_SERVERS = {"kafkaBootstrapServers": "broker-1:9092,broker-2:9092"}
SETS: Mapping[str, Values] = {
    # No more than is required.
    "defaults": {"image": _IMAGE, "config": _SERVERS | {"expectations": "topic:safe.v0.cases"}},
    # Passwords, certificates, and batch files on a volume.
    "secured": {
        "image": _IMAGE | {"tag": "1.2.3"},
        "config": _SERVERS
        | {
            "expectations": "/cases",
            "kafkaSecurityProtocol": "SASL_SSL",
            "kafkaSaslMechanism": "SCRAM-SHA-512",
            "kafkaSaslUsername": "safe",
            "kafkaSslCafile": "/etc/safe/tls/ca.crt",
        },
        "existingSecret": "safe-secrets",
        "existingTlsSecret": "safe-tls",
        "cases": {"existingClaim": "safe-cases"},
        "prometheusRule": {"enabled": True},
    },
    # The two roles apart; the scorer asks a service, by a proxy.
    "scorer": {
        "image": _IMAGE,
        "role": "scorer",
        "replicas": 4,
        "config": _SERVERS | {"expectations": "https://cases.example.org/v1", "expectationsUseProxy": True},
        "env": {"HTTPS_PROXY": "http://proxy.example.org:3128"},
        "existingSecret": "safe-secrets",
    },
    "aggregator": {"image": _IMAGE, "role": "aggregator", "config": _SERVERS},
    # Whatever can be set, otherwise than by default.
    "everything": {
        "image": _IMAGE | {"digest": "sha256:" + "0123456789abcdef" * 4, "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "replicas": 8,
        "config": _SERVERS
        | {
            "expectations": "/cases",
            "shutdownSeconds": 90,
            "batchTtlSeconds": 1_209_600,
            "maxBatchBytes": 2_147_483_647,
            "poisonShareLimit": 0.25,
            "inputTypes": ["org.example.output"],
            "overrides": {"archetype": {"Größe & <Art>": {"thresholds": {"CR": {"pass": 0.9}}, "strictAH": True}}},
            "logLevel": "debug",
        },
        "env": {"TZ": "UTC"},
        "existingSecret": "safe-secrets",
        "existingSecretKeys": {"SAFE_V0_KAFKA_SASL_PASSWORD": {"name": "kafka-user", "key": "password"}},
        "existingTlsSecret": "safe-tls",
        "cases": {"existingConfigMap": "safe-cases"},
        "restoreSeconds": 1200,
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
        "serviceAccount": {"create": True, "name": "scoring", "annotations": {"example.org/role": "safe"}},
        "podAnnotations": {"example.org/team": "quality", "checksum/config": "mine"},
        "podLabels": {"example.org/team": "quality", "app.kubernetes.io/name": "mine"},
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "tolerations": [{"key": "scoring", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "scoring", "operator": "Exists"}]}]
                }
            }
        },
        "priorityClassName": "scoring",
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "podDisruptionBudget": {"enabled": True, "maxUnavailable": "25%"},
        "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]},
        "dnsPolicy": "ClusterFirstWithHostNet",
        "extraContainers": [
            {"name": "proxy", "image": "registry.example.org/proxy:1", "ports": [{"containerPort": 9465}]}
        ],
        "podMonitor": {
            "enabled": True,
            "interval": "30s",
            "scrapeTimeout": "20s",
            "sampleLimit": 60_000,
            "metricRelabelings": [{"action": "labeldrop", "regex": "fingerprint"}],
            "labels": {"release": "prometheus"},
        },
        "prometheusRule": {
            "enabled": True,
            "labels": {"release": "prometheus"},
            "annotations": {"example.org/team": "quality"},
            "runbooks": "https://git.example.org/safe/blob/main/",
            "quality": [
                {"owner": "neurology", "batches": "S11_.*", "passRatio": 0.8, "meanCR": 0.7, "meanAC": 0.65},
                {"owner": "cardiology", "batches": 'I25_\\d+|a"b', "passRatio": 1},
            ],
            "trafficExpected": "vector(1)",
        },
        "dashboard": {
            "enabled": True,
            "namespace": "monitoring",
            "labels": {"grafana": "yes"},
            "annotations": {"grafana_folder": "Quality"},
        },
        "grafana": {
            "alerts": {
                "enabled": True,
                "datasourceUid": "mimir",
                "floor": 0.85,
                "batches": 'I25_\\d+|a"b',
                "folder": "Quality",
                "receiver": "Duty",
                "runbooks": "https://git.example.org/safe/blob/main/",
                "namespace": "monitoring",
                "labels": {"grafana": "alerts"},
                "annotations": {"example.org/team": "quality"},
            }
        },
        "kafkaTopics": {"enabled": True, "cluster": "main", "namespace": "kafka", "partitions": 16, "replicas": 5},
    },
    # As real teams write them: files that ship with the chart.
    **{
        file.name.removesuffix("-values.yaml"): yaml.safe_load(file.read_text(encoding="utf-8"))
        for file in sorted((CHART / "ci").glob("*-values.yaml"))
    },
}
TEAMS = ("air-gapped", "argocd", "keda", "openshift", "umbrella")


def with_values(values: Values, changes: Values) -> dict[str, Json]:
    """Return the values with those of `changes` in their places, maps merged as Helm merges them."""
    merged = dict(values)
    for key, value in changes.items():
        both_maps = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = with_values(merged[key], value) if both_maps else value
    return merged


# --- tools ------------------------------------------------------------------------------------------------------------


def need(*names: str) -> None:
    """Skip the test loudly where one of these tools is not installed; in CI that is a failure."""
    absent = [name for name in names if not (TOOLS / name).exists()]
    if absent:
        missing(f"there is no {' and no '.join(absent)}: tests/charts/tools.sh installs it")


def run(
    name: str, *arguments: str | Path, given: str = "", folder: Path = PROJECT
) -> "subprocess.CompletedProcess[str]":
    """Run a tool to its end and return what it said; `given` is its standard input."""
    return subprocess.run(
        [TOOLS / name, *arguments],
        cwd=folder,
        input=given,
        capture_output=True,
        text=True,
        timeout=TOOL_SECONDS,
        check=False,
    )


# --- rendering --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Manifests:
    """What Helm has rendered."""

    text: str
    documents: Sequence[Json]

    def of(self, kind: str) -> Sequence[Json]:
        """Return the manifests of a kind, in order."""
        return [document for document in self.documents if document["kind"] == kind]

    def one(self, kind: str) -> Json:
        """Return the only manifest of a kind."""
        [found] = self.of(kind)
        return found

    @property
    def pod(self) -> Json:
        """The template of the Deployment's pods."""
        return self.one("Deployment")["spec"]["template"]

    @property
    def container(self) -> Json:
        """The worker's container of a pod."""
        return self.pod["spec"]["containers"][0]

    @property
    def environment(self) -> dict[str, str]:
        """The container's variables."""
        return {each["name"]: each["value"] for each in self.container["env"] if "value" in each}

    @property
    def configuration(self) -> str:
        """The text of the configuration file."""
        name = self.one("Deployment")["metadata"]["name"]
        [configuration] = [each for each in self.of("ConfigMap") if each["metadata"]["name"] == name]
        text: str = configuration["data"]["safe.config.json"]
        return text


def template(values: Values, *, release: str = "safe", chart: Path = CHART) -> "subprocess.CompletedProcess[str]":
    """Let Helm render the chart; the values arrive as JSON, which is YAML."""
    return run("helm", "template", release, chart, "--namespace", NAMESPACE, "--values", "-", given=json.dumps(values))


def rendered(values: Values, *, release: str = "safe", chart: Path = CHART) -> Manifests:
    """Render the chart, and fail with Helm's words if it cannot be."""
    return _rendered(json.dumps(values), release, chart)


@lru_cache
def _rendered(values: str, release: str, chart: Path) -> Manifests:
    said = template(json.loads(values), release=release, chart=chart)
    assert said.returncode == 0, said.stderr
    return Manifests(said.stdout, [document for document in yaml.safe_load_all(said.stdout) if document])


def refused(values: Values) -> str:
    """Fail unless Helm refuses the values, and return what it says."""
    said = template(values)
    assert said.returncode != 0, said.stdout
    return said.stderr
