"""Configurations in the shapes that connectors' documentation shows make the same records here and on
a worker: Avro with schemas in a registry, and transformations, on lines of a file.

The worker's converter is Apicurio's with Confluent's frame: of Protobuf and JSON Schema there is none
(``test_schema_registry.py`` has their peers).
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from connectctl.ops.clients.registry.client import Registry
from connectctl.ops.sandbox import registry
from connectctl.ops.sandbox.cluster import Sandbox
from connectctl.ops.task_runtime.connectors.filestream import FileStreamSource
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.ops.task_runtime.transforms.chain import PACKAGE
from connectctl.testing import run_source
from live.real import connector, create_topic, eventually

LINES = ("17;Köln", "", "18;Lagos")
TEXT = "org.apache.kafka.connect.storage.StringConverter"
Stage = tuple[str, dict[str, str]]


def value(kind: str, **properties: str) -> Stage:
    return f"{kind}$Value", {name.replace("_", "."): each for name, each in properties.items()}


def static(field: str, given: str) -> Stage:
    return value("InsertField", static_field=field, static_value=given)


LINE, ROW = value("HoistField", field="line"), value("HoistField", field="row")
KEY = ("ValueToKey", {"fields": "line"})
AT = static("at", "2024-02-29 12:30:00")
FORMAT = "yyyy-MM-dd HH:mm:ss"


def timed(kind: str, **more: str) -> Stage:
    return value("TimestampConverter", field="at", target_type=kind, format=FORMAT, **more)


SHAPES: dict[str, list[Stage]] = {
    "lines as they are": [],
    "a field for a table's column": [LINE],
    "the key of an upsert": [LINE, KEY, ("ExtractField$Key", {"field": "line"})],
    "the key of an upsert as a record": [LINE, KEY],
    "where records come from": [LINE, static("source", "shop-eu"), static("env", "test")],
    "the topic in the record": [LINE, value("InsertField", topic_field="origin")],
    "personal data masked": [LINE, static("iban", "DE00"), value("MaskField", fields="iban")],
    "personal data replaced": [LINE, value("MaskField", fields="line", replacement="***")],
    "a column renamed": [LINE, value("ReplaceField", renames="line:text")],
    "columns left out": [LINE, static("a", "1"), value("ReplaceField", exclude="a")],
    "columns chosen": [LINE, static("a", "1"), value("ReplaceField", include="a")],
    "an envelope opened": [LINE, value("HoistField", field="after"), value("ExtractField", field="after")],
    "nested columns with underscores": [LINE, ROW, value("Flatten", delimiter="_")],
    "a schema with a name": [LINE, value("SetSchemaMetadata", schema_name="shop.Line")],
    "a schema with a version": [
        LINE, value("SetSchemaMetadata", schema_name="shop.Row", schema_version="2"),
    ],
    "a topic without its prefix": [
        LINE, ("RegexRouter", {"regex": "(.*)-of-(.*)", "replacement": "$2-$1"}),
    ],
    "text cast to numbers": [
        LINE, static("n", "7"), static("yes", "true"), value("Cast", spec="n:int32,yes:boolean"),
    ],
    "prices as doubles": [LINE, static("price", "9.5"), value("Cast", spec="price:float64")],
    "text as a timestamp": [LINE, AT, timed("Timestamp")],
    "text as a date": [LINE, AT, timed("Date")],
    "text as seconds": [LINE, AT, timed("unix", unix_precision="seconds")],
}  # fmt: skip


def transforms(stages: list[Stage]) -> dict[str, str]:
    found = {"transforms": ",".join(f"t{n}" for n in range(len(stages)))} if stages else {}
    for n, (kind, properties) in enumerate(stages):
        found[f"transforms.t{n}.type"] = f"{PACKAGE}{kind}"
        found |= {f"transforms.t{n}.{name}": each for name, each in properties.items()}
    return found


def read(sandbox: Sandbox, topic: str, number: int) -> list[tuple[bytes | None, bytes | None]]:
    """The first records of a topic."""
    found: list[Any] = []
    client = {"bootstrap.servers": sandbox.bootstrap_servers, "group.id": "of-the-test"}
    with closing(Consumer(client)) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])

        def all_there() -> bool:
            found.extend(each for each in consumer.consume(number, 1.0) if not each.error())
            return len(found) >= number

        eventually(all_there)
    return [(each.key(), each.value()) for each in found]


def records_of(sandbox: Sandbox, url: str, directory: Path, shape: str) -> tuple[Any, Any]:
    """What the records of a worker, and those made here, mean."""
    topic = f"line-of-{list(SHAPES).index(shape)}"
    (directory / "in.txt").write_text("".join(f"{line}\n" for line in LINES))
    base = {"topic": topic, "file": f"{directory}/in.txt"} | transforms(SHAPES[shape])
    keys = shape == "the key of an upsert as a record"
    parts = ["value", "key"] if keys else ["value"]
    ours = base | {f"{part}.converter": "AvroConverter" for part in parts}
    ours |= {f"{part}.converter.schema.registry.url": url for part in parts}
    made = run_source(FileStreamSource, ours).records
    theirs = base | {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector"}
    theirs |= {"tasks.max": "1", "key.converter": TEXT}
    for part in parts:
        own = {
            "": registry.CONVERTER,
            ".apicurio.registry.url": url.replace("ccompat/v7", "registry/v2"),
            ".apicurio.registry.as-confluent": "true",
            ".apicurio.registry.use-id": "contentId",
            ".apicurio.registry.auto-register": "true",
            ".apicurio.registry.headers.enabled": "false",
        }
        theirs |= {f"{part}.converter{name}": each for name, each in own.items()}
    routed = made[0].topic
    create_topic(sandbox.bootstrap_servers, routed, 1, "delete")
    with connector(sandbox, f"of-{topic}", theirs):
        found = read(sandbox, routed, len(LINES))
    client = Registry({"schema.registry.url": url})
    reads = reading_converters(ours)

    def meaning(part: str, data: bytes | None) -> Any:
        """The bytes without the id of the schema, the schema itself, and what both are read as."""
        if data is None or data[:1] != b"\x00":
            return data
        schema = json.loads(client.schema(int.from_bytes(data[1:5], "big")).text)
        return data[5:], schema, getattr(reads, part).read(routed, data)

    return (
        [(meaning("key", key), meaning("value", each)) for key, each in found],
        [(meaning("key", each.key), meaning("value", each.value)) for each in made],
    )
