"""A wall clock that is wrong, for one process: Python's, which is the only one that SAFE and its Kafka client read.

The monotonic clock stays as it is, as on a machine whose time somebody has set wrong.
"""

import time
from pathlib import Path

VARIABLE = "TEST_CLOCK_SHIFT"
"""Names a file that holds by how many seconds the clock is ahead; it is read each time, so that the clock may jump."""


FOLDER = Path(__file__).parent
"""On the path of an interpreter, it makes that process's clock wrong."""


def shift_clock(path: Path) -> None:
    """Make this process's wall clock wrong by what the file says."""
    right = time.time_ns

    def time_ns() -> int:
        return right() + int(float(path.read_text("ascii")) * 1_000_000_000)

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1_000_000_000


def set_clock(path: Path, seconds_ahead: float) -> Path:
    """Write such a file, whole, whoever reads it meanwhile."""
    unfinished = path.with_suffix(".new")
    unfinished.write_text(str(seconds_ahead), "ascii")
    return unfinished.replace(path)
