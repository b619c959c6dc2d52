"""What people read of the errors of brokers and of the client: one sentence each, which names no class."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import errors as kafka

from consumer.errors import Fatal, Transient
from consumer.kafka import broker_errors
from consumer.kafka.aiokafka_internals import UnknownVersion
from consumer.kafka.broker_errors import EXPLAINED_AT, MEANINGS, UNKNOWN, meaning_of, sentence_of
from consumer.kafka.decompression import BatchTooLarge, UndecodableBatch
from consumer.kafka.failures import translated
from consumer.kafka.transactions import Unanswered

ABOUT = "topic safe.v0.result/3, a batch of 1,200,000 bytes"

# One error for each row of the table, with words that its sentence must have: what is wrong, or the remedy.
PERMANENT: dict[BaseException, tuple[str, ...]] = {
    kafka.TopicAuthorizationFailedError(): ("not authorised for the topic", "grant READ, WRITE and DESCRIBE"),
    kafka.GroupAuthorizationFailedError(): ("not authorised for the consumer group", "grant READ"),
    kafka.TransactionalIdAuthorizationFailed(): ("transactional ids", "grant WRITE"),
    kafka.ClusterAuthorizationFailedError(): ("by the cluster", "IDEMPOTENT_WRITE"),
    kafka.SecurityDisabled(): ("no authorizer",),
    kafka.InvalidSessionTimeoutError(): ("SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS", "group.min.session.timeout.ms"),
    kafka.InvalidGroupIdError(): ("SAFE_V0_KAFKA_GROUP_ID",),
    kafka.OffsetMetadataTooLargeError(): ("offset.metadata.max.bytes",),
    kafka.InvalidTransactionTimeout(): ("transaction.max.timeout.ms", "SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS"),
    kafka.UnsupportedCodecError(): ("codec that is not installed",),
    UnknownVersion("a batch of version 3"): ("newer than this SAFE", "install"),
    kafka.UnsupportedForMessageFormatError(): ("message.format.version",),
    kafka.InvalidTopicError(): ("no valid name of a topic",),
    kafka.InvalidPartitionsError(): ("--partitions",),
    kafka.InvalidReplicationFactorError(): ("--replication-factor",),
    kafka.InvalidConfigurationError(): ("settings of a topic",),
}
PASSING: dict[BaseException, tuple[str, ...]] = {
    kafka.SaslAuthenticationFailed(): ("SAFE_V0_KAFKA_SASL_PASSWORD",),
    kafka.NodeNotReadyError("Attempt to send a request to node which is not ready (node id 7)."): (
        "no connection to broker 7",
        "advertised.listeners",
    ),
    ConnectionRefusedError(111, "Connection refused"): ("no connection to a broker (Connection refused)",),
    socket.gaierror(-2, "Name or service not known"): ("(Name or service not known)", "advertised.listeners"),
    kafka.RequestTimedOutError(): ("no answer within the time limit",),
    kafka.NotLeaderForPartitionError(): ("no leader", "ends by itself"),
    kafka.ListenerNotFound(): ("advertised.listeners",),
    kafka.KafkaStorageError(): ("disk", "broker's log"),
    kafka.UnknownTopicOrPartitionError(): ("does not exist", "safe topics create"),
    kafka.QuotaViolationError(): ("quota",),
    kafka.UnsupportedVersionError(): ("older than SAFE needs", "docs/reference/clusters.md"),
    kafka.GroupCoordinatorNotAvailableError(): ("__consumer_offsets", "ends by itself"),
    kafka.IllegalGenerationError(): ("rebalancing", "ends by itself"),
    kafka.InconsistentGroupProtocolError(): ("a group of its own",),
    kafka.NonEmptyGroup(): ("has members", "stop"),
    kafka.GroupIdNotFound(): ("does not exist",),
    kafka.InvalidCommitOffsetSizeError(): ("message.max.bytes",),
    kafka.ProducerFenced(): ("another producer has taken over",),
    kafka.ConcurrentTransactions(): ("ends by itself",),
    kafka.UnknownProducerId(): ("no longer knows", "another producer"),
    AssertionError(): ("given up this producer",),
    BatchTooLarge(2_097_152): ("2097152 bytes decompressed", "SAFE_V0_MAX_BATCH_BYTES"),
    UndecodableBatch("a batch cannot be read"): ("right checksum",),
    kafka.CorruptRecordException(): ("fails its checksum",),
    kafka.OffsetOutOfRangeError(): ("not in the log",),
    kafka.FetchSessionIdNotFound(): ("opens another one",),
    kafka.MessageSizeTooLargeError(): ("larger than the topic accepts", "max.message.bytes"),
    kafka.InvalidTimestampError(): ("clock", "message.timestamp.after.max.ms"),
    kafka.NotEnoughReplicasError(): ("min.insync.replicas", "start the brokers"),
    kafka.TopicAlreadyExistsError(): ("already there",),
    kafka.PolicyViolationError(): ("policy",),
    kafka.ReassignmentInProgress(): ("being moved",),
}
EXAMPLES = PERMANENT | PASSING

# No request of SAFE's meets these, or they would be a defect of SAFE or of the client: they are told by their names.
TOLD_BY_NAME = {
    kafka.UnknownError, kafka.NoError, kafka.BrokerResponseError, kafka.KafkaError, kafka.KafkaProtocolError,
    kafka.IllegalArgumentError, kafka.KafkaConfigurationError, kafka.StaleControllerEpochError,
    kafka.InvalidRequiredAcksError, kafka.InvalidRequestError, kafka.OperationNotAttempted,
    kafka.DelegationTokenAuthDisabled, kafka.DelegationTokenNotFound, kafka.DelegationTokenOwnerMismatch,
    kafka.DelegationTokenRequestNotAllowed, kafka.DelegationTokenAuthorizationFailed, kafka.DelegationTokenExpired,
    kafka.InvalidPrincipalType,
}  # fmt: skip


def every_class(of: type[BaseException]) -> Iterator[type[BaseException]]:
    yield of
    for each in of.__subclasses__():
        yield from every_class(each)


def of_the_client() -> set[type[BaseException]]:
    return {each for each in every_class(kafka.KafkaError) if each.__module__.startswith("aiokafka")}


def test_every_error_of_the_client_has_a_row_or_is_told_by_its_name() -> None:
    assert of_the_client() - set(MEANINGS) == TOLD_BY_NAME


def test_every_row_has_an_example() -> None:
    assert {meaning_of(error) for error in EXAMPLES} == set(MEANINGS.values())
    assert len(EXAMPLES) == len(set(MEANINGS.values()))


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_example_is_told_with_what_it_is_about_and_what_to_do(error: BaseException) -> None:
    said = sentence_of(error, ABOUT)

    assert said.startswith(f"{ABOUT}: ")
    for words in EXAMPLES[error]:
        assert words in said
    assert "{" not in said


def test_no_sentence_names_a_class() -> None:
    names = {each.__name__ for each in MEANINGS}
    for error in EXAMPLES:
        said = sentence_of(error, ABOUT)
        assert not names & set(re.findall(r"\w+", said)), said
        assert not re.search(r"[a-z](Error|Exception)\b", said), said


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_what_no_waiting_helps_ends_the_process_and_all_else_is_tried_again(error: BaseException) -> None:
    wanted = Fatal if error in PERMANENT else Transient
    assert type(translated(error, ABOUT)) is wanted


def test_an_unknown_one_has_its_name_and_a_page_that_explains_it() -> None:
    said = sentence_of(kafka.InvalidRequestError(), "topic safe.v0.input, group safe")
    assert said.startswith("topic safe.v0.input, group safe: Kafka reports INVALID_REQUEST; ")
    assert EXPLAINED_AT in said
    assert meaning_of(kafka.InvalidRequestError()) is UNKNOWN
    assert isinstance(translated(kafka.InvalidRequestError(), ABOUT), Transient)


def test_one_that_wraps_another_is_told_as_that_one() -> None:
    wrapping = kafka.KafkaError("Unexpected error during batch delivery")
    wrapping.__cause__ = kafka.InvalidTransactionTimeout()

    assert "transaction.max.timeout.ms" in sentence_of(wrapping, ABOUT)
    assert isinstance(translated(wrapping, ABOUT), Fatal)


def test_a_request_about_a_transaction_that_is_not_answered_is_told_with_the_reason() -> None:
    unanswered = Unanswered()
    unanswered.__cause__ = TimeoutError()
    assert sentence_of(unanswered, ABOUT).startswith(f"{ABOUT}: no answer within the time limit")


def test_what_the_client_only_says_in_words_is_told_in_them() -> None:
    assert ": Kafka reports KafkaError (no such thing); " in sentence_of(kafka.KafkaError("no such thing"), ABOUT)


# These tell of other libraries' errors (TLS, HTTP), or of nothing that people read.
MAY_NAME_CLASSES = {"broker_errors.py", "refusals.py", "oauth.py", "aiokafka_internals.py"}


def test_no_other_module_makes_a_sentence_of_the_name_of_a_class() -> None:
    folder = Path(broker_errors.__file__).parent
    naming = {path.name for path in folder.glob("*.py") if "__name__" in path.read_text(encoding="utf-8")}
    assert naming <= MAY_NAME_CLASSES
