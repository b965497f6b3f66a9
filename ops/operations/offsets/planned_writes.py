"""The records that a plan would write, as scripts get them: values, or of many their JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from json.encoder import encode_basestring as _quoted
from typing import Any

from connectctl.ops.kafka.spill import chunks_of
from connectctl.ops.operations.offsets.effective_offsets import TOGETHER
from connectctl.ops.operations.offsets.record_changes import RecordChange, text_of


def write_as_json(write: RecordChange) -> dict[str, Any]:
    return {
        "topic": write.topic,
        "kafkaPartition": write.partition,
        "key": text_of(write.key),
        "before": text_of(write.before),
        "after": text_of(write.value),
    }


def write_texts(writes: Collection[RecordChange]) -> Iterator[list[str]]:
    """What ``json`` writes of ``write_as_json`` of each, some thousands at a time."""
    topics = dict[str, str]()
    parts = (chunk[at : at + TOGETHER] for chunk in chunks_of(writes) for at in range(0, len(chunk), TOGETHER))
    for some in parts:
        names, partitions, keys, values, before, _ = zip(*some, strict=True)
        topics |= {topic: _quoted(topic) for topic in {*names} - topics.keys()}
        columns = names, partitions, _json(keys), _json(before), _json(values)
        yield [
            f'{{"topic": {topics[topic]}, "kafkaPartition": {partition}, "key": {key}, "before": {was}, "after": {value}}}'
            for topic, partition, key, was, value in zip(*columns, strict=True)
        ]


def _json(column: Sequence[bytes | None]) -> list[str]:
    """Each as JSON: all at once where none has what would be taken for the ends of others."""
    given = [value for value in column if value is not None]
    text = b"\n".join(given)
    if text.count(b"\n") == len(given) - 1 and b"\\" not in text:
        texts = iter(_quoted(text.decode(errors="backslashreplace"))[1:-1].split("\\n"))
        return ["null" if value is None else f'"{next(texts)}"' for value in column]
    return ["null" if value is None else _quoted(value.decode(errors="backslashreplace")) for value in column]
