"""What a run of outputs has under keys that nothing reads: it would be lost in silence."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from consumer.errors import ConfigurationError
from consumer.files.outputs import Entry
from consumer.text import count_of, quoted
from safe_core.misspelt_keys import SCORED_FIELDS

_KINDS: Final = 10


@dataclass(slots=True)
class UnreadKeys:
    """Counts the outputs by the keys that nothing reads, each with the known key that it resembles.

    `elsewhere` counts the unknown keys of entries that have no output where one is read.
    """

    alike: Counter[tuple[str, str]] = field(default_factory=Counter)
    read: int = 0
    unread: int = 0
    elsewhere: Counter[str] = field(default_factory=Counter)

    def note(self, entry: Entry) -> None:
        """Look at one more output."""
        self.alike.update(entry.look_alikes)
        output = entry.engine_output or {}
        if not output.keys().isdisjoint(SCORED_FIELDS):
            self.read += 1
        elif entry.unknown_keys or (output and not entry.output.error_message):  # which says why there is nothing else
            self.unread += 1
            self.elsewhere.update(entry.unknown_keys)

    def remarks(self) -> Iterator[str]:
        """Say which known keys were meant, as far as that can be guessed: a line for each kind."""
        for (key, name), count in self.alike.most_common(_KINDS):
            have = "has" if count == 1 else "have"
            yield f"{count_of(count, 'output')} {have} the key {quoted(key)}, which nothing reads: did you mean {name}?"
        if len(self.alike) > _KINDS:
            yield f"{len(self.alike) - _KINDS} more keys that nothing reads resemble one that is read"

    def _without_output(self) -> Iterator[str]:
        for key, count in self.elsewhere.most_common(1):
            have = "entry has" if count == 1 else "entries have"
            yield f"{count} {have} no engine_output, but {quoted(key)}, which nothing reads"

    def refuse(self) -> None:
        """Raise ConfigurationError if outputs have keys, but none of them any that a criterion reads."""
        if self.unread and not self.read:
            fields, guesses = ", ".join(SCORED_FIELDS), "; ".join((*self.remarks(), *self._without_output()))
            more = f" ({guesses})" if guesses else ""
            raise ConfigurationError(
                f"no output has any of the keys that are scored ({fields}), so every score would be that of an empty "
                f"output{more}"
            )
