"""``RegexRouter`` and ``TimestampRouter``: records for another topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from connectctl.ops.task_runtime.spi.schema import DataError
from connectctl.ops.task_runtime.transforms.date_format import DateFormat
from connectctl.ops.task_runtime.transforms.patterns import java_pattern, java_replacement
from connectctl.ops.task_runtime.transforms.properties import Properties


def regex_router(properties: Properties) -> Callable[[Any], Any]:
    pattern = java_pattern(properties, "regex")
    replacement = java_replacement(properties, "replacement", pattern)

    def apply(record: Any) -> Any:
        # As in Java, the whole name must match; the replacement is for what is found first.
        if pattern.fullmatch(record.topic):
            record.topic = pattern.sub(replacement, record.topic, count=1)
        return record

    return apply


def timestamp_router(properties: Properties) -> Callable[[Any], Any]:
    topic_format = str(properties.text("topic.format", "${topic}-${timestamp}"))
    pattern = DateFormat(str(properties.text("timestamp.format", "yyyyMMdd")))

    def apply(record: Any) -> Any:
        if record.timestamp is None:
            raise DataError(f"Timestamp missing on record of {record.topic}")
        with_topic = topic_format.replace("${topic}", record.topic)
        record.topic = with_topic.replace("${timestamp}", pattern.format(record.timestamp))
        return record

    return apply
