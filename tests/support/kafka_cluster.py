"""A cluster for the tests: three brokers and a controller apart, each in a network namespace of its own.

What it is asked to survive is done to it from here: kill, stop, freeze, cut off, replace a disk, fill a disk, move the
leaders. Replication is 3 and `min.insync.replicas` 2 everywhere, as in an installation that is meant to last.
"""

import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.kafka_broker import STOP_SECONDS, BrokerUnavailableError, kafka_libs
from tests.support.kafka_jvm import QUICK as QUICK_JVM
from tests.support.kafka_jvm import format_storage, java, new_id, write_identity
from tests.support.network import CONTROLLER, Network
from tests.support.waiting import wait_until
from tests.support.wire import Partition, View, coordinator_by, view_of

BROKERS = (1, 2, 3)
OFFSETS = "__consumer_offsets"
PORT, INSIDE_PORT, GUARDED_PORT = 9092, 9093, 9094
TOOL_SECONDS = 60.0
# Four processes start at once on few cores, and a broker waits for its controller.
START_TOGETHER_SECONDS = 120.0
# A replica that was away for minutes has to copy what was written meanwhile.
IN_SYNC_SECONDS = 180.0

COMMON = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "unclean.leader.election.enable": "false",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    # The cluster shares a few cores with workers and the test.
    "num.network.threads": "2",
    "num.io.threads": "4",
    "num.recovery.threads.per.data.dir": "2",
}
BROKER = {
    "process.roles": "broker",
    "inter.broker.listener.name": "INSIDE",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "6",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": "8388608",
}
# With the defaults a dead broker is missed after nine seconds; a short test cannot wait for that again and again.
QUICK = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "500",
    "metadata.max.idle.interval.ms": "0",  # a controller that has nothing to say writes nothing
}
BROKER_HEAP = ["-Xms128m", "-Xmx400m"]
CONTROLLER_HEAP = ["-Xms64m", "-Xmx256m"]


def java_hash(text: str) -> int:
    """Return the absolute value of Java's hash of an ASCII text: by it a group finds its partition of the offsets."""
    value = 0
    for unit in text.encode("ascii"):
        value = (31 * value + unit) % 2**32
    return abs(value - 2**32 if value >= 2**31 else value) % 2**31


class Node:
    """One process of the cluster, in its namespace, with its own folder; it may be stopped and started at will."""

    def __init__(self, number: int, folder: Path, network: Network, libs: Path, heap: list[str]) -> None:
        self.number = number
        self.folder, self.log = folder, folder / "node.log"
        self.data = folder / "data"
        self._network, self._libs, self._heap = network, libs, heap
        self._configuration = folder / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        self._frozen = False
        folder.mkdir(parents=True)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Write the file that the process is started with."""
        everything = dict(settings) | {"node.id": str(self.number), "log.dirs": str(self.data)}
        text = "".join(f"{name}={value}\n" for name, value in everything.items())
        self._configuration.write_text(text, encoding="utf-8")

    def _java(self, *program: str) -> list[str]:
        return java(self._libs, *program, options=(*self._heap, *QUICK_JVM), log=self.log)

    def format(self, cluster_id: str) -> None:
        """Prepare an empty data folder."""
        try:
            format_storage(self._libs, self._configuration, self.data, node=self.number, cluster_id=cluster_id)
        except subprocess.CalledProcessError as error:
            said = f"{error.stdout}{error.stderr}"[-2000:]
            raise BrokerUnavailableError(f"Kafka could not format its storage: {said}") from error

    @property
    def is_running(self) -> bool:
        """Whether its process exists, frozen or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def has_ended(self) -> bool:
        """Whether its process was started and has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    @property
    def is_frozen(self) -> bool:
        """Whether it was suspended and not yet let go on."""
        return self._frozen

    def launch(self) -> None:
        """Start the process without waiting for it."""
        if self.is_running:
            raise AssertionError(f"node {self.number} runs already")
        command = self._network.within(self.number, self._java("kafka.Kafka", str(self._configuration)))
        with (self.folder / "console.log").open("ab") as console:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console, stderr=console)

    def kill(self) -> None:
        """End the process without notice."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask the process to end in order, leaders handed over, and wait until it has."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        self._frozen = False
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)  # a frozen process would not hear the one before
        try:
            process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=STOP_SECONDS)

    def freeze(self) -> None:
        """Suspend the process: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)
        self._frozen = True

    def thaw(self) -> None:
        """Let a frozen process go on."""
        self._signal(signal.SIGCONT)
        self._frozen = False

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            raise AssertionError(f"node {self.number} does not run")
        self._process.send_signal(number)

    def last_words(self) -> str:
        """Return the end of what it has written."""
        files = [self.log, self.folder / "console.log"]
        return "\n".join(file.read_text(encoding="utf-8", errors="replace")[-1500:] for file in files if file.exists())


class Broker(Node):
    """One of the three brokers, with what can be done to it; its port and its address stay."""

    def __init__(self, number: int, folder: Path, network: Network, libs: Path, cluster_id: str) -> None:
        super().__init__(number, folder, network, libs, BROKER_HEAP)
        self.address = f"{network.client_address(number)}:{PORT}"
        self.is_cut_off = False
        self._held_back_from: list[int] = []
        self._cluster_id = cluster_id
        self._junk = self.data / "junk"

    def listeners(self, guarded: str | None = None) -> dict[str, str]:
        """Return the settings that say where it listens: towards its clients, and towards its fellows.

        `guarded` names one more listener, for clients that have to log in.
        """
        client, inside = self._network.client_address(self.number), self._network.inside_address(self.number)
        listeners = f"CLIENT://{client}:{PORT},INSIDE://{inside}:{INSIDE_PORT}"
        if guarded is not None:
            listeners += f",{guarded}://{client}:{GUARDED_PORT}"
        return {"listeners": listeners, "advertised.listeners": listeners}

    def prepare_disk(self, *, megabytes: int | None = None) -> None:
        """Make an empty disk that this broker of this cluster may use, of limited size if one is given."""
        self.data.mkdir()
        if megabytes is not None:
            self._network.mount(self.number, self.data, megabytes=megabytes)
        self._write_identity()

    def _write_identity(self) -> None:
        write_identity(self.data, node=self.number, cluster_id=self._cluster_id)

    def cut_off(self) -> None:
        """Let nothing pass between this broker and the other nodes; clients still reach it."""
        self._network.cut_off(self.number)
        self.is_cut_off = True

    def heal(self) -> None:
        """Connect it with the others again."""
        self._network.heal(self.number)
        self.is_cut_off = False

    def hold_back(self, leader: "Broker") -> None:
        """Keep this broker from copying what another one leads, which still copies from this one.

        The other one cannot tell its clients what is committed until this broker is let go on.
        """
        self._network.hold_back(self.number, leader.number, INSIDE_PORT)
        self._held_back_from.append(leader.number)

    def let_go_on(self) -> None:
        """Let it copy from all the others again."""
        while self._held_back_from:
            self._network.let_go_on(self.number, self._held_back_from.pop(), INSIDE_PORT)

    def replace_disk(self) -> None:
        """Give a stopped broker an empty disk: it has to copy everything from its fellows."""
        if self.is_running:
            raise AssertionError(f"broker {self.number} still runs")
        for each in self.data.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        self._write_identity()

    def fill_disk(self) -> None:
        """Take the rest of a disk of limited size, until `free_disk`."""
        with self._junk.open("wb", buffering=0) as junk, suppress(OSError):
            while True:
                junk.write(bytes(65536))

    def free_disk(self) -> None:
        """Give back what `fill_disk` took."""
        self._junk.unlink(missing_ok=True)

    def view(self) -> View | None:
        """Return what it believes of the cluster, None where it does not answer."""
        try:
            return view_of(self.address)
        except OSError:
            return None

    def coordinator_of(self, group: str) -> int | None:
        """Return the broker that it takes for a group's coordinator, None where it does not know or answer."""
        try:
            return coordinator_by(self.address, group)
        except OSError:
            return None


class KafkaCluster:
    """Three brokers and a controller; leaving the block ends them and takes their network away."""

    def __init__(
        self,
        folder: Path,
        *,
        settings: Mapping[str, str] | None = None,
        disk_megabytes: Mapping[int, int] | None = None,
        guarded: str | None = None,
    ) -> None:
        """Prepare the nodes; `disk_megabytes` gives brokers disks of a limited size. Raises BrokerUnavailableError.

        `guarded` names one more listener of each broker, which `settings` describe.
        """
        libs = kafka_libs()
        self._folder, self._libs = folder, libs
        self._network = Network.claim(len(BROKERS))
        cluster_id = new_id()
        try:
            self._controller = Node(CONTROLLER, folder / "controller", self._network, libs, CONTROLLER_HEAP)
            self.brokers = {
                number: Broker(number, folder / f"broker{number}", self._network, libs, cluster_id)
                for number in BROKERS
            }
            self._prepare(cluster_id, settings or {}, disk_megabytes or {}, guarded)
        except BaseException:  # whatever ends it, or what is left of the network would outlive the tests
            self._network.remove()
            raise

    def _prepare(
        self, cluster_id: str, settings: Mapping[str, str], disks: Mapping[int, int], guarded: str | None
    ) -> None:
        voter = f"{self._network.inside_address(CONTROLLER)}:{INSIDE_PORT}"
        common = COMMON | {"controller.quorum.voters": f"{CONTROLLER}@{voter}"}
        own = {"process.roles": "controller", "listeners": f"CONTROLLER://{voter}"}
        self._controller.configure(common | own | dict(settings))
        self._controller.format(cluster_id)
        for broker in self.brokers.values():
            broker.configure(common | BROKER | broker.listeners(guarded) | dict(settings))
            broker.prepare_disk(megabytes=disks.get(broker.number))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """The client addresses of all three."""
        return ",".join(broker.address for broker in self.brokers.values())

    # --- all of it at once

    def start(self) -> Self:
        """Start everything that does not run, and return when every broker knows every other one."""
        for node in (self._controller, *self.brokers.values()):
            if not node.is_running:
                node.launch()
        self._await(self._are_complete, START_TOGETHER_SECONDS, "all brokers know each other")
        return self

    def stop(self) -> None:
        """End everything at once, and leave no process, mount, link or namespace behind."""
        for node in (*self.brokers.values(), self._controller):
            node.kill()
        self._network.remove()

    def left_behind(self) -> list[str]:
        """Name what still exists of its network."""
        return self._network.left_behind()

    def kill_brokers(self) -> None:
        """End all three brokers without notice; the controller stays."""
        for broker in self.brokers.values():
            broker.kill()

    def restore(self) -> None:
        """Undo all that was done to brokers, and wait until every replica of every partition is in sync."""
        for broker in self.brokers.values():
            broker.let_go_on()
            if broker.is_cut_off:
                broker.heal()
            if broker.is_frozen:
                broker.thaw()
        self.start()
        self.await_in_sync()

    # --- waiting for the brokers

    def start_broker(self, broker: Broker) -> None:
        """Start one broker and return when it knows the others and they know it."""
        broker.launch()
        self._await(
            lambda: all(view is not None and broker.number in view.brokers for view in self._views()),
            START_TOGETHER_SECONDS,
            f"broker {broker.number} is one of the cluster",
        )

    def await_in_sync(self) -> None:
        """Wait until all brokers are there and every replica of every partition is in sync."""
        self._await(self._are_complete, START_TOGETHER_SECONDS, "all brokers know each other")
        self._await(lambda: not self.out_of_sync(), IN_SYNC_SECONDS, "every replica is in sync")

    def await_missed(self, *gone: Broker) -> None:
        """Wait until the other brokers have noticed that some are gone."""
        numbers = {broker.number for broker in gone}
        self._await(
            lambda: all(view is not None and not view.brokers & numbers for view in self._views(without=numbers)),
            START_TOGETHER_SECONDS,
            f"brokers {sorted(numbers)} are missed",
        )

    def out_of_sync(self) -> list[str]:
        """Name every partition that lacks a replica in sync, as any broker sees it."""
        return sorted(
            f"{topic}/{partition}: {sorted(found.in_sync)} of {sorted(found.replicas)}"
            for view in self._views()
            if view is not None
            for (topic, partition), found in view.partitions.items()
            if found.in_sync != set(found.replicas)
        )

    def _are_complete(self) -> bool:
        return all(view is not None and view.brokers >= set(BROKERS) for view in self._views())

    def _views(self, *, without: Collection[int] = ()) -> list[View | None]:
        """What each broker believes that is neither frozen nor cut off, nor left out."""
        return [
            broker.view()
            for broker in self.brokers.values()
            if not (broker.is_frozen or broker.is_cut_off or broker.number in without)
        ]

    def _await(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        def holds() -> bool:
            ended = [broker.number for broker in self.brokers.values() if broker.has_ended]
            assert not ended, f"brokers {ended} have ended by themselves"
            return condition()

        try:
            wait_until(holds, within_seconds=seconds, what=what, every_seconds=0.1)
        except AssertionError as error:
            nodes = (self._controller, *self.brokers.values())
            words = "\n".join(f"--- node {node.number}\n{node.last_words()}" for node in nodes)
            raise AssertionError(f"{error}\n{self.out_of_sync()}\n{words}") from None

    # --- who leads what

    def coordinator_of(self, group: str) -> Broker:
        """Return the broker that coordinates a group, as those believe that are neither frozen nor cut off."""

        def found() -> Broker | None:
            for broker in self.brokers.values():
                if broker.is_running and not broker.is_frozen and not broker.is_cut_off:
                    number = broker.coordinator_of(group)
                    if number is not None:
                        return self.brokers[number]
            return None

        return wait_until(found, within_seconds=START_TOGETHER_SECONDS, what=f"the coordinator of {group} is known")

    def next_coordinator(self, group: str) -> Broker:
        """Return the broker that will coordinate a group if its coordinator fails: the next replica in sync."""
        partitions = {at: found for (topic, at), found in self._partitions().items() if topic == OFFSETS}
        found = partitions[java_hash(group) % len(partitions)]
        return self.brokers[next(each for each in found.replicas if each != found.leader and each in found.in_sync)]

    def followers_of(self, broker: Broker) -> list[Broker]:
        """Return the other two."""
        return [other for other in self.brokers.values() if other is not broker]

    def leaders(self, topic: str) -> dict[int, int]:
        """Return the leader of each partition, -1 where there is none."""
        return {at: found.leader for (name, at), found in self._partitions().items() if name == topic}

    def replicas(self, topic: str, partition: int) -> tuple[int, ...]:
        """Return the brokers that hold a partition, the preferred leader first."""
        return self._partitions()[topic, partition].replicas

    def _partitions(self) -> Mapping[tuple[str, int], Partition]:
        def seen() -> Mapping[tuple[str, int], Partition] | None:
            return next((view.partitions for view in self._views() if view is not None), None)

        return wait_until(seen, within_seconds=START_TOGETHER_SECONDS, what="a broker tells what it believes")

    def move_leaders(self, topics: Collection[str]) -> None:
        """Make the next replica of every partition of these topics its leader, whatever is being written meanwhile."""
        wanted = {
            place: (*found.replicas[1:], found.replicas[0])
            for place, found in self._partitions().items()
            if place[0] in topics
        }
        self.place(wanted)
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        places = [TopicPartition(topic, partition) for topic, partition in wanted]
        admin.elect_leaders(ElectionType.PREFERRED, places).result(TOOL_SECONDS)
        self._await(
            lambda: all(self._partitions()[place].leader == replicas[0] for place, replicas in wanted.items()),
            IN_SYNC_SECONDS,
            f"the leaders of {sorted(topics)} have moved",
        )

    def place(self, wanted: Mapping[tuple[str, int], Sequence[int]]) -> None:
        """Say on which brokers partitions are to be, the preferred leader first; done by Kafka's own tool."""
        plan = [{"topic": topic, "partition": at, "replicas": list(order)} for (topic, at), order in wanted.items()]
        file = self._folder / "reassignment.json"
        file.write_text(json.dumps({"version": 1, "partitions": plan}), encoding="utf-8")
        tool = java(self._libs, "org.apache.kafka.tools.reassign.ReassignPartitionsCommand")
        asked = ["--bootstrap-server", self.bootstrap_servers, "--reassignment-json-file", str(file), "--execute"]
        done = subprocess.run([*tool, *asked], capture_output=True, text=True, timeout=TOOL_SECONDS, check=False)
        assert done.returncode == 0, f"the replicas could not be ordered: {(done.stdout + done.stderr)[-2000:]}"
