"""`safe worker` as a process of its own, seen and handled from outside as an operator would."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.support import trapped, wrong_clock
from tests.support.forked_commands import SafeProcess, run_safe
from tests.support.kafka_broker import PROJECT, free_port
from tests.support.outside import Topics
from tests.support.waiting import wait_until

READY_SECONDS = 60.0
EXIT_SECONDS = 30.0
ANSWER_SECONDS = 5.0
READ_AT_START = ("PYTHON", "SSL_CERT_", "LANG", "LC_")
Series = dict[tuple[tuple[str, str], ...], float]


@dataclass(frozen=True, slots=True)
class Installation:
    """What all workers of one installation are told."""

    bootstrap_servers: str
    topics: Topics
    group: str
    expectations: str
    settings: Mapping[str, str] = field(default_factory=dict)
    checkout: Path = PROJECT
    altered: Mapping[str, float] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Return the variables of a command, none inherited that SAFE would read."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SAFE_V0_")}
        return (
            inherited
            | {
                "PYTHONPATH": os.pathsep.join(str(each) for each in self._paths()),
                "PYTHONUNBUFFERED": "1",
                "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": self.bootstrap_servers,
                "SAFE_V0_KAFKA_GROUP_ID": self.group,
                "SAFE_V0_EXPECTATIONS": self.expectations,
                "SAFE_V0_HTTP_ADDRESS": "127.0.0.1:0",  # a worker listens before it looks for anything else
                "SAFE_V0_LOG_FORMAT": "json",
            }
            | self.topics.environment()
            | dict(self.settings)
        )

    def _paths(self) -> list[Path]:
        """Where an interpreter finds the product and, for a wrong clock or a trap, what makes it so."""
        return [self.checkout, *(each.FOLDER for each in (wrong_clock, trapped) if each.VARIABLE in self.settings)]

    def run(self, *arguments: str, folder: Path, timeout_seconds: float = 120.0) -> "subprocess.CompletedProcess[str]":
        """Run one `safe` command to its end and return what it said."""
        environment = self.environment()
        if self.needs_an_interpreter:
            return subprocess.run(
                command_line(*arguments, checkout=self.checkout),
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=timeout_seconds,
                check=False,
            )
        return run_safe(arguments, folder=folder, environment=environment, timeout_seconds=timeout_seconds)

    @property
    def needs_an_interpreter(self) -> bool:
        """Whether a process of it cannot be forked: of other code, or told what an interpreter reads when it starts."""
        read_at_start = (*READ_AT_START, trapped.VARIABLE)
        return self.checkout != PROJECT or any(name.startswith(read_at_start) for name in self.settings)


def command_line(*arguments: str, checkout: Path = PROJECT) -> list[str]:
    """Return a `safe` command of this interpreter; older checkouts start in another package."""
    package = "safe_scorer" if (checkout / "safe_scorer").is_dir() else "consumer"
    return [sys.executable, "-m", package, *arguments]


class Worker:
    """One `safe worker`; its log goes to a file in `folder`, which is its working directory too."""

    def __init__(self, installation: Installation, folder: Path, *, role: str = "all", name: str = "worker") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.role = role
        self._port = free_port()
        self._log = folder / f"{name}-{self._port}.log"
        environment = installation.environment() | {"SAFE_V0_HTTP_ADDRESS": f"127.0.0.1:{self._port}"}
        self._log.touch()
        arguments = ("worker", "--role", role)
        self._process: subprocess.Popen[bytes] | SafeProcess
        if installation.needs_an_interpreter:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    command_line(*arguments, checkout=installation.checkout),
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
        else:
            self._process = SafeProcess(
                arguments,
                folder=folder,
                environment=environment,
                stdout=self._log,
                stderr=self._log,
                altered=installation.altered,
            )

    @property
    def http_address(self) -> str:
        """Where its pages are, `host:port`."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, None while it runs; minus the signal's number after a signal."""
        return self._process.poll()

    # --- what it says

    def log_text(self) -> str:
        """Return everything that it has written so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def last_words(self, *, lines: int = 40) -> str:
        """Return the end of its log, with what is said over and over said once."""
        said = dict.fromkeys(re.sub(r'"timestamp": "[^"]*", ', "", line) for line in self.log_text().splitlines())
        return "\n".join(line[:600] for line in list(said)[-lines:])

    def log_lines(self) -> list[dict[str, Any]]:
        """Return its log lines decoded; a line that is no JSON object comes as {"raw": text}."""
        return [_decoded(line) for line in self.log_text().splitlines() if line.strip()]

    def get(self, path: str) -> tuple[int, str]:
        """Ask its HTTP server; raises OSError where nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode("utf-8")
        except http.client.HTTPException as error:
            raise ConnectionError(f"{path}: {error!r}") from error
        finally:
            connection.close()

    def is_ready(self) -> bool:
        """Tell whether /readyz says yes; a process that has ended fails the test with its last words."""
        if self.exit_code is not None:
            raise AssertionError(f"{self.name} ended with {self.exit_code}:\n{self.last_words()}")
        with suppress(OSError):
            return self.get("/readyz")[0] == 200
        return False

    def await_ready(self, *, within_seconds: float = READY_SECONDS, every_seconds: float | None = None) -> "Worker":
        """Wait until /readyz says yes."""
        what = f"{self.name} is ready"
        try:
            wait_until(self.is_ready, within_seconds=within_seconds, what=what, every_seconds=every_seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.last_words()}") from None
        return self

    def metrics(self) -> dict[str, Metric]:
        """Return /metrics by family name."""
        return {family.name: family for family in text_string_to_metric_families(self.get("/metrics")[1])}

    def series(self, name: str) -> Series:
        """Return the samples of one name by their sorted labels, without the group, which each of them has."""
        # Of pages that are asked for again and again only these lines are parsed.
        lines = [line for line in self.get("/metrics")[1].split("\n") if line.startswith(name)]
        return {
            tuple(sorted((label, value) for label, value in sample.labels.items() if label != "group")): sample.value
            for family in text_string_to_metric_families("\n".join([*lines, ""]))
            for sample in family.samples
            if sample.name == name
        }

    def total(self, name: str, /, **labels: str) -> float:
        """Add up the samples of one name that carry these labels."""
        wanted = set(labels.items())
        return sum(value for series, value in self.series(name).items() if wanted <= set(series))

    def shown_batches(self) -> set[tuple[str, str]]:
        """Return the concern and batch of every batch that it exports."""
        return {
            (dict(labels)["concern_id"], dict(labels)["batch_id"]) for labels in self.series("safe_batch_pass_ratio")
        }

    def shown_batches_or_none(self) -> set[tuple[str, str]]:
        """Return the same, nothing where nobody answers: a process that is just starting or ending shows nothing."""
        with suppress(OSError):
            return self.shown_batches()
        return set()

    def memory_bytes(self, *, peak: bool = False) -> int:
        """Return its resident set, now or at its greatest."""
        name = "VmHWM:" if peak else "VmRSS:"
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        [line] = [line for line in status.splitlines() if line.startswith(name)]
        return int(line.split()[1]) * 1024

    def cpu_seconds(self) -> float:
        """Return the processor time that it has used, user and system."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    # --- what is done to it

    def terminate(self) -> None:
        """Ask it to stop in order."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it without notice, and wait until it is gone."""
        self._signal(signal.SIGKILL)
        self.wait()

    def freeze(self) -> None:
        """Suspend it: it holds its connections and does nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen one go on."""
        self._signal(signal.SIGCONT)

    def wait(self, *, within_seconds: float = EXIT_SECONDS) -> int:
        """Wait for its end and return the exit code."""
        try:
            return self._process.wait(timeout=within_seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end:\n{self.last_words()}") from None

    def stop(self, *, within_seconds: float = EXIT_SECONDS) -> int:
        """Ask it to stop, wait, and return the exit code."""
        self.terminate()
        return self.wait(within_seconds=within_seconds)

    def discard(self) -> None:
        """End it at once if it still runs: nothing of it outlives its test."""
        if self.exit_code is None:
            self._process.kill()  # a frozen process dies of this too
            self._process.wait(timeout=EXIT_SECONDS)

    def _signal(self, number: signal.Signals) -> None:
        if self.exit_code is not None:
            raise AssertionError(f"{self.name} has ended already ({self.exit_code}):\n{self.last_words()}")
        self._process.send_signal(number)


@contextmanager
def running(installation: Installation, folder: Path, *, role: str = "all", name: str = "worker") -> Iterator[Worker]:
    """Start a worker, await its readiness, and leave nothing of it behind."""
    worker = Worker(installation, folder, role=role, name=name)
    try:
        yield worker.await_ready()
    finally:
        worker.discard()


def exported_twice(workers: Sequence[Worker]) -> list[str]:
    """Name every batch that two of these processes show at once.

    Asking takes time, and a batch may move meanwhile: two show it at once only if one does before and after the other.
    """
    before, after = ([worker.shown_batches_or_none() for worker in workers] for _ in range(2))
    return [
        f"{batch} is shown by {first.name} and {second.name}"
        for (at, first), (later, second) in combinations(enumerate(workers), 2)
        for batch in before[at] & before[later] & after[at]
    ]


def why_it_ended(said: str) -> str:
    """Return the sentence on the last line of what a command said: a worker's log has it as JSON."""
    last = (said.splitlines() or [""])[-1]
    line = _decoded(last)
    sentence = str(line["why"]) if line.get("event") == "the worker ends" else last.removeprefix("safe: error: ")
    assert sentence != last, f"it ends without a sentence: {said}"
    return sentence


def _decoded(line: str) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except ValueError:
        return {"raw": line}
    return document if isinstance(document, dict) else {"raw": line}
