"""Completion of commands and options in a shell: the script for it, and what it asks this program."""

import os
from typing import Annotated, Any, Final, Literal, NoReturn

import typer

from consumer.cli import options
from consumer.cli.app import app

_VARIABLE: Final = "_SAFE_COMPLETE"
"""Set by the script when it asks."""


@app.command(cls=options.Once, short_help="Print a script that completes commands in your shell.")
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print a script that completes commands, options and their values in your shell.

    Examples:

    \b
      source <(safe completion bash)                                   in ~/.bashrc
      source <(safe completion zsh)                                    in ~/.zshrc, after compinit
      safe completion fish > ~/.config/fish/completions/safe.fish      once
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # noqa: PLC0415

    typer.echo(get_completion_script(prog_name="safe", complete_var=_VARIABLE, shell=shell))


def is_asked_for() -> bool:
    """Whether a shell asks what may follow, rather than a person for a command."""
    return _VARIABLE in os.environ


def complete(command: Any) -> NoReturn:  # noqa: ANN401 - typer exports no name for the class of commands
    """Print what may follow, and leave."""
    from typer.completion import completion_init  # type: ignore[attr-defined]  # noqa: PLC0415

    completion_init()
    command.main(prog_name="safe", complete_var=_VARIABLE)
    raise SystemExit(0)
