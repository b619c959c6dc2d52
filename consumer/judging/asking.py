"""Ask many questions: several at once, each reply checked and kept at once, with an end to what failures may cost."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from consumer.errors import ConfigurationError, Transient, first_of
from consumer.judging.questions import Answer, Question, Reply
from consumer.offline.whole_files import write_whole
from consumer.terminal import NO_BAR, Bar, print_message
from consumer.text import visible
from safe_core.matching_rule import normalise

_TIMES: Final = 3  # that a question is asked whose replies are faulty
_FAULTY_SHARE: Final = 4  # a run ends when more than one reply in four is faulty,
_FAULTY_AT_LEAST: Final = 20  # and more than 20 are
_TOLD_EACH_SECONDS: Final = 30.0
NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class FaultyReply(Exception):
    """A reply that is no answer: cut off, refused, prose; the message has no word of it. `tokens` are what it took."""

    def __init__(self, message: str, tokens: int = 0) -> None:
        super().__init__(message)
        self.tokens = tokens


Ask = Callable[[str], Awaitable[tuple[str, int]]]
"""Asks an endpoint one question; gives the reply as it came, and the tokens that both took (0 where it does not say).

Raises FaultyReply, Transient if the endpoint goes on failing, ConfigurationError if it refuses.
"""


class Opinion(NamedTuple):
    """What a reply means; a quote is in one of the question's texts. `why` says why there is no opinion."""

    answer: Answer
    quote: str = ""
    why: str = ""


_NO_ANSWER: Final = Opinion("no_opinion", why="no reply was an answer")
_UNCLEAR: Final = Opinion("no_opinion", why="the model finds it unclear")
_FALSE_QUOTE: Final = Opinion("no_opinion", why="its quote is not in the text")


def read_reply(content: str | bytes) -> Reply:
    """Read a reply; raises FaultyReply."""
    encoded = content.encode(errors="surrogatepass") if isinstance(content, str) else content
    try:
        return msgspec.json.decode(encoded, type=Reply)
    except NOT_JSON:
        raise FaultyReply("it is not the JSON that was asked for") from None


def opinion_of(reply: Reply, texts: Iterable[str]) -> Opinion:
    """Check a reply: `said` counts only with a quote that is in a text."""
    if reply.answer != "said":
        return Opinion("not_said") if reply.answer == "not_said" else _UNCLEAR
    return Opinion("said", reply.quote) if stands_in(reply.quote, texts) else _FALSE_QUOTE


def stands_in(quote: str, texts: Iterable[str]) -> bool:
    """Whether a text has these words, whole and in this order, but for white space, upper case and the marks around."""
    words = re.escape(re.sub(r"^\W+|\W+$", "", _even(quote)))
    return bool(words) and any(re.search(rf"\b{words}\b", _even(text)) for text in texts)


def _even(text: str) -> str:
    return normalise(" ".join(text.split()))


class Cache:
    """Replies in a folder, one file each, named by a digest; several runs may use it at once."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigurationError(f"--cache {visible(str(folder))}: {error.strerror}") from error

    def get(self, key: str) -> Reply | None:
        """Give a reply that is kept; None if there is none, or it cannot be read."""
        if self._folder is not None:
            with suppress(OSError, FaultyReply):
                return read_reply((self._folder / f"{key}.json").read_bytes())
        return None

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply; raises ConfigurationError."""
        if self._folder is not None:
            write_whole(self._folder / f"{key}.json", msgspec.json.encode(reply))


@dataclass(slots=True)
class Progress:
    """What a run has done so far: `kept` replies were in the cache, `paid` ones asked for.

    It is told on a terminal by the bar, elsewhere by a line now and then.
    """

    total: int
    bar: Bar = NO_BAR
    done: int = 0
    kept: int = 0
    paid: int = 0
    faulty: int = 0
    tokens: int = 0
    told_at: float = field(default_factory=time.monotonic)

    def note_done(self) -> None:
        """Count a question that has its opinion."""
        self.done += 1
        self.bar(1)
        self.bar.says(f"asking ({self.tokens} tokens so far)")
        if not self.bar.is_seen and time.monotonic() - self.told_at > _TOLD_EACH_SECONDS:
            self.told_at = time.monotonic()
            print_message(self.summary)

    def note_fault(self, fault: FaultyReply) -> None:
        """Count a reply that is no answer; raises Transient if there are too many."""
        self.faulty += 1
        self.tokens += fault.tokens
        if self.faulty > max(_FAULTY_AT_LEAST, self.paid // _FAULTY_SHARE):
            raise Transient(f"{self.faulty} of {self.paid} replies could not be used; of the last one, {fault}")

    @property
    def summary(self) -> str:
        """Say what the run did and took."""
        asked = f"{self.kept} from the cache, {self.paid} replies asked for ({self.faulty} faulty)"
        return f"{self.done} of {self.total} questions: {asked}, {self.tokens} tokens"


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks a model; what it answers is kept in the cache before anything else happens."""

    ask: Ask
    cache: Cache
    progress: Progress

    async def all(self, questions: Iterable[tuple[str, Question]], *, at_once: int) -> dict[str, Opinion]:
        """Ask questions, each by its key; gives the opinions by key.

        Raises Transient if the endpoint goes on failing or too many replies are faulty, ConfigurationError if it
        refuses.
        """
        opinions: dict[str, Opinion] = {}
        waiting = iter(questions)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(at_once):
                    group.create_task(self._work(waiting, opinions))
        except* (Transient, ConfigurationError) as errors:
            raise first_of(errors) from None
        return opinions

    async def _work(self, waiting: Iterator[tuple[str, Question]], opinions: dict[str, Opinion]) -> None:
        for key, question in waiting:
            reply = await self._reply(question, key)
            opinions[key] = _NO_ANSWER if reply is None else opinion_of(reply, question.texts)
            self.progress.note_done()

    async def _reply(self, question: Question, key: str) -> Reply | None:
        """Give the reply that is kept, or ask until a reply is an answer; None if none is."""
        if (kept := self.cache.get(key)) is not None:
            self.progress.kept += 1
            return kept
        for _ in range(_TIMES):
            self.progress.paid += 1
            try:
                content, tokens = await self.ask(question.document)
                self.progress.tokens += tokens
                reply = read_reply(content)
            except FaultyReply as fault:
                self.progress.note_fault(fault)
            else:
                self.cache.put(key, reply)
                return reply
        return None
