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
from connectctl.ops.task_runtime.spi.converters import (
    BYTES,
    JSON,
    SIMPLE,
    STRING,
    converter_class,
    text_encoding,
    with_schemas,
)
from connectctl.ops.task_runtime.spi.json_schemas import value_of
from connectctl.ops.task_runtime.spi.schema import DataError, Schema

Read = Callable[[bytes | None], tuple[Any, Schema | None]]
"""A value and its schema. Raises ``DataError`` for bytes that are not of this format."""
OPTIONAL_STRING: Schema = {"type": "string", "optional": True}
OPTIONAL_BYTES: Schema = {"type": "bytes", "optional": True}
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
    if kind == BYTES:
        return ReadingConverter(kind, lambda data: (data, OPTIONAL_BYTES))
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
    return lambda data: (
        None if data is None else _decoded(data, decode, replaced),
        OPTIONAL_STRING,
    )


def _decoded(data: bytes, decode: Callable[..., tuple[str, int]], replaced: Counter[str]) -> str:
    try:
        return decode(data)[0]
    except UnicodeDecodeError:
        replaced["values"] += 1
        return decode(data, "replace")[0]


def _json(data: bytes | None) -> tuple[Any, Schema | None]:
    return (None if data is None or not data.strip() else _parsed(data)), None


class _Envelopes:
    """Reads payloads with their schemas. One that is that of the record before, byte by byte, is
    not parsed again.
    """

    def __init__(self) -> None:
        self._prefix, self._schema = b"", None

    def read(self, data: bytes | None) -> tuple[Any, Schema | None]:
        """Return the payload of JsonConverter's envelope and its schema, twice None without data.
        Raises ``DataError``.
        """
        if data is None:
            return None, None
        if self._prefix and data.startswith(self._prefix) and data.endswith(b"}"):
            # Anything but one payload, valid or not, is left to the parser of the whole.
            with suppress(ValueError, RecursionError):
                payload, more = decode_json(data[len(self._prefix) : -1].decode())
                if not more:
                    return value_of(self._schema, payload), self._schema
        envelope = _parsed(data)
        if not isinstance(envelope, dict) or envelope.keys() != _ENVELOPE:
            hint = "Set schemas.enable=false in the converter configuration to read plain JSON."
            raise DataError(_NOT_AN_ENVELOPE, next_step=hint)
        self._schema = envelope["schema"]
        self._prefix = _prefix(data)
        return value_of(self._schema, envelope["payload"]), self._schema


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


def _simple(replaced: Counter[str], data: bytes | None) -> tuple[Any, Schema | None]:
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
        return text, OPTIONAL_STRING
    return (text, OPTIONAL_STRING) if isinstance(value, str) else (value, None)
