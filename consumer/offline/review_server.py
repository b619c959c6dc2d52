"""The page of `safe review`: served on 127.0.0.1 alone, to anyone who has the token in its address.

Other hosts and origins are refused, so no other site that is open in the same browser can read it or decide anything.
"""

import asyncio
import logging
import secrets
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from consumer.errors import ConfigurationError
from consumer.offline.decisions import CaseChoice, Choice, OutdatedError
from consumer.offline.pages.html_parts import page, served_policy
from consumer.offline.pages.miss_wording import UNSUPPORTED, unsupported_in_words
from consumer.offline.review import ChangedError, RefusedError, Review
from consumer.offline.review_explaining import explain_waiting
from consumer.offline.review_list import Listing
from consumer.terminal import print_message
from consumer.wire.times import rfc_3339
from safe_core.diagnosis import NARRATIVE_SAYS, OUTPUT_SAYS

HOST: Final = "127.0.0.1"
_MOST_BYTES: Final = 256 * 1024
_LONGEST: Final = 10_000  # characters of a comment or a term
_SHUTDOWN_SECONDS: Final = 1.0
_STYLES, _SCRIPT = ("report.css", "review.css"), "review.js"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_Text = Annotated[str, msgspec.Meta(max_length=_LONGEST)]
_Shape = TypeVar("_Shape")
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _TermSent(msgspec.Struct, forbid_unknown_fields=True):
    """A decision on a term, as the page sends it."""

    item: int
    choice: Choice | Literal["withdrawn"]
    seen: str
    test_id: str
    term: str
    comment: _Text = ""
    replacement: tuple[_Text, ...] = ()


class _CaseSent(msgspec.Struct, forbid_unknown_fields=True):
    """A verdict on a case, as the page sends it."""

    verdict: CaseChoice | Literal["withdrawn"]
    seen: str
    test_id: str
    comment: _Text = ""


class _ApplySent(msgspec.Struct, forbid_unknown_fields=True):
    """What is to be applied: that which the page has shown."""

    seen: str


class _NothingSent(msgspec.Struct, forbid_unknown_fields=True):
    """A request that says nothing more than its address."""


async def serve(review: Review, listing: Listing, *, by: str, port: int) -> None:
    """Serve the page until Ctrl-C, and print the address of its list; raises ConfigurationError without a free port."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with served(review, by=by, port=port, failed=stopped.set) as address:
        print(address + listing.query, flush=True)
        print_message("open this address in a browser; Ctrl-C stops safe review")
        await stopped.wait()


@asynccontextmanager
async def served(
    review: Review, *, by: str, port: int = 0, failed: Callable[[], object] = lambda: None
) -> AsyncIterator[str]:
    """Serve the page, give its address, and explain the cases meanwhile; calls `failed` if they cannot be explained.

    Raises ConfigurationError if the port cannot be had.
    """
    token = secrets.token_urlsafe(24)
    server = _Server(review, by, token)
    runner = web.AppRunner(
        server.application(), access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS, logger=_logger_of_faults()
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, HOST, port).start()
        except OSError as error:
            raise ConfigurationError(f"cannot listen on --port {port} ({error.strerror or error})") from error
        bound = runner.addresses[0][1]
        server.hosts = frozenset((f"{HOST}:{bound}", f"localhost:{bound}"))
        explaining = asyncio.create_task(explain_waiting(review, server.waiting), name="explaining")
        explaining.add_done_callback(lambda _: failed())
        try:
            yield f"http://{HOST}:{bound}/{token}/"
        finally:
            explaining.cancel()
            with suppress(asyncio.CancelledError):
                await explaining
    finally:
        await runner.cleanup()


def _logger_of_faults() -> logging.Logger:
    """Give a logger that says nothing of requests that are no HTTP, which are answered with 400: no fault of ours."""
    logger = logging.getLogger("safe.review")
    logger.addFilter(_is_fault)
    return logger


def _is_fault(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


class _Server:
    """The handlers of the page, and who may call them."""

    def __init__(self, review: Review, by: str, token: str) -> None:
        self._review, self._by, self._token = review, by, token
        self.hosts: frozenset[str] = frozenset()
        self._last = ""
        self.waiting = asyncio.Event()
        self.waiting.set()

    def application(self) -> web.Application:
        """Give the application with its guard."""

        @web.middleware
        async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
            if self._is_foreign(request):
                response: web.StreamResponse = web.Response(
                    status=403,
                    text="This page is for this machine alone. Open the whole address that safe review printed.\n",
                )
            else:
                try:
                    response = await _answered(request, handler)
                except web.HTTPException as error:  # no such page, too large
                    error.headers.update(_HEADERS)
                    raise
            response.headers.update(_HEADERS)
            return response

        application = web.Application(middlewares=[guard], client_max_size=_MOST_BYTES)
        root = "/{token}"
        application.router.add_get(root + "/", self._index)
        application.router.add_get(root + "/case/{number:[0-9]{1,9}}", self._case)
        application.router.add_post(root + "/case/{number:[0-9]{1,9}}/term", self._decide)
        application.router.add_post(root + "/case/{number:[0-9]{1,9}}/verdict", self._decide_case)
        application.router.add_get(root + "/case/{number:[0-9]{1,9}}/undecided", self._undecided)
        application.router.add_get(root + "/undecided", self._undecided)
        application.router.add_get(root + "/explained", self._explained)
        application.router.add_get(root + "/changes", self._changes)
        application.router.add_post(root + "/apply", self._apply)
        application.router.add_post(root + "/undo", self._undo)
        return application

    def _is_foreign(self, request: web.Request) -> bool:
        """Tell whether a request has another host (a name bound to this machine), or comes from another site."""
        if request.headers.get("Host") not in self.hosts:
            return True
        origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
        if origin is not None and origin not in {f"http://{host}" for host in self.hosts}:
            return True
        if site is not None and site not in {"same-origin", "none"}:
            return True
        return not secrets.compare_digest(request.path.split("/")[1].encode(), self._token.encode())

    async def _index(self, request: web.Request) -> web.Response:
        self._review.refresh()
        review, listing = self._review, _listing(request)
        numbers = listing.numbers(review.cases)
        return _page(
            "review_index.html.j2", review=review, listing=listing, numbers=numbers,
            listed=[review.cases[number] for number in numbers], output_says=OUTPUT_SAYS, narrative_says=NARRATIVE_SAYS,
        )  # fmt: skip

    async def _case(self, request: web.Request) -> web.Response:
        self._review.refresh()
        number, listing = self._number(request), _listing(request)
        before, after = listing.around(self._review.cases, number)
        return _page(
            "review_case.html.j2", review=self._review, number=number, listing=listing, before=before, after=after,
            unsupported_heading=UNSUPPORTED, unsupported_in_words=unsupported_in_words,
        )  # fmt: skip

    async def _undecided(self, request: web.Request) -> web.Response:
        """Lead to the next case with a term that nobody has decided on, or say that there is none."""
        self._review.refresh()
        listing, cases = _listing(request), self._review.cases
        is_list = "number" not in request.match_info
        later = listing.numbers(cases) if is_list else listing.around(cases, self._number(request))[1]
        for number in later:
            if not cases[number].is_explained:
                await asyncio.sleep(0)  # so that others are answered meanwhile
            if listing.is_open(cases[number]):
                return web.json_response({"number": number})
        return web.json_response({"number": None})

    async def _explained(self, _request: web.Request) -> web.Response:
        return web.json_response({"explained": self._review.explained, "cases": len(self._review.cases)})

    async def _changes(self, _request: web.Request) -> web.Response:
        self._review.refresh()
        return _page("review_changes.html.j2", review=self._review)

    def _number(self, request: web.Request) -> int:
        number = int(request.match_info["number"])
        if number >= len(self._review.cases):
            raise web.HTTPNotFound(text="There is no such case.\n")
        return number

    async def _decide(self, request: web.Request) -> web.Response:
        number, sent = int(request.match_info["number"]), await _sent(request, _TermSent)
        self._expect(number, sent.test_id, sent.item, sent.term)
        if sent.choice == "withdrawn":
            self._review.withdraw(number, sent.item, seen=sent.seen)
        else:
            self._review.decide(
                number, sent.item, sent.choice, by=self._by, at=self._now(), seen=sent.seen,
                comment=sent.comment.strip(), replacement=sent.replacement,
            )  # fmt: skip
        case = self._review.cases[number]
        item = case.items[sent.item]
        seen, words = "" if item.decision is None else item.decision.at, case.decision_in_words(item)
        return web.json_response({"seen": seen, "words": words, "to_apply": self._review.to_apply})

    async def _decide_case(self, request: web.Request) -> web.Response:
        number, sent = int(request.match_info["number"]), await _sent(request, _CaseSent)
        self._expect(number, sent.test_id)
        if sent.verdict == "withdrawn":
            self._review.withdraw_case(number, seen=sent.seen)
        else:
            self._review.decide_case(
                number, sent.verdict, by=self._by, at=self._now(), seen=sent.seen, comment=sent.comment.strip()
            )
        decision = self._review.cases[number].decision
        seen, words = ("", "") if decision is None else (decision.at, decision.in_words(shows_text=False))
        return web.json_response({"seen": seen, "words": words})

    async def _apply(self, request: web.Request) -> web.Response:
        sent = await _sent(request, _ApplySent)
        self._review.refresh()
        return self._written(self._review.apply(self._now(), sent.seen))

    async def _undo(self, request: web.Request) -> web.Response:
        await _sent(request, _NothingSent)
        return self._written(self._review.undo())

    def _written(self, files: list[str]) -> web.Response:
        self.waiting.set()  # the cases were read again
        return web.json_response({"written": files})

    def _expect(self, number: int, test_id: str, item: int | None = None, term: str | None = None) -> None:
        """Raise RefusedError if the page that was sent from shows other cases, as one from before an `apply` may."""
        cases = self._review.cases
        same = number < len(cases) and cases[number].test_id == test_id
        if same and item is not None:
            items = cases[number].items
            same = 0 <= item < len(items) and items[item].term == term
        if not same:
            raise RefusedError("the test cases have changed since this page was loaded: load it again")

    def _now(self) -> str:
        """The time in milliseconds, later than the last one: two decisions are never of the same time."""
        now = time.time_ns() // 1_000_000
        while (text := rfc_3339(now)) <= self._last:
            now += 1
        self._last = text
        return text


async def _answered(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Give the answer, or what is wrong as JSON."""
    try:
        return await handler(request)
    except OutdatedError:
        return _problem(409, "somebody decided on this meanwhile, perhaps in another tab: load the page again")
    except ChangedError as error:
        return _problem(409, str(error))
    except (RefusedError, ConfigurationError) as error:
        return _problem(400, str(error))


def _problem(status: Literal[400, 409], why: str) -> web.Response:
    return web.json_response({"problem": why}, status=status)


async def _sent(request: web.Request, shape: type[_Shape]) -> _Shape:
    """Read what the page sent; JSON alone, which no form of another site can send."""
    if request.content_type != "application/json":
        raise RefusedError("only JSON is read")
    try:
        return msgspec.json.decode(await request.read(), type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError(f"it cannot be read: {error}") from error


def _listing(request: web.Request) -> Listing:
    return Listing.of_query(request.query.items())


def _page(name: str, **shown: object) -> web.Response:
    text = page(name, None, _STYLES, _SCRIPT, **shown)
    policy = served_policy(_STYLES, _SCRIPT)
    return web.Response(text=text, content_type="text/html", headers={"Content-Security-Policy": policy})
