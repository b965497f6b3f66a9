"""Where a consumer group stands for certain: read with ``require_stable``, and waited for while a
transaction may change it.

The offsets that a transaction has put into a group are pending until it ends, and until then the
coordinator does not say what is committed (UNSTABLE_OFFSET_COMMIT, KIP-447). Whoever read on from
an older offset would give records a second time. librdkafka waits for it, too, and tells nobody.
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
"""Seconds of waiting after which it is worth to look for the transaction that is waited for."""
LOOK = 3.0
"""Seconds of waiting between looks at whether a newer generation of tasks has started."""
Waiting = Callable[..., None]
"""Hears what is waited for, in words, and whether that has no limit."""


@dataclass(eq=False)
class StableOffsets:
    """The committed offsets of ``group``; those of the transactional ids ``candidates`` may be
    pending in it.

    ``limit`` is how many seconds pending offsets are waited for; None: as long as it lasts.
    ``stale_because`` says why the task waits for nothing any more.
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
        """Read them. Raises ``ConnectctlError`` where a transaction stays open for longer than
        ``limit``, ``TimedOut`` where the task is stopped meanwhile, and ``UnknownOutcome`` where it
        is stale.
        """
        if not partitions:
            return {}
        coordinator = self._coordinator()
        began, pause, owners, look = time.monotonic(), FIRST_PAUSE, "", LOOK
        left, known = frozenset(partitions), dict[TopicPartition, GroupOffset]()
        while True:
            found, left = coordinator.stable_offsets(left)
            known |= found
            if not left:
                return known
            waited = time.monotonic() - began
            if not owners and waited > TELL_AFTER:
                owners = holders_of_offsets(self.kafka, self.group, self.candidates)
            text = (
                f"offsets of {self.group} on {_some(left)} are pending (KIP-447), and wait for "
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
            if waited > look:
                look = waited + LOOK
                if why := self.stale_because():
                    raise UnknownOutcome(why)
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
