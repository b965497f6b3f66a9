"""Converts a transform's output to batches of a transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord, TransactionBatch
from connectctl.ops.task_runtime.spi.transform import Record, check_columns


@dataclass(frozen=True)
class OutputSettings:
    """The target of records: ``topic``, or if it is None the topic and partition that each record
    names. ``is_input`` refuses a topic that the transform reads: it must not read its own output.
    """

    topic: str | None
    is_input: Callable[[str], bool] = lambda topic: False
    columnar: bool = False
    """True if all output is columns for ``topic``, which are kept as columns."""

    def batch(self, made: Any) -> TransactionBatch:
        """Return ``made`` as a part of a transaction. Raises ``ConnectctlError`` for anything but
        records.
        """
        if self.columnar and self.topic is not None:
            # which loads pyarrow
            from connectctl.ops.task_runtime.task.transform_columns import column_batches

            return TransactionBatch(record_batches=column_batches(self.topic, made), more=True)
        return TransactionBatch(self.records(made), more=True)

    def records(self, made: Any) -> list[ProducerRecord]:
        """Return the records in ``made``. Raises ``ConnectctlError`` for anything but records."""
        if made is None:
            return []
        if hasattr(made, "to_pylist"):  # Arrow
            return [self._of_row(row) for row in _rows(made)]
        if hasattr(made, "to_dict") and hasattr(made, "columns"):  # pandas
            import pyarrow as pa

            return [
                self._of_row(row) for row in _rows(pa.Table.from_pandas(made, preserve_index=False))
            ]
        if isinstance(made, Record):
            return [self._of_record(made)]
        found: list[ProducerRecord] = []
        for each in _parts(made):
            found += [self._of_record(each)] if isinstance(each, Record) else self.records(each)
        return found

    def _of_row(self, row: Mapping[str, Any]) -> ProducerRecord:
        partition, when = row.get("partition"), row.get("timestamp")
        provided = row.get("headers")
        headers = (
            [(each["key"], each["value"]) for each in provided] if provided is not None else ()
        )
        return self._record(
            row.get("topic"), partition, row.get("key"), row["value"], headers, when
        )

    def _of_record(self, given: Record) -> ProducerRecord:
        return self._record(
            given.topic, given.partition, given.key, given.value, given.headers, given.timestamp
        )

    def _record(
        self,
        topic: str | None,
        partition: int | None,
        key: Any,
        value: Any,
        headers: Any,
        when: int | None,
    ) -> ProducerRecord:
        # a record that was read and is passed on names the topic that it was read from
        if self.topic is not None:
            topic, partition = self.topic, None
        elif topic is None:
            raise ConnectctlError(
                "The transform returned a record without a topic",
                next_step="Set topic in the job's config, or in each record.",
            )
        elif self.is_input(topic):
            raise ConnectctlError(
                f"The transform returned a record for {topic}, which it reads",
                why="it would read its own output in an endless loop",
                next_step="Set topic in the job's config, or in each record.",
            )
        sent = _bytes("key", key), _bytes("value", value)
        return ProducerRecord(topic, *sent, _whole(partition), tuple(headers), _whole(when))


def _parts(made: Any) -> Iterable[Any]:
    if isinstance(made, str | bytes | Mapping) or not isinstance(made, Iterable):
        raise ConnectctlError(
            f"The transform returned {type(made).__name__}, which is not a record",
            next_step="Return Record objects, a pyarrow.Table or a pandas.DataFrame.",
        )
    return made


def _rows(table: Any) -> list[dict[str, Any]]:
    check_columns(table)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _whole(number: Any) -> int | None:
    return None if number is None else int(number)


def _bytes(name: str, value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise ConnectctlError(
        f"The {name} of a record is {type(value).__name__}, and not bytes or text"
    )
