"""The records that fail, as they were read: what names them, and what their dead letters have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from connectctl.ops.connect.offset_rules import stored_form
from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.connector import SourceRecord
from connectctl.ops.task_runtime.spi.sink import TimestampType
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord

TIMESTAMP_TYPES = tuple(TimestampType)
"""By confluent-kafka's numbers."""


@dataclass(frozen=True)
class ConsumedRecord:
    """A record of a topic, as a sink or a transform read it."""

    topic: str | None
    partition: int | None
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    timestamp: int | None
    timestamp_type: TimestampType = TimestampType.CREATE_TIME

    @classmethod
    def of(cls, message: Any) -> Self:
        """Return the record of confluent-kafka's ``message``."""
        kind, timestamp = message.timestamp()
        return cls(
            message.topic(),
            message.partition(),
            message.offset(),
            message.key(),
            message.value(),
            message.headers() or (),
            timestamp if kind else None,
            TIMESTAMP_TYPES[kind],
        )

    @property
    def position(self) -> str:
        """Return where it was read."""
        return f"{self.topic}-{self.partition} at offset {self.offset}"

    @property
    def logged(self) -> str:
        """Return the same as ``errors.log.include.messages`` adds it to a line."""
        when = ""
        if self.timestamp is not None:
            when = f", timestamp={self.timestamp}, timestampType={self.timestamp_type}"
        at = f"topic='{self.topic}', partition={self.partition}, offset={self.offset}{when}"
        return f", where consumed record is {{{at}}}"

    @property
    def context(self) -> Mapping[str, str]:
        """Return the headers of a dead letter that tell where it was read."""
        return {
            "topic": str(self.topic),
            "partition": str(self.partition),
            "offset": str(self.offset),
        }

    def dead_letter(self, topic: str) -> ProducerRecord:
        """Return it as a record for ``topic``."""
        headers = list(self.headers)
        return ProducerRecord(
            topic, self.key, self.value, headers=headers, timestamp=self.timestamp
        )


@dataclass(frozen=True)
class PolledRecord:
    """``record`` is a source task's. It was never bytes: its dead letter has its key and value as
    text, or in JSON.
    """

    record: SourceRecord

    @property
    def position(self) -> str:
        return f"{self._partition} at {self._offset}"

    @property
    def logged(self) -> str:
        at = f"sourcePartition={self._partition}, sourceOffset={self._offset}"
        return f", where source record is {{{at}, topic='{self.record.topic}'}}"

    @property
    def context(self) -> Mapping[str, str]:
        return {
            "topic": self.record.topic,
            "source.partition": self._partition,
            "source.offset": self._offset,
        }

    def dead_letter(self, topic: str) -> ProducerRecord:
        record = self.record
        headers = [(name, _as_text(value)) for name, value in record.headers]
        return ProducerRecord(
            topic,
            _as_text(record.key),
            _as_text(record.value),
            headers=headers,
            timestamp=record.timestamp,
        )

    @property
    def _partition(self) -> str:
        return connect_json(stored_form(self.record.source_partition))

    @property
    def _offset(self) -> str:
        offset = self.record.source_offset
        return connect_json(None if offset is None else stored_form(offset))


Original = ConsumedRecord | PolledRecord
"""A record before conversion or transformation."""


def _as_text(value: Any) -> bytes | None:
    """Return bytes and text unchanged, else JSON; what JSON lacks is written as its ``str``."""
    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else connect_json(_jsonable(value))).encode(
        errors="surrogatepass"
    )


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _jsonable(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_jsonable(each) for each in value]
    return value if isinstance(value, str | int | float | None) else str(value)


def reason(error: Exception) -> str:
    """Return the error in one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, ConnectctlError) else f"{type(error).__name__}: {text}"
