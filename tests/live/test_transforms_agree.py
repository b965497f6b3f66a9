"""Transformations here and Kafka's own make the same bytes of generated records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from connectctl.ops.connect.source_keys import java_map
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.ops.task_runtime.spi.sink import SinkRecord, TimestampType
from connectctl.ops.task_runtime.transforms.chain import PACKAGE, transformation_chain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live.transformpeer import Outcome, Stages, TransformPeer, transform_peer

pytestmark = pytest.mark.live
FIELDS = ("a", "b", "c", "name", "created_at", "x.y")
NAMES = st.sampled_from(FIELDS)
LISTS = st.lists(NAMES, min_size=1, max_size=3, unique=True).map(",".join)
DATES = (
    "yyyy-MM-dd",
    "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'",
    "yyyyMMddHHmmss",
    "dd MMM yyyy hh:mm a",
    "EEE, d/M/yy",
)
TYPES = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-300, 300),
    st.integers(-(10**12), 4 * 10**12),
    st.integers(-8000, 8000).map(lambda n: n / 8),
    st.sampled_from(
        ("", "x", "12", "-7", "1.5", "true", "1e3", "NaN", "2024-02-29", "20240131235959")
    ),
    st.text("aé€ /'", max_size=5),
)


def stage(name: str, side: str = "", **properties: str | None) -> dict[str, str]:
    given = {k.replace("_", "."): v for k, v in properties.items() if v is not None}
    return {"type": f"{PACKAGE}{name}{side}", **given}


def optional(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[str | None]:
    return st.none() | strategy


@st.composite
def stages(draw: st.DrawFn) -> dict[str, str]:
    side = draw(st.sampled_from(("$Value", "$Value", "$Value", "$Key")))
    mark = draw(st.sampled_from(("", "?", "!")))
    made = {
        "Cast": lambda: stage("Cast", side, spec=_spec(draw)),
        "ExtractField": lambda: stage(
            "ExtractField",
            side,
            field=draw(st.sampled_from(("a", "b", "a.b", "`x.y`", "c.name", "x.y"))),
            field_syntax_version=draw(optional(st.sampled_from(("V1", "V2")))),
        ),
        "Flatten": lambda: stage("Flatten", side, delimiter=draw(optional(st.just("_")))),
        "HoistField": lambda: stage("HoistField", side, field=draw(NAMES)),
        "InsertField": lambda: stage(
            "InsertField",
            side,
            topic_field=f"t{mark}",
            partition_field=draw(optional(st.just("p"))),
            offset_field=draw(optional(st.just("o!"))),
            timestamp_field=draw(optional(st.just("ts"))),
            static_field=draw(optional(NAMES)),
            static_value="v",
        ),
        "MaskField": lambda: stage(
            "MaskField",
            side,
            fields=draw(LISTS),
            replacement=draw(optional(st.sampled_from(("xxx", "0", "70000", "1.25")))),
        ),
        "ReplaceField": lambda: stage(
            "ReplaceField",
            side,
            include=draw(optional(LISTS)),
            exclude=draw(optional(LISTS)),
            renames=draw(optional(NAMES.map(lambda n: f"{n}:renamed"))),
        ),
        "SetSchemaMetadata": lambda: stage(
            "SetSchemaMetadata", side, schema_name="com.example.Order", schema_version="3"
        ),
        "TimestampConverter": lambda: stage(
            "TimestampConverter",
            side,
            field=draw(optional(NAMES)),
            target_type=draw(st.sampled_from(("string", "unix", "Date", "Time", "Timestamp"))),
            format=draw(st.sampled_from(DATES)),
            unix_precision=draw(
                optional(st.sampled_from(("seconds", "microseconds", "milliseconds")))
            ),
        ),
        "RegexRouter": lambda: stage(
            "RegexRouter",
            regex=draw(st.sampled_from((".*", "(.*)-(.*)", "topic|topic-a", "(?<t>to)pic.*"))),
            replacement=draw(st.sampled_from(("other", "$0-x", r"\$1-y"))),
        ),
        "TimestampRouter": lambda: stage(
            "TimestampRouter",
            topic_format=draw(optional(st.just("${timestamp}.${topic}"))),
            timestamp_format=draw(optional(st.sampled_from(DATES[:3]))),
        ),
        "ValueToKey": lambda: stage("ValueToKey", fields=draw(LISTS)),
    }
    return made[draw(st.sampled_from(sorted(made)))]()


def _spec(draw: st.DrawFn) -> str:
    kind = st.sampled_from(TYPES)
    if draw(st.integers(0, 5)) == 0:
        return draw(kind)
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    return ",".join(f"{name}:{draw(kind)}" for name in names)


VALUES = st.recursive(
    LEAVES,
    lambda each: st.dictionaries(NAMES, each, max_size=6) | st.lists(each, max_size=2),
    max_leaves=8,
)
MAPS = st.dictionaries(NAMES, VALUES, max_size=6) | VALUES


INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
LOGICAL = "org.apache.kafka.connect.data."
TIMES = st.integers(-(10**12), 4 * 10**12)
OF_TYPES: dict[str, st.SearchStrategy[Any]] = {
    **{kind: st.integers(-(2 ** (b - 1)), 2 ** (b - 1) - 1) for kind, b in INTEGERS.items()},
    "double": st.integers(-8000, 8000).map(lambda n: n / 8),
    "float": st.integers(-8000, 8000).map(lambda n: n / 8),
    "boolean": st.booleans(),
    "string": st.sampled_from(("", "x", "12", "-7", "1.5", "true", "2024-02-29", "20240131235959")),
    "bytes": st.sampled_from(("", "AQI=")),
}


@st.composite
def fields(draw: st.DrawFn, depth: int = 0) -> tuple[dict[str, Any], Any]:
    """Draw a schema and a payload of it."""
    kinds = [*OF_TYPES, "Timestamp", "Date", "Time", "array", "map", *["struct"] * (2 - depth)]
    kind = draw(st.sampled_from(kinds))
    schema: dict[str, Any] = {"type": kind}
    if kind == "struct":
        return draw(structs(depth + 1))
    if kind == "array":
        schema |= {"items": {"type": "int32", "optional": False}}
        of: st.SearchStrategy[Any] = st.lists(OF_TYPES["int32"], max_size=2)
    elif kind == "map":
        plain = {"optional": False}
        schema |= {"keys": {"type": "string", **plain}, "values": {"type": "int64", **plain}}
        of = st.dictionaries(st.just("k"), OF_TYPES["int64"], max_size=1)
    elif kind in OF_TYPES:
        of = OF_TYPES[kind]
    else:
        schema = {"type": "int64" if kind == "Timestamp" else "int32"}
        of = TIMES if kind == "Timestamp" else st.integers(0, 20_000)
    schema["optional"] = draw(st.booleans())
    if kind in ("Timestamp", "Date", "Time"):
        schema |= {"name": f"{LOGICAL}{kind}", "version": 1}
    elif draw(st.integers(0, 3)) == 0:
        schema |= {"name": "com.example.Named", "version": 2, "doc": "d", "parameters": {"k": "v"}}
    payload = draw(of)
    if kind not in ("array", "map") and draw(st.integers(0, 3)) == 0:
        schema["default"] = draw(of)
    return schema, None if schema["optional"] and draw(st.integers(0, 3)) == 0 else payload


@st.composite
def structs(draw: st.DrawFn, depth: int = 0) -> tuple[dict[str, Any], Any]:
    names = draw(st.lists(NAMES, max_size=5, unique=True))
    drawn = {name: draw(fields(depth)) for name in names}
    members = [{**schema, "field": name} for name, (schema, _) in drawn.items()]
    schema: dict[str, Any] = {"type": "struct", "fields": members, "optional": draw(st.booleans())}
    schema |= draw(st.sampled_from(({}, {"name": "com.example.Row", "version": 1})))
    missing = schema["optional"] and draw(st.integers(0, 5)) == 0
    return schema, None if missing else {name: payload for name, (_, payload) in drawn.items()}


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransformPeer]:
    with transform_peer(tmp_path_factory.mktemp("peer")) as found:
        yield found


def in_java_order(value: Any) -> Any:
    """Return ``value`` as Java's JsonConverter gives it to a transformation."""
    if isinstance(value, dict):
        return java_map({name: in_java_order(each) for name, each in value.items()})
    return [in_java_order(each) for each in value] if isinstance(value, list) else value


def here(given: Stages, value: bytes, *, schemas: bool) -> tuple[Outcome, str]:
    of_stages = {f"transforms.t{n}.{k}": v for n, of in enumerate(given) for k, v in of.items()}
    configs = {
        "transforms": ",".join(f"t{n}" for n in range(len(given))),
        **of_stages,
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": str(schemas).lower(),
    }
    chain = transformation_chain(configs)
    assert chain is not None
    try:
        schema, found = reading_converters(configs).value.read("topic-a", value)
        record = SinkRecord(
            "topic-a", 3, 17, None, found if schemas else in_java_order(found), 1700000000123,
            TimestampType.CREATE_TIME, (), None, schema,
        )  # fmt: skip
        made = chain.apply(record)
        if made is None:
            return "dropped", ""
        write = converters(configs).of_value
        key = write(made.topic, made.key_schema, made.key)
        changed = write(made.topic, made.value_schema, made.value)
        return (made.topic.encode(), key, changed), ""
    except Exception as e:  # noqa: BLE001  # whatever it is, the peer must fail as well
        return "error", f"{type(e).__name__}: {e}"


def agrees(peer: TransformPeer, given: Stages, value: Any, *, schemas: bool) -> None:
    data = json.dumps(value).encode()
    ours, why = here(given, data, schemas=schemas)
    theirs, answer = peer.apply(given, data, schemas=schemas)
    assert ours == theirs, (given, value, why, answer)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(given=st.lists(stages(), min_size=1, max_size=2), value=MAPS)
def test_of_values_without_a_schema(peer: TransformPeer, given: Stages, value: Any) -> None:
    agrees(peer, given, value, schemas=False)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(given=st.lists(stages(), min_size=1, max_size=2), drawn=structs() | fields())
def test_of_values_with_a_schema(peer: TransformPeer, given: Stages, drawn: Any) -> None:
    schema, payload = drawn
    agrees(peer, given, {"schema": schema, "payload": payload}, schemas=True)
