"""Delivery reports: the calls of ``on_delivery``, one for each record."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, KafkaError, Message
from connectctl.ops.clients.kafka_protocol.transactional_writer import Delivered
from connectctl.ops.kafka.record_columns import Rows

Callback = Callable[[KafkaError | None, Message], Any]


@dataclass
class _Reports:
    """The callbacks of unanswered records of ``rows``, by their number in ``rows``."""

    topic: str
    rows: Rows
    callbacks: dict[int, Callback]

    def message(self, row: int, partition: int, appended: int = -1, **more: Any) -> Message:
        """Return the record with number ``row`` as confluent-kafka's message. ``appended`` is the
        log append time in ms, -1 if the topic keeps create times.
        """
        made = (TIMESTAMP_CREATE_TIME, self.rows.timestamps[row] or 0)
        when = made if appended < 0 else (TIMESTAMP_LOG_APPEND_TIME, appended)
        key, value, headers = self.rows.keys[row], self.rows.values[row], self.rows.headers[row]
        record = {
            "key": key,
            "value": value,
            "headers": list(headers) if headers else None,
            "timestamp": when,
        }
        return Message(topic=self.topic, partition=partition, **record, **more)


class Deliveries:
    """The callbacks of records in three states: buffered, sent, and answered."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[int, Callback]] = defaultdict(dict)
        self._sent: list[_Reports] = []
        self._due: deque[tuple[Callback, KafkaError | None, Message]] = deque()

    @property
    def due(self) -> int:
        """Return the number of callbacks that can be called."""
        return len(self._due)

    @property
    def are_awaited(self) -> bool:
        """Return whether a callback waits for the acknowledgement of its record."""
        return bool(self._kept) or any(reports.callbacks for reports in self._sent)

    def keep(self, topic: str, row: int, callback: Callback) -> None:
        """Register ``callback`` for a buffered record: row ``row`` of those for ``topic``."""
        self._kept[topic][row] = callback

    def sending(self, topic: str, rows: Rows) -> Delivered | None:
        """Move the callbacks for ``topic`` to the sent records; ``rows`` are all its buffered
        records. Return the function that receives the brokers' answers; None if there are no
        callbacks.
        """
        callbacks = self._kept.pop(topic, None)
        if callbacks is None:
            return None
        reports = _Reports(topic, rows, callbacks)
        self._sent = [each for each in self._sent if each.callbacks] + [reports]
        return partial(self._answered, reports)

    def _answered(
        self,
        reports: _Reports,
        partition: int,
        rows: Iterable[int],
        code: int,
        offset: int,
        appended: int,
    ) -> None:
        error = KafkaError(code) if code else None
        for number, row in enumerate(rows):
            if (callback := reports.callbacks.pop(row, None)) is not None:
                more = {"error": error} if error is not None else {"offset": offset + number}
                self._due.append(
                    (callback, error, reports.message(row, partition, appended, **more))
                )

    def drop(self, kept: dict[str, Rows]) -> None:
        """Report every unanswered record as lost. As in librdkafka, sent records get
        ``_PURGE_INFLIGHT``, and buffered records ``_PURGE_QUEUE``. ``kept`` are the buffered
        records, which are cleared.
        """
        rest = [(reports, KafkaError._PURGE_INFLIGHT) for reports in self._sent]
        for topic, callbacks in self._kept.items():
            rest.append((_Reports(topic, kept[topic], callbacks), KafkaError._PURGE_QUEUE))
        for reports, code in rest:
            error = KafkaError(code)
            for row, callback in reports.callbacks.items():
                numbered = reports.rows.partitions[row]
                partition = -1 if numbered is None else numbered
                self._due.append((callback, error, reports.message(row, partition, error=error)))
        self._kept.clear()
        self._sent.clear()
        kept.clear()

    def serve(self) -> int:
        """Call the callbacks of answered records, in the order of the answers, and return their
        number. An exception of a callback is raised; the next call continues with the other
        callbacks.
        """
        served = 0
        while self._due:
            callback, error, message = self._due.popleft()
            served += 1
            callback(error, message)
        return served
