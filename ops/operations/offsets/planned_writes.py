"""The records that a plan would write, as scripts get them: values, or of many their JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from json.encoder import encode_basestring as _quoted
from typing import TYPE_CHECKING, Any

from connectctl.ops.operations.offsets.effective_offsets import TOGETHER

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.record_changes import RecordChange


def write_as_json(write: RecordChange) -> dict[str, Any]:
    """A record to write, as scripts get it."""
    return {
        "topic": write.topic,
        "kafkaPartition": write.partition,
        "key": write.key.decode(errors="backslashreplace"),
        "before": text_of(write.before),
        "after": text_of(write.value),
    }


def write_texts(writes: Iterable[RecordChange]) -> Iterator[list[str]]:
    """What ``json`` writes of ``write_as_json`` of each, some thousands at a time."""
    writes, topics = iter(writes), dict[str, str]()
    while some := list(islice(writes, TOGETHER)):
        topics |= {topic: _quoted(topic) for topic in {write.topic for write in some} - topics.keys()}
        yield [
            f'{{"topic": {topics[topic]}, "kafkaPartition": {partition}, "key": {_json(key)}, '
            f'"before": {_json(before)}, "after": {_json(value)}}}'
            for topic, partition, key, value, before, _ in some
        ]


def _json(value: bytes | None) -> str:
    return "null" if value is None else _quoted(value.decode(errors="backslashreplace"))


def text_of(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="backslashreplace")
