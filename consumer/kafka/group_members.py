"""Who else is in a consumer group: the members that are no SAFE of this version, with client id and host.

Members of a classic group are known by the mark that they carry (see assignors.py). A group of the newer protocol
(KIP-848) does not pass marks on: it is such a group because of the members that speak the newer protocol, which ours
never do. Both questions need no more than Describe on the group, which Read includes.
"""

from collections.abc import Iterator
from typing import NamedTuple

from aiokafka.protocol.admin import DescribeGroupsRequest
from typing_extensions import override

from consumer.kafka.aiokafka_internals import CoordinatorLink
from consumer.kafka.assignors import is_marked
from consumer.kafka.protocol import ConsumerGroupDescribeRequest
from consumer.text import visible

_STABLE = "Stable"
_DEAD = "Dead"
"""What a broker answers about a group that is not a classic one, or does not exist."""

_CLASSIC_MEMBER = 0


class Stranger(NamedTuple):
    """A member of the group that is no SAFE of this version, as the broker describes it."""

    client_id: str
    host: str

    @override
    def __str__(self) -> str:
        return f'client id "{visible(self.client_id)}" on {visible(self.host).removeprefix("/")}'


async def strangers_in(link: CoordinatorLink, group: str) -> frozenset[Stranger]:
    """The strangers in a group that is settled; none while it is not. Raises KafkaError, OSError or TimeoutError."""
    described = (await link.ask(DescribeGroupsRequest([group]))).to_object()["groups"]
    if all(each["state"] == _DEAD for each in described):
        return frozenset(await _newer_members(link, group))
    return frozenset(
        Stranger(member["client_id"], member["client_host"])
        for each in described
        if each["state"] == _STABLE  # in any other state, what members say of themselves is left out
        for member in each["members"]
        if not is_marked(member["member_metadata"])
    )


async def _newer_members(link: CoordinatorLink, group: str) -> Iterator[Stranger]:
    described = (await link.ask(ConsumerGroupDescribeRequest(group))).to_object()["groups"]
    return (
        Stranger(member["client_id"], member["client_host"])
        for each in described
        for member in each["members"]
        # Before Kafka 4.0 it does not say which protocol a member speaks: then all but this one are named.
        if member.get("member_type") != _CLASSIC_MEMBER and member["member_id"] != link.member_id
    )
