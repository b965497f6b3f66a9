"""Connections to named brokers that the caller's own thread writes and reads, and single requests on
them.

On kafka-python's loop a request wakes its thread, and the answer wakes the caller, which costs more
than all the rest of a small transaction.
"""

from __future__ import annotations

import time
from typing import Any

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.limit import Limit, Unacknowledged
from connectctl.ops.clients.kafka_protocol.raw_connection import IDLE, SMALL_ROOM, RawConnection


class Connections:
    """One connection to each broker of ``wire``, replaced after ``IDLE`` seconds without a request.
    ``timeout`` in seconds bounds every wait, and ``limit`` their opening.
    """

    def __init__(self, wire: KafkaProtocolClient, timeout: float, limit: Limit):
        self._wire, self._timeout, self._limit = wire, timeout, limit
        self._of: dict[int, RawConnection] = {}
        self._used: dict[int, float] = {}
        """The time of the last request on each connection."""

    def to(
        self, broker: int, patience: float | None = None, *, in_use: bool = False
    ) -> RawConnection:
        """Return the connection to ``broker``, opened within ``patience`` seconds or one time-out.
        One that is ``in_use`` has unanswered requests, and is not replaced. Raises
        ``Unacknowledged`` if the limit is over before.
        """
        if not in_use and time.monotonic() - self._used.get(broker, 0.0) > IDLE:
            self.drop(broker)
        if broker not in self._of:
            self._limit.check()
            seconds = self._limit.of(self._timeout if patience is None else patience)
            try:
                self._of[broker] = RawConnection(
                    self._wire, broker, self._timeout, room=SMALL_ROOM, patience=seconds
                )
            except Exception:
                self._limit.check()
                raise
        return self._of[broker]

    def used(self, broker: int) -> None:
        """Note a request on the connection to ``broker``."""
        self._used[broker] = time.monotonic()

    def drop(self, broker: int) -> None:
        """Close the connection to ``broker``: the next request uses another."""
        if (connection := self._of.pop(broker, None)) is not None:
            connection.close()

    def close(self) -> None:
        for broker in list(self._of):
            self.drop(broker)


class DirectRequests:
    """Single requests to brokers of ``wire``. ``timeout`` in seconds bounds every wait. Raises what
    ``KafkaProtocolClient.run`` does.
    """

    def __init__(self, wire: KafkaProtocolClient, timeout: float, limit: Limit | None = None):
        self._wire, self._timeout = wire, timeout
        self._limit = limit or Limit()
        self._connections = Connections(wire, timeout, self._limit)
        self._unanswered: dict[int, tuple[RawConnection, Any, int]] = {}
        """Requests whose answer was not waited for, with their numbers, by broker."""

    def ask(self, doing: str, request: Any, broker: int, patience: float | None = None) -> Any:
        """Send ``request`` and return its answer, within ``patience`` seconds or one time-out.
        Without an answer the connection is closed, and the next request uses another.

        Raises ``Unacknowledged`` if the limit is over before. Asked again, the same request waits
        for its answer, and another one is sent after that.
        """
        seconds = patience or self._timeout
        try:
            connection = self._connections.to(broker, seconds, in_use=broker in self._unanswered)
            connection.allow(seconds - self._timeout)
            answer = self._answer(connection, request, broker, seconds)
        except Unacknowledged:
            raise
        except Exception as e:
            self._connections.drop(broker)
            raise self._wire.failure(e, doing) from e
        except BaseException:
            self._connections.drop(broker)  # an unread answer would arrive on it
            raise
        self._connections.used(broker)
        return answer

    def _answer(self, connection: RawConnection, request: Any, broker: int, seconds: float) -> Any:
        number = None
        unanswered = self._unanswered.pop(broker, None)
        if unanswered is not None and unanswered[0] is connection:
            if unanswered[1] is request:
                number = unanswered[2]
            else:
                connection.await_answer(unanswered[2])
                connection.answer_to(unanswered[1])
        if request.API_VERSION is None:
            request.API_VERSION = self._wire.manager.broker_version_data.api_version(request)
        if number is None:
            number = connection.send(request)
        if self._limit.is_set:
            try:
                self._limit.wait(seconds, connection.has_answer)
            except Unacknowledged:
                self._unanswered[broker] = (connection, request, number)
                raise
        connection.await_answer(number)
        return connection.answer_to(request)

    def close(self) -> None:
        self._connections.close()
