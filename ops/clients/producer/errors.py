"""What the public producer raises: confluent-kafka's ``KafkaException``, by what its caller is to
do.
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
    """The transaction cannot be committed, and nothing of it will be seen: call
    ``abort_transaction()`` and begin again.
    """


class RequestFailed(KafkaException):  # type: ignore[misc]
    """Nothing was decided: call the same method again. Of ``commit_transaction()``: the transaction
    may be committed, and the next call says whether it is.
    """


class ProducerFailed(KafkaException):  # type: ignore[misc]
    """This producer is good for nothing but ``close()``. Where it was raised by
    ``commit_transaction()``, the transaction is committed or aborted as a whole, and which of the
    two has to be read from the topic, behind the ``init_transactions()`` of another producer.
    """


class ProducerFenced(ProducerFailed):
    """As ``ProducerFailed``: another producer has the transactional id, or
    ``transaction.timeout.ms`` is over.
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
"""What to do, or to look at, about what a broker refused."""


def error_of(problem: Exception, doing: str) -> KafkaError:
    """``problem`` as confluent-kafka has errors, without what follows from it."""
    code, why = _code_and_cause(problem)
    return KafkaError(code, f"could not {doing}: {why}")


def _code_and_cause(problem: Exception) -> tuple[int, str]:
    """The error code of ``problem``, and what it says of the cause and the next step."""
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
"""Error codes of connections that do not come about, and which properties to check."""


def _about(refused: Refusal) -> str | None:
    """Which record, or topic, was refused; of several records of which no one is said to be at
    fault, their topic.
    """
    if refused.topic is None:
        return None
    record = 0 if refused.alone else refused.record
    if refused.named is None or record is None:
        return f"topic {refused.topic}"
    return f"{refused.named(record)} for topic {refused.topic}"


def is_fatal(problem: Exception) -> bool:
    """Whether another transaction of this producer would meet the same."""
    return isinstance(problem, NotAuthorized) or (
        isinstance(problem, Refusal) and problem.code in (*FENCED, *_FATAL)
    )


def abort_required(error: KafkaError) -> AbortRequired:
    """``error``, of which ``txn_requires_abort()`` is true."""
    return AbortRequired(KafkaError(error.code(), error.str(), False, False, True))


def request_failed(error: KafkaError) -> RequestFailed:
    """``error``, which is ``retriable()``."""
    return RequestFailed(KafkaError(error.code(), error.str(), False, True, False))


def failed(error: KafkaError) -> ProducerFailed:
    """``error``, which is ``fatal()``."""
    kind = ProducerFenced if error.code() in FENCED else ProducerFailed
    return kind(KafkaError(error.code(), error.str(), True, False, False))
