"""Writes the statuses of a run's connector and tasks to a status topic, in Connect's format.

Source: ``KafkaStatusBackingStore``. As those of workers, these records are not part of any
transaction, and can be out of date. With live workers a run writes to a separate topic with
separate keys: workers show the last record of their status topic regardless of its producer, and
the statuses of a killed run are not corrected. The status of a task contains its metrics as an
additional field. Workers ignore it, as older workers ignore ``version``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.masking import masked
from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE
from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.connect.status_topic import CONNECTOR, TASK, newest
from connectctl.ops.core.errors import BadInput

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.kafka.records import ConsumerRecord

RUNNING, FAILED, STOPPED, UNASSIGNED = "RUNNING", "FAILED", "STOPPED", "UNASSIGNED"
RUN_PREFIX = "run-"
"""The prefix of keys in the status topic of runs, which distinguishes it from that of workers."""
FLUSH = 10.0
READ_PATIENCE = 10.0


def connector_key(name: str, prefix: str = "") -> bytes:
    """Return the key of a connector's status. ``prefix`` is ``RUN_PREFIX`` in the topic of runs."""
    return f"{prefix}{CONNECTOR}{name}".encode()


def task_key(name: str, task: int, prefix: str = "") -> bytes:
    return f"{prefix}{TASK}{name}-{task}".encode()


def value(
    state: str,
    worker: str,
    generation: int,
    trace: str | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> bytes:
    """Return a status. ``worker`` is an address, ``generation`` is the generation of the group."""
    found: dict[str, Any] = {
        "state": state,
        "trace": trace and masked(trace),
        "worker_id": worker,
        "generation": generation,
    }
    found |= {"version": None} | ({} if metrics is None else {"metrics": dict(metrics)})
    return connect_json(found).encode()


@dataclass(frozen=True)
class TaskStatus:
    """A status in the topic. ``written_at`` is in seconds since the epoch. Only statuses of runs
    have ``metrics``.
    """

    state: str
    worker: str | None = None
    trace: str | None = None
    generation: int = 0
    written_at: float | None = None
    metrics: Mapping[str, Any] | None = None


def statuses_from(
    records: Iterable[ConsumerRecord], name: str, prefix: str = ""
) -> dict[int | None, TaskStatus]:
    """Return the newest statuses of the tasks of ``name`` by number. The key None is that of the
    connector.
    """
    found: dict[int | None, TaskStatus] = {}
    for (connector, number), (record, data) in newest(records, prefix).items():
        if connector == name:
            at = None if record.timestamp is None else record.timestamp / 1000
            worker, trace, metrics = (
                data.get("worker_id"),
                data.get("trace"),
                _numbers(data.get("metrics")),
            )
            status = TaskStatus(
                data["state"], worker, trace, int(data.get("generation") or 0), at, metrics
            )
            found[None if number == CONNECTOR_INSTANCE else number] = status
    return found


def _numbers(metrics: Any) -> dict[str, float] | None:
    """Return the metrics that are numbers; None for a status without metrics. Workers do not check
    them.
    """
    if not isinstance(metrics, dict):
        return None
    return {name: value for name, value in metrics.items() if type(value) in (int, float)}


class StatusWriter:
    """A writer of the statuses of one connector, as ``worker``. A status that a broker refuses does
    not end a run.

    ``prefix`` is ``RUN_PREFIX`` for the topic of runs. Nothing is written if ``topic`` does not
    exist.
    """

    def __init__(self, kafka: Kafka, topic: str, name: str, worker: str, prefix: str = ""):
        from confluent_kafka import Producer

        properties = kafka.properties(partitioner="murmur2_random", linger__ms=5)
        self._producer: Any = kafka.ask("open a producer", lambda: Producer(properties))
        self._topic, self._name, self._worker, self._prefix = topic, name, worker, prefix
        with suppress(BadInput):
            kafka.partitions(topic)  # waits until the brokers know a new topic
        image = kafka.image([topic], patience=READ_PATIENCE).get(topic)
        self._there = image is not None
        before = statuses_from(image.latest, name, prefix) if image else {}
        # A worker does not overwrite the status of a newer generation.
        self._generation = max((status.generation for status in before.values()), default=0)
        self._tasks = {part for part in before if part is not None}

    def connector(self, state: str, trace: str | None = None) -> None:
        self._write(
            connector_key(self._name, self._prefix),
            value(state, self._worker, self._generation, trace),
        )

    def task(
        self,
        task: int,
        state: str,
        trace: str | None = None,
        metrics: Mapping[str, Any] | None = None,
    ) -> None:
        self._tasks.add(task)
        self._write(
            task_key(self._name, task, self._prefix),
            value(state, self._worker, self._generation, trace, metrics),
        )

    def drop_other_tasks(self, tasks: int) -> None:
        """Delete the statuses of tasks from number ``tasks`` on, which do not exist any more."""
        for task in [task for task in self._tasks if task >= tasks]:
            self._tasks.discard(task)
            self._write(task_key(self._name, task, self._prefix), None)

    def _write(self, key: bytes, said_: bytes | None) -> None:
        from confluent_kafka import KafkaException

        if not self._there:
            return
        with suppress(BufferError, KafkaException):
            self._producer.poll(0)
            self._producer.produce(self._topic, said_, key)

    def flush(self) -> None:
        """Wait up to ``FLUSH`` seconds until all statuses are written."""
        from confluent_kafka import KafkaException

        with suppress(KafkaException):
            self._producer.flush(FLUSH)
