"""What a failed call to Kafka means (waiting helps, or it never will), and how long a call may take."""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    CorruptRecordException,
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnsupportedCodecError,
)

from consumer.errors import Fatal, Transient
from consumer.kafka.aiokafka_internals import UnknownVersion, drop_connections, forget, let_go
from consumer.kafka.decompression import BatchTooLarge, UndecodableBatch

T = TypeVar("T")

CALL_SECONDS = 10.0
"""The deadline of each call: while the brokers are down, calls raise nothing and hang."""

# {0} is what the call was about: a topic with its partition or its group, a group; {1} is the error. The first that
# fits counts.
_FATAL: dict[type[BaseException], str] = {
    TopicAuthorizationFailedError: "{0}: not authorised for the topic; grant READ, WRITE and DESCRIBE as needed",
    GroupAuthorizationFailedError: "{0}: not authorised for the consumer group; grant READ on it",
    TransactionalIdAuthorizationFailed: "{0}: not authorised for its transactional ids; grant WRITE on them",
    ClusterAuthorizationFailedError: "{0}: not authorised by the cluster; grant IDEMPOTENT_WRITE and DESCRIBE",
    UnsupportedCodecError: "{0} holds a batch with a compression codec that is not installed here",
    UnknownVersion: "{0} holds a batch in a format that is newer than this SAFE: install a newer one",
}
_TRANSIENT: dict[type[BaseException], str] = {
    BatchTooLarge: (
        "a compressed batch of {0} is larger than {1.limit_bytes} bytes decompressed: raise SAFE_V0_MAX_BATCH_BYTES "
        "and start again, or have the batch removed, and limit what producers may send (max.message.bytes of the topic)"
    ),
    UndecodableBatch: "a record batch of {0} has the right checksum but cannot be read: find out what wrote it",
    CorruptRecordException: "a record batch of {0} fails its checksum",
}
FAILURES = (KafkaError, OSError, TimeoutError)


def translated(error: BaseException, about: str) -> Fatal | Transient:
    """The same failure as an error that is named for what the caller does next."""
    for meaning, sentences in ((Fatal, _FATAL), (Transient, _TRANSIENT)):
        for kind, sentence in sentences.items():
            if isinstance(error, kind):
                return meaning(sentence.format(about, error))
    return Transient(f"a request to Kafka for {about} failed: {type(error).__name__}")


@contextmanager
def translating(about: str) -> Iterator[None]:
    """Turn the client's errors in this block into Transient or Fatal."""
    try:
        yield
    except FAILURES as error:
        raise translated(error, about) from error


async def answered(call: Awaitable[T], about: str, seconds: float = CALL_SECONDS) -> T:
    """Await a call under a deadline; raises Transient or Fatal."""
    with translating(about):
        async with asyncio.timeout(seconds):
            return await call


async def stopped(consumer: Any, seconds: float) -> None:
    """Stop a consumer; does not wait longer than this for a broker that does not answer, and leaves no connection."""
    if not await closed(consumer.stop(), seconds):
        await closed(let_go(consumer), 1.0)
    drop_connections(consumer)


async def closed(closing: Awaitable[Any], seconds: float) -> bool:
    """Await the closing of something, but no longer than this, and ignore what it raises; return if it was closed."""
    task = asyncio.ensure_future(closing)
    await asyncio.wait([task], timeout=seconds)
    if not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=1.0)
    forget(task)
    return task.done() and not task.cancelled() and task.exception() is None
