"""`safe config check`: the settings, tried on the brokers and on the source of test cases; nothing is changed."""

from collections.abc import AsyncIterator

from consumer.case_sources.source import ExpectationsKey, ExpectationsSource
from consumer.errors import ConfigurationError, Transient
from consumer.kafka.connection import Connection
from consumer.kafka.topics import connected_cluster, verify_topics
from consumer.settings import Loaded
from consumer.worker.main import expectations_source, service_access

_NOBODYS = ExpectationsKey("safe-config-check", "safe-config-check")
"""A test case that nobody has: that the source says so is an answer."""


async def try_settings(loaded: Loaded, role: str) -> AsyncIterator[str]:
    """Say step by step what has been found; raises ConfigurationError at the first step that fails."""
    settings = loaded.settings
    yield f"settings: valid, fingerprint {loaded.policy.fingerprint}"
    async with connected_cluster(settings) as cluster:
        yield f"brokers: {settings.kafka_bootstrap_servers} answer"
        verified = await verify_topics(cluster, settings, role)
        found = ", ".join(f"{name} ({count} partitions)" for name, count in verified.partitions.items())
        yield f"topics: {found}"
        for warning in verified.warnings:
            yield f"warning: {warning}"
    if role != "aggregator":
        source = expectations_source(settings, Connection.from_settings(settings), service_access(loaded))
        await _look_up(source)
        yield f"test cases: {settings.expectations} answers look-ups"


async def _look_up(source: ExpectationsSource) -> None:
    try:
        await source.start()
        await source.find([_NOBODYS])
    except Transient as error:
        raise ConfigurationError(f"test cases cannot be looked up: {error}") from error
    finally:
        await source.stop()
