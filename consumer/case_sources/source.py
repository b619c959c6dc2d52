"""What the worker asks of a source of test cases; how each source answers is in its own module."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

from consumer.dead_letter_reasons import Poison
from safe_core import PreparedExpectations, TestCase
from safe_core.accepted_wordings import Accepted


class ExpectationsKey(NamedTuple):
    """How a test case is asked for (contract.md, "Look-up").

    `narrative` is the digest of the output's, None if it is not known: it decides where test cases differ.
    """

    batch_id: str
    test_id: str
    narrative: str | None = None


@dataclass(frozen=True, slots=True)
class FoundExpectations:
    """A test case as the source holds it now.

    `expected_cases` counts the test cases of the batch that was asked for, None where the source has no such batch;
    `in_batch` tells whether that batch itself holds the test case. `narratives` are the digests of those that its
    holders tell, `accepted_wordings` those that they accept for its terms.
    """

    prepared: PreparedExpectations
    concern_id: str | None
    archetype: str | None
    metric_id: str | None
    expected_cases: int | None
    in_batch: bool
    narratives: tuple[str, ...] = ()
    accepted_wordings: Accepted = ()

    @classmethod
    def of(cls, case: TestCase, prepared: PreparedExpectations, expected_cases: int | None, *, in_batch: bool) -> Self:
        """A test case, and what scoring prepares of its expectations."""
        return cls(
            prepared, case.concern_id, case.archetype, case.metric_id, expected_cases, in_batch, case.narratives,
            case.accepted_wordings,
        )  # fmt: skip


Answer = FoundExpectations | Poison
"""A test case, or why the output that asks for it becomes a dead letter."""


class ExpectationsSource(Protocol):
    """Where test cases are kept: a folder, a service, a topic."""

    name: str

    @property
    def requests(self) -> Mapping[str, int]:
        """How many keys were asked for, by outcome: found, not_found, ambiguous, invalid, transient."""
        ...

    @property
    def unusable(self) -> Sequence[str]:
        """The parts that cannot be used as they are now (batch files, records of a topic), by name, in order."""
        ...

    async def start(self) -> None:
        """Make the source ready to answer; raises ConfigurationError if it never can (no such folder)."""
        ...

    async def find(self, keys: Sequence[ExpectationsKey]) -> Mapping[ExpectationsKey, Answer]:
        """Answer every key of a slice at once.

        A key that can never be answered maps to the Poison for its dead letter. Raises Transient if the source cannot
        be asked now; then nothing of the slice may be decided.
        """
        ...

    def trouble(self) -> str | None:
        """Say why look-ups cannot be answered at the moment, or None: readiness asks."""
        ...

    async def stop(self) -> None:
        """Release what start() took; may be called twice."""
        ...
