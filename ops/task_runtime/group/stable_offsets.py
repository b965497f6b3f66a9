"""Reads the stable offsets of a consumer group with ``require_stable``, and waits for pending
offsets.

The offsets that a transaction adds to a group are pending until it ends. Until then the coordinator
returns UNSTABLE_OFFSET_COMMIT instead of the committed offsets (KIP-447). A consumer that continued
from an older offset would read records twice. librdkafka waits as well, but does not report it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.group_coordinator import Coordinator
from connectctl.ops.clients.kafka_protocol.pending_offsets import in_words
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupOffsets
from connectctl.ops.task_runtime.task.stale_transactions import holders_of_offsets
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
TELL_AFTER = 1.0
"""Seconds of waiting before the transactions with the pending offsets are looked up first."""
LOOK = 3.0
"""Seconds between two checks for a newer generation of tasks during the wait."""
LOOKED_UP_AFTER = 2
"""The transactions are looked up again after this multiple of the wait so far: they may be others
by then, and every coordinator lists its transactions for it.
"""
Waiting = Callable[..., None]
"""A function that receives the reason of a wait as text, and whether the wait has no limit."""


@dataclass(eq=False)
class StableOffsets:
    """A reader of the committed offsets of ``group``. Transactions of the transactional ids
    ``candidates`` may have pending offsets in it.

    ``limit`` is the seconds to wait for pending offsets; None waits until their transaction ends.
    ``stale_because`` returns the reason if the task is stale, and the wait fails.
    """

    kafka: Kafka
    group: str
    candidates: Sequence[str] = ()
    waiting: Waiting = lambda text, endless=False: None
    stopped: Callable[[], bool] = lambda: False
    sleep: Callable[[float], None] = time.sleep
    limit: float | None = None
    stale_because: Callable[[], str | None] = lambda: None
    _wire: KafkaProtocolClient | None = None

    def __call__(self, partitions: Collection[TopicPartition]) -> GroupOffsets:
        """Return the offsets of ``partitions`` once they are stable. Raises ``ConnectctlError`` if
        offsets are still pending after ``limit``, ``TimedOut`` if the task is stopped during the
        wait, and ``UnknownOutcome`` if the task is stale.
        """
        if not partitions:
            return {}
        coordinator = self._coordinator()
        began, pause, owners = time.monotonic(), FIRST_PAUSE, ""
        next_check, next_look = LOOK, TELL_AFTER
        remaining, known = frozenset(partitions), dict[TopicPartition, GroupOffset]()
        while True:
            found, remaining = coordinator.stable_offsets(remaining)
            known |= found
            if not remaining:
                return known
            waited = time.monotonic() - began
            if waited > next_check:
                next_check = waited + LOOK
                if why := self.stale_because():
                    raise UnknownOutcome(why)
            if waited > next_look:
                next_look = LOOKED_UP_AFTER * waited
                owners = holders_of_offsets(self.kafka, self.group, self.candidates)
            text = (
                f"offsets of {self.group} on {_some(remaining)} are pending (KIP-447), and wait for "
                f"{owners or in_words([])}"
            )
            self.waiting(text, self.limit is None)
            if self.stopped():
                raise TimedOut(f"The task is stopped while {text}")
            if self.limit is not None and waited > self.limit:
                raise ConnectctlError(
                    f"The committed offsets of {self.group} are not stable after {waited:.1f} s "
                    "(patience)",
                    why=text,
                    next_step="See connectctl transactions list --open; to end it: connectctl "
                    "transactions abort ID.",
                    code="pending-offsets",
                )
            self.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _coordinator(self) -> Coordinator:
        if self._wire is None:
            self._wire = KafkaProtocolClient(self.kafka.client, timeout=self.kafka.timeout)
        return Coordinator(self._wire, self.group, self.kafka.timeout)

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None


def _some(partitions: Collection[TopicPartition]) -> str:
    first = min(partitions)
    return (
        f"{first} and {len(partitions) - 1} more partitions" if len(partitions) > 1 else str(first)
    )
