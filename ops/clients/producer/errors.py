"""The public producer's exceptions: confluent-kafka's ``KafkaException``, with a subclass for each
reaction of the caller.
"""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException
from connectctl.ops.clients.kafka_protocol.client import known_code
from connectctl.ops.clients.kafka_protocol.refusals import Refusal
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, NotTrusted
from connectctl.ops.kafka.error_handling import Code

FENCED = frozenset(
    (Code.INVALID_PRODUCER_EPOCH, Code.PRODUCER_FENCED, Code.INVALID_PRODUCER_ID_MAPPING)
)
_FATAL = (
    Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Code.CLUSTER_AUTHORIZATION_FAILED,
    Code.INVALID_TRANSACTION_TIMEOUT,
    Code.UNSUPPORTED_VERSION,
)


class AbortRequired(KafkaException):  # type: ignore[misc]
    """The transaction cannot be committed: call ``abort_transaction()`` and begin again. Readers
    with ``read_committed`` see none of its records.
    """


class RequestFailed(KafkaException):  # type: ignore[misc]
    """The request has no result yet: call the same method again. ``commit_transaction()`` may have
    committed the transaction; the next call determines whether it did.
    """


class ProducerFailed(KafkaException):  # type: ignore[misc]
    """The producer cannot continue: only ``close()`` is possible. After ``commit_transaction()``,
    the transaction is committed or aborted as a whole. To determine which, read the topic after the
    ``init_transactions()`` of another producer.
    """


class ProducerFenced(ProducerFailed):
    """A ``ProducerFailed``: another producer has the transactional id, or the transaction exceeded
    ``transaction.timeout.ms``.
    """


_TOO_LARGE = "set message.max.bytes, which also limits batches, to max.message.bytes of the topic"
_NEXT = {
    Code.UNKNOWN_TOPIC_OR_PARTITION: "create it",
    Code.MESSAGE_TOO_LARGE: _TOO_LARGE,
    Code.RECORD_LIST_TOO_LARGE: _TOO_LARGE,
    Code.INVALID_TOPIC_EXCEPTION: "a topic's name has up to 249 letters, digits, dots, "
    "underscores and hyphens of ASCII",
    Code.TOPIC_AUTHORIZATION_FAILED: "Write and Describe on this Topic are needed, and Create if "
    "it is not there",
    Code.GROUP_AUTHORIZATION_FAILED: "Read on this Group is needed",
    Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Write on this TransactionalId is needed",
    Code.INVALID_TRANSACTION_TIMEOUT: "transaction.timeout.ms is above transaction.max.timeout.ms "
    "of the brokers",
    **dict.fromkeys(
        FENCED,
        "another producer has this transactional id, or its transaction exceeded "
        "transaction.timeout.ms",
    ),
}
"""The next step for an error code of a broker."""


def error_of(problem: Exception, doing: str) -> KafkaError:
    """Return ``problem`` as a ``KafkaError`` without flags (fatal, retriable, abort required)."""
    code, why = _code_and_cause(problem)
    return KafkaError(code, f"could not {doing}: {why}")


def _code_and_cause(problem: Exception) -> tuple[int, str]:
    """Return the error code of ``problem``, with its cause and the next step in words."""
    if isinstance(problem, Refusal):
        parts = (
            KafkaError(problem.code).str(),
            _about(problem),
            problem.said,
            _NEXT.get(known_code(problem.code)),
        )
        return problem.code, ": ".join(part for part in parts if part)
    if isinstance(problem, ConnectctlError):
        code, check = _OF_CONNECTIONS.get(
            type(problem), (KafkaError._TRANSPORT, "bootstrap.servers and the network")
        )
        return (
            code,
            f"{': '.join(part for part in (problem.what, problem.why) if part)}; check {check}",
        )
    if isinstance(problem, TimeoutError):
        return KafkaError._TIMED_OUT, "a broker did not answer within socket.timeout.ms"
    return KafkaError._TRANSPORT, str(problem) or type(problem).__name__


_OF_CONNECTIONS = {
    NotAuthorized: (KafkaError._AUTHENTICATION, "the sasl.… properties"),
    NotTrusted: (KafkaError._SSL, "security.protocol and the ssl.… properties"),
}
"""Error codes of failed connections, with the properties to check."""


def _about(refused: Refusal) -> str | None:
    """Return the refused record or topic in words: the topic if it is unknown which of its records
    was refused, None without a topic.
    """
    if refused.topic is None:
        return None
    record = 0 if refused.alone else refused.record
    if refused.named is None or record is None:
        return f"topic {refused.topic}"
    return f"{refused.named(record)} for topic {refused.topic}"


def is_fatal(problem: Exception) -> bool:
    """Return whether another transaction of this producer would fail in the same way."""
    return isinstance(problem, NotAuthorized) or (
        isinstance(problem, Refusal) and problem.code in (*FENCED, *_FATAL)
    )


def abort_required(error: KafkaError) -> AbortRequired:
    """Return the exception for ``error`` with ``txn_requires_abort()``."""
    return AbortRequired(KafkaError(error.code(), error.str(), False, False, True))


def request_failed(error: KafkaError) -> RequestFailed:
    """Return the exception for ``error`` with ``retriable()``."""
    return RequestFailed(KafkaError(error.code(), error.str(), False, True, False))


def failed(error: KafkaError) -> ProducerFailed:
    """Return the exception for ``error`` with ``fatal()``."""
    kind = ProducerFenced if error.code() in FENCED else ProducerFailed
    return kind(KafkaError(error.code(), error.str(), True, False, False))
