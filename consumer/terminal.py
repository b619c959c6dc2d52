"""Where a command prints for people."""

from rich.console import Console
from typing_extensions import override


class PipedConsole(Console):
    """A console that lets a closed pipe through to the code that sets the exit code; rich's own would exit with 1."""

    @override
    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - called while the BrokenPipeError is being treated
