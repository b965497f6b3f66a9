"""Connections to named brokers that the caller's own thread writes and reads, and single requests on
them.

On kafka-python's loop a request wakes its thread, and the answer wakes the caller, which costs more
than all the rest of a small transaction.
"""

from __future__ import annotations

import time
from typing import Any

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.raw_connection import IDLE, SMALL_ROOM, RawConnection


class Connections:
    """One connection to each broker of ``wire``, replaced after ``IDLE`` seconds without a request.
    ``timeout`` in seconds bounds every wait.
    """

    def __init__(self, wire: KafkaProtocolClient, timeout: float):
        self._wire, self._timeout = wire, timeout
        self._of: dict[int, RawConnection] = {}
        self._used: dict[int, float] = {}
        """The time of the last request on each connection."""

    def to(
        self, broker: int, patience: float | None = None, *, in_use: bool = False
    ) -> RawConnection:
        """Return the connection to ``broker``, opened within ``patience`` seconds or one time-out.
        One that is ``in_use`` has unanswered requests, and is not replaced.
        """
        if not in_use and time.monotonic() - self._used.get(broker, 0.0) > IDLE:
            self.drop(broker)
        if broker not in self._of:
            self._of[broker] = RawConnection(
                self._wire, broker, self._timeout, room=SMALL_ROOM, patience=patience
            )
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

    def __init__(self, wire: KafkaProtocolClient, timeout: float):
        self._wire, self._timeout = wire, timeout
        self._connections = Connections(wire, timeout)

    def ask(self, doing: str, request: Any, broker: int, patience: float | None = None) -> Any:
        """Send ``request`` and return its answer, within ``patience`` seconds or one time-out.
        Without an answer the connection is closed, and the next request uses another.
        """
        seconds = patience or self._timeout
        try:
            connection = self._connections.to(broker, seconds)
            connection.allow(seconds - self._timeout)
            if request.API_VERSION is None:
                request.API_VERSION = self._wire.manager.broker_version_data.api_version(request)
            connection.ask(request)
            answer = connection.answer_to(request)
        except Exception as e:
            self._connections.drop(broker)
            raise self._wire.failure(e, doing) from e
        except BaseException:
            self._connections.drop(broker)  # an unread answer would arrive on it
            raise
        self._connections.used(broker)
        return answer

    def close(self) -> None:
        self._connections.close()
