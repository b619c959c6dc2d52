"""What the exit codes of `safe` mean; each command's own are in its help (contract.md, "Exit codes")."""

from typing import Final

EXIT_OK: Final = 0
EXIT_FAIL: Final = 1
"""A verdict: a case fails, a gate is not passed, or a recomputation differs."""
EXIT_REVIEW: Final = 2
"""A verdict: no case fails, but one needs review."""
EXIT_ERROR: Final = 3
"""Whatever could not be done; standard error says why in one sentence."""
EXIT_FORCED: Final = 1
"""A worker that was told a second time to stop, and did not finish its work."""
EXIT_SIGNALLED: Final = 128
"""Added to the number of the signal that ended a command."""
EXIT_INTERRUPTED: Final = EXIT_SIGNALLED + 2  # SIGINT
EXIT_BROKEN_PIPE: Final = EXIT_SIGNALLED + 13  # SIGPIPE
