"""The worker's own pages: /metrics for Prometheus, /livez and /readyz for what restarts workers or routes to them."""

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from consumer.errors import ConfigurationError
from consumer.settings import split_address
from consumer.telemetry.metrics import Metrics, page

_SHUTDOWN_SECONDS = 1.0
"""A client that does not read its answer must not hold up the end of the process."""

Troubles = Callable[[], Sequence[str]]


class Pages:
    """Serves the three pages from start to stop; `troubles` say why not, and are empty while all is well."""

    def __init__(self, address: str, metrics: Metrics, *, not_live: Troubles, not_ready: Troubles) -> None:
        self._address = address
        self._metrics = metrics
        self._not_live = not_live
        self._not_ready = not_ready
        app = web.Application()
        app.add_routes(
            [
                web.get("/metrics", self._show_metrics),
                web.get("/livez", self._show_liveness),
                web.get("/readyz", self._show_readiness),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_SHUTDOWN_SECONDS)
        self.address = address

    async def __aenter__(self) -> "Pages":
        """Listen; raises ConfigurationError if the address cannot be had."""
        host, port = split_address(self._address)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise ConfigurationError(
                f"SAFE_V0_HTTP_ADDRESS={self._address} cannot be listened on ({error.strerror or error}): "
                "choose another port, or 0 for any free one"
            ) from error
        bound = self._runner.addresses[0]
        self.address = f"[{bound[0]}]:{bound[1]}" if ":" in bound[0] else f"{bound[0]}:{bound[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _show_metrics(self, _request: web.Request) -> web.Response:
        families = list(self._metrics.collect())  # on the loop, so that nothing moves meanwhile
        body = await asyncio.to_thread(page, families)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _show_liveness(self, _request: web.Request) -> web.Response:
        return _verdict("live", self._not_live())

    async def _show_readiness(self, _request: web.Request) -> web.Response:
        return _verdict("ready", self._not_ready())


def _verdict(claim: str, troubles: Sequence[str]) -> web.Response:
    status = 503 if troubles else 200
    return web.json_response({claim: not troubles, "troubles": list(troubles)}, status=status)
