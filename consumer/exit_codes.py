"""What the exit codes of `safe` mean; each command's own are in its help (contract.md, "Exit codes")."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from safe_core import Label

EXIT_OK: Final = 0
EXIT_FAIL: Final = 1
"""A verdict: a case fails, a gate is not passed, or a recomputation differs."""
EXIT_REVIEW: Final = 2
"""A verdict: no case fails, but one needs review."""
CODE_OF_LABEL: Final["Mapping[Label, int]"] = {"Pass": EXIT_OK, "Review": EXIT_REVIEW, "Fail": EXIT_FAIL}
CODE_OF_GATE: Final[Mapping[bool, int]] = {True: EXIT_OK, False: EXIT_FAIL}
"""By whether the gate is passed."""

EXIT_ERROR: Final = 3
"""Whatever could not be done; standard error says why in one sentence."""
EXIT_FORCED: Final = 1
"""A worker that was told a second time to stop, and did not finish its work."""
EXIT_SIGNALLED: Final = 128
"""Added to the number of the signal that ended a command."""
EXIT_INTERRUPTED: Final = EXIT_SIGNALLED + 2  # SIGINT
EXIT_BROKEN_PIPE: Final = EXIT_SIGNALLED + 13  # SIGPIPE
