"""``AvroConverter``: values in Avro's binary encoding, with schemas in a registry."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import fastavro
from connectctl.ops.clients.registry.client import Registered, one_line
from connectctl.ops.task_runtime.registry.avro_schemas import (
    UNION,
    ConnectSchemas,
    avro_of,
    branch_name,
    full_name,
    without_other_logical_types,
)
from connectctl.ops.task_runtime.registry.serde import (
    Format,
    RegistryConverter,
    or_default,
    struct_members,
)
from connectctl.ops.task_runtime.spi.json_payloads import unscaled, write_field
from connectctl.ops.task_runtime.spi.json_schemas import EXACT
from connectctl.ops.task_runtime.spi.schema import (
    DECIMAL_NAME,
    DataError,
    Schema,
    SchemaAndValue,
)


class AvroConverter(RegistryConverter):
    kind = "AVRO"

    def text_of(self, schema: Schema) -> str:
        return json.dumps(avro_of(schema))

    def parse(self, registered: Registered) -> Format:
        try:
            named = {n: _loaded(text) for n, text in registered.references.items()}
            avro = _loaded(registered.text)
            known: dict[str, Any] = {}
            for each in named.values():
                fastavro.parse_schema(each, named_schemas=known)
            parsed = fastavro.parse_schema(avro, named_schemas=known)
            schema = ConnectSchemas({full_name(v, ""): v for v in named.values()}).schema(avro)
        except (fastavro.schema.SchemaParseException, KeyError, ValueError, TypeError) as e:
            raise DataError(
                f"The schema {registered.id} of the registry is not a schema of Avro", why=str(e)
            ) from e
        return Format(schema, parsed, registered.id)

    def encode(self, form: Format, value: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, form.parsed, _to_avro(form.schema, value))
        return out.getvalue()

    def decode(self, form: Format, data: bytes) -> SchemaAndValue:
        try:
            found = fastavro.schemaless_reader(
                io.BytesIO(data), form.parsed, None, return_named_type=True
            )
        except Exception as e:
            raise DataError(
                f"The record does not match the schema {form.id} of Avro", why=one_line(e)
            ) from e
        return form.schema, _from_avro(form.schema, found)


def _loaded(text: str) -> Any:
    """Return the schema in JSON; the name of a primitive type may be without quotes."""
    try:
        loaded = json.loads(text)
    except ValueError:
        loaded = text
    return without_other_logical_types(loaded)


def _to_avro(schema: Schema, value: Any) -> Any:
    """Return ``value`` as fastavro takes it. Raises ``DataError`` that names the field."""
    value, kind = or_default(schema, value), schema["type"]
    if value is None:
        return None
    if kind == "struct":
        members = struct_members(schema, value)
        if schema.get("name") == UNION:
            return next((_branch(s, v) for _, s, v in members if v is not None), None)
        return {name: write_field(_to_avro, field, each) for name, field, each in members}
    if kind == "array":
        return [_to_avro(schema["items"], each) for each in value]
    if kind == "map":
        keys, values = schema["keys"], schema["values"]
        if keys["type"] == "string" and not keys.get("optional"):
            return {key: _to_avro(values, each) for key, each in value.items()}
        pairs = ((_to_avro(keys, k), _to_avro(values, v)) for k, v in value.items())
        return [{"key": k, "value": v} for k, v in pairs]
    if schema.get("name") == DECIMAL_NAME:
        return _rescaled(schema, value)
    return value


def _branch(schema: Schema, value: Any) -> Any:
    """Return a value of a union, with the name of its type where it has one."""
    found = _to_avro(schema, value)
    return (schema["name"], found) if schema["type"] == "struct" else found


def _rescaled(schema: Schema, value: Any) -> Decimal:
    try:
        return Decimal(unscaled(schema, value)).scaleb(-int(schema["parameters"]["scale"]), EXACT)
    except (ArithmeticError, TypeError) as e:
        raise DataError(f"{value!r} is not a decimal of its scale", why=str(e) or None) from e


def _from_avro(schema: Schema, value: Any) -> Any:
    """Return a value that fastavro has read as Connect has it."""
    if value is None:
        return None
    kind = schema["type"]
    name = ""
    if isinstance(value, tuple):  # a named type of a union
        name, value = value
    if kind == "struct":
        if schema.get("name") == UNION:
            return _of_union(schema, name, value)
        return {
            field["field"]: _from_avro(field, value[field["field"]]) for field in schema["fields"]
        }
    if kind == "array":
        return [_from_avro(schema["items"], each) for each in value]
    if kind == "map":
        keys, values = schema["keys"], schema["values"]
        if isinstance(value, Mapping):
            return {key: _from_avro(values, each) for key, each in value.items()}
        return {_from_avro(keys, e["key"]): _from_avro(values, e["value"]) for e in value}
    return value


_TYPES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float,),
    "double": (float,),
    "string": (str,),
    "bytes": (bytes, Decimal),
    "array": (list,),
    "map": (dict,),
}


def _of_union(schema: Schema, name: str, value: Any) -> dict[str, Any]:
    """Return the struct of a union, with the one field that the value has."""
    found = dict.fromkeys((field["field"] for field in schema["fields"]), None)
    for field in schema["fields"]:
        of_name = name and field["field"] == branch_name(name)
        if of_name or (not name and type(value) in _TYPES.get(field["field"], ())):
            return found | {field["field"]: _from_avro({**field, "optional": False}, value)}
    raise DataError(f"No branch of a union of Avro has a {type(value).__name__}")
