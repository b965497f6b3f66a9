"""Connect's schemas as Avro's, and back, as ``AvroData`` of Confluent maps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectctl.ops.task_runtime.spi.schema import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataError,
    Schema,
    optional,
)

NAMESPACE = "io.confluent.connect.avro"
UNION = f"{NAMESPACE}.Union"
_UNNAMED = f"{NAMESPACE}.ConnectDefault"
_ENUM, _FIXED = f"{NAMESPACE}.Enum", "connect.fixed.size"
_PRECISION, _MOST_DIGITS = "connect.decimal.precision", 64
_AVRO = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
}
_CONNECT = {avro: connect for connect, avro in _AVRO.items() if connect not in ("int8", "int16")}
_LOGICAL = {
    DECIMAL_NAME: "decimal",
    DATE_NAME: "date",
    TIME_NAME: "time-millis",
    TIMESTAMP_NAME: "timestamp-millis",
}
_NAMES = {
    ("bytes" if avro == "decimal" else _AVRO["int64" if "stamp" in avro else "int32"], avro): name
    for name, avro in _LOGICAL.items()
} | {("fixed", "decimal"): DECIMAL_NAME}


def avro_of(schema: Schema) -> Any:
    """Return the schema of Avro, in JSON. Raises ``DataError`` for one that is none.

    A type is defined once, where it comes first, and named after that. Structs without a name are
    ``ConnectDefault``, ``ConnectDefault2`` …, as those of ``AvroData``.
    """
    return _defined_once(_avro_of(schema), [])


def _avro_of(schema: Schema) -> Any:
    base = _base(schema)
    if not schema.get("optional"):
        return base
    return [base, "null"] if schema.get("default") is not None else ["null", base]


def _base(schema: Schema) -> Any:
    kind, parameters = schema.get("type"), schema.get("parameters") or {}
    more = _metadata(schema)
    if kind == "struct":
        return _record(schema) | more
    if kind == "array":
        return {"type": "array", "items": _avro_of(schema["items"])} | more
    if kind == "map":
        return _map(schema) | more
    if kind not in _AVRO:
        raise DataError(f"Unknown schema type: {kind}")
    if kind == "string" and _ENUM in parameters:
        symbols = [v for k, v in parameters.items() if k.startswith(f"{_ENUM}.")]
        return _named("enum", parameters[_ENUM]) | {"symbols": symbols} | more
    if kind == "bytes" and _FIXED in parameters:
        name = schema.get("name") or _UNNAMED
        return _named("fixed", name) | {"size": int(parameters[_FIXED])} | more
    if kind in ("int8", "int16"):
        more["connect.type"] = kind
    logical = _LOGICAL.get(str(schema.get("name")))
    if logical == "decimal":
        digits = int(parameters.get(_PRECISION, _MOST_DIGITS))
        more |= {"scale": int(parameters["scale"]), "precision": digits}
    if logical:
        more["logicalType"] = logical
    return {"type": _AVRO[kind], **more} if more else _AVRO[kind]


def _metadata(schema: Schema) -> dict[str, Any]:
    members = ("doc", "version", "parameters", "default", "name")
    return {f"connect.{name}": schema[name] for name in members if schema.get(name) is not None}


def _named(kind: str, name: str) -> dict[str, Any]:
    namespace, _, simple = name.rpartition(".")
    return {"type": kind, "name": simple} | ({"namespace": namespace} if namespace else {})


def _record(schema: Schema) -> dict[str, Any]:
    fields = []
    for field in schema["fields"]:
        made = {"name": field["field"], "type": _avro_of(field)}
        if field.get("default") is not None:
            made["default"] = avro_default(field, field["default"])
        elif field.get("optional"):
            made["default"] = None
        fields.append(made)
    name = schema.get("name") or _UNNAMED
    return _named("record", name) | {"fields": fields}


def avro_default(schema: Schema, default: Any) -> Any:
    """Return a default as Avro's JSON has it: bytes are text of the characters U+0000 to U+00FF."""
    if schema["type"] != "bytes" or not isinstance(default, str):
        return default
    import base64

    return base64.b64decode(default).decode("latin-1")


def _map(schema: Schema) -> dict[str, Any]:
    keys, values = schema["keys"], schema["values"]
    if keys["type"] == "string" and not keys.get("optional"):
        return {"type": "map", "values": _avro_of(values)}
    fields = [{"name": "key", "type": _avro_of(keys)}, {"name": "value", "type": _avro_of(values)}]
    entry = _named("record", f"{NAMESPACE}.MapEntry") | {"fields": fields}
    return {"type": "array", "items": entry}


def _defined_once(avro: Any, known: list[tuple[Any, str]]) -> Any:
    """Return a schema in which no type is defined again; ``known`` are those with their names."""
    if isinstance(avro, list):
        return [_defined_once(each, known) for each in avro]
    if not isinstance(avro, Mapping):
        return avro
    made = dict(avro)
    if "name" in avro:
        for other, name in known:
            if other == avro:
                return name
        if full_name(avro, "") == _UNNAMED:
            number = 1 + sum(full_name(other, "") == _UNNAMED for other, _ in known)
            made["name"] = f"{avro['name']}{number if number > 1 else ''}"
        known.append((avro, full_name(made, "")))
    for member in ("items", "values"):
        if member in avro:
            made[member] = _defined_once(avro[member], known)
    if "fields" in avro:
        made["fields"] = [
            {**field, "type": _defined_once(field["type"], known)} for field in avro["fields"]
        ]
    return made


class ConnectSchemas:
    """Makes Connect's schemas of Avro's. ``named`` are schemas that others refer to."""

    def __init__(self, named: Mapping[str, Any]):
        self._named = dict(named)
        self._open: list[str] = []

    def schema(self, avro: Any, namespace: str = "") -> dict[str, Any]:
        """Return the schema of Connect. Raises ``DataError`` for a type that contains itself."""
        if isinstance(avro, list):
            return self._union(avro, namespace)
        if isinstance(avro, str):
            return self._by_name(avro, namespace)
        kind = avro["type"]
        if isinstance(kind, list | dict):
            return self.schema(kind, namespace)
        if kind in ("record", "error", "enum", "fixed"):
            found = self._of_named(avro, namespace)
        elif kind == "array":
            found = self._array(avro, namespace)
        elif kind == "map":
            keys = {"type": "string", "optional": False}
            values = self.schema(avro["values"], namespace)
            found = {"type": "map", "keys": keys, "values": values, "optional": False}
        else:
            found = self._by_name(kind, namespace)
        return _described(found, avro)

    def _by_name(self, name: str, namespace: str) -> dict[str, Any]:
        if name in _CONNECT:
            return {"type": _CONNECT[name], "optional": False}
        full = name if name in self._named else f"{namespace}.{name}"
        if full not in self._named:
            raise DataError(f"Unknown type {name} in a schema of Avro")
        return self.schema(self._named[full], full.rpartition(".")[0])

    def _defined(self, avro: Any, namespace: str) -> Any:
        """Return the definition of a named type; other schemas as they are."""
        if not isinstance(avro, str) or avro in _CONNECT:
            return avro
        return self._named.get(avro) or self._named.get(f"{namespace}.{avro}", avro)

    def _of_named(self, avro: Mapping[str, Any], namespace: str) -> dict[str, Any]:
        name = full_name(avro, namespace)
        self._named[name] = avro
        inner = name.rpartition(".")[0]
        if avro["type"] == "enum":
            symbols = {f"{_ENUM}.{symbol}": symbol for symbol in avro["symbols"]}
            return {"type": "string", "optional": False, "parameters": {_ENUM: name, **symbols}}
        if avro["type"] == "fixed":
            sized = {_FIXED: str(avro["size"])}
            return {"type": "bytes", "optional": False, "name": name, "parameters": sized}
        if name in self._open:
            raise DataError(f"The type {name} contains itself, which Connect's schemas cannot")
        self._open.append(name)
        try:
            fields = [self._field(field, inner) for field in avro["fields"]]
        finally:
            self._open.pop()
        named = {} if name == _UNNAMED else {"name": name}
        return {"type": "struct", "fields": fields, "optional": False, **named}

    def _field(self, field: Mapping[str, Any], namespace: str) -> dict[str, Any]:
        found = self.schema(field["type"], namespace)
        if "default" in field and field["default"] is not None and "default" not in found:
            found["default"] = _connect_default(found, field["default"])
        if "doc" in field and "doc" not in found:
            found["doc"] = field["doc"]
        return {**found, "field": field["name"]}

    def _array(self, avro: Mapping[str, Any], namespace: str) -> dict[str, Any]:
        items = self._defined(avro["items"], namespace)
        if isinstance(items, Mapping) and items.get("name") == "MapEntry":
            self._named[full_name(items, namespace)] = items
            keys, values = (self.schema(field["type"], namespace) for field in items["fields"])
            return {"type": "map", "keys": keys, "values": values, "optional": False}
        return {"type": "array", "items": self.schema(items, namespace), "optional": False}

    def _union(self, branches: list[Any], namespace: str) -> dict[str, Any]:
        others = [each for each in branches if each != "null"]
        if len(others) == 1:
            found = self.schema(others[0], namespace)
            return dict(optional(found)) if len(others) < len(branches) else found
        fields = [
            {**optional(self.schema(each, namespace)), "field": branch_name(each)}
            for each in others
        ]
        is_optional = len(others) < len(branches)
        return {"type": "struct", "fields": fields, "optional": is_optional, "name": UNION}


def full_name(avro: Mapping[str, Any], namespace: str) -> str:
    """Return the name of a type with its namespace."""
    name, own = str(avro["name"]), avro.get("namespace", namespace)
    return name if "." in name or not own else f"{own}.{name}"


def branch_name(avro: Any) -> str:
    """Return the name of the field that a branch of a union has in Connect."""
    if isinstance(avro, str):
        return avro.rpartition(".")[2]
    return str(avro.get("name", avro["type"])).rpartition(".")[2]


def _connect_default(schema: Schema, default: Any) -> Any:
    """Return a default of Avro in the form of JsonConverter."""
    if schema["type"] != "bytes" or not isinstance(default, str):
        return default
    import base64

    return base64.b64encode(default.encode("latin-1")).decode()


def _described(found: dict[str, Any], avro: Mapping[str, Any]) -> dict[str, Any]:
    """Add what ``connect.*`` properties and logical types say of a schema."""
    name = _NAMES.get((str(avro["type"]), str(avro.get("logicalType"))))
    if name == DECIMAL_NAME:
        found |= {"name": name, "version": 1, "parameters": {"scale": str(avro.get("scale", 0))}}
        if avro.get("precision", _MOST_DIGITS) != _MOST_DIGITS:
            found["parameters"][_PRECISION] = str(avro["precision"])
    elif name:
        found |= {"name": name, "version": 1}
    if avro.get("connect.type") in ("int8", "int16"):
        found["type"] = avro["connect.type"]
    for member in ("name", "version", "doc", "default"):
        if f"connect.{member}" in avro:
            found[member] = avro[f"connect.{member}"]
    if "connect.parameters" in avro:
        found["parameters"] = found.get("parameters", {}) | avro["connect.parameters"]
    return found


def without_other_logical_types(avro: Any) -> Any:
    """Return a schema whose other logical types than Connect's are plain: AvroData has no others."""
    if isinstance(avro, list):
        return [without_other_logical_types(each) for each in avro]
    if not isinstance(avro, Mapping):
        return avro
    found = {name: without_other_logical_types(each) for name, each in avro.items()}
    if "logicalType" in found and (str(found.get("type")), found["logicalType"]) not in _NAMES:
        del found["logicalType"]
    return found
