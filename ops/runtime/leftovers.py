"""What an older transaction of a task has left open, although the task's producer was initialised since.

InitProducerId answers when the older transaction has ended everywhere. A broker that lost the marker of a partition
(4.3.1 drops those of partitions that have no leader at the moment, KAFKA-20734) leaves it open there, and its coordinator
knows nothing of it any more. The next transaction of the same producer id in that partition would decide of its records
along with its own: aborted ones would be committed, committed ones aborted. So nothing is written there before it ended.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from connectctl.ops.model.transactions import Place
from connectctl.ops.model.verdicts import Code
from connectctl.ops.transactions.hanging import opened

if TYPE_CHECKING:
    from connectctl.ops.edges.kafka import Kafka
    from connectctl.ops.edges.transactions import Transactions

TIMEOUT = 30.0
_lock = threading.Lock()
_shared: dict[str, Transactions] = {}
"""Connections to coordinators and leaders, for all tasks of this process: they are seldom needed, and dear to open."""


def leftover(kafka: Kafka, id_: str, topics: Sequence[str]) -> str | None:
    """Where in ``topics`` a transaction of the producer of ``id_`` is open, which has begun none yet; None where nowhere.

    None, too, where this principal may not see producers. Raises ``Unreachable`` and what asking for offsets raises.
    """
    # Mostly nothing is open at all, which two requests of an open connection tell.
    extents = kafka.extents(topics)
    suspects = [Place(t, p) for t, by in extents.items() for p, e in by.items() if e.stable < e.end]
    if not suspects:
        return None
    with _lock:
        calls = _calls(kafka)
        ours = calls.describe([id_])[id_]
        if isinstance(ours, Code):
            return None
        found = [
            (place, producer)
            for (place, number), producer in opened(calls.producers(suspects)).items()
            if number == ours.producer_id
        ]
    if not found:
        return None
    where = ", ".join(f"{place} from offset {producer.start_offset}" for place, producer in sorted(found))
    return (
        f"an older transaction of {id_} was left open by its broker on {where}, and nobody will end it (KAFKA-20734): "
        "see connectctl transactions hanging"
    )


def _calls(kafka: Kafka) -> Transactions:
    from connectctl.ops.edges.transactions import Transactions

    name = repr(sorted(kafka.client.items(), key=str))
    if name not in _shared:
        _shared[name] = Transactions(kafka.client, timeout=TIMEOUT)
    return _shared[name]
