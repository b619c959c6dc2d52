"""The worker's own pages: /metrics for Prometheus, /livez and /readyz for whatever restarts or uses workers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import ProcessCollector
from prometheus_client.exposition import choose_encoder

from consumer.errors import ConfigurationError
from consumer.settings import split_address
from consumer.telemetry.metrics import Metrics, page

_SHUTDOWN_SECONDS = 1.0
"""A client that does not read its answer must not delay the end of the process."""

Sentences = Callable[[], Sequence[str]]


@asynccontextmanager
async def serve_pages(
    address: str,
    metrics: Metrics,
    *,
    not_live: Sentences,
    not_ready: Sentences,
    remarks: Sentences = tuple,
) -> AsyncIterator[str]:
    """Serve the three pages, and give the address that they are at; troubles say why not, and are empty if all is well.

    `remarks` are what /readyz says is wrong besides, whether or not the worker is ready.

    Raises ConfigurationError if the address cannot be had.
    """

    process = ProcessCollector(registry=None)

    async def show_metrics(request: web.Request) -> web.Response:
        families = [
            *metrics.collect(),
            *metrics.of_group(process.collect()),
        ]  # on the loop, so that nothing moves meanwhile
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        body = await asyncio.to_thread(page, families, encode)
        response = web.Response(body=body, headers={"Content-Type": content_type})
        response.enable_compression()  # as far as the client accepts it
        return response

    app = web.Application()
    app.router.add_get("/metrics", show_metrics)
    app.router.add_get("/livez", _claim("live", not_live))
    app.router.add_get("/readyz", _claim("ready", not_ready, remarks))
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await _listen(runner, address)
        host, port, *_ = runner.addresses[0]
        yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, address: str) -> None:
    try:
        await web.TCPSite(runner, *split_address(address)).start()
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on SAFE_V0_HTTP_ADDRESS={address} ({error.strerror or error}): "
            "choose another address or port; port 0 means any free port"
        ) from error


def _claim(
    claim: str, troubles: Sentences, remarks: Sentences = tuple
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def show(_request: web.Request) -> web.Response:
        found, besides = list(troubles()), list(remarks())
        body = {claim: not found, "troubles": found} | ({"remarks": besides} if besides else {})
        return web.json_response(body, status=503 if found else 200)

    return show
