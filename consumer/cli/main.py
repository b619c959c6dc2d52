"""Where the program starts: whatever happens in a command, an exit code and at most one sentence of error."""
# ruff: noqa: PLC0415

import errno
import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial

import typer

from consumer.cli import (
    completion,
    dead_letter_commands,
    judge_commands,
    kafka_commands,
    offline_commands,
    offset_commands,
    reference_commands,
)
from consumer.cli.app import app
from consumer.errors import SafeError
from consumer.exit_codes import EXIT_BROKEN_PIPE, EXIT_ERROR, EXIT_INTERRUPTED, EXIT_OK

__all__ = [
    "app",
    "dead_letter_commands",
    "judge_commands",
    "kafka_commands",
    "main",
    "offline_commands",
    "offset_commands",
    "reference_commands",
]


_command = cache(partial(typer.main.get_command, app))
"""Makes the commands, once for all calls in a process."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    command = _command()
    words = list(sys.argv[1:] if args is None else args)
    if completion.is_asked_for():
        completion.complete(command)
    _prepare_output()
    try:
        # Not command.main(): that one answers a broken pipe with 1, which here is a verdict.
        with command.make_context("safe", words[:]) as context:
            code = command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as leaving:
        return leaving.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has gone, as in `safe config show | head -1`; the interpreter's own flush must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 (the outer edge: whatever it is, the caller gets a sentence and a code)
        _explain(error, words)
        return EXIT_ERROR
    return code if isinstance(code, int) else EXIT_OK


def _prepare_output() -> None:
    """Do not fail because a terminal lacks UTF-8, or because the shell has closed standard output (`>&-`)."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - as long as the process
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _explain(error: Exception, words: Sequence[str]) -> None:
    from consumer.settings import debug_is_asked_for
    from consumer.telemetry.logs import describe, exception_lines, raised_at
    from consumer.text import printable

    more: list[str] = []
    if isinstance(error, SafeError):
        sentence = str(error)
    elif isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG}:
        # Code that writes a file names it in its error; what is left is the output that the shell has opened.
        sentence = f"standard output cannot be written: {error.strerror}"
        sys.stdout = None  # else the interpreter would complain once more when it ends
    elif isinstance(error, typer.TyperException):
        sentence = _usage_problem(error)
    else:  # a defect, whose message may quote an input: only its type and its frames are shown
        sentence = f"unexpected {describe(error)} at {raised_at(error)}; SAFE_V0_LOG_LEVEL=debug shows the traceback"
        more = exception_lines(error) if debug_is_asked_for() else []
    with suppress(OSError, ValueError):  # an stderr that is full or closed must not turn 3 into the shell's 1
        if _is_a_worker_that_logs_json(words):
            _log_the_end(sentence, more)
        else:
            typer.echo("\n".join([f"safe: error: {printable(sentence)}", *more]), err=True)


def _is_a_worker_that_logs_json(words: Sequence[str]) -> bool:
    """Tell whether these words start a worker whose log was asked to be JSON, here or in the settings."""
    from consumer.settings import json_log_is_asked_for
    from consumer.telemetry import logs

    if words[:1] != ["worker"]:
        return False
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word.partition("=")[0] == "--log-format":
            return "json" in (following, word.partition("=")[2])
    return logs.writes_json() or json_log_is_asked_for()


def _log_the_end(sentence: str, more: Sequence[str]) -> None:
    """Write why a worker ends as a line of its log."""
    import structlog

    from consumer.telemetry import logs

    logs.configure("info", "json")
    frames = {"exception": list(more)} if more else {}
    structlog.get_logger("safe.worker").error("the worker ends", why=sentence, exit_code=EXIT_ERROR, **frames)


def _usage_problem(error: typer.TyperException) -> str:
    # typer exports no name for the subclasses that know their command and format their message.
    problem: str = getattr(error, "format_message", error.__str__)()
    problem = (
        re.sub(r" \(Possible options: (.*)\)$", r". Did you mean \1?", " ".join(problem.split()))
        .replace(": Value error, ", ": ")
        .replace(": Input should be ", ": must be ")
        .replace(", unable to parse string as an integer", "")
    )
    command = getattr(getattr(error, "ctx", None), "command_path", "safe")
    if "unexpected extra argument" in problem and ".json" in problem:
        problem += "; files are given by options; if the shell expanded a pattern, quote it ('stroke_*')"
    return f"{problem.removesuffix('.')}; see {command} --help"
