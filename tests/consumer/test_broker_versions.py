"""Brokers that are too old for `exactly_once` are named before anything is read or written."""

from collections.abc import Mapping

import pytest
from typing_extensions import override

from consumer.errors import ConfigurationError
from consumer.kafka.broker_versions import check_brokers
from consumer.kafka.cluster import Cluster
from consumer.settings import Settings

OFFSET_FETCH, TXN_OFFSET_COMMIT = 9, 28
KAFKA_2_4 = {OFFSET_FETCH: 6, TXN_OFFSET_COMMIT: 2}
KAFKA_2_5 = {OFFSET_FETCH: 7, TXN_OFFSET_COMMIT: 3}


class Brokers(Cluster):
    """Brokers that say which requests they know."""

    def __init__(self, **versions: Mapping[int, int]) -> None:
        self._versions = versions

    @override
    async def request_versions(self) -> Mapping[str, Mapping[int, int]]:
        return self._versions


async def test_brokers_of_kafka_2_5_are_new_enough() -> None:
    await check_brokers(Brokers(one=KAFKA_2_5, two=KAFKA_2_5 | {OFFSET_FETCH: 9}), Settings())


async def test_an_older_one_is_named_with_the_remedies() -> None:
    with pytest.raises(ConfigurationError) as refused:
        await check_brokers(Brokers(one=KAFKA_2_5, two=KAFKA_2_4), Settings())

    for words in ("Kafka 2.5", "but two has", "SAFE_V0_DELIVERY=at_least_once", "docs/reference/clusters.md"):
        assert words in str(refused.value)


@pytest.mark.parametrize(
    "lacking", [{OFFSET_FETCH: 7}, {TXN_OFFSET_COMMIT: 3}, {OFFSET_FETCH: 7, TXN_OFFSET_COMMIT: 2}]
)
async def test_one_that_lacks_either_request_is_refused(lacking: Mapping[int, int]) -> None:
    with pytest.raises(ConfigurationError, match=r"but other has no request that"):
        await check_brokers(Brokers(other=lacking), Settings())


async def test_at_least_once_works_with_older_ones() -> None:
    await check_brokers(Brokers(two=KAFKA_2_4), Settings(delivery="at_least_once"))


async def test_where_no_broker_answers_nothing_is_known() -> None:
    await check_brokers(Brokers(), Settings())
