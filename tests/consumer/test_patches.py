"""Every command that speaks to Kafka does so with a client that is bounded and takes any header name."""

import json
from pathlib import Path

import pytest
from aiokafka import client as client_module
from aiokafka import conn as conn_module
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import OAuthAuthenticator
from aiokafka.consumer import fetcher as fetcher_module
from aiokafka.consumer.fetcher import FetchResult, PartitionRecords
from aiokafka.record import default_records
from aiokafka.record.memory_records import MemoryRecords

from consumer.cli.main import main
from consumer.demo import run as demo
from consumer.errors import Fatal
from consumer.exit_codes import EXIT_ERROR
from consumer.kafka import aiokafka_internals
from consumer.kafka.connection import Connection
from consumer.kafka.decompression import CODECS, Decompression
from consumer.kafka.patches import install_patches
from consumer.settings import Settings
from tests.support.case_files import a_case, write_batch

LIMIT = 2_345_678


@pytest.fixture(autouse=True)
def unpatched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The client as it comes, whatever other tests have put in its place; and settings that name a broker."""
    monkeypatch.setattr(fetcher_module, "MemoryRecords", MemoryRecords)
    monkeypatch.setattr(fetcher_module, "PartitionRecords", PartitionRecords)
    monkeypatch.setattr(FetchResult, "getall", None)
    monkeypatch.setattr(AIOKafkaClient, "_get_conn", aiokafka_internals._connect)
    monkeypatch.setattr(AIOKafkaClient, "bootstrap", aiokafka_internals._bootstrap)
    monkeypatch.setattr(client_module, "create_conn", aiokafka_internals._create_connection)
    monkeypatch.setattr(conn_module, "OAuthAuthenticator", OAuthAuthenticator)
    for module in aiokafka_internals.DECODING_MODULES:
        for name in (f"{codec}_decode" for codec in CODECS):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cases").mkdir()
    write_batch(tmp_path / "cases", "golden", a_case("A-1"))
    event = {"test_id": "A-1", "batch_id": "golden", "output": None}
    (tmp_path / "events.jsonl").write_text(json.dumps(event), encoding="utf-8")
    monkeypatch.setenv("SAFE_V0_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setenv("SAFE_V0_MAX_BATCH_BYTES", str(LIMIT))
    monkeypatch.setenv("SAFE_V0_EXPECTATIONS", "cases")


def limit_in_force() -> int | None:
    """How much a batch may hold, decompressed; None unless all that must be changed in the client has been."""
    patched = (
        fetcher_module.MemoryRecords is aiokafka_internals._Batches
        and fetcher_module.PartitionRecords is aiokafka_internals._Fetch
        and AIOKafkaClient._get_conn is not aiokafka_internals._connect
        and AIOKafkaClient.bootstrap is not aiokafka_internals._bootstrap
        and client_module.create_conn is not aiokafka_internals._create_connection
        and conn_module.OAuthAuthenticator is aiokafka_internals._OAuth
    )
    decode = default_records.zstd_decode
    if not patched or FetchResult.getall is None or decode is None:
        return None
    decompression = decode.func.__self__
    assert isinstance(decompression, Decompression)
    return decompression.limit_bytes


@pytest.mark.parametrize(
    "arguments",
    [
        ("worker",),
        ("topics", "create"),
        ("publish", "events.jsonl"),
        ("publish-cases", "cases", "--topic", "cases"),
        ("explain", "--source", "input/0/0", "--test-dir", "cases"),
        ("dead-letters", "list"),
        ("dead-letters", "show", "0/0"),
        ("dead-letters", "replay", "--all", "--yes"),
    ],
    ids=" ".join,
)
def test_a_command_installs_the_patches_before_it_makes_a_client(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    limits: list[int | None] = []

    def client(_self: Connection, **_more: object) -> dict[str, object]:
        limits.append(limit_in_force())
        raise Fatal("the test ends here")

    monkeypatch.setattr(Connection, "client", client)
    assert main(arguments) == EXIT_ERROR
    assert limits[0] == LIMIT


def test_the_demo_installs_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int | None] = []

    async def run(_self: object) -> None:
        limits.append(limit_in_force())

    monkeypatch.setattr(demo, "broker_binary", lambda: "broker")
    monkeypatch.setattr(demo._Demo, "run", run)
    assert main(["demo"]) == 0
    assert limits == [Settings().max_batch_bytes]


def test_to_configure_a_connection_changes_nothing_in_the_client() -> None:
    Connection.from_settings(Settings(kafka_bootstrap_servers="127.0.0.1:1"))
    assert limit_in_force() is None


def test_they_may_be_installed_twice() -> None:
    for limit in (LIMIT, 2 * LIMIT):
        install_patches(Settings(max_batch_bytes=limit))
        assert limit_in_force() == limit
