"""What the converters of a Schema Registry share: framing, subjects, which schema is written, and
the caches.

Wire format: a magic byte 0, the id of the schema in four bytes, the data. Source:
``AbstractKafkaSchemaSerDe`` and the converters of Confluent.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from connectctl.ops.clients.registry.client import Registered, Registry, one_line
from connectctl.ops.clients.registry.settings import client_settings, flag
from connectctl.ops.config.prefixed import full_name
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.spi.converter import Converter
from connectctl.ops.task_runtime.spi.json_payloads import members_of
from connectctl.ops.task_runtime.spi.json_schemas import value_of
from connectctl.ops.task_runtime.spi.schema import DataError, Schema, SchemaAndValue, schema_of

MAGIC, HEADER = b"\x00", 5
_STRATEGIES = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")
_MOST = 1000
"""Schemas of records that are kept; a source whose records each have a schema of their own gets
new ones.
"""


@dataclass(frozen=True)
class Format:
    """A schema of the registry, ready for use: ``schema`` is Connect's, ``parsed`` the format's."""

    schema: Schema
    parsed: Any
    id: int = 0


class RegistryConverter(Converter):
    """``kind`` is the registry's name of the format. A registry is asked once for each schema."""

    kind: str

    def configure(self, configs: Mapping[str, str], *, is_key: bool) -> None:
        client_settings(configs)
        self.configs = configs
        self._part = "key" if is_key else "value"
        self._registers = flag(configs, "auto.register.schemas", True)
        self._latest = flag(configs, "use.latest.version", False)
        self._normalize = flag(configs, "normalize.schemas", False)
        name = f"{self._part}.subject.name.strategy"
        self._strategy = configs.get(name, _STRATEGIES[0]).rpartition(".")[2]
        if self._strategy not in _STRATEGIES:
            raise BadInput(
                f"Unsupported {full_name(configs, name)} {configs[name]}",
                next_step=f"Use {', '.join(_STRATEGIES)}.",
            )
        self._registry: Registry | None = None
        self._read: dict[int, Format] = {}
        self._written: dict[tuple[int, str], tuple[Schema, Format]] = {}
        self._newest: dict[str, Format] = {}

    def from_connect_data(self, topic: str, schema: Schema | None, value: object) -> bytes | None:
        if value is None:
            return None
        form = self._form(topic, schema if schema is not None else schema_of(value))
        try:
            return MAGIC + form.id.to_bytes(4, "big") + self.encode(form, value)
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as e:
            raise DataError("The value does not match its schema", why=one_line(e)) from e

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return None, None
        if len(data) < HEADER or data[:1] != MAGIC:
            raise DataError(
                "Unknown magic byte: the record was not written by a serializer of Schema Registry",
                next_step="Use the converter that the records were written with.",
            )
        schema_id = int.from_bytes(data[1:HEADER], "big")
        form = self._read.get(schema_id)
        if form is None:
            form = self._read[schema_id] = self._parsed(self.registry.schema(schema_id))
        return self.decode(form, data[HEADER:])

    @property
    def registry(self) -> Registry:
        """Return the client, which connects at its first request."""
        if self._registry is None:
            self._registry = Registry(self.configs)
        return self._registry

    @abstractmethod
    def text_of(self, schema: Schema) -> str:
        """Return the text of the schema that values of ``schema`` are written with."""

    @abstractmethod
    def parse(self, registered: Registered) -> Format:
        """Return a schema of the registry. Raises ``DataError`` for what has no equal in Connect."""

    @abstractmethod
    def encode(self, form: Format, value: Any) -> bytes:
        """Return ``value`` without the header. What it raises for a value that does not match is
        ``DataError``, or one of Python's errors.
        """

    @abstractmethod
    def decode(self, form: Format, data: bytes) -> SchemaAndValue:
        """Return the schema and the value of data without the header."""

    def _parsed(self, registered: Registered) -> Format:
        if registered.kind != self.kind:
            raise DataError(
                f"The schema {registered.id} of the registry is of type {registered.kind}, "
                f"not {self.kind}"
            )
        return self.parse(registered)

    def _form(self, topic: str, schema: Schema | None) -> Format:
        if self._latest:
            return self._newest_of(self._subject(topic, schema))
        if schema is None:
            raise DataError(
                f"A dict or a list for {topic} has no schema",
                next_step="Return a SourceRecord with value_schema, or set use.latest.version to "
                "true to write it by the newest schema of the subject.",
            )
        known = self._written.get((id(schema), topic))
        if known is not None:
            return known[1]
        subject, text = self._subject(topic, schema), self.text_of(schema)
        write = self.registry.register if self._registers else self.registry.lookup
        schema_id = write(subject, self.kind, text, normalize=self._normalize)
        form = self.parse(Registered(schema_id, self.kind, text, {}))
        form = replace(form, schema=schema)
        if len(self._written) >= _MOST:
            self._written.clear()
        self._written[id(schema), topic] = schema, form  # which keeps its id from another schema
        return form

    def _newest_of(self, subject: str) -> Format:
        if subject not in self._newest:
            self._newest[subject] = self._parsed(self.registry.latest(subject))
        return self._newest[subject]

    def _subject(self, topic: str, schema: Schema | None) -> str:
        if self._strategy == "TopicNameStrategy":
            return f"{topic}-{self._part}"
        name = (schema or {}).get("name")
        if not name:
            raise DataError(f"{self._strategy} needs a schema with a name, for {topic}")
        return str(name) if self._strategy == "RecordNameStrategy" else f"{topic}-{name}"


def or_default(schema: Schema, value: Any) -> Any:
    """Return ``value``, in place of a null the default. Raises ``DataError`` for a null that the
    schema does not allow.
    """
    if value is None and schema.get("default") is not None:
        return value_of(schema, schema["default"])
    if value is None and not schema.get("optional"):
        raise DataError("null for a field that is required and has no default value")
    return value


def struct_members(schema: Schema, value: Any) -> Iterable[tuple[str, Schema, Any]]:
    """Return the fields of a struct with their schemas and values. Raises ``DataError``."""
    try:
        return members_of(schema, value)
    except (TypeError, ValueError) as e:
        raise DataError("The value does not match its struct", why=str(e)) from e
