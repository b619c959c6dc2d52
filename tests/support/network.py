"""Networks for a cluster of brokers on one machine: a namespace for each node, two links out of it.

    root namespace (workers, the test)          namespace of the controller
      |            |            |                 bridge `fellows`
      | client 1   | client 2   | client 3          |   inside   |
    [broker 1]   [broker 2]   [broker 3] ---------- + -- + ------+

A broker talks to clients over one link and to its fellows over the other, so either can fail without the other. This
needs root and the `ip` command of Linux. Several test processes may do this at once: each claims a number with a file
lock, which ends with its process, and takes away whatever a dead process of that number has left behind.
"""

import fcntl
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Self, TextIO

from tests.support.kafka_broker import BrokerUnavailableError
from tests.support.waiting import wait_until

NETWORKS = 100
CONTROLLER = 9
LOCKS = Path("/run/safe-test-networks")  # one place for every run, wherever it writes its files
GONE_SECONDS = 10.0


def ip(*arguments: str) -> str:
    """Run the `ip` command and return what it says; raises BrokerUnavailableError with its complaint."""
    return _said(["ip", *arguments])


def _said(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BrokerUnavailableError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def check_possible() -> None:
    """Raise BrokerUnavailableError where namespaces cannot be made, with what is missing."""
    if shutil.which("ip") is None or not hasattr(os, "geteuid"):
        raise BrokerUnavailableError("a cluster needs the `ip` command of Linux (package iproute2)")
    if os.geteuid() != 0:
        raise BrokerUnavailableError("a cluster needs root: each broker runs in a network namespace of its own")


class Network:
    """The namespaces and links of one cluster: nodes 1 to `brokers`, and the controller.

    The addresses are from 198.18.0.0/15, which is set aside for tests and never routed.
    """

    def __init__(self, number: int, brokers: int, lock: TextIO) -> None:
        self._number, self._brokers, self._lock = number, brokers, lock
        self._prefix = f"safetest{number}-"

    @classmethod
    def claim(cls, brokers: int) -> Self:
        """Take a number that no living process has, and build its namespaces and links."""
        check_possible()
        LOCKS.mkdir(exist_ok=True)
        claimed: Self | None = None
        for number in range(NETWORKS):
            lock = _locked(LOCKS / f"{number}.lock")
            if lock is None:
                continue
            network = cls(number, brokers, lock)
            network._remove()  # what a run that was killed has left
            if claimed is None:
                claimed = network
            else:
                lock.close()
            if not (LOCKS / f"{number + 1}.lock").exists():
                break
        if claimed is None:
            raise BrokerUnavailableError(f"all {NETWORKS} test networks are in use")
        claimed._build()
        return claimed

    def client_address(self, broker: int) -> str:
        """Where clients reach a broker."""
        return f"198.18.{self._number}.{4 * broker + 2}"

    def inside_address(self, node: int) -> str:
        """Where the other nodes reach a broker or the controller."""
        return f"198.19.{self._number}.{node}"

    def within(self, node: int, command: list[str]) -> list[str]:
        """Return the command line that runs a command in the namespace of a node, without a process in between."""
        return ["ip", "netns", "exec", self._namespace(node), *command]

    def cut_off(self, broker: int) -> None:
        """Let nothing pass between a broker and its fellows; clients still reach it."""
        ip("-n", self._namespace(CONTROLLER), "link", "set", f"to{broker}", "down")

    def heal(self, broker: int) -> None:
        """Connect a broker with its fellows again."""
        ip("-n", self._namespace(CONTROLLER), "link", "set", f"to{broker}", "up")

    def hold_back(self, broker: int, leader: int, port: int) -> None:
        """Let a broker no longer reach another one's port, while that one still reaches it."""
        ip("-n", self._namespace(broker), "rule", "add", *self._towards(leader, port))

    def let_go_on(self, broker: int, leader: int, port: int) -> None:
        """Undo `hold_back`."""
        ip("-n", self._namespace(broker), "rule", "del", *self._towards(leader, port))

    def _towards(self, leader: int, port: int) -> list[str]:
        return ["to", self.inside_address(leader), "ipproto", "tcp", "dport", str(port), "blackhole"]

    def mount(self, broker: int, folder: Path, *, megabytes: int) -> None:
        """Put a file system of limited size on a folder; `remove` takes it away."""
        options = ["-t", "tmpfs", "-o", f"size={megabytes}m"]
        _said(["mount", *options, f"{self._prefix}{broker}", str(folder)])

    def remove(self) -> None:
        """Take away every process, mount, link and namespace, and give the number back."""
        self._remove()
        self._lock.close()

    def _namespace(self, node: int) -> str:
        return f"{self._prefix}{node}"

    def _build(self) -> None:
        controller = self._namespace(CONTROLLER)
        try:
            self._make_namespace(CONTROLLER)
            ip("-n", controller, "link", "add", "fellows", "type", "bridge")
            self._address(controller, "fellows", f"{self.inside_address(CONTROLLER)}/24")
            for broker in range(1, self._brokers + 1):
                self._make_namespace(broker)
                self._connect(broker)
        except BaseException:  # also an interrupt: what is built in part would stand in the next run's way
            self.remove()
            raise

    def _make_namespace(self, node: int) -> None:
        ip("netns", "add", self._namespace(node))
        ip("-n", self._namespace(node), "link", "set", "lo", "up")

    def _connect(self, broker: int) -> None:
        own, controller = self._namespace(broker), self._namespace(CONTROLLER)
        outside = f"{self._prefix}{broker}"
        ip("link", "add", outside, "type", "veth", "peer", "name", "client", "netns", own)
        ip("addr", "add", f"198.18.{self._number}.{4 * broker + 1}/30", "dev", outside)
        ip("link", "set", outside, "up")
        self._address(own, "client", f"{self.client_address(broker)}/30")
        ip("-n", controller, "link", "add", f"to{broker}", "type", "veth", "peer", "name", "inside", "netns", own)
        ip("-n", controller, "link", "set", f"to{broker}", "master", "fellows", "up")
        self._address(own, "inside", f"{self.inside_address(broker)}/24")

    def _address(self, namespace: str, link: str, address: str) -> None:
        ip("-n", namespace, "addr", "add", address, "dev", link)
        ip("-n", namespace, "link", "set", link, "up")

    def _remove(self) -> None:
        for namespace in self._namespaces():
            _end_processes(namespace)
        for mounted in self._mounts():
            _said(["umount", "-l", mounted])
        for link in self._links():
            ip("link", "del", link)
        for namespace in self._namespaces():
            ip("netns", "del", namespace)

    def _namespaces(self) -> list[str]:
        names = [line.split()[0] for line in ip("netns", "list").splitlines() if line.strip()]
        return [name for name in names if name.startswith(self._prefix)]

    def _links(self) -> list[str]:
        names = [line.split(": ")[1].split("@")[0] for line in ip("-o", "link", "show").splitlines()]
        return [name for name in names if name.startswith(self._prefix)]

    def _mounts(self) -> list[str]:
        lines = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
        return [folder for source, folder, *_ in lines if source.startswith(self._prefix)]

    def left_behind(self) -> list[str]:
        """Name every namespace, link and mount of this network that exists."""
        return [*self._namespaces(), *self._links(), *self._mounts()]


def _locked(file: Path) -> TextIO | None:
    """Return the file, locked for as long as it stays open; None where another process holds the lock."""
    opened = file.open("w")
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        opened.close()
        return None
    return opened


def _end_processes(namespace: str) -> None:
    def ended() -> bool:
        pids = [int(pid) for pid in ip("netns", "pids", namespace).split()]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return not pids

    wait_until(ended, within_seconds=GONE_SECONDS, what=f"the processes of {namespace} have ended")
