"""Requests to named brokers, one at a time, on connections that the caller's own thread writes and
reads.

On kafka-python's loop a request wakes its thread, and the answer wakes the caller, which costs more
than all the rest of a small transaction.
"""

from __future__ import annotations

import time
from typing import Any

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.raw_connection import IDLE, SMALL_ROOM, RawConnection


class DirectRequests:
    """Asks brokers of ``wire``. ``timeout`` in seconds bounds every wait. Raises what
    ``KafkaProtocolClient.run`` does.
    """

    def __init__(self, wire: KafkaProtocolClient, timeout: float):
        self._wire, self._timeout = wire, timeout
        self._connections: dict[int, RawConnection] = {}
        self._used: dict[int, float] = {}
        """The time of the last request on each connection."""

    def ask(self, doing: str, request: Any, broker: int, patience: float | None = None) -> Any:
        """Send ``request`` and return its answer, within ``patience`` seconds or one time-out.
        Without an answer the connection is closed, and the next request uses another.
        """
        seconds = patience or self._timeout
        try:
            connection = self._connection(broker, seconds)
            connection.allow(seconds - self._timeout)
            if request.API_VERSION is None:
                request.API_VERSION = self._wire.manager.broker_version_data.api_version(request)
            connection.ask(request)
            answer = connection.answer_to(request)
        except Exception as e:
            self._drop(broker)
            raise self._wire.failure(e, doing) from e
        except BaseException:
            self._drop(broker)  # an unread answer would arrive on it
            raise
        self._used[broker] = time.monotonic()
        return answer

    def close(self) -> None:
        for broker in list(self._connections):
            self._drop(broker)

    def _connection(self, broker: int, patience: float) -> RawConnection:
        if time.monotonic() - self._used.get(broker, 0.0) > IDLE:
            self._drop(broker)
        if broker not in self._connections:
            self._connections[broker] = RawConnection(
                self._wire, broker, self._timeout, room=SMALL_ROOM, patience=patience
            )
        return self._connections[broker]

    def _drop(self, broker: int) -> None:
        if (connection := self._connections.pop(broker, None)) is not None:
            connection.close()
