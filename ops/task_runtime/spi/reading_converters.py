"""Converts the bytes of a record to a sink's values, as Connect's converters read them.

Source: ``toConnectData`` of ``StringConverter``, ``ByteArrayConverter`` and ``JsonConverter``.
"""

from __future__ import annotations

import codecs
import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from connectctl.ops.connect.source_keys import decode_json
from connectctl.ops.core.finding import counted
from connectctl.ops.task_runtime.spi.converter import converter_of
from connectctl.ops.task_runtime.spi.converters import (
    BYTES,
    JSON,
    REGISTRY,
    SIMPLE,
    STRING,
    converter_class,
    text_encoding,
    with_schemas,
)
from connectctl.ops.task_runtime.spi.json_schemas import value_of
from connectctl.ops.task_runtime.spi.schema import BYTES as BYTES_SCHEMA
from connectctl.ops.task_runtime.spi.schema import STRING as STRING_SCHEMA
from connectctl.ops.task_runtime.spi.schema import DataError, SchemaAndValue, optional

Read = Callable[[str, bytes | None], SchemaAndValue]
"""From a topic and bytes, as ``Converter.to_connect_data``. Raises ``DataError`` for bytes that are
not of this format.
"""
OPTIONAL_STRING, OPTIONAL_BYTES = optional(STRING_SCHEMA), optional(BYTES_SCHEMA)
_ENVELOPE = frozenset({"schema", "payload"})
_SCHEMA, _PAYLOAD = '{"schema":', ',"payload":'
_DECODER = json.JSONDecoder()
_NOT_AN_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and '
    "may not contain additional fields"
)


@dataclass(frozen=True)
class ReadingConverter:
    """``name`` is the Java class that it reads as; ``replaced`` counts the values that it could not
    keep.
    """

    name: str
    read: Read
    replaced: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class ReadingConverters:
    """The converters of one sink, for keys, values and headers."""

    key: ReadingConverter
    value: ReadingConverter
    header: ReadingConverter

    def warnings(self) -> list[str]:
        """Return a line for each converter that has replaced bytes since the last call, as Java's do
        in silence.
        """
        lines = [
            f"warning: {counted(number, part + ' value')} {'was' if number == 1 else 'were'} not "
            f"valid text and {'was' if number == 1 else 'were'} changed by "
            f"{each.name.rpartition('.')[2]}: U+FFFD replaces bytes. "
            f"{part}.converter=ByteArrayConverter keeps them."
            for part in ("key", "value", "header")
            if (number := (each := getattr(self, part)).replaced.total())
        ]
        for each in (self.key, self.value, self.header):
            each.replaced.clear()
        return lines


def reading_converters(configs: Mapping[str, str]) -> ReadingConverters:
    """Return the converters that ``key.converter``, ``value.converter`` and ``header.converter``
    name; strings where none is.

    Raises ``BadInput`` for one that is not supported.
    """
    return ReadingConverters(
        *(_converter(configs, f"{part}.converter") for part in ("key", "value", "header"))
    )


def _converter(configs: Mapping[str, str], name: str) -> ReadingConverter:
    kind = converter_class(configs, name)
    if ":" in (path := REGISTRY.get(kind, kind)):
        return ReadingConverter(kind, converter_of(configs, name, path).to_connect_data)
    if kind == BYTES:
        return ReadingConverter(kind, lambda topic, data: (OPTIONAL_BYTES, data))
    replaced = Counter[str]()
    if kind == STRING:
        return ReadingConverter(kind, _text(configs, name, replaced), replaced)
    if kind == SIMPLE:
        return ReadingConverter(kind, partial(_simple, replaced), replaced)
    return ReadingConverter(JSON, _Envelopes().read if with_schemas(configs, name) else _json)


def _text(configs: Mapping[str, str], name: str, replaced: Counter[str]) -> Read:
    """Text never fails: as in Java, a replacement character stands for what is not of the
    encoding.
    """
    decode = text_encoding(configs, name).decode
    return lambda topic, data: (
        OPTIONAL_STRING,
        None if data is None else _decoded(data, decode, replaced),
    )


def _decoded(data: bytes, decode: Callable[..., tuple[str, int]], replaced: Counter[str]) -> str:
    try:
        return decode(data)[0]
    except UnicodeDecodeError:
        replaced["values"] += 1
        return decode(data, "replace")[0]


def _json(topic: str, data: bytes | None) -> SchemaAndValue:
    return None, (None if data is None or not data.strip() else _parsed(data))


class _Envelopes:
    """Reads payloads with their schemas. One that is that of the record before, byte by byte, is
    not parsed again.
    """

    def __init__(self) -> None:
        self._prefix, self._schema = b"", None

    def read(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the schema and the payload of JsonConverter's envelope, twice None without data.
        Raises ``DataError``.
        """
        if data is None:
            return None, None
        if self._prefix and data.startswith(self._prefix) and data.endswith(b"}"):
            # Anything but one payload, valid or not, is left to the parser of the whole.
            with suppress(ValueError, RecursionError):
                payload, more = decode_json(data[len(self._prefix) : -1].decode())
                if not more:
                    return self._schema, value_of(self._schema, payload)
        envelope = _parsed(data)
        if not isinstance(envelope, dict) or envelope.keys() != _ENVELOPE:
            hint = "Set schemas.enable=false in the converter configuration to read plain JSON."
            raise DataError(_NOT_AN_ENVELOPE, next_step=hint)
        self._schema = envelope["schema"]
        self._prefix = _prefix(data)
        return self._schema, value_of(self._schema, envelope["payload"])


def _prefix(data: bytes) -> bytes:
    """Return the text before the payload of an envelope that is written as Connect writes it, else
    nothing.
    """
    text = data.decode("utf-8-sig")
    if not text.startswith(_SCHEMA):
        return b""
    try:
        _, end = _DECODER.raw_decode(text, len(_SCHEMA))
    except ValueError:  # white space
        return b""
    found = text[:end] + _PAYLOAD
    return found.encode() if text.startswith(_PAYLOAD, end) else b""


def _parsed(data: bytes) -> Any:
    """Return the JSON at the beginning of ``data``; as in Jackson, what follows counts only where
    it is part of a number.
    """
    try:
        text = data.decode("utf-8-sig")
        value, more = decode_json(text)
        if more and not isinstance(value, str | dict | list) and len(text.split(None, 1)) < 2:
            raise ValueError(text)
        return value
    except (ValueError, RecursionError) as e:
        raise DataError(
            "Converting byte[] to Kafka Connect data failed: invalid JSON", why=str(e)
        ) from e


def _simple(replaced: Counter[str], topic: str, data: bytes | None) -> SchemaAndValue:
    """Return the value of ``SimpleHeaderConverter``, of its JSON: numbers, booleans, null, arrays
    and maps. Anything else is the text itself: quoted strings, with their quotes, as in Java, and
    dates, which Java reads.
    """
    if data is None:
        return None, None
    text = _decoded(data, codecs.utf_8_decode, replaced)
    try:
        value = json.loads(text, parse_constant=lambda name: name)
    except (ValueError, RecursionError):
        return OPTIONAL_STRING, text
    return (OPTIONAL_STRING, text) if isinstance(value, str) else (None, value)
