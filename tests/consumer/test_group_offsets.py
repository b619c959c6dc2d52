"""Committed offsets are believed only of a coordinator that has proven that it is none of the past."""

import asyncio
from typing import Any, cast

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError, NodeNotReadyError
from aiokafka.protocol.commit import OffsetFetchRequest_v3, OffsetFetchResponse_v3

from consumer.errors import Fatal, Transient
from consumer.kafka import group_offsets
from consumer.kafka.group_offsets import AbortedProof, Committed, GroupOffsets, OutOfGroup, PlainProof
from consumer.kafka.protocol import OffsetFetchRequest_v7, OffsetFetchResponse_v7, StableOffsetsRequest
from tests.support.coordinator import Answer, Coordinator, accepted, committed, offsets

WITHIN_SECONDS = 10.0
WITNESS = TopicPartition("state", 0)
NOTHING = {0: (-1, ""), 1: (-1, "")}
UNKNOWN_TOPIC, LOADING, NOT_AVAILABLE, NOT_COORDINATOR, TIMED_OUT = 3, 14, 15, 16, 7
ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING = 22, 25, 27
TOPIC_FORBIDDEN, GROUP_FORBIDDEN, UNSTABLE = 29, 30, 88


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def asking(coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch) -> GroupOffsets:
    monkeypatch.setattr(group_offsets, "_AGAIN_SECONDS", 0.001)
    monkeypatch.setattr(group_offsets, "_ANSWER_SECONDS", 0.5)
    return GroupOffsets(coordinator.link, "safe-v0", "input", WITNESS, PlainProof("safe-v0", WITNESS))


async def test_the_offset_is_asked_for_behind_an_acknowledged_commit_on_the_same_connection(
    coordinator: Coordinator, asking: GroupOffsets
) -> None:
    coordinator.fetches.append(offsets("input", {0: (41, "transactions=7"), 1: (-1, "")}))
    assert await asking.of([0, 1]) == {0: Committed(41, "transactions=7"), 1: None}
    assert coordinator.kinds == ["1 commit", "1 fetch"]
    (_, commit), (_, fetch) = coordinator.asked
    assert (commit.consumer_group, commit.consumer_group_generation_id, commit.consumer_id) == ("safe-v0", 5, "me")
    assert commit.topics == [("state", [(0, -1, "")])], "a partition that the group never reads, and no offset to see"
    assert commit.retention_time == 1, "it would stay in the group for ever"
    assert (fetch.consumer_group, fetch.topics) == ("safe-v0", [("input", [0, 1], {})])
    assert fetch.require_stable, "the end of a transaction may be known before its offset is"


# What comes instead of the acknowledgement, and whether the node is taken for the coordinator any longer.
NO_PROOF: list[tuple[Answer, bool]] = [
    (committed(NOT_COORDINATOR), False),
    (committed(NOT_AVAILABLE), False),  # what one that is cut off answers once it gives up
    (committed(TIMED_OUT), False),
    (committed(LOADING), True),
    (committed(UNKNOWN_TOPIC), False),  # it is behind: it does not know the topic yet
    (KafkaConnectionError("the node is gone"), False),
    (OSError("reset"), False),
    (None, False),  # silence
]


@pytest.mark.parametrize(("instead", "trusted"), NO_PROOF)
async def test_without_an_acknowledgement_nothing_that_the_node_says_is_believed(
    coordinator: Coordinator, asking: GroupOffsets, *, instead: Answer, trusted: bool
) -> None:
    coordinator.commits.append(instead)
    coordinator.fetches.append(offsets("input", {0: (20, "")}))
    assert await asking.of([0]) == {0: Committed(20)}
    assert coordinator.kinds == ["1 commit", "2 commit", "2 fetch"]
    assert coordinator.distrusted == ([] if trusted else [1])


# What comes instead of the offsets, though the commit was acknowledged.
NO_OFFSETS: list[Answer] = [
    offsets("input", {}),  # left out: not the same as never committed
    offsets("input", {1: (7, "")}),
    offsets("other", {0: (7, "")}),
    offsets("input", {0: (-1, "")}, NOT_COORDINATOR),
    offsets("input", {0: (-1, "")}, partition_code=LOADING),
    offsets("input", {0: (7, "")}, partition_code=UNSTABLE),
    KafkaConnectionError("the node is gone"),
    None,
]


@pytest.mark.parametrize("instead", NO_OFFSETS)
async def test_an_answer_in_part_is_none_and_the_proof_is_given_again_with_the_next(
    coordinator: Coordinator, asking: GroupOffsets, instead: Answer
) -> None:
    coordinator.fetches.extend([instead, offsets("input", {0: (20, "")})])
    assert await asking.of([0]) == {0: Committed(20)}
    assert coordinator.kinds == ["1 commit", "1 fetch", "2 commit", "2 fetch"]


async def test_a_transaction_that_has_not_ended_is_no_reason_to_distrust_the_node(
    coordinator: Coordinator, asking: GroupOffsets
) -> None:
    unstable = offsets("input", {0: (7, "")}, partition_code=UNSTABLE)
    coordinator.fetches.extend([unstable, offsets("input", {0: (20, "")})])
    assert await asking.of([0]) == {0: Committed(20)}
    assert coordinator.distrusted == []


async def test_a_proof_alone_does_not_wait_for_a_transaction_that_has_not_ended(
    coordinator: Coordinator, asking: GroupOffsets
) -> None:
    """Its owner may be dead: then only a new start of its id ends it, and that comes after the proof."""
    coordinator.usual_fetch = lambda: offsets("input", {0: (7, "")}, partition_code=UNSTABLE)
    assert await asking.of([]) == {}
    assert coordinator.kinds == ["1 commit"]


@pytest.mark.parametrize(
    ("versions", "kind"),
    [((1, 9), OffsetFetchRequest_v7), ((1, 7), OffsetFetchRequest_v7), ((1, 6), OffsetFetchRequest_v3)],
)
def test_a_broker_is_asked_for_stable_offsets_where_it_can_tell(versions: tuple[int, int], kind: type) -> None:
    request: Any = StableOffsetsRequest("safe-v0", "input", [0]).prepare({9: versions})
    assert request.encode()
    assert type(request) is kind


@pytest.mark.parametrize(
    "answer",
    [
        OffsetFetchResponse_v3(0, [("input", [(0, 41, "note", 0), (1, -1, None, 0)])], 0),
        OffsetFetchResponse_v7.decode(offsets("input", {0: (41, "note"), 1: (-1, "")}).encode()),
    ],
)
async def test_both_versions_of_an_answer_say_the_same(
    coordinator: Coordinator, asking: GroupOffsets, answer: Answer
) -> None:
    coordinator.fetches.append(answer)
    assert await asking.of([0, 1]) == {0: Committed(41, "note"), 1: None}


@pytest.mark.parametrize("code", [ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING])
async def test_a_member_that_the_group_does_not_have_any_more_is_told_at_once(
    coordinator: Coordinator, asking: GroupOffsets, code: int
) -> None:
    coordinator.commits.append(committed(code))
    with pytest.raises(OutOfGroup, match="group safe-v0 is rebalancing"):
        await asking.of([0])
    assert coordinator.kinds == ["1 commit"]
    assert coordinator.distrusted == [], "it is the right node that says so"


@pytest.mark.parametrize(
    ("code", "about"),
    [(TOPIC_FORBIDDEN, "topic state, group safe-v0: not authorised"), (GROUP_FORBIDDEN, "consumer group")],
)
async def test_a_missing_permission_is_fatal_and_named(
    coordinator: Coordinator, asking: GroupOffsets, code: int, about: str
) -> None:
    coordinator.commits.append(committed(code))
    with pytest.raises(Fatal, match=about):
        await asking.of([0])


async def test_a_permission_that_is_missing_for_the_topic_asked_for_names_that_one(
    coordinator: Coordinator, asking: GroupOffsets
) -> None:
    coordinator.fetches.append(offsets("input", {0: (-1, "")}, partition_code=TOPIC_FORBIDDEN))
    with pytest.raises(Fatal, match="topic input, group safe-v0: not authorised"):
        await asking.of([0])


async def test_a_coordinator_that_never_proves_itself_keeps_the_partition_waiting(
    coordinator: Coordinator, asking: GroupOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_offsets, "_WITHIN_SECONDS", 0.2)
    coordinator.commits.extend([committed(NOT_AVAILABLE)] * 10_000)
    with pytest.raises(Transient, match="no coordinator of group safe-v0 can prove"):
        await asking.of([0])
    assert {kind for _, kind in map(str.split, coordinator.kinds)} == {"commit"}


async def test_a_node_that_cannot_be_reached_is_asked_for_until_it_can(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_offsets, "_AGAIN_SECONDS", 0.001)
    tries = 0

    async def link() -> object:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise NodeNotReadyError("not yet")
        return await coordinator.link()

    asking = GroupOffsets(link, "safe-v0", "input", WITNESS, PlainProof("safe-v0", WITNESS))
    assert await asking.of([0, 1]) == {0: None, 1: None}
    assert tries == 4


async def test_partitions_that_ask_at_the_same_time_share_a_question_that_was_sent_after_they_asked(
    coordinator: Coordinator, asking: GroupOffsets
) -> None:
    found = iter([10, 20, 30])
    coordinator.usual_fetch = lambda: offsets("input", {at: (next(found), "") if at == 0 else (1, "") for at in (0, 1)})
    first = asyncio.create_task(asking.of([0, 1]))
    await asyncio.sleep(0)  # its question is on the way
    rest = [asyncio.create_task(asking.of([0, 1])) for _ in range(5)]
    async with asyncio.timeout(WITHIN_SECONDS):
        assert (await first)[0] == Committed(10)
        assert [(await each)[0] for each in rest] == [Committed(20)] * 5, "asked before these did, 10 may be too old"
    assert coordinator.kinds == ["1 commit", "1 fetch", "2 commit", "2 fetch"]
    assert (await asking.of([0]))[0] == Committed(30)


# --- with transactions ------------------------------------------------------------------------------------------------


@pytest.fixture
def proving(coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch) -> GroupOffsets:
    monkeypatch.setattr(group_offsets, "_AGAIN_SECONDS", 0.001)
    monkeypatch.setattr(group_offsets, "_ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(group_offsets, "_END_SECONDS", 0.5)
    proof = AbortedProof(cast("Any", coordinator), "safe-v0:input:proof-1", "safe-v0", WITNESS)
    return GroupOffsets(coordinator.link, "safe-v0", "input", WITNESS, proof)


async def test_with_transactions_the_proof_is_a_commit_of_the_member_that_is_aborted_after_the_question(
    coordinator: Coordinator, proving: GroupOffsets
) -> None:
    coordinator.fetches.append(offsets("input", {0: (41, "transactions=7"), 1: (-1, "")}))
    assert await proving.of([0, 1]) == {0: Committed(41, "transactions=7"), 1: None}
    assert coordinator.kinds == ["start", "add", "1 commit", "1 commit", "1 fetch", "aborted"]
    (_, wrong), (_, commit), (_, fetch) = (each for each in coordinator.asked if not isinstance(each[1], str))
    assert wrong.generation > 5, "a coordinator that does not look at it would let a zombie commit"
    assert (commit.transactional_id, commit.producer_id, commit.producer_epoch) == ("safe-v0:input:proof-1", 7, 1)
    assert (commit.consumer_group, commit.generation, commit.member_id) == ("safe-v0", 5, "me")
    assert commit.topics == [("state", [(0, -1, -1, "", {})], {})]
    assert fetch.require_stable


async def test_a_coordinator_is_tried_with_a_generation_that_does_not_exist_once(
    coordinator: Coordinator, proving: GroupOffsets
) -> None:
    await proving.of([0])
    await proving.of([0])
    assert coordinator.kinds[6:] == ["add", "2 commit", "2 fetch", "aborted"]


async def test_one_that_accepts_it_ends_the_worker_in_one_sentence(
    coordinator: Coordinator, proving: GroupOffsets
) -> None:
    coordinator.of_no_generation = 0
    with pytest.raises(Fatal, match="set SAFE_V0_DELIVERY=at_least_once"):
        await proving.of([0])
    assert "1 fetch" not in coordinator.kinds
    assert coordinator.kinds[-1] == "aborted"


@pytest.mark.parametrize("code", [NOT_COORDINATOR, NOT_AVAILABLE, LOADING])
async def test_one_that_answers_something_else_is_asked_again(
    coordinator: Coordinator, proving: GroupOffsets, code: int
) -> None:
    coordinator.commits.append(accepted(code))
    coordinator.fetches.append(offsets("input", {0: (20, "")}))
    assert await proving.of([0]) == {0: Committed(20)}
    assert coordinator.kinds.count("1 fetch") == 0
    assert coordinator.kinds.count("aborted") == 2


@pytest.mark.parametrize("code", [ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING])
async def test_with_transactions_too_a_member_that_is_gone_is_told_at_once(
    coordinator: Coordinator, proving: GroupOffsets, code: int
) -> None:
    coordinator.commits.append(accepted(code))
    with pytest.raises(OutOfGroup, match="group safe-v0 is rebalancing"):
        await proving.of([0])
    assert coordinator.distrusted == []
    assert coordinator.kinds[-1] == "aborted"


@pytest.mark.parametrize("fails", ["add", "aborted"])
async def test_a_proof_whose_transaction_is_in_doubt_is_the_last_of_its_producer(
    coordinator: Coordinator, proving: GroupOffsets, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    await proving.of([0])
    note = coordinator._note

    async def failing(step: str) -> None:
        await note(step)
        if step == fails and coordinator.transactions.count(fails) == 2:
            raise KafkaConnectionError("no answer")

    monkeypatch.setattr(coordinator, "_note", failing)
    await proving.of([0])
    await proving.of([0])
    second = ["add"] if fails == "add" else ["add", "aborted"]
    again = ["start", "add", "aborted"]
    rest = ["add", "aborted"] if fails == "add" else []
    assert coordinator.transactions == ["start", "add", "aborted", *second, *again, *rest]


async def test_a_proof_whose_commit_is_not_answered_is_not_aborted_but_started_again(
    coordinator: Coordinator, proving: GroupOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit may still be on its way: behind an abort, it would open a transaction that nobody ends."""
    monkeypatch.setattr(group_offsets, "_ANSWER_SECONDS", 0.1)
    await proving.of([0])
    coordinator.commits.append(None)
    await proving.of([0])
    assert coordinator.transactions == ["start", "add", "aborted", "add", "start", "add", "aborted"]
