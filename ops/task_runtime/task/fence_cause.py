"""Why a producer is fenced: a newer one has its transactional id, or its transaction timed out at
the coordinator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.task_runtime.task.transactional_producer import Expired, Fenced

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer

LONGER = (
    "Increase producer.override.transaction.timeout.ms (at most transaction.max.timeout.ms "
    "of the brokers)"
)


def explained(producer: TaskProducer, fenced: Fenced, remedies: str) -> Fenced | Expired:
    """Return the cause of ``fenced``, with ``remedies`` if it may be a transaction timeout; the
    coordinator may not say.
    """
    if not producer.overdue:
        return fenced
    slow = (
        "its transaction was open for longer than transaction.timeout.ms of "
        f"{producer.timeout_ms / 1000:g} s"
    )
    expired = producer.expired()
    if expired:
        return Expired(slow)
    return fenced if expired is not None else Fenced(f"{fenced}; {slow}. {remedies}")
