"""The client by which a worker looks at the cluster, when all brokers that it knows of are gone."""

import pytest
from aiokafka.structs import BrokerMetadata

from consumer.errors import Transient
from consumer.kafka.cluster import Cluster
from consumer.kafka.connection import Connection
from tests.support.kafka_broker import free_port
from tests.support.outside import Outside

pytestmark = pytest.mark.broker


async def test_it_finds_brokers_that_came_back_when_the_only_one_that_it_knew_goes(outside: Outside) -> None:
    cluster = Cluster(Connection(outside.bootstrap_servers, {}))
    await cluster.connect()
    try:
        gone = BrokerMetadata(99, "127.0.0.1", free_port(), None)
        cluster._admin._client.cluster._brokers = {gone.nodeId: gone}  # its last answer, while the others were down
        for _ in range(3):
            with pytest.raises(Transient):
                await cluster.look([])

        await cluster.start_again()

        assert (await cluster.look([])).brokers
    finally:
        await cluster.stop()
