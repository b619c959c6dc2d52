"""The worker put together: the only module that knows every other (start → serve → drain, read top-down)."""

import asyncio
import gc
import os
import signal
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import structlog

from consumer import __version__
from consumer.case_sources.case_client import HttpOptions
from consumer.case_sources.folder import FolderSource
from consumer.case_sources.http_source import HttpSource
from consumer.case_sources.service_access import AccessReader, ServiceAccess
from consumer.case_sources.source import ExpectationsSource
from consumer.case_sources.topic import TopicSource
from consumer.errors import Fatal, Transient, first_of
from consumer.exit_codes import EXIT_FORCED, EXIT_OK
from consumer.kafka import transactional_ids
from consumer.kafka.assignors import Assignor
from consumer.kafka.broker_versions import check_brokers
from consumer.kafka.cluster import Cluster
from consumer.kafka.connection import Connection
from consumer.kafka.reader import read_partition
from consumer.kafka.subscription import Membership, Subscription
from consumer.kafka.table_reader import TableReader
from consumer.kafka.topics import Verified, cases_topic, message_limits, topic_specs, verify_topics
from consumer.kafka.turns import Turns
from consumer.kafka.writer import PartitionWriter, PlainWriter
from consumer.settings import LastGood, Loaded, Settings, without_secrets
from consumer.telemetry.logs import CLIENT_RECORDS
from consumer.telemetry.metrics import BatchGauges, Metrics
from consumer.wire.changelog import InputTopic
from consumer.wire.input_event import InputRules
from consumer.worker.aggregator import AggregatorPartition
from consumer.worker.aggregator_state import AggregatorSettings
from consumer.worker.dead_letter_limit import DeadLetterLimits
from consumer.worker.dead_letter_writing import DeadLetterTopic
from consumer.worker.event_waits import unless
from consumer.worker.group_state import read_group_state
from consumer.worker.health import Health
from consumer.worker.http_server import serve_pages
from consumer.worker.inspection import Inspection
from consumer.worker.poll_loop import PollLoop
from consumer.worker.readiness_log import ReadinessLog
from consumer.worker.result_ids import input_topic
from consumer.worker.role import PartitionLogic, Role, RoleName
from consumer.worker.scorer import Beside, ScorerPartition, ScorerSettings
from consumer.worker.scoring_memory import ScoringMemory
from consumer.worker.spans import open_traces
from consumer.worker.startup_wait import StartupWait
from consumer.worker.topic_limits import TopicLimits
from consumer.worker.topic_ownership import check_input_offsets, check_ownership, input_start, is_guarded
from consumer.worker.topic_watch import TopicWatch
from consumer.worker.unmarked_offsets import unmarked_offsets

_log = structlog.get_logger("safe.worker")

_WATCH_SECONDS = 1.5
_LIMITS_EVERY = 4
_CLUSTER_TIMEOUT_SECONDS = 3.0
_ASK_AGAIN_SECONDS = 0.5
_TRANSACTION_SHARE = 0.8
"""A transaction must end before the session does: after that, its owner may be gone."""

_SLOW_COMMIT_SECONDS = 5.0
"""What takes half of this makes the next transactions of its partition smaller (slice_size.py)."""

_ONE_SIGNAL_SECONDS = 0.5
"""A second signal this soon counts as the first one: a supervisor may signal both the process and its group."""

_MIDDLE_EVERY = 40
"""Garbage collection runs with the watch of the cluster, not after a number of allocations: records and rows have no
cycles, and looking for some in each slice costs a tenth of the throughput. In this many rounds, one collects the middle
generation too. The oldest one would take a third of a second for a million rows, and is never collected: a restored row
is examined twice while it is young, and then no more.

Rows are not frozen: that would also keep for ever what is garbage at that moment, above all the clients that have just
read them (50 kB at each restore).
"""


def run_worker(loaded: Loaded, role: str) -> int:
    """Run until a signal; returns the exit code. Raises ConfigurationError before anything has started, Fatal later."""

    async def run() -> int:
        return await Worker(loaded, role).run()  # made here, since its client asks for the running loop

    return asyncio.run(run())


class Worker:
    """One process: the roles it plays and what they share."""

    def __init__(self, loaded: Loaded, role: str) -> None:
        self._loaded = loaded
        self._settings = loaded.settings
        self._role = role
        self._connection = Connection.from_settings(self._settings, loaded.settings_now)
        self._cluster = Cluster(self._connection)
        self._access = service_access(loaded) if role != "aggregator" else None
        self._metrics = Metrics(__version__, loaded.policy.fingerprint, self._settings.kafka_group_id)
        self._traces = open_traces(self._settings.traces, __version__)
        self._input_start = "earliest"
        self._guarded = True
        self._unmarked_offsets = unmarked_offsets(self._cluster, self._connection, self._settings)
        self._input_topic: InputTopic | None = None
        self._stopping = asyncio.Event()
        self._message_limits: dict[str, int] = {}
        self._first_signal_at = 0.0
        self._health = Health(self._connection.login)
        self._clock = self._health.clock

    # --- start → serve → drain ----------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Start, serve until stopped, drain."""
        self._install_signals()  # first, so that a signal during the start ends it in order too
        async with AsyncExitStack() as cleanup:
            cleanup.push_async_callback(asyncio.to_thread, self._traces.close)
            address = await cleanup.enter_async_context(  # first, so that /readyz says what a start waits for
                serve_pages(
                    self._settings.http_address,
                    self._metrics,
                    not_live=self._health.not_live,
                    not_ready=self._health.not_ready,
                    remarks=self._health.remarks,
                )
            )
            verified = await unless(self._stopping, self._verify())
            if verified is not None:
                cleanup.push_async_callback(self._cluster.stop)
                if not self._stopping.is_set():  # a signal may come with the last answer
                    await self._start_with_logins(verified, address, cleanup)
        _log.info("stopped")
        return EXIT_OK

    async def _start_with_logins(self, verified: Verified, address: str, cleanup: AsyncExitStack) -> None:
        """Start, and serve; ends with Fatal once the brokers have refused the login for too long."""
        try:
            async with asyncio.TaskGroup() as tasks:
                watch = tasks.create_task(self._watch_logins(), name="watch logins")
                await self._start(verified, address, cleanup)
                watch.cancel()
        except* Fatal as group:
            raise first_of(group) from None

    async def _start(self, verified: Verified, address: str, cleanup: AsyncExitStack) -> None:
        """With brokers that answer: read the test cases, and serve."""
        gc.disable()  # before test cases are read: to examine all of them again and again would block the event loop
        cleanup.callback(gc.enable)
        source = self._health.source = None if self._role == "aggregator" else self._make_source()
        cases = cases_topic(self._settings)
        self._health.cases_topic = cases.name if source is not None and cases is not None else None
        self._health.connect(self._metrics)
        if source is not None:
            cleanup.push_async_callback(source.stop)  # also after a start that fails half-way
            self._health.is_reading = True
            await unless(self._stopping, source.start())
            self._health.is_reading = False
        if self._stopping.is_set():
            return
        self._health.poll_loops = self._make_poll_loops(verified)
        self._announce(verified, address)
        gc.freeze()  # what is loaded by now stays: it need not be examined again
        self._health.note_answer()  # it was not asked while test cases were read
        await self._serve(verified)

    async def _verify(self) -> Verified:
        """Check which topics there are, and who owns them.

        Raises ConfigurationError for what is wrong with them, or if no broker answers for too long.
        """
        waiting = self._health.startup_wait = StartupWait(self._settings)
        while True:
            try:
                await self._cluster.connect()
                verified = await self._verified()
            except Transient as error:
                await self._cluster.stop()
                waiting.note_failure(error)
            except BaseException:  # cancelled, or fatal: either way the connections are closed first
                await self._cluster.stop()
                raise
            else:
                waiting.note_answer()
                return verified
            await asyncio.sleep(_ASK_AGAIN_SECONDS)

    async def _verified(self) -> Verified:
        await check_brokers(self._cluster, self._settings)
        verified = await verify_topics(self._cluster, self._settings, self._role)
        state = await read_group_state(self._connection, self._settings.state_topic, verified.partitions["state"])
        await check_ownership(self._connection, self._settings, verified.partitions, state)
        self._guarded = is_guarded(self._settings, state)
        if self._role != "aggregator":
            self._input_topic = await input_topic(self._cluster, self._settings, verified, state)
            await check_input_offsets(self._cluster, self._settings, verified.partitions, state)
            self._input_start = await input_start(self._cluster, self._settings, verified.partitions)
            await self._unmarked_offsets.look(
                guarded=self._guarded, notes_are_due=state.says_guarded and state.is_scored_with_notes
            )
        for warning in verified.warnings:
            _log.warning(warning)
        for note in verified.notes:
            _log.info(note)
        return verified

    async def _serve(self, verified: Verified) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                watches = [
                    tasks.create_task(self._watch_cluster(verified), name="watch cluster"),
                    tasks.create_task(self._watch_ends(), name="watch ends"),
                    tasks.create_task(self._watch_readiness(), name="watch readiness"),
                ]
                running = [tasks.create_task(each.run(), name=each.role.name) for each in self._health.poll_loops]
                stopping = tasks.create_task(self._stopping.wait(), name="stop")
                await asyncio.wait([*running, stopping], return_when=asyncio.FIRST_COMPLETED)
                for poll_loop in self._health.poll_loops:
                    poll_loop.stop()
                await asyncio.wait(running)
                for task in (*watches, stopping):
                    task.cancel()
        except* Fatal as group:
            raise first_of(group) from None

    def _install_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for signal_ in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signal_, self._on_signal, signal_.name)
        Inspection(loop, self._settings.log_level, self._settings.log_format).install()

    def _on_signal(self, name: str) -> None:
        now = time.monotonic()
        if self._stopping.is_set():
            if now - self._first_signal_at < _ONE_SIGNAL_SECONDS:
                return
            _log.warning("second signal: stopping at once", signal=name)
            os._exit(EXIT_FORCED)
        self._first_signal_at = now
        _log.info("draining", signal=name, deadline_seconds=self._settings.shutdown_seconds)
        self._health.is_draining = True
        self._stopping.set()

    def _announce(self, verified: Verified, address: str) -> None:
        settings = self._settings
        _log.info(
            f"SAFE {__version__} starts as {self._role}: {settings.delivery} on {settings.kafka_bootstrap_servers}",
            role=self._role,
            delivery=settings.delivery,
            group=settings.kafka_group_id,
            guarded=self._guarded,
            topics={name: spec.name for name, spec in topic_specs(settings).items()},
            partitions=dict(verified.partitions),
            expectations=None if self._role == "aggregator" else without_secrets("expectations", settings.expectations),
            fingerprint=self._loaded.policy.fingerprint,
            http=address,
        )
        if not self._guarded:
            _log.warning("the consumer group is not guarded: it takes workers of an earlier version, and strangers too")

    # --- the object graph ---------------------------------------------------------------------------------------------

    def _make_source(self) -> ExpectationsSource:
        return expectations_source(self._settings, self._connection, self._access)

    def _make_poll_loops(self, verified: Verified) -> list[PollLoop]:
        self._message_limits |= verified.limits
        makers = {"scorer": self._scorer, "aggregator": self._aggregator}
        chosen = makers.values() if self._role == "all" else [makers[self._role]]
        seconds = self._settings.shutdown_seconds
        return [
            PollLoop(make_role(verified), shutdown_seconds=seconds, now_ms=self._clock.stamp_ms) for make_role in chosen
        ]

    def _scorer(self, verified: Verified) -> Role:
        settings, source = self._settings, self._health.source
        assert source is not None
        scorer = ScorerSettings(
            group=settings.kafka_group_id,
            version=__version__,
            policy=self._loaded.policy,
            input_rules=InputRules(settings.max_value_bytes, frozenset(settings.input_types), settings.unsupported),
            input_topic=self._input_topic,
            input_start=self._input_start,
            expectations_grace_seconds=settings.expectations_grace_seconds,
            scored_topic=settings.scored_topic,
            scored_partitions=verified.partitions["scored"],
            dead_letters=self._dead_letters(verified),
            dead_letter_limits=DeadLetterLimits(settings.poison_run_limit, settings.poison_share_limit),
            limits=TopicLimits(
                self._message_limits, (settings.scored_topic, settings.state_topic, settings.result_topic)
            ),
        )
        memory, beside = ScoringMemory(scorer.policy), self._beside()
        # Partitions that are added later are read from their earliest record.
        known, added = range(verified.partitions["input"]), replace(scorer, input_start="earliest")
        return self._make_role(
            "scorer",
            topic=settings.input_topic,
            group=settings.kafka_group_id,
            assignor="round_robin",
            rack=settings.kafka_client_rack,
            scattered=frozenset({settings.scored_topic, settings.dead_letter_topic}),
            make_logic=lambda partition: ScorerPartition(
                partition,
                scorer if partition in known else added,
                source,
                self._metrics,
                self._clock.now_ms,
                self._unmarked_offsets.judge,
                self._traces.of_partition(settings.kafka_group_id),
                memory,
                beside,
            ),
        )

    def _beside(self) -> Beside:
        beside = Beside()
        # Who does not ask for it need not load the diagnosis.
        if self._settings.lenient:
            from safe_core.lenient import marks_of  # noqa: PLC0415

            beside = beside._replace(judge_marks=marks_of)
        if self._settings.unsupported:
            from safe_core.unsupported import count_unsupported  # noqa: PLC0415

            beside = beside._replace(count_unsupported=count_unsupported)
        return beside

    def _aggregator(self, verified: Verified) -> Role:
        settings = self._settings
        aggregator = AggregatorSettings(
            group=settings.kafka_group_id,
            fingerprint=self._loaded.policy.fingerprint,
            configuration=self._loaded.policy.configuration(),
            exactly_once=settings.delivery == "exactly_once",
            partitions=verified.partitions["scored"],
            scored_topic_id=verified.topic_ids.get("scored"),
            state_topic=settings.state_topic,
            result_topic=settings.result_topic,
            report_topic=settings.report_topic,
            dead_letters=self._dead_letters(verified),
            max_value_bytes=settings.max_value_bytes,
            batch_ttl_seconds=settings.batch_ttl_seconds,
            event_time_ahead_seconds=settings.event_time_ahead_seconds,
            guarded=self._guarded,
            limits=TopicLimits(self._message_limits, (settings.state_topic, settings.result_topic)),
        )
        gauges = self._metrics.gauges = BatchGauges(
            settings.max_exported_batches, self._health.aggregator_is_surely_ours
        )
        read_state = partial(read_partition, self._connection, settings.state_topic)
        return self._make_role(
            "aggregator",
            topic=settings.scored_topic,
            group=settings.aggregator_group_id,
            assignor="sticky",
            restored_from=settings.state_topic,
            aligned=frozenset({settings.state_topic, settings.result_topic, settings.report_topic}),
            scattered=frozenset({settings.dead_letter_topic}),
            make_logic=lambda partition: AggregatorPartition(
                partition,
                aggregator,
                read_state,
                gauges,
                self._metrics,
                self._clock,
                self._traces.of_partition(settings.aggregator_group_id),
            ),
        )

    def _make_role(
        self,
        name: RoleName,
        *,
        topic: str,
        group: str,
        assignor: Assignor,
        rack: str | None = None,
        restored_from: str | None = None,
        aligned: frozenset[str] = frozenset(),
        scattered: frozenset[str],
        make_logic: Callable[[int], PartitionLogic],
    ) -> Role:
        settings = self._settings
        exactly_once = settings.delivery == "exactly_once"
        process = uuid.uuid4().hex
        membership = Membership(
            topic, settings.state_topic, group, assignor, settings.kafka_session_timeout_seconds, rack,
            guarded=self._guarded,
            proof_id=transactional_ids.of_proof(settings.kafka_group_id, topic, process) if exactly_once else None,
        )  # fmt: skip
        return Role(
            name=name,
            group=group,
            topic=topic,
            restored_from=restored_from,
            aligned=aligned,
            scattered=scattered,
            exactly_once=exactly_once,
            offset_out_of_range=settings.offset_out_of_range,
            make_subscription=partial(Subscription, self._connection, membership, self._clock),
            make_logic=make_logic,
            make_writers=partial(self._turns if exactly_once else self._plain_writers, topic, group),
            commit_seconds=min(self._transaction_seconds, _SLOW_COMMIT_SECONDS),
        )

    @property
    def _transaction_seconds(self) -> float:
        return self._settings.kafka_session_timeout_seconds * _TRANSACTION_SHARE

    def _turns(self, topic: str, group: str, subscription: Subscription) -> Callable[[int], PartitionWriter]:
        return Turns(
            self._connection, subscription, self._clock, topic=topic, group=group,
            id_of=partial(transactional_ids.of_worker, self._settings.kafka_group_id, topic),
            timeout_seconds=self._transaction_seconds,
        ).writer  # fmt: skip

    def _plain_writers(self, topic: str, _group: str, subscription: Subscription) -> Callable[[int], PartitionWriter]:
        settings = self._settings
        return lambda partition: PlainWriter(
            self._connection, topic, self._clock,
            deadline_seconds=self._transaction_seconds,
            changelog=settings.state_topic,
            timed_topics=(settings.scored_topic, settings.state_topic),
            commit_offset=partial(subscription.commit, partition),
        )  # fmt: skip

    def _dead_letters(self, verified: Verified) -> DeadLetterTopic:
        return DeadLetterTopic(
            self._settings.dead_letter_topic,
            verified.partitions["dead_letter"],
            TopicLimits(self._message_limits),
            self._settings.kafka_group_id,
            __version__,
        )

    # --- watching -----------------------------------------------------------------------------------------------------

    async def _watch_cluster(self, verified: Verified) -> None:
        """Ask the cluster again and again whether it answers, and what has happened to the topics."""
        specs = topic_specs(self._settings)
        counts = {specs[name].name: count for name, count in verified.partitions.items()}
        ids = {specs[name].name: topic_id for name, topic_id in verified.topic_ids.items()}
        watch = self._health.topics = TopicWatch(
            counts, ids, may_grow=self._settings.input_topic, keyless=self._settings.dead_letter_topic
        )
        for round_ in count(1):
            await asyncio.sleep(_WATCH_SECONDS)
            gc.collect(1 if round_ % _MIDDLE_EVERY == 0 else 0)
            try:
                if self._health.cluster_is_silent:
                    await self._cluster.start_again()
                seen = await self._cluster.look(watch.topics, _CLUSTER_TIMEOUT_SECONDS)
            except Transient:
                continue
            self._health.note_answer()
            watch.note(seen)
            if round_ % _LIMITS_EVERY == 0:
                await self._read_limits(watch.topics)
            for poll_loop in self._health.poll_loops:
                poll_loop.leaderless = watch.leaderless(poll_loop.role.topic)

    async def _read_limits(self, topics: Sequence[str]) -> None:
        """Look how large the batches are that the topics accept now; what cannot be read stays as it was."""
        with suppress(Transient, Fatal):
            self._message_limits |= message_limits(await self._cluster.describe(topics))

    async def _watch_logins(self) -> None:
        """Read again what logins are made with, and end the worker once the brokers have refused it for too long."""
        login = self._connection.login
        read_again = [each for each in (login.credentials if login else None, self._access) if each is not None]
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            for each in read_again:
                await each.read_again()
            if login is not None:
                login.logins.check()

    async def _watch_ends(self) -> None:
        """Ask again and again where the partitions end that are read here, and whose transaction holds one up.

        Apart, and with a client of its own: a leader that does not answer takes long, and only its partitions wait.
        """
        health, cluster, is_connected = self._health, Cluster(self._connection), False
        try:
            while True:
                try:
                    if not is_connected:
                        await cluster.start_again()
                    health.note_ends(await cluster.ends(health.topics_read, health.reads))
                    for held_up in health.ends.unnamed():
                        by = await cluster.open_transaction(held_up.place, held_up.offset)
                        health.ends.name(held_up, by, health.producer_ids())
                except Transient:
                    is_connected = False
                    health.note_ends({})
                else:
                    is_connected = True
                await asyncio.sleep(_WATCH_SECONDS)
        finally:
            await cluster.stop()

    async def _watch_readiness(self) -> None:
        """Log when the worker stops being ready, and when it is ready again."""
        readiness = ReadinessLog(self._health.not_ready, CLIENT_RECORDS)
        try:
            while True:
                readiness.note()
                self._clock.look()
                await asyncio.sleep(_WATCH_SECONDS)
        finally:
            readiness.stop()


def service_access(loaded: Loaded) -> LastGood[ServiceAccess] | None:
    """How to log in to the service of test cases, None if they are elsewhere; raises ConfigurationError."""
    if "://" not in (loaded.settings.expectations or ""):
        return None
    return LastGood("the login to the service of test cases", AccessReader(loaded.settings_now))


def expectations_source(
    settings: Settings, connection: Connection, access: LastGood[ServiceAccess] | None
) -> ExpectationsSource:
    """The source that SAFE_V0_EXPECTATIONS names; raises ConfigurationError."""
    where = settings.expectations
    assert where, "a worker that scores has required it"
    if access is not None:
        options = HttpOptions(
            credentials=lambda: access.value.credentials,
            tls=lambda: access.value.tls or True,
            timeout_seconds=settings.expectations_timeout_seconds,
            max_requests=settings.expectations_max_requests,
            cache_seconds=settings.expectations_cache_seconds,
            cache_size=settings.expectations_cache_size,
            use_proxy=settings.expectations_use_proxy,
        )
        return HttpSource(where, options)
    topic = cases_topic(settings)
    if topic is not None:
        return TopicSource(topic.name, TableReader(connection, topic.name))
    return FolderSource(Path(where))
