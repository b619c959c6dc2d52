"""The only package of SAFE that imports aiokafka.

Where correctness needs what aiokafka does not offer, SAFE uses private names of the library. They are all in
`internals.py`, each with a test, so that an incompatible release fails a test and not a clinic.
"""

from consumer.kafka.cluster import Cluster, TopicDescription, TopicsSeen
from consumer.kafka.connection import Connection
from consumer.kafka.group_offsets import Committed, OutOfGroup
from consumer.kafka.internals import size_of
from consumer.kafka.partitioner import partition_for, partition_of_key
from consumer.kafka.patches import install_patches
from consumer.kafka.publisher import Copy, Refused, TableRecord, publishing_events, republishing, writing_table
from consumer.kafka.reach import TurnedAway, unusable
from consumer.kafka.reader import Span, following, read_partition, read_record, read_tail, scanning
from consumer.kafka.subscription import Fetched, OffsetOutOfRange, Subscription
from consumer.kafka.table import TableReader
from consumer.kafka.writer import Outgoing, PartitionWriter, PlainWriter, ProducerEpoch, TransactionalWriter

__all__ = [
    "Cluster",
    "Committed",
    "Connection",
    "Copy",
    "Fetched",
    "OffsetOutOfRange",
    "OutOfGroup",
    "Outgoing",
    "PartitionWriter",
    "PlainWriter",
    "ProducerEpoch",
    "Refused",
    "Span",
    "Subscription",
    "TableReader",
    "TableRecord",
    "TopicDescription",
    "TopicsSeen",
    "TransactionalWriter",
    "TurnedAway",
    "following",
    "install_patches",
    "partition_for",
    "partition_of_key",
    "publishing_events",
    "read_partition",
    "read_record",
    "read_tail",
    "republishing",
    "scanning",
    "size_of",
    "unusable",
    "writing_table",
]
