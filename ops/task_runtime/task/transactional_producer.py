"""One instance of a task's transactional producer, from its initialisation to the first unknown
outcome.

librdkafka has no KIP-890 transactions: it repeats an EndTxn that timed out on another connection,
and the first one, where the network only held it back, ends whatever transaction is open when it
arrives. So an instance is used only while every request was answered in time on a connection that
stayed; after that it is thrown away, and a new epoch makes the late request harmless.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.librdkafka.group_positions import group_offsets
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from connectctl.ops.task_runtime.spi.transaction_batch import ColumnBatch
from connectctl.ops.task_runtime.task.rejected_records import OF_A_RECORD, RejectedRecord
from connectctl.ops.task_runtime.task.stale_transactions import expired, open_older_transaction

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
    from connectctl.ops.task_runtime.spi.transaction_batch import Offsets, TransactionBatch

SOCKET_TIMEOUT_MS = 10_000
"""How long one request may take, unless ``socket.timeout.ms`` is given. A commit that took as long
may be sent twice.
"""
DEFAULTS = {"linger.ms": 20, "socket.timeout.ms": SOCKET_TIMEOUT_MS}
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
"""What a new instance would meet again."""
_ALARMS = ("REQTMOUT", "FAIL", "TXNERR", "RETRY")
FULL_PAUSE = 0.05
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


class LogWatcher(logging.Handler):
    """Reads in librdkafka's log what no call returns: requests that timed out, connections that
    broke.
    """

    def __init__(self) -> None:
        super().__init__()
        self.alarm: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if self.alarm is None and any(alarm in line for alarm in _ALARMS):
            self.alarm = line


class TaskProducer:
    """One producer of the transactional id ``id_``. Raises ``Fenced``, ``UnknownOutcome``, and
    ``ConnectctlError`` if the user has to act. ``timeout_ms`` is the transaction's; ``properties``
    are additional ones of librdkafka.
    """

    existing_topic: str | None = None
    """A topic that certainly exists: see ``initialise``."""
    _is_open = False
    """Whether a transaction was begun whose end was not requested."""

    @property
    def bumps_epoch(self) -> bool:
        """Whether each of its transactions has its own epoch (transaction version 2). Known after
        initialisation.
        """
        return False

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
        self._log_watcher = LogWatcher()
        self._begun = 0.0
        self._rejected: Any = None
        """The first error of a rejected record; calls only report that the transaction failed."""
        self.id = id_
        self.timeout_ms = timeout_ms
        log = logging.Logger("connectctl.task")
        log.addHandler(self._log_watcher)
        ours = {
            "transactional.id": id_,
            "transaction.timeout.ms": timeout_ms,
            "partitioner": "murmur2_random",
            "logger": log,
            "on_delivery": self._delivered,
            "delivery.report.only.error": True,
        }
        whole = kafka.properties() | DEFAULTS | dict(properties or {}) | ours
        # librdkafka takes no time-out of a request that is longer than the transaction's.
        whole["socket.timeout.ms"] = min(int(whole["socket.timeout.ms"]), timeout_ms)
        self._request_timeout = whole["socket.timeout.ms"] / 1000
        self._producer: Any = kafka.ask("open a producer", lambda: Producer(whole))

    def initialise(self, patience: float) -> None:
        """Fence all older producers of the id, and wait until their transaction is ended;
        ``patience`` in seconds.

        librdkafka looks for the coordinator at once, and where no broker is connected then, again
        after 500 ms: so a topic is asked for before, which waits for a connection, and once more,
        as the first answer may come by a connection that is replaced behind it. The topic must
        exist: brokers may create what a producer asks for.
        """
        if self.existing_topic is not None:
            with suppress(Exception):  # what is wrong, the initialisation tells
                for _ in range(2):
                    self._producer.list_topics(
                        self.existing_topic, min(patience, self._request_timeout)
                    )
        self._call("initialise its producer", lambda: self._producer.init_transactions(patience))

    def open_older_transaction(self, topics: Sequence[str]) -> str | None:
        """Return where in ``topics`` an older transaction of it is open, None if nowhere. Call
        before it begins one.
        """
        return open_older_transaction(self._kafka, self.id, topics)

    def begin(self) -> None:
        self._begun = time.monotonic()
        self._call("begin a transaction", self._producer.begin_transaction)
        self._is_open = True

    def send(self, batch: TransactionBatch) -> None:
        """Add the records of ``batch`` to the transaction."""

        def all_() -> None:
            for record in batch.records:
                self._send_record(
                    record.topic,
                    record.key,
                    record.value,
                    record.partition,
                    list(record.headers),
                    record.timestamp,
                )
            for bulk in batch.record_batches:
                if isinstance(bulk, ColumnBatch) and bulk.columns.headers is not None:
                    self._with_headers(bulk)
                else:
                    self._send_dicts(bulk.topic, bulk.messages)
            for copies in batch.copies:
                self._send_copies(copies.topic, copies.messages)

        self._call("write its records", all_)

    def send_offsets(self, topic: str, offsets: Offsets) -> None:
        """Add source offsets to the transaction, in the partitions of Java's partitioner."""

        def all_() -> None:
            for key, value in offsets.items():
                self._send_record(topic, key, value, None, [], None)

        self._call("write its offsets", all_)

    def send_group_offsets(
        self, offsets: GroupOffsets, consumer: GroupConsumer, patience: float
    ) -> None:
        """Add offsets of the consumer's group to the transaction (AddOffsetsToTxn, TxnOffsetCommit;
        KIP-447), with its generation, member id and instance id. Raises ``UnknownOutcome`` if the
        group has a newer generation.
        """
        given, metadata = group_offsets(offsets), consumer.metadata
        self._call(
            "write its offsets",
            lambda: self._producer.send_offsets_to_transaction(given, metadata, patience),
        )

    def _send_record(
        self,
        topic: str,
        key: Any,
        value: Any,
        partition: int | None,
        headers: Any,
        timestamp: Any,
        **more: Any,
    ) -> None:
        where = {} if partition is None else {"partition": partition}
        # for librdkafka 0 is none, too
        when = {} if timestamp in (None, -1) else {"timestamp": timestamp}
        while True:
            try:
                self._producer.produce(
                    topic, value, key, headers=headers or None, **where, **when, **more
                )
                return
            except BufferError:
                self._wait_for_room()

    def _with_headers(self, bulk: ColumnBatch) -> None:
        """Send record by record: librdkafka's bulk call has no headers."""
        for message, headers in zip(bulk.messages, bulk.columns.header_lists(), strict=True):
            when = message.get("timestamp") or None  # 0 stands for none
            self._send_record(bulk.topic, message.get("key"), message["value"], None, headers, when)

    def _send_dicts(self, topic: str, messages: list[dict[str, Any]]) -> None:
        from confluent_kafka import KafkaException

        # What is not taken is marked with _error. What did not fit into the queue is sent once
        # more; anything else, a record that is too large, will not be taken then either.
        left = messages
        while left:
            if self._producer.produce_batch(topic, left) == len(left):
                return
            left = [m for m in left if m.get("_error") is not None]
            if hopeless := next(
                (m["_error"] for m in left if m["_error"].name() != "_QUEUE_FULL"), None
            ):
                raise KafkaException(hopeless)
            left = [{k: v for k, v in m.items() if k != "_error"} for m in left]
            self._wait_for_room()

    def _send_copies(self, topic: str, messages: Sequence[Any]) -> None:
        # One by one, because librdkafka takes many at once only without timestamps and headers; by
        # position, which is the quickest. For librdkafka a timestamp of 0 is none.
        produce = self._producer.produce
        for m in messages:
            when = max(m.timestamp()[1], 0)
            while True:
                try:
                    produce(topic, m.value(), m.key(), m.partition(), None, None, when, m.headers())
                    break
                except BufferError:
                    self._wait_for_room()

    def _wait_for_room(self) -> None:
        self._producer.poll(FULL_PAUSE)
        if time.monotonic() - self._begun > self.timeout_ms / 1000:
            raise UnknownOutcome(
                "the producer queue stayed full for longer than transaction.timeout.ms"
            )

    def commit(self, patience: float) -> None:
        """Commit and wait for it; ``patience`` in seconds. After ``UnknownOutcome`` only the topic
        shows the outcome.
        """
        began = time.monotonic()
        self._commit(lambda: self._producer.commit_transaction(patience))
        if time.monotonic() - began > self._request_timeout:
            self._log_watcher.alarm = self._log_watcher.alarm or "the commit timed out"

    def _commit(self, call: Any) -> None:
        """Commit. A fenced instance must not come back, and one that is being fenced meets a
        coordinator that fails: 4.3.1 has an IllegalStateException while it writes
        PREPARE_EPOCH_FENCE. A moment later it tells why. What was answered with an error is not on
        its way any more, so that an abort may be asked for.
        """
        self._is_open = False
        try:
            self._call("commit its transaction", call)
        except BrokerError:
            with suppress(UnknownOutcome, ConnectctlError):  # which tell nothing beyond the first
                self._await_fencing()
            raise

    def _await_fencing(self) -> None:
        for pause in FENCING_PAUSES:
            time.sleep(pause)
            with suppress(BrokerError):
                self.abort(FENCING_PATIENCE)
                return

    def abort(self, patience: float) -> None:
        """Abort the transaction. Only if no commit was requested."""
        self._is_open = False
        self._call("abort its transaction", lambda: self._producer.abort_transaction(patience))

    def unusable_because(self) -> str | None:
        """Return why this instance must not begin another transaction, else None; raises like the
        other methods.
        """
        self._call("describe its producer", lambda: self._producer.poll(0))
        return self._log_watcher.alarm

    @property
    def overdue(self) -> bool:
        """Whether the transaction has been open for longer than the coordinator allows."""
        return time.monotonic() - self._begun > self.timeout_ms / 1000

    def expired(self) -> bool | None:
        """Whether its transaction was aborted and no producer of the id was initialised since; None
        if unknown.
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
        """``abandon`` what is open, and close it on another thread, because closing takes time."""
        self.abandon()
        producer, self._producer = self._producer, None
        if producer is not None:
            threading.Thread(target=_close, args=(producer,), daemon=True).start()

    def _call(self, doing: str, call: Any) -> None:
        from confluent_kafka import KafkaException

        try:
            call()
        except KafkaException as e:
            # as of records that a commit waited for
            self._is_open = self._is_open or e.args[0].txn_requires_abort()
            self._fail(e.args[0], doing, e)

    def _fail(self, error: Any, doing: str, cause: Exception) -> None:
        if error.name() in _FENCED or (error.fatal() and "fenced" in error.str().lower()):
            self._is_open = False
            raise Fenced(error.str()) from cause
        if error.name() == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED":
            raise NotAuthorized(
                f"Not authorized to use the transactional id {self.id}",
                why=error.str(),
                next_step="Grant the principal Write and Describe on that TransactionalId.",
            ) from cause
        failure: ConnectctlError = self._kafka.failure(error, doing)
        self._raise_if_rejected(error, failure, cause)
        if isinstance(failure, NotAuthorized) or error.name() in _PERMANENT:
            raise failure from cause
        if error.name() in OF_A_GENERATION:
            raise Rebalancing(f"could not {doing}: {error.str()}") from cause
        kind = BrokerError if error.name() == "UNKNOWN" else UnknownOutcome
        raise kind(f"could not {doing}: {error.str()}") from cause

    def _delivered(self, error: Any, message: Any) -> None:
        if self._rejected is None and error is not None and error.name() in OF_A_RECORD:
            self._rejected = error

    def _raise_if_rejected(self, error: Any, failure: ConnectctlError, cause: Exception) -> None:
        """Raise ``RejectedRecord`` if a record is the cause, and not the connection."""
        if error.name() in OF_A_RECORD:
            raise RejectedRecord(failure.what, why=failure.why, code=error.name()) from cause
        if (rejected := self._rejection()) is not None:
            raise RejectedRecord(failure.what, why=rejected.str(), code=rejected.name()) from cause

    def _rejection(self) -> Any:
        """Return the error of a rejected record, if one was."""
        from confluent_kafka import KafkaException

        with suppress(KafkaException):  # which it raises for what was told before
            self._producer.poll(0)
        return self._rejected


def _close(producer: Any) -> None:
    producer.purge()
    del producer
