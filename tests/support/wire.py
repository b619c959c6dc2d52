"""Two questions of the Kafka protocol, asked of one node alone: clients of the library ask whichever they like.

What a node believes matters where nodes disagree: a broker that is cut off from its fellows answers from the past.
"""

import socket
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

ANSWER_SECONDS = 3.0
METADATA, FIND_COORDINATOR = 3, 10


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as a node sees it; `leader` is -1 where it has none."""

    leader: int
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


@dataclass(frozen=True, slots=True)
class View:
    """What one node believes: which brokers are alive, and who leads and follows what."""

    brokers: frozenset[int]
    partitions: Mapping[tuple[str, int], Partition]


class _Answer:
    """Reads the fields of an answer one after another."""

    def __init__(self, octets: bytes) -> None:
        self._octets, self._at = octets, 0

    def number(self, form: str) -> int:
        """Return a number of one of struct's forms: b, h or i."""
        [number] = struct.unpack_from(f">{form}", self._octets, self._at)
        self._at += struct.calcsize(form)
        return int(number)

    def text(self) -> str:
        """Return a text, an absent one as an empty one."""
        length = max(0, self.number("h"))
        self._at += length
        return self._octets[self._at - length : self._at].decode()

    def each(self) -> Iterator[int]:
        """Count through an array, whose elements the caller reads."""
        yield from range(self.number("i"))

    def numbers(self) -> tuple[int, ...]:
        """Return an array of numbers."""
        return tuple(self.number("i") for _ in self.each())


def view_of(address: str) -> View:
    """Return what the node at `host:port` believes of the whole cluster; raises OSError where it does not answer."""
    answer = _asked(address, METADATA, struct.pack(">i", -1))
    brokers = set()
    for _ in answer.each():
        brokers.add(answer.number("i"))
        _host, _port, _rack = answer.text(), answer.number("i"), answer.text()
    answer.number("i")
    partitions = {}
    for _ in answer.each():
        _error, topic, _internal = answer.number("h"), answer.text(), answer.number("b")
        for _ in answer.each():
            _error, index, leader = answer.number("h"), answer.number("i"), answer.number("i")
            partitions[topic, index] = Partition(leader, answer.numbers(), frozenset(answer.numbers()))
    return View(frozenset(brokers), partitions)


def coordinator_by(address: str, group: str) -> int | None:
    """Return the broker that the node at `host:port` takes for a group's coordinator, None while it knows none."""
    name = group.encode()
    answer = _asked(address, FIND_COORDINATOR, struct.pack(">h", len(name)) + name + b"\0")
    _throttled, error, _why = answer.number("i"), answer.number("h"), answer.text()
    return answer.number("i") if error == 0 else None


def _asked(address: str, question: int, body: bytes) -> _Answer:
    """Ask in version 1 of the question, which every broker since 0.10 understands."""
    host, _, port = address.rpartition(":")
    request = struct.pack(">hhih", question, 1, 0, -1) + body
    with socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        [length] = struct.unpack(">i", _exactly(connection, 4))
        answer = _Answer(_exactly(connection, length))
    answer.number("i")
    return answer


def _exactly(connection: socket.socket, count: int) -> bytes:
    octets = b""
    while len(octets) < count:
        more = connection.recv(count - len(octets))
        if not more:
            raise ConnectionError("the node has closed the connection")
        octets += more
    return octets
