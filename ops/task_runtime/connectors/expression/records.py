"""The columns of records: what every record has, and the fields of JSON objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.connectors.expression.columns import Row, plain_value
from connectctl.ops.task_runtime.spi.connector import Setting
from connectctl.ops.task_runtime.spi.converters import BYTES, JSON
from connectctl.ops.task_runtime.spi.reading_converters import Read, reading_converters
from connectctl.ops.task_runtime.spi.transform import Record

OF_RECORD = ("topic", "partition", "offset", "timestamp", "key", "value")
MISSING = "missing.fields"
SETTINGS = (
    Setting(
        "key.converter",
        "StringConverter or JsonConverter: how keys are read.",
        default="StringConverter",
    ),
    Setting(
        "value.converter",
        "JsonConverter makes a column of each field of a JSON object.",
        default="StringConverter",
    ),
    Setting(
        MISSING, "Value of a field that a record does not have: fail, or null.", default="fail"
    ),
)


def place(record: Record) -> str:
    """``orders-0@17``."""
    return f"{record.topic}-{record.partition}@{record.offset}"


class RowReader:
    """The columns of a job's records. Raises ``BadInput`` for an unsupported converter."""

    def __init__(self, configs: Mapping[str, str]):
        made = reading_converters(configs)
        self._key, self._value = made.key.read, made.value.read
        self._is_null = configs.get(MISSING, "fail") == "null"
        self.has_fields = made.value.name == JSON
        self.reads_bytes = BYTES in (made.key.name, made.value.name)

    def rows(self, records: Sequence[Record], names: Collection[str]) -> list[Row]:
        """The columns ``names`` of each record. Raises ``ConnectctlError`` with its place for one
        that cannot be read.
        """
        return [self._row(record, names) for record in records]

    def fields(self, record: Record) -> Any:
        """The JSON of its value, whatever it is."""
        return _read(self._value, record.value, "value", record)

    def _row(self, record: Record, names: Collection[str]) -> Row:
        # A value that is no JSON fails in any case: that must not depend on the record before it.
        fields = self.fields(record) if self.has_fields else None
        return {name: self._column(record, name, fields) for name in names}

    def _column(self, record: Record, name: str, fields: Any) -> Any:
        if name == "key":
            return plain_value(_read(self._key, record.key, "key", record))
        if name == "value":
            return _text(record.value) if self.has_fields else self.fields(record)
        if name in OF_RECORD:
            return getattr(record, name)
        if fields is None:  # a tombstone
            return None
        found = fields if isinstance(fields, dict) else {}
        if name not in found:
            name = name.removeprefix("value.")
        if name in found or self._is_null:
            return plain_value(found.get(name))
        raise ConnectctlError(
            f"The record {place(record)} has no field {name}",
            next_step=f'Correct the expression, or set {MISSING}: "null".',
        )


def _read(read: Read, data: bytes | None, part: str, record: Record) -> Any:
    try:
        return read(data)[0]
    except ConnectctlError as e:
        why = e.why or e.what
        raise ConnectctlError(
            f"Could not read the {part} of {place(record)}", why=why, next_step=e.next_step
        ) from e


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")
