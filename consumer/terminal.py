"""What commands print with: consoles, messages, progress bars."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from rich.console import Console
from rich.progress import Progress, TaskID
from typing_extensions import override

from consumer.text import count_of, printable


class PipedConsole(Console):
    """A console that lets a closed pipe through to the code that sets the exit code; rich's own would exit with 1."""

    @override
    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - called while the BrokenPipeError is being treated


def result_console() -> Console:
    """Standard output, for the results of a command; rich does not guess what to colour, nor read names as markup."""
    return PipedConsole(highlight=False, markup=False, emoji=False)


def message_console() -> Console:
    """Standard error for messages: each is one line, printed as it is."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_message(*sentences: str) -> None:
    """Print what is worth knowing but no result to standard error; that nobody can read it changes no verdict."""
    for sentence in sentences:
        with suppress(OSError, ValueError):
            print(f"safe: {printable(sentence)}", file=sys.stderr)


def print_json(document: object) -> None:
    """Print a document, escaped throughout: the encoding of the output may lack characters that it holds."""
    print(json.dumps(document, indent=2))


_LONG_CHARACTERS: Final = 200_000
"""Of narratives, which take some seconds."""


class Bar:
    """A progress bar: calling it advances it; without `progress`, nobody sees it."""

    def __init__(self, progress: Progress | None = None, task: TaskID = TaskID(0)) -> None:  # noqa: B008 (a number)
        self._progress, self._task = progress, task

    def __call__(self, steps: int) -> None:
        if self._progress is not None:
            self._progress.advance(self._task, steps)

    @property
    def is_seen(self) -> bool:
        """Whether anybody sees it."""
        return self._progress is not None and not self._progress.disable

    def says(self, text: str) -> None:
        """Show another text beside it."""
        if self._progress is not None:
            self._progress.update(self._task, description=text)

    def begins(self, text: str, total: int, characters: int = 0) -> None:
        """Begin again at zero with other work; if it is long and nobody sees the bar, say so in a line."""
        if self._progress is None:
            return
        self._progress.reset(self._task, total=total, description=text)
        if self._progress.disable and characters > _LONG_CHARACTERS:
            print_message(f"{text} {count_of(total, 'case')}")

    def explaining(self, total: int) -> None:
        """Begin again at zero with the explanation of this many cases."""
        self.begins("explaining", total)


NO_BAR: Final = Bar()


@contextmanager
def progress_bar(console: Console, text: str, total: int | None, *, is_hidden: bool = False) -> Iterator[Bar]:
    """Show a bar while something is done, if the console is a terminal; gives the bar, to advance it."""
    # Without redirect_stdout=False, what is printed to standard output would go to the bar's console.
    disable = is_hidden or not console.is_terminal
    with Progress(console=console, disable=disable, transient=True, redirect_stdout=False) as progress:
        task = progress.add_task(text, total=total)
        yield Bar(progress, task)
