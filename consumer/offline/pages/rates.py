"""Pass rates as every page shows them: with the interval in which the rate of more such cases may lie."""

from typing import Final

from consumer.offline.pages.words import percent
from safe_core.intervals import wilson

CONFIDENCE: Final = 0.95

BRACKETS: Final = "In brackets: 95 % interval (Wilson), where the pass rate of many more such cases may lie."
"""What a page says once of its brackets."""


def pass_rate(passes: int, cases: int) -> str:
    """Give "28.6% (8.2–64.1%)", each number as percent() shows it; without cases "0% (0–100%)"."""
    low, high = wilson(passes, cases, CONFIDENCE)
    share = passes / cases if cases else 0.0
    return f"{percent(share)} ({percent(low).removesuffix('%')}–{percent(high)})"


def rate_of(share: float, cases: int) -> str:
    """The same of a rate in a report, which is a whole number of cases divided by all of them."""
    return pass_rate(round(share * cases), cases)
