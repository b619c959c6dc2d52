"""The answers of a service of test cases that may be used again."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from consumer.case_sources.case_client import Reply, Said
from consumer.case_sources.source import ExpectationsKey
from consumer.dead_letter_reasons import Poison


@dataclass(slots=True)
class CachedReply:
    """A reply; after `fresh_until` the service must be asked again, by the ETag if there is one."""

    reply: Reply
    fresh_until: float


class AnswerCache:
    """At most `size` test cases and as many refusals; the least recently used goes first. Times are the caller's."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._found: OrderedDict[ExpectationsKey, CachedReply] = OrderedDict()
        self._refused: OrderedDict[ExpectationsKey, CachedReply] = OrderedDict()

    def fresh(
        self, keys: Sequence[ExpectationsKey], now: float
    ) -> tuple[dict[ExpectationsKey, Said], list[ExpectationsKey]]:
        """Give the answers that may be used, and the keys for which there is none."""
        answers: dict[ExpectationsKey, Said] = {}
        missed = []
        for key in keys:  # only look-ups in a dict: a slice has thousands of keys
            cached = self._found.get(key)
            if cached is not None and cached.fresh_until > now:
                self._found.move_to_end(key)
                answers[key] = cached.reply.answer
                continue
            cached = self._refused.get(key)
            if cached is not None and cached.fresh_until > now:
                answers[key] = unraised(cached.reply.answer)
            else:
                missed.append(key)
        return answers, missed

    def reply(self, key: ExpectationsKey) -> Reply | None:
        """Give the test case of a key, fresh or not."""
        cached = self._found.get(key)
        return None if cached is None else cached.reply

    def keep(self, key: ExpectationsKey, reply: Reply, until: float) -> None:
        """Keep a test case or a refusal, which replaces a test case."""
        entries = self._found
        if isinstance(reply.answer, Poison):
            self._found.pop(key, None)
            entries = self._refused
        entries[key] = CachedReply(reply, until)
        entries.move_to_end(key)
        while len(entries) > self._size:
            entries.popitem(last=False)

    def prolong(self, keys: Iterable[ExpectationsKey], until: float) -> None:
        """Let the test cases of these keys be used at least until then."""
        for key in keys:
            cached = self._found.get(key)
            if cached is not None:
                cached.fresh_until = max(cached.fresh_until, until)


def unraised(answer: Said) -> Said:
    """The answer; of a Poison a copy: each time that one and the same is raised, its traceback gets longer."""
    return Poison(answer.reason, answer.detail) if isinstance(answer, Poison) else answer
