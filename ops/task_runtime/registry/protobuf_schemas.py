"""Connect's schemas as Protobuf's, and back, as ``ProtobufData`` of Confluent maps them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from connectctl.ops.clients.registry.known_protos import FIELD_META
from connectctl.ops.clients.registry.settings import flag
from connectctl.ops.config.prefixed import full_name
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.spi import schema as of
from connectctl.ops.task_runtime.spi.schema import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataError,
    Schema,
)
from google.protobuf.descriptor import Descriptor, FieldDescriptor

NAMESPACE = "io.confluent.connect.protobuf"
UNION, TAG = f"{NAMESPACE}.Union", f"{NAMESPACE}.Tag"
_ENUM, _TYPE = f"{NAMESPACE}.Enum", f"{NAMESPACE}.Type"
_WRAPPER = f"{NAMESPACE}.Wrapper"
_PRECISION = "connect.decimal.precision"
DECIMAL, DATE = "confluent.type.Decimal", "google.type.Date"
TIME, TIMESTAMP = "google.type.TimeOfDay", "google.protobuf.Timestamp"
_WRAPPERS_FILE = "google/protobuf/wrappers.proto"
_LOGICAL = {
    DECIMAL_NAME: (DECIMAL, "confluent/type/decimal.proto"),
    DATE_NAME: (DATE, "google/type/date.proto"),
    TIME_NAME: (TIME, "google/type/timeofday.proto"),
    TIMESTAMP_NAME: (TIMESTAMP, "google/protobuf/timestamp.proto"),
}
_LOGICAL_SCHEMAS = {DATE: of.DATE, TIME: of.TIME, TIMESTAMP: of.TIMESTAMP}
_SCALAR = {
    "int8": "int32",
    "int16": "int32",
    "int32": "int32",
    "int64": "int64",
    "float": "float",
    "double": "double",
    "boolean": "bool",
    "string": "string",
    "bytes": "bytes",
}
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
_WRAPPED = {
    "DoubleValue": "double",
    "FloatValue": "float",
    "Int64Value": "int64",
    "UInt64Value": "uint64",
    "Int32Value": "int32",
    "UInt32Value": "uint32",
    "BoolValue": "bool",
    "StringValue": "string",
    "BytesValue": "bytes",
}
WRAPPERS = tuple(f"google.protobuf.{name}" for name in _WRAPPED)
"""The messages of a single value, in the order of their file."""
_WRAPPER_OF = {kind: f"google.protobuf.{name}" for name, kind in _WRAPPED.items()} | {
    "fixed32": "google.protobuf.UInt32Value",
    "fixed64": "google.protobuf.UInt64Value",
}
_WRAPPERS_HEAD = """\
syntax = "proto3";
package google.protobuf;

option java_package = "com.google.protobuf";
option java_outer_classname = "WrappersProto";
option java_multiple_files = true;
option go_package = "google.golang.org/protobuf/types/known/wrapperspb";
option cc_enable_arenas = true;
option objc_class_prefix = "GPB";
option csharp_namespace = "Google.Protobuf.WellKnownTypes";

"""
_FIXED = {
    "scrub.invalid.names": False,
    "int.for.enums": False,
    "flatten.unions": False,
    "generate.struct.for.nulls": False,
    "generalized.sum.type.support": False,
    "wrapper.for.raw.primitives": True,
    "optional.for.proto2": True,
}


@dataclass(frozen=True)
class Options:
    """How null, names and unions are mapped. Source: ``ProtobufDataConfig``."""

    optionals: bool
    wrappers: bool
    full_names: bool
    union_index: bool


def options_of(configs: Mapping[str, str]) -> Options:
    """Return the options in the properties of a converter. Raises ``BadInput`` for one that is not
    supported.
    """
    for name, default in _FIXED.items():
        if flag(configs, name, default) is not default:
            raise BadInput(
                f"Unsupported {full_name(configs, name)}={configs[name]}",
                next_step=f"Use {str(default).lower()}.",
            )
    return Options(
        flag(configs, "optional.for.nullables", False),
        flag(configs, "wrapper.for.nullables", False),
        flag(configs, "enhanced.protobuf.schema.support", False),
        flag(configs, "generate.index.for.unions", True),
    )


def wrapper_of(schema: Schema) -> str | None:
    """Return the message in which a value that is no struct is written, None if there is none."""
    plain = schema["type"] in _SCALAR and schema.get("name") not in _LOGICAL
    return _WRAPPER_OF[_SCALAR[schema["type"]]] if plain else None


def text_of(schema: Schema, options: Options) -> str:
    """Return the text of a ``.proto`` file, whose first message is that of ``schema``, or that of all
    wrappers. Raises ``DataError`` for a schema that Protobuf does not have.
    """
    if schema["type"] == "struct":
        return _Text(options).of(schema)
    if wrapper_of(schema) is None:
        raise DataError(
            f"Protobuf has no schema for a {schema.get('name') or schema['type']} outside a struct",
            next_step="Put it into a field of a struct, as HoistField does.",
        )
    messages = (
        f'message {name} {{\n  {kind} value = 1 [json_name = "value"];\n}}\n'
        for name, kind in _WRAPPED.items()
    )
    return _WRAPPERS_HEAD + "".join(messages)


@dataclass
class _Message:
    """The parts of a message, in the order in which they are written."""

    name: str
    fields: list[str] = field(default_factory=list)
    oneofs: dict[str, list[str]] = field(default_factory=dict)
    nested: dict[str, list[str]] = field(default_factory=dict)
    enums: dict[str, list[str]] = field(default_factory=dict)

    def lines(self) -> list[str]:
        oneofs = [line for lines in self.oneofs.values() for line in lines]
        types = [line for lines in (self.nested | self.enums).values() for line in lines]
        made = [f"message {self.name} {{"]
        for part in filter(None, (self.fields, oneofs, types)):
            made += (
                ["", *(f"  {line}" for line in part)]
                if len(made) > 1
                else [f"  {line}" for line in part]
            )
        return [*made, "}"]


class _Text:
    """Writes one file: names of types without one are numbered."""

    def __init__(self, options: Options):
        self._options = options
        self._numbers = count(1)
        self._imports: dict[str, None] = {}

    def of(self, schema: Schema) -> str:
        package, _, name = self._named(schema).rpartition(".")
        lines = self._message(name, schema).lines()
        head = ['syntax = "proto3";', *([f"package {package};"] if package else []), ""]
        imports = [f'import "{each}";' for each in self._imports]
        return "\n".join([*head, *imports, *([""] if imports else []), *lines, ""])

    def _named(self, schema: Schema) -> str:
        return str(schema.get("name") or f"ConnectDefault{next(self._numbers)}")

    def _message(self, name: str, schema: Schema) -> _Message:
        made, tags = _Message(name), count(1)
        for each in schema["fields"]:
            if is_union(each):
                union = str(each["name"]).removeprefix(f"{UNION}.").rpartition(".")[2]
                members = [self._field(made, m, tags, wraps=False) for m in each["fields"]]
                made.oneofs[union] = [f"oneof {union} {{", *_indented(members), "}"]
            else:
                made.fields += self._field(made, each, tags, self._label(each)).splitlines()
        return made

    def _label(self, schema: Schema) -> str:
        if schema["type"] in ("array", "map"):
            return "repeated "
        return "optional " if self._options.optionals and schema.get("optional") else ""

    def _field(
        self,
        message: _Message,
        schema: Schema,
        tags: Iterator[int],
        label: str = "",
        *,
        wraps: bool = True,
    ) -> str:
        own = (schema.get("parameters") or {}).get(TAG)
        tag = own if own is not None else next(tags)
        name = schema["field"]
        element = schema["items"] if schema["type"] == "array" else schema
        if element["type"] == "array" or (element is not schema and element["type"] == "map"):
            raise DataError(f"{name}: Protobuf has no list of lists or maps")
        kind = self._type(message, element, name, wraps=wraps)
        return f"{label}{kind} {name} = {tag}{_meta(element)};"

    def _type(self, message: _Message, schema: Schema, name: str, *, wraps: bool) -> str:
        kind, parameters = schema["type"], schema.get("parameters") or {}
        if schema.get("name") in _LOGICAL:
            found, file = _LOGICAL[schema["name"]]
            self._imports[file] = None
            return found
        if kind == "map":
            return self._entry(message, schema, name)
        if kind == "struct":
            found = self._named(schema).rpartition(".")[2]
            found += "Message" if found == name else ""
            if found not in message.nested:
                message.nested[found] = []
                message.nested[found] = self._message(found, schema).lines()
            return found
        if kind not in _SCALAR:
            raise DataError(f"Unknown schema type: {kind}")
        if _ENUM in parameters:
            message.enums.setdefault(parameters[_ENUM], _enum(parameters))
            return str(parameters[_ENUM])
        scalar = str(parameters.get(_TYPE, _SCALAR[kind]))
        wraps = wraps or parameters.get(_WRAPPER) == "true"
        if self._options.wrappers and schema.get("optional") and wraps:
            self._imports[_WRAPPERS_FILE] = None
            return _WRAPPER_OF.get(scalar) or _WRAPPER_OF[_SCALAR[kind]]
        return scalar

    def _entry(self, message: _Message, schema: Schema, name: str) -> str:
        found = self._named(schema).rpartition(".")[2]
        if "_" in found:
            found = "".join(part.capitalize() for part in found.split("_"))
        entry, tags = _Message(f"{found}Entry"), count(1)
        for member, each in (("key", schema["keys"]), ("value", schema["values"])):
            if each["type"] in ("array", "map"):
                raise DataError(f"{name}: Protobuf has no map of lists or maps")
            own = {**each, "field": member, "parameters": {**_parameters(each), TAG: None}}
            entry.fields += self._field(entry, own, tags).splitlines()
        message.nested[entry.name] = entry.lines()
        return entry.name


def is_union(schema: Schema) -> bool:
    """Return whether a struct is a ``oneof`` of the message around it."""
    return schema["type"] == "struct" and str(schema.get("name") or "").startswith(UNION)


def _parameters(schema: Schema) -> Mapping[str, str]:
    return schema.get("parameters") or {}


def _indented(fields: list[str]) -> list[str]:
    return [f"  {line}" for each in fields for line in each.splitlines()]


def _enum(parameters: Mapping[str, str]) -> list[str]:
    values = [
        f"  {key.removeprefix(f'{_ENUM}.')} = {number};"
        for key, number in parameters.items()
        if key.startswith(f"{_ENUM}.")
    ]
    return [f"enum {parameters[_ENUM]} {{", *values, "}"]


def _meta(schema: Schema) -> str:
    """Return the options of a field with what Protobuf's type does not say of Connect's."""
    parameters = _parameters(schema)
    if schema.get("name") == DECIMAL_NAME:
        names = {"precision": _PRECISION, "scale": "scale"}
        given = [
            f'      {{\n        value: "{parameters[name]}",\n        key: "{key}"\n      }}'
            for key, name in names.items()
            if name in parameters
        ]
    elif schema["type"] in ("int8", "int16"):
        kind = schema["type"]
        given = [f'      {{\n        key: "connect.type",\n        value: "{kind}"\n      }}']
    else:
        return ""
    listed = ",\n".join(given).replace("\n  ", "\n").removeprefix("  ")
    return f" [(confluent.field_meta) = {{\n  params: [\n{listed}\n  ]\n}}]" if given else ""


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
            found["parameters"][_WRAPPER] = "true"
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
            keys, values = (_without_field(self._field(each)) for each in message.fields)
            made = {"type": "map", "keys": keys, "values": values, "optional": True}
            return {**made, "name": _map_name(self._name(message))}
        return {**self.schema(message), "optional": True}

    def _enum(self, enum: Any) -> dict[str, Any]:
        symbols = {f"{_ENUM}.{each.name}": str(each.number) for each in enum.values}
        parameters = {_ENUM: enum.name, **symbols}
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


def _without_field(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in schema.items() if name != "field"}


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
        made["parameters"] = {_TYPE: _MARKED[descriptor.type]}
    return made


def _decimal(descriptor: FieldDescriptor) -> dict[str, Any]:
    params = _params(descriptor)
    found = dict(of.optional(of.decimal(_whole(params.get("scale", "0")))))
    if "precision" in params:
        found["parameters"] = {**found["parameters"], _PRECISION: params["precision"]}
    return found


def _whole(text: str) -> int:
    return int(text) if text.lstrip("-").isdecimal() else 0
