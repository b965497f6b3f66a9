"""The meaning of error codes in responses to transaction requests, as tables; no other module
interprets them.

Sources: the responses' own lists in ``org.apache.kafka.common.requests``,
``TransactionCoordinator`` (how the failure to write the transaction log is mapped), and the admin
client's handlers: ``FenceProducersHandler``, ``DescribeTransactionsHandler``,
``AbortTransactionHandler``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from functools import partial

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.acls import Operation, Resource, Right
from connectctl.ops.kafka.visibility import grant, not_authorized


class Code(IntEnum):
    """Kafka's error codes in responses to these requests, by Kafka's names; connectctl's own are
    below -100.
    """

    NO_ANSWER = -101
    """The request was sent and no answer came: it may have been performed."""
    NOT_SENT = -100
    """No connection: nothing was sent."""
    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    KAFKA_STORAGE_ERROR = 56
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    UNSTABLE_OFFSET_COMMIT = 88
    PRODUCER_FENCED = 90
    TRANSACTIONAL_ID_NOT_FOUND = 105
    TRANSACTION_ABORTABLE = 120
    INVALID_REGULAR_EXPRESSION = 128


def name_of(code: int) -> str:
    """Return the name of ``code`` for scripts."""
    try:
        return Code(code).name
    except ValueError:
        return f"ERROR_{code}"


class ErrorAction(StrEnum):
    DONE = "done"
    RETRY = "again"
    """Nothing was done, or the request is not completed; repeat it after a pause."""
    REDISCOVER = "moved"
    """Another broker is responsible; look it up, then ask again."""
    UNKNOWN_OUTCOME = "doubt"
    """It may have been done. Describe the transaction before repeating the request, which costs an
    epoch.
    """
    ABSENT = "absent"
    """There is nothing of that name."""
    FAIL = "give up"


@dataclass(frozen=True, slots=True)
class ErrorVerdict:
    """The meaning of an error code: the action, what happened, and what the user can do about it.

    ``right`` is the missing one that the response reports; None if it reports something else.
    """

    move: ErrorAction
    meaning: str
    advice: str | None = None
    right: Right | None = None


DONE = ErrorVerdict(ErrorAction.DONE, "done")
_retry, _rediscover = (
    partial(ErrorVerdict, ErrorAction.RETRY),
    partial(ErrorVerdict, ErrorAction.REDISCOVER),
)
_unknown, _absent = (
    partial(ErrorVerdict, ErrorAction.UNKNOWN_OUTCOME),
    partial(ErrorVerdict, ErrorAction.ABSENT),
)
_fail = partial(ErrorVerdict, ErrorAction.FAIL)
_LOADING = _retry("the coordinator is still loading its part of the transaction log")
_MOVED = "the coordinator of the id has moved to another broker"
_UNAVAILABLE = (
    "Check the brokers: the transaction topic __transaction_state has no leader or too few "
    "replicas in sync (on a cluster of one broker, see transaction.state.log.replication.factor "
    "and .min.isr)."
)
_CONTROLLER = "Check the broker, and whether the controller is reachable from it."
_NEVER = "See the broker's log."
_HIDDEN = _fail(
    "this principal may not see the transactional id",
    "Give this principal the right Describe on the transactional id.",
    Right(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, ""),
)
_OVERTAKEN = _fail("another producer took the id over meanwhile", "Fence again.")
_CHECK_AGAIN = "Check again: connectctl transactions hanging."

_ANYWHERE = {
    Code.NONE: DONE,
    Code.NOT_SENT: _retry("the broker cannot be reached", "Check the broker."),
    Code.NO_ANSWER: _retry("the broker did not answer", "Check the broker."),
    Code.NETWORK_EXCEPTION: _retry("the connection broke", "Check the broker."),
    Code.REQUEST_TIMED_OUT: _retry("the broker timed out", "Check the broker."),
    Code.UNKNOWN_SERVER_ERROR: _fail("the broker met an unexpected error", _NEVER),
    Code.UNSUPPORTED_VERSION: _fail(
        "the broker is too old for this request", "Upgrade the brokers."
    ),
    Code.INVALID_REQUEST: _fail(
        "the broker finds the request invalid", "Check the id: it may be empty."
    ),
    Code.CLUSTER_AUTHORIZATION_FAILED: _fail(
        "this principal lacks a right on the cluster",
        "Give it ClusterAction, or on brokers before 2.8 IdempotentWrite.",
    ),
}

LOOKUP = _ANYWHERE | {
    Code.COORDINATOR_LOAD_IN_PROGRESS: _LOADING,
    Code.COORDINATOR_NOT_AVAILABLE: _retry("no coordinator is available for the id", _UNAVAILABLE),
    Code.LEADER_NOT_AVAILABLE: _retry("no coordinator is available for the id", _UNAVAILABLE),
    Code.NOT_COORDINATOR: _retry("the coordinator is moving"),
    Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _HIDDEN,
    Code.GROUP_AUTHORIZATION_FAILED: _fail("the broker treated the id as that of a group", _NEVER),
    Code.TRANSACTION_ABORTABLE: _fail(
        "the broker requires the transaction to be aborted first", _NEVER
    ),
}
"""FindCoordinator of a transactional id."""

FENCE = _ANYWHERE | {
    Code.NO_ANSWER: _unknown(
        "the coordinator did not answer", "Check the broker, then fence again."
    ),
    Code.NETWORK_EXCEPTION: _unknown("the connection broke", "Check the broker, then fence again."),
    Code.REQUEST_TIMED_OUT: _unknown("the coordinator could not write in time", _UNAVAILABLE),
    # What the log answers when it wrote to too few replicas comes as this, too: the epoch may be
    # used up (KAFKA-9666).
    Code.COORDINATOR_NOT_AVAILABLE: _unknown(
        "the coordinator cannot write to its log", _UNAVAILABLE
    ),
    # Also of a new broker, until the controller has given it producer ids (RPCProducerIdManager).
    Code.COORDINATOR_LOAD_IN_PROGRESS: _retry(
        "the coordinator is still loading, or waits for producer ids", _CONTROLLER
    ),
    Code.NOT_COORDINATOR: _rediscover(_MOVED),
    Code.CONCURRENT_TRANSACTIONS: _retry(
        "its open transaction is being ended",
        "The coordinator waits for the leaders of its partitions: connectctl transactions show ID "
        "names them.",
    ),
    Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _fail(
        "this principal may not write with the transactional id",
        "Give this principal the right Write on the transactional id.",
        Right(Operation.WRITE, Resource.TRANSACTIONAL_ID, ""),
    ),
    Code.INVALID_TRANSACTION_TIMEOUT: _fail(
        "the transaction timeout is above what the broker allows",
        "Raise transaction.max.timeout.ms on the brokers to 30000 at least.",
    ),
    Code.INVALID_PRODUCER_EPOCH: _OVERTAKEN,
    Code.PRODUCER_FENCED: _OVERTAKEN,
    Code.INVALID_PRODUCER_ID_MAPPING: _fail(
        "the id's producer id changed meanwhile", "Fence again."
    ),
    Code.INVALID_TXN_STATE: _fail("the coordinator found the id in an invalid state", _NEVER),
    Code.TRANSACTION_ABORTABLE: _fail(
        "the broker requires its transaction to be aborted first", "Fence again."
    ),
    Code.TRANSACTION_COORDINATOR_FENCED: _rediscover(_MOVED),
    Code.KAFKA_STORAGE_ERROR: _rediscover(
        "the coordinator's disk fails", "Check the broker's disks."
    ),
}
"""InitProducerId, which fences."""

DESCRIBE = _ANYWHERE | {
    Code.COORDINATOR_LOAD_IN_PROGRESS: _LOADING,
    Code.COORDINATOR_NOT_AVAILABLE: _rediscover(
        "no coordinator is available for the id", _UNAVAILABLE
    ),
    Code.NOT_COORDINATOR: _rediscover(_MOVED),
    Code.TRANSACTIONAL_ID_NOT_FOUND: _absent("no coordinator knows the id"),
    Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _HIDDEN,
}
"""DescribeTransactions."""

PRODUCERS = _ANYWHERE | {
    Code.UNKNOWN_TOPIC_OR_PARTITION: _absent("the partition does not exist"),
    Code.INVALID_TOPIC_EXCEPTION: _absent("the topic name is invalid"),
    Code.NOT_LEADER_OR_FOLLOWER: _rediscover("the partition has another leader now"),
    Code.LEADER_NOT_AVAILABLE: _rediscover("the partition has no leader", "Check the brokers."),
    Code.KAFKA_STORAGE_ERROR: _rediscover("the leader's disk fails", "Check the broker's disks."),
    Code.TOPIC_AUTHORIZATION_FAILED: _fail(
        "this principal may not read the topic",
        "Give it the right Read on the topic.",
        Right(Operation.READ, Resource.TOPIC, ""),
    ),
}
"""DescribeProducers, and where the leader of a partition is looked up."""

_TOO_LARGE = _fail("the partition does not accept the marker", "See the broker's log.")
_REPLICAS = _retry("too few replicas of the partition are in sync", "Check the brokers.")

MARKER = PRODUCERS | {
    Code.CLUSTER_AUTHORIZATION_FAILED: _fail(
        "this principal may not write transaction markers",
        "Give it the right Alter or ClusterAction on the cluster.",
        Right(Operation.ALTER, Resource.CLUSTER),
    ),
    Code.INVALID_PRODUCER_EPOCH: _fail("the partition has a newer producer", _CHECK_AGAIN),
    Code.TRANSACTION_COORDINATOR_FENCED: _fail(
        "the partition has a marker of a newer coordinator", _CHECK_AGAIN
    ),
    Code.INVALID_TXN_STATE: _fail("the partition has no such transaction open", _CHECK_AGAIN),
    Code.INVALID_PRODUCER_ID_MAPPING: _fail(
        "the partition does not know the producer", _CHECK_AGAIN
    ),
    Code.UNSUPPORTED_FOR_MESSAGE_FORMAT: _fail(
        "the topic's message format has no transactions", "Upgrade message.format.version."
    ),
    Code.CORRUPT_MESSAGE: _TOO_LARGE,
    Code.MESSAGE_TOO_LARGE: _TOO_LARGE,
    Code.RECORD_LIST_TOO_LARGE: _TOO_LARGE,
    Code.INVALID_REQUIRED_ACKS: _TOO_LARGE,
    Code.NOT_ENOUGH_REPLICAS: _REPLICAS,
    Code.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _REPLICAS,
    Code.COORDINATOR_NOT_AVAILABLE: _retry(
        "the group coordinator of the partition is not available"
    ),
    Code.COORDINATOR_LOAD_IN_PROGRESS: _retry("the group coordinator of the partition is loading"),
    Code.NOT_COORDINATOR: _rediscover("the partition has another leader now"),
}
"""WriteTxnMarkers, which aborts a hanging transaction. ``__consumer_offsets`` answers as its group
coordinator.
"""


def verdict(table: dict[Code, ErrorVerdict], code: int, name: str = "") -> ErrorVerdict:
    """Return the meaning of ``code`` by ``table``; a code that is not in it is final.

    ``name`` is that of the transactional id or of the topic, for the message about a missing right.
    """
    try:
        found = table[Code(code)]
    except (ValueError, KeyError):
        return _fail(f"the broker returned the unexpected error {name_of(code)}", _NEVER)
    if found.right is None or not name:
        return found
    right = found.right if found.right.name else replace(found.right, name=name)
    return replace(found, meaning=f"{right} is missing", advice=grant(right), right=right)


def failure(what: str, said: ErrorVerdict, code: Code) -> ConnectctlError:
    """Return the error of a request that brokers answer with ``code``; ``what`` is a sentence
    without its full stop.
    """
    return error_of(what, said.right, said.meaning, said.advice, code.name)


def error_of(
    what: str, right: Right | None, why: str, next_step: str | None, code: str
) -> ConnectctlError:
    """Return the error of a request that was refused: by its ``right``, where a missing one is why,
    else by ``why``.
    """
    if right is not None:
        return not_authorized(what, right)
    return ConnectctlError(what, why=why, next_step=next_step, code=code)
