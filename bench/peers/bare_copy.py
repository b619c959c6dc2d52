"""What the client library allows: the input's bytes copied over two hops, exactly once, and nothing else.

    python -m bench.peers.bare_copy SERVERS INPUT MIDDLE OUTPUT GROUP PARTITIONS

Like SAFE's, each hop has one consumer, and one transactional producer and one task for each partition; a transaction
takes what has come, at most 2,000 records. Records are neither decoded nor looked at. The first hop deals them out to
all partitions, as a repartition does.
"""

import asyncio
import gc
import sys
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.structs import ConsumerRecord

SLICE = 2_000
BATCH_BYTES = 512 * 1024
FETCH_BYTES = 3 * 1024 * 1024


async def main(servers: str, source: str, middle: str, target: str, group: str, partitions: str) -> None:
    """Run both hops in one event loop until the process is stopped."""
    await asyncio.gather(
        _hop(servers, source, middle, f"{group}.one", int(partitions), deals=True),
        _hop(servers, middle, target, f"{group}.two", int(partitions), deals=False),
    )


async def _hop(servers: str, source: str, target: str, group: str, partitions: int, *, deals: bool) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest",
        isolation_level="read_committed", max_partition_fetch_bytes=FETCH_BYTES, fetch_max_bytes=8 * FETCH_BYTES,
        check_crcs=False,
    )  # fmt: skip
    places = [TopicPartition(source, each) for each in range(partitions)]
    consumer.assign(places)
    await consumer.start()
    await asyncio.gather(*(_copy(consumer, each, servers, target, group, partitions * deals) for each in places))


async def _copy(
    consumer: AIOKafkaConsumer, place: TopicPartition, servers: str, target: str, group: str, deals_to: int
) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=servers, transactional_id=f"{group}-{place.partition}", max_batch_size=BATCH_BYTES,
        max_request_size=8 * 1024 * 1024, linger_ms=0,
    )  # fmt: skip
    await producer.start()
    while True:
        records = (await consumer.getmany(place, timeout_ms=500, max_records=SLICE)).get(place)
        if not records:
            continue
        await producer.begin_transaction()
        dealt = [(each, records[each::deals_to]) for each in range(deals_to)]
        hands = dealt or [(place.partition, records)]
        sent = [future for each, hand in hands if hand for future in await _send(producer, target, each, hand)]
        await asyncio.gather(*sent)
        await producer.send_offsets_to_transaction({place: records[-1].offset + 1}, group)
        await producer.commit_transaction()


async def _send(
    producer: AIOKafkaProducer, topic: str, partition: int, records: Sequence[ConsumerRecord[bytes, bytes]]
) -> list[asyncio.Future[object]]:
    futures, batch = [], producer.create_batch()
    for record in records:
        if batch.append(key=record.key, value=record.value, timestamp=None) is None:
            futures.append(await producer.send_batch(batch, topic, partition=partition))
            batch = producer.create_batch()
            batch.append(key=record.key, value=record.value, timestamp=None)
    futures.append(await producer.send_batch(batch, topic, partition=partition))
    return futures


if __name__ == "__main__":
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)  # whole slices of young objects: the default collects for nothing
    asyncio.run(main(*sys.argv[1:]))
