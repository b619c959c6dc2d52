"""The worker's pages: what each says and with which status."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics_families
from prometheus_client.parser import text_string_to_metric_families

from consumer.errors import ConfigurationError
from consumer.telemetry.metrics import Metrics
from consumer.worker.http_server import serve_pages

ANY_PORT = "127.0.0.1:0"


class Health:
    """Troubles that a test brings about."""

    def __init__(self) -> None:
        self.not_live: list[str] = []
        self.not_ready: list[str] = []
        self.remarks: list[str] = []


@asynccontextmanager
async def served(health: Health, address: str = ANY_PORT) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    metrics = Metrics("0.1.0", "sha256:0")
    pages = serve_pages(
        address,
        metrics,
        not_live=lambda: health.not_live,
        not_ready=lambda: health.not_ready,
        remarks=lambda: health.remarks,
    )
    async with pages as bound, aiohttp.ClientSession(f"http://{bound}") as client:
        yield bound, client


async def test_metrics_are_served_as_prometheus_reads_them() -> None:
    async with served(Health()) as (_, client), client.get("/metrics") as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        names = {family.name for family in text_string_to_metric_families(await answer.text())}
    assert {"safe_records", "safe_build_info", "safe_end_to_end_seconds"} <= names


async def test_metrics_are_served_as_open_metrics_to_who_asks_for_it() -> None:
    accept = {"Accept": "application/openmetrics-text;version=1.0.0"}
    async with served(Health()) as (_, client), client.get("/metrics", headers=accept) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        names = {family.name for family in open_metrics_families(await answer.text())}  # type: ignore[no-untyped-call]
    assert {"safe_records", "safe_build_info", "safe_end_to_end_seconds"} <= names


@pytest.mark.parametrize("accepted", ["gzip", "identity"])
async def test_metrics_are_compressed_for_who_accepts_it(accepted: str) -> None:
    headers = {"Accept-Encoding": accepted}
    async with served(Health()) as (_, client), client.get("/metrics", headers=headers) as answer:
        assert answer.headers.get("Content-Encoding") == (accepted if accepted == "gzip" else None)
        assert "safe_build_info" in await answer.text()


async def test_the_process_is_measured_too() -> None:
    async with served(Health()) as (_, client), client.get("/metrics") as answer:
        families = {family.name: family for family in text_string_to_metric_families(await answer.text())}
    assert families["process_cpu_seconds"].samples[0].value > 0
    assert families["process_resident_memory_bytes"].samples[0].value > 1_000_000
    assert families["process_open_fds"].samples[0].value > 0


@pytest.mark.parametrize(("page", "claim"), [("/livez", "live"), ("/readyz", "ready")])
async def test_a_page_answers_200_while_all_is_well_and_503_with_the_troubles(page: str, claim: str) -> None:
    health = Health()
    async with served(health) as (_, client):
        async with client.get(page) as answer:
            assert (answer.status, await answer.json()) == (200, {claim: True, "troubles": []})
        setattr(health, f"not_{claim}", ["the cluster has not answered for 7 s"])
        async with client.get(page) as answer:
            assert answer.status == 503
            assert await answer.json() == {claim: False, "troubles": ["the cluster has not answered for 7 s"]}
        health.not_live, health.not_ready = [], []
        async with client.get(page) as answer:
            assert answer.status == 200


async def test_what_is_wrong_besides_does_not_make_it_unready() -> None:
    health = Health()
    health.remarks = ["the clock of this machine is wrong"]
    async with served(health) as (_, client), client.get("/readyz") as answer:
        assert answer.status == 200
        assert await answer.json() == {"ready": True, "troubles": [], "remarks": ["the clock of this machine is wrong"]}


async def test_troubles_of_readiness_do_not_make_it_dead() -> None:
    health = Health()
    health.not_ready = ["draining"]
    async with served(health) as (_, client), client.get("/livez") as answer:
        assert answer.status == 200


@pytest.mark.parametrize("page", ["/", "/metrics/..", "/livez/x", "/favicon.ico"])
async def test_there_is_no_other_page(page: str) -> None:
    async with served(Health()) as (_, client), client.get(page) as answer:
        assert answer.status == 404


async def test_an_address_in_use_names_itself_and_the_remedy() -> None:
    async with served(Health()) as (bound, _):
        with pytest.raises(ConfigurationError, match=rf"SAFE_V0_HTTP_ADDRESS={bound} .*another address or port"):
            async with served(Health(), bound):
                pass


async def test_an_address_of_ipv6_is_shown_in_brackets() -> None:
    try:
        async with served(Health(), "[::1]:0") as (bound, _):
            assert bound.startswith("[::1]:")
    except ConfigurationError as error:
        pytest.skip(f"no IPv6 here: {error}")
