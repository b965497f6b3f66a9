"""What a run says of its connector and tasks in the status topic, in Connect's format.

Source: ``KafkaStatusBackingStore``. As the workers', these records are no part of any transaction,
and can be out of date. Where workers live, what a run says is kept in a topic of its own, by keys
of its own: workers show whatever record of their status topic came last, whoever wrote it, and
nobody takes back what a run said that was killed. A task's status has its metrics with it, as one
more member of the object, which workers read past as they do past ``version`` where they are older
than that.
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
"""Before the keys in a topic of runs, which is thus never taken for the workers' status topic."""
FLUSH = 10.0
READ_PATIENCE = 10.0


def connector_key(name: str, prefix: str = "") -> bytes:
    """The key of a connector's status; ``prefix`` is ``RUN_PREFIX`` in a topic of runs."""
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
    """A status; ``worker`` is an address, ``generation`` the workers' count of their rebalances."""
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
    """A status in the topic. ``written_at`` is in seconds since the epoch; ``metrics`` are only in
    statuses of runs.
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
    """The newest statuses of the tasks of ``name`` by number; None stands for the connector
    itself.
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
    """The metrics that are numbers; None for a status without metrics. Workers do not look at
    them.
    """
    if not isinstance(metrics, dict):
        return None
    return {name: value for name, value in metrics.items() if type(value) in (int, float)}


class StatusWriter:
    """The statuses of one connector, written as ``worker``. A status that a broker refuses does not
    end a run.

    ``prefix`` is ``RUN_PREFIX`` where ``topic`` is one of runs. Nothing is written where there is
    no such topic.
    """

    def __init__(self, kafka: Kafka, topic: str, name: str, worker: str, prefix: str = ""):
        from confluent_kafka import Producer

        properties = kafka.properties(partitioner="murmur2_random", linger__ms=5)
        self._producer: Any = kafka.ask("open a producer", lambda: Producer(properties))
        self._topic, self._name, self._worker, self._prefix = topic, name, worker, prefix
        with suppress(BadInput):
            kafka.partitions(topic)  # waits for a broker that does not know a new topic yet
        image = kafka.image([topic], patience=READ_PATIENCE).get(topic)
        self._there = image is not None
        before = statuses_from(image.latest, name, prefix) if image else {}
        # No worker takes back what one of a later rebalance has said.
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
        """Forget the tasks from ``tasks`` on: there are no such any more."""
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
        """Wait a moment until all is written; what is not by then comes later, or never."""
        from confluent_kafka import KafkaException

        with suppress(KafkaException):
            self._producer.flush(FLUSH)
