"""SAFE in Python: score an output, score a run, read a report. `python -m safe_scorer` is the command `safe`.

The names are loaded when they are first asked for: `safe` starts without them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from consumer.errors import ConfigurationError
    from safe_core import CaseScore, Expectations, Output, Policy
    from safe_scorer.runs import Case, Run, Term, read_report, score, score_run

__all__ = [
    "Case",
    "CaseScore",
    "ConfigurationError",
    "Expectations",
    "Output",
    "Policy",
    "Run",
    "Term",
    "read_report",
    "score",
    "score_run",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module("safe_scorer.runs"), name)


def __dir__() -> list[str]:
    return __all__
