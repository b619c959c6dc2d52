"""Which records of the topics of results and reports are shown, and what else is in them."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import orjson

from consumer.files.batches import chosen
from consumer.text import count_of, named
from consumer.wire.headers import REPORT_TYPE, RESULT_TYPE, Undecodable, text_of
from consumer.wire.keys import parts_of
from consumer.wire.record import Record

_T = TypeVar("_T")
_TYPES: Final = (RESULT_TYPE, REPORT_TYPE)
_NAMED: Final = 20


class Batches:
    """The batches that were asked for; no glob means all. `others` are names of some that were not."""

    def __init__(self, globs: Sequence[str]) -> None:
        self._globs = globs
        self.others: set[str] = set()

    def take(self, batch_id: str) -> bool:
        """Whether a batch was asked for."""
        if not self._globs or any(chosen(glob, [batch_id]) for glob in self._globs):
            return True
        if len(self.others) < _NAMED:
            self.others.add(batch_id)
        return False

    @property
    def asked(self) -> str:
        """What was asked for, in words."""
        return f"of {' or '.join(self._globs)}" if self._globs else "of any batch"

    @property
    def there(self) -> str:
        """Name a few of the batches that were not asked for."""
        return f"; batches there: {named(sorted(self.others), _NAMED)}" if self.others else ""


class Chosen:
    """The records that are shown; `foreign` counts those that SAFE did not write as results or reports."""

    def __init__(self, batches: Batches) -> None:
        self.batches = batches
        self.foreign = 0

    def read(self, record: Record, reading: Callable[[Record], _T]) -> _T | None:
        """Read a record that was chosen; None for any other."""
        try:
            _concern_id, batch_id = parts_of(record.key or b"")
            if text_of(record.headers, "ce_type") in _TYPES:
                return reading(record) if self.batches.take(batch_id) else None
        except (Undecodable, ValueError, KeyError, TypeError):  # somebody else may write to these topics, anything
            pass
        self.foreign += 1
        return None

    def remarks(self, topic: str) -> list[str]:
        """Say what was not shown."""
        if not self.foreign:
            return []
        return [f"ignored {count_of(self.foreign, 'record')} that SAFE did not write to {topic}"]


def cloud_event(record: Record) -> dict[str, Any]:
    """A result or report in the JSON format of CloudEvents 1.0: attributes, and the data."""
    attributes = {
        name.removeprefix("ce_"): content.decode("utf-8", "replace")
        for name, content in record.headers
        if name.startswith("ce_") and content is not None
    }
    return {**attributes, "datacontenttype": "application/json", "data": orjson.loads(record.value or b"")}
