"""What SAFE's topics must be like, and the words for what is wrong with them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from typing_extensions import override

from consumer.errors import ConfigurationError, Fatal, Transient
from consumer.kafka import topics as topics_module
from consumer.kafka.cluster import Cluster, TopicDescription, TopicsSeen
from consumer.kafka.connection import Connection
from consumer.kafka.topics import cases_topic, connected_cluster, create_topics, topic_specs, verify_topics
from consumer.settings import Settings

DEFAULT_NAMES = {
    "input": "factory.generation.output",
    "scored": "safe.v0.scored",
    "state": "safe.v0.state",
    "result": "safe.v0.result",
    "report": "safe.v0.report",
    "dead_letter": "safe.v0.dead-letter",
}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "52428800",
    "min.cleanable.dirty.ratio": "0.2",
    "min.compaction.lag.ms": "600000",
    "delete.retention.ms": "86400000",
}
SAFE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
ALONE = {"min.insync.replicas": "1", "unclean.leader.election.enable": "false"}
INTERNAL = ("__consumer_offsets", "__transaction_state")


@dataclass
class Broker:
    """The topics of a cluster, kept in memory: what the fakes below answer from."""

    topics: dict[str, TopicDescription] = field(default_factory=dict)
    durability: dict[str, str | None] = field(default_factory=dict)
    answers: bool = True
    stopped: int = 0
    brokers: int = 3
    blind: int = 0
    """How many more questions are answered by a broker that does not know of any topic yet."""
    looks: int = 0
    offsets: dict[tuple[str, str], dict[int, int]] = field(default_factory=dict)
    """What groups have committed, by group and topic."""
    refuses_offsets: bool = False
    refuses_setting: str = ""


class InMemoryCluster(Cluster):
    """A cluster that answers from memory."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @override
    async def connect(self) -> None:
        if not self._broker.answers:
            raise Transient("the cluster does not answer: KafkaConnectionError")

    @override
    async def stop(self) -> None:
        self._broker.stopped += 1

    @override
    async def look(self, topics: Sequence[str], timeout_seconds: float = 1.0) -> TopicsSeen:
        broker = self._broker
        if not broker.answers:
            raise Transient("the cluster does not answer: TimeoutError")
        broker.looks += 1
        is_blind, broker.blind = broker.blind > 0, max(0, broker.blind - 1)
        known = {} if is_blind else {name: broker.topics[name].partitions for name in topics if name in broker.topics}
        return TopicsSeen(known, {}, frozenset(), dict.fromkeys(range(broker.brokers), ""))

    @override
    async def brokers_lacking(self, topics: Sequence[str]) -> dict[str, str]:
        lack = (await self.look(topics)).lacks(topics)
        return {} if lack is None else {"broker 2 (127.0.0.1:9093)": lack}

    @override
    async def describe(self, topics: Sequence[str]) -> dict[str, TopicDescription]:
        return {name: self._broker.topics[name] for name in (await self.look(topics)).partitions}

    @override
    async def committed_offsets(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        if self._broker.refuses_offsets:
            raise Fatal(f"group {group}: not authorised")
        committed = self._broker.offsets.get((group, topic), {})
        return {partition: committed[partition] for partition in partitions if partition in committed}

    @override
    async def create(self, topic: str, partitions: int, replication_factor: int, settings: Mapping[str, str]) -> bool:
        if replication_factor > 3:
            raise Fatal(f"topic {topic} cannot be created: replication factor larger than available brokers")
        if topic in self._broker.topics:
            return False
        if self._broker.refuses_setting in settings:
            raise Fatal(f"topic {topic} cannot be created: {self._broker.refuses_setting} may not be set")
        self._broker.durability[topic] = settings.get("min.insync.replicas")
        self._broker.topics[topic] = TopicDescription(
            topic, partitions, replication_factor, dict(settings), f"id of {topic}"
        )
        return True


def settings_with(**changes: Any) -> Settings:
    return Settings(**changes)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked again and again, is so for a moment only."""
    for name in ("_MISSING_SECONDS", "_KNOWN_SECONDS"):
        monkeypatch.setattr(topics_module, name, 0.1)
    monkeypatch.setattr(topics_module, "_ASK_AGAIN_SECONDS", 0.001)


@pytest.fixture
def site() -> Settings:
    return settings_with(kafka_bootstrap_servers="127.0.0.1:9092")


def right(site: Settings, partitions: int = 8) -> Broker:
    """A broker whose topics are all as they should be."""
    specs = topic_specs(site).values()
    return Broker(
        {
            spec.name: TopicDescription(spec.name, partitions, 3, {**spec.settings, **SAFE}, f"id of {spec.name}")
            for spec in specs
        }
        | {name: TopicDescription(name, 50, 3, SAFE) for name in INTERNAL}
    )


def changed(broker: Broker, name: str, partitions: int | None = None, **settings: str) -> Broker:
    topic = broker.topics[name]
    written = {key.replace("_", "."): content for key, content in settings.items()}
    count = topic.partitions if partitions is None else partitions
    broker.topics[name] = replace(topic, partitions=count, settings={**topic.settings, **written})
    return broker


# --- what they should be ----------------------------------------------------------------------------------------------


def test_the_topics_have_their_names_and_settings(site: Settings) -> None:
    specs = topic_specs(site)
    assert {name: spec.name for name, spec in specs.items()} == DEFAULT_NAMES
    assert specs["state"].settings.items() >= COMPACTED.items()
    assert specs["report"].settings.items() >= COMPACTED.items()
    assert specs["scored"].settings["cleanup.policy"] == "delete"
    assert specs["scored"].settings["retention.ms"] == str(7 * 86_400_000)
    assert specs["dead_letter"].settings["max.message.bytes"] == str(8 * 1024 * 1024)
    assert {name for name, spec in specs.items() if spec.settings.get("cleanup.policy") == "compact"} == {
        "state",
        "report",
    }


def test_without_transactions_two_topics_tell_the_brokers_time(site: Settings) -> None:
    plain = topic_specs(site.model_copy(update={"delivery": "at_least_once"}))
    by_brokers = {
        name for name, spec in plain.items() if spec.settings.get("message.timestamp.type") == "LogAppendTime"
    }
    assert by_brokers == {"scored", "state"}
    assert not any("message.timestamp.type" in spec.settings for spec in topic_specs(site).values())


@pytest.mark.parametrize("name", ["input", "scored", "state", "result", "report"])
def test_each_topic_takes_whatever_the_value_limit_allows(name: str) -> None:
    limits = {size: topic_specs(settings_with(max_value_bytes=size)) for size in (1_048_576, 5_000_000)}
    for size, specs in limits.items():
        by_name = {str(key): spec for key, spec in specs.items()}
        assert int(by_name[name].settings["max.message.bytes"]) > size


# --- what is there ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["scorer", "aggregator", "all"])
async def test_topics_that_are_right_pass_without_a_warning(site: Settings, role: str) -> None:
    verified = await verify_topics(InMemoryCluster(right(site)), site, role)
    assert verified.warnings == ()
    assert set(verified.partitions.values()) == {8}
    assert verified.limits[site.dead_letter_topic] == 8 * 1024 * 1024
    assert ("input" in verified.partitions) == (role != "aggregator")


async def test_the_input_and_the_dead_letters_may_have_as_many_partitions_as_they_like(site: Settings) -> None:
    broker = changed(changed(right(site), "factory.generation.output", 3), "safe.v0.dead-letter", 1)
    verified = await verify_topics(InMemoryCluster(broker), site, "all")
    assert (verified.partitions["input"], verified.partitions["dead_letter"]) == (3, 1)


async def test_missing_topics_are_all_named_with_their_variables_and_the_remedy(site: Settings) -> None:
    broker = right(site)
    del broker.topics["safe.v0.state"], broker.topics["safe.v0.dead-letter"]
    expected = (
        r"missing topics: safe\.v0\.state \(SAFE_V0_STATE_TOPIC\), safe\.v0\.dead-letter "
        r"\(SAFE_V0_DEAD_LETTER_TOPIC\)\. If they have never existed, create them with `safe topics create`\. If one "
        r"was deleted, read SafeNotReady in docs/how-to/runbooks\.md first\. If one does exist, this user may lack "
        "permission to see it: grant Describe on it$"
    )
    with pytest.raises(ConfigurationError, match=expected):
        await verify_topics(InMemoryCluster(broker), site, "all")


async def test_of_one_missing_topic_it_says_the_same(site: Settings) -> None:
    broker = right(site)
    del broker.topics["safe.v0.state"]
    expected = (
        r"^missing topic: safe\.v0\.state \(SAFE_V0_STATE_TOPIC\)\. If it has never existed, create it with `safe "
        r"topics create`\. If it was deleted, read SafeNotReady in docs/how-to/runbooks\.md first\. If it does exist, "
    )
    with pytest.raises(ConfigurationError, match=expected):
        await verify_topics(InMemoryCluster(broker), site, "all")


async def test_a_topic_that_one_broker_does_not_know_yet_is_not_missing(site: Settings) -> None:
    broker = right(site)
    broker.blind = 2
    verified = await verify_topics(InMemoryCluster(broker), site, "all")
    assert set(verified.partitions.values()) == {8}
    assert broker.blind == 0


async def test_a_scorer_does_not_miss_the_topics_of_the_aggregator(site: Settings) -> None:
    broker = right(site)
    del broker.topics["safe.v0.result"], broker.topics["safe.v0.report"]
    await verify_topics(InMemoryCluster(broker), site, "scorer")


# topic, what is wrong with it, what the error says
WRONG: list[tuple[str, int | None, dict[str, str], str]] = [
    ("safe.v0.state", 4, {}, r"safe\.v0\.state has 4 partitions, but safe\.v0\.scored has 8"),
    ("safe.v0.result", 16, {}, r"safe\.v0\.result has 16 partitions, but safe\.v0\.scored has 8"),
    ("safe.v0.report", 1, {}, r"safe\.v0\.report has 1 partition, but safe\.v0\.scored has 8"),
    ("safe.v0.state", None, {"cleanup_policy": "delete"}, r"safe\.v0\.state has cleanup\.policy=delete.*set cleanup"),
    (
        "safe.v0.state",
        None,
        {"cleanup_policy": "compact,delete"},
        r"safe\.v0\.state has cleanup\.policy=compact,delete",
    ),
    ("safe.v0.report", None, {"cleanup_policy": "delete"}, r"safe\.v0\.report has cleanup\.policy=delete"),
    ("safe.v0.scored", None, {"cleanup_policy": "compact"}, r"safe\.v0\.scored has cleanup\.policy=compact.*=delete"),
    ("safe.v0.result", None, {"cleanup_policy": "delete,compact"}, r"safe\.v0\.result has cleanup\.policy"),
    ("factory.generation.output", None, {"cleanup_policy": "compact"}, r"factory\.generation\.output has cleanup"),
    ("safe.v0.dead-letter", None, {"cleanup_policy": "compact"}, r"safe\.v0\.dead-letter has cleanup\.policy"),
]


@pytest.mark.parametrize(("name", "partitions", "changes", "expected"), WRONG)
async def test_what_would_lose_state_or_records_is_an_error(
    site: Settings, name: str, partitions: int | None, changes: dict[str, str], expected: str
) -> None:
    broker = changed(right(site), name, partitions, **changes)
    with pytest.raises(ConfigurationError, match=expected):
        await verify_topics(InMemoryCluster(broker), site, "all")


# topic, what differs, the warning (or None where more is as good)
DIFFERENT: list[tuple[str, dict[str, str], str | None]] = [
    (
        "safe.v0.scored",
        {"retention_ms": "3600000"},
        "safe.v0.scored has retention.ms=3600000; 604800000 is recommended",
    ),
    ("safe.v0.scored", {"retention_ms": "-1"}, None),  # for ever
    ("safe.v0.scored", {"retention_ms": "999999999999"}, None),
    ("safe.v0.state", {"segment_bytes": "1073741824"}, "segment.bytes=1073741824; 52428800 is recommended"),
    ("safe.v0.state", {"delete_retention_ms": "1000"}, "delete.retention.ms=1000; 86400000 is recommended"),
    ("safe.v0.report", {"min_compaction_lag_ms": "0"}, "min.compaction.lag.ms=0; 600000 is recommended"),
    ("safe.v0.dead-letter", {"max_message_bytes": "1048588"}, "max.message.bytes=1048588; 8388608 is recommended"),
    ("safe.v0.result", {"max_message_bytes": "99999999"}, None),
]


@pytest.mark.parametrize(("name", "changes", "warning"), DIFFERENT)
async def test_anything_else_is_a_warning_with_both_values(
    site: Settings, name: str, changes: dict[str, str], warning: str | None
) -> None:
    verified = await verify_topics(InMemoryCluster(changed(right(site), name, None, **changes)), site, "all")
    if warning is None:
        assert verified.warnings == ()
    else:
        (told,) = verified.warnings
        assert told.endswith(warning)
        assert told.startswith(name)


async def test_without_topic_ids_a_warning_says_which_check_is_off(site: Settings) -> None:
    broker = right(site)
    broker.topics = {name: replace(topic, topic_id=None) for name, topic in broker.topics.items()}
    [warning] = (await verify_topics(InMemoryCluster(broker), site, "scorer")).warnings
    for words in ("no topic ids", "deleted and created again", "Starting over"):
        assert words in warning


async def test_a_broker_that_tells_no_settings_is_taken_at_its_word(site: Settings) -> None:
    broker = Broker({name: TopicDescription(name, 8, 3, {}, "an id") for name in DEFAULT_NAMES.values()})
    verified = await verify_topics(InMemoryCluster(broker), site, "all")
    assert verified.warnings == ()
    assert verified.limits[site.dead_letter_topic] == 1_048_588  # Kafka's default


# --- what outlives a broker -------------------------------------------------------------------------------------------

# topic, its replicas and settings, and what the warning says with both values and the remedy
UNSAFE: list[tuple[str, int, dict[str, str], str]] = [
    ("safe.v0.state", 1, {"min.insync.replicas": "1"}, r"fewer than 3 replicas: safe\.v0\.state has 1; .*reassign"),
    ("safe.v0.scored", 2, {"min.insync.replicas": "1"}, r"fewer than 3 replicas: safe\.v0\.scored has 2; .*=2"),
    ("__consumer_offsets", 1, {}, r"fewer than 3 replicas: __consumer_offsets has 1; "),
    ("safe.v0.result", 3, {"min.insync.replicas": "1"}, r"min\.insync\.replicas below 2: safe\.v0\.result has 1; .*=2"),
    (
        "__transaction_state",
        3,
        {"min.insync.replicas": "1"},
        r"min\.insync\.replicas below 2: __transaction_state has 1; ",
    ),
    (
        "safe.v0.dead-letter",
        3,
        {"unclean.leader.election.enable": "true"},
        r"unclean\.leader\.election\.enable=true: safe\.v0\.dead-letter; .*=false \(kafka-configs",
    ),
]


@pytest.mark.parametrize(("name", "replicas", "settings", "expected"), UNSAFE)
async def test_a_topic_that_does_not_outlive_a_broker_is_one_warning(
    site: Settings, name: str, replicas: int, settings: dict[str, str], expected: str
) -> None:
    broker = right(site)
    topic = broker.topics[name]
    broker.topics[name] = replace(topic, replication_factor=replicas, settings={**topic.settings, **settings})
    (warning,) = (await verify_topics(InMemoryCluster(broker), site, "all")).warnings
    assert re.match(expected, warning), warning


async def test_topics_with_the_same_gap_share_a_warning(site: Settings) -> None:
    broker = right(site)
    for name, topic in broker.topics.items():
        broker.topics[name] = replace(topic, settings={**topic.settings, "min.insync.replicas": "1"})
    told = (await verify_topics(InMemoryCluster(broker), site, "aggregator")).warnings
    (warning,) = [each for each in told if each.startswith("min.insync.replicas below 2: ")]
    assert warning.count(" has 1") == 7


async def test_what_kafka_does_not_show_of_itself_is_not_warned_of(site: Settings) -> None:
    broker = right(site)
    for name in INTERNAL:
        del broker.topics[name]
    assert (await verify_topics(InMemoryCluster(broker), site, "all")).warnings == ()


async def test_one_broker_for_development_is_a_note_and_no_warning(site: Settings) -> None:
    broker = right(site)
    broker.brokers = 1
    for name, topic in broker.topics.items():
        broker.topics[name] = replace(topic, replication_factor=1, settings={**topic.settings, **ALONE})
    verified = await verify_topics(InMemoryCluster(broker), site, "all")
    assert verified.warnings == ()
    (note,) = verified.notes
    assert note.startswith("this cluster has one broker")


async def test_one_broker_that_is_left_of_several_is_no_cluster_for_development(site: Settings) -> None:
    broker = changed(right(site), "safe.v0.state", min_insync_replicas="1")
    broker.brokers = 1
    verified = await verify_topics(InMemoryCluster(broker), site, "all")
    assert len(verified.warnings) == 1
    assert verified.notes == ()


# --- making them ------------------------------------------------------------------------------------------------------


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    """What `create_topics` talks to."""
    broker = Broker()

    def cluster(_connection: Connection) -> Cluster:
        return InMemoryCluster(broker)

    monkeypatch.setattr(topics_module, "Cluster", cluster)
    return broker


async def test_all_six_are_made_as_they_should_be(site: Settings, broker: Broker) -> None:
    lines = await create_topics(site, 8, 3)
    assert lines == [f"{name}: created with 8 partitions" for name in DEFAULT_NAMES.values()]
    assert set(broker.durability.values()) == {"2"}
    assert broker.stopped == 1
    assert (await verify_topics(InMemoryCluster(broker), site, "all")).warnings == ()


async def test_with_one_replica_one_in_sync_is_enough(site: Settings, broker: Broker) -> None:
    await create_topics(site, 1, 1)
    assert set(broker.durability.values()) == {"1"}


async def test_with_three_replicas_no_broker_that_is_behind_may_lead(site: Settings, broker: Broker) -> None:
    for replicas, expected in ((3, "false"), (2, None)):
        broker.topics.clear()
        await create_topics(site, 1, replicas)
        unclean = {topic.settings.get("unclean.leader.election.enable") for topic in broker.topics.values()}
        assert unclean == {expected}


async def test_they_are_made_only_when_every_broker_knows_them(site: Settings, broker: Broker) -> None:
    broker.blind = 5
    await create_topics(site, 8, 3)
    assert broker.blind == 0


async def test_a_broker_that_never_learns_of_them_is_named(site: Settings, broker: Broker) -> None:
    broker.blind = 1_000_000
    with pytest.raises(ConfigurationError, match=r"broker 2 \(127\.0\.0\.1:9093\) does not know factory\.generation"):
        await create_topics(site, 8, 3)
    assert broker.stopped == 1


async def test_making_them_twice_is_fine(site: Settings, broker: Broker) -> None:
    await create_topics(site, 8, 3)
    assert await create_topics(site, 8, 3) == [
        f"{name}: already there with 8 partitions" for name in DEFAULT_NAMES.values()
    ]
    assert broker.stopped == 2


async def test_a_state_topic_that_was_lost_is_not_made_again(site: Settings, broker: Broker) -> None:
    await create_topics(site, 8, 3)
    del broker.topics["safe.v0.state"], broker.topics["safe.v0.report"]
    broker.offsets["safe-v0.aggregator", "safe.v0.scored"] = {0: 12, 3: 4}
    with pytest.raises(ConfigurationError, match=r"(?s)safe\.v0\.state .* is missing, but .*Starting over"):
        await create_topics(site, 8, 3)
    assert "safe.v0.report" not in broker.topics
    assert broker.stopped == 2

    broker.offsets.clear()  # as "Starting over" says
    assert "safe.v0.state: created with 8 partitions" in await create_topics(site, 8, 3)


async def test_who_may_not_ask_about_groups_may_make_topics(site: Settings, broker: Broker) -> None:
    await create_topics(site, 8, 3)
    del broker.topics["safe.v0.state"]
    broker.refuses_offsets = True
    assert "safe.v0.state: created with 8 partitions" in await create_topics(site, 8, 3)


async def test_one_that_is_there_and_wrong_is_named(site: Settings, broker: Broker) -> None:
    broker.topics["safe.v0.state"] = TopicDescription("safe.v0.state", 2, 1, COMPACTED)
    with pytest.raises(ConfigurationError, match=r"safe\.v0\.state has 2 partitions"):
        await create_topics(site, 8, 1)
    assert broker.stopped == 1


async def test_one_that_is_there_and_only_different_is_a_warning(site: Settings, broker: Broker) -> None:
    await create_topics(site, 8, 1)
    changed(broker, "safe.v0.scored", retention_ms="1000")
    assert (await create_topics(site, 8, 1))[-1].startswith("warning: safe.v0.scored has retention.ms=1000")


async def test_what_the_broker_refuses_is_fatal_with_its_reason(site: Settings, broker: Broker) -> None:
    with pytest.raises(Fatal, match="replication factor larger than available brokers"):
        await create_topics(site, 8, 5)
    assert broker.stopped == 1


async def test_one_that_is_refused_keeps_no_other_from_being_made(site: Settings, broker: Broker) -> None:
    broker.refuses_setting = "segment.bytes"  # which only compacted topics have
    with pytest.raises(ConfigurationError) as refused:
        await create_topics(site, 8, 3)

    assert set(DEFAULT_NAMES.values()) - broker.topics.keys() == {"safe.v0.state", "safe.v0.report"}
    for words in ("topic safe.v0.state cannot", "topic safe.v0.report cannot", "safe.v0.result", "--leave-out SETTING"):
        assert words in str(refused.value)


async def test_a_setting_that_the_cluster_refuses_can_be_left_out_and_is_named(site: Settings, broker: Broker) -> None:
    broker.refuses_setting = "segment.bytes"
    lines = await create_topics(site, 8, 3, ["segment.bytes", "min.insync.replicas"])

    assert broker.topics.keys() == set(DEFAULT_NAMES.values())
    assert set(broker.durability.values()) == {None}
    assert "left out: min.insync.replicas, segment.bytes; the cluster's own values apply to the new topics" in lines
    assert broker.topics["safe.v0.state"].settings["cleanup.policy"] == "compact"


@pytest.mark.parametrize("name", ["cleanup.policy", "segmnt.bytes"])
async def test_what_is_needed_or_unknown_cannot_be_left_out(site: Settings, broker: Broker, name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"--leave-out {re.escape(name)}: .*segment\.bytes"):
        await create_topics(site, 8, 3, [name])
    assert not broker.topics


async def test_no_broker_names_where_it_was_looked_for(site: Settings, broker: Broker) -> None:
    broker.answers = False
    with pytest.raises(ConfigurationError, match=re.escape("127.0.0.1:9092")):
        await connected_cluster(site).__aenter__()
    with pytest.raises(ConfigurationError, match=r"SAFE_V0_KAFKA_BOOTSTRAP_SERVERS"):
        await create_topics(site, 8, 1)


# --- the topic of test cases ------------------------------------------------------------------------------------------


@pytest.fixture
def site_with_cases() -> Settings:
    return settings_with(kafka_bootstrap_servers="127.0.0.1:9092", expectations="topic:safe.v0.test-cases")


def test_only_a_topic_of_test_cases_is_one(site_with_cases: Settings) -> None:
    spec = cases_topic(site_with_cases)
    assert spec is not None
    assert (spec.name, spec.variable) == ("safe.v0.test-cases", "SAFE_V0_EXPECTATIONS")
    assert spec.settings == {**COMPACTED, "max.message.bytes": str(8 * 1024 * 1024)}
    for where in (None, "./cases", "https://cases.example/base"):
        assert cases_topic(settings_with(expectations=where)) is None


async def test_the_topic_of_test_cases_is_made_last_with_one_partition(
    site_with_cases: Settings, broker: Broker
) -> None:
    lines = await create_topics(site_with_cases, 8, 3)
    again = await create_topics(site_with_cases, 8, 3)

    assert lines[:-1] == [f"{name}: created with 8 partitions" for name in DEFAULT_NAMES.values()]
    assert lines[-1] == "safe.v0.test-cases: created with 1 partition"
    assert again[-1] == "safe.v0.test-cases: already there with 1 partition"
    assert broker.durability["safe.v0.test-cases"] == "2"
    assert broker.topics["safe.v0.test-cases"].settings["cleanup.policy"] == "compact"


async def test_the_topic_of_test_cases_is_missed_by_whoever_scores(site_with_cases: Settings) -> None:
    cluster = InMemoryCluster(right(site_with_cases))
    for role in ("scorer", "all"):
        with pytest.raises(ConfigurationError, match=r"missing topic: safe\.v0\.test-cases \(SAFE_V0_EXPECTATIONS\)"):
            await verify_topics(cluster, site_with_cases, role)
    assert "safe.v0.test-cases" not in (await verify_topics(cluster, site_with_cases, "aggregator")).partitions


# what is other than it should be, and the warning
OTHER_CASES_TOPICS: list[tuple[int, dict[str, str], str | None]] = [
    (1, {}, None),
    (1, {"max.message.bytes": "99999999"}, None),
    (1, {"cleanup.policy": "delete"}, "has cleanup.policy=delete; compact is recommended"),
    (1, {"cleanup.policy": "compact,delete"}, "has cleanup.policy=compact,delete; compact is recommended"),
    (4, {}, "has 4 partitions; 1 is recommended"),
    (1, {"max.message.bytes": "1048588"}, "has max.message.bytes=1048588; 8388608 is recommended"),
]


@pytest.mark.parametrize(("partitions", "changes", "warning"), OTHER_CASES_TOPICS)
async def test_whatever_is_other_about_the_topic_of_test_cases_is_a_warning(
    site_with_cases: Settings, partitions: int, changes: dict[str, str], warning: str | None
) -> None:
    broker = right(site_with_cases)
    spec = cases_topic(site_with_cases)
    assert spec is not None
    broker.topics[spec.name] = TopicDescription(spec.name, partitions, 1, {**spec.settings, **changes})

    warnings = (await verify_topics(InMemoryCluster(broker), site_with_cases, "all")).warnings

    assert len(warnings) == (warning is not None)
    assert all(str(warning) in told for told in warnings)
