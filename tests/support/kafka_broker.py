"""A real Apache Kafka for the tests: one KRaft node on loopback, from published jars, started and stopped at will."""

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.support import kafka_jvm
from tests.support.guardian import leave_nothing
from tests.support.kafka_jvm import HERE
from tests.support.waiting import wait_until

KAFKA_VERSION = "4.1.1"
PROJECT = Path(__file__).resolve().parents[2]
CACHE = PROJECT / ".cache" / f"kafka-{KAFKA_VERSION}"
START_SECONDS = 60.0
STOP_SECONDS = 30.0
DOWNLOAD_SECONDS = 600.0
SERVER_PORTS = (10_000, 32_768)  # Linux gives those above to outgoing connections

# What makes one small node quick to start and its housekeeping quick enough to be tested.
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # An open transaction of a dead producer is looked for this often, not every ten seconds.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    # Compaction and retention can be awaited.
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": "8388608",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    "controlled.shutdown.enable": "true",
    # Half of what an idle broker works: records that say nothing, twice a second.
    "metadata.max.idle.interval.ms": "0",
    "broker.heartbeat.interval.ms": "3000",
    "num.network.threads": "2",
    "num.io.threads": "4",
}
HEAP = ("-Xms256m", "-Xmx512m")


class BrokerUnavailableError(Exception):
    """No broker can be had here; the message says what is missing."""


def free_port() -> int:
    """Return a loopback port that nobody listens on at the moment.

    It is not one of those that the system gives to outgoing connections: one of them could take it before its server
    has started.
    """
    while True:
        port = random.SystemRandom().randrange(*SERVER_PORTS)  # whatever a test has seeded
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def kafka_libs() -> Path:
    """Return the folder of the broker's jars, fetched once by Maven into the project's cache."""
    given = os.environ.get("SAFE_TEST_KAFKA_LIBS")
    if given:
        return started_once(Path(given))
    missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
    if "java" in missing or (missing and not CACHE.is_dir()):
        raise BrokerUnavailableError(
            f"{' and '.join(missing)} not found; set SAFE_TEST_BOOTSTRAP_SERVERS or install them"
        )
    return started_once(fetched_jars(HERE / "pom.xml", CACHE))


def started_once(libs: Path) -> Path:
    """Start a broker once, if none has left yet what makes later starts quick; returns the folder of the jars."""
    kept = kafka_jvm.beside(libs)
    with libs.with_name(f"{libs.name}.lock").open("w") as lock, tempfile.TemporaryDirectory(dir=libs.parent) as folder:
        flock(lock, LOCK_EX)  # several processes of one run begin at once
        if not kept.is_dir():
            left = Path(folder) / "left"
            left.mkdir()
            broker = KafkaBroker(Path(folder) / "broker", libs=libs, leaves=left)
            broker.start().stop()
            kafka_jvm.keep(libs, left, broker.data)
    return libs


def fetched_jars(pom: Path, into: Path, *, version: str | None = None) -> Path:
    """Return the folder with the jars that a pom.xml names, fetched once by Maven; raises BrokerUnavailableError.

    `version` is the one of Kafka where the pom.xml asks for it.
    """
    if into.is_dir():
        return into
    into.parent.mkdir(parents=True, exist_ok=True)
    # Renamed when complete, so that an interrupted download is never taken for the whole.
    with tempfile.TemporaryDirectory(dir=into.parent) as unfinished:
        folder = Path(unfinished) / "libs"
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        command += [f"-Dkafka.version={version}"] if version else []
        try:
            subprocess.run(
                [*command, f"-DoutputDirectory={folder}", "-DincludeScope=runtime"],
                check=True,
                capture_output=True,
                text=True,
                timeout=DOWNLOAD_SECONDS,
            )
        except FileNotFoundError as error:
            raise BrokerUnavailableError("mvn not found") from error
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            said = str(error.stdout or "")[-2000:]
            raise BrokerUnavailableError(f"Maven could not fetch what {pom.name} names: {error}\n{said}") from error
        try:
            folder.rename(into)
        except OSError:
            if not into.is_dir():  # another run was quicker, and its jars are as good
                raise
    return into


def _with_ports(value: str, ports: dict[str, str]) -> str:
    for name, port in ports.items():
        value = value.replace(name, port)
    return value


class KafkaBroker:
    """One node with its own data and ports that stay; it may be stopped, killed, frozen and started again."""

    def __init__(
        self,
        folder: Path,
        *,
        libs: Path,
        settings: dict[str, str] | None = None,
        jvm: Sequence[str] = kafka_jvm.QUICK,
        leaves: Path | None = None,
    ) -> None:
        self._folder = folder
        self.data = folder / "data"
        self._libs = libs
        self._jvm = jvm
        self._leaves = leaves
        self._process: subprocess.Popen[bytes] | None = None
        self._port, controller_port = free_port(), free_port()
        self.bootstrap_servers = f"127.0.0.1:{self._port}"
        self.log = folder / "broker.log"
        self._configuration = folder / "server.properties"
        folder.mkdir(parents=True, exist_ok=True)
        everything = SETTINGS | {
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "log.dirs": str(self.data),
        }
        # Further listeners stand beside the two that every broker has: settings may name their ports.
        ports = {"{port}": str(self._port), "{controller_port}": str(controller_port)}
        given = {name: _with_ports(value, ports) for name, value in (settings or {}).items()}
        self._write(everything | given)
        self._format()

    def _write(self, settings: dict[str, str]) -> None:
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        self._configuration.write_text("".join(lines), encoding="utf-8")

    def _java(self, *program: str) -> list[str]:
        if self._leaves is not None:
            return kafka_jvm.leaving_classes(self._libs, self._leaves, *program, log=self.log)
        return kafka_jvm.java(self._libs, *program, options=(*HEAP, *self._jvm), log=self.log)

    def _format(self) -> None:
        try:
            kafka_jvm.format_storage(self._libs, self._configuration, self.data, node=1, cluster_id=kafka_jvm.new_id())
        except subprocess.CalledProcessError as error:
            said = f"{error.stdout}{error.stderr}"[-2000:]
            raise BrokerUnavailableError(f"Kafka could not format its storage: {said}") from error

    @property
    def pid(self) -> int | None:
        """The process id while the broker runs."""
        return self._process.pid if self._process else None

    def start(self) -> "KafkaBroker":
        """Start the node on its ports and data, and return when it answers for its metadata."""
        if self._process is not None:
            raise AssertionError("the broker runs already")
        leave_nothing()  # here too: measurements (bench/) have no other place that all of them pass
        with (self._folder / "console.log").open("ab") as console:
            self._process = subprocess.Popen(
                self._java("kafka.Kafka", str(self._configuration)), stdout=console, stderr=console
            )
        try:
            wait_until(self._answers, within_seconds=START_SECONDS, what="Kafka answers for its metadata")
        except BaseException:  # an interrupted start, too, must leave no process behind
            self.stop(kill=True)
            raise
        return self

    def _answers(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise BrokerUnavailableError(f"Kafka ended while starting: {self.last_words()}")
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0, "socket.timeout.ms": 2000})
        try:
            return bool(admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def last_words(self) -> str:
        """Return the end of what the broker has written."""
        files = [self.log, self._folder / "console.log"]
        return "\n".join(file.read_text(encoding="utf-8", errors="replace")[-1500:] for file in files if file.exists())

    def stop(self, *, kill: bool = False) -> None:
        """End the process, in order or at once; its data stays."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGCONT)  # a frozen process would not hear the next one
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=STOP_SECONDS)

    def restart(self, *, kill: bool = False) -> None:
        """Stop and start on the same ports and data."""
        self.stop(kill=kill)
        self.start()

    def limit_producers(self, client_id: str, bytes_a_second: int) -> None:
        """Set the quota that all producers of this client id share; what they write beyond it is delayed."""
        entity = ["--entity-type", "clients", "--entity-name", client_id]
        change = ["--bootstrap-server", self.bootstrap_servers, "--alter", *entity]
        quota = ["--add-config", f"producer_byte_rate={bytes_a_second}"]
        subprocess.run(
            self._java("kafka.admin.ConfigCommand", *change, *quota),
            check=True,
            capture_output=True,
            timeout=START_SECONDS,
        )

    def freeze(self) -> None:
        """Suspend the process: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            raise AssertionError("the broker does not run")
        self._process.send_signal(number)


@contextmanager
def shared_broker(folder: Path) -> Iterator[str]:
    """Give the servers of the one broker that all processes of a run share; `folder` is the same for all of them.

    The first process starts it, and ends it when no other one needs it any more; raises BrokerUnavailableError.
    """
    known = folder / "kafka.servers"
    with (folder / "kafka.turn").open("a") as turn, (folder / "kafka.users").open("a") as users, ExitStack() as stack:
        flock(turn, LOCK_EX)
        if not known.is_file():
            broker = KafkaBroker(folder / "kafka", libs=kafka_libs()).start()
            stack.callback(broker.stop, kill=True)
            stack.callback(flock, users, LOCK_EX)  # waits for the others
            known.write_text(broker.bootstrap_servers, encoding="ascii")
        flock(users, LOCK_SH)
        flock(turn, LOCK_UN)
        yield known.read_text(encoding="ascii")
