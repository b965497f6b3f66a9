"""From polled records to messages: transformations, converters, and ``errors.*`` for records that
fail in them (``AbstractWorkerSourceTask.sendRecords``).

Unlike in Connect, records that are left out advance the offsets: they are not polled again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from connectctl.ops.task_runtime.spi.connector import Batch, SourceRecord
from connectctl.ops.task_runtime.spi.converters import Converters, converter_class
from connectctl.ops.task_runtime.spi.error_settings import error_settings
from connectctl.ops.task_runtime.spi.metrics import TaskMeter
from connectctl.ops.task_runtime.spi.schema import schema_of
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord, RecordLists
from connectctl.ops.task_runtime.task.error_originals import PolledRecord
from connectctl.ops.task_runtime.task.record_buffer import ForbiddenTopic, RecordSerializer
from connectctl.ops.task_runtime.task.record_errors import (
    RecordErrors,
    RecordFailure,
    Stage,
    TransactionalLetters,
)
from connectctl.ops.task_runtime.transforms.chain import (
    TransformationChain,
    transformation_chain,
)

PARTS = ("key", "value", "header")


@dataclass(frozen=True)
class Converted:
    """The messages of a batch. ``numbers`` are those of the polled records that became ``records``;
    None if each became one, in the order of the batch or of ``bulks``. ``letters`` are dead
    letters, and ``dropped`` the number of records that are left out.
    """

    records: Sequence[ProducerRecord]
    bulks: Sequence[RecordLists] = ()
    numbers: Sequence[int] | None = None
    letters: Sequence[ProducerRecord] = ()
    dropped: int = 0


@dataclass
class SourceConversion:
    """``errors`` writes to ``letters``. Without ``chain``, a batch is converted at once; record by
    record only where one of them fails.
    """

    serializer: RecordSerializer
    errors: RecordErrors
    letters: TransactionalLetters
    meter: TaskMeter
    chain: TransformationChain | None = None
    classes: Mapping[str, str] = field(default_factory=dict)
    """Java's classes of the converters, by key, value and header."""

    def of(self, batch: Batch) -> Converted:
        """Return the messages of ``batch``. Raises ``ConnectctlError`` for one that fails and that
        ``errors.tolerance`` does not let pass.
        """
        if self.chain is None:
            try:
                return Converted(*self.serializer.of(batch))
            except Exception:  # noqa: BLE001  # whatever a converter raises: by record below
                pass
        made: list[ProducerRecord] = []
        numbers: list[int] = []
        polled = _singly(batch)
        for number, record in enumerate(polled):
            one = self._one(record)
            if one is not None:
                made.append(one)
                numbers.append(number)
        return Converted(made, (), numbers, self.letters.taken(), len(polled) - len(made))

    def _one(self, record: SourceRecord) -> ProducerRecord | None:
        """Return the message for ``record``; None if it is left out."""
        self._executing = Stage.TRANSFORMATION, ""
        try:
            found = self.errors.retried(lambda: self._message(record))
        except ForbiddenTopic:
            raise
        except Exception as e:  # noqa: BLE001  # whatever a converter raises
            stage, executing = self._executing
            self.errors.failed(RecordFailure(stage, executing, PolledRecord(record), e))
            # A dead letter is settled with its transaction, like any record that is written.
            self.meter.settled += self.errors.settings.topic is None
            return None
        if found is None:
            self.meter.filtered += 1
            self.meter.settled += 1
        return found

    def _message(self, record: SourceRecord) -> ProducerRecord | None:
        changed = record
        if self.chain is not None:
            changed = self.chain.apply(record, self._transforming)
        return None if changed is None else self.serializer.one(changed, self._converting)

    def _transforming(self, name: str) -> None:
        self._executing = Stage.TRANSFORMATION, name

    def _converting(self, part: str) -> None:
        self._executing = Stage(f"{part.upper()}_CONVERTER"), self.classes.get(part, part)


def source_conversion(
    configs: Mapping[str, str],
    made: Converters,
    task: int,
    forbidden: str,
    meter: TaskMeter,
    log: Callable[[str], None] = lambda line: None,
) -> SourceConversion:
    """Return the conversion of a task of the connector with ``configs``, whose converters are
    ``made``.
    """
    letters = TransactionalLetters()
    return SourceConversion(
        RecordSerializer(made, forbidden),
        RecordErrors(error_settings(configs), configs.get("name", ""), task, letters, log, meter),
        letters,
        meter,
        transformation_chain(configs),
        {part: converter_class(configs, f"{part}.converter") for part in PARTS},
    )


def _singly(batch: Batch) -> Sequence[SourceRecord]:
    """Return the records one by one. Values in bulk have the schema of their type, as those of
    Java's sources; the last one has the offset of all.
    """
    if isinstance(batch, Sequence):
        return batch
    last = len(batch) - 1
    return [
        SourceRecord(
            batch.source_partition,
            batch.source_offset if number == last else None,
            batch.topic,
            value,
            value_schema=batch.value_schema or schema_of(value),
        )
        for number, value in enumerate(batch.values)
    ]
