"""Columns of records: those of every record, and the fields of JSON objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.connectors.expression.columns import Row, plain_value
from connectctl.ops.task_runtime.spi.connector import Setting
from connectctl.ops.task_runtime.spi.converters import BYTES, JSON, SIMPLE, STRING
from connectctl.ops.task_runtime.spi.reading_converters import ReadingConverter, reading_converters
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
        "JsonConverter, and those of a registry, make a column of each field.",
        default="StringConverter",
    ),
    Setting(
        MISSING, "Value of a field that a record does not have: fail, or null.", default="fail"
    ),
)


def name_of(record: Record) -> str:
    """Return its topic, partition and offset as in ``orders-0@17``."""
    return f"{record.topic}-{record.partition}@{record.offset}"


class RowReader:
    """Reads the columns of a job's records. Raises ``BadInput`` for an unsupported converter.

    With ``writes_text`` the text of keys and values is written again, so that bytes that are not
    text are an error; else they only match as U+FFFD, and records keep their bytes.
    """

    def __init__(self, configs: Mapping[str, str], *, writes_text: bool = False):
        made = reading_converters(configs)
        self._key, self._value, self._writes_text = made.key, made.value, writes_text
        self._is_null = configs.get(MISSING, "fail") == "null"
        self.has_fields = made.value.name not in (STRING, BYTES, SIMPLE)
        self._is_json = made.value.name == JSON
        self.reads_bytes = BYTES in (made.key.name, made.value.name)

    def rows(self, records: Sequence[Record], names: Collection[str]) -> list[Row]:
        """Return the columns ``names`` of each record. Raises ``ConnectctlError`` that names a
        record that cannot be read.
        """
        return [self._row(record, names) for record in records]

    def fields(self, record: Record) -> Any:
        """Return the value of ``record`` as its converter reads it."""
        return self._read(self._value, record.value, "value", record)

    def _row(self, record: Record, names: Collection[str]) -> Row:
        # A value that is not JSON always fails, whatever columns the expressions use.
        fields = self.fields(record) if self.has_fields else None
        return {name: self._column(record, name, fields) for name in names}

    def _column(self, record: Record, name: str, fields: Any) -> Any:
        if name == "key":
            return plain_value(self._read(self._key, record.key, "key", record))
        if name == "value":
            if not self.has_fields:
                return self.fields(record)
            return _text(record.value) if self._is_json else plain_value(fields)
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
            f"The record {name_of(record)} has no field {name}",
            next_step=f'Correct the expression, or set {MISSING}: "null".',
        )

    def _read(
        self, converter: ReadingConverter, data: bytes | None, part: str, record: Record
    ) -> Any:
        replaced_before = converter.replaced.total()
        try:
            _, value = converter.read(record.topic or "", data)
        except ConnectctlError as e:
            raise _unreadable(part, record, e.why or e.what, e.next_step) from e
        if self._writes_text and converter.replaced.total() > replaced_before:
            why = "it is not text in the encoding of its converter, and Map would change its bytes"
            raise _unreadable(
                part, record, why, f"Filter such records before, or do not use {part}."
            )
        return value


def _unreadable(part: str, record: Record, why: str, next_step: str | None) -> ConnectctlError:
    what = f"Could not read the {part} of {name_of(record)}"
    return ConnectctlError(what, why=why, next_step=next_step)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
