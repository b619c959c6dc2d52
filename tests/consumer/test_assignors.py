"""What a member offers to its group, and how members of this version are known."""

from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from consumer.kafka.assignors import MARK, OWN_NAMES, Assignor, is_marked, offered

CLIENTS: dict[Assignor, Any] = {"sticky": StickyPartitionAssignor, "round_robin": RoundRobinPartitionAssignor}
KINDS: list[Assignor] = ["sticky", "round_robin"]
COMMON = {"range", "roundrobin", "sticky", "cooperative-sticky", "uniform"}
"""What other clients offer."""


class FourPartitions:
    """All that an assignor asks of the cluster."""

    def topics(self) -> set[str]:
        """Return all topics."""
        return {"input"}

    def partitions_for_topic(self, _topic: str) -> set[int]:
        """Return the partitions of any topic."""
        return {0, 1, 2, 3}


CLUSTER = FourPartitions()


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    """The sticky assignor remembers on its class what it was assigned last."""
    yield
    StickyPartitionAssignor.member_assignment = None


@pytest.mark.parametrize("kind", KINDS)
def test_a_guarded_group_has_one_assignor_that_no_other_client_knows(kind: Assignor) -> None:
    [own] = offered(kind, guarded=True)
    assert own.name in OWN_NAMES
    assert own.name not in COMMON


@pytest.mark.parametrize("kind", KINDS)
def test_during_an_upgrade_the_name_of_earlier_versions_is_offered_second(kind: Assignor) -> None:
    own, earlier = offered(kind, guarded=False)
    assert own.name in OWN_NAMES
    assert earlier.name == CLIENTS[kind].name


@pytest.mark.parametrize("kind", KINDS)
def test_members_and_assignments_of_this_version_are_marked_and_those_of_others_are_not(kind: Assignor) -> None:
    client = CLIENTS[kind]
    for each in offered(kind, guarded=False):
        members = {"ours": each.metadata(["input"]), "theirs": client.metadata(["input"])}
        assert is_marked(members["ours"].encode())
        assert not is_marked(members["theirs"].encode())
        assigned = each.assign(CLUSTER, members)
        assert all(is_marked(assigned[member].encode()) for member in members), "a member without partitions, too"
        # A leader of an earlier version reads what our members say, and marks nothing.
        by_them = client.assign(CLUSTER, members)
        assert not any(is_marked(by_them[member].encode()) for member in members)
        assert {name: each.partitions() for name, each in by_them.items()} == {
            name: each.partitions() for name, each in assigned.items()
        }


def test_what_a_member_had_is_kept_when_the_group_changes_the_name_of_its_assignor() -> None:
    own, earlier = offered("sticky", guarded=False)
    had = [TopicPartition("input", 2), TopicPartition("input", 3)]
    earlier.on_assignment(ConsumerProtocolMemberAssignment(0, [("input", [2, 3])], b""))
    others = StickyPartitionAssignor._metadata(["input"], [])
    for each in (own, earlier, StickyPartitionAssignor):
        assigned = own.assign(CLUSTER, {"another": others, "me": each.metadata(["input"])})
        assert assigned["me"].partitions() == had


def test_the_mark_is_a_few_bytes() -> None:
    assert 0 < len(MARK) <= 8
