"""A real browser for the tests of pages: headless Chromium, spoken to over its DevTools protocol."""

import asyncio
import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

INSTALL = "tests/pages/tools.sh installs it"
START_SECONDS = 60.0
ANSWER_SECONDS = 30.0
Json = Any


class BrowserMissingError(Exception):
    """There is no browser on this machine; the message says how to have one."""


def chromium() -> str:
    """Return the path of Chromium; raises BrowserMissingError."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        raise BrowserMissingError(f"there is no chromium: {INSTALL}")
    return found


class Tab:
    """A tab of the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, session: str) -> None:
        self._socket, self._session = socket, session
        self._numbers = itertools.count(1)
        self.asked_for: list[str] = []

    async def call(self, method: str, **parameters: Json) -> Json:
        """Call a method of the protocol, and give its result."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters, "sessionId": self._session})
        async with asyncio.timeout(ANSWER_SECONDS):
            while True:
                said = json.loads((await self._socket.receive()).data)
                if said.get("method") == "Network.requestWillBeSent":
                    self.asked_for.append(said["params"]["request"]["url"])
                if said.get("id") == number and said.get("sessionId") == self._session:
                    assert "error" not in said, said
                    return said["result"]

    async def evaluate(self, expression: str) -> Json:
        """Give the value of an expression of the page."""
        said = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until an expression of the page is true."""
        waiting = (
            "new Promise((done) => { const look = () => { let value = false; "
            f"try {{ value = {expression}; }} catch (error) {{ value = false; }} "
            "if (value) done(true); else setTimeout(look, 20); }; look(); })"
        )
        for _ in range(100):
            with suppress(AssertionError):  # the page may change meanwhile
                assert await self.evaluate(waiting)
                return
        raise AssertionError(f"never so: {expression}")

    async def open(self, address: str) -> None:
        """Open an address, and wait until it is loaded."""
        await self.call("Page.navigate", url=address)
        await self.until(f"location.href === {json.dumps(address)} && document.readyState === 'complete'")

    async def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            text = {"text": key} if len(key) == 1 else {}
            await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def write(self, text: str) -> None:
        """Write a text where the focus is."""
        await self.call("Input.insertText", text=text)

    async def text(self, selector: str) -> str:
        """Give the text of the first element that a selector finds."""
        value: str = await self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent.trim()")
        return value

    async def picture(self) -> bytes:
        """Give a picture of the page."""
        return base64.b64decode((await self.call("Page.captureScreenshot"))["data"])


class Browser:
    """A running browser."""

    def __init__(self, client: aiohttp.ClientSession, address: str) -> None:
        self._client, self._address = client, address

    @asynccontextmanager
    async def tab(self, *, width: int = 1200, dark: bool = False) -> AsyncIterator[Tab]:
        """Open a tab of a width."""
        async with self._client.ws_connect(self._address, max_msg_size=0) as socket:
            opener = Tab(socket, "")
            target = await _root(socket, 1, "Target.createTarget", url="about:blank")
            session = await _root(socket, 2, "Target.attachToTarget", targetId=target["targetId"], flatten=True)
            opener = Tab(socket, session["sessionId"])
            await opener.call("Page.enable")
            await opener.call("Network.enable")
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            await opener.call("Emulation.setDeviceMetricsOverride", **size)
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            await opener.call("Emulation.setEmulatedMedia", features=[scheme])
            yield opener
            await _root(socket, 3, "Target.closeTarget", targetId=target["targetId"])


async def _root(socket: aiohttp.ClientWebSocketResponse, number: int, method: str, **parameters: Json) -> Json:
    await socket.send_json({"id": -number, "method": method, "params": parameters})
    async with asyncio.timeout(ANSWER_SECONDS):
        while True:
            said = json.loads((await socket.receive()).data)
            if said.get("id") == -number:
                assert "error" not in said, said
                return said["result"]


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Browser]:
    """Start a browser with a profile of its own; raises BrowserMissingError."""
    command = [
        *(chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0"),
        *(f"--user-data-dir={folder}", "about:blank"),
    ]
    # What a browser that is killed leaves behind goes with this folder, whose name is short: a socket is made in it.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as left:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ | {"TMPDIR": left}
        )
        try:
            assert process.stderr is not None
            async with asyncio.timeout(START_SECONDS):
                while not (line := (await process.stderr.readline()).decode()).startswith("DevTools listening on "):
                    assert line, "the browser ended while it started"
            reading = asyncio.create_task(process.stderr.read())  # or it would wait for somebody to read
            async with aiohttp.ClientSession() as client:
                yield Browser(client, line.removeprefix("DevTools listening on ").strip())
            reading.cancel()
        finally:
            process.kill()
            await process.wait()
