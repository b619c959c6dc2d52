"""The command line."""

from consumer.cli.commands import main

__all__ = ["main"]
