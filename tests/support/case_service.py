"""A service of test cases over a folder of batch files, and everything that such a service may do wrong.

It speaks just enough HTTP/1.1 on a bare socket, in a thread of its own, so that every byte is its own decision.
"""

import asyncio
import hashlib
import json
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar, get_args
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.oracle import named, scenario_archetype, terms_of

Json = Any
T = TypeVar("T")
Mode = Literal[
    "normal",
    "off",  # nobody listens
    "slow",
    "hang",
    "500",
    "429",
    "rubbish",  # a login page
    "huge",
    "redirect",
    "other_test_id",
    "half_body",
    "flapping",
]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)

SLOW_SECONDS = 2.0
FLAP_SECONDS = 0.5
HUGE_BYTES = 1024**3
PATH = "/kept/path"
_BLOCK = b"x" * 65_536
_LOGIN_PAGE = (
    b"<!doctype html><html><head><title>Sign in</title></head><body><form>Please sign in.</form></body></html>"
)
_PATIENCE_SECONDS = 10.0


# --- what it knows ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kept:
    """A test case as it is answered."""

    body: bytes
    etag: str


class Shelf:
    """All test cases of a folder by (batch_id, test_id), and by test_id: all of them where their holders differ."""

    def __init__(self, folder: Path) -> None:
        self._own: dict[tuple[str, str], Kept] = {}
        self._any: dict[str, Kept] = {}
        held: dict[str, list[Json]] = {}
        for file in sorted(folder.glob("*.json")):
            for case in _cases(json.loads(file.read_bytes())):
                self._own.setdefault((file.stem, case["test_id"]), _kept(case))
                held.setdefault(case["test_id"], []).append(case)
        for test_id, cases in held.items():
            differ = any(_terms(case) != _terms(cases[0]) for case in cases)
            self._any[test_id] = _kept({"test_cases": cases} if differ else cases[0])

    def find(self, batch_id: str, test_id: str) -> Kept | None:
        """Return what is answered; None where the answer is 404."""
        return self._own.get((batch_id, test_id)) or self._any.get(test_id)


def _cases(document: Json) -> list[Json]:
    """Return the test cases of a batch file, each with the archetype of its scenario where it has none."""
    plan = document.get("batch_plan") or document.get("batch_strategy") or {}
    scenarios = plan.get("scenarios") or []
    cases = []
    for position, entry in enumerate(document["test_cases"]):
        scenario = scenarios[position] if position < len(scenarios) else None
        archetype = named(entry.get("archetype")) or scenario_archetype(scenario)
        cases.append(entry if archetype is None else {**entry, "archetype": archetype})
    return cases


def _terms(case: Json) -> Json:
    expectations = case.get("expectations")
    if not isinstance(expectations, dict):
        return None
    places = (
        ("signal_generation", "must_find_signals"),
        ("followup_questions", "forbidden_terms"),
        ("event_summary", "must_contain_phrases"),
    )
    return [terms_of(expectations, *place) for place in places]


def _kept(case: Json) -> Kept:
    body = json.dumps(case, ensure_ascii=False).encode()
    return Kept(body, f'"{hashlib.sha256(body).hexdigest()[:16]}"')


# --- how it speaks ----------------------------------------------------------------------------------------------------

_PHRASES = {200: "OK", 302: "Found", 304: "Not Modified", 401: "Unauthorized", 404: "Not Found", 429: "Too Many"}


def response(status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """Write a whole response."""
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Status')}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: the target as it came over the wire, and its headers by lower-case name."""

    target: str
    headers: Mapping[str, str]

    @classmethod
    def read(cls, head: bytes) -> "Asked":
        """Take the head of a request apart."""
        first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        return cls(first.split(" ")[1], {name.lower(): value.strip() for name, _, value in pairs})

    @property
    def key(self) -> tuple[str, str] | None:
        """The (batch_id, test_id) asked for; None for another path."""
        parts = urlsplit(self.target)
        *before, test_id = parts.path.split("/")
        if "/".join(before) != f"{PATH}/test-cases":
            return None
        return parse_qs(parts.query, keep_blank_values=True).get("batch_id", [""])[0], unquote(test_id)


# --- what it does -----------------------------------------------------------------------------------------------------


class CaseService:
    """Serves a folder at `url` from start to stop, and behaves as it is told to.

    `requests` counts what was asked, `answered` by status, `sent_bytes` what went out; `strayed` counts what came to
    the place that redirects lead to.
    """

    def __init__(self, folder: Path, *, token: str | None = None, with_etags: bool = True) -> None:
        self.requests = 0
        self.answered: Counter[int] = Counter()
        self.targets: deque[str] = deque(maxlen=10_000)
        self.strayed = 0
        self.sent_bytes = 0
        self.most_at_once = 0
        self._folder = folder
        self._token = token
        self._with_etags = with_etags
        self._shelf = Shelf(folder)
        self._mode: Mode = "normal"
        self._at_once = 0
        self._port = 0
        self._other_port = 0
        self._listener: asyncio.Server | None = None
        self._other: asyncio.Server | None = None
        self._conversations: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="case service", daemon=True)

    @property
    def url(self) -> str:
        """The base URL for SAFE_V0_EXPECTATIONS."""
        return f"http://127.0.0.1:{self._port}{PATH}"

    def start(self) -> Self:
        """Listen on a free port, which stays its own."""
        self._thread.start()
        self._call(self._start())
        return self

    def stop(self) -> None:
        """End every conversation and the thread; may be called twice."""
        if self._loop.is_closed():
            return
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE_SECONDS)
        self._loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def behave_as(self, mode: Mode) -> None:
        """From the next request on; "off" also cuts what is under way."""
        self._call(self._become(mode))

    def read_again(self) -> None:
        """Serve what the folder holds now."""
        self._shelf = Shelf(self._folder)

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE_SECONDS)

    async def _start(self) -> None:
        await self._listen()
        self._other = await asyncio.start_server(self._note_strayed, "127.0.0.1", 0)
        self._other_port = self._other.sockets[0].getsockname()[1]

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._converse, "127.0.0.1", self._port, backlog=256)
        self._port = self._listener.sockets[0].getsockname()[1]

    async def _become(self, mode: Mode) -> None:
        self._mode = mode
        if mode == "off":
            await self._fall_silent()
        elif self._listener is None:
            await self._listen()

    async def _fall_silent(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        conversations = set(self._conversations)
        for conversation in conversations:
            conversation.cancel()
        if conversations:
            await asyncio.wait(conversations)

    async def _stop(self) -> None:
        await self._fall_silent()
        if self._other is not None:
            self._other.close()
        # What was accepted last must begin before it can be ended; left out, its connection would stay open.
        while asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.sleep(0)
            await self._fall_silent()

    async def _note_strayed(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.strayed += 1
        writer.close()
        await writer.wait_closed()

    # --- one connection

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = asyncio.current_task()
        assert conversation is not None
        self._conversations.add(conversation)
        try:
            while not writer.is_closing():
                asked = Asked.read(await reader.readuntil(b"\r\n\r\n"))
                await self._counted(asked, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.transport.abort()  # a cancelled conversation ends here: the streams would report it as an error
        finally:
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self._conversations.discard(conversation)

    async def _counted(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        self.requests += 1
        self.targets.append(asked.target)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await _BEHAVIOURS[self._mode](self, asked, writer)
        finally:
            self._at_once -= 1

    async def _send(
        self, writer: asyncio.StreamWriter, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        self.answered[status] += 1
        await self._write(writer, response(status, body, headers))

    async def _write(self, writer: asyncio.StreamWriter, raw: bytes) -> None:
        writer.write(raw)
        await writer.drain()
        self.sent_bytes += len(raw)

    # --- behaviours

    async def _normally(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if self._token is not None and asked.headers.get("authorization") != f"Bearer {self._token}":
            await self._send(writer, 401)
            return
        kept = None if asked.key is None else self._shelf.find(*asked.key)
        if kept is None:
            await self._send(writer, 404, b'{"error": "no such test case"}', {"Content-Type": "application/json"})
            return
        headers = {"ETag": kept.etag} if self._with_etags else {}
        if self._with_etags and asked.headers.get("if-none-match") == kept.etag:
            await self._send(writer, 304, headers=headers)
        else:
            await self._send(writer, 200, kept.body, {"Content-Type": "application/json", **headers})

    async def _slowly(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(SLOW_SECONDS)
        await self._normally(asked, writer)

    async def _never(self, _asked: Asked, _writer: asyncio.StreamWriter) -> None:
        await asyncio.get_running_loop().create_future()

    async def _with_500(self, _asked: Asked, writer: asyncio.StreamWriter) -> None:
        await self._send(writer, 500, b"Internal Server Error")

    async def _with_429(self, _asked: Asked, writer: asyncio.StreamWriter) -> None:
        await self._send(writer, 429, b"", {"Retry-After": "1"})

    async def _with_a_login_page(self, _asked: Asked, writer: asyncio.StreamWriter) -> None:
        await self._send(writer, 200, _LOGIN_PAGE, {"Content-Type": "text/html"})

    async def _without_end(self, _asked: Asked, writer: asyncio.StreamWriter) -> None:
        self.answered[200] += 1
        await self._write(
            writer, b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for _ in range(HUGE_BYTES // len(_BLOCK)):
            await self._write(writer, b"%x\r\n%b\r\n" % (len(_BLOCK), _BLOCK))
        await self._write(writer, b"0\r\n\r\n")

    async def _with_a_redirect(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        await self._send(writer, 302, b"", {"Location": f"http://127.0.0.1:{self._other_port}{asked.target}"})

    async def _with_another_case(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        kept = None if asked.key is None else self._shelf.find(*asked.key)
        case = {} if kept is None else json.loads(kept.body)
        await self._send(writer, 200, json.dumps({**case, "test_id": "another"}).encode())

    async def _by_half(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        kept = None if asked.key is None else self._shelf.find(*asked.key)
        self.answered[200] += 1
        whole = response(200, kept.body if kept is not None else _LOGIN_PAGE, {"Content-Type": "application/json"})
        await self._write(writer, whole[: -len(whole) // 4])
        writer.close()

    async def _now_and_then(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        well = int(asyncio.get_running_loop().time() / FLAP_SECONDS) % 2 == 0
        await (self._normally if well else self._with_500)(asked, writer)


_BEHAVIOURS: Final[Mapping[Mode, Callable[[CaseService, Asked, asyncio.StreamWriter], Awaitable[None]]]] = {
    "normal": CaseService._normally,
    "off": CaseService._normally,  # what had been accepted already
    "slow": CaseService._slowly,
    "hang": CaseService._never,
    "500": CaseService._with_500,
    "429": CaseService._with_429,
    "rubbish": CaseService._with_a_login_page,
    "huge": CaseService._without_end,
    "redirect": CaseService._with_a_redirect,
    "other_test_id": CaseService._with_another_case,
    "half_body": CaseService._by_half,
    "flapping": CaseService._now_and_then,
}
