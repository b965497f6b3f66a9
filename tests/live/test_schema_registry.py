"""What a worker's converter writes is read here to equal values, and the other way round, on a real
Schema Registry.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from connectctl import Target, write_exactly_once
from connectctl import schema as of
from connectctl.ops.clients.java import find_java
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.registry.client import Registry
from connectctl.ops.clients.spark.session import open_session
from connectctl.ops.config import paths
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.sandbox import registry
from connectctl.ops.sandbox.cluster import Sandbox, SandboxSpec, down, up
from connectctl.ops.task_runtime.spi.converters import Convert, converters
from connectctl.ops.task_runtime.spi.reading_converters import Read, reading_converters
from connectctl.schema import Schema
from documentation import ROOT, blocks
from fakes.schemavalues import everything, typed_values
from hypothesis import HealthCheck, given, settings
from live.fieldshapes import SHAPES, records_of
from live.real import connectctl, connector, create_topic, eventually, write
from live.rundirectory import well
from sparkjvm import SHORT_LIVED

pytestmark = [
    pytest.mark.live,
    pytest.mark.drawn(9, matrix="schemas of a registry"),
    pytest.mark.versions(registry=registry.VERSION),
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
FILE = "org.apache.kafka.connect.file.FileStream"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
HOIST = "org.apache.kafka.connect.transforms.HoistField$Value"
INSERT = "org.apache.kafka.connect.transforms.InsertField$Value"
KINDS = ("AvroConverter", "JsonSchemaConverter", "ProtobufConverter")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = up(SandboxSpec(name="schemas", workers=1, support="enabled", registry=True))
    yield made
    down("schemas")


def url_of(sandbox: Sandbox) -> str:
    assert sandbox.registry_url is not None
    return sandbox.registry_url


def configs(sandbox: Sandbox, kind: str, **more: str) -> dict[str, str]:
    own = {"schema.registry.url": url_of(sandbox)} | {
        name.replace("_", "."): value for name, value in more.items()
    }
    return {"value.converter": kind} | {f"value.converter.{n}": v for n, v in own.items()}


def both(sandbox: Sandbox, kind: str, **more: str) -> tuple[Convert, Read]:
    made = configs(sandbox, kind, **more)
    return converters(made).of_value, reading_converters(made).value.read


def javas(sandbox: Sandbox) -> dict[str, str]:
    """The properties of Apicurio's converter with the wire format of Confluent's."""
    return {
        "apicurio.registry.url": url_of(sandbox).replace("ccompat/v7", "registry/v2"),
        "apicurio.registry.as-confluent": "true",
        "apicurio.registry.use-id": "contentId",
        "apicurio.registry.auto-register": "true",
        "apicurio.registry.headers.enabled": "false",
    }


class Peer:
    """A JVM that converts by the converter of workers."""

    def __init__(self, directory: Path, name: str, jars: str, *arguments: str):
        java = find_java().path
        root = paths.cache_directory() / "jars" / registry.NAME / registry.VERSION
        class_path = os.pathsep.join(map(str, (root / jars).resolve().rglob("*.jar")))
        source = Path(__file__).with_name(f"{name}.java")
        compiler = [
            java,
            *SHORT_LIVED.split(),
            "-m",
            "jdk.compiler/com.sun.tools.javac.Main",
            "-cp",
            class_path,
        ]
        subprocess.run([*compiler, "-d", str(directory), str(source)], check=True, timeout=600)
        self.process = subprocess.Popen(
            [
                java,
                *SHORT_LIVED.split(),
                "-cp",
                f"{directory}{os.pathsep}{class_path}",
                f"peer.{name}",
                *arguments,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, way: str, topic: str, data: bytes | None) -> bytes:
        assert data is not None
        return self.answers(way, topic, base64.b64encode(data).decode())[0]

    def answers(self, *words: str) -> list[bytes]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{' '.join(words)}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert not answer.startswith("error"), answer
        return [base64.b64decode(each) for each in answer.split(" ")]


@contextmanager
def peer_of(directory: Path, name: str, jars: str, *arguments: str) -> Iterator[Peer]:
    made = Peer(directory, name, jars, *arguments)
    with made.process:  # which ends with its input
        yield made


def of_converter(sandbox: Sandbox, directory: Path, converter: str, **more: str) -> Any:
    own = javas(sandbox) | {f"apicurio.registry.{n}": value for n, value in more.items()}
    properties = [f"{name}={value}" for name, value in own.items()]
    return peer_of(directory, "ConverterPeer", "plugins", converter, *properties)


@pytest.fixture(scope="module")
def peer(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with of_converter(sandbox, tmp_path_factory.mktemp("peer"), registry.CONVERTER) as made:
        yield made


@pytest.fixture(scope="module")
def json_peer(peer: Peer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    json_converter = "org.apache.kafka.connect.json.JsonConverter"
    directory = tmp_path_factory.mktemp("json")
    with peer_of(
        directory, "ConverterPeer", "plugins", json_converter, "schemas.enable=true"
    ) as made:
        yield made


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    opened = open_session("local[1]", {}, tmp_path_factory.mktemp("spark") / "spark.log")
    yield opened
    opened.stop()


def test_values_of_all_types_are_equal_on_both_sides(sandbox: Sandbox, peer: Peer) -> None:
    write_avro, read_avro = both(sandbox, "AvroConverter")
    write_json, read_json = both(sandbox, "JsonConverter")
    topics = (f"of-all-types-{n}" for n in range(10**6))

    def check(schema: Schema, value: Any) -> None:
        topic = next(topics)
        theirs = peer.ask("write", topic, write_json(topic, schema, value))
        assert read_avro(topic, theirs) == (schema, value)
        topic = next(topics)
        back = peer.ask("read", topic, write_avro(topic, schema, value))
        assert read_json(topic, back) == (schema, value)

    check(*everything())
    kept = dict(everything()[0], doc="why", version=3, parameters={"a": "b"})
    check(kept, everything()[1])

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(typed_values())
    def drawn(typed: tuple[Schema, Any]) -> None:
        check(*typed)

    drawn()


def test_json_is_what_its_schema_says_on_both_sides(sandbox: Sandbox, tmp_path: Path) -> None:
    """The peer is a worker's converter that validates by the schema of the registry; it has none of
    Connect's.
    """
    serde = "io.apicurio.registry.serde.jsonschema.JsonSchemaKafka"
    more = {
        "converter.serializer": f"{serde}Serializer",
        "converter.deserializer": f"{serde}Deserializer",
        "deserializer.value.return-class": "com.fasterxml.jackson.databind.JsonNode",
        "find-latest": "true",
    }
    converter = f"{registry.CONVERTER.rpartition('.')[0]}.SerdeBasedConverter"
    write_json, read_json = both(sandbox, "JsonSchemaConverter")
    with of_converter(sandbox, tmp_path, converter, **more) as validating:
        data = write_json("validated", *everything())
        assert data is not None
        plain = validating.ask("read", "validated", data)
        assert json.loads(plain) == json.loads(data[5:])
        theirs = validating.ask("write", "validated", plain)
        assert theirs[:5] == data[:5]
        assert read_json("validated", theirs) == read_json("validated", data)
        with pytest.raises(AssertionError, match=r"error.*note|error.*i8"):
            validating.ask("write", "validated", b'{"i8": "text"}')


def test_protobuf_is_what_javas_library_reads(sandbox: Sandbox, tmp_path: Path) -> None:
    """The peer is protobuf-java with the parser of schemas that the registry and Confluent use: no
    converter for workers with Confluent's frame is in a public repository.
    """
    schema, value = everything()
    fields = [f for f in schema["fields"] if f["field"] not in ("i8", "i16", "price", "inner")]
    fields = [f for f in fields if f["field"] != "lines"]
    value = {field["field"]: value[field["field"]] for field in fields}
    write_it, read_it = both(sandbox, "ProtobufConverter", optional_for_nullables="true")
    data = write_it("by-java", {**schema, "fields": fields}, value)
    assert data is not None
    client = Registry({"schema.registry.url": url_of(sandbox)})
    text = client.schema(int.from_bytes(data[1:5], "big")).text
    words = (base64.b64encode(each).decode() for each in (text.encode(), data[6:]))
    with peer_of(tmp_path, "ProtobufPeer", "app") as java:
        as_json, again = java.answers(*words)
    assert json.loads(as_json)["when"] == "2024-02-29T12:00:00.005Z"
    assert json.loads(as_json)["counts"] == [{"key": "a", "value": 1}]
    assert read_it("by-java", data[:6] + again) == read_it("by-java", data)
    assert read_it("by-java", data)[1] == value


COLUMNS = """
SELECT 'a' shop, id, if(id = 2, null, named_struct(
  'tiny', cast(id AS tinyint), 'small', cast(-id AS smallint), 'number', cast(id AS int), 'id', id,
  'single', cast(0.1 AS float), 'ratio', cast(id / 3 AS double), 'paid', id = 1,
  'note', if(id = 1, null, 'größe'), 'raw', x'00ff', 'price', cast(9.5 AS decimal(10, 2)),
  'day', date '2024-02-29', 'at', timestamp '2024-02-29 12:00:00.123456',
  'tags', array('x', {nothing}), 'counts', map('y', id), 'to', named_struct('city', 'Łódź'),
  'by', map(7, {nothing})
)) `order` FROM range(3)
"""


@pytest.mark.parametrize("kind", ["JsonConverter", *KINDS])
def test_a_frame_is_written_as_a_workers_converter_writes_its_columns(
    sandbox: Sandbox, peer: Peer, json_peer: Peer, session: Any, kind: str
) -> None:
    topic = create_topic(sandbox.bootstrap_servers, f"framed-{kind}", 1, "delete")
    own = configs(sandbox, kind)
    target = Target(
        {"bootstrap.servers": sandbox.bootstrap_servers},
        "framed",
        f"framed-{kind}",
        topic,
        "framed-offsets",
        "shop",
        "id",
        value="order",
        value_converter=own.pop("value.converter"),
        converter_configs=own,
    )
    protobuf = kind == "ProtobufConverter"
    nothing = "'z'" if protobuf else "cast(null AS string)"  # Protobuf has no null in a list or map
    assert write_exactly_once(session.sql(COLUMNS.format(nothing=nothing)), target).sent == 3
    kafka = Kafka(target.client, timeout=120)
    image = kafka.image([topic], patience=30, superseded=True)[topic]
    records = sorted((*image.latest, *image.superseded), key=lambda record: record.offset)
    first, second, tombstone = (record.value for record in records)
    assert tombstone is None
    read = reading_converters(configs(sandbox, kind)).value.read
    schema, value = read(topic, first)
    assert schema is not None
    by = {7: "z" if protobuf else None}
    assert (value["price"], value["note"], value["by"]) == (Decimal("9.50"), "größe", by)
    assert value["at"].microsecond == 123_000
    assert read(topic, second)[1]["note"] == ("" if protobuf else None)
    write_json = converters({"value.converter": "JsonConverter"}).of_value
    for data in (first, second):
        in_json = write_json(topic, *read(topic, data))
        if kind == "JsonConverter":
            assert data == in_json == json_peer.ask("write", topic, data)
        if kind == "AvroConverter":
            theirs = json.loads(peer.ask("read", topic, data))
            assert in_json is not None
            assert theirs["payload"] == json.loads(in_json)["payload"]


def test_the_page_on_dataframes(
    sandbox: Sandbox, session: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for block in blocks(ROOT / "docs/how-to/dataframes.md", "python"):
        if not block.file:
            continue
        topic = create_topic(sandbox.bootstrap_servers, f"page-{block.file}", 1, "delete")
        text = block.text.replace("http://localhost:8081", url_of(sandbox))
        text = text.replace("broker-1:9092", sandbox.bootstrap_servers)
        text = re.sub('topic="(orders|structured)"', f'topic="{topic}"', text)
        exec(compile(text, block.file, "exec"), {})
        printed += re.findall(r"sent=(\d+), skipped=(\d+)", capsys.readouterr().out)
    assert printed == [("3", "0"), ("0", "3"), ("1", "0")]


def test_a_worker_reads_what_is_written_here_and_writes_what_is_read_here(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    ours = create_topic(sandbox.bootstrap_servers, "written-here", 1, "delete")
    theirs = create_topic(sandbox.bootstrap_servers, "written-there", 1, "delete")
    write_avro, read_avro = both(sandbox, "AvroConverter")
    order = of.struct("shop.Order", id=of.STRING, n=of.INT16, note=of.optional(of.STRING))
    write(
        sandbox.bootstrap_servers,
        ours,
        (None, write_avro(ours, order, {"id": "a", "n": 7})),
        (None, None),
    )
    (tmp_path / "in.txt").write_text("größe\n")
    java = {"value.converter": registry.CONVERTER} | {
        f"value.converter.{n}": v for n, v in javas(sandbox).items()
    }
    common = {"tasks.max": "1", "key.converter": TEXT, **java}
    reads = {
        "connector.class": f"{FILE}SinkConnector",
        "topics": ours,
        "file": f"{tmp_path}/out.txt",
    }
    writes = {
        "connector.class": f"{FILE}SourceConnector",
        "topic": theirs,
        "file": f"{tmp_path}/in.txt",
        "transforms": "hoist,insert",
        "transforms.hoist.type": HOIST,
        "transforms.hoist.field": "line",
        "transforms.insert.type": INSERT,
        "transforms.insert.static.field": "of",
        "transforms.insert.static.value": "x",
        "transforms.insert.timestamp.field": "at",
    }
    with connector(sandbox, "reads", common | reads), connector(sandbox, "writes", common | writes):
        text = eventually(
            lambda: (tmp_path / "out.txt").exists() and (tmp_path / "out.txt").read_text()
        )
        kafka = Kafka({"bootstrap.servers": sandbox.bootstrap_servers}, timeout=120)
        found = eventually(lambda: kafka.image([theirs], patience=30)[theirs].latest)
    assert text.splitlines()[0] == "Struct{id=a,n=7}"
    schema, value = read_avro(theirs, found[0].value)
    assert schema is not None
    assert [(f["field"], f["type"], f["optional"]) for f in schema["fields"]] == [
        ("line", "string", False),
        ("at", "int64", True),
        ("of", "string", True),
    ]
    assert (value["line"], value["of"], value["at"].tzinfo) == ("größe", "x", UTC)


@pytest.mark.parametrize("kind", KINDS)
def test_subjects_and_the_newest_schema(sandbox: Sandbox, kind: str) -> None:
    write_first, read = both(sandbox, kind)
    topic = f"evolves-{kind}"
    first = of.struct("shop.Kept", a=of.INT32)
    second = of.struct("shop.Kept", a=of.INT32, b={**of.optional(of.STRING), "default": "x"})
    old = write_first(topic, first, {"a": 1})
    new = write_first(topic, second, {"a": 2, "b": None})
    assert old is not None
    assert old == write_first(topic, dict(first), {"a": 1})  # registered once
    assert [read(topic, data)[1] for data in (old, new)] == [{"a": 1}, {"a": 2, "b": "x"}]
    latest = both(sandbox, kind, use_latest_version="true")[0]
    assert read(topic, latest(topic, None, {"a": 3, "b": "y"}))[1] == {"a": 3, "b": "y"}
    assert latest(topic, None, None) is None
    by_record = configs(sandbox, kind)
    name = "value.converter.value.subject.name.strategy"
    by_record[name] = "io.confluent.kafka.serializers.subject.RecordNameStrategy"
    written = converters(by_record).of_value(topic, first, {"a": 4})
    assert read(topic, written)[1] == {"a": 4}
    known = {"auto_register_schemas": "false"}
    assert both(sandbox, kind, **known)[0](topic, second, {"a": 2, "b": None}) == new
    with pytest.raises(ConnectctlError, match="does not have the schema of absent-value"):
        both(sandbox, kind, **known)[0]("absent", first, {"a": 1})
    with pytest.raises(ConnectctlError, match=r"has no schema.*use.latest.version"):
        write_first(topic, None, {"a": 1})
    other = KINDS[KINDS.index(kind) - 1]
    with pytest.raises(ConnectctlError, match="of type"):
        both(sandbox, other)[1](topic, old)
    with pytest.raises(ConnectctlError, match="does not have schema 99999"):
        read(topic, b"\x00" + (99999).to_bytes(4, "big"))


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_an_audit_reads_numbers_by_the_converter(
    sandbox: Sandbox, tmp_path: Path, kind: str, engine: str
) -> None:
    topic = create_topic(sandbox.bootstrap_servers, f"numbered-{kind}-{engine}", 1, "delete")
    made = configs(sandbox, kind)
    write_it = converters(made).of_value
    order = of.struct("shop.Numbered", seq=of.INT64, shop=of.struct(name=of.STRING))
    values = [{"seq": n // 2, "shop": {"name": "ab"[n % 2]}} for n in range(20)]
    records = [(None, write_it(topic, order, each)) for each in values]
    write(sandbox.bootstrap_servers, topic, *records, records[-1])
    (tmp_path / "orders.json").write_text(json.dumps({"name": "orders", "config": made}))
    where = ["--context", "sandbox-schemas", "audit", topic, "--sequence", "$.seq"]
    by = ["--by", "$.shop.name", "--converters", str(tmp_path / "orders.json")]
    found = connectctl(*where, *by, "--engine", engine, "-o", "json").json
    assert (found["verdict"], found["duplicates"], found["gaps"]) == ("duplicates", 1, 0)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_configuration_of_the_field_makes_the_records_of_a_worker(
    sandbox: Sandbox, tmp_path: Path, shape: str
) -> None:
    theirs, ours = records_of(sandbox, url_of(sandbox), tmp_path, shape)
    assert ours == theirs


def test_the_page_on_schemas(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for block in blocks(ROOT / "docs/how-to/schemas.md"):
        if block.file:
            text = block.text.replace("http://localhost:8081", url_of(sandbox))
            text = text.replace("orders.txt", f"{tmp_path}/orders.txt")
            (tmp_path / block.file).write_text(text)
    monkeypatch.setattr(sys, "path", list(sys.path))
    create_topic(sandbox.bootstrap_servers, "orders", 1, "delete")
    for job in ("orders.yaml", "received.yaml"):
        where = [
            "--context",
            "sandbox-schemas",
            "--group-id",
            "of-the-page",
            "run",
            str(tmp_path / job),
            "--yes",
            "-o",
            "json",
        ]
        assert well(connectctl(*where))["records"] == 1
    assert (tmp_path / "orders.txt").read_text() == "shop.Order a1 9.50\n"
    kafka = Kafka({"bootstrap.servers": sandbox.bootstrap_servers}, timeout=120)
    read = both(sandbox, "AvroConverter")[1]
    (record,) = kafka.image(["orders"], patience=30)["orders"].latest
    schema, value = read("orders", record.value)
    assert schema is not None
    assert json.loads(json.dumps(schema))["name"] == "shop.Order"
    at = datetime(2024, 2, 29, tzinfo=UTC)
    assert value == {"id": "a1", "price": Decimal("9.50"), "at": at, "note": None}
