"""Ask many questions: several at once, each reply checked and kept at once, with an end to what failures may cost."""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol

import msgspec

from consumer.errors import ConfigurationError, Transient, first_of
from consumer.judging.questions import Answer, Question
from consumer.offline.whole_files import write_whole
from consumer.text import visible
from safe_core.matching_rule import normalise

_TIMES: Final = 3  # that a question is asked whose replies are faulty
_FAULTY_SHARE: Final = 4  # a run ends when more than one reply in four is faulty,
_FAULTY_AT_LEAST: Final = 20  # and more than 20 are


class FaultyReply(Exception):
    """A reply that is no answer: cut off, refused, prose; the message has no word of it. `tokens` are what it took."""

    def __init__(self, message: str, tokens: int = 0) -> None:
        super().__init__(message)
        self.tokens = tokens


class Answered(NamedTuple):
    """A reply as it came, and the tokens that question and reply took; 0 where the endpoint does not say."""

    content: str
    tokens: int


class Answering(Protocol):
    """What answers questions: an endpoint."""

    async def ask(self, document: str) -> Answered:
        """Ask one question; raises FaultyReply, Transient if it goes on failing, ConfigurationError if it refuses."""


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answered; the quote may hold patient data."""

    answer: Literal["said", "not_said", "unclear"]
    quote: str


class Opinion(NamedTuple):
    """What a reply comes to; a quote stands in one of the question's texts. `why` says why there is no opinion."""

    answer: Answer
    quote: str = ""
    why: str = ""


NO_ANSWER: Final = Opinion("no_opinion", why="no reply was an answer")
_UNCLEAR: Final = Opinion("no_opinion", why="the model finds it unclear")
_FALSE_QUOTE: Final = Opinion("no_opinion", why="its quote is not in the text")


def read_reply(content: str) -> Reply:
    """Read a reply; raises FaultyReply."""
    try:
        return msgspec.json.decode(content.encode(errors="surrogatepass"), type=Reply)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise FaultyReply("it is not the JSON that was asked for") from None


def opinion_of(reply: Reply, texts: Iterable[str]) -> Opinion:
    """Check a reply: `said` counts only with a quote that stands in a text, but for white space and upper case."""
    if reply.answer != "said":
        return Opinion("not_said") if reply.answer == "not_said" else _UNCLEAR
    quote = _even(reply.quote)
    is_there = re.search(r"\w", quote) is not None and any(quote in _even(text) for text in texts)
    return Opinion("said", reply.quote) if is_there else _FALSE_QUOTE


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
            with suppress(OSError, FaultyReply, UnicodeDecodeError):
                return read_reply((self._folder / f"{key}.json").read_text("utf-8"))
        return None

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply; raises ConfigurationError."""
        if self._folder is not None:
            write_whole(self._folder / f"{key}.json", msgspec.json.encode(reply))


@dataclass(slots=True)
class Progress:
    """What a run has done so far: `kept` replies were in the cache, `paid` ones asked for; told after each question."""

    total: int
    told: Callable[["Progress"], None] = lambda _: None
    done: int = 0
    kept: int = 0
    paid: int = 0
    faulty: int = 0
    tokens: int = 0

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

    endpoint: Answering
    model: str
    cache: Cache
    progress: Progress

    async def all(self, questions: Sequence[Question], *, at_once: int, repeats: int = 1) -> list[list[Opinion]]:
        """Ask each question as often as `repeats` says; gives its opinions, in the order of the questions.

        Raises Transient if the endpoint goes on failing or too many replies are faulty, ConfigurationError if it
        refuses.
        """
        opinions = [[NO_ANSWER] * repeats for _ in questions]
        waiting = ((number, repeat) for number in range(len(questions)) for repeat in range(repeats))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(at_once):
                    group.create_task(self._work(questions, waiting, opinions))
        except* (Transient, ConfigurationError) as errors:
            raise first_of(errors) from None
        return opinions

    async def _work(
        self, questions: Sequence[Question], waiting: Iterator[tuple[int, int]], opinions: list[list[Opinion]]
    ) -> None:
        for number, repeat in waiting:
            question = questions[number]
            reply = await self._reply(question, question.key(self.model, repeat))
            if reply is not None:
                opinions[number][repeat] = opinion_of(reply, question.texts)
            self.progress.done += 1
            self.progress.told(self.progress)

    async def _reply(self, question: Question, key: str) -> Reply | None:
        """Give the reply that is kept, or ask until a reply is an answer; None if none is."""
        if (kept := self.cache.get(key)) is not None:
            self.progress.kept += 1
            return kept
        for _ in range(_TIMES):
            self.progress.paid += 1
            try:
                answered = await self.endpoint.ask(question.document)
                self.progress.tokens += answered.tokens
                reply = read_reply(answered.content)
            except FaultyReply as fault:
                self.progress.note_fault(fault)
            else:
                self.cache.put(key, reply)
                return reply
        return None
