"""Who ends transactions that a broker forgot: 4.3.1 drops the markers of partitions without a leader (KAFKA-20734).

That a transaction hangs is seen as ``connectctl transactions hanging`` sees it. What its coordinator had decided is in
``__transaction_state``, and that is what is written: an abort of what was to be committed would lose or repeat records.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from connectctl.ops.errors import ConnectctlError
from connectctl.ops.model.verdicts import Code
from connectctl.ops.transactions.hanging import Hanging, search
from live.oracle import in_order

if TYPE_CHECKING:
    from connectctl.ops.edges.kafka import Kafka
    from connectctl.ops.edges.transactions import Transactions

STATE = "__transaction_state"
ONGOING, PREPARE_COMMIT, PREPARE_ABORT = 1, 2, 3
EVERY = 2.0
"""Seconds between two looks."""


class Operator:
    """Looks at ``topics`` now and then; ``ended`` counts the partitions in which it ended a transaction, and how."""

    def __init__(self, kafka: Kafka, calls: Transactions, topics: Sequence[str]):
        self.ended: Counter[str] = Counter()
        self._kafka, self._calls, self._topics = kafka, calls, topics
        self._due = 0.0

    @property
    def words(self) -> str:
        """What it had to do."""
        what = ", ".join(f"{n} {how}" for how, n in self.ended.items()) or "none"
        return f"partitions in which the broker had lost a marker (KAFKA-20734), ended by hand: {what}"

    def look(self) -> None:
        """End what hangs; nothing while no broker answers."""
        if time.monotonic() < self._due:
            return
        try:
            for hanging in search(self._calls, self._topics, {}).found:
                self._end(hanging)
        except ConnectctlError:
            pass  # the broker is on its way
        self._due = time.monotonic() + EVERY

    def _end(self, hanging: Hanging) -> None:
        who = hanging.producer.producer_id, hanging.producer.epoch
        decided = decisions(self._kafka).get(who)
        if decided is None:
            return  # it is still open, and its coordinator not yet back, which looks the same
        if write_marker(self._calls, hanging, commit=decided == PREPARE_COMMIT) is Code.NONE:
            self.ended["committed" if decided == PREPARE_COMMIT else "aborted"] += 1


def decisions(kafka: Kafka) -> dict[tuple[int, int], int]:
    """How coordinators decided the last transaction of each producer id and epoch, as their log has it."""
    found: dict[tuple[int, int], int] = {}
    begun: dict[bytes, tuple[int, int]] = {}
    for record in in_order(kafka.image([STATE], patience=30, superseded=True)[STATE]):
        if record.value is None:
            continue
        producer_id, epoch, status = struct.unpack_from(">qh4xb", record.value, 2)
        if status == ONGOING:
            begun[record.key or b""] = producer_id, epoch
            found.pop((producer_id, epoch), None)  # an epoch may have many transactions
        elif status in (PREPARE_COMMIT, PREPARE_ABORT):
            # The epoch of an abort that fences is one above that of the records.
            found[begun.get(record.key or b"", (producer_id, epoch))] = status
    return found


def write_marker(calls: Transactions, hanging: Hanging, *, commit: bool) -> Code:
    """One marker in the partition of a transaction that hangs."""
    from kafka.protocol.producer.transaction import WriteTxnMarkersRequest

    marker, place, producer = WriteTxnMarkersRequest.WritableTxnMarker, hanging.place, hanging.producer
    request = WriteTxnMarkersRequest(
        markers=[
            marker(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                transaction_result=commit,
                coordinator_epoch=max(0, producer.coordinator_epoch),
                topics=[marker.WritableTxnMarkerTopic(name=place.topic, partition_indexes=[place.partition])],
            )
        ],
        max_version=1,
    )

    def read(answer: Any) -> Iterator[tuple[Any, Code]]:
        yield place, Code(answer.markers[0].topics[0].partitions[0].error_code)

    return calls._leaders._of_leaders("write a transaction marker", [place], lambda some: request, read)[place]
