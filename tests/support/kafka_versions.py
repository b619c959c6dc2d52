"""Other versions of Apache Kafka than the tests' own, from published jars: the oldest with a ZooKeeper beside it."""

import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from typing_extensions import override

from tests.support import kafka_jvm
from tests.support.guardian import leave_nothing
from tests.support.kafka_broker import HEAP, PROJECT, STOP_SECONDS, KafkaBroker, fetched_jars, free_port
from tests.support.kafka_jvm import HERE
from tests.support.waiting import wait_until

_ZOOKEEPER_SECONDS = 30.0
_FIRST_WITHOUT_LOG4J_1 = 4
_FIRST_WITHOUT_ZOOKEEPER = (3, 3)
_OF_KRAFT = ("process.roles", "node.id", "controller.listener.names", "controller.quorum.voters")


def broker_of(version: str, folder: Path) -> KafkaBroker:
    """Make a broker of a version, whose jars are fetched once into the project's cache."""
    parts = tuple(map(int, version.split(".")))
    pom = HERE / ("pom.xml" if parts[0] >= _FIRST_WITHOUT_LOG4J_1 else "before-4.pom.xml")
    libs = fetched_jars(pom, PROJECT / ".cache" / f"kafka-{version}", version=version)
    return (KafkaBroker if parts >= _FIRST_WITHOUT_ZOOKEEPER else BrokerWithZooKeeper)(folder, libs=libs)


class BrokerWithZooKeeper(KafkaBroker):
    """A broker from before Kafka could do without."""

    _zookeeper: "subprocess.Popen[bytes] | None" = None

    @override
    def _write(self, settings: dict[str, str]) -> None:
        self._zookeeper_port = free_port()
        listener = f"PLAINTEXT://{self.bootstrap_servers}"
        kept = {name: value for name, value in settings.items() if name not in _OF_KRAFT}
        of_this = {"broker.id": "1", "zookeeper.connect": f"127.0.0.1:{self._zookeeper_port}", "listeners": listener}
        super()._write(kept | of_this)
        data = f"dataDir={self._folder / 'zookeeper'}\nclientPort={self._zookeeper_port}\nadmin.enableServer=false\n"
        (self._folder / "zookeeper.properties").write_text(data, encoding="utf-8")

    @override
    def _format(self) -> None:
        """Its storage needs no formatting."""

    @override
    def start(self) -> KafkaBroker:
        leave_nothing()
        if self._zookeeper is None:
            main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
            command = kafka_jvm.java(
                self._libs, main, str(self._folder / "zookeeper.properties"),
                options=(*HEAP, *kafka_jvm.QUICK), log=self._folder / "zookeeper.log",
            )  # fmt: skip
            with (self._folder / "console.log").open("ab") as console:
                self._zookeeper = subprocess.Popen(command, stdout=console, stderr=console)
            wait_until(self._listens, within_seconds=_ZOOKEEPER_SECONDS, what="ZooKeeper listens")
        return super().start()

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._zookeeper_port), timeout=1.0):
            return True
        return False

    @override
    def stop(self, *, kill: bool = False) -> None:
        super().stop(kill=kill)
        zookeeper, self._zookeeper = self._zookeeper, None
        if zookeeper is not None:
            zookeeper.kill()
            zookeeper.wait(timeout=STOP_SECONDS)
