"""``ProtobufConverter``: values in Protobuf's binary encoding, with schemas in a registry.

Between the id of the schema and the message are the indexes of its type in the file, and in the
messages around it: how many, and each, as zigzag numbers of variable length; a single 0 is the first.
Source: ``ProtobufData`` and ``MessageIndexes`` of Confluent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from connectctl.ops.clients.registry.client import Registered, one_line
from connectctl.ops.kafka.varints import read_varint, varint
from connectctl.ops.task_runtime.registry.protobuf_files import compiled, messages_of
from connectctl.ops.task_runtime.registry.protobuf_options import (
    DATE,
    DECIMAL,
    TIME,
    TIMESTAMP,
    WRAPPERS,
    options_of,
)
from connectctl.ops.task_runtime.registry.protobuf_schemas import ConnectSchemas, is_map
from connectctl.ops.task_runtime.registry.protobuf_texts import is_union, text_of, wrapper_of
from connectctl.ops.task_runtime.registry.serde import (
    Format,
    RegistryConverter,
    or_default,
    struct_members,
)
from connectctl.ops.task_runtime.spi.json_payloads import (
    payload_of,
    unscaled,
    write_field,
)
from connectctl.ops.task_runtime.spi.json_schemas import EPOCH, EXACT
from connectctl.ops.task_runtime.spi.schema import DataError, Schema, SchemaAndValue
from google.protobuf.descriptor import FieldDescriptor, FileDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

_FIRST = (0,)
_UNSIGNED = {FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64}
_ALL_64 = (1 << 64) - 1


@dataclass(frozen=True)
class _Kind:
    """A message of a file, with Connect's schema of it."""

    schema: Schema
    message: Any


class _File:
    """The messages of a file by their indexes, each made ready at its first record."""

    def __init__(self, file: FileDescriptor, schemas: ConnectSchemas):
        self._file, self._schemas = file, schemas
        self._kinds: dict[tuple[int, ...], _Kind] = {}

    def at(self, indexes: tuple[int, ...]) -> _Kind:
        """Return the message. Raises ``DataError`` if there is none."""
        if indexes not in self._kinds:
            found: Any = self._file
            for index in indexes:
                inner = messages_of(found)
                if not 0 <= index < len(inner):
                    raise DataError(f"The schema has no message of the indexes {list(indexes)}")
                found = inner[index]
            self._kinds[indexes] = _Kind(self._schemas.schema(found), GetMessageClass(found))
        return self._kinds[indexes]


class ProtobufConverter(RegistryConverter):
    kind = "PROTOBUF"

    def configure(self, configs: Mapping[str, str], *, is_key: bool) -> None:
        super().configure(configs, is_key=is_key)
        self._options = options_of(configs)

    def text_of(self, schema: Schema) -> str:
        return text_of(schema, self._options)

    def parse(self, registered: Registered) -> Format:
        try:
            file = compiled(registered.text, registered.references)
        except DataError as e:
            raise DataError(
                f"The schema {registered.id} of the registry is not one of Protobuf",
                why=e.why or e.what,
            ) from e
        parsed = _File(file, ConnectSchemas(self._options))
        return Format(parsed.at(_FIRST).schema, parsed, registered.id)

    def encode(self, form: Format, value: Any) -> bytes:
        indexes, schema = _FIRST, form.schema
        if schema["type"] != "struct":
            indexes = (WRAPPERS.index(str(wrapper_of(schema))),)
        message = form.parsed.at(indexes).message()
        _write(message, schema, value)
        return _of_indexes(indexes) + bytes(message.SerializeToString())

    def decode(self, form: Format, data: bytes) -> SchemaAndValue:
        try:
            indexes, begin = _indexes(data)
            kind = form.parsed.at(indexes)
            return kind.schema, _read(kind.schema, kind.message.FromString(data[begin:]))
        except (DecodeError, IndexError, ValueError, OverflowError) as e:
            raise DataError(
                f"The record does not match the schema {form.id} of Protobuf", why=one_line(e)
            ) from e


def _of_indexes(indexes: tuple[int, ...]) -> bytes:
    if indexes == _FIRST:
        return b"\x00"
    return b"".join(map(varint, (len(indexes), *indexes)))


def _indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    """Return the indexes, and where the message begins. Raises ``IndexError`` if data end before."""
    length, at = read_varint(data, 0)
    indexes = []
    for _ in range(length):
        index, at = read_varint(data, at)
        indexes.append(index)
    return tuple(indexes) or _FIRST, at


def _write(message: Any, schema: Schema, value: Any) -> None:
    """Write a value into its message. Raises ``DataError`` that names the field."""
    name = message.DESCRIPTOR.full_name
    if name in _WRITERS:
        payload_of(schema, value)
        _WRITERS[name](message, schema, value)
    elif name in WRAPPERS and schema["type"] != "struct":
        message.value = _plain(message.DESCRIPTOR.fields_by_name["value"], schema, value)
    else:
        _write_struct(message, schema, value)


def _write_struct(message: Any, schema: Schema, value: Any) -> None:
    if schema["type"] != "struct":
        raise DataError(f"{message.DESCRIPTOR.name} is a struct, not a {schema['type']}")
    for _, each, of_field in struct_members(schema, value):
        write_field(lambda field, given: _put(message, field, given), each, of_field)


def _put(message: Any, schema: Schema, value: Any) -> None:
    """Write a field. A null is not written: it is read as Protobuf's default, as in Java."""
    value = or_default(schema, value)
    if value is None:
        return
    name = schema["field"]
    descriptor = message.DESCRIPTOR.fields_by_name.get(name)
    if descriptor is None:
        if not is_union(schema):
            raise DataError("the schema of Protobuf has no such field")
        _write_struct(message, schema, value)
    elif descriptor.is_repeated:
        _put_all(message, descriptor, schema, value)
    elif descriptor.message_type is not None:
        getattr(message, name).SetInParent()
        _write(getattr(message, name), schema, value)
    else:
        setattr(message, name, _plain(descriptor, schema, value))


def _put_all(message: Any, descriptor: Any, schema: Schema, value: Any) -> None:
    target = getattr(message, schema["field"])
    if is_map(descriptor):
        if not isinstance(value, Mapping):
            raise DataError(f"Invalid type for map: {type(value).__name__}")
        for key, each in value.items():
            entry = GetMessageClass(descriptor.message_type)()
            _put(entry, {**schema["keys"], "field": "key"}, key)
            _put(entry, {**schema["values"], "field": "value"}, each)
            if not descriptor.message_type.GetOptions().map_entry:
                target.append(entry)
            elif descriptor.message_type.fields_by_name["value"].message_type is None:
                target[entry.key] = entry.value
            else:
                target[entry.key].CopyFrom(entry.value)
        return
    if not isinstance(value, list | tuple):
        raise DataError(f"Invalid type for array: {type(value).__name__}")
    for each in value:
        if each is None:
            raise DataError("null in a list, which Protobuf does not have")
        if descriptor.message_type is None:
            target.append(_plain(descriptor, schema["items"], each))
        else:
            _write(target.add(), schema["items"], each)


def _plain(descriptor: Any, schema: Schema, value: Any) -> Any:
    if descriptor.enum_type is not None:
        found = descriptor.enum_type.values_by_name.get(value)
        if found is None:
            raise DataError(f"{value!r} is not a value of the enum {descriptor.enum_type.name}")
        return found.number
    payload = payload_of(schema, value)
    if descriptor.type in _UNSIGNED:
        return payload & _ALL_64
    return bytes(value) if schema["type"] == "bytes" else payload


def _write_decimal(message: Any, schema: Schema, value: Any) -> None:
    number = unscaled(schema, value)
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    message.value = number.to_bytes(size, "big", signed=True)
    message.precision, message.scale = len(str(abs(number))), int(schema["parameters"]["scale"])


def _write_date(message: Any, schema: Schema, value: Any) -> None:
    message.year, message.month, message.day = value.year, value.month, value.day


def _write_time(message: Any, schema: Schema, value: Any) -> None:
    message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
    message.nanos = value.microsecond // 1000 * 1_000_000


def _write_timestamp(message: Any, schema: Schema, value: Any) -> None:
    message.seconds, milliseconds = divmod(payload_of(schema, value), 1000)
    message.nanos = milliseconds * 1_000_000


_WRITERS: dict[str, Callable[[Any, Schema, Any], None]] = {
    DECIMAL: _write_decimal,
    DATE: _write_date,
    TIME: _write_time,
    TIMESTAMP: _write_timestamp,
}


def _read(schema: Schema, message: Any) -> Any:
    """Return the value of a message."""
    descriptor = message.DESCRIPTOR
    if descriptor.full_name in _READERS:
        return _READERS[descriptor.full_name](message)
    if schema["type"] != "struct":
        return _element(descriptor.fields_by_name["value"], schema, message.value)
    return {field["field"]: _read_field(message, field) for field in schema["fields"]}


def _read_field(message: Any, schema: Schema) -> Any:
    name = schema["field"]
    descriptor = message.DESCRIPTOR.fields_by_name.get(name)
    if descriptor is None:
        return _read_union(message, schema)
    found = getattr(message, name)
    if is_map(descriptor):
        keys, values = descriptor.message_type.fields
        pairs = (
            found.items()
            if descriptor.message_type.GetOptions().map_entry
            else ((each.key, each.value) for each in found)
        )
        return {
            _element(keys, schema["keys"], key): _element(values, schema["values"], each)
            for key, each in pairs
        }
    if descriptor.is_repeated:
        return [_element(descriptor, schema["items"], each) for each in found]
    if descriptor.has_presence and not message.HasField(name):
        return None
    return _element(descriptor, schema, found)


def _read_union(message: Any, schema: Schema) -> Any:
    oneof = next(iter(schema["fields"]))["field"]
    name = message.WhichOneof(message.DESCRIPTOR.fields_by_name[oneof].containing_oneof.name)
    if name is None:
        return None
    found = dict.fromkeys((each["field"] for each in schema["fields"]), None)
    member = next(each for each in schema["fields"] if each["field"] == name)
    return found | {name: _read_field(message, member)}


def _element(descriptor: Any, schema: Schema, value: Any) -> Any:
    if descriptor.message_type is not None:
        return _read(schema, value)
    if descriptor.enum_type is not None:
        found = descriptor.enum_type.values_by_number.get(value)
        return found.name if found else f"UNKNOWN_ENUM_VALUE_{descriptor.enum_type.name}_{value}"
    if descriptor.type in _UNSIGNED and value > _ALL_64 >> 1:
        return value - _ALL_64 - 1
    return value


def _read_decimal(message: Any) -> Decimal:
    number = int.from_bytes(message.value, "big", signed=True)
    return Decimal(number).scaleb(-message.scale, EXACT)


_READERS: dict[str, Callable[[Any], Any]] = {
    DECIMAL: _read_decimal,
    DATE: lambda message: date(message.year, message.month, message.day),
    TIME: lambda message: time(
        message.hours, message.minutes, message.seconds, message.nanos // 1_000_000 * 1000
    ),
    TIMESTAMP: lambda message: _timestamp(message.seconds, message.nanos),
}


def _timestamp(seconds: int, nanos: int) -> datetime:
    return EPOCH + timedelta(seconds=seconds, milliseconds=nanos // 1_000_000)
