"""The outputs that answer no selected test case, and what a person must know of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from consumer.files.outputs import Entry
from consumer.text import count_of, named, visible
from safe_core import MAX_ID_LENGTH

_NAMED: Final = 3


@dataclass(slots=True)
class Unanswering:
    """How many there are, and a few of their names; memory stays bounded however many come."""

    elsewhere: int = 0  # those whose case is in a batch of the folder that was not selected
    unknown: int = 0
    test_ids: dict[str, None] = field(default_factory=dict)  # of the unknown ones
    concerns: dict[str, None] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many outputs answer no selected test case."""
        return self.elsewhere + self.unknown

    def note(self, entry: Entry, *, is_elsewhere: bool) -> None:
        """Count one."""
        if is_elsewhere:
            self.elsewhere += 1
        else:
            self.unknown += 1
            _remember(self.test_ids, entry.test_id)
        _remember(self.concerns, entry.concern_id)

    def remarks(self) -> Iterator[str]:
        """Say how many outputs are ignored, and why."""
        if self.elsewhere:
            what = "for a test case" if self.elsewhere == 1 else "for test cases"
            yield f"{count_of(self.elsewhere, 'output')} ignored: {what} of the folder that is not selected"
        if self.unknown:
            its = "its" if self.unknown == 1 else "their"
            more = " …" if self.unknown > len(self.test_ids) else ""
            listed = named(self.test_ids, _NAMED, MAX_ID_LENGTH)
            yield f"{count_of(self.unknown, 'output')} ignored, no test case has {its} test_id: {listed}{more}"

    def refusal(self, concern_id: str) -> str:
        """Say that nothing at all answers the selected test cases, and what the outputs are about."""
        concerns = f"concern {named(self.concerns, _NAMED, MAX_ID_LENGTH)}" if self.concerns else "no concern"
        ids = f", test_ids such as {named(self.test_ids, _NAMED, MAX_ID_LENGTH)}" if self.test_ids else ""
        return (
            f"no output answers any selected test case of concern {visible(concern_id)}: the outputs "
            f"({self.count} in all) name {concerns}{ids}. Is --outputs the right file, and are --concern and "
            "--batch the right choice? To score all cases as empty, give --allow-empty"
        )


def _remember(names: dict[str, None], name: str | None) -> None:
    if name is not None and len(names) < _NAMED:
        names[name] = None
