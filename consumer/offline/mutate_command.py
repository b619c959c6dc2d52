"""`safe mutate` from beginning to end: what it alters, prints, and exits with."""

from pathlib import Path
from typing import Literal

from consumer.exit_codes import EXIT_OK
from consumer.offline.mutate import mutate
from consumer.offline.pages.console_layout import Layout
from consumer.offline.pages.mutants import table
from consumer.terminal import message_console, print_json, print_message, progress_bar, result_console
from safe_core import Policy


def mutate_command(
    policy: Policy,
    test_dir: Path,
    batch: str,
    concern: str | None,
    *,
    format_: Literal["console", "json"],
    with_caught: bool,
) -> int:
    """Alter the narratives, print what survived, and give the exit code; raises ConfigurationError."""
    with progress_bar(message_console(), "altering", None) as bar:
        mutation = mutate(policy, test_dir, batch, concern, bar)
    print_message(*mutation.remarks())
    if format_ == "json":
        print_json(mutation.document(with_caught=with_caught))
    else:
        layout = Layout.of(result_console())
        layout.print(table(mutation, layout, with_caught=with_caught))
    return EXIT_OK
