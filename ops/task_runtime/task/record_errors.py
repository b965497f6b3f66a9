"""Handling of failed records by ``errors.*``: retries, a log line, a dead letter, the task's failure.

Source: ``RetryWithToleranceOperator``, ``LogReporter`` and ``DeadLetterQueueReporter`` (KIP-298).
As there, a record is logged and sent to the dead letter topic whether or not it is tolerated; and
conversions and transformations are handled, not what a plugin itself does in ``poll``, ``put`` or
``process``.
"""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeVar

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.connector import RetriableError
from connectctl.ops.task_runtime.spi.error_meter import ErrorMeter
from connectctl.ops.task_runtime.spi.error_settings import DLQ, ErrorSettings
from connectctl.ops.task_runtime.spi.sink import SinkRecord
from connectctl.ops.task_runtime.spi.sink_meter import SinkMeter
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord
from connectctl.ops.task_runtime.task.error_originals import ConsumedRecord, Original, reason

T = TypeVar("T")
HEADER_PREFIX = "__connect.errors."
SINK_TASK = "org.apache.kafka.connect.sink.SinkTask"
FIRST_DELAY_MS = 300


class Stage(StrEnum):
    """``Stage``: the operation in which the record failed."""

    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    TASK_PUT = "TASK_PUT"


@dataclass(frozen=True)
class RecordFailure:
    """``executing`` is the class that failed, by Kafka's name."""

    stage: Stage
    executing: str
    original: Original
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
class TransactionalLetters:
    """The ``DeadLetters`` of sources and transforms: ``taken`` with a batch, they are in the
    transaction of its offsets.
    """

    _waiting: list[ProducerRecord] = field(default_factory=list)

    def send(self, record: ProducerRecord) -> None:
        self._waiting.append(record)

    def taken(self) -> list[ProducerRecord]:
        found, self._waiting = self._waiting, []
        return found

    def flush(self) -> None:
        """The transaction has them."""

    def discard(self) -> None:
        self._waiting = []


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
    meter: ErrorMeter = field(default_factory=SinkMeter)
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.exceeded: ConnectctlError | None = None
        """The failure that is not tolerated; a task may have swallowed it."""

    def retried(self, operation: Callable[[], T]) -> T:
        """Return the result of ``operation``, which is repeated while it raises ``RetriableError``
        and ``errors.retry.timeout`` is not over.
        """
        began, attempt = self.now(), 0
        while True:
            try:
                return operation()
            except RetriableError:
                if not (pause := self._pause(attempt, began)):
                    raise
            self.meter.error_retries += 1
            attempt += 1
            self.sleep(pause)

    def _pause(self, attempt: int, began: float) -> float:
        """Return the seconds before the next attempt, 0 if there is none."""
        settings, delay = self.settings, FIRST_DELAY_MS << min(attempt, 32)
        if delay > settings.retry_delay_max_ms:
            delay = random.randrange(max(1, settings.retry_delay_max_ms)) + 1
        if settings.retry_timeout_ms < 0:
            return delay / 1000
        left = settings.retry_timeout_ms / 1000 - (self.now() - began)
        return max(0.0, min(delay / 1000, left))

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
        original = ConsumedRecord.of(record.original)
        self.failed(RecordFailure(Stage.TASK_PUT, SINK_TASK, original, error))

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
        return ConnectctlError(
            f"Tolerance exceeded in error handler: {failure.stage} failed for the record of "
            f"{failure.original.position}",
            why=reason(failure.error),
            next_step=f"Correct the {_part(failure.stage)}, or set errors.tolerance=all and "
            f"{DLQ}topic.name.",
            code="record-error",
        )

    def _line(self, failure: RecordFailure) -> str:
        """``LogReporter.message`` with the error, in one line."""
        where = failure.original.logged if self.settings.log_records else ""
        doing = f"Executing stage '{failure.stage}' with class '{failure.executing}'{where}."
        return (
            f"Error encountered in task {self.connector}-{self.task}. {doing} "
            f"{reason(failure.error)}"
        )

    def _dead_letter(self, topic: str, failure: RecordFailure) -> ProducerRecord:
        letter = failure.original.dead_letter(topic)
        if not self.settings.context_headers:
            return letter
        context = [
            (f"{HEADER_PREFIX}{name}", value.encode(errors="surrogatepass"))
            for name, value in self._context(failure).items()
        ]
        return ProducerRecord(
            topic,
            letter.key,
            letter.value,
            headers=[*letter.headers, *context],
            timestamp=letter.timestamp,
        )

    def _context(self, failure: RecordFailure) -> dict[str, str]:
        """``DeadLetterQueueReporter.populateContextHeaders``, in its order."""
        error = failure.error
        kind = type(error)
        return {
            **failure.original.context,
            "connector.name": self.connector,
            "task.id": str(self.task),
            "stage": str(failure.stage),
            "class.name": failure.executing,
            "exception.class.name": f"{kind.__module__}.{kind.__qualname__}",
            "exception.message": str(error),
            "exception.stacktrace": "".join(traceback.format_exception(error)),
        }


def _part(stage: Stage) -> str:
    return "transformation" if stage is Stage.TRANSFORMATION else "converter"
