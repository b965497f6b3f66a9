"""A task's partitions of the source topics as batches that stay unopened, where they can; else as ``source`` has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.kafka_protocol.client_properties import arguments
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.connectors.topic_copy.source import CopiedTopics, record_name
from connectctl.ops.task_runtime.spi.transaction_batch import CopiedBatches, TransactionBatch

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.connectors.topic_copy.batch_reader import RecordsOfTopic

WAY, AUTO, UNOPENED, OPENED = "copy.batches", "auto", "unopened", "opened"
WAYS = (AUTO, UNOPENED, OPENED)


class UnopenedTopics(CopiedTopics):
    """See ``CopiedTopics``. ``count`` hears of each batch that is sent, whether it is ``unopened``."""

    copies_batches = True

    def _transaction(self, batches: Sequence[RecordsOfTopic], **more: Any) -> TransactionBatch:
        copied = [
            CopiedBatches(
                self._policy.remote(each.topic),
                each.records,
                partial(record_name, self._policy.source, each.topic),
                self._meter.batch,
            )
            for each in batches
        ]
        return TransactionBatch(copied_batches=copied, **more)


def puts_together(configs: Mapping[str, str]) -> bool:
    """Whether small batches in a row become one: where ``copy.batches`` leaves it open."""
    return configs.get(WAY, AUTO).strip().lower() == AUTO


def stays_unopened(configs: Mapping[str, str], consumer: Mapping[str, Any], *, exactly_once: bool) -> bool:
    """Whether batches are copied unopened: where ``copy.batches`` leaves it open, as the clients allow it.

    ``consumer`` are librdkafka's properties for the source. Only a transactional producer writes whole batches.
    """
    way = configs.get(WAY, AUTO).strip().lower()
    if way != AUTO or not exactly_once:
        return way == UNOPENED
    try:
        given = arguments(consumer)
    except BadInput:
        return False
    # Kerberos needs a library that is not everywhere where librdkafka's is.
    return given.get("sasl_mechanism") != "GSSAPI"
