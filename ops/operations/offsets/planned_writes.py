"""The JSON of the records that a plan would write."""

from __future__ import annotations

from typing import Any

from connectctl.ops.operations.offsets.record_changes import RecordChange, text_of


def write_as_json(write: RecordChange) -> dict[str, Any]:
    return {
        "topic": write.topic,
        "kafkaPartition": write.partition,
        "key": text_of(write.key),
        "before": text_of(write.before),
        "after": text_of(write.value),
    }
