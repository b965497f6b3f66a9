"""Who ends transactions that a broker forgot: 4.3.1 drops the markers of partitions without a
leader (KAFKA-20734).

That a transaction hangs, and what its coordinator had decided, is seen as
``connectctl transactions hanging`` sees it, and that is what is written: an abort of what was to be
committed would lose or repeat records.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from connectctl.ops.clients.kafka_protocol.transaction_log import TransactionLog
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.operations.transactions.hanging import Hanging, search
from connectctl.ops.operations.transactions.outcome import TransactionResult

if TYPE_CHECKING:
    from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
    from connectctl.ops.clients.librdkafka.client import Kafka

EVERY = 2.0
"""Seconds between two looks."""


class Operator:
    """Looks at ``topics`` now and then; ``ended`` counts the partitions in which it ended a
    transaction, and how.
    """

    def __init__(self, kafka: Kafka, calls: TransactionClient, topics: Sequence[str]):
        self.ended: Counter[str] = Counter()
        self._log, self._calls, self._topics = (
            TransactionLog(kafka.client, timeout=kafka.timeout),
            calls,
            topics,
        )
        self._due = 0.0

    @property
    def words(self) -> str:
        """What it had to do."""
        what = ", ".join(f"{n} {how}" for how, n in self.ended.items()) or "none"
        return (
            f"partitions in which the broker had lost a marker (KAFKA-20734), ended by hand: {what}"
        )

    def look(self) -> None:
        """End what hangs; nothing while no broker answers."""
        if time.monotonic() < self._due:
            return
        try:
            for hanging in search(self._calls, self._topics, {}, self._log).found:
                self._end(hanging)
        except ConnectctlError:
            pass  # the broker is on its way
        self._due = time.monotonic() + EVERY

    def _end(self, hanging: Hanging) -> None:
        decided = hanging.decision.outcome
        if decided is None:
            return
        if (
            self._calls.mark(
                hanging.topic_partition,
                hanging.producer,
                commit=decided is TransactionResult.COMMIT,
            )
            is Code.NONE
        ):
            self.ended["committed" if decided is TransactionResult.COMMIT else "aborted"] += 1
