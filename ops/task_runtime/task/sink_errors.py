"""Handling of a sink's failed records by ``errors.*``: a log line, a dead letter, the task's
failure.

Source: ``RetryWithToleranceOperator``, ``LogReporter`` and ``DeadLetterQueueReporter`` (KIP-298).
As there, a record is logged and sent to the dead letter topic whether or not it is tolerated.
``errors.retry.*`` has no effect: no converter here fails in a way that passes.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.error_settings import DLQ, ErrorSettings
from connectctl.ops.task_runtime.spi.sink import SinkRecord, TimestampType
from connectctl.ops.task_runtime.spi.sink_meter import SinkMeter
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord

HEADER_PREFIX = "__connect.errors."
SINK_TASK = "org.apache.kafka.connect.sink.SinkTask"
TIMESTAMP_TYPES = tuple(TimestampType)
"""By confluent-kafka's numbers."""


class Stage(StrEnum):
    """``Stage``: the operation in which the record failed."""

    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    TASK_PUT = "TASK_PUT"


@dataclass(frozen=True)
class RecordFailure:
    """``message`` is confluent-kafka's; ``executing`` is the class that failed, by Kafka's name."""

    stage: Stage
    executing: str
    message: Any
    error: Exception


class DeadLetters(Protocol):
    """Writes to the dead letter topic."""

    def send(self, record: ProducerRecord) -> None:
        """Send ``record``, without waiting for it."""

    def flush(self) -> None:
        """Wait until all records are written. Raises ``ConnectctlError`` if one was not."""

    def discard(self) -> None:
        """Forget what is not written."""


@dataclass
class RecordErrors:
    """The handling of a task's failed records. ``log`` receives a line for each if
    ``errors.log.enable`` is true, ``meter`` counts them.
    """

    settings: ErrorSettings
    connector: str
    task: int
    dead_letters: DeadLetters | None = None
    log: Callable[[str], None] = lambda line: None
    meter: SinkMeter = field(default_factory=SinkMeter)

    def __post_init__(self) -> None:
        self.exceeded: ConnectctlError | None = None
        """The failure that is not tolerated; a task may have swallowed it."""

    def failed(self, failure: RecordFailure) -> None:
        """Report ``failure``. Raises ``ConnectctlError`` if it is not tolerated."""
        settings = self.settings
        self.meter.failures += 1
        if settings.log:
            self.meter.logged += 1
            self.log(self._line(failure))
        if settings.topic is not None and self.dead_letters is not None:
            self.meter.dead_letters += 1
            self.dead_letters.send(self._dead_letter(settings.topic, failure))
        if not settings.tolerate_all:
            self.exceeded = self._exceeded(failure)
            raise self.exceeded from failure.error
        self.meter.skipped += 1

    def report(self, record: SinkRecord, error: Exception) -> None:
        if record.original is None:
            hint = "Report the records that put was given."
            raise ConnectctlError(
                "Cannot report a record that was not read from a topic", next_step=hint
            )
        self.failed(RecordFailure(Stage.TASK_PUT, SINK_TASK, record.original, error))

    def flush(self) -> None:
        """Wait until all dead letters are written. Raises ``ConnectctlError`` if one was not."""
        if self.dead_letters is not None:
            self.dead_letters.flush()

    def discard(self) -> None:
        """Forget the failures of an attempt that is over: its records are read again."""
        self.exceeded = None
        if self.dead_letters is not None:
            self.dead_letters.discard()

    def _exceeded(self, failure: RecordFailure) -> ConnectctlError:
        message = failure.message
        partition = f"{message.topic()}-{message.partition()} at offset {message.offset()}"
        return ConnectctlError(
            f"Tolerance exceeded in error handler: {failure.stage} failed for the record of "
            f"{partition}",
            why=_reason(failure.error),
            next_step=f"Correct the converter, or set errors.tolerance=all and {DLQ}topic.name.",
            code="record-error",
        )

    def _line(self, failure: RecordFailure) -> str:
        """``LogReporter.message`` with the error, in one line."""
        partition = ""
        if self.settings.log_records:
            message = failure.message
            kind, timestamp = message.timestamp()
            when = f", timestamp={timestamp}, timestampType={TIMESTAMP_TYPES[kind]}" if kind else ""
            at = (
                f"topic='{message.topic()}', partition={message.partition()}, "
                f"offset={message.offset()}{when}"
            )
            partition = f", where consumed record is {{{at}}}"
        doing = f"Executing stage '{failure.stage}' with class '{failure.executing}'{partition}."
        return (
            f"Error encountered in task {self.connector}-{self.task}. {doing} "
            f"{_reason(failure.error)}"
        )

    def _dead_letter(self, topic: str, failure: RecordFailure) -> ProducerRecord:
        message = failure.message
        kind, timestamp = message.timestamp()
        headers = list(message.headers() or ())
        if self.settings.context_headers:
            context = self._context(failure)
            headers += [
                (f"{HEADER_PREFIX}{name}", value.encode()) for name, value in context.items()
            ]
        return ProducerRecord(
            topic,
            message.key(),
            message.value(),
            headers=headers,
            timestamp=timestamp if kind else None,
        )

    def _context(self, failure: RecordFailure) -> dict[str, str]:
        """``DeadLetterQueueReporter.populateContextHeaders``, in its order."""
        message, error = failure.message, failure.error
        kind = type(error)
        return {
            "topic": message.topic(),
            "partition": str(message.partition()),
            "offset": str(message.offset()),
            "connector.name": self.connector,
            "task.id": str(self.task),
            "stage": str(failure.stage),
            "class.name": failure.executing,
            "exception.class.name": f"{kind.__module__}.{kind.__qualname__}",
            "exception.message": str(error),
            "exception.stacktrace": "".join(traceback.format_exception(error)),
        }


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, ConnectctlError) else f"{type(error).__name__}: {text}"
