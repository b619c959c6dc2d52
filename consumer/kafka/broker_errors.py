"""What an error of Kafka's brokers, or of the client library, means: one table, from its class to a sentence.

A sentence begins with what the call was about (a topic with its partition, a group, the cluster), says what is wrong
and then what to do. It never has the name of a class: its readers run SAFE, and have not read the code. An error
that is not in the table is told by its name, with a page that explains it.
"""

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from aiokafka import errors as kafka

from consumer.kafka.aiokafka_internals import UnknownVersion
from consumer.kafka.decompression import BatchTooLarge, UndecodableBatch

TOO_LARGE: Final = (kafka.MessageSizeTooLargeError, kafka.RecordListTooLargeError, kafka.RecordTooLargeError)
EXPLAINED_AT: Final = "https://kafka.apache.org/protocol#protocol_error_codes"


def _no_detail(_: BaseException) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What is wrong and what to do, as the rest of a sentence; `{}` is for what `detail` reads from the error.

    `is_permanent`: no waiting helps, so the process ends with this sentence. Otherwise the same call is tried again.
    """

    words: str
    is_permanent: bool = False
    detail: Callable[[BaseException], str] = _no_detail

    def of(self, error: BaseException) -> str:
        """The words about this very error."""
        return self.words.format(self.detail(error))


def meaning_of(error: BaseException) -> Meaning:
    """The row for an error."""
    error = _told(error)
    return next((MEANINGS[kind] for kind in type(error).__mro__ if kind in MEANINGS), UNKNOWN)


def words_of(error: BaseException) -> str:
    """What is wrong and what to do."""
    return meaning_of(error).of(_told(error))


def _told(error: BaseException) -> BaseException:
    """The error that is told: of one that is not in the table and was raised from another, that one."""
    while error.__cause__ is not None and not any(kind in MEANINGS for kind in type(error).__mro__):
        error = error.__cause__
    return error


def sentence_of(error: BaseException, about: str) -> str:
    """The whole sentence; `about` names what the call was about."""
    return f"{about}: {words_of(error)}"


def name_of(error: BaseException) -> str:
    """The name that Kafka's documentation has for an error of a broker; else the client's own, with what it says."""
    if isinstance(error, kafka.BrokerResponseError):
        return str(error.message)
    said = error.args[0] if error.args and isinstance(error, kafka.KafkaError) else ""
    return f"{type(error).__name__} ({said})" if said else type(error).__name__


def _node(error: BaseException) -> str:
    """Which broker a client could not connect to: it says so only in words."""
    found = re.search(r"node id (\S+?)\)", str(error))
    return f"broker {found[1]}" if found else "a broker"


def _reason(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or "the connection was closed")


def _limit(error: BaseException) -> str:
    return str(getattr(error, "limit_bytes", ""))


def _permanent(words: str) -> Meaning:
    return Meaning(words, is_permanent=True)


UNKNOWN: Final = Meaning(
    f"Kafka reports {{}}; the broker's log may say more, and {EXPLAINED_AT} explains the name", detail=name_of
)

_REACHABLE = (
    "check that it is up, and that the address that it gives to clients (advertised.listeners) can be reached from here"
)
_NO_CONNECTION = Meaning(f"no connection to {{}}; {_REACHABLE}", detail=_node)
_SILENT = Meaning("no answer within the time limit; check that the brokers are up, and how busy they are")
_REBALANCING = Meaning("the consumer group is rebalancing, which ends by itself")
_NO_COORDINATOR = Meaning(
    "its coordinator is not available yet or is moving to another broker, which ends by itself. If it lasts, look "
    "whether __consumer_offsets and __transaction_state have leaders: they need as many brokers as they have replicas"
)
_NO_LEADER = Meaning(
    "a partition has no leader at the moment, or it has just changed, which ends by itself once its brokers are up"
)
_FEW_REPLICAS = Meaning(
    "fewer of its replicas are in sync than min.insync.replicas requires; start the brokers that are missing"
)
_LARGER_THAN_TOPIC = Meaning(
    "a record or a batch of records is larger than the topic accepts; raise max.message.bytes of the topic (and "
    "message.max.bytes of the brokers, where the service has a limit of its own)"
)
_SEQUENCE_LOST = Meaning(
    "the broker no longer knows what this producer has written. SAFE starts another producer and goes on from what "
    "is committed"
)
_OTHER_PRODUCER = Meaning("another producer has taken over")
_FETCH_AGAIN = Meaning("the broker has dropped the session in which records were read; the client opens another one")
_OUT_OF_RANGE = Meaning(
    "the offset is not in the log (any more): retention has deleted it, or the topic was created again"
)
_LOGIN = Meaning(  # passing: while a password is changed, some brokers know the old one and some the new one
    "the brokers refuse the login; check SAFE_V0_KAFKA_SECURITY_PROTOCOL, SAFE_V0_KAFKA_SASL_MECHANISM, "
    "SAFE_V0_KAFKA_SASL_USERNAME and SAFE_V0_KAFKA_SASL_PASSWORD"
)
_OLD_BROKER = Meaning(
    "the broker does not know this request; it is older than SAFE needs, or is being upgraded. "
    "docs/reference/clusters.md says which versions work, and with which settings"
)
_REPLICATION = _permanent(
    "the cluster does not accept this number of replicas: it may have fewer brokers. Set --replication-factor"
)

# The first line of a row says what is wrong, the classes follow. Rows of one kind stand together: rights and logins,
# brokers and leaders, groups, transactions, records that are read, records that are written, topics and their settings.
_ROWS: tuple[tuple[Meaning, tuple[type[BaseException], ...]], ...] = (
    (
        _permanent("not authorised for the topic; grant READ, WRITE and DESCRIBE as needed"),
        (kafka.TopicAuthorizationFailedError,),
    ),
    (
        _permanent("not authorised for the consumer group; grant READ on it"),
        (kafka.GroupAuthorizationFailedError,),
    ),
    (
        _permanent("not authorised for its transactional ids; grant WRITE on them"),
        (kafka.TransactionalIdAuthorizationFailed,),
    ),
    (
        _permanent("not authorised by the cluster; grant IDEMPOTENT_WRITE and DESCRIBE"),
        (kafka.ClusterAuthorizationFailedError,),
    ),
    (
        _LOGIN,
        (
            kafka.SaslAuthenticationFailed,
            kafka.AuthenticationFailedError,
            kafka.AuthenticationMethodNotSupported,
            kafka.UnsupportedSaslMechanismError,
            kafka.IllegalSaslStateError,
        ),
    ),
    (
        _permanent("the cluster has no access control (no authorizer is set), so rights can be neither read nor given"),
        (kafka.SecurityDisabled,),
    ),
    # --- brokers and leaders
    (
        _NO_CONNECTION,
        (
            kafka.NodeNotReadyError,
            kafka.KafkaConnectionError,
            kafka.NoBrokersAvailable,
            kafka.MetadataEmptyBrokerList,
            kafka.KafkaUnavailableError,
            kafka.BrokerNotAvailableError,
            kafka.CorrelationIdError,
            kafka.Cancelled,
        ),
    ),
    (Meaning("no connection to a broker ({}); " + _REACHABLE, detail=_reason), (OSError,)),
    (
        Meaning(
            "the name of a broker does not resolve ({}); check SAFE_V0_KAFKA_BOOTSTRAP_SERVERS, and the addresses that "
            "the brokers give to clients (advertised.listeners)",
            detail=_reason,
        ),
        (socket.gaierror,),
    ),
    (_SILENT, (TimeoutError, kafka.KafkaTimeoutError, kafka.RequestTimedOutError, kafka.TooManyInFlightRequests)),
    (
        _NO_LEADER,
        (
            kafka.LeaderNotAvailableError,
            kafka.NotLeaderForPartitionError,
            kafka.ReplicaNotAvailableError,
            kafka.StaleMetadata,
            kafka.StaleLeaderEpochCodeError,
            kafka.NotControllerError,
        ),
    ),
    (
        Meaning(
            "the leader has no listener of the name that clients connect to; give every broker the same names in "
            "listeners and advertised.listeners"
        ),
        (kafka.ListenerNotFound,),
    ),
    (
        Meaning("a broker cannot read or write its disk; see that broker's log"),
        (kafka.KafkaStorageError, kafka.LogDirNotFound),
    ),
    (
        Meaning(
            "the topic or the partition does not exist, or the broker does not know it yet. If it has never existed, "
            "create it with `safe topics create`"
        ),
        (kafka.UnknownTopicOrPartitionError,),
    ),
    (
        Meaning("the broker limits how much this client may ask for (quota); raise it, or wait"),
        (kafka.QuotaViolationError,),
    ),
    (
        _OLD_BROKER,
        (kafka.UnsupportedVersionError, kafka.IncompatibleBrokerVersion, kafka.UnrecognizedBrokerVersion),
    ),
    # --- groups
    (
        _NO_COORDINATOR,
        (
            kafka.GroupCoordinatorNotAvailableError,
            kafka.NotCoordinatorForGroupError,
            kafka.GroupLoadInProgressError,
            kafka.TransactionCoordinatorFenced,
        ),
    ),
    (
        _REBALANCING,
        (
            kafka.RebalanceInProgressError,
            kafka.IllegalGenerationError,
            kafka.UnknownMemberIdError,
            kafka.MemberIdRequired,
            kafka.CommitFailedError,
        ),
    ),
    (
        _permanent(
            "the brokers do not allow this session timeout; set SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS to a value "
            "between group.min.session.timeout.ms and group.max.session.timeout.ms of the brokers"
        ),
        (kafka.InvalidSessionTimeoutError,),
    ),
    (
        _permanent("the brokers do not accept this name of a group; check SAFE_V0_KAFKA_GROUP_ID"),
        (kafka.InvalidGroupIdError,),
    ),
    (
        Meaning("the group has members that are no workers of SAFE; give SAFE a group of its own"),
        (kafka.InconsistentGroupProtocolError,),
    ),
    (Meaning("the group has members; stop all of them first"), (kafka.NonEmptyGroup,)),
    (Meaning("the group does not exist"), (kafka.GroupIdNotFound,)),
    (
        _permanent("the note beside an offset is longer than the brokers accept; raise offset.metadata.max.bytes"),
        (kafka.OffsetMetadataTooLargeError,),
    ),
    (
        Meaning("the commit is larger than the brokers accept; raise message.max.bytes of the brokers"),
        (kafka.InvalidCommitOffsetSizeError,),
    ),
    # --- transactions
    (
        _permanent(
            "the brokers do not allow transactions that may take this long; raise transaction.max.timeout.ms of the "
            "brokers to one minute or more, or lower SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS, from which the time of a "
            "worker's transactions follows"
        ),
        (kafka.InvalidTransactionTimeout,),
    ),
    (_OTHER_PRODUCER, (kafka.ProducerFenced, kafka.InvalidProducerEpoch)),
    (
        Meaning("an earlier transaction of this producer is still being ended, which ends by itself"),
        (kafka.ConcurrentTransactions,),
    ),
    (
        _SEQUENCE_LOST,
        (
            kafka.OutOfOrderSequenceNumber,
            kafka.DuplicateSequenceNumber,
            kafka.UnknownProducerId,
            kafka.InvalidProducerIdMapping,
            kafka.InvalidTxnState,
        ),
    ),
    # The client asserts, rather than raises, that a producer which was fenced or has failed is not used again.
    (
        Meaning("the client has given up this producer; SAFE starts another one"),
        (kafka.ProducerClosed, kafka.IllegalStateError, AssertionError),
    ),
    # --- records that are read
    (
        Meaning(
            "a compressed batch is larger than {} bytes decompressed; raise SAFE_V0_MAX_BATCH_BYTES and start again, "
            "or have the batch removed, and limit what producers may send (max.message.bytes of the topic)",
            detail=_limit,
        ),
        (BatchTooLarge,),
    ),
    (
        Meaning("a record batch has the right checksum but cannot be read; find out what wrote it"),
        (UndecodableBatch,),
    ),
    (
        Meaning("a record batch fails its checksum; the copy on this broker's disk is damaged"),
        (kafka.CorruptRecordException,),
    ),
    (
        _permanent("it holds a batch with a compression codec that is not installed here"),
        (kafka.UnsupportedCodecError,),
    ),
    (
        _permanent("it holds a batch in a format that is newer than this SAFE; install a newer one"),
        (UnknownVersion,),
    ),
    (_OUT_OF_RANGE, (kafka.OffsetOutOfRangeError, kafka.NoOffsetForPartitionError)),
    (
        _FETCH_AGAIN,
        (kafka.FetchSessionIdNotFound, kafka.InvalidFetchSessionEpoch, kafka.InvalidFetchRequestError),
    ),
    # --- records that are written
    (_LARGER_THAN_TOPIC, TOO_LARGE),
    (
        Meaning(
            "the brokers refuse the time of the records; set the clock of this machine right, or the brokers', and "
            "look at message.timestamp.after.max.ms and message.timestamp.before.max.ms of the topic (before Kafka "
            "3.6: message.timestamp.difference.max.ms)"
        ),
        (kafka.InvalidTimestampError,),
    ),
    (_FEW_REPLICAS, (kafka.NotEnoughReplicasError, kafka.NotEnoughReplicasAfterAppendError)),
    (
        _permanent(
            "the topic keeps records in a format of before Kafka 0.11, which has neither headers nor transactions; "
            "set message.format.version of the topic to 0.11 or newer"
        ),
        (kafka.UnsupportedForMessageFormatError,),
    ),
    # --- topics and their settings
    (Meaning("the topic is already there"), (kafka.TopicAlreadyExistsError,)),
    (
        _permanent("this is no valid name of a topic; use letters, digits, dots, dashes and underscores"),
        (kafka.InvalidTopicError,),
    ),
    (
        _permanent("the cluster does not accept this number of partitions; set --partitions"),
        (kafka.InvalidPartitionsError,),
    ),
    (_REPLICATION, (kafka.InvalidReplicationFactorError, kafka.InvalidReplicationAssignmentError)),
    (
        _permanent("the cluster does not accept one of these settings of a topic"),
        (kafka.InvalidConfigurationError,),
    ),
    (
        Meaning("a policy of the cluster forbids this; ask those who run it"),
        (kafka.PolicyViolationError,),
    ),
    (
        Meaning("the topic's partitions are being moved to other brokers; wait until that is done"),
        (kafka.ReassignmentInProgress,),
    ),
)

MEANINGS: Final[Mapping[type[BaseException], Meaning]] = {kind: meaning for meaning, kinds in _ROWS for kind in kinds}
