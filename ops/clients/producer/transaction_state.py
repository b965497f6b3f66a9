"""The states of a transactional producer: the calls that each permits, and the state after a
failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto

from confluent_kafka import KafkaError, KafkaException
from connectctl.ops.clients.kafka_protocol.refusals import Refusal
from connectctl.ops.clients.kafka_protocol.transaction_requests import ASK_AGAIN
from connectctl.ops.clients.producer.errors import (
    abort_required,
    error_of,
    failed,
    is_fatal,
    request_failed,
)
from connectctl.ops.core.errors import ConnectctlError, Unreachable

PROBLEMS = (Refusal, OSError, ConnectctlError)


class Phase(Enum):
    NEW = auto()
    READY = auto()
    OPEN = auto()
    ABORTABLE = auto()
    COMMITTING = auto()
    """A commit was requested, and it is unknown whether it was performed."""
    FAILED = auto()


class TransactionState:
    """The state of one producer, and the error that permits only an abort or ``close()``. ``drop``
    is called when the producer has failed for good, and discards the records that were not sent. It
    must not refer to the producer, which is closed when nothing refers to it.
    """

    def __init__(self, drop: Callable[[], None]):
        self.now = Phase.NEW
        self._drop = drop
        self._why: KafkaError | None = None

    def become(self, state: Phase) -> None:
        """Enter ``state``, without an error."""
        self.now, self._why = state, None

    def fail(self, error: KafkaError) -> None:
        """Enter ``FAILED`` because of ``error``: from then on only ``close()`` is possible."""
        self.now, self._why = Phase.FAILED, error
        self._drop()

    def expect(self, call: str, *states: Phase) -> None:
        """Raise ``KafkaException`` for ``call`` in a state that is none of ``states``."""
        if self.now in states:
            return
        if self._why is not None:
            raise failed(self._why) if self.now is Phase.FAILED else abort_required(self._why)
        why = {
            Phase.NEW: "init_transactions() was not called yet",
            Phase.READY: "no transaction was begun"
            if Phase.NEW not in states
            else "it was called before",
            Phase.OPEN: "a transaction is open",
            Phase.ABORTABLE: "its abort was interrupted: call abort_transaction() again",
            Phase.COMMITTING: "the transaction may be committed: call commit_transaction() again",
        }[self.now]
        raise KafkaException(KafkaError(KafkaError._STATE, f"{call}: {why}"))

    @contextmanager
    def failing(
        self, doing: str, kind: Callable[[KafkaError], KafkaException], then: Phase | None = None
    ) -> Iterator[None]:
        """Convert a failure in the block to ``kind``, and enter the state ``then`` if it is given.
        A fatal failure fails the producer instead.
        """
        try:
            yield
        except PROBLEMS as e:
            error = error_of(e, doing)
            if is_fatal(e) or kind is failed:
                self.fail(error)
                raise failed(error) from e
            if then is not None:
                self.now, self._why = then, error
            raise kind(error) from e

    def not_committed(self, problem: Exception, *, repeatable: bool) -> KafkaException:
        """Return the exception for ``problem``, a failed EndTxn. ``repeatable``: under transaction
        version 2 an EndTxn without an answer can be repeated. A coordinator that answers with a
        code in ``ASK_AGAIN`` has performed nothing yet.
        """
        error = error_of(problem, "commit its transaction")
        if isinstance(problem, Refusal) and problem.code in ASK_AGAIN:
            return request_failed(error)
        if isinstance(problem, (Unreachable, OSError)) and repeatable and not is_fatal(problem):
            return request_failed(error)
        self.fail(error)
        return failed(error)
