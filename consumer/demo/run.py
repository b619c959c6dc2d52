"""`safe demo`, read top-down: start broker and worker, publish the samples, show what comes out, end everything."""

import asyncio
import logging
import shutil
import signal
import tempfile
import time
from pathlib import Path

from rich.text import Text

from consumer.demo.processes import Child, broker_binary, free_ports, is_ready, start_broker, start_worker
from consumer.demo.samples import Samples
from consumer.demo.scorecard import DemoCard
from consumer.errors import Fatal, SafeError
from consumer.exit_codes import EXIT_OK, EXIT_SIGNALLED
from consumer.kafka.connection import Connection
from consumer.kafka.patches import install_patches
from consumer.kafka.publisher import publishing_events
from consumer.kafka.reader import following
from consumer.kafka.topics import create_topics
from consumer.results.screen import Screen, closing, print_line, showing
from consumer.settings import Settings
from consumer.terminal import message_console, result_console

_TIMEOUT_SECONDS = 60.0
_SECONDS_BETWEEN_EVENTS = 0.22
_LOOK_SECONDS = 0.1
_LAST_LOOK_SECONDS = 0.7
_LAST_LOG_LINES = 8
_PARTITIONS = 2
_SESSION_SECONDS = 4
"""The embedded broker waits half a session timeout for members before it assigns partitions."""

NEXT_STEPS = (
    "safe topics create --bootstrap-servers broker:9092",
    "safe worker --bootstrap-servers broker:9092 --expectations ./cases",
    "safe publish report.json --bootstrap-servers broker:9092 --test-dir ./cases",
)


def run_demo(*, keep: bool, port: int | None = None) -> int:
    """Run the demo and return the exit code; raises ConfigurationError if it cannot run here, Fatal if it fails."""
    # A client that loses its broker logs much about it; here one sentence of ours says so.
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())
    return asyncio.run(_until_signalled(keep=keep, port=port))


async def _until_signalled(*, keep: bool, port: int | None) -> int:
    """Run until the end or the first signal; a second one changes nothing, because everything is ending already."""
    received: list[int] = []
    running = asyncio.ensure_future(_demo(keep=keep, port=port))

    def note(signal_: signal.Signals) -> None:
        if not received:
            received.append(signal_)
            running.cancel()

    for signal_ in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(signal_, note, signal_)
    try:
        await running
    except asyncio.CancelledError:
        if not received:
            raise
    return EXIT_SIGNALLED + received[0] if received and not keep else EXIT_OK


async def _demo(*, keep: bool, port: int | None) -> None:
    binary = broker_binary()
    broker_port, http_port = free_ports(port)
    folder = Path(tempfile.mkdtemp(prefix="safe-demo-"))
    try:
        await _Demo(folder, binary, broker_port, http_port, keep=keep).run()
    except SafeError:
        raise  # the error points to the logs: the folder stays
    except BaseException:  # a signal, a closed pipe or a defect: nothing stays behind
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


class _Demo:
    """One run: its folder, its processes, its scorecard."""

    def __init__(self, folder: Path, binary: str, broker_port: int, http_port: int, *, keep: bool) -> None:
        self._folder = folder
        self._binary = binary
        self._keep = keep
        self._samples = Samples.load()
        self._broker_port, self._http_port = broker_port, http_port
        self._settings = Settings(kafka_bootstrap_servers=f"127.0.0.1:{self._broker_port}")
        install_patches(self._settings)
        self._card = DemoCard(self._samples, self._settings)
        self._console = result_console()
        self._children: list[Child] = []

    async def run(self) -> None:
        """Start, publish, watch, close; every process is gone afterwards, whatever happens."""
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                await self._watched()
            self._close()
            while self._keep:
                self._check()
                await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError as error:
            raise self._failed(f"not all outputs were scored within {_TIMEOUT_SECONDS:g} s") from error
        except SafeError as error:
            raise self._failed(str(error)) from error
        finally:
            for child in reversed(self._children):
                child.stop()

    async def _watched(self) -> None:
        with showing(self._console, self._card, "SAFE demo") as screen:
            await self._start(screen)
            await self._traffic(screen)
            if screen.live is not None:
                await asyncio.sleep(_LAST_LOOK_SECONDS)

    # --- starting -----------------------------------------------------------------------------------------------------

    async def _start(self, screen: Screen) -> None:
        screen.status("starting a broker in memory and a worker")
        self._samples.write_batch_files(self._folder / "cases")
        broker = start_broker(self._binary, self._broker_port, self._folder)
        self._children.append(broker)
        await broker.until_listening(self._broker_port)
        await create_topics(self._settings, _PARTITIONS, 1)
        worker_settings = {
            "KAFKA_BOOTSTRAP_SERVERS": self._settings.kafka_bootstrap_servers,
            "KAFKA_SESSION_TIMEOUT_SECONDS": str(_SESSION_SECONDS),
            "DELIVERY": "at_least_once",  # the embedded broker has no transactions
            "EXPECTATIONS": str(self._folder / "cases"),
            "HTTP_ADDRESS": f"127.0.0.1:{self._http_port}",
            "LOG_FORMAT": "console",
        }
        self._children.append(start_worker(worker_settings, self._folder))
        screen.status("the worker joins its consumer group")
        while not await is_ready(self._http_port):
            self._check()
            screen.show()
            await asyncio.sleep(_LOOK_SECONDS)

    def _check(self) -> None:
        for child in self._children:
            child.check()

    # --- traffic ------------------------------------------------------------------------------------------------------

    async def _traffic(self, screen: Screen) -> None:
        """Publish the samples slowly enough to be watched, and show what comes out, until everything has come out."""
        settings, card = self._settings, self._card
        topics = (settings.result_topic, settings.report_topic, settings.dead_letter_topic)
        waiting, events = list(self._samples.events), len(self._samples.events)
        async with (
            following(Connection.from_settings(settings), topics) as arrivals,
            publishing_events(settings) as publisher,
        ):
            due_at = time.monotonic()
            while not card.is_complete:
                if waiting and time.monotonic() >= due_at:
                    await publisher.publish(settings.input_topic, *waiting.pop(0))
                    due_at += _SECONDS_BETWEEN_EVENTS
                for record in await arrivals(_LOOK_SECONDS):
                    arrival = card.note(record)
                    if arrival is not None:
                        screen.note(arrival)
                self._check()
                published = f"{events - len(waiting)} of {events} outputs published"
                screen.status(f"{published}, worker on 127.0.0.1:{self._http_port}", once=False)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        closing(self._console, self._card)
        broker = self._settings.kafka_bootstrap_servers
        lines = ["", "Next, with a cluster, test cases and outputs of your own:"]
        lines += [*(f"  {step}" for step in NEXT_STEPS), ""]
        if self._keep:
            lines += [
                "Still running, until Ctrl-C:",
                f"  metrics     http://127.0.0.1:{self._http_port}/metrics",
                f"  broker      {broker}",
                f"  test cases  {self._folder / 'cases'}",
                f"  results     KAFKA_BROKERS={broker} python subscriber/receive_results.py",
                "              (safe example subscriber . copies this program here)",
            ]
        else:
            lines += ["`safe demo --keep` keeps it running, with the worker's /metrics to look at."]
        for line in lines:
            if line.startswith("  "):
                self._console.print(Text(line), soft_wrap=True)  # one line, to be copied
            else:
                print_line(self._console, Text(line))

    def _failed(self, why: str) -> Fatal:
        """The error to end with; the last log lines of the process that ended, or started last, go to stderr before."""
        if not self._children:
            return Fatal(f"the demo failed: {why}")
        ended = [child for child in self._children if child.process.poll() is not None]
        child = ended[0] if ended else self._children[-1]
        for line in child.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LOG_LINES:]:
            message_console().print(Text(f"  {child.name}: {line}"))
        return Fatal(f"the demo failed: {why}; the whole log of the {child.name} is {child.log}")
