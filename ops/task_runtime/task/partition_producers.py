"""A transactional producer for each input partition, as one producer for the task loop: the way before KIP-447.

Each is opened when its partition is assigned, before the group's offset of it is read: whoever had the partition before had
the same transactional id, so that its open transaction ends, and what it has pending with it. It is closed when the
partition is revoked, behind a commit. What is made of a partition's records, and the group's offset of it, go through its
own producer; a commit is that of all that have something, each in a transaction of its own. Where some of these came
through and others did not, each partition still stands where its own output does.

A producer that is fenced has lost its partition, and not the task: the attempt begins again and joins its group, unless
another attempt of the task has its ``group.instance.id``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from connectctl.ops.task_runtime.spi.transaction_batch import TransactionBatch
from connectctl.ops.task_runtime.task.transactional_producer import (
    Expired,
    Fenced,
    MemberFenced,
    TaskProducer,
    UnknownOutcome,
)

if TYPE_CHECKING:
    from connectctl.ops.kafka.topic_partition import TopicPartition
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets

MOST_AT_ONCE = 16
"""The number of producers used in parallel."""
Work = Callable[[TaskProducer], None]


class PartitionProducers(TaskProducer):
    """See ``TaskProducer``. ``open_producer`` gives that of a partition; ``is_replaced`` says whether another
    attempt of the task has taken its place; ``discarded`` is called at the end of all.
    """

    overdue = False
    """Each producer is asked by itself."""

    def __init__(
        self,
        open_producer: Callable[[TopicPartition], TaskProducer],
        timeout_ms: int,
        is_replaced: Callable[[], bool],
        discarded: Callable[[], None] = lambda: None,
    ):
        self._open_producer, self._is_replaced, self._discarded = open_producer, is_replaced, discarded
        self._producers: dict[TopicPartition, TaskProducer] = {}
        self._in_transaction: set[TopicPartition] = set()
        self._checked: dict[TopicPartition, set[str]] = {}
        """Topics in which no older transaction of a partition's producer is open."""
        self._pool = ThreadPoolExecutor(MOST_AT_ONCE, "connectctl-partition")
        self.timeout_ms = timeout_ms

    def open(self, partitions: Collection[TopicPartition], patience: float) -> None:
        """Open and initialise those of ``partitions``, all at once; ``patience`` in seconds."""
        for place in partitions:
            self._close(place)
            self._producers[place], self._checked[place] = self._open_producer(place), set()
        self._each(partitions, lambda producer: producer.initialise(patience))

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Close those of ``partitions``, which have no open transaction."""
        for place in partitions:
            self._close(place)

    def _close(self, place: TopicPartition) -> None:
        self._in_transaction.discard(place)
        if (producer := self._producers.pop(place, None)) is not None:
            producer.discard()

    def initialise(self, patience: float) -> None:
        """Nothing: each is initialised when its partition is assigned."""

    def open_older_transaction(self, topics: Any) -> str | None:
        """None: each is asked for before it writes to a topic."""
        return None

    def begin(self) -> None:
        """Nothing: each begins with its first record or offset."""

    def send(self, batch: TransactionBatch) -> None:
        """Add each record to the transaction of its input partition."""
        if batch.size != sum(part.size for _, part in batch.origins):
            raise TypeError("records of no input partition")
        for place, part in batch.origins:
            self._each([place], lambda producer, place=place, part=part: self._send(producer, place, part))  # type: ignore[misc]

    def _send(self, producer: TaskProducer, place: TopicPartition, part: TransactionBatch) -> None:
        if new := part.topics - self._checked[place]:
            if why := producer.open_older_transaction(sorted(new)):
                raise UnknownOutcome(why)
            self._checked[place] |= new
        self._begin(producer, place)
        producer.send(part)

    def _begin(self, producer: TaskProducer, place: TopicPartition) -> None:
        if place not in self._in_transaction:
            producer.begin()
            self._in_transaction.add(place)

    def send_group_offsets(self, offsets: GroupOffsets, consumer: GroupConsumer, patience: float) -> None:
        """Add each offset to the transaction of its partition."""
        for place in offsets:
            self._begin(self._producers[place], place)
        member: Any = SimpleNamespace(metadata=consumer.metadata)  # which other threads must not ask for
        by_id = {self._producers[place].id: {place: offset} for place, offset in offsets.items()}
        self._each(offsets, lambda producer: producer.send_group_offsets(by_id[producer.id], member, patience))

    def commit(self, patience: float) -> None:
        """Commit all that have something. After ``UnknownOutcome`` each has been committed or not, for itself."""
        self._each(self._in_transaction, lambda producer: producer.commit(patience))
        self._in_transaction.clear()

    def abort(self, patience: float) -> None:
        self._each(self._in_transaction, lambda producer: producer.abort(patience))
        self._in_transaction.clear()

    def unusable_because(self) -> str | None:
        for place, producer in self._producers.items():
            if why := producer.unusable_because():
                return f"the producer of {place}: {why}"
        return None

    def abandon(self) -> None:
        """Abort all that are open, and whose end was not requested."""
        self._each(self._in_transaction, lambda producer: producer.abandon())
        self._in_transaction.clear()

    def discard(self) -> None:
        self.abandon()
        for place in list(self._producers):
            self._close(place)
        self._pool.shutdown(wait=False)
        self._discarded()

    def _each(self, places: Collection[TopicPartition], work: Work) -> None:
        """``work`` with the producer of each, all at once and each to its end. Raises the gravest of what they raised."""
        found = [(place, self._producers[place]) for place in sorted(places)]
        if len(found) == 1:
            failures = [(found[0], _error_of(work, found[0][1]))]
        else:
            asked = [(each, self._pool.submit(_error_of, work, each[1])) for each in found]
            failures = [(each, future.result()) for each, future in asked]
        errors = [self._explained(*each, error) for each, error in failures if error is not None]
        if errors:
            raise min(errors, key=_gravity)

    def _explained(self, place: TopicPartition, producer: TaskProducer, error: Exception) -> Exception:
        """What ``error`` means for the attempt: a producer that is fenced has not lost the task."""
        if not isinstance(error, Fenced) or isinstance(error, MemberFenced):
            return error
        if producer.overdue and producer.expired():
            limit = f"transaction.timeout.ms of {self.timeout_ms / 1000:g} s"
            return Expired(f"the transaction of {place} was open for longer than {limit}")
        if self._is_replaced():
            return error
        return UnknownOutcome(f"another producer has taken the transactional id {producer.id}: {error}")


def _error_of(work: Work, producer: TaskProducer) -> Exception | None:
    try:
        work(producer)
    except Exception as e:  # noqa: BLE001  # raised again by whoever waits for all of them
        return e
    return None


def _gravity(error: Exception) -> int:
    """What ends the attempt comes before what only a person mends, and that before a doubt."""
    return 0 if isinstance(error, Fenced) else 2 if isinstance(error, UnknownOutcome) else 1
