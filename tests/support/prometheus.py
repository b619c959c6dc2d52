"""Prometheus, Alertmanager and a webhook for the tests, and the tools that check their files."""

import json
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from typing_extensions import override

from tests.support.kafka_broker import PROJECT, free_port
from tests.support.waiting import wait_until

CONFIG = PROJECT / "config"
INSTALL = "tests/monitoring/tools.sh installs it"
TOOL_SECONDS = 600.0
"""A tool that has not ended by then hangs: the mutants of all rules take promtool half a minute alone."""
START_SECONDS = 30.0
STOP_SECONDS = 10.0
ANSWER_SECONDS = 5.0
Json = Any

# What each is called: on PATH, Debian's name of it, or where tools.sh puts it.
NAMES: Mapping[str, Sequence[str]] = {
    "promtool": ("promtool",),
    "prometheus": ("prometheus",),
    "alertmanager": ("alertmanager", "prometheus-alertmanager"),
    "amtool": ("amtool",),
    "compose-go": (str(PROJECT / ".cache" / "compose-go" / "cmd"),),
}


class ToolMissingError(Exception):
    """A tool of the field is not on this machine; the message says how to have it."""


def tool(name: str) -> str:
    """Return the path of a tool; raises ToolMissingError."""
    found = next((path for each in NAMES[name] if (path := shutil.which(each)) is not None), None)
    if found is None:
        raise ToolMissingError(f"there is no {name}: {INSTALL}")
    return found


def run(name: str, *arguments: str | Path, given: str = "") -> "subprocess.CompletedProcess[str]":
    """Run a tool to its end and return what it said; `given` is its standard input."""
    return subprocess.run(
        [tool(name), *map(str, arguments)],
        cwd=PROJECT,
        input=given,
        capture_output=True,
        text=True,
        timeout=TOOL_SECONDS,
        check=False,
    )


def failing(files: Sequence[Path]) -> set[Path]:
    """Of files of tests of rules, those in which something fails; promtool is started once, which saves much time."""
    said = subprocess.run(
        [tool("promtool"), "test", "rules", *map(str, files)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # what fails is written there, under the name of its file here
        text=True,
        timeout=TOOL_SECONDS,
        check=False,
    )
    of_file = re.split(r"^Unit Testing:  (.*)$", said.stdout, flags=re.MULTILINE)
    found = dict(zip(map(Path, of_file[1::2]), of_file[2::2], strict=True))
    assert found.keys() == set(files)
    assert all(("FAILED" in words) != ("SUCCESS" in words) for words in found.values())
    return {file for file, words in found.items() if "FAILED" in words}


def asked(url: str) -> bytes:
    """Return the body of a page; raises OSError where nobody answers, or with an error."""
    with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as response:  # noqa: S310 # always http, on loopback
        body: bytes = response.read()
        return body


class _Server:
    """A program that answers over HTTP on loopback; its log goes to a file."""

    ready_path = "/-/ready"

    def __init__(self, program: str, folder: Path, arguments: Sequence[str], port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / f"{program}.log"
        # Debian's packages have defaults for their services, which are not meant here.
        environment = {name: value for name, value in os.environ.items() if name != "ARGS"}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [tool(program), *arguments], cwd=folder, env=environment, stdout=log, stderr=log
            )

    def await_ready(self) -> None:
        """Wait until it says that it is ready."""
        wait_until(self._is_ready, within_seconds=START_SECONDS, what=f"{self._log.stem} is ready")

    def _is_ready(self) -> bool:
        if self._process.poll() is not None:
            raise AssertionError(f"{self._log.stem} ended: {self._log.read_text(encoding='utf-8')[-2000:]}")
        try:
            asked(self.url + self.ready_path)
        except OSError:
            return False
        return True

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=STOP_SECONDS)


class Prometheus(_Server):
    """A Prometheus of the test's own, over a configuration file."""

    def __init__(self, folder: Path, configuration: Path) -> None:
        port = free_port()
        arguments = [
            f"--config.file={configuration}",
            f"--storage.tsdb.path={folder / 'prometheus-data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        super().__init__("prometheus", folder, arguments, port)

    def get(self, path: str, **parameters: str) -> Json:
        """Ask the API; an error in the question fails the test with its words."""
        query = urllib.parse.urlencode(parameters)
        try:
            answer = json.loads(asked(f"{self.url}/api/v1/{path}?{query}"))
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from error
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression: str) -> list[Json]:
        """Return the samples of an instant query."""
        result: list[Json] = self.get("query", query=expression)["result"]
        return result

    def await_answer(self, expression: str, *, within_seconds: float) -> list[Json]:
        """Ask until there is a sample: one that is missing now may come with the next scrape."""
        return wait_until(
            lambda: self.query(expression) or None, within_seconds=within_seconds, what=expression, every_seconds=0.2
        )


class Alertmanager(_Server):
    """An Alertmanager of the test's own, over a configuration file."""

    def __init__(self, folder: Path, configuration: Path) -> None:
        port = free_port()
        arguments = [
            f"--config.file={configuration}",
            f"--storage.path={folder / 'alertmanager-data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ]
        super().__init__("alertmanager", folder, arguments, port)


@dataclass(frozen=True, slots=True)
class Notice:
    """One alert of a notification, as a receiver gets it; `at` is monotonic."""

    status: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    receiver: str
    at: float


@dataclass(slots=True)
class Webhook:
    """Takes notifications down, in order of arrival."""

    url: str
    notices: list[Notice] = field(default_factory=list)

    def await_notice(self, status: str, *, within_seconds: float, **labels: str) -> Notice:
        """Wait for the first notice of that status and labels."""
        wanted = labels.items()

        def found() -> Notice | None:
            return next(
                (each for each in self.notices if each.status == status and wanted <= each.labels.items()), None
            )

        return wait_until(found, within_seconds=within_seconds, what=f"{status} {labels}; so far: {self.notices}")


@contextmanager
def webhook() -> Iterator[Webhook]:
    """Listen on loopback for as long as the block lasts."""
    taken: list[Notice] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            now = time.monotonic()
            taken.extend(
                Notice(each["status"], each["labels"], each["annotations"], body["receiver"], now)
                for each in body["alerts"]
            )
            self.send_response(200)
            self.end_headers()

        @override
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="webhook")
    thread.start()
    try:
        yield Webhook(f"http://127.0.0.1:{server.server_port}/", taken)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def serving(server: Prometheus | Alertmanager) -> Iterator[None]:
    """Await its readiness, and leave nothing of it behind."""
    try:
        server.await_ready()
        yield
    finally:
        server.stop()
