"""Everything that can go wrong, named for what the caller does next (contract.md, "Trouble").

poison → a dead letter at once; transient → the partition waits and tries again; a contradiction → it does so for a
minute; fatal → the service stops and says why.
"""

from typing import TypeVar


class SafeError(Exception):
    """The root of the tree: whatever else escapes is a defect."""


class Transient(SafeError):
    """Store, broker or network: the partition waits and tries again, and nothing is lost."""


class PartitionLost(SafeError):
    """The partition, or our right to write for it, is gone: drop producer, state and records in hand.

    `fenced` tells that the broker refused our producer in favour of a newer one, `timed_out` that a commit was given up
    because it took too long.
    """

    def __init__(self, message: str, *, fenced: bool = False, timed_out: bool = False) -> None:
        super().__init__(message)
        self.fenced = fenced
        self.timed_out = timed_out


class Contradiction(SafeError):
    """Two answers that must agree disagree: the partition is taken up again for a minute, then the service stops.

    The message names both, and what to do.
    """


class Fatal(SafeError):
    """No waiting helps: the service stops with this sentence, which names the culprit and the remedy."""


class ConfigurationError(Fatal):
    """The settings cannot be used: exit 3 before anything has started."""


_SafeError = TypeVar("_SafeError", bound=SafeError)


def first_of(group: BaseExceptionGroup[_SafeError]) -> _SafeError:
    """One error for all that tasks of a group have raised at the same time."""
    error = group.exceptions[0]
    return first_of(error) if isinstance(error, BaseExceptionGroup) else error
