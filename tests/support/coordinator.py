"""A group coordinator that answers as it is told: an answer for each request, or silence."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka.protocol.commit import (
    OffsetCommitRequest,
    OffsetCommitRequest_v3,
    OffsetCommitResponse_v3,
)

from consumer.kafka.protocol import (
    Identity,
    MemberOffsetsRequest,
    OffsetFetchRequest_v7,
    OffsetFetchResponse_v7,
    StableOffsetsRequest,
    TxnOffsetCommitRequest_v3,
    TxnOffsetCommitResponse_v3,
)

Offsets = Mapping[int, tuple[int, str]]


def committed(code: int = 0) -> Any:
    """The answer to a commit for one partition."""
    return OffsetCommitResponse_v3(0, [("state", [(0, code)])])


def accepted(code: int = 0) -> Any:
    """The answer to a commit of a member in a transaction."""
    no_tags: dict[int, bytes] = {}
    return TxnOffsetCommitResponse_v3(0, [("state", [(0, code, no_tags)], no_tags)], no_tags)


def offsets(topic: str, found: Offsets, code: int = 0, *, partition_code: int = 0) -> Any:
    """The answer to a question for offsets: of each partition the offset and its note."""
    no_tags: dict[int, bytes] = {}
    partitions = [(partition, offset, -1, note, partition_code, no_tags) for partition, (offset, note) in found.items()]
    return OffsetFetchResponse_v7(0, [(topic, partitions, no_tags)], code, no_tags)


Answer = Any
"""A response, an exception to raise, or None for silence."""


@dataclass
class Link:
    """One connection to the coordinator: each request takes the next answer; None is silence."""

    number: int
    coordinator: "Coordinator"
    generation: int = 5
    member_id: str = "me"
    closed: bool = False
    node: int = 1

    async def ask(self, request: Any) -> Any:
        """Answer a request, on this connection alone."""
        assert not self.closed, "a connection was used after it had been given up"
        self.coordinator.asked.append((self.number, wire_of(request)))
        await asyncio.sleep(0)
        answer = self.coordinator.answer(request)
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await asyncio.get_running_loop().create_future()
        return answer

    def distrust(self) -> None:
        """Note that this node is no longer taken for the coordinator."""
        self.closed = True
        self.coordinator.distrusted.append(self.number)


@dataclass
class Coordinator:
    """What all connections to it share: the answers to come, and all that was asked, with the connection's number."""

    commits: deque[Answer] = field(default_factory=deque)
    fetches: deque[Answer] = field(default_factory=deque)
    usual_fetch: Callable[[], Answer] = lambda: offsets("input", {0: (-1, ""), 1: (-1, "")})
    asked: list[tuple[int, Any]] = field(default_factory=list)
    distrusted: list[int] = field(default_factory=list)
    links: int = 0
    of_no_generation: int = 22
    transactions: list[str] = field(default_factory=list)

    async def link(self) -> Link:
        """Open another connection."""
        self.links += 1
        return Link(self.links, self)

    def answer(self, request: Any) -> Answer:
        """Take the next answer for a request of its kind, or the usual one."""
        if isinstance(request, MemberOffsetsRequest):
            if request.member.generation > Link.generation:
                return accepted(self.of_no_generation)
            return self.commits.popleft() if self.commits else accepted()
        if isinstance(request, OffsetCommitRequest):
            return self.commits.popleft() if self.commits else committed()
        assert isinstance(request, StableOffsetsRequest)
        return self.fetches.popleft() if self.fetches else self.usual_fetch()

    # --- as the coordinator of transactions

    async def _note(self, step: str) -> None:
        self.transactions.append(step)
        self.asked.append((0, step))
        await asyncio.sleep(0)

    async def start(self, transactional_id: str, _timeout_ms: int) -> Identity:
        """Start a producer."""
        await self._note("start")
        return Identity(transactional_id, 7, self.transactions.count("start"))

    async def add_offsets(self, _producer: Identity, _group: str) -> None:
        """Add the group to the transaction."""
        await self._note("add")

    async def end(self, _producer: Identity, *, commit: bool) -> None:
        """End the transaction."""
        await self._note("committed" if commit else "aborted")

    @property
    def kinds(self) -> list[str]:
        """What was asked, in order: the connection's number and the kind of request."""
        names = {OffsetCommitRequest_v3: "commit", TxnOffsetCommitRequest_v3: "commit", OffsetFetchRequest_v7: "fetch"}
        return [
            request if isinstance(request, str) else f"{number} {names[type(request)]}"
            for number, request in self.asked
        ]


def wire_of(request: Any) -> Any:
    """What goes over the wire for a request, in the version that today's brokers speak."""
    if isinstance(request, MemberOffsetsRequest):
        return request.build(TxnOffsetCommitRequest_v3)
    kind = OffsetCommitRequest_v3 if isinstance(request, OffsetCommitRequest) else OffsetFetchRequest_v7
    return request.build(kind)
