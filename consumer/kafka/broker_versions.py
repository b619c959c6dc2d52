"""Whether the brokers are new enough for `exactly_once`.

Two requests decide that; both came with Kafka 2.5 (KIP-447). Versions of requests are compared, not of Kafka: brokers
report no other, and those that are not Apache Kafka count theirs differently.
"""

from collections.abc import Mapping
from typing import Final

from consumer.errors import ConfigurationError
from consumer.kafka.cluster import Cluster
from consumer.settings import Settings
from consumer.text import named

_OFFSET_FETCH, _TXN_OFFSET_COMMIT = 9, 28  # by their numbers in the protocol
_NEEDED: Final[Mapping[int, tuple[int, str]]] = {
    _OFFSET_FETCH: (7, "says whether an offset is final (OffsetFetch 7)"),
    _TXN_OFFSET_COMMIT: (3, "refuses the offsets of workers that the group has excluded (TxnOffsetCommit 3)"),
}


async def check_brokers(cluster: Cluster, settings: Settings) -> None:
    """Raise ConfigurationError if `exactly_once` is set and a broker that answers is too old for it."""
    if settings.delivery != "exactly_once":
        return
    lacking = {
        broker: lack
        for broker, latest in (await cluster.request_versions()).items()
        if (lack := [what for key, (least, what) in _NEEDED.items() if latest.get(key, -1) < least])
    }
    if lacking:
        what = " nor one that ".join(next(iter(lacking.values())))
        raise ConfigurationError(
            f"exactly_once needs Kafka 2.5 or newer, but {named(lacking)} has no request that {what}: upgrade the "
            "brokers, or set SAFE_V0_DELIVERY=at_least_once. docs/reference/clusters.md says which brokers work"
        )
