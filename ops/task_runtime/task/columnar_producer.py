"""An instance of a task's producer that makes whole batches, without librdkafka.

Every record that librdkafka is given is an object of Python's, a message of its own and its
acknowledgement; Arrow's columns become a record batch at once (docs/decisions/0014). It gives the
same guarantees as ``TaskProducer`` and raises the same errors. It never retries a request that may
have been processed, but for a commit under transaction version 2 (docs/decisions/0030): any other
failure is an ``UnknownOutcome``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
from connectctl.ops.clients.kafka_protocol.column_writer import TOPIC_PATIENCE, ColumnWriter
from connectctl.ops.clients.kafka_protocol.refusals import Named, Refusal
from connectctl.ops.clients.librdkafka.group_positions import membership
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.compression import CODECS
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.record_columns import Rows
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.delivery_settings import idle_for_columns
from connectctl.ops.task_runtime.spi.transaction_batch import ColumnBatch
from connectctl.ops.task_runtime.task.record_buffer import RecordBuffer
from connectctl.ops.task_runtime.task.rejected_records import refused, too_large
from connectctl.ops.task_runtime.task.stale_transactions import open_older_transaction
from connectctl.ops.task_runtime.task.transactional_producer import (
    SOCKET_TIMEOUT_MS,
    TaskProducer,
    UnknownOutcome,
)

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
    from connectctl.ops.task_runtime.spi.delivery_settings import DeliverySettings
    from connectctl.ops.task_runtime.spi.transaction_batch import Offsets, TransactionBatch

BATCH_BYTES = 1_000_000
"""librdkafka's ``batch.size``: just below what a topic takes by default (``max.message.bytes``)."""
BUFFER_BYTES = 4_000_000
"""Bytes of single records of a topic, for each partition that they name, that become batches
together.
"""
ALL_BUFFERS_BYTES = 16_000_000
"""Bytes of all waiting single records."""
_OF_A_RECORD = {32: "INVALID_TIMESTAMP", 87: "INVALID_RECORD"}


class ColumnarProducer(TaskProducer):
    """See ``TaskProducer``. Single records become columns, those of a topic at once. Of
    ``properties`` it uses those in ``COLUMNAR_PROPERTIES``, ``socket.timeout.ms``, and
    ``message.max.bytes``: the topic's limit.
    """

    def __init__(
        self,
        kafka: Kafka,
        id_: str,
        *,
        timeout_ms: int,
        properties: Mapping[str, Any] | None = None,
    ):
        whole = kafka.client | dict(properties or {})
        timeout = _request_timeout(whole, timeout_ms)
        self._kafka = kafka
        self._begun = 0.0
        # A leader's few records go as they are where a context asks for what only librdkafka has.
        codec = codec if (codec := _codec(whole)) in CODECS else "none"
        largest = int(whole["message.max.bytes"]) if "message.max.bytes" in whole else None
        batch_bytes = min(int(whole.get("batch.size", BATCH_BYTES)), largest or BATCH_BYTES)
        self._producer: BatchProducer = self._open(_client(kafka, whole), id_, timeout_ms, timeout)
        self._buffer = RecordBuffer(BUFFER_BYTES, ALL_BUFFERS_BYTES)
        self._writer = ColumnWriter(
            self._producer, codec, batch_bytes, largest, too_large, check=self._check_late
        )
        self._unchecked: set[TopicPartition] = set()
        """Partitions that had no leader to tell whether an older transaction is open there."""
        self.id = id_
        self.timeout_ms = timeout_ms

    def _open(
        self, client: Mapping[str, Any], id_: str, timeout_ms: int, timeout: float
    ) -> BatchProducer:
        return BatchProducer(client, id_, transaction_timeout_ms=timeout_ms, timeout=timeout)

    def initialise(self, patience: float) -> None:
        self._writer.patience = min(TOPIC_PATIENCE, patience)
        self._call("initialise its producer", lambda: self._producer.initialise(patience))

    def open_older_transaction(self, topics: Sequence[str]) -> str | None:
        """See ``TaskProducer``. Partitions without a leader are looked at before they are written
        to.
        """
        found: dict[TopicPartition, Any] = {}
        self._call("look up leaders", lambda: found.update(self._producer.leaders(topics)))
        leaderless = {
            place for place, leader in found.items() if leader == Code.LEADER_NOT_AVAILABLE
        }
        self._unchecked |= leaderless
        places = sorted(found.keys() - leaderless) if leaderless else None
        return open_older_transaction(self._kafka, self.id, topics, places)

    def _check_late(self, places: Collection[TopicPartition]) -> None:
        """Raise ``UnknownOutcome`` if an older transaction is open in one of ``places`` that had no
        leader before.
        """
        if late := self._unchecked.intersection(places):
            topics = sorted({place.topic for place in late})
            if why := open_older_transaction(self._kafka, self.id, topics, sorted(late)):
                raise UnknownOutcome(why)
            self._unchecked -= late

    @property
    def bumps_epoch(self) -> bool:
        """Whether the cluster has transaction version 2."""
        return self._producer.bumps_epoch

    def begin(self) -> None:
        """Begin a transaction: for the coordinator it begins with its first partition."""
        self._begun = time.monotonic()
        self._buffer.clear()
        self._is_open = True

    def send(self, batch: TransactionBatch) -> None:
        columns = {bulk.topic for bulk in batch.record_batches if isinstance(bulk, ColumnBatch)}

        def all_() -> None:
            self._buffer.add(batch)
            # Messages of librdkafka keep the response alive that they came in: they are not kept
            # for the next ones.
            self._send(everything=bool(columns or batch.copies))
            for bulk in batch.record_batches:
                if isinstance(bulk, ColumnBatch):
                    self._writer.write(bulk.topic, bulk.columns, named=bulk.describe_row)

        self._call("write its records", all_)

    def _send(self, *, everything: bool) -> None:
        for topic, rows, named in self._buffer.take(everything=everything):
            self._writer.write(topic, rows, named)

    def send_offsets(self, topic: str, offsets: Offsets) -> None:
        rows = Rows()
        for key, value in offsets.items():
            rows.add(key, value)
        self._call("write its offsets", lambda: self._writer.write(topic, rows))

    def send_group_offsets(
        self, offsets: GroupOffsets, consumer: GroupConsumer, patience: float
    ) -> None:
        member = membership(consumer.metadata)
        self._call(
            "write its offsets",
            lambda: self._producer.send_group_offsets(member, offsets, patience),
        )

    def commit(self, patience: float) -> None:
        def all_() -> None:
            self._send(everything=True)
            self._producer.flush()

        self._call("write its records", all_)
        self._commit(lambda: self._producer.end(commit=True, patience=patience))

    def abort(self, patience: float) -> None:
        """Abort the transaction. No record may be written after the marker: requests in flight are
        waited for, unless their epoch ends with the transaction.
        """
        self._buffer.clear()
        self._is_open = False

        def all_() -> None:
            if self.bumps_epoch:
                self._producer.drop_unanswered()
            else:
                self._producer.settle()
            self._producer.end(commit=False, patience=patience)

        self._call("abort its transaction", all_)

    def unusable_because(self) -> str | None:
        """None: every failure was raised."""
        return None

    def discard(self) -> None:
        """``abandon`` what is open, and close it on another thread: a broker that hangs must not
        block the task.
        """
        self.abandon()
        threading.Thread(target=_close, args=(self._producer,), daemon=True).start()

    def _call(self, doing: str, call: Any) -> None:
        from confluent_kafka import KafkaError

        try:
            call()
        except Refusal as e:
            if e.named is not None and (unfit := _rejected(e, e.named)):
                raise unfit from e
            self._fail(KafkaError(e.code, e.said), doing, e)
        except OSError as e:
            raise UnknownOutcome(f"could not {doing}: {e or type(e).__name__}") from e

    def _rejection(self) -> None:
        """Every answer is read here, and none is in a log."""


def _client(kafka: Kafka, whole: Mapping[str, Any]) -> dict[str, Any]:
    return kafka.client | ({"client.id": whole["client.id"]} if "client.id" in whole else {})


def _request_timeout(whole: Mapping[str, Any], timeout_ms: int) -> float:
    return min(int(whole.get("socket.timeout.ms", SOCKET_TIMEOUT_MS)), timeout_ms) / 1000


def _rejected(refusal: Refusal, named: Named) -> ConnectctlError | None:
    """Return the error of a row that the broker rejected; None if the row is not the cause."""
    row = named(refusal.record or 0)
    if refusal.code == Code.MESSAGE_TOO_LARGE and refusal.alone is not None:
        return too_large(
            row, refusal.alone, f"the broker responded {refusal.said or 'MESSAGE_TOO_LARGE'}"
        )
    if refusal.code == Code.MESSAGE_TOO_LARGE:
        return ConnectctlError(
            f"{row}, or the record batch that starts with it, is too large",
            why=f"the broker responded {refusal.said or 'MESSAGE_TOO_LARGE'}",
            next_step="Set batch.size below max.message.bytes of the topic, or reduce the size of "
            "the row.",
            code="row-too-large",
        )
    if refusal.code not in _OF_A_RECORD or refusal.record is None:
        return None
    return refused(row, _OF_A_RECORD[refusal.code], refusal.said)


def _close(producer: BatchProducer) -> None:
    with suppress(OSError, ConnectctlError):
        producer.close()


def _codec(properties: Mapping[str, Any]) -> str:
    return str(properties.get("compression.type") or properties.get("compression.codec") or "none")


def batch_producer_class(
    kafka: Kafka,
    delivery: DeliverySettings,
    config: Mapping[str, str],
    at_least_once: type[TaskProducer],
) -> type[TaskProducer]:
    """Return a task's producer class: librdkafka's if ``config`` has properties that only that
    supports.
    """
    if not delivery.exactly_once:
        return at_least_once
    return (
        TaskProducer
        if idle_for_columns(config)
        else dataframe_producer_class(kafka, delivery.properties)
    )


def dataframe_producer_class(kafka: Kafka, properties: Mapping[str, Any]) -> type[TaskProducer]:
    """What writes columns to ``kafka``: librdkafka where they are to be compressed as only it
    can.
    """
    return ColumnarProducer if _codec(kafka.client | dict(properties)) in CODECS else TaskProducer
