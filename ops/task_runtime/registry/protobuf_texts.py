"""Connect's schemas as the texts of ``.proto`` files, as ``ProtobufData`` of Confluent makes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

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
    WRAPPED,
    WRAPPER,
    Options,
)
from connectctl.ops.task_runtime.spi.schema import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataError,
    Schema,
)

_WRAPPERS_FILE = "google/protobuf/wrappers.proto"
_LOGICAL = {
    DECIMAL_NAME: (DECIMAL, "confluent/type/decimal.proto"),
    DATE_NAME: (DATE, "google/type/date.proto"),
    TIME_NAME: (TIME, "google/type/timeofday.proto"),
    TIMESTAMP_NAME: (TIMESTAMP, "google/protobuf/timestamp.proto"),
}
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
_WRAPPER_OF = {kind: f"google.protobuf.{name}" for name, kind in WRAPPED.items()} | {
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


def wrapper_of(schema: Schema) -> str | None:
    """Return the message in which a value that is not a struct is written, if there is one."""
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
        for name, kind in WRAPPED.items()
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
        own = _parameters(schema).get(TAG)
        tag = own if own is not None else next(tags)
        name = schema["field"]
        element = schema["items"] if schema["type"] == "array" else schema
        if element["type"] == "array" or (element is not schema and element["type"] == "map"):
            raise DataError(f"{name}: Protobuf has no list of lists or maps")
        kind = self._type(message, element, name, wraps=wraps)
        return f"{label}{kind} {name} = {tag}{_meta(element)};"

    def _type(self, message: _Message, schema: Schema, name: str, *, wraps: bool) -> str:
        kind, parameters = schema["type"], _parameters(schema)
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
        if ENUM in parameters:
            message.enums.setdefault(parameters[ENUM], _enum(parameters))
            return str(parameters[ENUM])
        scalar = str(parameters.get(TYPE, _SCALAR[kind]))
        wraps = wraps or parameters.get(WRAPPER) == "true"
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
        f"  {key.removeprefix(f'{ENUM}.')} = {number};"
        for key, number in parameters.items()
        if key.startswith(f"{ENUM}.")
    ]
    return [f"enum {parameters[ENUM]} {{", *values, "}"]


def _meta(schema: Schema) -> str:
    """Return the options of a field with what Protobuf's type does not say of Connect's."""
    parameters = _parameters(schema)
    if schema.get("name") == DECIMAL_NAME:
        names = {"precision": PRECISION, "scale": "scale"}
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
