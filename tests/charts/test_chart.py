"""The manifests that the chart renders say what a worker needs: read field by field, for several sets of values."""

import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from consumer import __version__
from consumer.cli.options import Role
from consumer.settings import FILE_KEYS, Loaded, Settings, load
from consumer.settings.file import without_comments
from tests.support.chart import CHART, NAMESPACE, SETS, Manifests, Values, rendered, run, with_values
from tests.support.kafka_broker import PROJECT

CONFIG = PROJECT / "config"
GRACE_BEYOND_SHUTDOWN_SECONDS = 10
every_set = pytest.mark.parametrize("name", SETS)


def changed(**changes: Any) -> Manifests:
    """The manifests of the values that are required, and of these."""
    return rendered(with_values(SETS["defaults"], changes))


# --- what there is ----------------------------------------------------------------------------------------------------


def test_by_default_there_are_pods_with_their_configuration_and_nothing_that_needs_an_operator() -> None:
    kinds = sorted(document["kind"] for document in rendered(SETS["defaults"]).documents)
    assert kinds == ["ConfigMap", "Deployment", "Pod", "PodDisruptionBudget", "ServiceAccount"]


def test_with_everything_on_there_are_monitor_rules_and_dashboard_too() -> None:
    kinds = {document["kind"] for document in rendered(SETS["everything"]).documents}
    assert kinds > {"PodMonitor", "PrometheusRule", "KafkaTopic"}
    assert len(rendered(SETS["everything"]).of("ConfigMap")) == 3


def test_what_is_switched_off_is_not_there() -> None:
    manifests = changed(podDisruptionBudget={"enabled": False}, serviceAccount={"create": False})
    assert {document["kind"] for document in manifests.documents} == {"ConfigMap", "Deployment", "Pod"}
    assert manifests.pod["spec"]["serviceAccountName"] == "default"


@every_set
def test_all_of_it_is_labelled_and_is_in_the_namespace_of_the_release_or_where_it_was_told(name: str) -> None:
    elsewhere = {"everything": {"monitoring", "kafka"}}.get(name, set())
    for document in rendered(SETS[name]).documents:
        assert document["metadata"]["namespace"] in {NAMESPACE, *elsewhere}
        assert document["metadata"]["labels"]["app.kubernetes.io/instance"] == "safe"
        assert document["metadata"]["labels"]["app.kubernetes.io/version"] == __version__


@every_set
def test_no_set_of_values_makes_a_secret(name: str) -> None:
    assert rendered(SETS[name]).of("Secret") == []


def test_two_releases_in_one_namespace_share_no_name() -> None:
    names = [
        {
            (document["kind"], document["metadata"]["name"])
            for document in rendered(SETS["defaults"], release=each).documents
        }
        for each in ("safe-scorer", "nightly")
    ]
    assert names[0].isdisjoint(names[1])
    assert ("Deployment", "safe-scorer") in names[0]
    assert ("Deployment", "nightly-safe") in names[1]


def test_the_chart_carries_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == __version__


def test_a_packaged_chart_holds_the_files_and_renders_the_same(tmp_path: Path) -> None:
    said = run("helm", "package", CHART, "--destination", tmp_path)
    assert said.returncode == 0, said.stderr
    [package] = tmp_path.glob("*.tgz")
    with tarfile.open(package) as archive:
        assert all(member.isfile() for member in archive)
    assert rendered(SETS["everything"], chart=package).documents == rendered(SETS["everything"]).documents


# --- how it is rolled out ---------------------------------------------------------------------------------------------


@every_set
def test_workers_are_replaced_one_by_one_and_none_comes_besides_them(name: str) -> None:
    strategy = rendered(SETS[name]).one("Deployment")["spec"]["strategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def test_there_are_as_many_workers_as_are_asked_for_none_too() -> None:
    assert rendered(SETS["defaults"]).one("Deployment")["spec"]["replicas"] == 2
    assert changed(replicas=0).one("Deployment")["spec"]["replicas"] == 0
    assert "replicas" not in changed(replicas=None).one("Deployment")["spec"], "it belongs to an autoscaler"


def test_it_is_part_of_another_chart_which_hands_on_its_condition_and_what_is_global() -> None:
    assert changed(enabled=True, **{"global": {"storageClass": "r"}}).documents == rendered(SETS["defaults"]).documents


def shutdown_seconds(values: Values) -> int:
    seconds: int = values["config"].get("shutdownSeconds", Settings.model_fields["shutdown_seconds"].default)
    return seconds


@every_set
def test_a_worker_gets_longer_to_end_than_it_takes(name: str) -> None:
    grace = rendered(SETS[name]).pod["spec"]["terminationGracePeriodSeconds"]
    assert grace >= shutdown_seconds(SETS[name]) + GRACE_BEYOND_SHUTDOWN_SECONDS


@every_set
def test_a_rollout_counts_as_failed_only_after_one_has_ended_and_the_next_restored(name: str) -> None:
    deployment = rendered(SETS[name]).one("Deployment")["spec"]
    restore = SETS[name].get("restoreSeconds", 600)
    grace = deployment["template"]["spec"]["terminationGracePeriodSeconds"]
    assert deployment["progressDeadlineSeconds"] > restore + grace


def test_another_configuration_means_new_pods_and_nothing_else_does() -> None:
    before = rendered(SETS["defaults"]).pod
    assert changed(config={"strictAH": True}).pod["metadata"]["annotations"] != before["metadata"]["annotations"]
    assert changed(replicas=3, podMonitor={"enabled": True}).pod == before


def test_neither_role_nor_version_stands_in_what_can_never_be_changed() -> None:
    selectors = [rendered(SETS[name]).one("Deployment")["spec"]["selector"] for name in ("defaults", "aggregator")]
    assert selectors[0] == selectors[1]
    assert selectors[0]["matchLabels"].keys() == {"app.kubernetes.io/name", "app.kubernetes.io/instance"}


@every_set
def test_whatever_selects_the_pods_finds_them_whatever_labels_others_add(name: str) -> None:
    manifests = rendered(SETS[name])
    labels = manifests.pod["metadata"]["labels"].items()
    selecting = [*manifests.of("Deployment"), *manifests.of("PodDisruptionBudget"), *manifests.of("PodMonitor")]
    assert all(document["spec"]["selector"]["matchLabels"].items() <= labels for document in selecting)


def test_labels_and_annotations_of_others_stand_beside_those_of_the_chart() -> None:
    metadata = rendered(SETS["everything"]).pod["metadata"]
    assert metadata["labels"]["example.org/team"] == metadata["annotations"]["example.org/team"] == "quality"
    assert metadata["annotations"]["checksum/config"] != "mine"


def test_pods_that_are_not_ready_do_not_keep_a_node_from_being_drained() -> None:
    budget = rendered(SETS["defaults"]).one("PodDisruptionBudget")["spec"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")


def test_pods_are_spread_over_nodes_and_over_what_else_is_asked_for() -> None:
    [default] = rendered(SETS["defaults"]).pod["spec"]["topologySpreadConstraints"]
    assert (default["topologyKey"], default["whenUnsatisfiable"]) == ("kubernetes.io/hostname", "ScheduleAnyway")
    [given] = rendered(SETS["everything"]).pod["spec"]["topologySpreadConstraints"]
    assert given["topologyKey"] == "topology.kubernetes.io/zone"
    assert given["labelSelector"] == default["labelSelector"]
    own = {"matchLabels": {"example.org/team": "quality"}}
    [chosen] = changed(topologySpreadConstraints=[given | {"labelSelector": own}]).pod["spec"][
        "topologySpreadConstraints"
    ]
    assert chosen["labelSelector"] == own


@pytest.mark.parametrize("key", ["nodeSelector", "tolerations", "affinity", "priorityClassName", "imagePullSecrets"])
def test_where_a_pod_may_run_is_passed_on_and_left_out_where_nothing_is_said(key: str) -> None:
    assert rendered(SETS["everything"]).pod["spec"][key] == SETS["everything"][key]
    assert key not in rendered(SETS["defaults"]).pod["spec"]


# --- what runs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({}, f"registry.example.org/safe:{__version__}"),
        ({"tag": "1.2.3"}, "registry.example.org/safe:1.2.3"),
        ({"tag": "1.2.3", "digest": "sha256:" + "0" * 64}, "registry.example.org/safe@sha256:" + "0" * 64),
    ],
)
def test_the_image_goes_by_digest_tag_or_version(image: Values, expected: str) -> None:
    assert changed(image=image).container["image"] == expected


@pytest.mark.parametrize("role", get_args(Role))
def test_each_role_of_the_program_can_be_run(role: Role) -> None:
    arguments = changed(role=role).container["args"]
    assert arguments == ["worker", "--role", role, "--config", "/etc/safe/config/safe.config.json"]


@every_set
def test_probes_ask_the_pages_that_there_are_where_the_worker_listens(name: str) -> None:
    container = rendered(SETS[name]).container
    [port] = container["ports"]
    assert rendered(SETS[name]).environment["SAFE_V0_HTTP_ADDRESS"] == f"0.0.0.0:{port['containerPort']}"
    asked = {kind: container[kind]["httpGet"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert asked == {
        "startupProbe": {"path": "/livez", "port": port["name"]},
        "livenessProbe": {"path": "/livez", "port": port["name"]},
        "readinessProbe": {"path": "/readyz", "port": port["name"]},
    }


@pytest.mark.parametrize("seconds", [1, 7, 600, 3600])
def test_a_worker_that_reads_test_cases_for_long_is_not_restarted_meanwhile(seconds: int) -> None:
    manifests = changed(restoreSeconds=seconds)
    probe = manifests.container["startupProbe"]
    assert seconds <= probe["periodSeconds"] * probe["failureThreshold"] < seconds + probe["periodSeconds"]
    assert (
        probe["periodSeconds"] * probe["failureThreshold"]
        < manifests.one("Deployment")["spec"]["progressDeadlineSeconds"]
    )


def test_a_worker_is_restarted_only_after_a_minute_of_silence() -> None:
    probe = rendered(SETS["defaults"]).container["livenessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 60


RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


@every_set
def test_pods_keep_to_the_restricted_standard_of_kubernetes(name: str) -> None:
    pod, container = rendered(SETS[name]).pod["spec"], rendered(SETS[name]).container
    assert pod["securityContext"]["runAsNonRoot"] is True
    if name != "openshift":  # which chooses it itself
        assert pod["securityContext"]["runAsUser"] >= 10_000
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"].items() >= RESTRICTED.items()
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & pod.keys()
    assert {next(iter(volume.keys() - {"name"})) for volume in pod["volumes"]} <= {
        "configMap",
        "projected",
        "secret",
        "persistentVolumeClaim",
    }


@every_set
def test_pods_have_no_token_and_no_variables_that_kubernetes_adds(name: str) -> None:
    manifests = rendered(SETS[name])
    assert manifests.pod["spec"]["automountServiceAccountToken"] is False
    assert manifests.one("ServiceAccount")["automountServiceAccountToken"] is False
    assert manifests.pod["spec"]["serviceAccountName"] == manifests.one("ServiceAccount")["metadata"]["name"]
    assert manifests.pod["spec"]["enableServiceLinks"] is False


@every_set
def test_every_volume_is_mounted_once_to_be_read_only(name: str) -> None:
    pod, container = rendered(SETS[name]).pod["spec"], rendered(SETS[name]).container
    mounts = [mount["name"] for mount in container["volumeMounts"]]
    assert sorted(mounts) == sorted({volume["name"] for volume in pod["volumes"]})
    assert all(mount["readOnly"] for mount in container["volumeMounts"])


def mounted(manifests: Manifests, path: str) -> Mapping[str, Any]:
    """What is mounted at a path."""
    [name] = [mount["name"] for mount in manifests.container["volumeMounts"] if mount["mountPath"] == path]
    [volume] = [volume for volume in manifests.pod["spec"]["volumes"] if volume["name"] == name]
    return {kind: source for kind, source in volume.items() if kind != "name"}


def test_secrets_that_are_there_are_mounted_for_the_group_alone() -> None:
    manifests = rendered(SETS["secured"])
    assert manifests.environment["SAFE_V0_SECRETS_DIR"] == "/etc/safe/secrets"
    assert mounted(manifests, "/etc/safe/secrets") == {
        "projected": {"defaultMode": 0o440, "sources": [{"secret": {"name": "safe-secrets"}}]}
    }
    assert mounted(manifests, "/etc/safe/tls") == {"secret": {"secretName": "safe-tls", "defaultMode": 0o440}}
    assert manifests.pod["spec"]["securityContext"]["fsGroup"] == 10001


def test_a_key_of_any_secret_is_found_under_the_name_of_its_variable() -> None:
    keys = {"SAFE_V0_EXPECTATIONS_TOKEN": {"name": "cases", "key": "token"}}
    password = {"SAFE_V0_KAFKA_SASL_PASSWORD": {"name": "kafka-user", "key": "password"}}
    manifests = changed(existingSecretKeys=keys | password)
    assert manifests.environment["SAFE_V0_SECRETS_DIR"] == "/etc/safe/secrets"
    assert mounted(manifests, "/etc/safe/secrets")["projected"]["sources"] == [
        {"secret": {"name": "cases", "items": [{"key": "token", "path": "SAFE_V0_EXPECTATIONS_TOKEN"}]}},
        {"secret": {"name": "kafka-user", "items": [{"key": "password", "path": "SAFE_V0_KAFKA_SASL_PASSWORD"}]}},
    ]


def test_without_secrets_nothing_speaks_of_them() -> None:
    assert "secret" not in rendered(SETS["defaults"]).text.lower()


def test_batch_files_come_from_a_claim_or_a_config_map() -> None:
    claim = {"persistentVolumeClaim": {"claimName": "safe-cases", "readOnly": True}}
    assert mounted(rendered(SETS["secured"]), "/cases") == claim
    assert mounted(rendered(SETS["everything"]), "/cases") == {"configMap": {"name": "safe-cases"}}


def test_further_variables_reach_the_container() -> None:
    assert rendered(SETS["scorer"]).environment["HTTPS_PROXY"] == "http://proxy.example.org:3128"


# --- what it is told --------------------------------------------------------------------------------------------------


# What stands in the Secret of a set.
SECRETS = {
    "keda": "SAFE_V0_KAFKA_SASL_PASSWORD",
    "secured": "SAFE_V0_KAFKA_SASL_PASSWORD",
    "scorer": "SAFE_V0_EXPECTATIONS_TOKEN",
}


def told(name: str, folder: Path) -> Loaded:
    """What SAFE makes of its file, its variables and its secrets, laid out as the kubelet does."""
    manifests = rendered(SETS[name])
    file = folder / "safe.config.json"
    file.write_text(manifests.configuration, encoding="utf-8")
    environment = {each: value for each, value in manifests.environment.items() if each.startswith("SAFE_V0_")}
    if "SAFE_V0_SECRETS_DIR" in environment:
        environment["SAFE_V0_SECRETS_DIR"] = str(as_mounted(folder / "secrets", SECRETS.get(name)))
    return load({"config": file}, environment, folder)


def as_mounted(folder: Path, key: str | None) -> Path:
    """A folder as Kubernetes mounts a Secret: links to a hidden folder that a later change replaces."""
    kept = folder / "..2026_01_01"
    kept.mkdir(parents=True)
    (folder / "..data").symlink_to(kept.name)
    if key is not None:
        (kept / key).write_text("xyzzy", encoding="utf-8")
        (folder / key).symlink_to(f"..data/{key}")
    return folder


@every_set
def test_safe_understands_what_it_is_told(name: str, tmp_path: Path) -> None:
    settings = told(name, tmp_path).settings
    assert settings.kafka_bootstrap_servers == SETS[name]["config"]["kafkaBootstrapServers"]
    assert settings.http_address == "0.0.0.0:9464"
    assert settings.log_format == "json"
    assert (settings.kafka_sasl_password is not None) == (name in {"secured", "keda"})
    assert (settings.expectations_token is not None) == (name == "scorer")


def test_a_value_arrives_as_it_was_written(tmp_path: Path) -> None:
    loaded = told("everything", tmp_path)
    settings = loaded.settings
    assert (settings.shutdown_seconds, settings.batch_ttl_seconds) == (90, 1_209_600)
    assert (settings.max_batch_bytes, settings.poison_share_limit) == (2_147_483_647, 0.25)
    assert settings.input_types == ("org.example.output",)
    assert loaded.policy.archetype.keys() == {"Größe & <Art>"}


def written_out() -> dict[str, Any]:
    """The configuration file of the project, every key at its default, without what the chart decides itself."""
    document = json.loads(without_comments((CONFIG / "safe.config.json").read_text(encoding="utf-8")))
    return {key: value for key, value in document.items() if key not in {"$schema", "httpAddress"}}


def test_every_key_of_the_configuration_file_may_be_set_and_stands_there_unchanged() -> None:
    given = with_values(SETS["defaults"], {"config": written_out()})
    assert json.loads(rendered(given).configuration) == given["config"] | {"logFormat": "json"}
    assert {key.partition(".")[0] for key in FILE_KEYS.values()} > written_out().keys() - {"weights", "overrides"}


# --- who watches it ---------------------------------------------------------------------------------------------------


def test_pods_are_scraped_as_the_job_that_alerts_and_dashboard_know() -> None:
    prometheus = yaml.safe_load((CONFIG / "prometheus.yml").read_text(encoding="utf-8"))
    manifests = changed(podMonitor={"enabled": True})
    [endpoint] = manifests.one("PodMonitor")["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] == manifests.container["ports"][0]["name"]
    assert endpoint["path"] == "/metrics"
    assert endpoint["interval"] == prometheus["global"]["scrape_interval"]
    [job] = prometheus["scrape_configs"]
    assert endpoint["relabelings"] == [{"action": "replace", "targetLabel": "job", "replacement": job["job_name"]}]


@pytest.mark.parametrize("kind", ["PodMonitor", "PrometheusRule"])
def test_operators_find_their_own_by_the_labels_that_they_ask_for(kind: str) -> None:
    assert rendered(SETS["everything"]).one(kind)["metadata"]["labels"]["release"] == "prometheus"


def test_the_dashboard_is_the_one_of_the_project_where_a_sidecar_finds_it() -> None:
    manifests = changed(dashboard={"enabled": True})
    [dashboard] = [each for each in manifests.of("ConfigMap") if "safe.json" in each["data"]]
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert dashboard["data"]["safe.json"] == (CONFIG / "grafana/dashboards/safe.json").read_text(encoding="utf-8")
