"""What `safe offsets` shows, plans and refuses; what the brokers have is made up."""

import json
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from aiokafka.errors import CommitFailedError, ProducerFenced, TransactionalIdAuthorizationFailed
from typing_extensions import override

from consumer.cli.main import main
from consumer.errors import ConfigurationError, Fatal, Transient
from consumer.kafka import offset_writing
from consumer.kafka.cluster import Cluster
from consumer.kafka.connection import Connection
from consumer.kafka.group_offsets import Committed
from consumer.kafka.offset_writing import Change, commit_without_members, replace_fenced
from consumer.kafka.protocol import (
    Identity,
    MemberOffsetsRequest,
    TxnOffsetCommitRequest_v3,
    TxnOffsetCommitResponse_v3,
)
from consumer.offsets import accept, reset, show
from consumer.offsets.input_offsets import InputOffset
from consumer.settings import Settings
from tests.support.offsets import noted

TOPIC, GROUP = "factory.generation.output", "safe-v0"
CONNECTION = Connection("127.0.0.1:1", {})
STRANGE = InputOffset(0, Committed(1204), 1187, first=100, end=1209)
UNKNOWN = InputOffset(1, Committed(7, "ours?"), None, first=0, end=9)
OURS = InputOffset(2, noted(1191), 1191, first=0, end=1191)
NONE = InputOffset(3, None, None, first=5, end=5)


class Brokers:
    """What the commands find, and what they commit."""

    def __init__(self) -> None:
        self.offsets: list[InputOffset] = [STRANGE, OURS, NONE]
        self.committed: list[tuple[str, Mapping[int, Committed]]] = []
        self.members = False

    async def look(self, _settings: Settings, *, scored: bool = True) -> Sequence[InputOffset]:
        return self.offsets if scored else [replace(each, scored_up_to=None) for each in self.offsets]

    async def replace_fenced(
        self, _c: Connection, cluster: "Brokers", group: str, change: Change, partitions: Sequence[int]
    ) -> None:
        assert (cluster, group, change.topic) == (self, GROUP, TOPIC)
        assert partitions == [each.partition for each in self.offsets], "an owner writes with the id of any of its own"
        assert change.before in [each.committed for each in self.offsets]
        self.committed.append(("fenced", {change.partition: change.after}))

    async def commit_without_members(
        self, _c: Connection, group: str, topic: str, offsets: Mapping[int, Committed]
    ) -> None:
        assert (group, topic) == (GROUP, TOPIC)
        self.committed.append(("without members", offsets))

    async def has_members(self, group: str) -> bool:
        assert group == GROUP
        return self.members

    @asynccontextmanager
    async def connected(self, _settings: Settings) -> AsyncIterator["Brokers"]:
        yield self

    async def fence_all(self, _c: Connection, group: str, topic: str, partitions: Mapping[int, Any]) -> None:
        assert (group, topic) == (GROUP, TOPIC)
        self.committed.append(("fences", dict.fromkeys(partitions, Committed(-1))))

    async def first_of_time(self, _settings: Settings, since_ms: int, partitions: int) -> dict[int, int]:
        assert (since_ms, partitions) == (1_795_291_200_000, 3)
        return {0: 1_100, 2: 1_191, 3: 5}


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Brokers:
    made = Brokers()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAFE_V0_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    for module in (accept, reset, show):
        monkeypatch.setattr(module, "look", made.look)
    monkeypatch.setattr(accept, "replace_fenced", made.replace_fenced)
    monkeypatch.setattr(accept, "connected_cluster", made.connected)
    monkeypatch.setattr(reset, "commit_without_members", made.commit_without_members)
    monkeypatch.setattr(reset, "fence_all", made.fence_all)
    monkeypatch.setattr(reset, "connected_cluster", made.connected)
    monkeypatch.setattr(reset, "_first_of_time", made.first_of_time)
    return made


def run(capsys: pytest.CaptureFixture[str], *arguments: str, exit_code: int = 0) -> tuple[list[str], str]:
    """Run `safe offsets`; returns the lines on standard output, and standard error."""
    code = main(["offsets", *arguments])
    printed = capsys.readouterr()
    assert code == exit_code, printed
    return printed.out.splitlines(), printed.err


# --- show -------------------------------------------------------------------------------------------------------------


def test_each_partition_has_a_row(brokers: Brokers, capsys: pytest.CaptureFixture[str]) -> None:
    brokers.offsets = [STRANGE, UNKNOWN, OURS, NONE]
    rows, remark = run(capsys, "show")
    assert [row.split() for row in rows] == [
        ["PARTITION", "OFFSET", "COMMITTED_BY", "SCORED_UP_TO", "END"],
        ["0", "1204", "not", "SAFE", "1187", "1209"],
        ["1", "7", "not", "SAFE", "-", "9"],
        ["2", "1191", "SAFE", "1191", "1191"],
        ["3", "-", "-", "-", "5"],
    ]
    assert len({len(row) for row in rows}) == 1
    assert remark == "safe: 2 offsets have no note of SAFE: see `safe offsets accept --help`\n"
    lines, _ = run(capsys, "show", "--format", "json")
    assert json.loads(lines[1]) == {
        "partition": 1, "offset": 7, "note": "ours?", "is_safes": False, "scored_up_to": None, "end": 9,
    }  # fmt: skip
    assert json.loads(lines[3])["offset"] is None


def test_where_all_is_well_nothing_is_remarked(brokers: Brokers, capsys: pytest.CaptureFixture[str]) -> None:
    brokers.offsets = [OURS, NONE]
    assert run(capsys, "show")[1] == ""


# --- accept -----------------------------------------------------------------------------------------------------------


def test_what_is_not_told_to_be_done_is_only_shown(brokers: Brokers, capsys: pytest.CaptureFixture[str]) -> None:
    rows, remark = run(capsys, "accept", "--to-last-result")
    assert rows == [f"{TOPIC}/0: 1204 -> 1187"]
    assert remark == "safe: Nothing was changed; add --execute to do it\n"
    rows, _ = run(capsys, "reset", "--to-latest")
    assert rows == [f"{TOPIC}/0: 1204 -> 1209", f"{TOPIC}/2: 1191 -> 1191", f"{TOPIC}/3: none -> 5"]
    assert brokers.committed == []


def test_an_accepted_offset_has_a_note_wherever_it_is(brokers: Brokers, capsys: pytest.CaptureFixture[str]) -> None:
    brokers.offsets = [STRANGE, UNKNOWN, OURS]
    rows, _ = run(capsys, "accept", "--execute")
    assert rows == [f"{TOPIC}/0: 1204 -> 1204", f"{TOPIC}/1: 7 -> 7"]
    run(capsys, "accept", "--partition", "0", "--to-last-result", "--execute")
    assert brokers.committed == [("fenced", {0: noted(1204)}), ("fenced", {1: noted(7)}), ("fenced", {0: noted(1187)})]


# arguments, what is said
REFUSED = [
    (("accept", "--partition", "2"), "partition 2 of factory.generation.output has no offset that SAFE did not commit"),
    (("accept", "--partition", "3"), "partition 3 of factory.generation.output has no offset that SAFE did not commit"),
    (("accept", "--to-last-result"), "no result of partition 1 of factory.generation.output was found"),
    (("accept", "--partition", "4"), "there is no partition 4: the input has 4 partitions"),
    (("reset", "--to-latest", "--partition", "9"), "there is no partition 9"),
    (("reset", "--to-offset", "99", "--partition", "0"), "partition 0 has the offsets 100 to 1209, not 99"),
    (("reset", "--to-offset", "1210", "--partition", "0"), "partition 0 has the offsets 100 to 1209, not 1210"),
    (("reset",), "say where to continue with exactly one of --to-earliest"),
    (("reset", "--to-latest", "--to-offset", "7"), "exactly one of"),
    (("reset", "--to-datetime", "yesterday"), "--to-datetime yesterday is neither a time with a zone"),
]


@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_what_cannot_be_done_is_refused_before_anything_is_done(
    arguments: Sequence[str], said: str, brokers: Brokers, capsys: pytest.CaptureFixture[str]
) -> None:
    brokers.offsets = [STRANGE, UNKNOWN, OURS, NONE]
    rows, sentence = run(capsys, *arguments, "--execute", exit_code=3)
    assert said in sentence
    assert (rows, brokers.committed) == ([], [])


def test_where_safe_has_committed_all_there_is_nothing_to_accept(
    brokers: Brokers, capsys: pytest.CaptureFixture[str]
) -> None:
    brokers.offsets = [OURS, NONE]
    assert "nothing to accept" in run(capsys, "accept", "--execute")[1]


# --- reset ------------------------------------------------------------------------------------------------------------

GOALS = [
    (("--to-earliest",), {0: noted(100), 2: noted(0), 3: noted(5)}),
    (("--to-latest", "--partition", "2", "--partition", "3"), {2: noted(1191), 3: noted(5)}),
    (("--to-offset", "500", "--partition", "0"), {0: noted(500)}),
    (("--to-offset", "1209", "--partition", "0"), {0: noted(1209)}),
    (("--to-datetime", "2026-11-21T20:00:00Z"), {0: noted(1100), 2: noted(1191), 3: noted(5)}),
]


@pytest.mark.parametrize(("goal", "offsets"), GOALS)
def test_a_reset_fences_former_owners_before_it_commits(
    goal: Sequence[str], offsets: dict[int, Committed], brokers: Brokers, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "reset", *goal, "--execute")
    fences = ("fences", dict.fromkeys([each.partition for each in brokers.offsets], Committed(-1)))
    assert brokers.committed == [fences, ("without members", offsets)]


def test_without_transactions_nobody_can_be_fenced(
    brokers: Brokers, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAFE_V0_DELIVERY", "at_least_once")
    run(capsys, "reset", "--to-earliest", "--execute")
    assert [how for how, _ in brokers.committed] == ["without members"]


def test_while_the_group_has_members_nobody_is_fenced(brokers: Brokers, capsys: pytest.CaptureFixture[str]) -> None:
    brokers.members = True
    rows, said = run(capsys, "reset", "--to-earliest", "--execute", exit_code=3)
    assert (rows, brokers.committed) == ([], [])
    assert "has members" in said


# --- what is written --------------------------------------------------------------------------------------------------


@dataclass
class Fences:
    """Stands for the coordinators: commits fail as told, one after another."""

    failures: deque[Exception] = field(default_factory=deque)
    steps: list[object] = field(default_factory=list)
    refusal: Exception | None = None

    async def start(self, transactional_id: str, _timeout_ms: int) -> Identity:
        if self.refusal is not None:
            raise self.refusal
        self.steps.append(f"start {transactional_id}")
        return Identity(transactional_id, 7, 0)

    async def add_offsets(self, _producer: Identity, group: str) -> None:
        assert group == GROUP

    async def send(self, request: MemberOffsetsRequest) -> Any:
        wire: Any = request.build(TxnOffsetCommitRequest_v3)
        [(_topic, [(partition, offset, _epoch, note, _)], _tags)] = wire.topics
        assert (wire.transactional_id, wire.generation, wire.member_id) == (f"{GROUP}:{TOPIC}:{partition}", -1, "")
        if self.failures:
            raise self.failures.popleft()
        self.steps.append(Committed(offset, note))
        return TxnOffsetCommitResponse_v3(0, [(TOPIC, [(partition, 0, {})], {})], {})

    async def end(self, _producer: Identity, *, commit: bool) -> None:
        self.steps.append("commit" if commit else "abort")


@pytest.fixture
def fences(monkeypatch: pytest.MonkeyPatch) -> Fences:
    made = Fences()

    async def link(*_: object) -> Fences:
        return made

    @asynccontextmanager
    async def fence(_connection: Connection, group: str, topic: str) -> AsyncIterator[offset_writing.Fence]:
        fence = offset_writing.Fence(cast("Any", None), group, topic)
        fence._transactions, fence._link = cast("Any", made), cast("Any", link)
        yield fence

    monkeypatch.setattr(offset_writing, "_fence", fence)
    monkeypatch.setattr(offset_writing, "_TRY_AGAIN_SECONDS", 0.001)
    return made


class Coordinator(Cluster):
    """Answers each question about the offset of partition 0 with the next of these, the last of them for ever."""

    def __init__(self, steps: list[object], *answers: Committed | None) -> None:
        self.steps, self.answers = steps, deque(answers)

    @override
    async def committed(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, Committed]:
        assert (group, topic, list(partitions)) == (GROUP, TOPIC, [0])
        self.steps.append("ask")
        found = self.answers.popleft() if len(self.answers) > 1 else self.answers[0]
        return {} if found is None else {0: found}


CHANGE = Change(TOPIC, 0, Committed(12), noted(9))
ALL = [f"start {GROUP}:{TOPIC}:{partition}" for partition in range(3)]


async def test_an_offset_is_replaced_after_all_ids_are_taken_and_an_owner_that_takes_one_back_is_fenced_again(
    fences: Fences,
) -> None:
    fences.failures.extend([ProducerFenced(), ProducerFenced()])
    await replace_fenced(CONNECTION, Coordinator(fences.steps, Committed(12)), GROUP, CHANGE, range(3))
    assert fences.steps == [*ALL, "ask", *ALL, "ask", *ALL, "ask", noted(9), "commit"]


async def test_but_not_for_ever(fences: Fences) -> None:
    fences.failures.extend([ProducerFenced()] * 1_000)
    with pytest.raises(Transient, match="its owner fences every attempt"):
        await replace_fenced(CONNECTION, Coordinator(fences.steps, Committed(12)), GROUP, CHANGE, range(3))
    assert "commit" not in fences.steps


async def test_a_commit_whose_answer_was_lost_is_not_made_again(fences: Fences) -> None:
    fences.failures.append(TimeoutError())
    await replace_fenced(CONNECTION, Coordinator(fences.steps, Committed(12), noted(9)), GROUP, CHANGE, range(3))
    assert noted(9) not in fences.steps


@pytest.mark.parametrize("found", [Committed(13), noted(12), Committed(9), None])
async def test_an_offset_that_has_changed_meanwhile_is_left_alone(found: Committed | None, fences: Fences) -> None:
    with pytest.raises(ConfigurationError, match=f"the offset of {TOPIC}/0 has changed meanwhile"):
        await replace_fenced(CONNECTION, Coordinator(fences.steps, found), GROUP, CHANGE, range(3))
    assert fences.steps == [*ALL, "ask"]


async def test_all_former_owners_are_fenced(fences: Fences) -> None:
    await offset_writing.fence_all(CONNECTION, GROUP, TOPIC, range(120))
    assert len(set(fences.steps)) == 120


class Member:
    """A client that commits for a group."""

    failure: Exception | None = None

    async def start(self) -> None:
        pass

    def assign(self, _partitions: object) -> None:
        pass

    async def commit(self, _offsets: object) -> None:
        if self.failure is not None:
            raise self.failure

    async def stop(self) -> None:
        pass


async def test_former_owners_that_may_not_be_fenced_are_named_in_one_sentence(fences: Fences) -> None:
    fences.refusal = TransactionalIdAuthorizationFailed("id")
    with pytest.raises(Fatal, match=r"^the producer for \S+: not authorised for its transactional ids; grant WRITE"):
        await offset_writing.fence_all(CONNECTION, GROUP, TOPIC, range(3))


@pytest.mark.parametrize(
    ("failure", "kind", "said"),
    [
        (
            CommitFailedError("a rebalance"),
            ConfigurationError,
            "has members, so its offsets cannot be changed: stop all",
        ),
        (TimeoutError(), Transient, "no answer within the time limit"),
    ],
)
async def test_a_group_with_members_refuses_a_commit_from_outside(
    failure: Exception, kind: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = Member()
    member.failure = failure
    monkeypatch.setattr(offset_writing, "client", lambda *_arguments, **_options: member)
    monkeypatch.setattr(offset_writing, "stopped", lambda consumer, _seconds: consumer.stop())
    with pytest.raises(kind, match=said):
        await commit_without_members(CONNECTION, GROUP, TOPIC, {0: noted(9)})
