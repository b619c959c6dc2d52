"""How partitions are shared among the members of a group, and how members of ours are told from others.

Any client may join a group whose name it knows. It gets partitions if it knows the assignor that the group uses, and a
record that it commits is never scored. Two facts keep others out:

- The assignors have names that no other client knows. A group takes only members that have a name in common.
- Each assignment carries a few bytes, the mark. Kafka 4 would turn a group into one of the newer protocol (KIP-848) for
  a member that speaks it, and hand out the partitions itself. It refuses that where an assignment holds bytes that it
  would have to drop.

The mark also stands in what each member says of itself when it joins, so that a member of ours is known by it. Client
ids say nothing: anyone may choose them.

Versions before this one have assignors with the client's own names, and no mark. So that a group can be upgraded one
worker at a time, a member may offer the earlier name, too (contract.md, "Ownership"). The group uses the first name
that all of its members know.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyAssignorUserDataV1, StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from typing_extensions import override

Assignor = Literal["sticky", "round_robin"]

MARK = b"SAFE"


def is_marked(encoded: bytes) -> bool:
    """Whether an assignment, or what a member says of itself, is by a SAFE of this version; the mark is its end."""
    return encoded.endswith(MARK)


class _RoundRobin(RoundRobinPartitionAssignor):  # type: ignore[misc]  # aiokafka ships no types
    """Round robin, with the mark."""

    @classmethod
    @override
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        return ConsumerProtocolMemberMetadata(cls.version, list(topics), MARK)

    @classmethod
    @override
    def assign(cls, cluster: Any, members: Mapping[str, Any]) -> dict[str, ConsumerProtocolMemberAssignment]:
        return _marked(super().assign(cluster, members))


class _Sticky(StickyPartitionAssignor):  # type: ignore[misc]  # aiokafka ships no types
    """Sticky, with the mark behind what the client itself writes there: a leader of any version reads that alone.

    What the client remembers is kept on its own class, so that it outlives a change from one name to the other.
    """

    @classmethod
    @override
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        plain = super().metadata(topics)
        had = plain.user_data or StickyAssignorUserDataV1([], cls.DEFAULT_GENERATION_ID).encode()
        return ConsumerProtocolMemberMetadata(plain.version, plain.subscription, had + MARK)

    @classmethod
    @override
    def assign(cls, cluster: Any, members: Mapping[str, Any]) -> dict[str, ConsumerProtocolMemberAssignment]:
        return _marked(super().assign(cluster, members))

    @classmethod
    @override
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        StickyPartitionAssignor.on_assignment(assignment)


def _marked(assigned: Mapping[str, Any]) -> dict[str, ConsumerProtocolMemberAssignment]:
    return {
        member: ConsumerProtocolMemberAssignment(plain.version, plain.assignment, MARK)
        for member, plain in assigned.items()
    }


class _OwnRoundRobin(_RoundRobin):
    name = "safe-roundrobin"


class _OwnSticky(_Sticky):
    name = "safe-sticky"


# The sticky one keeps its state on the class, so only one consumer of a process may use it: the aggregator's, whose
# state is dear to move.
_OWN: Mapping[Assignor, type[AbstractPartitionAssignor]] = {"sticky": _OwnSticky, "round_robin": _OwnRoundRobin}
_EARLIER: Mapping[Assignor, type[AbstractPartitionAssignor]] = {"sticky": _Sticky, "round_robin": _RoundRobin}
OWN_NAMES = frozenset(each.name for each in _OWN.values())


def offered(assignor: Assignor, *, guarded: bool) -> tuple[type[AbstractPartitionAssignor], ...]:
    """What a member offers, the preferred one first: in a guarded group only what no other client knows."""
    return (_OWN[assignor],) if guarded else (_OWN[assignor], _EARLIER[assignor])
