"""A task's transactional producer, from its initialisation to the first unknown outcome.

It writes whole record batches through the project's own client of Kafka's protocol
(docs/decisions/0045). It never repeats a request that may have been processed, but for a commit
under transaction version 2 (docs/decisions/0030): any other failure is an ``UnknownOutcome``. After
that it is discarded, and the epoch of the next one makes a late request harmless.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
from connectctl.ops.clients.kafka_protocol.refusals import Named, Refusal
from connectctl.ops.clients.kafka_protocol.transactional_writer import (
    TOPIC_PATIENCE,
    Block,
    CopiedBlock,
    TransactionalWriter,
)
from connectctl.ops.clients.librdkafka.group_positions import membership
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized
from connectctl.ops.kafka.batch_rewrite import LARGEST, TargetTopic
from connectctl.ops.kafka.compression import CODECS
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.record_columns import Rows
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.task.record_buffer import RecordBuffer
from connectctl.ops.task_runtime.task.rejected_records import (
    OF_A_RECORD,
    RejectedRecord,
    refused,
    too_large,
)
from connectctl.ops.task_runtime.task.stale_transactions import expired, open_older_transaction

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
    from connectctl.ops.task_runtime.spi.transaction_batch import (
        Offsets,
        TransactionBatch,
    )

SOCKET_TIMEOUT_MS = 10_000
"""The limit of one request, unless ``request.timeout.ms`` or ``socket.timeout.ms`` is given."""
BATCH_BYTES = 1_000_000
"""The default of ``batch.size``: just below the default ``max.message.bytes`` of a topic."""
BUFFER_BYTES = 4_000_000
"""Bytes of single records of a topic, for each partition that they name, that become batches
together.
"""
ALL_BUFFERS_BYTES = 16_000_000
"""Bytes of all waiting single records."""
_FENCED = {
    "_FENCED",
    "FENCED_INSTANCE_ID",
    "PRODUCER_FENCED",
    "INVALID_PRODUCER_EPOCH",
    "INVALID_PRODUCER_ID_MAPPING",
}
OF_A_GENERATION = frozenset({"ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"})
_PERMANENT = {"RECORD_LIST_TOO_LARGE", "INVALID_TRANSACTION_TIMEOUT", "UNSUPPORTED_VERSION"} | {
    "_INVALID_ARG",
    "_UNKNOWN_PARTITION",
    "UNKNOWN_TOPIC_OR_PART",
    "_UNKNOWN_TOPIC",
    "TOPIC_EXCEPTION",
    "CLUSTER_AUTHORIZATION_FAILED",
}
"""Errors that a new instance would get again."""
_CODES_OF_A_RECORD = {32: "INVALID_TIMESTAMP", 87: "INVALID_RECORD"}
_PRODUCERS_OWN = "producer"
"""The ``compression.type`` of a topic that leaves it to its producers."""
ABORT_PATIENCE = 5.0
"""Seconds for the abort of a transaction that an exception or the end of its task interrupted."""
FENCING_PAUSES, FENCING_PATIENCE = (0.05, 0.2, 1.0), 5.0


class Fenced(Exception):
    """A newer producer has initialised the transactional id."""


class UnknownOutcome(Exception):
    """It is unknown which requests of this instance the coordinator has still to process; the text
    is the reason.
    """


class Expired(UnknownOutcome):
    """The coordinator aborted the transaction, open for longer than its timeout; no other producer
    took over.
    """


class Rebalancing(UnknownOutcome):
    """The consumer group has a newer generation than that of the offsets; nothing was committed."""


class PollIntervalExceeded(UnknownOutcome):
    """The group takes the partitions from the member, which has not polled for
    ``max.poll.interval.ms``.
    """


class BrokerError(UnknownOutcome):
    """The broker reported a failure."""


class TaskProducer:
    """One producer of the transactional id ``id_``. Raises ``Fenced``, ``UnknownOutcome``, and
    ``ConnectctlError`` if the user has to act. ``timeout_ms`` is the transaction's. Of
    ``properties`` it uses those in ``WRITER_PROPERTIES``, ``socket.timeout.ms``, and
    ``message.max.bytes``: the topic's limit.

    Batches of another topic are sent unchanged, except for their headers. A batch that its topic
    would reject, or that needs another compression there, is decoded and encoded again. Without
    ``compression.type`` batches keep their compression.
    """

    names_records: ClassVar[bool] = True
    """True if the error for a rejected record names the record."""
    _is_open = False
    """True if a transaction was begun and its end was not requested."""

    def __init__(
        self,
        kafka: Kafka,
        id_: str,
        *,
        timeout_ms: int,
        properties: Mapping[str, Any] | None = None,
    ):
        properties_ = kafka.client | dict(properties or {})
        timeout = _request_timeout(properties_, timeout_ms)
        self._kafka = kafka
        self._begun = 0.0
        self._codec = _codec(properties_)
        largest = (
            int(properties_["message.max.bytes"]) if "message.max.bytes" in properties_ else None
        )
        batch_bytes = min(int(properties_.get("batch.size", BATCH_BYTES)), largest or BATCH_BYTES)
        self._producer: BatchProducer = self._open(
            _client(kafka, properties_), id_, timeout_ms, timeout
        )
        self._buffer = RecordBuffer(BUFFER_BYTES, ALL_BUFFERS_BYTES)
        self._writer = TransactionalWriter(
            self._producer,
            self._codec or "none",
            batch_bytes,
            largest,
            too_large,
            check=self._check_late,
        )
        self._targets: dict[str, TargetTopic] = {}
        self._unchecked: set[TopicPartition] = set()
        """Partitions that had no leader, and are not checked for an older transaction yet."""
        self.id = id_
        self.timeout_ms = timeout_ms

    def _open(
        self, client: Mapping[str, Any], id_: str, timeout_ms: int, timeout: float
    ) -> BatchProducer:
        return BatchProducer(client, id_, transaction_timeout_ms=timeout_ms, timeout=timeout)

    @property
    def bumps_epoch(self) -> bool:
        """Return whether each of its transactions has its own epoch (transaction version 2). Known
        after initialisation.
        """
        return self._producer.bumps_epoch

    def initialise(self, patience: float) -> None:
        """Fence all older producers of the id, and wait until their transaction is ended;
        ``patience`` in seconds.
        """
        self._writer.patience = min(TOPIC_PATIENCE, patience)
        self._call("initialise its producer", lambda: self._producer.initialise(patience))

    def open_older_transaction(self, topics: Sequence[str]) -> str | None:
        """Return where in ``topics`` an older transaction of the producer is open, None if nowhere.
        Call it before the producer begins a transaction. Partitions without a leader are checked
        before the first write to them.
        """
        found: dict[TopicPartition, Any] = {}
        self._call("look up leaders", lambda: found.update(self._producer.leaders(topics)))
        leaderless = {
            partition for partition, leader in found.items() if leader == Code.LEADER_NOT_AVAILABLE
        }
        self._unchecked |= leaderless
        topic_partitions = sorted(found.keys() - leaderless) if leaderless else None
        return open_older_transaction(self._kafka, self.id, topics, topic_partitions)

    def _check_late(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Raise ``UnknownOutcome`` if an older transaction is open in one of ``topic_partitions``
        that had no leader before.
        """
        if late := self._unchecked.intersection(topic_partitions):
            topics = sorted({partition.topic for partition in late})
            if why := open_older_transaction(self._kafka, self.id, topics, sorted(late)):
                raise UnknownOutcome(why)
            self._unchecked -= late

    def begin(self) -> None:
        """Begin a transaction: for the coordinator it begins with its first partition."""
        self._begun = time.monotonic()
        self._buffer.clear()
        self._is_open = True

    def send(self, batch: TransactionBatch) -> None:
        """Add the records of ``batch`` to the transaction."""

        def all_() -> None:
            for block in self._buffer.add(batch):
                self._writer.write(block)
            # Messages of librdkafka keep the response alive that they came in: they are not kept
            # for the next ones.
            self._send(everything=bool(batch.copies))
            for copied in batch.copied_batches:
                self._writer.write(
                    CopiedBlock(
                        copied.topic,
                        copied.batches,
                        self._target(copied.topic),
                        copied.describe_record,
                        copied.count,
                    )
                )

        self._call("write its records", all_)

    def _send(self, *, everything: bool) -> None:
        for block in self._buffer.take(everything=everything):
            self._writer.write(block)

    def _target(self, topic: str) -> TargetTopic:
        """Return the limits of ``topic``, as far as its configuration can be read."""
        if topic not in self._targets:
            config = self._kafka.topic_configs([topic]).get(topic, {})
            codec = config.get("compression.type", _PRODUCERS_OWN)
            largest = config.get("max.message.bytes", "")
            self._targets[topic] = TargetTopic(
                int(largest) if largest.isdigit() else LARGEST,
                config.get("message.timestamp.type") == "LogAppendTime",
                self._codec
                if codec == _PRODUCERS_OWN
                else {"uncompressed": "none"}.get(codec, codec),
            )
        return self._targets[topic]

    def send_offsets(self, topic: str, offsets: Offsets) -> None:
        """Add source offsets to the transaction, in the partitions of Java's partitioner."""
        rows = Rows()
        for key, value in offsets.items():
            rows.add(key, value)
        self._call("write its offsets", lambda: self._writer.write(Block(topic, rows)))

    def send_group_offsets(
        self, offsets: GroupOffsets, consumer: GroupConsumer, patience: float
    ) -> None:
        """Add offsets of the consumer's group to the transaction (AddOffsetsToTxn, TxnOffsetCommit;
        KIP-447), with its generation, member id and instance id. Raises ``UnknownOutcome`` if the
        group has a newer generation.
        """
        member = membership(consumer.metadata)
        self._call(
            "write its offsets",
            lambda: self._producer.send_group_offsets(member, offsets, patience),
        )

    def commit(self, patience: float) -> None:
        """Commit and wait for it; ``patience`` in seconds. After ``UnknownOutcome`` only the topic
        shows the outcome.

        A fenced instance must not continue. While an instance is being fenced, its coordinator
        fails: 4.3.1 has an IllegalStateException while it writes PREPARE_EPOCH_FENCE. Shortly
        after, it reports the fencing. A request that was answered with an error is no longer in
        flight, so that an abort may be requested.
        """

        def all_() -> None:
            self._send(everything=True)
            self._producer.flush()

        self._call("write its records", all_)
        self._is_open = False
        try:
            self._call(
                "commit its transaction",
                lambda: self._producer.end(commit=True, patience=patience),
            )
        except BrokerError:
            with suppress(UnknownOutcome, ConnectctlError):  # they add nothing to the first error
                self._await_fencing()
            raise

    def _await_fencing(self) -> None:
        for pause in FENCING_PAUSES:
            time.sleep(pause)
            with suppress(BrokerError):
                self.abort(FENCING_PATIENCE)
                return

    def abort(self, patience: float) -> None:
        """Abort the transaction. Only if no commit was requested. No record may be written after
        the marker: requests in flight are waited for, unless their epoch ends with the transaction.
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
        """Return None: every failure was raised."""
        return None

    @property
    def overdue(self) -> bool:
        """Return whether the transaction has been open for longer than the coordinator allows."""
        return time.monotonic() - self._begun > self.timeout_ms / 1000

    def expired(self) -> bool | None:
        """Return whether its transaction was aborted and no producer of the id was initialised
        since; None if unknown.
        """
        return expired(self._kafka, self.id)

    def abandon(self) -> None:
        """Abort the transaction that is open, so that no reader waits for its timeout. Nothing
        after a commit was requested, whose outcome only the topic shows, and after a newer producer
        has ended it.
        """
        if self._is_open:
            with suppress(UnknownOutcome, Fenced, ConnectctlError):
                self.abort(ABORT_PATIENCE)

    def discard(self) -> None:
        """``abandon`` what is open, and close it on another thread: a broker that hangs must not
        block the task.
        """
        self.abandon()
        threading.Thread(target=self._close, daemon=True).start()

    def _close(self) -> None:
        with suppress(OSError, ConnectctlError):
            self._producer.close()

    def _call(self, doing: str, call: Callable[[], object]) -> None:
        from confluent_kafka import KafkaError

        try:
            call()
        except Refusal as e:
            if e.named is not None and (unfit := _rejected(e, e.named)):
                raise unfit from e
            to = "" if e.topic is None else f" to topic {e.topic}"
            self._fail(KafkaError(e.code, e.said), doing + to, e)
        except OSError as e:
            raise UnknownOutcome(f"could not {doing}: {e or type(e).__name__}") from e

    def _fail(self, error: Any, doing: str, cause: Exception) -> None:
        if error.name() in _FENCED:
            self._is_open = False
            raise Fenced(error.str()) from cause
        if error.name() == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED":
            raise NotAuthorized(
                f"Not authorized to use the transactional id {self.id}",
                why=error.str(),
                next_step="Grant the principal Write and Describe on that TransactionalId.",
            ) from cause
        failure: ConnectctlError = self._kafka.failure(error, doing)
        if error.name() in OF_A_RECORD:
            raise RejectedRecord(failure.what, why=failure.why, code=error.name()) from cause
        if isinstance(failure, NotAuthorized) or error.name() in _PERMANENT:
            raise failure from cause
        if error.name() in OF_A_GENERATION:
            raise Rebalancing(f"could not {doing}: {error.str()}") from cause
        kind = BrokerError if error.name() == "UNKNOWN" else UnknownOutcome
        raise kind(f"could not {doing}: {error.str()}") from cause


def _client(kafka: Kafka, whole: Mapping[str, Any]) -> dict[str, Any]:
    return kafka.client | ({"client.id": whole["client.id"]} if "client.id" in whole else {})


def _request_timeout(whole: Mapping[str, Any], timeout_ms: int) -> float:
    value = whole.get("request.timeout.ms") or whole.get("socket.timeout.ms", SOCKET_TIMEOUT_MS)
    return min(int(value), timeout_ms) / 1000


def _codec(properties: Mapping[str, Any]) -> str | None:
    """Return the codec of ``compression.type``, None where none is given. Raises ``BadInput`` for
    an unsupported codec.
    """
    value = properties.get("compression.type") or properties.get("compression.codec")
    if value in (None, "inherit"):
        return None
    if value not in CODECS:
        raise BadInput(
            f"compression.type={value} is not supported",
            next_step=f"Use one of {', '.join(CODECS)}.",
        )
    return str(value)


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
    if refusal.code not in _CODES_OF_A_RECORD or refusal.record is None:
        return None
    return refused(row, _CODES_OF_A_RECORD[refusal.code], refusal.said)
