"""A sink connector that writes lines to a file, and the offsets that it is given."""

from __future__ import annotations

import json
from pathlib import Path

STRINGS = "org.apache.kafka.connect.storage.StringConverter"


def sink(topic: str, file: Path) -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "topics": topic,
        "file": str(file),
        "key.converter": STRINGS,
        "value.converter": STRINGS,
        "consumer.override.auto.offset.reset": "earliest",
    }


def entries(topic: str, offset: int) -> str:
    partition = {"kafka_topic": topic, "kafka_partition": 0}
    return json.dumps({"offsets": [{"partition": partition, "offset": {"kafka_offset": offset}}]})
