"""Scoring with a memory: what an output scores depends on which terms it holds, and on nothing else that it says.

Cases are answered again and again, run after run, and mostly with one of a few sets of terms. Of each set that was met
lately, the scores and the bytes that are written of them are remembered. Searching is done for every output.
"""

from typing import NamedTuple

from msgspec import Raw

from consumer.wire.scored_record import encode_result_of
from safe_core import (
    CaseScore,
    Hits,
    JudgedBy,
    Output,
    Policy,
    PreparedExpectations,
    hits_in,
    hits_of_failure,
    score_of_hits,
)
from safe_core.remembered import Remembered

_MOST_REMEMBERED = 8_192
_LONGEST_REMEMBERED = 4_096  # bytes


class EncodedScore(NamedTuple):
    """The scores of one case, and the `result` of its scored record, which says the same."""

    case: CaseScore
    result: Raw


class ScoringMemory:
    """Scores outputs under one policy, and remembers what it did; all partitions of a worker share one memory."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._met: Remembered[tuple[str, JudgedBy, str, Hits], EncodedScore] = Remembered(_MOST_REMEMBERED)

    def score(
        self, test_id: str, by: JudgedBy, expected: PreparedExpectations, output: Output, *, failed: bool = False
    ) -> EncodedScore:
        """Score an output, as `safe_core.score` does; of one that `failed`, nothing is looked at."""
        hits = hits_of_failure(expected) if failed else hits_in(output, expected)
        key = (test_id, by, expected.digest, hits)
        return self._met.get(key) or self._worked_out(key, expected)

    def _worked_out(self, key: tuple[str, JudgedBy, str, Hits], expected: PreparedExpectations) -> EncodedScore:
        test_id, by, _, hits = key
        case = score_of_hits(expected, hits, self._policy.rules_for(by.metric_id, by.archetype))
        encoded = EncodedScore(case, encode_result_of(test_id, by.archetype, case))
        if len(bytes(encoded.result)) <= _LONGEST_REMEMBERED:
            self._met.keep(key, encoded)
        return encoded
