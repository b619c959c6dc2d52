"""Whether a comparison lets a change pass: no case got worse or lost, and the mean composite did not drop too far."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from consumer.errors import ConfigurationError
from consumer.offline.compare import Comparison
from consumer.offline.gate import Decision


@dataclass(frozen=True, slots=True)
class ComparisonGate:
    """How much may be worse: cases with a worse label, cases lost, the mean composite; None asks for nothing.

    What is exactly as bad as allowed passes. Raises ConfigurationError for a drop that is no fraction.
    """

    max_regressions: int | None = None
    allow_lost: int | None = None
    max_drop: float | None = None

    def __post_init__(self) -> None:
        drop = self.max_drop
        if drop is not None and not 0 <= drop <= 1:
            more = "; 5 percent is 0.05" if 1 < drop < math.inf else ""
            raise ConfigurationError(f"--fail-on-score-drop {drop} is not a fraction from 0 to 1{more}")

    @classmethod
    def asked(
        cls, *, on_regression: bool, max_regressions: int | None, allow_lost: int | None, max_drop: float | None
    ) -> Self | None:
        """Read the options; None where none is given. Raises ConfigurationError for one that needs another."""
        if on_regression:
            return cls(max_regressions or 0, allow_lost or 0, max_drop)
        for option, value in (("--max-regressions", max_regressions), ("--allow-lost", allow_lost)):
            if value is not None:
                raise ConfigurationError(f"{option} is for --fail-on-regression: give that too")
        return None if max_drop is None else cls(max_drop=max_drop)

    def decide(self, comparison: Comparison) -> Decision:
        """Decide; p has no say."""
        return Decision.by(self._rules(comparison))

    def _rules(self, comparison: Comparison) -> Iterator[tuple[bool, str]]:
        """Yield each rule: whether it holds, and what it says."""
        counts = (
            (comparison.regressions, "case{s} with a worse label", "--max-regressions", self.max_regressions),
            (len(comparison.lost), "lost case{s}", "--allow-lost", self.allow_lost),
        )
        for count, said, option, most in counts:
            if most is not None:
                what = said.format(s="" if count == 1 else "s")
                yield count <= most, f"{count} {what}, {option} allows {most}"
        if self.max_drop is not None:
            yield _drop_rule(comparison.mean_drop, self.max_drop)


def _drop_rule(drop: float, most: float) -> tuple[bool, str]:
    holds = drop <= most
    moved = f"dropped by {drop:.2f}" if drop > 0 else f"rose by {-drop:.2f}" if drop < 0 else "is the same"
    how = "is not more" if holds else "is more"
    return holds, f"the mean composite {moved}, which {how} than --fail-on-score-drop {most}"
