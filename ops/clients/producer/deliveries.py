"""Delivery reports: the calls of ``on_delivery``, one for each record."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, KafkaError, Message
from connectctl.ops.clients.kafka_protocol.transactional_writer import Delivered
from connectctl.ops.kafka.record_columns import Rows

Callback = Callable[[KafkaError | None, Message], Any]


@dataclass
class TopicRecords:
    """Records for a topic that are sent together, with the callbacks of those that are not answered,
    by their number in ``rows``.
    """

    topic: str
    rows: Rows = field(default_factory=Rows)
    callbacks: dict[int, Callback] = field(default_factory=dict)

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
    """The records that are buffered, by topic, and the callbacks of those that are sent, and of
    those that are answered.
    """

    def __init__(self) -> None:
        self.buffered: dict[str, TopicRecords] = {}
        self._sent: list[TopicRecords] = []
        self._due: deque[tuple[Callback, KafkaError | None, Message]] = deque()

    @property
    def due(self) -> int:
        """Return the number of callbacks that can be called."""
        return len(self._due)

    @property
    def are_awaited(self) -> bool:
        """Return whether a callback waits for the acknowledgement of its record."""
        return any(records.callbacks for records in (*self.buffered.values(), *self._sent))

    def to(self, topic: str) -> TopicRecords:
        """Return the buffered records for ``topic``."""
        if topic not in self.buffered:
            self.buffered[topic] = TopicRecords(topic)
        return self.buffered[topic]

    def sending(self, records: TopicRecords) -> Delivered | None:
        """Return the function that receives the brokers' answers about ``records``, which are sent
        now; None if they have no callbacks.
        """
        if not records.callbacks:
            return None
        self._sent = [*(each for each in self._sent if each.callbacks), records]
        return partial(self._answered, records)

    def _answered(
        self,
        records: TopicRecords,
        partition: int,
        rows: Iterable[int],
        code: int,
        offset: int,
        appended: int,
    ) -> None:
        error = KafkaError(code) if code else None
        for number, row in enumerate(rows):
            if (callback := records.callbacks.pop(row, None)) is not None:
                more = {"error": error} if error is not None else {"offset": offset + number}
                self._due.append(
                    (callback, error, records.message(row, partition, appended, **more))
                )

    def drop(self) -> None:
        """Discard the buffered records, and report every unanswered record as lost. As in
        librdkafka, sent records get ``_PURGE_INFLIGHT``, and buffered records ``_PURGE_QUEUE``.
        """
        lost = [(records, KafkaError._PURGE_INFLIGHT) for records in self._sent]
        lost += [(records, KafkaError._PURGE_QUEUE) for records in self.buffered.values()]
        for records, code in lost:
            error = KafkaError(code)
            for row, callback in records.callbacks.items():
                numbered = records.rows.partitions[row]
                partition = -1 if numbered is None else numbered
                self._due.append((callback, error, records.message(row, partition, error=error)))
        self._sent.clear()
        self.buffered.clear()

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
