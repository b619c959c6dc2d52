"""Whose the topics are: what becomes of the looks at the other partitions when one of them fails."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from consumer import ownership
from consumer.decode import Record
from consumer.errors import SafeError, Transient
from consumer.kafka import Connection
from consumer.ownership import check_ownership
from consumer.settings import Settings, load

PARTITIONS: Mapping[Any, int] = {"scored": 8, "state": 8}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load({}, {"SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}, tmp_path).settings


async def test_where_one_partition_cannot_be_read_the_others_are_left_alone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading: set[int] = set()

    async def read_tail(_connection: Connection, topic: str, partition: int) -> Sequence[Record]:
        reading.add(partition)
        try:
            if len(reading) == PARTITIONS["state"]:
                raise Transient(f"no answer about {topic}/{partition}")
            await asyncio.get_running_loop().create_future()
        finally:
            reading.remove(partition)
        return ()

    monkeypatch.setattr(ownership, "read_tail", read_tail)
    with pytest.raises(SafeError, match=r"^no answer about safe\.") as raised:
        await check_ownership(Connection("127.0.0.1:1", {}), settings, PARTITIONS)
    assert type(raised.value) is Transient
    assert not reading
