"""Converts a task's values to bytes, as Connect's converters write them."""

from __future__ import annotations

import base64
import codecs
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.task_runtime.spi.converter import converter_of
from connectctl.ops.task_runtime.spi.json_payloads import payload_with, schema_json, unscaled
from connectctl.ops.task_runtime.spi.json_schemas import EXACT
from connectctl.ops.task_runtime.spi.schema import DECIMAL_NAME, Schema, schema_of

Convert = Callable[[str, Schema | None, Any], bytes | None]
"""From a topic, a schema and a value, as ``Converter.from_connect_data``."""
JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
KINDS = {name: name for name in (JSON, STRING, BYTES, SIMPLE)} | {
    name.rpartition(".")[2]: name for name in (JSON, STRING, BYTES, SIMPLE)
}
_OURS = "connectctl.ops.task_runtime.registry"
REGISTRY = {
    "io.confluent.connect.avro.AvroConverter": f"{_OURS}.avro:AvroConverter",
    "io.confluent.connect.json.JsonSchemaConverter": f"{_OURS}.json_schema:JsonSchemaConverter",
    "io.confluent.connect.protobuf.ProtobufConverter": f"{_OURS}.protobuf:ProtobufConverter",
}
"""Converters whose schemas are in a Schema Registry, with the class that converts as they do."""
KINDS |= {name: name for name in REGISTRY} | {name.rpartition(".")[2]: name for name in REGISTRY}
UTF_8 = "UTF-8"
# A number of any precision passes the encoder as text that no value has.
_NUMBER = f"{uuid.uuid4()}:"
_NUMBERS = re.compile(rf'"{_NUMBER}([^"]*)"')
_AS_THEY_ARE = {bytes, type(None)}


@dataclass(frozen=True)
class Converters:
    """The converters of one connector, for keys, values and headers."""

    of_key: Convert
    of_value: Convert
    of_header: Convert

    def values(self, topic: str, schema: Schema | None, some: Sequence[Any]) -> list[bytes | None]:
        """Return many converted values; bytes that stay unchanged cost next to nothing."""
        if self.of_value in (_as_text, _as_bytes) and set(map(type, some)) <= _AS_THEY_ARE:
            return list(some)
        return list(map(partial(self.of_value, topic, schema), some))


def converters(configs: Mapping[str, str]) -> Converters:
    """Return the converters that ``key.converter``, ``value.converter`` and ``header.converter``
    name; strings where none is.
    """
    return Converters(
        *(_converter(configs, f"{part}.converter") for part in ("key", "value", "header"))
    )


def converter_class(configs: Mapping[str, str], name: str) -> str:
    """Return the Java class that the property ``name`` names, in full; strings where it is missing;
    ``module:Class`` of a converter in Python. Raises ``BadInput``.
    """
    name_given = configs.get(name, SIMPLE if name == "header.converter" else STRING)
    kind = name_given if ":" in name_given else KINDS.get(name_given)
    if kind is None:
        known = ", ".join(sorted(n for n in KINDS if "." not in n))
        hint = f"Use one of {known}, or MODULE:CLASS of a Python class."
        raise BadInput(f"Unsupported converter {name_given} ({name})", next_step=hint)
    return kind


def converter_modules(configs: Mapping[str, str]) -> list[str]:
    """Return the modules of the converters in Python that ``configs`` names."""
    named = (configs.get(f"{part}.converter", "") for part in ("key", "value", "header"))
    return [name.partition(":")[0] for name in named if ":" in name]


def with_schemas(configs: Mapping[str, str], name: str) -> bool:
    return configs.get(f"{name}.schemas.enable", "true").lower() == "true"


def text_encoding(configs: Mapping[str, str], name: str) -> codecs.CodecInfo:
    """Return the encoding of StringConverter, if the property ``name`` names it; UTF-8 for other
    converters. Raises ``BadInput``.
    """
    setting = f"{name}.converter.encoding"
    encoding = configs.get(setting, UTF_8) if converter_class(configs, name) == STRING else UTF_8
    try:
        return codecs.lookup(encoding)
    except LookupError as e:
        raise BadInput(f"Unknown encoding {encoding} ({setting})", next_step="Use UTF-8.") from e


def _converter(configs: Mapping[str, str], name: str) -> Convert:
    kind = converter_class(configs, name)
    if ":" in (path := REGISTRY.get(kind, kind)):
        return converter_of(configs, name, path).from_connect_data
    if kind == BYTES:
        return _as_bytes
    if kind != JSON:
        encoding = text_encoding(configs, name)
        return _as_text if encoding.name == "utf-8" else partial(_as_text_in, encoding)
    numeric = configs.get(f"{name}.decimal.format", "BASE64").upper() == "NUMERIC"
    return _JsonWriter(numeric, with_schemas(configs, name)).write


def _as_bytes(topic: str, schema: Schema | None, value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    raise ConnectctlError(f"ByteArrayConverter takes bytes, not {type(value).__name__}")


def _as_text(topic: str, schema: Schema | None, value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return _text(value).encode()


def _as_text_in(
    encoding: codecs.CodecInfo, topic: str, schema: Schema | None, value: Any
) -> bytes | None:
    """Return text in ``encoding``. Raises ``ConnectctlError`` for a character that it lacks, for
    which Java writes a question mark.
    """
    if value is None or isinstance(value, bytes):
        return value
    try:
        return encoding.encode(_text(value))[0]
    except UnicodeEncodeError as e:
        raise ConnectctlError(
            f"StringConverter cannot write {e.object[e.start : e.end]!r} in {encoding.name}",
            why=e.reason,
            next_step="Remove converter.encoding, for UTF-8, or change the value.",
        ) from e


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else connect_json(value)


class _JsonWriter:
    """Writes JSON, with ``enveloped`` in an envelope with the schema, which is encoded again only
    when it differs from that of the previous record.
    """

    def __init__(self, numeric: bool, enveloped: bool):
        self._numeric, self._enveloped = numeric, enveloped
        self._schema: Schema | None = None
        self._head = ""

    def write(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return ``value`` in JSON, with its schema, or that of a plain value. A dict or a list
        without one has none, as a map without one in Java.
        """
        if self._enveloped and schema is None and value is not None:
            schema = schema_of(value)
        if schema is None:
            if value is None:
                return None
            payload = _jsonable(value)
        else:
            payload = self._payload(schema, value)
        if not self._enveloped:
            return self._text(payload).encode()
        if self._schema is not schema or not self._head:
            self._schema = schema
            found = None if schema is None else schema_json(schema)
            self._head = f'{{"schema":{connect_json(found)},"payload":'
        return f"{self._head}{self._text(payload)}}}".encode()

    def _payload(self, schema: Schema, value: Any) -> Any:
        if self._numeric and isinstance(value, Decimal) and schema.get("name") == DECIMAL_NAME:
            scale = int(schema["parameters"]["scale"])
            digits = Decimal(unscaled(schema, value)).scaleb(-scale, EXACT)
            return f"{_NUMBER}{digits}"
        return payload_with(self._payload, schema, value)

    def _text(self, payload: Any) -> str:
        text = connect_json(payload)
        return _NUMBERS.sub(r"\1", text) if self._numeric else text


def _jsonable(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(k): _jsonable(v) for k, v in value.items()}
    return [_jsonable(v) for v in value] if isinstance(value, list | tuple) else value
