"""SAFE's topics: how they should be configured, what is wrong with existing ones, and creating them."""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple

from consumer.errors import ConfigurationError, Fatal, Transient
from consumer.kafka.cluster import Cluster, TopicDescription
from consumer.kafka.connection import Connection
from consumer.kafka.reachability import unusable
from consumer.settings import Settings
from consumer.text import count_of, named

Name = Literal["input", "scored", "state", "result", "report", "dead_letter"]

_DAY_MS = 86_400_000
_COMPACTED: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "segment.bytes": str(50 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.2",
    "min.compaction.lag.ms": str(10 * 60 * 1000),
    "delete.retention.ms": str(_DAY_MS),
}
_DELETED: Mapping[str, str] = {"cleanup.policy": "delete"}
_DELETED_AFTER_A_WEEK: Mapping[str, str] = {**_DELETED, "retention.ms": str(7 * _DAY_MS)}
_BROKERS_TIME: Mapping[str, str] = {"message.timestamp.type": "LogAppendTime"}
"""Without transactions, whose markers tell the brokers' time, acknowledgements have to."""

_DEAD_LETTER_BYTES = 8 * 1024 * 1024
_CASES_BYTES = 8 * 1024 * 1024
_RECORD_OVERHEAD_BYTES = 64 * 1024
_LARGEST_BATCH = "max.message.bytes"
_KNOWN_SECONDS = 30.0
"""How long brokers may take to learn of topics that were just created."""

_MISSING_SECONDS = 10.0
"""How long a topic may be missing at start: the broker that was asked may not know it yet."""

_ASK_AGAIN_SECONDS = 0.1
_REPLICAS = 3
_IN_SYNC = 2
"""For each topic, so that acknowledged records survive the loss of any one broker."""

_KAFKAS_OWN = ("__consumer_offsets", "__transaction_state")
_UNCLEAN = "unclean.leader.election.enable"
_IN_SYNC_SETTING = "min.insync.replicas"
_POLICY = "cleanup.policy"


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as it should be; `variable` is SAFE's setting with its name, `settings` are Kafka's topic settings."""

    name: str
    variable: str
    settings: Mapping[str, str]


def topic_specs(settings: Settings) -> dict[Name, TopicSpec]:
    """The six topics under their configured names, which differ: the settings are checked for that."""
    largest = {"max.message.bytes": str(max(settings.max_value_bytes + _RECORD_OVERHEAD_BYTES, 1024 * 1024 + 12))}
    brokers_time = {} if settings.delivery == "exactly_once" else _BROKERS_TIME
    scored = {**_DELETED_AFTER_A_WEEK, **largest, **brokers_time}
    dead_letter = {**_DELETED_AFTER_A_WEEK, "max.message.bytes": str(_DEAD_LETTER_BYTES)}
    return {
        "input": TopicSpec(settings.input_topic, "SAFE_V0_INPUT_TOPIC", largest),
        "scored": TopicSpec(settings.scored_topic, "SAFE_V0_SCORED_TOPIC", scored),
        "state": TopicSpec(settings.state_topic, "SAFE_V0_STATE_TOPIC", {**_COMPACTED, **largest, **brokers_time}),
        "result": TopicSpec(settings.result_topic, "SAFE_V0_RESULT_TOPIC", {**_DELETED, **largest}),
        "report": TopicSpec(settings.report_topic, "SAFE_V0_REPORT_TOPIC", {**_COMPACTED, **largest}),
        "dead_letter": TopicSpec(settings.dead_letter_topic, "SAFE_V0_DEAD_LETTER_TOPIC", dead_letter),
    }


_TOPIC_PREFIX = "topic:"
CASES_PARTITIONS = 1
"""The partitions of the topic of test cases: in one, readers never see part of a batch published in one transaction."""


def cases_topic(settings: Settings) -> TopicSpec | None:
    """The topic of test cases that SAFE_V0_EXPECTATIONS names; None if it does not name a topic."""
    where = settings.expectations or ""
    if not where.startswith(_TOPIC_PREFIX):
        return None
    limits = {"max.message.bytes": str(_CASES_BYTES)}
    return TopicSpec(where.removeprefix(_TOPIC_PREFIX), "SAFE_V0_EXPECTATIONS", {**_COMPACTED, **limits})


@dataclass(frozen=True, slots=True)
class Verified:
    """The topics as they were found: their partition counts, and warnings.

    `limits` has the largest batch that each accepts, by the topic's name, as far as the settings may be read; of the
    dead-letter topic it is always known. `topic_ids` has the ids that the brokers report; `notes` are facts to know
    that need no action.
    """

    partitions: Mapping[Name, int]
    limits: Mapping[str, int]
    warnings: tuple[str, ...]
    topic_ids: Mapping[Name, str]
    notes: tuple[str, ...] = ()


_NEEDED_BY_ROLE: Mapping[str, tuple[Name, ...]] = {
    "scorer": ("input", "scored", "state", "dead_letter"),
    "aggregator": ("scored", "state", "result", "report", "dead_letter"),
    "all": ("input", "scored", "state", "result", "report", "dead_letter"),
}


_IF_ONE_IS_MISSING = (
    "If it has never existed, create it with `safe topics create`. If it was deleted, read SafeNotReady in "
    "docs/how-to/runbooks.md first. If it does exist"
)
_IF_SEVERAL_ARE = (
    "If they have never existed, create them with `safe topics create`. If one was deleted, read SafeNotReady in "
    "docs/how-to/runbooks.md first. If one does exist"
)


async def verify_topics(cluster: Cluster, settings: Settings, role: str) -> Verified:
    """Check the topics that a role uses; raises ConfigurationError naming what is wrong and the remedy."""
    specs = topic_specs(settings)
    needed = {name: specs[name] for name in _NEEDED_BY_ROLE[role]}
    cases = cases_topic(settings) if role != "aggregator" else None
    all_needed = [*needed.values(), *([] if cases is None else [cases])]
    described = await _described(cluster, [spec.name for spec in all_needed])
    missing = [spec for spec in all_needed if spec.name not in described]
    if missing:
        names = ", ".join(f"{spec.name} ({spec.variable})" for spec in missing)
        topics, remedy = ("topic", _IF_ONE_IS_MISSING) if len(missing) == 1 else ("topics", _IF_SEVERAL_ARE)
        raise ConfigurationError(
            f"missing {topics}: {names}. {remedy}, this user may lack permission to see it: grant Describe on it"
        )
    partitions = {name: described[spec.name].partitions for name, spec in needed.items()}
    _check_counts(partitions, specs)
    for spec in needed.values():
        _check_policy(spec, described[spec.name])
    brokers = (await cluster.look([])).brokers
    is_alone = len(brokers) == 1 and all(topic.replication_factor == 1 for topic in described.values())
    counted_on = [described[spec.name] for name, spec in needed.items() if name in _DURABLE]
    kafkas_own = [described[name] for name in _KAFKAS_OWN if name in described]
    warnings = [] if is_alone else list(_durability([*counted_on, *kafkas_own]))
    for name, spec in needed.items():
        warnings += _differences(spec, described[spec.name], durability_is_known=name in _DURABLE)
    if cases is not None:
        warnings += _differences_of_cases(cases, described[cases.name])
    dead_letter = described[specs["dead_letter"].name]
    limits = {dead_letter.name: dead_letter.max_message_bytes} | message_limits(described)
    notes = (_ONE_BROKER,) if is_alone else ()
    ids = {name: topic_id for name, spec in needed.items() if (topic_id := described[spec.name].topic_id) is not None}
    if not ids:
        warnings.append(_NO_TOPIC_IDS)
    return Verified(partitions, limits, tuple(warnings), ids, notes)


def message_limits(described: Mapping[str, TopicDescription]) -> dict[str, int]:
    """The largest batch that each topic accepts, without topics whose settings may not be read."""
    return {name: topic.max_message_bytes for name, topic in described.items() if _LARGEST_BATCH in topic.settings}


async def _described(cluster: Cluster, needed: Sequence[str]) -> Mapping[str, TopicDescription]:
    """Describe topics, and Kafka's own ones; asks again for some seconds if a needed one is missing."""
    deadline = time.monotonic() + _MISSING_SECONDS
    while True:
        described = await cluster.describe([*needed, *_KAFKAS_OWN])
        if described.keys() >= set(needed) or time.monotonic() >= deadline:
            return described
        await asyncio.sleep(_ASK_AGAIN_SECONDS)


def _check_counts(partitions: Mapping[Name, int], specs: Mapping[Name, TopicSpec]) -> None:
    expected = partitions["scored"]
    for name in ("state", "result", "report"):
        if name in partitions and partitions[name] != expected:
            raise ConfigurationError(
                f"{specs[name].name} has {count_of(partitions[name], 'partition')}, but "
                f"{specs['scored'].name} has {expected}: "
                "the four topics scored, state, result and report must have the same number; recreate the wrong one"
            )


def _check_policy(spec: TopicSpec, topic: TopicDescription) -> None:
    is_compacted = spec.settings.get("cleanup.policy") == "compact"
    policy = topic.settings.get("cleanup.policy", "compact" if is_compacted else "delete")
    if is_compacted and policy != "compact":
        raise ConfigurationError(
            f"{spec.name} has cleanup.policy={policy}, but its rows must outlive any retention: "
            "set cleanup.policy=compact"
        )
    if not is_compacted and "compact" in policy:
        raise ConfigurationError(
            f"{spec.name} has cleanup.policy={policy}, but compaction would delete records that are needed: "
            "set cleanup.policy=delete"
        )


# --- what outlives a broker -------------------------------------------------------------------------------------------

_DURABLE: frozenset[Name] = frozenset({"scored", "state", "result", "report", "dead_letter"})
"""The topics whose records must not be lost: all that SAFE writes."""

_ONE_BROKER = "this cluster has one broker and no second copy of any record: what that broker loses is gone"


_NO_TOPIC_IDS = (
    "the brokers report no topic ids (Kafka does since 2.8), so one check is off: SAFE does not see that a topic was "
    "deleted and created again under its name. Before you do that, stop all workers; see 'Starting over' in "
    "docs/how-to/operate.md"
)


def _durable(replication_factor: int) -> dict[str, str]:
    """The settings with which more than one replica, if there are several, has each acknowledged record."""
    in_sync = {_IN_SYNC_SETTING: str(max(1, replication_factor - 1))}
    return in_sync | ({_UNCLEAN: "false"} if replication_factor >= _REPLICAS else {})


def _durability(topics: Sequence[TopicDescription]) -> Iterator[str]:
    """One sentence for each kind of gap through which the loss of one broker can lose acknowledged records."""
    few = [f"{topic.name} has {topic.replication_factor}" for topic in topics if topic.replication_factor < _REPLICAS]
    if few:
        yield (
            f"fewer than {_REPLICAS} replicas: {', '.join(few)}; the loss of one broker can stop processing, or "
            f"lose or duplicate records: give each topic {_REPLICAS} replicas (kafka-reassign-partitions.sh), "
            f"then set {_IN_SYNC_SETTING}={_IN_SYNC}"
        )
    weak = [
        f"{topic.name} has {topic.settings[_IN_SYNC_SETTING]}"
        for topic in topics
        if topic.replication_factor >= _REPLICAS and _is_below_two(topic)
    ]
    if weak:
        yield (
            f"{_IN_SYNC_SETTING} below {_IN_SYNC}: {', '.join(weak)}; a record that only one broker has is lost with "
            f"that broker: set {_IN_SYNC_SETTING}={_IN_SYNC} (kafka-configs.sh --alter)"
        )
    unclean = [topic.name for topic in topics if topic.settings.get(_UNCLEAN) == "true"]
    if unclean:
        yield (
            f"{_UNCLEAN}=true: {', '.join(unclean)}; a broker that has missed records may become the leader, and those "
            f"records are then lost: set {_UNCLEAN}=false (kafka-configs.sh --alter)"
        )


def _is_below_two(topic: TopicDescription) -> bool:
    return int(topic.settings.get(_IN_SYNC_SETTING, _IN_SYNC)) < _IN_SYNC


# --- what differs -----------------------------------------------------------------------------------------------------

# A larger value is as good for these: only a smaller one deserves a warning.
_AT_LEAST = frozenset({"max.message.bytes", "retention.ms", "delete.retention.ms"})


def _differences(spec: TopicSpec, topic: TopicDescription, *, durability_is_known: bool = False) -> list[str]:
    """Each setting that is not as recommended, without those that _durability() has reported already."""
    reported = {_UNCLEAN, *([_IN_SYNC_SETTING] if _is_below_two(topic) else [])} if durability_is_known else set()
    found = []
    for key, wanted in {**_durable(topic.replication_factor), **spec.settings}.items():
        actual = topic.settings.get(key)
        if actual is None or actual == wanted or key == "cleanup.policy" or key in reported:
            continue
        if key in _AT_LEAST and (int(actual) == -1 or int(actual) >= int(wanted)):
            continue
        found.append(f"{spec.name} has {key}={actual}; {wanted} is recommended")
    return found


def _differences_of_cases(spec: TopicSpec, topic: TopicDescription) -> list[str]:
    """Only warnings: the topic has no state of SAFE, and any team may have created it."""
    found = _differences(spec, topic)
    policy = topic.settings.get("cleanup.policy", "compact")
    if policy != "compact":
        found.append(
            f"{spec.name} has cleanup.policy={policy}; compact is recommended: otherwise retention deletes test cases"
        )
    if topic.partitions != CASES_PARTITIONS:
        found.append(
            f"{spec.name} has {count_of(topic.partitions, 'partition')}; {CASES_PARTITIONS} is recommended: "
            "otherwise readers may see part of a batch while it is published"
        )
    return found


async def create_topics(
    settings: Settings, partitions: int, replication_factor: int, leave_out: Collection[str] = ()
) -> list[str]:
    """Create the missing topics, without some of their settings; returns a line for each.

    Raises ConfigurationError for one that is wrong, and, once all others are created, for those that were refused.
    """
    wanted = _wanted(settings, partitions, replication_factor, leave_out)
    try:
        async with connected_cluster(settings) as cluster:
            await _refuse_to_replace_a_lost_state(cluster, settings)
            is_new, refused = await _created(cluster, wanted, replication_factor)
            await _wait_until_known(cluster, list(is_new))
            if refused:
                raise _not_created(refused, is_new)
            verified = await verify_topics(cluster, settings, "all")
            counts = await cluster.partition_counts(list(is_new))
    except Transient as error:
        raise ConfigurationError(f"topics cannot be created: {error}") from error
    lines = []
    for topic in wanted:
        found = "created" if is_new[topic.name] else "already there"
        lines.append(f"{topic.name}: {found} with {count_of(counts.get(topic.name, topic.partitions), 'partition')}")
    if leave_out:
        lines.append(f"left out: {', '.join(sorted(leave_out))}; the cluster's own values apply to the new topics")
    return lines + [f"warning: {warning}" for warning in verified.warnings]


class _Wanted(NamedTuple):
    """A topic as it is to be created."""

    name: str
    partitions: int
    settings: Mapping[str, str]


def _wanted(settings: Settings, partitions: int, replicas: int, leave_out: Collection[str]) -> list[_Wanted]:
    """All topics that SAFE uses; raises ConfigurationError for a setting that cannot be left out."""
    cases, durability = cases_topic(settings), _durable(replicas)
    specs = [(spec, partitions) for spec in topic_specs(settings).values()]
    specs += [] if cases is None else [(cases, CASES_PARTITIONS)]
    optional = {key for spec, _ in specs for key in spec.settings} - {_POLICY} | {_IN_SYNC_SETTING, _UNCLEAN}
    if unknown := sorted(set(leave_out) - optional):
        raise ConfigurationError(
            f"--leave-out {named(unknown)}: SAFE does not set it, or needs it. What can be left out: "
            f"{', '.join(sorted(optional))}"
        )
    return [
        _Wanted(spec.name, count, {k: v for k, v in {**spec.settings, **durability}.items() if k not in leave_out})
        for spec, count in specs
    ]


async def _created(
    cluster: Cluster, wanted: Sequence[_Wanted], replication_factor: int
) -> tuple[dict[str, bool], list[Fatal]]:
    """Whether each topic is new, without those that the cluster refuses; and why it refuses them."""
    is_new, refused = dict[str, bool](), list[Fatal]()
    for topic in wanted:
        try:
            is_new[topic.name] = await cluster.create(topic.name, topic.partitions, replication_factor, topic.settings)
        except Fatal as error:
            refused.append(error)
    return is_new, refused


def _not_created(refused: Sequence[Fatal], others: Iterable[str]) -> ConfigurationError:
    there = f" {named(others)}: there." if others else ""
    return ConfigurationError(
        f"{'; '.join(map(str, refused))}.{there} If the cluster refuses a setting, leave it out with --leave-out "
        "SETTING, then run the command again"
    )


async def _refuse_to_replace_a_lost_state(cluster: Cluster, settings: Settings) -> None:
    """Refuse to create an empty state topic while the group still has offsets: no worker would start with it."""
    counts = await cluster.partition_counts([settings.scored_topic, settings.state_topic])
    if settings.scored_topic not in counts or settings.state_topic in counts:
        return
    group, scored = settings.aggregator_group_id, settings.scored_topic
    try:
        offsets = await cluster.committed_offsets(group, scored, range(counts[scored]))
    except Fatal:
        return  # this user may not ask about the group; the workers will ask
    if offsets:
        raise ConfigurationError(
            f"{settings.state_topic} (SAFE_V0_STATE_TOPIC) is missing, but group {group} has already read {scored}: "
            f"the totals in {settings.state_topic} are lost, and an empty topic would not bring them back. Nothing was "
            "created; see 'Starting over' in docs/how-to/operate.md"
        )


async def _wait_until_known(cluster: Cluster, topics: Sequence[str]) -> None:
    """Wait until every broker knows the new topics and their leaders, which takes a moment."""
    deadline = time.monotonic() + _KNOWN_SECONDS
    while lacking := await cluster.brokers_lacking(topics):
        if time.monotonic() >= deadline:
            missing = "; ".join(f"{broker} {lack}" for broker, lack in lacking.items())
            raise ConfigurationError(
                f"the topics are created, but {_KNOWN_SECONDS:g} s later {missing}: repair the cluster, then run the "
                "command again"
            )
        await asyncio.sleep(_ASK_AGAIN_SECONDS)


@asynccontextmanager
async def connected_cluster(settings: Settings) -> AsyncIterator[Cluster]:
    """Connect to the cluster; raises ConfigurationError if no broker answers."""
    cluster = Cluster(Connection.from_settings(settings))
    try:
        await cluster.connect()
    except Transient as error:
        raise unusable(settings.kafka_bootstrap_servers, error) from error
    try:
        yield cluster
    finally:
        await cluster.stop()


async def describe_topics(settings: Settings, topics: Sequence[str]) -> dict[str, TopicDescription]:
    """What the cluster knows of some topics; those that do not exist are left out.

    Raises ConfigurationError if a partition has no leader: nothing could be read from it or written to it.
    """
    async with connected_cluster(settings) as cluster:
        found = await cluster.describe(topics)
        leaderless = (await cluster.look(topics)).leaderless
    if leaderless:
        raise ConfigurationError("; ".join(no_leader(topic, partitions) for topic, partitions in leaderless.items()))
    return found


async def existing_topics(settings: Settings, names: Sequence[Name]) -> dict[str, int]:
    """The partitions of some of SAFE's topics, by the topics' names.

    Raises ConfigurationError for a topic that does not exist, that this user may not see, or that cannot be read.
    """
    specs = [topic_specs(settings)[name] for name in names]
    async with connected_cluster(settings) as cluster:
        try:
            seen = await cluster.look([spec.name for spec in specs])
        except Transient as error:
            raise unusable(settings.kafka_bootstrap_servers, error) from error
    for spec in specs:
        if spec.name in seen.refused:
            raise ConfigurationError(
                f"topic {spec.name} ({spec.variable}): not authorised; grant READ on it (docs/reference/permissions.md)"
            )
        if spec.name not in seen.partitions:
            raise ConfigurationError(f"there is no topic {spec.name} ({spec.variable}); `safe topics create` makes it")
    if seen.leaderless:
        raise ConfigurationError("; ".join(no_leader(*each) for each in seen.leaderless.items()))
    return {spec.name: seen.partitions[spec.name] for spec in specs}


MOST_NAMED = 20


def no_leader(topic: str, partitions: Iterable[int]) -> str:
    """The sentence for partitions of a topic that have no leader."""
    listed = [str(partition) for partition in sorted(partitions)]
    have = "partition {} of {} has no leader" if len(listed) == 1 else "partitions {} of {} have no leader"
    return f"{have.format(named(listed, MOST_NAMED), topic)}: too few of its brokers are up"
