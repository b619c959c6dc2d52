"""`safe offsets show`, `accept` and `reset`.

What a command needs is imported when it runs, so that help is printed at once.
"""
# ruff: noqa: PLC0415

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from consumer.cli import option_groups as groups
from consumer.cli import options
from consumer.cli.app import command, load_for_kafka, offsets
from consumer.errors import ConfigurationError
from consumer.wire.times import now_ms

if TYPE_CHECKING:
    from consumer.offsets.reset import Goal


@command(offsets, "Show where each partition of the input continues.")
def show(
    *,
    format_: options.ConsoleOrJson = "console",
    group: groups.GroupOptions,
) -> int:
    """Show where each partition of the input continues, whether SAFE committed that, and how far it was scored.

    SCORED_UP_TO is the offset after the newest result: SAFE itself had read at least up to there.

    Example:

    \b
      safe offsets show
    """
    from consumer.offsets.show import show_offsets

    loaded = load_for_kafka(**group.flags)
    return asyncio.run(show_offsets(loaded.settings, format_))


@command(offsets, "Say where to continue after something else committed an offset.")
def accept(
    *,
    partition: options.InputPartitions = None,
    to_last_result: Annotated[
        bool,
        typer.Option("--to-last-result", help="Continue after the newest result, not at the committed offset."),
    ] = False,
    execute: options.Execute = False,
    group: groups.GroupOptions,
) -> int:
    """Say where to continue at offsets that SAFE did not commit; workers may run meanwhile.

    Without --to-last-result, the committed offset is accepted: inputs that were skipped get no result. With it, they
    are scored; inputs after the newest result that had become dead letters become dead letters again.

    Examples:

    \b
      safe offsets accept --to-last-result
      safe offsets accept --to-last-result --execute
      safe offsets accept --partition 3 --execute
    """
    from consumer.offsets.accept import accept_offsets

    loaded = load_for_kafka(**group.flags)
    return asyncio.run(accept_offsets(loaded.settings, partition or (), to_last_result=to_last_result, execute=execute))


@command(offsets, "Have inputs scored again, or skip some; stop all workers first.")
def reset(
    *,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="Continue at the first input there is.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="Skip all inputs that there are now.")] = False,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Continue at the first input with this timestamp or a later one: 2026-03-02T08:00:00Z, or 2h for two "
            "hours ago.",
        ),
    ] = None,
    to_offset: Annotated[int | None, typer.Option(metavar="N", min=0, help="Continue at this offset.")] = None,
    partition: options.InputPartitions = None,
    execute: options.Execute = False,
    group: groups.GroupOptions,
) -> int:
    """Have inputs scored again (a replay), or skip some. Stop all workers first.

    Examples:

    \b
      safe offsets reset --to-datetime 2026-11-01T00:00:00Z
      safe offsets reset --to-datetime 2026-11-01T00:00:00Z --execute
      safe offsets reset --to-offset 500 --partition 0 --execute
    """
    from consumer.offsets.reset import reset_offsets

    goal = _goal(earliest=to_earliest, latest=to_latest, time=to_datetime, offset=to_offset)
    loaded = load_for_kafka(**group.flags)
    return asyncio.run(reset_offsets(loaded.settings, partition or (), goal, execute=execute))


def _goal(*, earliest: bool, latest: bool, time: str | None, offset: int | None) -> "Goal":
    from consumer.dead_letters.selection import moment_of
    from consumer.offsets.reset import Goal

    goals = [
        *([Goal("earliest")] if earliest else []),
        *([Goal("latest")] if latest else []),
        *([] if time is None else [Goal("time", moment_of("--to-datetime", time, now_ms()))]),
        *([] if offset is None else [Goal("offset", offset)]),
    ]
    if len(goals) != 1:
        raise ConfigurationError(
            "say where to continue with exactly one of --to-earliest, --to-latest, --to-datetime and --to-offset"
        )
    return goals[0]
