"""What the cluster says of itself, broker by broker, without one."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import IncompatibleBrokerVersion, NodeNotReadyError
from typing_extensions import override

from consumer.errors import Fatal, Transient
from consumer.kafka import cluster as cluster_module
from consumer.kafka.cluster import Cluster, Ends, OpenTransaction, TopicDescription, TopicsSeen

NODES = {1: "a:9092", 2: "b:9092", 3: "c:9092"}
NO_LEADER, REFUSED, UNKNOWN = -1, 29, 3


def topic(name: str, *leaders: int, error: int = 0) -> dict[str, Any]:
    """A topic as metadata shows it, with the leader of each of its partitions."""
    partitions = [
        {"error_code": 0 if leader > 0 else 5, "partition": at, "leader": leader, "replicas": [1, 2, 3]}
        for at, leader in enumerate(leaders)
    ]
    return {"topic": name, "error_code": error, "partitions": partitions}


def metadata(*topics: dict[str, Any]) -> dict[str, Any]:
    brokers = [{"node_id": node, "host": address[0], "port": 9092} for node, address in NODES.items()]
    return {"brokers": brokers, "topics": list(topics)}


class Nodes(Cluster):
    """A cluster whose brokers answer each for itself; one without an answer is down."""

    def __init__(self, answers: Mapping[int, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[int] = []
        self._admin = None

        async def metadata_of(_admin: object, _topics: Sequence[str], node: int) -> dict[str, Any]:
            self.asked.append(node)
            if node not in answers:
                raise NodeNotReadyError(f"node {node}")
            return answers[node]

        async def refresh_metadata(_admin: object) -> None:
            return None

        monkeypatch.setattr(cluster_module, "metadata_of", metadata_of)
        monkeypatch.setattr(cluster_module, "refresh_metadata", refresh_metadata)
        monkeypatch.setattr(cluster_module, "nodes_of", lambda _admin: NODES)

    @override
    async def stop(self) -> None:
        """Nothing was started."""


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[int, dict[str, Any]]], Nodes]:
    return lambda answers: Nodes(answers, monkeypatch)


MakeNodes = Callable[[Mapping[int, dict[str, Any]]], Nodes]


async def test_partitions_without_a_leader_and_topics_that_are_refused_are_told_apart(nodes: MakeNodes) -> None:
    everywhere = metadata(
        topic("whole", 1, 2),
        topic("torn", 1, NO_LEADER, NO_LEADER),
        topic("secret", error=REFUSED),
        topic("gone", error=UNKNOWN),
    )
    seen = await nodes(dict.fromkeys(NODES, everywhere)).look(["whole", "torn", "secret", "gone"])
    assert seen == TopicsSeen(
        {"whole": 2, "torn": 3},
        {"torn": frozenset({1, 2})},
        frozenset({"secret"}),
        NODES,
        frozenset(NODES),
        replicas={"whole": 3, "torn": 3},
    )


@pytest.mark.parametrize("up", NODES)
async def test_one_broker_that_is_up_answers_for_those_that_are_down(nodes: MakeNodes, up: int) -> None:
    cluster = nodes({up: metadata(topic("input", up))})
    assert await cluster.partition_counts(["input"]) == {"input": 1}
    assert len((await cluster.look([])).brokers) == 3


async def test_brokers_that_answer_say_which_requests_they_know(
    nodes: MakeNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def request_versions_of(_admin: object, node: int) -> dict[int, int]:
        if node == 2:
            raise NodeNotReadyError(f"node {node}")
        return {9: node}

    monkeypatch.setattr(cluster_module, "request_versions_of", request_versions_of)
    assert await nodes({}).request_versions() == {
        f"broker {node} ({NODES[node]})": {9: node} for node in NODES if node != 2
    }


async def test_where_none_is_up_the_cluster_does_not_answer(nodes: MakeNodes) -> None:
    cluster = nodes({})
    with pytest.raises(Transient, match=r"^the topics: no connection to a broker"):
        await cluster.look(["input"])
    assert sorted(cluster.asked) == list(NODES)


async def test_of_many_brokers_three_are_asked_so_that_each_has_time_to_answer(
    nodes: MakeNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = nodes({})
    dozen = {node: f"broker-{node}:9092" for node in range(12)}
    monkeypatch.setattr(cluster_module, "nodes_of", lambda _admin: dozen)
    for _ in range(20):
        cluster.asked.clear()
        with pytest.raises(Transient, match=r"^the topics: no connection to a broker"):
            await cluster.look(["input"])
        assert len(set(cluster.asked)) == len(cluster.asked) == 3


async def test_every_broker_is_asked_what_it_lacks(nodes: MakeNodes) -> None:
    whole = metadata(topic("one", 1), topic("two", 2))
    assert await nodes(dict.fromkeys(NODES, whole)).brokers_lacking(["one", "two"]) == {}
    behind = {1: whole, 2: metadata(topic("one", 1), topic("two", error=UNKNOWN))}
    assert await nodes(behind).brokers_lacking(["one", "two"]) == {
        "broker 2 (b:9092)": "does not know two",
        "broker 3 (c:9092)": "does not answer",
    }
    torn = metadata(topic("one", 1), topic("two", 2, NO_LEADER))
    assert await nodes({1: whole, 2: torn, 3: whole}).brokers_lacking(["one", "two"]) == {
        "broker 2 (b:9092)": "knows no leader for two/1"
    }


async def test_what_a_user_may_not_see_is_not_waited_for(nodes: MakeNodes) -> None:
    refused = metadata(topic("one", 1), topic("two", error=REFUSED))
    assert await nodes(dict.fromkeys(NODES, refused)).brokers_lacking(["one", "two"]) == {}


# --- where partitions end ---------------------------------------------------------------------------------------------


@pytest.fixture
def leaders(monkeypatch: pytest.MonkeyPatch) -> dict[int, Mapping[tuple[str, int], tuple[int, int]]]:
    """What each leader answers about the ends of its partitions; one without an answer is down."""
    answers: dict[int, Mapping[tuple[str, int], tuple[int, int]]] = {}

    async def ends_of(_admin: object, places: Sequence[tuple[str, int]], node: int) -> Mapping[Any, tuple[int, int]]:
        if node not in answers:
            raise NodeNotReadyError(f"node {node}")
        return {place: answers[node][place] for place in places if place in answers[node]}

    monkeypatch.setattr(cluster_module, "ends_of", ends_of)
    return answers


async def test_each_leader_is_asked_where_its_partitions_end_and_one_that_is_down_leaves_out_only_its_own(
    nodes: MakeNodes, leaders: dict[int, Mapping[tuple[str, int], tuple[int, int]]]
) -> None:
    cluster = nodes(dict.fromkeys(NODES, metadata(topic("input", 1, 2, 3, NO_LEADER), topic("scored", 2, 1))))
    leaders[1] = {("input", 0): (4, 9), ("scored", 1): (7, 7)}
    leaders[2] = {("scored", 0): (0, 1)}  # it is no longer the leader of input/1
    assert await cluster.ends(["input", "scored"], lambda _place: True) == {
        ("input", 0): Ends(4, 9),
        ("scored", 0): Ends(0, 1),
        ("scored", 1): Ends(7, 7),
    }
    assert await cluster.ends(["input", "scored"], lambda place: place == ("scored", 1)) == {("scored", 1): Ends(7, 7)}


async def test_a_leader_that_the_client_does_not_know_yet_is_looked_for(
    nodes: MakeNodes,
    leaders: dict[int, Mapping[tuple[str, int], tuple[int, int]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, refreshed = nodes(dict.fromkeys(NODES, metadata(topic("input", 4)))), []
    leaders[4] = {("input", 0): (2, 2)}

    async def refresh_metadata(admin: object) -> None:
        refreshed.append(admin)

    monkeypatch.setattr(cluster_module, "refresh_metadata", refresh_metadata)
    assert await cluster.ends(["input"], lambda _place: True) == {("input", 0): Ends(2, 2)}
    assert len(refreshed) == 1


async def test_whose_transaction_begins_at_an_offset_is_asked_of_the_leader(
    nodes: MakeNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = nodes(dict.fromkeys(NODES, metadata(topic("input", 2))))
    producers = [
        {"producer_id": 7, "producer_epoch": 1, "first_offset": -1},
        {"producer_id": 8, "producer_epoch": 2, "first_offset": 5},
        {"producer_id": 9, "producer_epoch": 3, "first_offset": 4},
    ]

    async def producers_of(_admin: object, *about: object) -> list[dict[str, Any]]:
        assert about == ("input", 0, 2)
        return producers

    monkeypatch.setattr(cluster_module, "producers_of", producers_of)
    assert await cluster.open_transaction(("input", 0), 4) == OpenTransaction(9, 3, 4)
    assert await cluster.open_transaction(("input", 0), 6) is None, "it has ended meanwhile"
    assert await cluster.open_transaction(("input", 1), 4) is None, "it has no leader"

    async def too_old(_admin: object, *_about: object) -> list[dict[str, Any]]:
        raise IncompatibleBrokerVersion("ProducersRequest")

    monkeypatch.setattr(cluster_module, "producers_of", too_old)
    assert await cluster.open_transaction(("input", 0), 4) is None


# --- settings of topics -----------------------------------------------------------------------------------------------


class Settings:
    """An administrative client that knows settings of topics, and nothing else."""

    def __init__(self, settings: Mapping[str, Mapping[str, str]]) -> None:
        self._settings = settings

    async def describe_configs(self, resources: Sequence[Any]) -> list[Any]:
        """Answer for each topic as a broker does: what is not known has an error."""
        found = [
            (0, None, 2, each.name, list(self._settings[each.name].items()))
            if each.name in self._settings
            else (REFUSED, None, 2, each.name, [])
            for each in resources
        ]
        return [SimpleNamespace(resources=found)]


async def test_topics_are_described_with_the_fewest_replicas_and_what_the_broker_tells(nodes: MakeNodes) -> None:
    whole, torn = topic("whole", 1, 2) | {"topic_id": uuid.UUID(int=7)}, topic("torn", 1, NO_LEADER)
    torn["partitions"][1]["replicas"] = [1]
    cluster = nodes(dict.fromkeys(NODES, metadata(whole, torn, topic("gone", error=UNKNOWN))))
    cluster._admin = Settings({"whole": {"retention.ms": "5", "max.message.bytes": "9"}})
    described = await cluster.describe(["whole", "torn", "gone"])
    assert described == {
        "whole": TopicDescription(
            "whole", 2, 3, {"retention.ms": "5", "max.message.bytes": "9"}, str(uuid.UUID(int=7))
        ),
        "torn": TopicDescription("torn", 2, 1, {}),
    }
    assert {name: each.max_message_bytes for name, each in described.items()} == {"whole": 9, "torn": 1_048_588}


class DescribedGroup(Cluster):
    """A cluster whose coordinator describes one group."""

    def __init__(self, error_code: int, *members: str) -> None:
        found = {"groups": [{"error_code": error_code, "group": "safe-v0", "members": list(members)}]}

        async def describe_consumer_groups(groups: Sequence[str]) -> Sequence[Any]:
            assert groups == ["safe-v0"]
            return [SimpleNamespace(to_object=lambda: found)]

        self._admin = SimpleNamespace(describe_consumer_groups=describe_consumer_groups)


NOT_COORDINATOR, GROUP_FORBIDDEN = 16, 30


async def test_a_group_has_members_or_the_coordinator_does_not_say_so() -> None:
    assert await DescribedGroup(0, "one", "two").has_members("safe-v0")
    assert not await DescribedGroup(0).has_members("safe-v0")
    with pytest.raises(Transient):
        await DescribedGroup(NOT_COORDINATOR).has_members("safe-v0")
    with pytest.raises(Fatal, match="group safe-v0: not authorised for the consumer group"):
        await DescribedGroup(GROUP_FORBIDDEN).has_members("safe-v0")
