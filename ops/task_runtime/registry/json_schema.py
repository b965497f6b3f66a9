"""``JsonSchemaConverter``: values in JSON, with JSON Schemas in a registry.

Source: ``JsonSchemaData`` of Confluent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from connectctl.ops.clients.registry.client import Registered
from connectctl.ops.connect.source_keys import connect_json, decode_json
from connectctl.ops.task_runtime.registry.serde import Format, RegistryConverter
from connectctl.ops.task_runtime.spi.json_payloads import payload_of
from connectctl.ops.task_runtime.spi.json_schemas import value_of
from connectctl.ops.task_runtime.spi.schema import DataError, Schema, SchemaAndValue, optional

_TYPES = {
    "int8": ("integer", "int8"),
    "int16": ("integer", "int16"),
    "int32": ("integer", "int32"),
    "int64": ("integer", "int64"),
    "float": ("number", "float32"),
    "double": ("number", "float64"),
    "boolean": ("boolean", None),
    "string": ("string", None),
    "bytes": ("string", "bytes"),
}
_CONNECT = {of: kind for kind, (_, of) in _TYPES.items() if of}
_PLAIN = {"integer": "int64", "number": "double", "boolean": "boolean", "string": "string"}
_MEMBERS = {
    "name": "title",
    "version": "connect.version",
    "doc": "description",
    "parameters": "connect.parameters",
    "default": "default",
}
_INDEX = "connect.index"


class JsonSchemaConverter(RegistryConverter):
    kind = "JSON"

    def text_of(self, schema: Schema) -> str:
        return json.dumps(json_schema_of(schema))

    def parse(self, registered: Registered) -> Format:
        try:
            loaded = json.loads(registered.text)
            named = {name: json.loads(text) for name, text in registered.references.items()}
            return Format(_Reader(loaded, named).schema(loaded), None, registered.id)
        except (KeyError, ValueError, TypeError, AttributeError) as e:
            raise DataError(
                f"The schema {registered.id} of the registry is not a JSON Schema", why=str(e)
            ) from e

    def encode(self, form: Format, value: Any) -> bytes:
        return connect_json(_objects(form.schema, payload_of(form.schema, value))).encode()

    def decode(self, form: Format, data: bytes) -> SchemaAndValue:
        try:
            payload = decode_json(data.decode())[0]
        except (ValueError, RecursionError) as e:
            raise DataError("The record is not JSON", why=str(e)) from e
        return form.schema, value_of(form.schema, _pairs(form.schema, payload))


def json_schema_of(schema: Schema) -> dict[str, Any]:
    """Return the JSON Schema. Raises ``DataError`` for a schema of Connect that is none."""
    base = _base(schema)
    for member, name in _MEMBERS.items():
        if schema.get(member) is not None:
            base[name] = schema[member]
    return {"oneOf": [{"type": "null"}, base]} if schema.get("optional") else base


def _base(schema: Schema) -> dict[str, Any]:
    kind = schema.get("type")
    if kind == "struct":
        return _object((field["field"], field) for field in schema["fields"])
    if kind == "array":
        return {"type": "array", "items": json_schema_of(schema["items"])}
    if kind == "map":
        keys, values = schema["keys"], schema["values"]
        if _is_object(keys):
            more = json_schema_of(values)
            return {"type": "object", "connect.type": "map", "additionalProperties": more}
        items = _object((("key", keys), ("value", values)))
        return {"type": "array", "connect.type": "map", "items": items}
    if kind not in _TYPES:
        raise DataError(f"Unknown schema type: {kind}")
    name, of = _TYPES[str(kind)]
    return {"type": name} | ({"connect.type": of} if of else {})


def _object(fields: Iterable[tuple[str, Schema]]) -> dict[str, Any]:
    properties = {}
    for index, (name, schema) in enumerate(fields):
        properties[name] = json_schema_of(schema) | {_INDEX: index}
    return {"type": "object", "properties": properties}


def _is_object(keys: Schema) -> bool:
    return keys["type"] == "string" and not keys.get("optional")


class _Reader:
    """Makes Connect's schemas; ``$ref`` names a part of the document, or another schema."""

    def __init__(self, document: Any, named: Mapping[str, Any]):
        self._document, self._named = document, named
        self._open: list[str] = []

    def schema(self, given: Any) -> dict[str, Any]:
        """Return the schema of Connect. Raises ``DataError`` for one that has no equal there."""
        if "$ref" in given:
            return self._referred(str(given["$ref"]))
        for word in ("oneOf", "anyOf"):
            if word in given:
                return self._union(given[word])
        kind = given.get("type", "object" if "properties" in given else None)
        if isinstance(kind, list):
            return self._union([{**given, "type": each} for each in kind])
        found = self._of_type(given, kind)
        for member, name in _MEMBERS.items():
            if given.get(name) is not None:
                found[member] = given[name]
        return found

    def _of_type(self, given: Mapping[str, Any], kind: Any) -> dict[str, Any]:
        of = given.get("connect.type")
        if of == "map":
            if kind == "object":
                keys: dict[str, Any] = {"type": "string", "optional": False}
                values = self.schema(given["additionalProperties"])
            else:
                members = given["items"]["properties"]
                keys, values = self.schema(members["key"]), self.schema(members["value"])
            return {"type": "map", "keys": keys, "values": values, "optional": False}
        if kind == "object":
            members = given.get("properties", {})
            in_order = sorted(members.items(), key=lambda member: member[1].get(_INDEX, 0))
            fields = [{**self.schema(each), "field": name} for name, each in in_order]
            return {"type": "struct", "fields": fields, "optional": False}
        if kind == "array":
            items = self.schema(given["items"])
            return {"type": "array", "items": items, "optional": False}
        if "enum" in given and kind is None:
            kind = "string"
        if of in _CONNECT or kind in _PLAIN:
            return {"type": _CONNECT.get(str(of)) or _PLAIN[kind], "optional": False}
        raise DataError(f"Unsupported type {kind} of a JSON Schema")

    def _union(self, branches: list[Any]) -> dict[str, Any]:
        others = [each for each in branches if each.get("type") != "null"]
        if len(others) != 1:
            raise DataError("A JSON Schema with several types for a value is not supported")
        found = self.schema(others[0])
        return dict(optional(found)) if len(branches) > 1 else found

    def _referred(self, reference: str) -> dict[str, Any]:
        if reference in self._open:
            raise DataError(f"{reference} contains itself, which Connect's schemas cannot")
        self._open.append(reference)
        try:
            name, _, path = reference.partition("#")
            found = self._named[name] if name else self._document
            for part in filter(None, path.split("/")):
                found = found[part]
            return self.schema(found)
        finally:
            self._open.pop()


def _objects(schema: Schema, payload: Any) -> Any:
    """Return a payload of JsonConverter as JsonSchemaConverter has it: a map whose keys are not text
    is a list of objects.
    """
    return _mapped(schema, payload, lambda pair: {"key": pair[0], "value": pair[1]})


def _pairs(schema: Schema, payload: Any) -> Any:
    """Return the opposite of ``_objects``."""
    return _mapped(schema, payload, lambda entry: [entry["key"], entry["value"]])


def _mapped(schema: Schema, payload: Any, entry: Any) -> Any:
    kind = schema["type"]
    if kind == "struct" and isinstance(payload, dict):
        fields = {field["field"]: field for field in schema["fields"]}
        return {n: _mapped(fields[n], v, entry) if n in fields else v for n, v in payload.items()}
    if kind == "array" and isinstance(payload, list):
        return [_mapped(schema["items"], each, entry) for each in payload]
    if kind == "map" and isinstance(payload, dict):
        return {key: _mapped(schema["values"], each, entry) for key, each in payload.items()}
    if kind == "map" and isinstance(payload, list):
        return [entry(each) for each in payload]
    return payload
