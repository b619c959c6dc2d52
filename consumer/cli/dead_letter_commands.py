"""`safe dead-letters list`, `show` and `replay`.

What a command needs is imported when it runs, so that help is printed at once.
"""
# ruff: noqa: PLC0415

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from consumer.cli import option_groups as groups
from consumer.cli import options
from consumer.cli.app import command, dead_letters, load_for_kafka
from consumer.errors import ConfigurationError
from consumer.wire.times import now_ms

if TYPE_CHECKING:
    from consumer.dead_letters.selection import Selection


@command(dead_letters, "List dead letters: why, where, when.", name="list")
def list_(
    *,
    chosen: groups.LetterOptions,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="List at most N dead letters, ordered by partition and offset."),
    ] = None,
    format_: Annotated[
        options.ShowFormat,
        typer.Option("--format", "-f", help="console is for people; json prints one object on each line."),
    ] = "console",
    summary: Annotated[bool, typer.Option("--summary", help="Only print how many there are for each reason.")] = False,
    cluster: groups.ClusterOptions,
) -> int:
    """List dead letters: why, where and when they failed, but nothing of their contents.

    The list has the dead letters of all consumer groups; with --format json, each names its group.

    Examples:

    \b
      safe dead-letters list --since 2h
      safe dead-letters list --reason expectations_not_found --format json | jq -r .letter
    """
    from consumer.dead_letters.list import ListRequest, list_letters
    from consumer.dead_letters.selection import read_selection

    selection = read_selection((), *chosen, now_ms=now_ms())
    loaded = load_for_kafka(**cluster.flags)
    request = ListRequest(selection, format_, limit, summary_alone=summary)
    return asyncio.run(list_letters(loaded.settings, request))


@command(dead_letters, "Show one dead letter.", name="show")
def show_letter(
    *,
    letter: Annotated[
        str,
        typer.Argument(
            metavar="LETTER",
            help="PARTITION/OFFSET as `safe dead-letters list` prints it, or TOPIC/PARTITION/OFFSET of its source.",
        ),
    ],
    include_value: Annotated[
        bool, typer.Option("--include-value", help="Also show key, headers and value; they may contain patient data.")
    ] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="With --include-value: write the value's bytes and nothing else.")
    ] = False,
    format_: options.ConsoleOrJson = "console",
    cluster: groups.ClusterOptions,
) -> int:
    """Show one dead letter; its contents, which may be patient data, are shown only with --include-value.

    Examples:

    \b
      safe dead-letters show 3/41
      safe dead-letters show factory.generation.output/3/1207 --include-value --raw > event.json
    """
    from consumer.dead_letters import show as showing
    from consumer.wire.dead_letter import read_name

    request = showing.ShowRequest(read_name(letter), format_, include_value=include_value, raw=raw)
    loaded = load_for_kafka(**cluster.flags)
    return asyncio.run(showing.show_letter(loaded.settings, request))


_Every = Annotated[
    bool, typer.Option("--all", help="Send all dead letters; without this option, you must select some.")
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would be sent.")]
_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation; SAFE asks only at a terminal.")]


@command(dead_letters, "Send dead letters back to the topics that they came from.")
def replay(
    *,
    letters: options.Letters = None,
    chosen: groups.LetterOptions,
    every: _Every = False,
    dry_run: _DryRun = False,
    rate: Annotated[int, typer.Option(metavar="N", min=1, help="Send at most this many per second.")] = 500,
    yes: _Yes = False,
    group: groups.GroupOptions,
) -> int:
    """Send dead letters back to the topics that they came from, once the cause (such as a missing test case) is fixed.

    Each is sent unchanged, with its original timestamp: it never replaces a newer output, and sending it twice
    changes no summary (subscribers see its result again). A record that failed because of its own bytes (with a
    reason such as invalid_json) fails again. The dead letter itself stays in its topic until retention removes it.

    Dead letters of other consumer groups are skipped; if you name such a dead letter, it is not sent either, and the
    exit code is 1. To send them, choose their group with --group-id. Exits with 0 if all that were chosen were sent,
    1 if some could not be sent or do not exist (they are named), 3 for an error.

    Examples:

    \b
      safe dead-letters replay --reason expectations_not_found --since 1d --dry-run
      safe dead-letters replay 3/41 3/42
    """
    from consumer.dead_letters.replay import count_letters, replay_letters
    from consumer.text import count_of

    selection = _chosen(letters or (), chosen, every=every)
    loaded = load_for_kafka(**group.flags)
    if sys.stdin.isatty() and not (yes or dry_run):
        count = asyncio.run(count_letters(loaded.settings, selection))
        _ask(f"Send {count_of(count, 'dead letter')} again?")
    return asyncio.run(replay_letters(loaded.settings, selection, per_second=rate, dry_run=dry_run))


def _chosen(letters: Sequence[str], chosen: groups.LetterOptions, *, every: bool) -> "Selection":
    from consumer.dead_letters.selection import Selection, read_selection

    selection = read_selection(letters, *chosen, now_ms=now_ms())
    if letters and every:
        raise ConfigurationError("--all and the names of dead letters exclude each other: give one or the other")
    if selection == Selection() and not every:
        raise ConfigurationError(
            "no dead letters were chosen: name some, choose them by options such as --reason or --since, or give --all"
        )
    return selection


def _ask(question: str) -> None:
    """Ask at the terminal; typer.confirm would write to standard output, too."""
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise typer.Abort
