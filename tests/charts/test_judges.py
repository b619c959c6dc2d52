"""The manifests before the tools of the field: Helm's lint, the schemas of Kubernetes and of the operator, checkov."""

import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.chart import CHART, NAMESPACE, OPERATORS_KINDS, SETS, need, rendered, run, with_values
from tests.support.kafka_broker import PROJECT
from tests.support.node import node_project
from tests.support.node import run as run_in

Json = Any
# The oldest that Chart.yaml takes, and the newest whose schemas are at hand.
VERSIONS = ("1.27", "1.37")
every_set = pytest.mark.parametrize("name", SETS)


# --- Helm -------------------------------------------------------------------------------------------------------------


@every_set
def test_helm_has_nothing_to_object_to(name: str) -> None:
    said = run(
        "helm", "lint", CHART, "--strict", "--namespace", NAMESPACE, "--values", "-", given=json.dumps(SETS[name])
    )
    assert said.returncode == 0, said.stdout + said.stderr
    assert "[WARNING]" not in said.stdout


def test_the_chart_asks_for_no_older_kubernetes_than_it_is_tried_with() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["kubeVersion"] == f">={VERSIONS[0]}.0-0"


# --- Kubernetes -------------------------------------------------------------------------------------------------------


def validated(documents: Sequence[Json], folder: Path, version: str = VERSIONS[-1]) -> str:
    """What kubernetes-validate says of manifests; empty if they are valid."""
    file = folder / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    said = run("kubernetes-validate", "--strict", "--quiet", "-k", version, file)
    return "" if said.returncode == 0 else said.stdout + said.stderr


def core(name: str) -> list[Json]:
    """The manifests that Kubernetes itself knows."""
    return [document for document in rendered(SETS[name]).documents if document["kind"] not in OPERATORS_KINDS]


@pytest.mark.parametrize("version", VERSIONS)
@every_set
def test_kubernetes_knows_every_field_and_takes_every_value(name: str, version: str, tmp_path: Path) -> None:
    need("kubernetes-validate")
    assert validated(core(name), tmp_path, version) == ""


def deployment(documents: Sequence[Json]) -> Json:
    [found] = [document["spec"] for document in documents if document["kind"] == "Deployment"]
    return found


def container(documents: Sequence[Json]) -> Json:
    return deployment(documents)["template"]["spec"]["containers"][0]


# What is broken, and the word by which it is named.
BROKEN: Mapping[str, tuple[Callable[[Sequence[Json]], None], str]] = {
    "an unknown field": (lambda all_: deployment(all_).update(maxSurge=0), "maxSurge"),
    "one deep down": (lambda all_: container(all_)["livenessProbe"].update(periodSecond=10), "periodSecond"),
    "a wrong type": (lambda all_: container(all_)["env"][0].update(value=9464), "9464"),
    "a missing name": (lambda all_: container(all_).pop("name"), "name"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_manifest_turns_it_red(name: str, tmp_path: Path) -> None:
    need("kubernetes-validate")
    breaks, word = BROKEN[name]
    documents = copy.deepcopy(core("defaults"))
    breaks(documents)
    assert word in validated(documents, tmp_path)


# --- the Prometheus operator ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def operator() -> Path:
    """Where the operator's own types are installed."""
    return node_project(PROJECT / "tests" / "charts" / "operator")


def operators_view(folder: Path, documents: Sequence[Json]) -> list[str]:
    """What the operator's types and rules find wrong."""
    found: list[str] = json.loads(run_in(folder, "node", "check.mjs", given=json.dumps(documents)).stdout)
    return found


def operators(name: str) -> list[Json]:
    return [document for document in rendered(SETS[name]).documents if document["kind"] in OPERATORS_KINDS]


def test_the_operator_knows_every_field_and_takes_every_value(operator: Path) -> None:
    documents = [document for name in SETS for document in operators(name)]
    assert {document["kind"] for document in documents} == set(OPERATORS_KINDS)
    assert operators_view(operator, documents) == []


def test_a_broken_manifest_of_the_operator_turns_it_red(operator: Path) -> None:
    by_kind = {manifest["kind"]: manifest for manifest in copy.deepcopy(operators("everything"))}
    monitor, rules = by_kind["PodMonitor"], by_kind["PrometheusRule"]
    monitor["spec"]["podMetricsEndpoints"][0] |= {"scrapeIntervall": "30s", "interval": "30 s"}
    rules["spec"]["groups"][0]["rules"][0]["recrod"] = "x"
    rules["spec"]["groups"][1]["name"] = 1
    said = operators_view(operator, [monitor, rules])
    for word in ("scrapeIntervall", "interval must match", "recrod", "name must be string"):
        assert any(word in each for each in said), (word, said)


# --- checkov ----------------------------------------------------------------------------------------------------------

# What checkov objects to in a manifest with default values, and why it stays.
EXCEPTIONS: Mapping[str, str] = {
    "CKV_K8S_8": "the pod of `helm test` runs once: nothing asks whether it is alive",
    "CKV_K8S_9": "nor whether it is ready",
    "CKV_K8S_11": "no limit of CPU: a worker held back late in its session loses its partitions",
    "CKV_K8S_15": "image.pullPolicy is the user's: with a digest, or with tags that stay, IfNotPresent is enough",
    "CKV_K8S_43": "image.digest is the user's: the chart cannot know the digest of an image that they build",
    "CKV2_K8S_6": "whom pods may talk to, brokers and scrapers, only the cluster's owner knows",
}
# Of these nothing remains where the user has set what they ask for.
UP_TO_THE_USER = {"CKV_K8S_15", "CKV_K8S_43"}
# What it objects to where the user has given up what the chart sets.
GIVEN_UP = {"openshift": {"CKV_K8S_40"}}  # the cluster chooses the user of a pod, and sees to it that it is not root


def objections(folder: Path, manifests: Mapping[str, str]) -> dict[str, set[str]]:
    """The checks that each file of manifests fails, by its name."""
    folder.mkdir()
    for name, text in manifests.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    said = run(
        "checkov", "--directory", folder, "--framework", "kubernetes", "--skip-download", "--output", "json", "--quiet"
    )
    assert re.match(r"[01]$", str(said.returncode)), said.stderr
    report = json.loads(said.stdout)
    failed: dict[str, set[str]] = {name: set() for name in manifests}
    for check in report["results"]["failed_checks"]:
        failed[Path(check["file_path"]).stem].add(check["check_id"])
    assert report["summary"]["passed"] > 50
    return failed


def test_checkov_objects_to_nothing_but_what_is_explained_and_to_every_weakness(tmp_path: Path) -> None:
    need("checkov")
    # Containers that a user adds are the user's. Of a file with Grafana's templates in it, checkov reads nothing.
    sound = {
        name: _without("ConfigMap", rendered(with_values(SETS[name], {"extraContainers": []})).text) for name in SETS
    }
    weak = {name: weaken(sound["defaults"], old, new) for name, (old, new, _) in WEAKNESSES.items()}
    # Apart: checkov takes the policy in one file for one of the pods in all of them.
    # And without the pod of `helm test`: checkov does not understand the expression by which the policy selects it.
    fenced = {name: _without("Pod", text) for name, text in sound.items() if SETS[name].get("networkPolicy")}
    found = objections(tmp_path / "open", {name: sound[name] for name in sound.keys() - fenced} | weak)
    found |= objections(tmp_path / "fenced", fenced)
    assert found["defaults"] == EXCEPTIONS.keys()
    assert all(found[name] <= EXCEPTIONS.keys() | GIVEN_UP.get(name, set()) for name in SETS)
    assert all("CKV2_K8S_6" not in found[name] for name in fenced)
    assert found["everything"] == EXCEPTIONS.keys() - UP_TO_THE_USER
    for name, (_, _, check) in WEAKNESSES.items():
        assert check in found[name], name


def _without(kind: str, text: str) -> str:
    return yaml.safe_dump_all(each for each in yaml.safe_load_all(text) if each and each["kind"] != kind)


WEAKNESSES: Mapping[str, tuple[str, str, str]] = {
    "root": ("runAsUser: 10001", "runAsUser: 0", "CKV_K8S_40"),
    "writable": ("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "CKV_K8S_22"),
    "capable": ("- ALL", "- NET_RAW", "CKV_K8S_37"),
    "greedy": ("memory: 1Gi", "ephemeral-storage: 1Gi", "CKV_K8S_13"),
}


def weaken(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)
