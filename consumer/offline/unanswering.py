"""What to say of outputs that answer no selected test case, and of test cases that no output answers."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from consumer.files.outputs import Entry
from consumer.offline.selection import WhyNone
from consumer.text import count_of, named, visible
from safe_core import MAX_ID_LENGTH

_LISTED: Final = 50
_NAMED: Final = 3


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
