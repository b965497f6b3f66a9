"""What a sink of ``connectctl run`` implements and is given, by the names of
``org.apache.kafka.connect.sink``.

A ``SinkConnector`` splits its configuration into tasks, which share the partitions of its topics as
one consumer group; a ``SinkTask`` is given ``SinkRecord``s. How to: docs/how-to/sinks.md.
"""

from __future__ import annotations

from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupOffsets
from connectctl.ops.task_runtime.spi.connector import (
    ConnectorContext,
    Outlook,
    RetriableError,
    Setting,
)
from connectctl.ops.task_runtime.spi.schema import Schema
from connectctl.ops.task_runtime.spi.sink import (
    ErrantRecordReporter,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SinkTaskContext,
    TimestampType,
)
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord

__all__ = [
    "ConnectorContext",
    "ErrantRecordReporter",
    "GroupOffset",
    "GroupOffsets",
    "Outlook",
    "ProducerRecord",
    "RetriableError",
    "Schema",
    "Setting",
    "SinkConnector",
    "SinkRecord",
    "SinkTask",
    "SinkTaskContext",
    "TimestampType",
    "TopicPartition",
]
