"""Input of a transactional writer: records of one topic, which are written to each partition in
this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from connectctl.ops.clients.kafka_protocol.refusals import Named
from connectctl.ops.kafka.batch_rewrite import TargetTopic
from connectctl.ops.kafka.copied_records import CopiedRecords
from connectctl.ops.kafka.record_batch_encoder import RecordColumns
from connectctl.ops.kafka.record_columns import Rows

Delivered = Callable[[int, Iterable[int], int, int, int], None]
"""Receives a partition, the rows of one batch there in their order, and the arguments of
``Answered``.
"""


@dataclass(frozen=True)
class Block:
    """Rows or columns. ``named`` names a record by its number in them; ``delivered`` is called for
    each batch that is answered.
    """

    topic: str
    records: Rows | RecordColumns
    named: Named | None = None
    delivered: Delivered | None = None


@dataclass(frozen=True)
class CopiedBlock:
    """Batches of the same partitions of another topic. ``target`` has the limits of ``topic``.
    ``named`` names a record by its partition and its offset there; ``count`` receives whether
    batches were sent unopened, and their number.
    """

    topic: str
    batches: Sequence[CopiedRecords]
    target: TargetTopic
    named: Callable[[int, int], str]
    count: Callable[[bool, int], None]
