"""The predicates of Kafka: whether a transformation is applied to a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from connectctl.ops.task_runtime.transforms.patterns import java_pattern
from connectctl.ops.task_runtime.transforms.properties import Properties

Test = Callable[[Any], bool]


def topic_name_matches(properties: Properties) -> Test:
    pattern = java_pattern(properties, "pattern")
    return lambda record: pattern.fullmatch(record.topic) is not None


def has_header_key(properties: Properties) -> Test:
    name = properties.required("name")
    return lambda record: any(each == name for each, _ in record.headers)


def record_is_tombstone(properties: Properties) -> Test:
    return lambda record: record.value is None


PREDICATES: Mapping[str, Callable[[Properties], Test]] = {
    f"org.apache.kafka.connect.transforms.predicates.{name}": make
    for name, make in (
        ("TopicNameMatches", topic_name_matches),
        ("HasHeaderKey", has_header_key),
        ("RecordIsTombstone", record_is_tombstone),
    )
}
