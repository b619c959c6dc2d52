"""`safe config check`: the settings, tried on the brokers and on the source of test cases; nothing is changed."""

from collections.abc import AsyncIterator

from consumer.case_sources.source import ExpectationsKey
from consumer.errors import ConfigurationError, Transient
from consumer.kafka.connection import Connection
from consumer.kafka.topics import cases_topic, connected_cluster, verify_topics
from consumer.settings import Loaded, Settings
from consumer.worker.main import expectations_source, service_access

_NOBODYS = ExpectationsKey("safe-config-check", "safe-config-check")
"""A test case that nobody has: that the source says so is an answer."""


async def try_settings(loaded: Loaded, role: str) -> AsyncIterator[str]:
    """Say step by step what has been found; raises ConfigurationError for what is wrong, once all has been tried."""
    yield f"settings: valid, fingerprint {loaded.policy.fingerprint}"
    wrong: list[ConfigurationError] = []
    try:
        async for line in _try_brokers(loaded.settings, role):
            yield line
    except ConfigurationError as error:
        wrong.append(error)
    # Test cases in a topic cannot be asked of brokers that cannot be used.
    if role != "aggregator" and not (wrong and cases_topic(loaded.settings)):
        try:
            await _look_up(loaded)
            yield f"test cases: {loaded.settings.expectations} answers look-ups"
        except ConfigurationError as error:
            wrong.append(error)
    if wrong:
        raise ConfigurationError("; ".join(map(str, wrong)))


async def _try_brokers(settings: Settings, role: str) -> AsyncIterator[str]:
    async with connected_cluster(settings) as cluster:
        yield f"brokers: {settings.kafka_bootstrap_servers} answer"
        verified = await verify_topics(cluster, settings, role)
        found = ", ".join(f"{name} ({count} partitions)" for name, count in verified.partitions.items())
        yield f"topics: {found}"
        for warning in verified.warnings:
            yield f"warning: {warning}"


async def _look_up(loaded: Loaded) -> None:
    settings = loaded.settings
    source = expectations_source(settings, Connection.from_settings(settings), service_access(loaded))
    try:
        await source.start()
        await source.find([_NOBODYS])
    except Transient as error:
        raise ConfigurationError(f"test cases cannot be looked up: {error}") from error
    finally:
        await source.stop()
