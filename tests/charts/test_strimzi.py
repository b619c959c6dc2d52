"""The manifests for Strimzi say what `safe topics create` does and what docs/reference/permissions.md grants."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from consumer.kafka.topics import CASES_PARTITIONS, cases_topic, topic_specs
from consumer.settings import Settings
from tests.broker.test_permissions import CASES, on_the_page
from tests.charts.test_judges import operators_view
from tests.support.kafka_broker import PROJECT
from tests.support.node import node_project

Json = Any
MANIFESTS: list[Json] = list(yaml.safe_load_all((PROJECT / "config" / "strimzi.yaml").read_text(encoding="utf-8")))
TOPICS = [manifest["spec"] for manifest in MANIFESTS if manifest["kind"] == "KafkaTopic"]
USERS = [manifest for manifest in MANIFESTS if manifest["kind"] == "KafkaUser"]
DURABLE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
OPERATIONS = {"Read": "READ", "Write": "WRITE", "Describe": "DESCRIBE", "Create": "CREATE"}
KINDS = {"topic": "TOPIC", "group": "GROUP", "transactionalId": "TRANSACTIONAL_ID"}


@pytest.fixture(scope="module")
def operator() -> Path:
    """Where the operator's own types are installed."""
    return node_project(PROJECT / "tests" / "charts" / "operator")


def test_the_topics_are_those_that_the_command_creates() -> None:
    settings = Settings(expectations=f"topic:{CASES}")
    cases = cases_topic(settings)
    assert cases is not None
    wanted = {spec.name: dict(spec.settings) | DURABLE for spec in [*topic_specs(settings).values(), cases]}
    written = {
        topic["topicName"]: {
            key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in topic["config"].items()
        }
        for topic in TOPICS
    }
    assert written == wanted
    assert {topic["replicas"] for topic in TOPICS} == {3}
    partitions = {topic["topicName"]: topic["partitions"] for topic in TOPICS}
    assert partitions.pop(CASES) == CASES_PARTITIONS
    assert set(partitions.values()) == {8}


def test_the_user_may_do_what_the_page_grants_to_a_worker() -> None:
    [user] = USERS
    written = {
        (
            KINDS[rule["resource"]["type"]],
            rule["resource"]["name"],
            rule["resource"].get("patternType") == "prefix",
            OPERATIONS[operation],
        )
        for rule in user["spec"]["authorization"]["acls"]
        for operation in rule["operations"]
    }
    granted = on_the_page()["safe worker"]
    assert {each.user for each in granted} == {user["metadata"]["name"]}
    assert written == {(each.kind, each.name, each.prefixed, each.operation) for each in granted}


def test_the_operator_knows_every_field_and_takes_every_value(operator: Path) -> None:
    assert operators_view(operator, MANIFESTS) == []


def test_a_broken_manifest_turns_it_red(operator: Path) -> None:
    broken = copy.deepcopy(MANIFESTS)
    broken[0]["spec"]["partition"] = 8
    broken[-1]["spec"]["authorization"]["acls"][0]["operations"] = ["Reed"]
    said = " ".join(operators_view(operator, broken))
    assert "partition" in said
    assert "Reed" in said
