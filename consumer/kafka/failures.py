"""Calls to Kafka: how long one may take, and a failure as an error of ours (broker_errors.py has the table)."""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from aiokafka.errors import KafkaError

from consumer.errors import Fatal, Transient
from consumer.kafka.aiokafka_internals import drop_connections, forget, let_go
from consumer.kafka.broker_errors import meaning_of, sentence_of

T = TypeVar("T")

CALL_SECONDS = 10.0
"""The deadline of each call: while the brokers are down, calls raise nothing and hang."""

FAILURES = (KafkaError, OSError, TimeoutError)


def translated(error: BaseException, about: str) -> Fatal | Transient:
    """The same failure as an error that is named for what the caller does next; `about` begins its sentence."""
    kind = Fatal if meaning_of(error).is_permanent else Transient
    return kind(sentence_of(error, about))


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
