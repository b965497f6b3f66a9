"""What a source connector of ``connectctl run`` implements and is given, with the names of Kafka
Connect's own API.

A ``SourceConnector`` names its ``settings`` and splits its configuration into tasks; a
``SourceTask`` polls ``SourceRecord``s, each with its place in the source. How to:
docs/how-to/own-connector.md.
"""

from __future__ import annotations

from connectctl.ops.task_runtime.spi.connector import (
    Batch,
    ConnectorContext,
    ExactlyOnceSupport,
    Offset,
    OffsetReader,
    Outlook,
    Partition,
    RetriableError,
    Setting,
    SourceConnector,
    SourceRecord,
    SourceRecords,
    SourceTask,
    TaskContext,
    TransactionBoundaries,
    TransactionContext,
)

__all__ = [
    "Batch",
    "ConnectorContext",
    "ExactlyOnceSupport",
    "Offset",
    "OffsetReader",
    "Outlook",
    "Partition",
    "RetriableError",
    "Setting",
    "SourceConnector",
    "SourceRecord",
    "SourceRecords",
    "SourceTask",
    "TaskContext",
    "TransactionBoundaries",
    "TransactionContext",
]
