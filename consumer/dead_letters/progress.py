"""How far a command has read, for someone waiting at a terminal."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress

from consumer.kafka import Span


@contextmanager
def reading(spans: Sequence[Span], *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error while spans are read; `quiet` where rows on the same terminal tell as much."""
    console = Console(stderr=True)
    shown = console.is_terminal and not (quiet and sys.stdout.isatty())
    # Else what is printed to standard output would go to the bar's console.
    bar = Progress(console=console, disable=not shown, transient=True, redirect_stdout=False, redirect_stderr=True)
    with bar:
        task = bar.add_task("dead letters", total=sum(span.end - span.first for span in spans))
        yield lambda records: bar.advance(task, records)
