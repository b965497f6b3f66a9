"""Protobuf's messages as Connect's schemas, as ``ProtobufData`` of Confluent maps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectctl.ops.clients.registry.known_protos import FIELD_META
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.task_runtime.registry.protobuf_options import (
    DATE,
    DECIMAL,
    ENUM,
    PRECISION,
    TAG,
    TIME,
    TIMESTAMP,
    TYPE,
    UNION,
    WRAPPER,
    WRAPPERS,
    Options,
)
from connectctl.ops.task_runtime.spi import schema as of
from connectctl.ops.task_runtime.spi.schema import DataError
from google.protobuf.descriptor import Descriptor, FieldDescriptor

_LOGICAL_SCHEMAS = {DATE: of.DATE, TIME: of.TIME, TIMESTAMP: of.TIMESTAMP}
_CONNECT = {
    FieldDescriptor.CPPTYPE_INT32: "int32",
    FieldDescriptor.CPPTYPE_UINT32: "int64",
    FieldDescriptor.CPPTYPE_INT64: "int64",
    FieldDescriptor.CPPTYPE_UINT64: "int64",
    FieldDescriptor.CPPTYPE_FLOAT: "float",
    FieldDescriptor.CPPTYPE_DOUBLE: "double",
    FieldDescriptor.CPPTYPE_BOOL: "boolean",
}
_MARKED = {
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_SINT32: "sint32",
    FieldDescriptor.TYPE_SINT64: "sint64",
    FieldDescriptor.TYPE_FIXED32: "fixed32",
    FieldDescriptor.TYPE_FIXED64: "fixed64",
    FieldDescriptor.TYPE_SFIXED32: "sfixed32",
    FieldDescriptor.TYPE_SFIXED64: "sfixed64",
}


class ConnectSchemas:
    """Makes Connect's schemas of Protobuf's messages."""

    def __init__(self, options: Options):
        self._options = options
        self._open: list[str] = []

    def schema(self, message: Descriptor) -> dict[str, Any]:
        """Return the schema of Connect. Raises ``DataError`` for a type that contains itself."""
        if message.full_name in WRAPPERS:
            return _scalar(message.fields_by_name["value"], marked=False)
        if message.full_name in self._open:
            raise DataError(
                f"The type {message.full_name} contains itself, which Connect's schemas cannot"
            )
        self._open.append(message.full_name)
        unions = [each for each in message.oneofs if not _is_synthetic(each)]
        fields = [self._union(each) for each in unions] + [
            self._field(each) for each in message.fields if each.containing_oneof not in unions
        ]
        self._open.pop()
        named = {"name": self._name(message)}
        return {"type": "struct", "fields": fields, "optional": False, **named}

    def _name(self, found: Any) -> str:
        return str(found.full_name if self._options.full_names else found.name)

    def _union(self, oneof: Any) -> dict[str, Any]:
        name = f"{UNION}.{self._name(oneof)}"
        field_name = f"{oneof.name}_{oneof.index}" if self._options.union_index else oneof.name
        fields = [self._member(each) for each in oneof.fields]
        made = {"type": "struct", "fields": fields, "optional": True, "name": name}
        return {**made, "field": field_name}

    def _member(self, descriptor: FieldDescriptor) -> dict[str, Any]:
        found = {**self._field(descriptor), "optional": True}
        message = descriptor.message_type
        if self._options.wrappers and message is not None and message.full_name in WRAPPERS:
            found["parameters"][WRAPPER] = "true"
        return found

    def _field(self, descriptor: FieldDescriptor) -> dict[str, Any]:
        found = self._of_type(descriptor)
        if descriptor.is_repeated and found["type"] != "map":
            items = {**found, "optional": True}
            found = {"type": "array", "items": items, "optional": True}
        elif self._options.optionals:
            found["optional"] |= _is_optional(descriptor)
        elif not self._options.wrappers:
            found["optional"] = True
        tagged = {**found.get("parameters", {}), TAG: str(descriptor.number)}
        return {**found, "parameters": tagged, "field": descriptor.name}

    def _of_type(self, descriptor: FieldDescriptor) -> dict[str, Any]:
        if descriptor.enum_type is not None:
            return self._enum(descriptor.enum_type)
        message = descriptor.message_type
        if message is None:
            return _scalar(descriptor)
        if message.full_name == DECIMAL:
            return _decimal(descriptor)
        if message.full_name in _LOGICAL_SCHEMAS:
            return {**_LOGICAL_SCHEMAS[message.full_name], "optional": True}
        if is_map(descriptor):
            keys, values = (of.plain(self._field(each)) for each in message.fields)
            made = {"type": "map", "keys": keys, "values": values, "optional": True}
            return {**made, "name": _map_name(self._name(message))}
        return {**self.schema(message), "optional": True}

    def _enum(self, enum: Any) -> dict[str, Any]:
        symbols = {f"{ENUM}.{each.name}": str(each.number) for each in enum.values}
        parameters = {ENUM: enum.name, **symbols}
        named = {"name": self._name(enum), "parameters": parameters}
        return {"type": "string", "optional": True, **named}


def is_map(descriptor: FieldDescriptor) -> bool:
    """Return whether a field is a map: of Protobuf, or of messages that Connect writes as one."""
    message = descriptor.message_type
    return bool(
        descriptor.is_repeated
        and message is not None
        and message.name.endswith("Entry")
        and [each.name for each in message.fields] == ["key", "value"]
        and not any(each.is_repeated for each in message.fields)
    )


def _map_name(name: str) -> str:
    """Return the name of a map's schema: that of its entry, in lower case with underscores."""
    head, dot, last = name.rpartition(".")
    last = last.removesuffix("Entry")
    words = "".join(f"_{each.lower()}" if each.isupper() else each for each in last)
    return f"{head}{dot}{words.removeprefix('_')}"


def _is_synthetic(oneof: Any) -> bool:
    """Return whether a oneof is that of a single ``optional`` field of proto3."""
    return len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name}"


def _is_optional(descriptor: FieldDescriptor) -> bool:
    return bool(descriptor.has_presence and not descriptor.is_required)


def _params(descriptor: FieldDescriptor) -> Mapping[str, str]:
    found: Mapping[str, str] = descriptor.GetOptions().Extensions[FIELD_META].params
    return found


def _scalar(descriptor: FieldDescriptor, *, marked: bool = True) -> dict[str, Any]:
    kind = _CONNECT.get(descriptor.cpp_type)
    if kind is None:
        kind = "bytes" if descriptor.type == FieldDescriptor.TYPE_BYTES else "string"
    narrow = _params(descriptor).get("connect.type")
    if kind == "int32" and narrow in ("int8", "int16"):
        return {"type": narrow, "optional": False}
    made: dict[str, Any] = {"type": kind, "optional": False}
    if marked and descriptor.type in _MARKED:
        made["parameters"] = {TYPE: _MARKED[descriptor.type]}
    return made


def _decimal(descriptor: FieldDescriptor) -> dict[str, Any]:
    params = _params(descriptor)
    found = dict(of.optional(of.decimal(_whole(params.get("scale", "0")))))
    if "precision" in params:
        found["parameters"] = {**found["parameters"], PRECISION: params["precision"]}
    return found


def _whole(text: str) -> int:
    number = whole_number(text.removeprefix("-")) or 0
    return -number if text.startswith("-") else number
