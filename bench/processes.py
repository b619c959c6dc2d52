"""What processes use of the machine, read from /proc."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_IDLE = slice(3, 5)
"""Of the first line of /proc/stat: idle, and waiting for a disk."""


@dataclass(frozen=True, slots=True)
class Running:
    """The processes of one run, and the topic that their results come to."""

    pids: Sequence[int]
    results: str

    def cpu_seconds(self) -> float:
        """All that they have used, user and system."""
        return sum(map(cpu_seconds, self.pids))

    def memory(self) -> int:
        """The sum of their peaks."""
        return sum(map(_peak_bytes, self.pids))

    def sockets(self) -> int:
        """How many sockets they have open."""
        return sum(map(_sockets, self.pids))


def cpu_seconds(pid: int) -> float:
    """The processor time of a process, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


def machine_cpu_seconds() -> float:
    """The processor time that everything on this machine has used since it started."""
    with Path("/proc/stat").open(encoding="ascii") as file:
        ticks = [int(field) for field in file.readline().split()[1:9]]
    return (sum(ticks) - sum(ticks[_IDLE])) / _TICKS_A_SECOND


def _peak_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def _sockets(pid: int) -> int:
    return sum(str(each.readlink()).startswith("socket:") for each in Path(f"/proc/{pid}/fd").iterdir())
