"""A transactional producer with the methods of confluent-kafka's: see
docs/how-to/transactional-producer.md.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException
from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
from connectctl.ops.clients.kafka_protocol.batch_sender import Unacknowledged
from connectctl.ops.clients.kafka_protocol.block import Block
from connectctl.ops.clients.kafka_protocol.refusals import Refusal
from connectctl.ops.clients.kafka_protocol.transactional_writer import TransactionalWriter
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
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.record_columns import Rows
from connectctl.ops.kafka.topic_partition import TopicPartition

BUFFER_BYTES = 8_000_000
"""Bytes of keys, values and headers that are kept until they are sent."""
_NO_PARTITION = -1


class TransactionalProducer:
    """Writes records in transactions, each of which readers with ``read_committed`` see as a whole,
    once, or not at all.

    ``config`` has librdkafka's names: ``bootstrap.servers``, ``transactional.id``,
    ``transaction.timeout.ms`` (60,000 ms), ``socket.timeout.ms`` (10,000 ms: how long one request
    may take), ``topic.metadata.propagation.max.ms`` (30,000 ms: how long a topic that is not there
    is waited for), ``batch.size`` and ``message.max.bytes`` (1,000,000 bytes),
    ``compression.type``, ``client.id``, and those that begin with ``security.``, ``ssl.`` and
    ``sasl.``. Properties that only tune librdkafka have no effect; any other one is refused. Keys
    go to the partitions where Java's producer puts them (``partitioner=murmur2_random``).

    On brokers with ``transaction.version`` 2 (KIP-890, by default from Kafka 4.0 on) each
    transaction has an epoch of its own: a request that the network delivers late is refused, and
    ``commit_transaction()`` can be called again until it is answered. On older brokers, a commit
    without an answer ends the producer instead.

    Every method raises ``KafkaException``: ``AbortRequired``, ``RequestFailed``,
    ``ProducerFailed``, ``ProducerFenced``, or one with ``_STATE`` or ``_INVALID_ARG`` for a call
    that does not fit. All time-outs of methods are in seconds. Methods may be called from several
    threads, one at a time gets in; callbacks are called by the thread that is in.
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
        self._rows: dict[str, Rows] = defaultdict(Rows)
        self._bytes = 0
        self._state = TransactionState(partial(self._deliveries.drop, self._rows))

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
        """How many records were produced and not acknowledged yet, or wait for ``poll()`` to call
        their callback.
        """
        with self._lock:
            return self._unacknowledged + self._deliveries.due

    @property
    def _unacknowledged(self) -> int:
        return sum(len(rows) for rows in self._rows.values()) + self._producer.unacknowledged

    def close(self) -> None:
        """Close the connections, and call the callbacks that are left. What is open is aborted when
        it expires, or by the next producer of the id.
        """
        with self._lock:
            self._state.fail(KafkaError(KafkaError._STATE, "the producer is closed"))
            with suppress(OSError, ConnectctlError):
                self._producer.close()
            self._deliveries.serve()

    def init_transactions(self, timeout: float = 60.0) -> None:
        """Fence older producers of the id and wait until what they have open is ended, for up to
        ``timeout`` seconds.

        Raises ``RequestFailed`` where that takes longer or nobody answers, and ``ProducerFailed``
        where it is not allowed.
        """
        with self._lock:
            self._state.expect("init_transactions()", Phase.NEW)
            with self._state.failing("initialise its producer", request_failed):
                self._producer.initialise(timeout)
            self._state.become(Phase.READY)

    def begin_transaction(self) -> None:
        """Begin a transaction. No request is sent: for the brokers it begins with its first
        record.
        """
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
        """Put a record into the transaction. ``timestamp`` is in ms, 0 for the time at which it is
        sent; ``partition`` -1 for that of its key, or any where it has none.

        ``on_delivery``, or ``callback``, is called once with an error, or None, and the record as a
        ``confluent_kafka.Message`` with its partition and offset, by ``poll``, ``flush``,
        ``commit_transaction``, ``abort_transaction`` or ``close``. No error means that the record
        is acknowledged, not that it is committed. What it raises, that method raises.

        Raises ``AbortRequired`` where what was produced before could not be sent, and
        ``KafkaException`` with ``MSG_SIZE_TOO_LARGE`` for a record that makes a batch above
        ``message.max.bytes``, which is not in the transaction then, and ``ValueError`` for a
        negative ``timestamp``.
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
            rows = self._rows[topic]
            if (call := callback if on_delivery is None else on_delivery) is not None:
                self._deliveries.keep(topic, len(rows.values), call)
                timestamp = timestamp or int(time.time() * 1000)
            numbered = None if partition == _NO_PARTITION else partition
            rows.add(raw_key, raw_value, timestamp or None, given, numbered)
            self._bytes += size
            if self._bytes >= BUFFER_BYTES:
                self._send()

    def poll(self, timeout: float | None = 0) -> int:
        """Call the callbacks of records that are acknowledged, or lost; how many that were.

        Where there are none yet, and with a ``timeout`` other than 0, it sends what was produced
        and waits as ``flush`` does, for so many seconds. Raises ``AbortRequired`` as it does.
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
        """Send what was produced, wait until it is acknowledged, for ``timeout`` seconds or, if
        None, each request for ``socket.timeout.ms``, and call its callbacks. Return how many
        records are not acknowledged. Outside of a transaction there is nothing to send. A
        connection, the coordinator and a partition without a leader are waited for by their own
        limits, because a record cannot be sent before.

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
        """Commit offsets of a consumer group with the transaction (KIP-447): ``positions`` are
        those of the next records to read, of which those without an offset are left out, and
        ``group_metadata`` is ``Consumer.consumer_group_metadata()``. The group's coordinator is
        waited for ``timeout`` seconds.

        Raises ``AbortRequired``, also where the group has rebalanced and another member has the
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
        """Send what is left, wait until all is acknowledged, call the callbacks, and commit. When
        it returns, the transaction is committed. Where a callback raises, it is still open.

        Raises ``AbortRequired`` where a record did not arrive; ``RequestFailed`` where leaders or
        the coordinator did not answer within ``timeout`` seconds: call it again; ``ProducerFailed``
        where only the topic can tell what came of it.
        """
        with self._lock:
            self._state.expect("commit_transaction()", Phase.OPEN, Phase.COMMITTING)
            deadline = time.monotonic() + timeout
            if self._state.now is Phase.OPEN:
                self._flush(timeout)
                if left := self._unacknowledged:
                    why = f"{left} records are not acknowledged after {timeout:g} s"
                    raise request_failed(KafkaError(KafkaError._TIMED_OUT, why))
                # and no callback has ended it
                self._state.expect("commit_transaction()", Phase.OPEN)
            self._state.become(Phase.COMMITTING)
            try:
                self._producer.end(commit=True, patience=max(0.0, deadline - time.monotonic()))
            except PROBLEMS as e:
                raise self._state.not_committed(e, repeatable=self._producer.bumps_epoch) from e
            self._state.become(Phase.READY)

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Abort: nothing of the transaction will be seen, and another one can be begun. The
        coordinator is waited for ``timeout`` seconds, ``socket.timeout.ms`` if None.

        Raises ``RequestFailed``: call it again; ``ProducerFailed``: the next producer of the id
        ends it.
        """
        with self._lock:
            self._state.expect("abort_transaction()", Phase.OPEN, Phase.ABORTABLE)
            doubtful, self._state.now = self._state.now is Phase.ABORTABLE, Phase.ABORTABLE
            repeat = request_failed if self._producer.bumps_epoch else failed
            with self._state.failing("abort its transaction", repeat, Phase.ABORTABLE):
                if not self._producer.bumps_epoch:
                    with suppress(OSError):
                        self._producer.settle()
                self._producer.drop_unanswered()
                self._deliveries.drop(self._rows)
                self._bytes = 0
                self._producer.end(commit=False, patience=timeout)
                if doubtful:
                    self._producer.forget_leaders()
                    if not self._producer.bumps_epoch:
                        self._producer.resume(self._settings.request_timeout)
            self._state.become(Phase.READY)
            self._deliveries.serve()

    def _flush(self, timeout: float | None = None) -> int:
        """Send and wait until nothing is left, also of what callbacks produce, for ``timeout``
        seconds at most, None or a negative number for no limit. Return how many callbacks were
        called.
        """
        served, late = 0, False
        deadline = None if timeout is None or timeout < 0 else time.monotonic() + timeout
        while self._state.now is Phase.OPEN and not late:
            late = not self._send(deadline)
            with self._state.failing("write its records", abort_required, Phase.ABORTABLE):
                try:
                    self._producer.flush(
                        None if deadline is None else max(0.0, deadline - time.monotonic())
                    )
                except Unacknowledged:
                    late = True
            served += self._deliveries.serve()
            if not self._rows:
                break
        return served

    def _send(self, deadline: float | None = None) -> bool:
        """Send what was produced. Return False if a topic was not found before ``deadline``, so
        that its records wait.
        """
        with self._state.failing("write its records", abort_required, Phase.ABORTABLE):
            while self._rows:
                topic = next(iter(self._rows))
                if deadline is not None and not self._is_found(topic, deadline):
                    return False
                rows = self._rows.pop(topic)
                delivered = self._deliveries.sending(topic, rows)
                self._writer.write(Block(topic, rows, partial(name_of, rows), delivered))
        self._bytes = 0
        return True

    def _is_found(self, topic: str, deadline: float) -> bool:
        patience = min(self._settings.topic_patience, max(0.0, deadline - time.monotonic()))
        try:
            self._producer.partitions(topic, patience)
        except Refusal:
            # it was waited for as long as for any topic, or waiting does not help
            if time.monotonic() < deadline:
                raise
            return False
        return True


def _offset(position: confluent_kafka.TopicPartition) -> GroupOffset:
    return GroupOffset(position.offset, position.leader_epoch, position.metadata or "")


def _too_large(record: str, topic: str, why: str) -> Exception:
    return ValueError(f"{record} for {topic}: {why}")
