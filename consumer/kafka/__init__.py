"""The one door to Kafka: no other module of SAFE imports aiokafka.

What aiokafka does not offer but correctness needs is reached through private names; each is listed in `internals.py`
and guarded by a test, so that a new release of the library fails there and not in a clinic.
"""

from consumer.kafka.cluster import Cluster, TopicDescription
from consumer.kafka.connection import Connection, partition_for
from consumer.kafka.follow import Follower
from consumer.kafka.publisher import EventPublisher
from consumer.kafka.reader import read_partition, read_record, read_tail
from consumer.kafka.subscription import Fetched, OffsetOutOfRange, Subscription
from consumer.kafka.writer import Outgoing, PartitionWriter, PlainWriter, TransactionalWriter

__all__ = [
    "Cluster",
    "Connection",
    "EventPublisher",
    "Fetched",
    "Follower",
    "OffsetOutOfRange",
    "Outgoing",
    "PartitionWriter",
    "PlainWriter",
    "Subscription",
    "TopicDescription",
    "TransactionalWriter",
    "partition_for",
    "read_partition",
    "read_record",
    "read_tail",
]
