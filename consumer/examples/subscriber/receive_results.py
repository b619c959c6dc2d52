"""Prints each result as it comes: the label of the case, and its batch's summary as of that case."""

import json
import os

from confluent_kafka import Consumer, KafkaException

settings = {
    "bootstrap.servers": os.environ.get("KAFKA_BROKERS", "localhost:9092"),
    "group.id": os.environ.get("GROUP_ID", "my-service"),
    "isolation.level": "read_committed",  # leaves out what a worker that crashed had not committed
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}
consumer = Consumer(settings)
consumer.subscribe([os.environ.get("RESULT_TOPIC", "safe.v0.result")])
while True:
    message = consumer.poll(1.0)
    if message is None:
        continue
    if message.error():
        raise KafkaException(message.error())
    if dict(message.headers() or ()).get("ce_type") == b"safe:v0:result":
        event = json.loads(message.value())
        case, batch = event["result"], event["summary"]
        print(event["batch_id"], case["test_id"], case["label"], batch["pass"], "of", batch["total_cases"], flush=True)
    # Commit after the work: then a crash repeats a result, but loses none. One commit for each result is slow: in
    # production, commit once a second, or every thousand results.
    consumer.commit(message, asynchronous=False)
