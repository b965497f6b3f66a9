"""Finds transactions of a task's older producers that are still open after the task's producer was
initialised.

InitProducerId answers when the older transaction has ended everywhere. A broker can lose the marker
of a partition (4.3.1 drops the markers of partitions without a leader, KAFKA-20734). Then the
transaction stays open there, and its coordinator no longer knows of it. The next transaction of the
same producer id in that partition would also decide the older records: it would commit aborted
ones, or abort committed ones. So a task writes nothing to the partition before the older
transaction has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.clients.kafka_protocol.pending_offsets import in_words, transactions_holding
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import PartitionProducer
from connectctl.ops.operations.transactions.hanging import open_transactions
from connectctl.ops.task_runtime.attempt.coalesced_read import coalesced

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka

TIMEOUT = 30.0
_UNOBSERVABLE = {
    Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Code.TRANSACTIONAL_ID_NOT_FOUND,
    Code.CLUSTER_AUTHORIZATION_FAILED,
    Code.TOPIC_AUTHORIZATION_FAILED,
    Code.UNSUPPORTED_VERSION,
}
"""Errors that prevent observation permanently. Any other error is temporary."""
ABORTED = ("PrepareAbort", "CompleteAbort")
_lock = threading.Lock()
_shared: dict[str, _Calls] = {}
"""Connections to coordinators and leaders, shared while a task of this process uses them: opening
is expensive.
"""


@dataclass
class _Calls:
    calls: TransactionClient
    users: int = 0


def open_older_transaction(
    kafka: Kafka,
    id_: str,
    topics: Sequence[str],
    topic_partitions: Sequence[TopicPartition] | None = None,
) -> str | None:
    """Return where in ``topics``, or in ``topic_partitions`` of these, an older transaction of the
    producer of ``id_`` is open; None if nowhere. The producer must not have begun a transaction
    there yet.

    Returns None, too, if this principal may not describe producers. If a broker does not answer,
    the result is a reason to ask again. Raises ``Unreachable`` and the errors of reading offsets.
    """
    # Of every partition, and while others of them write: a hundred tasks would ask all the same.
    known = coalesced(
        ("open", kafka, *topics, *(topic_partitions or ())),
        lambda: _open_in(kafka, topics, topic_partitions),
    )
    if not known:
        return None
    with _calls(kafka) as calls:
        described = calls.describe([id_])[id_]
        if isinstance(described, Code):
            return (
                None if described in _UNOBSERVABLE else _unknown(id_, "its coordinator", described)
            )
        found = [
            (partition, p)
            for (partition, number), p in open_transactions(known).items()
            if number == described.producer_id
        ]
    if not found:
        silent = [
            (p, code)
            for p, code in known.items()
            if isinstance(code, Code) and code not in _UNOBSERVABLE
        ]
        return _unknown(id_, f"the leader of {silent[0][0]}", silent[0][1]) if silent else None
    where = ", ".join(
        f"{partition} from offset {producer.start_offset}" for partition, producer in sorted(found)
    )
    return (
        f"hanging transaction: an older transaction of {id_} is open on {where}, unknown to its "
        "coordinator (KAFKA-20734): see connectctl transactions hanging"
    )


def _open_in(
    kafka: Kafka, topics: Sequence[str], topic_partitions: Sequence[TopicPartition] | None
) -> dict[TopicPartition, tuple[PartitionProducer, ...] | Code]:
    """Return the producers of the partitions in which a transaction is open, or why they are not
    known.
    """
    if (
        topic_partitions is not None
    ):  # librdkafka would wait for the ends of others, which have no leader
        with _calls(kafka) as calls:
            return dict(calls.producers(topic_partitions))
    # Usually no transaction is open, which two requests on an open connection show.
    extents = kafka.extents(topics)
    suspects = [
        TopicPartition(t, p) for t, by in extents.items() for p, e in by.items() if e.stable < e.end
    ]
    if not suspects:
        return {}
    with _calls(kafka) as calls:
        return dict(calls.producers(suspects))


def expired(kafka: Kafka, id_: str) -> bool | None:
    """Return whether the last transaction of ``id_`` was aborted, and no producer of the id was
    initialised since. A newer producer would leave the id without a transaction, or with its own.
    Return None if the coordinator does not report it.
    """
    try:
        with _calls(kafka) as calls:
            found = calls.describe([id_])[id_]
    except ConnectctlError:
        return None
    return None if isinstance(found, Code) else found.state in ABORTED


def holders_of_offsets(kafka: Kafka, group: str, candidates: Sequence[str]) -> str:
    """Return the transactions that may hold offsets of ``group``, in words for people."""
    with _calls(kafka) as calls:
        return in_words(transactions_holding(calls, group, candidates))


def _unknown(id_: str, who: str, code: Code) -> str:
    return (
        f"could not determine whether an older transaction of {id_} is open: {who} responds "
        f"{code.name}"
    )


@contextmanager
def _calls(kafka: Kafka) -> Iterator[TransactionClient]:
    name = repr(sorted(kafka.client.items(), key=str))
    with _lock:
        shared = _shared.get(name) or _shared.setdefault(
            name, _Calls(TransactionClient(kafka.client, timeout=TIMEOUT))
        )
        shared.users += 1
    try:
        yield shared.calls
    finally:
        with _lock:
            shared.users -= 1
            if not shared.users:
                _shared.pop(name).calls.close()
