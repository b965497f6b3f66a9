"""A task without exactly-once, as on a worker without ``exactly.once.source.support=enabled``.

The task loop is the same, with a producer without transactional id, librdkafka's, and with flushes
of offsets as boundaries. Records are acknowledged before their offsets are written, so that none is
lost; after a failure some are delivered again, and no producer is fenced. Source:
``WorkerSourceTask``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.boundaries import Boundaries, End, Segment
from connectctl.ops.task_runtime.spi.transaction_batch import ColumnBatch, Offsets, TransactionBatch
from connectctl.ops.task_runtime.task.rejected_records import (
    OF_A_RECORD,
    TOO_LARGE,
    RejectedRecord,
    refused,
    too_large,
)
from connectctl.ops.task_runtime.task.transactional_producer import (
    SOCKET_TIMEOUT_MS,
    TaskProducer,
    UnknownOutcome,
)

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
    from connectctl.ops.task_runtime.spi.connector import Batch
    from connectctl.ops.task_runtime.spi.delivery_settings import DeliverySettings

PATIENCE = 30.0
"""Seconds to wait for acknowledgements; then a new producer sends the records again."""
DEFAULTS = {"linger.ms": 20, "socket.timeout.ms": SOCKET_TIMEOUT_MS}
ALONE = {"batch.num.messages": "1"}
"""The property of a producer whose records are rejected one at a time, so that it names them."""
FULL_PAUSE = 0.05


class FlushBoundaries(Boundaries):
    """Adds a flush of offsets after a batch, every ``interval`` seconds; tasks have no transactions
    to end.

    The flush is a separate segment without records: KIP-910's ``update_offsets`` is called
    immediately before it, when all records of the last poll are acknowledged.
    """

    def __init__(self, interval: float, now: Callable[[], float] = time.monotonic):
        super().__init__(Boundary.INTERVAL, interval, now)

    def cut(self, batch: Batch, polled: float | None = None) -> list[Segment]:
        """Return the batch, and a flush after it if due."""
        flush = [Segment((), End.COMMIT)] if self._due(self._now()) else []
        return [Segment(batch, None), *flush] if batch else flush


Name = Callable[[], str | None]
"""Returns the name of a record for an error; None if it is unknown."""


class _Message(NamedTuple):
    """The arguments of librdkafka for a record."""

    topic: str
    key: Any
    value: Any
    partition: int | None = None
    timestamp: int | None = None
    headers: Any = None


class IdempotentProducer(TaskProducer):
    """A producer without a transactional id for the task loop. A commit waits until everything is
    acknowledged. With ``ALONE`` in ``properties`` the error for a rejected record names it; else it
    is a ``RejectedRecord``.
    """

    names_records = False
    overdue = False

    def __init__(
        self,
        kafka: Kafka,
        id_: str,
        *,
        timeout_ms: int,
        properties: Mapping[str, Any] | None = None,
    ):
        from confluent_kafka import Producer

        self._kafka = kafka
        self._begun = 0.0
        self._failed: list[tuple[Any, _Message, Name | None]] = []
        """Messages that were not taken or not delivered, with librdkafka's error."""
        self.id = id_
        self.timeout_ms = timeout_ms
        fixed = {
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "on_delivery": self._delivered,
        }
        properties_ = kafka.properties() | DEFAULTS | dict(properties or {}) | fixed
        self._is_alone = ALONE.items() <= properties_.items()
        self._librdkafka: Any = kafka.ask("open a producer", lambda: Producer(properties_))

    @property
    def bumps_epoch(self) -> bool:
        """False: there are no transactions."""
        return False

    def _delivered(self, error: Any, message: Any, name: Name | None = None) -> None:
        if error is not None:
            sent = _Message(message.topic(), message.key(), message.value())
            self._failed.append((error, sent, name))

    def initialise(self, patience: float) -> None:
        """Nothing: no producer is fenced."""

    def open_older_transaction(self, topics: Sequence[str]) -> str | None:
        """Return None: there are no transactions."""
        return None

    def begin(self) -> None:
        """Note the time; there is no transaction."""
        self._begun = time.monotonic()

    def send(self, batch: TransactionBatch) -> None:
        """Write the records of ``batch``, and wait for acknowledgement."""
        self._send_batch(batch)
        self.flush("write its records")

    def _send_batch(self, batch: TransactionBatch) -> None:
        self._produce("write its records", lambda: self._send_records(batch))

    def _send_records(self, batch: TransactionBatch) -> None:
        if self._is_alone:
            for number, message in enumerate(_messages(batch)):
                self._send_one(message, partial(batch.record_name, number))
            return
        for message in _single_records(batch):
            self._send_one(message)
        for bulk in batch.record_batches:
            if isinstance(bulk, ColumnBatch) and bulk.columns.headers is not None:
                for message in _with_headers(bulk):
                    self._send_one(message)
            else:
                self._send_many(bulk.topic, bulk.messages)
        for copies in batch.copies:
            for message in _copied(copies.topic, copies.messages):
                self._send_one(message)

    def send_offsets(self, topic: str, offsets: Offsets) -> None:
        """Write source offsets, and wait for acknowledgement."""

        def all_() -> None:
            for key, value in offsets.items():
                self._send_one(_Message(topic, key, value))

        self._produce("write its offsets", all_)
        self.flush("write its offsets")

    def send_group_offsets(
        self, offsets: GroupOffsets, consumer: GroupConsumer, patience: float
    ) -> None:
        """Commit through the consumer after all records are acknowledged."""
        self.flush("write its records")
        consumer.commit(offsets)

    def _send_one(self, message: _Message, name: Name | None = None) -> None:
        from confluent_kafka import KafkaException

        arguments = {"partition": message.partition, "timestamp": message.timestamp}
        # for librdkafka 0 is no timestamp, too
        more: dict[str, Any] = {
            n: value for n, value in arguments.items() if value not in (None, -1)
        }
        if name is not None:
            more["on_delivery"] = partial(self._delivered, name=name)
        while True:
            try:
                self._librdkafka.produce(
                    message.topic,
                    message.value,
                    message.key,
                    headers=message.headers or None,
                    **more,
                )
                return
            except BufferError:
                self._wait_for_room()
            except KafkaException as e:
                self._failed.append((e.args[0], message, name))
                raise

    def _send_many(self, topic: str, messages: list[dict[str, Any]]) -> None:
        from confluent_kafka import KafkaException

        # What is not taken is marked with _error. What did not fit into the queue is sent once
        # more; anything else, a record that is too large, will not be taken then either.
        remaining = messages
        while remaining:
            if self._librdkafka.produce_batch(topic, remaining) == len(remaining):
                return
            remaining = [m for m in remaining if m.get("_error") is not None]
            hopeless = next((m for m in remaining if m["_error"].name() != "_QUEUE_FULL"), None)
            if hopeless is not None:
                error, key, value = (hopeless.get(name) for name in ("_error", "key", "value"))
                self._failed.append((error, _Message(topic, key, value), None))
                raise KafkaException(error)
            remaining = [{k: v for k, v in m.items() if k != "_error"} for m in remaining]
            self._wait_for_room()

    def _wait_for_room(self) -> None:
        self._librdkafka.poll(FULL_PAUSE)
        if time.monotonic() - self._begun > self.timeout_ms / 1000:
            raise UnknownOutcome(
                "the producer queue stayed full for longer than transaction.timeout.ms"
            )

    def _produce(self, doing: str, call: Callable[[], object]) -> None:
        from confluent_kafka import KafkaException

        try:
            call()
        except KafkaException as e:
            self._raise(doing, e.args[0], e)

    def flush(self, doing: str) -> None:
        """Wait for all acknowledgements. Raises ``UnknownOutcome``, or the first error of a
        record.
        """
        from confluent_kafka import KafkaException

        remaining = self._librdkafka.flush(PATIENCE)
        if self._failed:
            error, *_ = self._failed[0]
            self._raise(doing, error, KafkaException(error))
        if remaining:
            raise UnknownOutcome(
                f"could not {doing}: {remaining} not acknowledged within {PATIENCE:g} s"
            )

    def _raise(self, doing: str, error: Any, cause: Exception) -> None:
        """Raise ``error``, or in its place the first one of a record, not of the connection."""
        for rejected, message, name in self._failed:
            if rejected.name() in OF_A_RECORD:
                if name is not None and (record := name()) is not None:
                    raise _rejected(rejected, message, record) from cause
                failure = self._kafka.failure(rejected, doing)
                raise RejectedRecord(failure.what, why=failure.why, code=rejected.name()) from cause
        self._fail(error, doing, cause)

    def commit(self, patience: float) -> None:
        """Nothing: everything is acknowledged."""

    def abort(self, patience: float) -> None:
        """Nothing: written records remain."""

    def unusable_because(self) -> str | None:
        """Return None: acknowledged records are durable."""
        return None

    def _close(self) -> None:
        self._librdkafka.purge()
        del self._librdkafka


class GroupIdempotentProducer(IdempotentProducer):
    """The same for offsets of a consumer group: it waits for records before a commit, not at each
    poll.
    """

    def send(self, batch: TransactionBatch) -> None:
        """Write the records of ``batch``."""
        self._send_batch(batch)


def _rejected(error: Any, message: _Message, record: str) -> ConnectctlError:
    """Return the error for the record of that name."""
    if error.name() != TOO_LARGE:
        return refused(record, error.name(), error.str())
    size = len(message.key or b"") + len(message.value or b"")
    why = f"{size} bytes of key and value: {error.str()}"
    return too_large(record, message.topic, why)


def _single_records(batch: TransactionBatch) -> Iterator[_Message]:
    for record in batch.records:
        yield _Message(
            record.topic,
            record.key,
            record.value,
            record.partition,
            record.timestamp,
            list(record.headers),
        )


def _messages(batch: TransactionBatch) -> Iterator[_Message]:
    """Yield the records of ``batch``, in the order of ``TransactionBatch.record_name``."""
    yield from _single_records(batch)
    for bulk in batch.record_batches:
        if isinstance(bulk, ColumnBatch) and bulk.columns.headers is not None:
            yield from _with_headers(bulk)
            continue
        for message in bulk.messages:
            key, value, partition = message.get("key"), message["value"], message.get("partition")
            yield _Message(bulk.topic, key, value, partition, message.get("timestamp"))
    for copies in batch.copies:
        yield from _copied(copies.topic, copies.messages)


def _with_headers(bulk: ColumnBatch) -> Iterator[_Message]:
    """Yield ``bulk`` record by record: librdkafka's bulk call has no headers."""
    for message, headers in zip(bulk.messages, bulk.columns.header_lists(), strict=True):
        when = message.get("timestamp") or None  # 0 means no timestamp
        yield _Message(bulk.topic, message.get("key"), message["value"], None, when, headers)


def _copied(topic: str, messages: Iterable[Any]) -> Iterator[_Message]:
    """Yield ``messages`` of another topic unchanged."""
    for m in messages:
        when = max(m.timestamp()[1], 0) or None  # for librdkafka a timestamp of 0 is none
        yield _Message(topic, m.key(), m.value(), m.partition(), when, m.headers())


class GroupCommits(GroupIdempotentProducer):
    """Offsets of a consumer group alone, of a sink that writes no records: without a producer."""

    def __init__(
        self,
        kafka: Kafka,
        id_: str,
        *,
        timeout_ms: int,
        properties: Mapping[str, Any] | None = None,
    ):
        self._begun = 0.0
        self.id, self.timeout_ms = id_, timeout_ms

    def send_group_offsets(
        self, offsets: GroupOffsets, consumer: GroupConsumer, patience: float
    ) -> None:
        """Commit through the consumer."""
        consumer.commit(offsets)

    def _close(self) -> None:
        """Do nothing: there is no producer."""


def boundaries_of(delivery: DeliverySettings) -> Boundaries:
    """Return the boundaries of transactions, or of flushes of offsets, for ``delivery``."""
    if delivery.exactly_once:
        return Boundaries(
            delivery.boundary,
            delivery.interval,
            flush_interval=delivery.flush_interval,
            latency=delivery.latency,
        )
    return FlushBoundaries(delivery.interval)
