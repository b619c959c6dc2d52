"""What sources of expectations do alike with what they have found: prepare it once, count how keys were answered."""

from collections.abc import Iterable, Mapping, Sequence

from consumer.errors import Poison
from consumer.expectations.port import ExpectationsKey, FoundExpectations
from safe_core import Expectations, PreparedExpectations, TestCase, prepare

CACHED_ANSWERS = 30_000
"""Each takes up to some 4 KB: its key, its test case, and what scoring prepares of it."""

Answer = FoundExpectations | Poison


def no_requests() -> dict[str, int]:
    """Counts of keys by outcome, all 0."""
    return dict.fromkeys(("found", "not_found", "ambiguous", "invalid", "transient"), 0)


def count(requests: dict[str, int], answers: Iterable[Answer]) -> None:
    """Count each answer under its outcome."""
    for answer in answers:
        outcome = answer.reason.removeprefix("expectations_") if isinstance(answer, Poison) else "found"
        requests[outcome] += 1


def take_known(
    keys: Sequence[ExpectationsKey],
    known: Mapping[ExpectationsKey, FoundExpectations],
    answers: dict[ExpectationsKey, Answer],
) -> list[ExpectationsKey]:
    """Answer what was answered before and has not changed since; returns the rest."""
    missed = []
    for key in keys:  # nothing but look-ups: a slice has thousands
        answer = known.get(key)
        if answer is None:
            missed.append(key)
        else:
            answers[key] = answer
    return missed


class Preparer:
    """Prepares equal expectations once, and remembers a limited number of them."""

    def __init__(self, most: int = CACHED_ANSWERS) -> None:
        self._most = most
        self._prepared: dict[Expectations, PreparedExpectations] = {}

    def found(self, case: TestCase, *, expected_cases: int | None, in_batch: bool) -> FoundExpectations:
        """Give a test case as a source answers it."""
        return FoundExpectations(
            prepared=self._prepare(case.expectations),
            concern_id=case.concern_id,
            archetype=case.archetype,
            metric_id=case.metric_id,
            expected_cases=expected_cases,
            in_batch=in_batch,
        )

    def _prepare(self, expectations: Expectations) -> PreparedExpectations:
        prepared = self._prepared.get(expectations)
        if prepared is None:
            if len(self._prepared) >= self._most:
                self._prepared.clear()
            prepared = self._prepared[expectations] = prepare(expectations)
        return prepared
