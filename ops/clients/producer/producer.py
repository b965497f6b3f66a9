"""A transactional producer with the methods of confluent-kafka's: see
docs/how-to/transactional-producer.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException
from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
from connectctl.ops.clients.kafka_protocol.limit import Unacknowledged
from connectctl.ops.clients.kafka_protocol.transactional_writer import Block, TransactionalWriter
from connectctl.ops.clients.librdkafka.group_positions import membership
from connectctl.ops.clients.producer.deliveries import Callback, Deliveries
from connectctl.ops.clients.producer.errors import abort_required, failed, request_failed
from connectctl.ops.clients.producer.records import (
    ALONE,
    HeadersGiven,
    name_of,
    raw,
    raw_headers,
    size_of,
    too_large,
)
from connectctl.ops.clients.producer.settings import invalid, settings
from connectctl.ops.clients.producer.transaction_state import PROBLEMS, Phase, TransactionState
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import counted
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition

BUFFER_BYTES = 8_000_000
"""Bytes of keys, values and headers that are buffered before they are sent."""
_NO_PARTITION = -1


class TransactionalProducer:
    """Writes records in transactions. Readers with ``read_committed`` see all records of a
    transaction, once, or none.

    ``config`` has librdkafka's names: ``bootstrap.servers``, ``transactional.id``,
    ``transaction.timeout.ms`` (60,000 ms), ``socket.timeout.ms`` (10,000 ms: the limit of one
    request), ``topic.metadata.propagation.max.ms`` (30,000 ms: the wait for a topic that does not
    exist), ``batch.size`` and ``message.max.bytes`` (1,000,000 bytes), ``compression.type``,
    ``client.id``, and those that begin with ``security.``, ``ssl.`` and ``sasl.``. Properties that
    only tune librdkafka have no effect; any other property is refused. Records with a key get the
    partition of Java's producer (``partitioner=murmur2_random``).

    On brokers with ``transaction.version`` 2 (KIP-890, by default from Kafka 4.0 on) each
    transaction has an epoch of its own: a request that the network delivers late is refused, and
    ``commit_transaction()`` can be called again until it is answered. On older brokers, a commit
    without an answer ends the producer instead.

    Every method raises ``KafkaException``: ``AbortRequired``, ``RequestFailed``,
    ``ProducerFailed``, ``ProducerFenced``, or one with ``_STATE`` or ``_INVALID_ARG`` for a call in
    the wrong state or with invalid arguments. All time-outs of methods are in seconds. Methods may
    be called from several threads, and run one at a time. A callback runs on the thread of the
    method that calls it.
    """

    def __init__(self, config: Mapping[str, Any]):
        for name in ("crc32c", "pyarrow"):
            if find_spec(name) is None:
                raise ImportError(
                    f"connectctl.producer needs {name}: pip install 'connectctl[producer]'"
                )
        given = settings(config)
        self._settings = given
        self._producer = BatchProducer(
            given.connection,
            given.id,
            transaction_timeout_ms=given.transaction_timeout_ms,
            timeout=given.request_timeout,
        )
        self._writer = TransactionalWriter(
            self._producer, given.codec, given.batch_bytes, None, _too_large, given.topic_patience
        )
        self._deliveries = Deliveries()
        self._lock = threading.RLock()
        self._bytes = 0
        self._state = TransactionState(partial(_drop, self._deliveries, self._writer))

    def __enter__(self) -> TransactionalProducer:
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            if self._state.now in (Phase.OPEN, Phase.ABORTABLE):
                with suppress(KafkaException):
                    self.abort_transaction()
        finally:
            self.close()

    def __len__(self) -> int:
        """Return the number of records without an acknowledgement, plus the number of callbacks
        that wait for ``poll()``.
        """
        with self._lock:
            return self._unacknowledged + self._deliveries.due

    @property
    def _unacknowledged(self) -> int:
        produced = sum(len(each.rows) for each in self._deliveries.buffered.values())
        return produced + self._writer.waiting + self._producer.unacknowledged

    def close(self) -> None:
        """Close the connections, and call the remaining callbacks. An open transaction is aborted
        when it expires, or by the next producer of the id.
        """
        with self._lock:
            self._state.fail(KafkaError(KafkaError._STATE, "the producer is closed"))
            with suppress(OSError, ConnectctlError):
                self._producer.close()
            self._deliveries.serve()

    def init_transactions(self, timeout: float = 60.0) -> None:
        """Fence older producers of the id, and wait up to ``timeout`` seconds for the end of their
        transaction.

        Raises ``RequestFailed`` if that takes longer or no coordinator answers, and
        ``ProducerFailed`` if it is not permitted.
        """
        with self._lock:
            self._state.expect("init_transactions()", Phase.NEW)
            with self._state.failing("initialise its producer", request_failed):
                self._producer.initialise(timeout)
            self._state.become(Phase.READY)

    def begin_transaction(self) -> None:
        """Begin a transaction. No request is sent: brokers begin it with its first record."""
        with self._lock:
            self._state.expect("begin_transaction()", Phase.READY)
            self._state.become(Phase.OPEN)

    def produce(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = _NO_PARTITION,
        callback: Callback | None = None,
        on_delivery: Callback | None = None,
        timestamp: int = 0,
        headers: HeadersGiven | None = None,
    ) -> None:
        """Add a record to the transaction. ``timestamp`` is in ms, 0 for the time of sending.
        ``partition`` -1 selects the partition by the key, or any partition without a key.

        ``on_delivery``, or ``callback``, is called once, by ``poll``, ``flush``,
        ``commit_transaction``, ``abort_transaction`` or ``close``. Its arguments are an error, or
        None, and the record as a ``confluent_kafka.Message`` with its partition and offset. None
        means that the record is acknowledged, not that it is committed. An exception of the
        callback is raised by the method that calls it.

        Raises ``AbortRequired`` if earlier records could not be sent, and ``ValueError`` for a
        negative ``timestamp``. Raises ``KafkaException`` with ``MSG_SIZE_TOO_LARGE`` for a record
        that makes a batch above ``message.max.bytes``; that record is not added to the transaction.
        """
        with self._lock:
            if self._state.now is not Phase.OPEN:
                self._state.expect("produce()", Phase.OPEN)
            if timestamp < 0:
                raise ValueError(f"timestamp is {timestamp} ms, which is before 1970")
            raw_key = key if key is None or type(key) is bytes else raw(key)
            raw_value = value if value is None or type(value) is bytes else raw(value)
            given = raw_headers(headers) if headers else None
            size = size_of(raw_key, raw_value, given)
            if size + ALONE > self._settings.largest:
                raise too_large(topic, raw_key, size, self._settings.largest)
            records = self._deliveries.to(topic)
            if (call := callback if on_delivery is None else on_delivery) is not None:
                records.callbacks[len(records.rows)] = call
                timestamp = timestamp or int(time.time() * 1000)
            numbered = None if partition == _NO_PARTITION else partition
            records.rows.add(raw_key, raw_value, timestamp or None, given, numbered)
            self._bytes += size
            if self._bytes >= BUFFER_BYTES:
                with self._state.failing("write its records", abort_required, Phase.ABORTABLE):
                    self._send()

    def poll(self, timeout: float | None = 0) -> int:
        """Call the callbacks of records that are acknowledged or lost, and return their number.

        If there are none, and ``timeout`` is not 0, send the produced records and wait for them as
        ``flush`` does, for up to ``timeout`` seconds. Raises ``AbortRequired`` as ``flush`` does.
        """
        with self._lock:
            if (
                timeout != 0
                and self._state.now is Phase.OPEN
                and not self._deliveries.due
                and self._deliveries.are_awaited
            ):
                return self._flush(timeout)
            return self._deliveries.serve()

    def flush(self, timeout: float | None = None) -> int:
        """Send the produced records, wait for their acknowledgements, and call their callbacks.
        Return the number of records that are not acknowledged; none is lost. All of it is limited
        to ``timeout`` seconds; if None, each request is limited to ``socket.timeout.ms``. Outside
        of a transaction there is nothing to send.

        Raises ``AbortRequired``.
        """
        with self._lock:
            self._state.expect("flush()", Phase.OPEN, Phase.READY)
            if self._state.now is Phase.OPEN:
                self._flush(timeout)
            self._deliveries.serve()
            return self._unacknowledged

    def send_offsets_to_transaction(
        self,
        positions: Sequence[confluent_kafka.TopicPartition],
        group_metadata: bytes,
        timeout: float = 30.0,
    ) -> None:
        """Commit offsets of a consumer group with the transaction (KIP-447). ``positions`` are the
        offsets of the next records to read; those without an offset are ignored. ``group_metadata``
        is ``Consumer.consumer_group_metadata()``. The wait for the group's coordinator is limited
        to ``timeout`` seconds.

        Raises ``AbortRequired``, also if the group has rebalanced and another member has the
        partitions.
        """
        with self._lock:
            self._state.expect("send_offsets_to_transaction()", Phase.OPEN)
            offsets = {
                TopicPartition(p.topic, p.partition): _offset(p) for p in positions if p.offset >= 0
            }
            if not offsets:
                return
            try:
                member = membership(group_metadata)
            except ConnectctlError as e:
                raise invalid(f"group_metadata: {e.what}: {e.why}") from e
            doing = f"commit offsets of the consumer group {member.group}"
            with self._state.failing(doing, abort_required, Phase.ABORTABLE):
                self._producer.send_group_offsets(member, offsets, timeout)

    def commit_transaction(self, timeout: float = 60.0) -> None:
        """Send the remaining records, wait for all acknowledgements, call the callbacks, and
        commit. When it returns, the transaction is committed. If a callback raises, the transaction
        is still open.

        Raises ``AbortRequired`` if a record was not written; ``RequestFailed`` if leaders or the
        coordinator did not answer within ``timeout`` seconds: call it again; ``ProducerFailed`` if
        only the topic shows the outcome.
        """
        with self._lock:
            self._state.expect("commit_transaction()", Phase.OPEN, Phase.COMMITTING)
            deadline = time.monotonic() + timeout
            if self._state.now is Phase.OPEN:
                self._flush(timeout)
                if left := self._unacknowledged:
                    why = f"not acknowledged after {timeout:g} s: {counted(left, 'record')}"
                    raise request_failed(KafkaError(KafkaError._TIMED_OUT, why))
                # a callback may have ended it
                self._state.expect("commit_transaction()", Phase.OPEN)
            self._state.become(Phase.COMMITTING)
            try:
                self._producer.end(commit=True, patience=max(0.0, deadline - time.monotonic()))
            except PROBLEMS as e:
                raise self._state.not_committed(e, repeatable=self._producer.bumps_epoch) from e
            self._state.become(Phase.READY)

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Abort the transaction; then another can begin. Readers with ``read_committed`` see none
        of its records. The wait for the coordinator is limited to ``timeout`` seconds,
        ``socket.timeout.ms`` if None.

        Raises ``RequestFailed``: call it again; ``ProducerFailed``: the next producer of the id
        ends the transaction.
        """
        with self._lock:
            self._state.expect("abort_transaction()", Phase.OPEN, Phase.ABORTABLE)
            doubtful, self._state.now = self._state.now is Phase.ABORTABLE, Phase.ABORTABLE
            ends = None if timeout is None else time.monotonic() + timeout
            repeat = request_failed if self._producer.bumps_epoch else failed
            with self._state.failing("abort its transaction", repeat, Phase.ABORTABLE):
                if not self._producer.bumps_epoch:
                    try:
                        with self._producer.until(ends):
                            self._producer.settle()
                    except OSError:
                        doubtful = True
                self._producer.drop_unanswered()
                _drop(self._deliveries, self._writer)
                self._bytes = 0
                self._producer.end(commit=False, patience=timeout)
                if doubtful:
                    self._producer.forget_leaders()
                    if not self._producer.bumps_epoch:
                        self._producer.resume(self._settings.request_timeout)
            self._state.become(Phase.READY)
            self._deliveries.serve()

    def _flush(self, timeout: float | None = None) -> int:
        """Send and wait until no record is left, also of those that callbacks produce. It takes up
        to ``timeout`` seconds, and has no limit if ``timeout`` is None or negative. Return the
        number of callbacks that were called.
        """
        served, late = 0, False
        ends = None if timeout is None or timeout < 0 else time.monotonic() + timeout
        while self._state.now is Phase.OPEN and not late:
            with self._state.failing("write its records", abort_required, Phase.ABORTABLE):
                try:
                    with self._producer.until(ends):
                        self._send()
                        self._producer.flush()
                except Unacknowledged:
                    late = True
            served += self._deliveries.serve()
            if not self._deliveries.buffered:
                break
        return served

    def _send(self) -> None:
        """Send the produced records. Records of a topic that is not found in time stay in the
        buffer.
        """
        self._writer.send_taken()
        buffered = self._deliveries.buffered
        while buffered:
            topic = next(iter(buffered))
            self._producer.partitions(topic, self._writer.patience)
            records = buffered.pop(topic)
            named = partial(name_of, records.rows)
            self._writer.write(Block(topic, records.rows, named, self._deliveries.sending(records)))
        self._bytes = 0


def _offset(position: confluent_kafka.TopicPartition) -> GroupOffset:
    return GroupOffset(position.offset, position.leader_epoch, position.metadata or "")


def _drop(deliveries: Deliveries, writer: TransactionalWriter) -> None:
    writer.clear()
    deliveries.drop()


def _too_large(record: str, topic: str, why: str) -> Exception:
    return ValueError(f"{record} for {topic}: {why}")
