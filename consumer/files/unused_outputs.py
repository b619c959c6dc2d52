"""What to say of outputs that do not count, of test cases that no output answers, and of keys that nothing reads."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple

from consumer.errors import ConfigurationError
from consumer.files.outputs import Entry
from consumer.text import count_of, named, quoted, visible
from consumer.wire.times import shown_time
from safe_core import MAX_ID_LENGTH
from safe_core.misspelt_keys import SCORED_FIELDS

_LISTED: Final = 50
_NAMED: Final = 3
_DAY_MS: Final = 86_400_000
_KINDS: Final = 10

WhyNone = Literal["not_selected", "other_concern", "unknown"]
"""Why an entry answers no selected test case: its test case was not selected, or is of another concern, or is none."""


def without_output(missing: int, cases: int) -> str:
    """Say how many of some test cases no output answers, at least one."""
    each = "has no output; it is" if missing == 1 else "have no output; each is"
    return f"{missing} of {count_of(cases, 'test case')} {each} scored as if its output were empty"


@dataclass(slots=True)
class Unanswering:
    """How many outputs answer no selected test case, and a few names: memory stays bounded however many come."""

    counts: Counter[WhyNone] = field(default_factory=Counter)
    test_ids: dict[str, None] = field(default_factory=dict)  # of the unknown ones
    concerns: dict[str, None] = field(default_factory=dict)
    other_concerns: dict[str, None] = field(default_factory=dict)

    def note(self, entry: Entry, why: WhyNone) -> None:
        """Count one."""
        self.counts[why] += 1
        _remember(self.concerns, entry.concern_id, _NAMED)
        if why == "unknown":
            _remember(self.test_ids, entry.test_id, _LISTED + 1)
        elif why == "other_concern":
            _remember(self.other_concerns, entry.concern_id, _NAMED)

    def remarks(self) -> Iterator[str]:
        """Say how many outputs are ignored, and why."""
        if count := self.counts["not_selected"]:
            what = "a test case that is in the folder but" if count == 1 else "test cases that are in the folder but"
            yield f"{count_of(count, 'output')} ignored: for {what} not selected"
        if count := self.counts["other_concern"]:
            it_is_for, names = (
                ("it is for a selected test case", "the output names")
                if count == 1
                else ("they are for selected test cases", "the outputs name")
            )
            listed = named(self.other_concerns, _NAMED, MAX_ID_LENGTH)
            yield f"{count_of(count, 'output')} ignored: {it_is_for}, but {names} another concern: {listed}"
        if count := self.counts["unknown"]:
            yield f"{count_of(count, 'output')} ignored: no test case has {self._unknown(count)}"

    def _unknown(self, outputs: int) -> str:
        ids = len(self.test_ids)
        listed = named(self.test_ids, _NAMED, MAX_ID_LENGTH)
        if ids == 1:
            return f"{'its' if outputs == 1 else 'their'} test_id: {listed}"
        if ids <= _LISTED:
            return f"their {ids} test_ids: {listed}"
        return f"their test_ids (more than {_LISTED}): {named(self._a_few_test_ids, _NAMED, MAX_ID_LENGTH)} …"

    @property
    def _a_few_test_ids(self) -> list[str]:
        return [*islice(self.test_ids, _NAMED)]

    def refusal(self, concern_id: str) -> str:
        """Say that nothing at all answers the selected test cases, and what the outputs are about."""
        concerns = f"concern {named(self.concerns, _NAMED, MAX_ID_LENGTH)}" if self.concerns else "no concern"
        few = named(self._a_few_test_ids, _NAMED, MAX_ID_LENGTH)
        ids = f", test_ids such as {few}" if few else ""
        return (
            f"no output answers any selected test case of concern {visible(concern_id)}: the outputs "
            f"({self.counts.total()} in all) name {concerns}{ids}. Is --outputs the right file, and are "
            "--concern and --batch the right choice? To score all cases as empty, give --allow-empty"
        )


def _remember(names: dict[str, None], name: str | None, most: int) -> None:
    if name is not None and len(names) < most:
        names[name] = None


def passed_over_line(places: Collection[str]) -> str:
    """Say which entries of reports give way to others that are surer to be made from the case's own narrative."""
    is_one = len(places) == 1
    was = "1 output is" if is_one else f"{len(places)} outputs are"
    other = "a different output" if is_one else "for each of them a different output"
    why = f"{other} for the same case is more likely to have come from the case's own narrative"
    return f"{was} passed over, because {why}: {named(places, _LISTED, MAX_ID_LENGTH + 40)}"


# --- dates ------------------------------------------------------------------------------------------------------------


class _DatedEvent(NamedTuple):
    event_time: int
    test_id: str
    path: Path
    place: str


class NewestEvents:
    """The newest two of all events that are noted: one far ahead of all others must have a wrong date."""

    def __init__(self) -> None:
        self._newest: list[_DatedEvent] = []

    def note(self, event_time: int, entry: Entry, path: Path) -> None:
        """Take in one event of a file, with its time (ms since 1970)."""
        if len(self._newest) < 2 or event_time > self._newest[1].event_time:
            event = _DatedEvent(event_time, entry.test_id, path, entry.place)
            self._newest = sorted((*self._newest, event), key=lambda each: -each.event_time)[:2]

    def remark(self) -> str | None:
        """Say that the newest one is more than a day ahead of the others: it decides its case, whatever comes later."""
        if len(self._newest) < 2:
            return None
        newest, other = self._newest
        days, rest = divmod(newest.event_time - other.event_time, _DAY_MS)
        if (days, rest) <= (1, 0):
            return None
        where = f"{visible(str(newest.path))}, {newest.place}"
        return (
            f"{visible(newest.test_id)} ({where}): generated_at is {shown_time(newest.event_time)}, "
            f"{count_of(days, 'day')} after the newest of all other events. If that is wrong, the event hides later "
            "ones of its test case"
        )


# --- keys -------------------------------------------------------------------------------------------------------------


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
