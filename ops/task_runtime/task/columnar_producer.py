"""An instance of a task's producer for columns of records: whole batches, without librdkafka.

Every record that librdkafka is given is an object of Python's, a message of its own and its acknowledgement; Arrow's
columns become a record batch at once (docs/decisions/0014). It gives the same guarantees as ``TransactionalProducer`` and
raises the same errors. It never retries a request that may have been processed: any failure is an ``UnknownOutcome``.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer, Named, Refusal
from connectctl.ops.clients.kafka_protocol.group_coordinator import CommittedOffset
from connectctl.ops.clients.librdkafka.group_positions import membership
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.partitioner import java_partitions, stable_order
from connectctl.ops.kafka.record_batch_encoder import CODECS, Batch, ProducerState, RecordColumns, batches
from connectctl.ops.kafka.transactions import Place
from connectctl.ops.task_runtime.spi.transaction_batch import ColumnBatch
from connectctl.ops.task_runtime.task.rejected_records import refused, too_large
from connectctl.ops.task_runtime.task.transactional_producer import (
    SOCKET_TIMEOUT_MS,
    Fenced,
    TransactionalProducer,
    UnknownOutcome,
)

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
    from connectctl.ops.task_runtime.spi.transaction_batch import Offsets, TransactionBatch

BATCH_BYTES = 1_000_000
"""librdkafka's ``batch.size``: just below what a topic takes by default (``max.message.bytes``)."""
_OF_A_RECORD = {32: "INVALID_TIMESTAMP", 87: "INVALID_RECORD"}
TOPIC_PATIENCE = 30.0
"""Seconds for a topic that is not there, or has no leader."""


class ColumnarProducer(TransactionalProducer):
    """See ``TransactionalProducer``. It sends columns, and single records without headers and timestamps. Of ``properties``
    it uses those in ``COLUMNAR_PROPERTIES``, ``socket.timeout.ms``, and ``message.max.bytes``: the topic's limit.
    """

    def __init__(self, kafka: Kafka, id_: str, *, timeout_ms: int, properties: Mapping[str, Any] | None = None):
        whole = kafka.client | dict(properties or {})
        timeout = min(int(whole.get("socket.timeout.ms", SOCKET_TIMEOUT_MS)), timeout_ms) / 1000
        self._kafka = kafka
        self._begun = 0.0
        # A leader's few records go as they are where a context asks for what only librdkafka has.
        self._codec = codec if (codec := _codec(whole)) in CODECS else "none"
        self._largest = int(whole["message.max.bytes"]) if "message.max.bytes" in whole else None
        self._batch_bytes = min(int(whole.get("batch.size", BATCH_BYTES)), self._largest or BATCH_BYTES)
        self._next_partition = random.randrange(1 << 16)
        named = {"client.id": whole["client.id"]} if "client.id" in whole else {}
        self._producer: BatchProducer = BatchProducer(
            kafka.client | named, id_, transaction_timeout_ms=timeout_ms, timeout=timeout
        )
        self.id = id_
        self.timeout_ms = timeout_ms

    def initialise(self, patience: float) -> None:
        """Fence all older producers of the id, and wait until their transaction is ended; ``patience`` in seconds."""
        self._call("initialise its producer", lambda: self._producer.initialise(patience))

    def begin(self) -> None:
        """Begin a transaction: for the coordinator it begins with its first partition."""
        self._begun = time.monotonic()

    def send(self, batch: TransactionBatch) -> None:
        """Put the records of ``batch`` into the transaction. Raises ``TypeError`` for what it cannot send."""

        def all_() -> None:
            for (topic, partition), records in _plain(batch).items():
                self._write(topic, _columnar(records), partition)
            for bulk in batch.record_batches:
                if isinstance(bulk, ColumnBatch):
                    self._write(bulk.topic, bulk.columns, named=bulk.describe_row)

        if batch.copies:
            raise TypeError("copies")
        self._call("write its records", all_)

    def send_offsets(self, topic: str, offsets: Offsets) -> None:
        """Put source offsets into the transaction, where Java's partitioner puts their keys."""
        self._call("write its offsets", lambda: self._write(topic, _columnar(offsets.items())))

    def send_group_offsets(self, offsets: GroupOffsets, consumer: GroupConsumer, patience: float) -> None:
        """See ``TransactionalProducer``."""
        given = {Place(*place): CommittedOffset(o.offset, o.leader_epoch, o.metadata) for place, o in offsets.items()}
        member = membership(consumer.metadata)
        self._call("write its offsets", lambda: self._producer.send_group_offsets(member, given, patience))

    def _write(self, topic: str, rows: RecordColumns, partition: int | None = None, named: Named | None = None) -> None:
        count = self._producer.partitions(topic, TOPIC_PATIENCE)
        order: list[Any] = []
        placed = [(Place(topic, number), batch) for number, batch in self._placed(rows, partition, count, order)]
        self._producer.add({place for place, _ in placed})
        for place, batch in placed:
            names = None if named is None else partial(_named, named, batch, order)
            self._producer.send(place, len(batch), partial(self._encoded, place, batch, names), names)

    def _encoded(self, place: Place, batch: Batch, named: Named | None, stamp: ProducerState) -> bytes:
        encoded = batch.encode(stamp, self._codec)
        if self._largest is not None and named is not None and len(batch) == 1 and len(encoded) > self._largest:
            takes = f"the limit of {place.topic} is {self._largest} bytes (max.message.bytes or max.request.size)"
            raise too_large(named(0), place.topic, f"its record batch has {len(encoded)} bytes; {takes}")
        return encoded

    def _placed(
        self, rows: RecordColumns, partition: int | None, count: int, new: list[Any]
    ) -> Iterator[tuple[int, Batch]]:
        """Batches with their partitions: keys where Java's partitioner puts them, others batch by batch in turn. ``new``
        gets the order of the rows, where that is another.
        """
        import numpy as np

        if partition is not None:
            yield from ((partition, batch) for batch in batches(rows, self._batch_bytes))
            return
        if rows.keys is None:
            for batch in batches(rows, self._batch_bytes):
                self._next_partition += 1
                yield self._next_partition % count, batch
            return
        self._next_partition += 1
        numbers = java_partitions(rows.keys.fill_null(b""), count)
        numbers[rows.keys.is_null().to_numpy(zero_copy_only=False)] = self._next_partition % count
        order = stable_order(numbers, count)
        numbers = numbers[order]
        new.append(order)
        cuts = np.flatnonzero(np.diff(numbers)) + 1
        for batch in batches(rows.take(order), self._batch_bytes, cuts.tolist()):
            yield int(numbers[batch.start]), batch

    def commit(self, patience: float) -> None:
        """Commit, and know that it happened. After ``UnknownOutcome`` only the topic knows."""
        try:
            self._call("write its records", self._producer.flush)
        except (Fenced, UnknownOutcome, ConnectctlError):
            # No commit was asked for: readers need not wait until it expires.
            with suppress(Fenced, UnknownOutcome, ConnectctlError):
                self.abort(patience)
            raise
        self._commit(lambda: self._producer.end(commit=True))

    def abort(self, patience: float) -> None:
        """Abort what was begun. What is on its way is waited for: no record may come behind the marker."""

        def all_() -> None:
            self._producer.settle()
            self._producer.end(commit=False)

        self._call("abort its transaction", all_)

    def unusable_because(self) -> str | None:
        """None: what went wrong was raised."""
        return None

    def discard(self) -> None:
        """Let go of it, on another thread: a broker that hangs must not keep us."""
        threading.Thread(target=_close, args=(self._producer,), daemon=True).start()

    def _call(self, doing: str, call: Any) -> None:
        from confluent_kafka import KafkaError

        try:
            call()
        except Refusal as e:
            if e.named is not None and (unfit := _rejected(e, e.named)):
                raise unfit from e
            self._fail(KafkaError(e.code), doing, e)
        except OSError as e:
            raise UnknownOutcome(f"could not {doing}: {e or type(e).__name__}") from e

    def _rejection(self) -> None:
        """Every answer is read here, and none is in a log."""


def _named(named: Named, batch: Batch, order: list[Any], record: int) -> str:
    """Which row of the source a record of ``batch`` is."""
    row = batch.start + record
    return named(int(order[0][row]) if order else row)


def _rejected(refusal: Refusal, named: Named) -> ConnectctlError | None:
    """What is wrong with a row that the broker refused for itself; None where it was about something else."""
    row = named(refusal.record or 0)
    if refusal.code == Code.MESSAGE_TOO_LARGE:
        return ConnectctlError(
            f"{row}, or the record batch that starts with it, is too large",
            why=f"the broker responded {refusal.said or 'MESSAGE_TOO_LARGE'}",
            next_step="Set batch.size below max.message.bytes of the topic, or reduce the size of the row.",
            code="row-too-large",
        )
    if refusal.code not in _OF_A_RECORD or refusal.record is None:
        return None
    return refused(row, _OF_A_RECORD[refusal.code], refusal.said)


def _plain(step: TransactionBatch) -> Mapping[tuple[str, int | None], list[tuple[bytes | None, bytes | None]]]:
    """What of ``step`` is no columns, by where it goes, each in its order."""
    found: dict[tuple[str, int | None], list[tuple[bytes | None, bytes | None]]] = defaultdict(list)
    for record in step.records:
        if record.headers or record.timestamp is not None:
            raise TypeError(f"{record.topic}: headers, or a timestamp")
        found[record.topic, record.partition].append((record.key, record.value))
    for bulk in step.record_batches:
        if not isinstance(bulk, ColumnBatch):
            for message in bulk.messages:
                found[bulk.topic, message.get("partition")].append((message.get("key"), message.get("value")))
    return found


def _columnar(records: Iterable[tuple[bytes | None, bytes | None]]) -> RecordColumns:
    import pyarrow as pa

    keys, values = zip(*records, strict=True)
    return RecordColumns(pa.array(values, pa.binary()), pa.array(keys, pa.binary()))


def _close(producer: BatchProducer) -> None:
    with suppress(OSError, ConnectctlError):
        producer.close()


def _codec(properties: Mapping[str, Any]) -> str:
    return str(properties.get("compression.type") or properties.get("compression.codec") or "none")


def dataframe_producer_class(kafka: Kafka, properties: Mapping[str, Any]) -> type[TransactionalProducer]:
    """What writes columns to ``kafka``: librdkafka where they are to be compressed as only it can."""
    return ColumnarProducer if _codec(kafka.client | dict(properties)) in CODECS else TransactionalProducer
