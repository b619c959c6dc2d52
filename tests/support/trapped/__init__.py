"""A worker that freezes at one place of a transaction, or of which a request or an answer is held back on its way.

The client's connection is changed, since what goes over it is the same in all versions of SAFE. A trap is a file that
holds the name of a place; the first request that gets there springs it, and the file goes.
"""

import asyncio
import os
import signal
import socket
import struct
import threading
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

VARIABLE = "TEST_TRAP"
"""Names the file of the trap."""

FOLDER = Path(__file__).parent
"""On the path of an interpreter, it lets that process be trapped."""

PRODUCE, FETCH, ADD_PARTITIONS, END, COMMIT_OFFSETS = 0, 1, 24, 26, 28
FREEZES: dict[str, tuple[Literal["before", "after", "answered"], int]] = {
    "poll": ("answered", FETCH),
    "begin": ("before", ADD_PARTITIONS),
    "first send": ("before", PRODUCE),
    "all sent": ("before", COMMIT_OFFSETS),
    "offsets sent": ("after", COMMIT_OFFSETS),
    "offsets acknowledged": ("before", END),
    "end sent": ("after", END),
}
"""The process stops before it sends a request, right after that, or with the answer in hand."""

LATE = {
    "late outputs in the next transaction": (PRODUCE, ADD_PARTITIONS),
    "late outputs after the next transaction": (PRODUCE, END),
    "late offsets in the next transaction": (COMMIT_OFFSETS, ADD_PARTITIONS),
    "late offsets after the next transaction": (COMMIT_OFFSETS, END),
}
"""The request that is held back as if by the network, and that whose next answer lets it go."""

UNANSWERED = {"offsets unanswered": COMMIT_OFFSETS, "end unanswered": END}
"""The request is sent, and its answer never comes."""

ANSWER_SECONDS = 10.0


def set_trap(file: Path, place: str) -> Path:
    """Set it; returns where the answer to a late request will be."""
    unfinished = file.with_suffix(".new")
    unfinished.write_text(place, "ascii")
    unfinished.replace(file)
    return file.with_suffix(".answer")


class Trap:
    """What a trapped process does with each request; `send` is the client's own way to send one."""

    def __init__(self, file: Path, send: Any) -> None:
        self._file = file
        self._send = send
        self._late: tuple[Any, Any, bytes] | None = None
        self._until: int | None = None

    def send(self, connection: Any, request: Any, expect_response: bool = True) -> Any:  # noqa: FBT002 - theirs
        """Send a request, unless it is held back."""
        key, place = request.API_KEY, self._place()
        if place in LATE and key == LATE[place][0]:
            self._file.unlink()
            return self._held_back(connection, request, until=LATE[place][1])
        if UNANSWERED.get(place) == key:
            self._file.unlink()
            self._send(connection, request, expect_response).close()
            return asyncio.get_running_loop().create_future()
        when, at = FREEZES.get(place, ("", None))
        if at == key and when == "before":
            self._freeze()
        answer = self._send(connection, request, expect_response)
        if at == key and when == "after":
            self._freeze()
        return self._seen(request, answer, freezes=at == key and when == "answered")

    def _place(self) -> str:
        try:
            return self._file.read_text("ascii")
        except FileNotFoundError:
            return ""

    def _freeze(self) -> None:
        self._file.unlink()
        os.kill(os.getpid(), signal.SIGSTOP)

    async def _seen(self, request: Any, answer: Any, *, freezes: bool) -> Any:
        response = await answer
        if freezes and self._place() and _has_records(response):
            self._freeze()
        if self._late is not None and request.API_KEY == self._until and not _is_proof(request):
            late, self._late = self._late, None
            threading.Thread(target=self._arrive, args=late).start()
        return response

    def _held_back(self, connection: Any, request: Any, *, until: int) -> "asyncio.Future[Any]":
        wire = request.prepare(connection._versions)
        frame = wire.build_request_header(correlation_id=1, client_id="late").encode() + wire.encode()
        self._late, self._until = (connection, wire, frame), until
        never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        return never

    def _arrive(self, connection: Any, wire: Any, frame: bytes) -> None:
        """Send what was held back, over a connection of its own, and note what the broker says."""
        answer = "none"
        with suppress(OSError), socket.create_connection((connection._host, connection._port), ANSWER_SECONDS) as late:
            late.sendall(struct.pack(">i", len(frame)) + frame)
            with late.makefile("rb") as stream:
                (size,) = struct.unpack(">i", stream.read(4))
                content = BytesIO(stream.read(size))
            wire.parse_response_header(content)
            answer = repr(wire.RESPONSE_TYPE.decode(content))
        unfinished = self._file.with_suffix(".unfinished")
        unfinished.write_text(answer, "utf-8")
        unfinished.replace(self._file.with_suffix(".answer"))


def _is_proof(request: Any) -> bool:
    """Whether the request is of a transaction that only makes a coordinator prove itself."""
    return ":proof-" in str(request._transactional_id)


def _has_records(response: Any) -> bool:
    return any(partition[-1] for _topic, partitions in response.topics for partition in partitions)


def install(file: Path) -> None:
    """Let this process be trapped."""
    from aiokafka.conn import AIOKafkaConnection  # noqa: PLC0415 - an interpreter that starts need not have it

    trap = Trap(file, AIOKafkaConnection.send)

    def send(connection: Any, *given: Any, **named: Any) -> Any:
        return trap.send(connection, *given, **named)

    AIOKafkaConnection.send = send
