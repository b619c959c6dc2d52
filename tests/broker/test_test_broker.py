"""The broker and the foreign client that all the other tests lean on."""

from collections.abc import Callable, Iterable

import pytest
from confluent_kafka import Producer
from typing_extensions import override

from tests.support.kafka_broker import KafkaBroker
from tests.support.outside import Ends, Outgoing, Outside, Place, Topics

pytestmark = pytest.mark.broker


def test_what_was_written_is_read_back_to_the_byte(outside: Outside) -> None:
    topic = Topics.fresh().input
    outside.create_topic(topic, partitions=3)
    written = [
        Outgoing(b"plain", partition=0),
        Outgoing(None, key=b"tombstone", partition=1),
        Outgoing(
            b"", key=b"", partition=1, headers=(("a", b"\xff"), ("a", None), ("b", b"")), timestamp=1_795_291_200_000
        ),
    ]

    places = outside.produce(topic, written)

    assert places == [(0, 0), (1, 0), (1, 1)]
    read = outside.read(topic)
    assert [(each.partition, each.offset, each.key, each.value) for each in read] == [
        (0, 0, None, b"plain"),
        (1, 0, b"tombstone", None),
        (1, 1, b"", b""),
    ]
    assert read[2].headers == (("a", b"\xff"), ("a", None), ("b", b""))
    assert read[2].timestamp == 1_795_291_200_000


def opened(outside: Outside, topic: str) -> Producer:
    """A producer with one record in a transaction that is still open."""
    outside.create_topic(topic)
    producer = Producer({"bootstrap.servers": outside.bootstrap_servers, "transactional.id": topic, "log_level": 2})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"in a transaction")
    producer.flush(30)
    return producer


def test_an_open_transaction_hides_records_and_an_aborted_one_never_shows_them(outside: Outside) -> None:
    topic = Topics.fresh().input
    producer = opened(outside, topic)

    assert outside.read(topic) == []
    assert [each.value for each in outside.read(topic, isolation="read_uncommitted")] == [b"in a transaction"]
    assert outside.ends(topic) == {0: Ends(first=0, stable=0, log=1)}
    assert outside.hanging([topic], within_seconds=0.5) == [f"{topic}/0: stable 0, log end 1"]
    with pytest.raises(AssertionError, match="open transactions end"):
        outside.await_decided([topic], within_seconds=0.5)

    producer.abort_transaction(30)
    outside.produce(topic, [Outgoing(b"after")])

    assert [each.value for each in outside.read(topic)] == [b"after"]
    assert outside.hanging([topic]) == []


class Meanwhile(Outside):
    """A client between whose first look for open transactions and its second one something happens."""

    def __init__(self, bootstrap_servers: str, happens: Callable[[], None]) -> None:
        super().__init__(bootstrap_servers)
        self._happens = happens

    @override
    def undecided(self, topics: Iterable[str]) -> dict[Place, Ends]:
        found = super().undecided(topics)
        self._happens()
        return found


def test_a_transaction_that_is_committed_while_one_looks_does_not_hang(outside: Outside) -> None:
    topic = Topics.fresh().input
    producer = opened(outside, topic)
    with Meanwhile(outside.bootstrap_servers, lambda: producer.commit_transaction(30)) as looking:
        assert looking.hanging([topic]) == []


def test_a_transaction_that_is_aborted_while_one_looks_has_hung(outside: Outside) -> None:
    topic = Topics.fresh().input
    producer = opened(outside, topic)
    with Meanwhile(outside.bootstrap_servers, lambda: producer.abort_transaction(30)) as looking:
        assert looking.hanging([topic]) == [f"{topic}/0: stable 0, log end 1, then aborted"]


def test_the_contract_s_topics_have_their_settings(outside: Outside) -> None:
    topics = Topics.fresh()

    outside.create_contract_topics(topics, partitions=2)

    assert {topic: outside.partitions(topic) for topic in (topics.input, *topics.outputs())} == dict.fromkeys(
        (topics.input, *topics.outputs()), 2
    )
    assert outside.topic_config(topics.state)["cleanup.policy"] == "compact"
    assert outside.topic_config(topics.dead_letter)["max.message.bytes"] == "8388608"


def test_a_killed_broker_comes_back_with_its_records(own_broker: Callable[..., KafkaBroker]) -> None:
    broker = own_broker()
    with Outside(broker.bootstrap_servers) as client:
        client.create_topic("kept")
        client.produce("kept", [Outgoing(b"1"), Outgoing(b"2")])

    broker.restart(kill=True)

    with Outside(broker.bootstrap_servers) as client:
        assert [each.value for each in client.read("kept")] == [b"1", b"2"]
