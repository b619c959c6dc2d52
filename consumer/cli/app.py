"""The program `safe` and its groups of commands, and how a command comes to its settings."""
# ruff: noqa: PLC0415

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from consumer import __version__
from consumer.cli.option_groups import grouped
from consumer.cli.options import Once
from consumer.errors import ConfigurationError

if TYPE_CHECKING:
    from consumer.settings import Loaded

_EXAMPLES: Final = """Examples:

\b
  safe demo                                             see it run, without Kafka
  safe example story .                                  copy six test cases and two runs, to try commands on
  safe topics create --bootstrap-servers broker:9092    create the topics
  safe worker --bootstrap-servers broker:9092 --expectations ./cases
  safe score -i run.json -t ./test-cases -o report.json
  safe gate report.json --min-pass-rate 0.8             in CI: exit 1 below 80 %
  safe publish run.json --test-dir ./test-cases         send a report's outputs as events
  safe config show                                      each setting and where it came from

A flag beats its environment variable (SAFE_V0_…), which beats its key in safe.config.json."""

app = typer.Typer(
    name="safe",
    help="Score LLM outputs for clinical review with SAFE v0: as they arrive in Kafka, or from files.",
    epilog=_EXAMPLES,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
topics = typer.Typer(help="Create the topics that the worker needs.", rich_markup_mode=None)
config = typer.Typer(help="Show the settings and where they come from.", rich_markup_mode=None)
app.add_typer(topics, name="topics")
app.add_typer(config, name="config")
dead_letters = typer.Typer(help="List and show dead letters, and send them again.", rich_markup_mode=None)
app.add_typer(dead_letters, name="dead-letters")
offsets = typer.Typer(help="Show where workers continue to read, and change it.", rich_markup_mode=None)
app.add_typer(offsets, name="offsets")


@app.callback(invoke_without_command=True)
def safe(
    *,
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Print the version or, if no command is given, the help."""
    if version:
        typer.echo(f"safe {__version__}")
        raise typer.Exit
    _help_without_command(context)


@topics.callback(invoke_without_command=True)
@config.callback(invoke_without_command=True)
@dead_letters.callback(invoke_without_command=True)
@offsets.callback(invoke_without_command=True)
def _help_without_command(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def command(
    group: typer.Typer, short_help: str | None = None, name: str | None = None, cls: type[Once] = Once
) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Make a function a command; a parameter whose type is a NamedTuple is a group of options."""

    def registered(function: Callable[..., int | None]) -> Callable[..., int | None]:
        group.command(name, cls=cls, short_help=short_help)(grouped(function))
        return function

    return registered


def load(**flags: object) -> "Loaded":
    from consumer.settings import load

    return load(flags)


def load_for_kafka(**flags: object) -> "Loaded":
    """Load settings that name a cluster, patch the client, and configure logging before the client logs anything."""
    from consumer.kafka.patches import install_patches
    from consumer.telemetry import logs

    loaded = load(**flags)
    loaded.require("kafka_bootstrap_servers")
    install_patches(loaded.settings)
    logs.configure(loaded.settings.log_level, loaded.settings.log_format)
    return loaded


def test_folder(given: Path | None, loaded: "Loaded") -> Path:
    folder = given or loaded.settings.expectations_folder
    if folder is None:
        raise ConfigurationError(
            "no folder of test cases was given: name one with --test-dir DIR, or set SAFE_V0_EXPECTATIONS"
        )
    return folder
