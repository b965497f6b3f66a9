"""The topics that a transactional id wrote to.

Its coordinator knows its producer id, and the leader of each partition remembers the producers that
wrote there lately.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.transactions import Transaction

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.connection import Connection
    from connectctl.ops.kafka.topic_partition import TopicPartition


def written_by(
    kafka: Connection, ids: Sequence[str], places: Sequence[TopicPartition]
) -> frozenset[str]:
    """Return the topics of ``places`` whose leaders remember the producer of one of ``ids``.

    What may not be seen is left out: it proves nothing.
    """
    with closing(TransactionClient(kafka.client, timeout=kafka.timeout)) as calls:
        described = calls.describe(ids).values()
        producers = {found.producer_id for found in described if isinstance(found, Transaction)}
        remembered = calls.producers(places) if producers else {}
    return frozenset(
        place.topic
        for place, found in remembered.items()
        if not isinstance(found, Code) and any(each.producer_id in producers for each in found)
    )
