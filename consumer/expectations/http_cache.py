"""The answers of a service as long as they may be used, and with what to ask whether they still hold."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from consumer.errors import Poison
from consumer.expectations.answers import Answer
from consumer.expectations.port import ExpectationsKey, FoundExpectations


@dataclass(slots=True)
class Kept:
    """A test case in the cache; after `fresh_until` it must be asked for again, by its `etag` if it has one."""

    found: FoundExpectations
    etag: str | None
    fresh_until: float


class AnswerCache:
    """At most `size` test cases and as many refusals, the longest unused going first; times are the caller's."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[ExpectationsKey, Kept] = OrderedDict()
        self._refused: OrderedDict[ExpectationsKey, tuple[Poison, float]] = OrderedDict()

    def fresh(
        self, keys: Sequence[ExpectationsKey], now: float
    ) -> tuple[dict[ExpectationsKey, Answer], list[ExpectationsKey]]:
        """Give the test cases that may be used, and the keys for which there is none."""
        answers: dict[ExpectationsKey, Answer] = {}
        missed = []
        kept = self._kept
        for key in keys:  # nothing but look-ups: a slice has thousands
            entry = kept.get(key)
            if entry is not None and entry.fresh_until > now:
                answers[key] = entry.found
                kept.move_to_end(key)
            else:
                missed.append(key)
        return answers, missed

    def refused(self, keys: Sequence[ExpectationsKey], now: float) -> dict[ExpectationsKey, Poison]:
        """Give those of the keys that were refused a moment ago."""
        entries = ((key, self._refused.get(key)) for key in keys)
        return {key: anew(entry[0]) for key, entry in entries if entry is not None and entry[1] > now}

    def get(self, key: ExpectationsKey) -> Kept | None:
        """Give what is kept of a key, fresh or not."""
        return self._kept.get(key)

    def keep(self, key: ExpectationsKey, found: FoundExpectations, etag: str | None, until: float) -> None:
        """Keep a test case."""
        self._kept[key] = Kept(found, etag, until)
        self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)

    def refuse(self, key: ExpectationsKey, why: Poison, until: float) -> None:
        """Keep for a moment that a key has no test case that can be used."""
        self._kept.pop(key, None)
        self._refused[key] = why, until
        self._refused.move_to_end(key)
        while len(self._refused) > self._size:
            self._refused.popitem(last=False)

    def prolong(self, keys: Iterable[ExpectationsKey], until: float) -> None:
        """Let what is kept of these keys be used until then, if it could not be used for longer anyway."""
        for key in keys:
            entry = self._kept.get(key)
            if entry is not None:
                entry.fresh_until = max(entry.fresh_until, until)


def anew(poison: Poison) -> Poison:
    """Give an error that nobody has raised yet: each raising of the same one would lengthen its traceback."""
    return Poison(poison.reason, poison.detail)
