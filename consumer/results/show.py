"""`safe results`: the batches of a cluster and their results, as they are, and as they come.

No consumer group is involved: partitions are assigned, and nothing is committed. First everything up to the end of
the topics is read; --follow goes on from there.
"""

import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from consumer.errors import ConfigurationError, SafeError, Transient, first_of
from consumer.exit_codes import EXIT_OK
from consumer.kafka.cluster import Cluster, Place
from consumer.kafka.connection import Connection
from consumer.kafka.reader import following, scanning
from consumer.kafka.topics import Name, existing_topics
from consumer.results.chosen import Batches, Chosen, cloud_event
from consumer.results.outputs import print_outputs
from consumer.results.scorecard import Scorecard
from consumer.results.screen import Screen, closing, showing
from consumer.settings import Loaded
from consumer.terminal import message_console, print_message, progress_bar, result_console
from consumer.wire.record import Record

_LOOK_SECONDS: Final = 0.1
_DRAW_SECONDS: Final = 0.2
"""Drawing a screen costs some milliseconds, while up to thousands of results come each second."""
_WATCH_SECONDS: Final = 3.0
_TAIL: Final = 50
"""Offsets at the end of each partition, of which a screen that follows begins with the last results."""


@dataclass(frozen=True, slots=True)
class ResultsRequest:
    """What is shown: of which batches, since when (in ms since 1970), in which form; and whether to go on.

    Raises ConfigurationError for options that do not fit together.
    """

    batches: Sequence[str] = ()
    follow: bool = False
    format: Literal["console", "json"] | None = None
    reports: bool = False
    outputs: bool = False
    since: int | None = None

    def __post_init__(self) -> None:
        is_json = self.format == "json"
        if self.outputs and (self.follow or self.format or self.reports):
            raise ConfigurationError(
                "--outputs prints JSONL of what is there: leave --follow, --format and --reports out"
            )
        if self.outputs and not self.batches:
            raise ConfigurationError("--outputs prints texts, which may be patient data: name the batches with --batch")
        if self.reports and not is_json:
            raise ConfigurationError("--reports says what --format json prints: give that, too")
        if self.since is not None and not (self.follow or is_json or self.outputs):
            raise ConfigurationError(
                "the table shows batches as they are now: give --since with --follow or --format json"
            )


def show_results(loaded: Loaded, request: ResultsRequest) -> int:
    """Show results, until Ctrl-C if they are followed; raises ConfigurationError, Transient or Fatal."""
    if request.outputs:
        return print_outputs(loaded, Batches(request.batches), request.since)
    if loaded.settings.log_level != "debug":
        # A client that loses its brokers logs much about it; here a sentence of ours says so.
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        asyncio.run(_shown(loaded, request))
    except KeyboardInterrupt:
        if not request.follow:
            raise
    return EXIT_OK


async def _shown(loaded: Loaded, request: ResultsRequest) -> None:
    chosen = Chosen(Batches(request.batches))
    if request.format == "json":
        await _print_events(loaded, request, chosen)
    elif request.follow:
        await _show_screen(loaded, request, chosen)
    else:
        await _print_table(loaded, chosen)


# --- the three ways to show them --------------------------------------------------------------------------------------


async def _print_events(loaded: Loaded, request: ResultsRequest, chosen: Chosen) -> None:
    """One CloudEvent a line: those that are there, and those that come."""
    printed = 0

    def take(record: Record) -> None:
        nonlocal printed
        event = chosen.read(record, cloud_event)
        if event is not None:
            print(json.dumps(event))  # escaped throughout: what a terminal would obey, too
            printed += 1

    kind: Name = "report" if request.reports else "result"
    topics = await _existing(loaded, kind)
    [topic] = topics.names
    is_new = request.follow and request.since is None
    with _remarking(chosen, topic):
        first = await topics.read(topic, take, request.since, 0 if is_new else None)
        sys.stdout.flush()
        if request.follow:
            await topics.follow(first, take, sys.stdout.flush, print_message)
    print_message(*_nothing(chosen, f"{kind}s") * (not printed))


async def _show_screen(loaded: Loaded, request: ResultsRequest, chosen: Chosen) -> None:
    """The live table or, without a terminal, a line for each result that comes."""
    card = Scorecard(loaded.settings)
    topics = await _existing(loaded, "result", "report")
    results, reports = topics.names
    remarking = _remarking(chosen, f"{results} and {reports}")
    with remarking, showing(result_console(), card, "SAFE results") as screen:

        def take(record: Record) -> None:
            arrival = chosen.read(record, card.note)
            if arrival is not None:
                screen.note(arrival)

        def note(record: Record) -> None:
            chosen.read(record, card.note)

        # A batch with a result among the last ones of its partition has its latest summary from there.
        since = request.since
        first = (
            await topics.read(results, note, tail=_TAIL) if since is None else await topics.read(results, take, since)
        )
        first |= await topics.read(reports, note)
        screen.status(f"{topics.servers}, until Ctrl-C", once=False)
        await topics.follow(first, take, _Drawing(screen), print_message if screen.live is None else screen.status)


async def _print_table(loaded: Loaded, chosen: Chosen) -> None:
    """The batches as their last reports have them."""
    card = Scorecard(loaded.settings)
    topics = await _existing(loaded, "report")
    [topic] = topics.names
    await topics.read(topic, lambda record: chosen.read(record, card.note), prints=False)
    if card.batches:
        closing(result_console(), card)
    print_message(*chosen.remarks(topic), *_nothing(chosen, "reports") * (not card.batches))


@contextmanager
def _remarking(chosen: Chosen, topic: str) -> Iterator[None]:
    """Say in the end what was not shown, also if Ctrl-C is the end."""
    try:
        yield
    finally:
        print_message(*chosen.remarks(topic))


class _Drawing:
    """Draws a screen when it is called, but not each time."""

    def __init__(self, screen: Screen) -> None:
        self._screen, self._drawn_at = screen, 0.0

    def __call__(self) -> None:
        now = time.monotonic()
        if now - self._drawn_at >= _DRAW_SECONDS:
            self._screen.show()
            sys.stdout.flush()
            self._drawn_at = now


def _nothing(chosen: Chosen, what: str) -> list[str]:
    return [f"there are no {what} {chosen.batches.asked}{chosen.batches.there}"]


# --- reading ----------------------------------------------------------------------------------------------------------


class _Topics(NamedTuple):
    """Topics of which everything is read, and then what comes; `names` in the order in which they were asked for."""

    connection: Connection
    servers: str
    partitions: Mapping[str, int]

    @property
    def names(self) -> list[str]:
        return list(self.partitions)

    async def read(
        self,
        topic: str,
        take: Callable[[Record], object],
        since: int | None = None,
        tail: int | None = None,
        *,
        prints: bool = True,
    ) -> dict[Place, int]:
        """Take what a topic holds, of each partition at most a tail, and give where its partitions go on.

        A progress bar is shown, but not on a terminal on which `take` prints.
        """
        async with scanning(self.connection, topic, self.partitions[topic]) as scan:
            spans = await scan.spans(since)
            if tail is not None:
                spans = [span._replace(first=max(span.first, span.end - tail)) for span in spans]
            total = sum(max(0, span.end - span.first) for span in spans)
            with progress_bar(message_console(), topic, total, is_hidden=prints and sys.stdout.isatty()) as advance:
                async with aclosing(scan.records_of(spans, advance)) as records:
                    async for record in records:
                        take(record)
        return {(topic, span.partition): span.end for span in spans}

    async def follow(
        self,
        first: Mapping[Place, int],
        take: Callable[[Record], object],
        taken: Callable[[], None],
        tell: Callable[[str], None],
    ) -> None:
        """Take what comes, until it is cancelled; calls `taken` after each look, `tell` if brokers do not answer."""
        try:
            async with following(self.connection, self.names, first) as arrivals, asyncio.TaskGroup() as tasks:
                tasks.create_task(self._watch(tell))
                while True:
                    for record in await arrivals(_LOOK_SECONDS):
                        take(record)
                    taken()
                    await asyncio.sleep(0)  # a look does not suspend while there are records
        except* SafeError as group:
            raise first_of(group) from None

    async def _watch(self, tell: Callable[[str], None]) -> None:
        """Say once that brokers do not answer, and once that they answer again: their silence raises nothing."""
        cluster, was = Cluster(self.connection), None
        try:
            await cluster.start()
            while True:
                await asyncio.sleep(_WATCH_SECONDS)
                trouble = await self._trouble(cluster)
                if (trouble is None) != (was is None):
                    tell(
                        f"the brokers at {self.servers} answer again"
                        if trouble is None
                        else f"no results can be read from {self.servers} ({trouble}): check the brokers; "
                        "results come again as soon as they answer"
                    )
                was = trouble
        finally:
            await cluster.stop()

    async def _trouble(self, cluster: Cluster) -> str | None:
        try:
            lack = (await cluster.look(self.names)).lacks(self.names)
        except Transient as error:
            with suppress(Transient):
                await cluster.start_again()
            return str(error)
        return None if lack is None else f"a broker {lack}"


async def _existing(loaded: Loaded, *names: Name) -> _Topics:
    """Find topics; a login whose secrets are in files is read again when these change."""
    settings = loaded.settings
    partitions = await existing_topics(settings, names)
    connection = Connection.from_settings(settings, loaded.settings_now)
    return _Topics(connection, settings.kafka_bootstrap_servers or "", partitions)
