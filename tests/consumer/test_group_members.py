"""Who is named as a stranger in a group, from what its coordinator answers."""

from typing import Any

import pytest
from aiokafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse_v1

from consumer.kafka.assignors import offered
from consumer.kafka.group_members import Stranger, strangers_in
from consumer.kafka.protocol import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeRequest_v0,
    ConsumerGroupDescribeRequest_v1,
    ConsumerGroupDescribeResponse_v0,
    ConsumerGroupDescribeResponse_v1,
)

OURS = offered("sticky", guarded=True)[0].metadata(["input"]).encode()
THEIRS = b"\0\0\0\0\0\1\0\5input\xff\xff\xff\xff"
TAGS: dict[int, bytes] = {}
NOTHING: tuple[list[Any], dict[int, bytes]] = ([], TAGS)
CLASSIC, NEWER = 0, 1
STRANGER = Stranger("theirs", "/10.0.0.7")


class Coordinator:
    """A link to a coordinator that gives these answers."""

    member_id = "me"

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[Any] = []

    async def ask(self, request: Any) -> Any:
        self.asked.append(type(request))
        return self._answers.pop(0)


def classic(state: str, *members: tuple[str, str, bytes]) -> Any:
    """The answer about a classic group, or about what is none."""
    listed = [(f"{client}-1", client, host, metadata, b"") for client, host, metadata in members]
    return DescribeGroupsResponse_v1(0, [(0, "g", state, "consumer", "range", listed)])


def newer(response: Any, *members: tuple[str, str, tuple[int, ...]]) -> Any:
    """The answer about a group of the newer protocol."""
    listed = [
        (member, None, None, 1, client, "/10.0.0.7", ["input"], None, NOTHING, NOTHING, *kind, TAGS)
        for member, client, kind in members
    ]
    return response(0, [(0, None, "g", "Stable", 2, 2, "uniform", listed, 0, TAGS)], TAGS)


async def test_in_a_classic_group_those_are_strangers_that_carry_no_mark() -> None:
    link: Any = Coordinator(classic("Stable", ("safe", "/10.0.0.1", OURS), ("theirs", "/10.0.0.7", THEIRS)))
    assert await strangers_in(link, "g") == {STRANGER}


async def test_a_client_id_is_no_proof() -> None:
    link: Any = Coordinator(classic("Stable", ("safe", "/10.0.0.1", THEIRS), ("theirs", "/10.0.0.7", OURS)))
    assert await strangers_in(link, "g") == {Stranger("safe", "/10.0.0.1")}


async def test_nobody_is_named_while_the_group_rebalances() -> None:
    link: Any = Coordinator(classic("PreparingRebalance", ("safe", "/10.0.0.1", b"")))
    assert await strangers_in(link, "g") == frozenset()


# The answer, and who is named: ourselves never.
MEMBERS: list[tuple[Any, frozenset[Stranger]]] = [
    (
        newer(
            ConsumerGroupDescribeResponse_v1,
            ("me", "safe", (CLASSIC,)),
            ("another-1", "safe", (CLASSIC,)),
            ("their-1", "theirs", (NEWER,)),
        ),
        frozenset({STRANGER}),
    ),
    (
        newer(ConsumerGroupDescribeResponse_v0, ("me", "safe", ()), ("their-1", "theirs", ())),
        frozenset({STRANGER}),
    ),
]


@pytest.mark.parametrize(("answer", "named"), MEMBERS)
async def test_in_a_group_of_the_newer_protocol_those_are_strangers_that_speak_it(
    answer: Any, named: frozenset[Stranger]
) -> None:
    link: Any = Coordinator(classic("Dead"), answer)
    assert await strangers_in(link, "g") == named
    assert link.asked == [DescribeGroupsRequest, ConsumerGroupDescribeRequest]


@pytest.mark.parametrize("version", [ConsumerGroupDescribeRequest_v0, ConsumerGroupDescribeRequest_v1])
def test_the_question_names_one_group(version: Any) -> None:
    built = ConsumerGroupDescribeRequest("g").build(version)
    assert built.encode() == b"\x02\x02g\x00\x00"


@pytest.mark.parametrize("response", [ConsumerGroupDescribeResponse_v0, ConsumerGroupDescribeResponse_v1])
def test_what_the_answer_says_survives_the_wire(response: Any) -> None:
    kind = () if response is ConsumerGroupDescribeResponse_v0 else (NEWER,)
    answer = newer(response, ("me", "safe", kind))
    assert response.decode(answer.encode()).to_object() == answer.to_object()


def test_a_stranger_is_shown_without_anything_invisible() -> None:
    assert str(Stranger("a\x1b[0m", "/::1")) == r'client id "a\u001b[0m" on ::1'
