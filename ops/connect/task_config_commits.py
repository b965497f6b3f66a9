"""The task configurations that a starting worker reads, which depend on the order of the config
topic.

A worker reads the whole topic when it starts. ``KafkaConfigBackingStore.processTasksCommitRecord``
discards a commit whose connector it has not read yet, and with it the preceding task
configurations: it assumes that the connector was deleted. Identical ``PUT /connectors/X/config``
requests write ``connector-X`` again, but not the unchanged tasks, so that compaction can leave
``commit-X`` before ``connector-X`` (KAFKA-17719, KAFKA-17676). Running workers have the tasks in
memory and are not affected; restarted workers are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.connect.config_topic import COMMIT, CONNECTOR, TASK, read, task_of
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka.records import ConsumerRecord

_Decoded = tuple[str, Any, "ConsumerRecord"]

UNDER_WAY = 30.0
"""Seconds in which the tasks of a changed configuration may still follow it."""
TASK_CONFIGS_LOST = Rule("TASK010", Severity.ERROR)


@dataclass
class _Reading:
    """The state of one connector in a worker that has read the topic so far. Unknown offsets are
    -1.
    """

    config: Any = None
    first: int = -1
    offset: int = -1
    written: int | None = None
    commit: int = -1
    committed: Any = None
    tasks: int = 0
    accepted: bool = True
    waiting: set[int] = field(default_factory=set)

    def configure(self, value: Any, record: ConsumerRecord) -> None:
        """Read ``connector-X``; a tombstone deletes the connector."""
        if value is None:
            self.__init__()  # type: ignore[misc]  # all fields at their defaults
            return
        self.first = self.first if self.first >= 0 else record.offset
        self.config, self.offset, self.written = value, record.offset, record.timestamp

    def commit_tasks(self, value: Any, offset: int) -> None:
        """Read ``commit-X``, which accepts the tasks before it if the connector is known and none
        is missing.
        """
        if self.config is not None and value is None:
            return
        self.commit, self.committed = offset, self.config
        self.tasks = value["tasks"] if value is not None else 0
        self.accepted = self.config is not None and self.waiting.issuperset(range(self.tasks))
        self.waiting = set()


@dataclass(frozen=True)
class TaskConfigOrder:
    """A connector whose tasks a worker loses. ``lost``: at its next start; else once ``first`` is
    compacted away.

    ``commit`` is the offset of the commit of its ``tasks``, ``config`` that of its newest
    configuration, ``first`` that of the configuration before the commit, -1 if compaction has
    removed it. ``written`` is the time of that newest configuration, in milliseconds since the
    epoch, None if unknown.
    """

    name: str
    tasks: int
    commit: int
    config: int
    first: int
    written: int | None = field(default=None, compare=False)

    @property
    def lost(self) -> bool:
        """Return whether no configuration precedes the commit any longer."""
        return self.first < 0


def lost_task_configs(records: Iterable[ConsumerRecord], now: float) -> Iterator[TaskConfigOrder]:
    """Yield the connectors of a config topic whose tasks get lost, by name.

    ``records`` are all that the topic still has. ``now`` is in seconds since the epoch: the tasks
    of a configuration that has just changed may not be written yet.
    """
    ordered = list(_decoded(sorted(records, key=lambda record: record.offset)))
    readings = {
        name: item
        for name, item in _read(ordered).items()
        if item.config is not None and item.tasks
    }
    late = {name for name, item in readings.items() if item.accepted and item.offset > item.commit}
    # Compaction leaves the newest record of each key.
    newest = {item[0]: item for item in ordered if _name_of(item[0]) in late} if late else {}
    compacted = _read(sorted(newest.values(), key=lambda item: item[2].offset))
    for name, reading in sorted(readings.items()):
        of_it = (name, reading.tasks, reading.commit, reading.offset)
        if not reading.accepted:
            yield TaskConfigOrder(*of_it, -1, reading.written)
        elif name in late and not compacted[name].accepted and not _under_way(reading, now):
            yield TaskConfigOrder(*of_it, reading.first, reading.written)


def _name_of(key: str) -> str:
    if key.startswith(TASK):
        return key.removeprefix(TASK).rpartition("-")[0]
    return key.removeprefix(CONNECTOR if key.startswith(CONNECTOR) else COMMIT)


def _decoded(records: Iterable[ConsumerRecord]) -> Iterator[_Decoded]:
    """Yield keys and values that the order of commits depends on; of a task configuration only
    whether it exists.

    ``config_topic.parse`` reports ignored records, so that they are not reported here.
    """
    for record in records:
        with suppress(ValueError):
            raw = record.key or b""
            if raw.startswith(TASK.encode()):
                yield raw.decode(), (record.value or b"").startswith(b"{"), record
            elif raw.startswith((CONNECTOR.encode(), COMMIT.encode())):
                yield *read(record), record


def _read(records: Iterable[_Decoded]) -> dict[str, _Reading]:
    found: dict[str, _Reading] = {}
    for key, value, record in records:
        if key.startswith(CONNECTOR):
            found.setdefault(key.removeprefix(CONNECTOR), _Reading()).configure(value, record)
        elif key.startswith(COMMIT):
            found.setdefault(key.removeprefix(COMMIT), _Reading()).commit_tasks(
                value, record.offset
            )
        elif value and (task := task_of(key)) is not None:
            found.setdefault(task[0], _Reading()).waiting.add(task[1])
    return found


def _under_way(reading: _Reading, now: float) -> bool:
    """Return whether the newest configuration differs from that of the tasks and is so new that its
    tasks may follow.
    """
    if reading.written is None or abs(now - reading.written / 1000) > UNDER_WAY:
        return False
    return bool(reading.committed != reading.config)


def task_configs_lost(order: TaskConfigOrder, topic: str) -> Finding:
    where = (
        f"in {topic} its configuration (offset {order.config}) follows the commit of its "
        f"{order.tasks} tasks"
    )
    if order.lost:
        message = (
            f"A worker that starts has no task configurations of it: {where} (offset "
            f"{order.commit})."
        )
    else:
        message = (
            "After the next compaction, workers that start have no task configurations of it: "
            f"{where} (offset {order.commit}); only an earlier copy (offset {order.first}), which "
            "compaction removes, precedes it."
        )
    hint = f"Make it publish its tasks again: connectctl connectors cure {order.name}"
    since = None if order.written is None else order.written / 1000
    return TASK_CONFIGS_LOST.found(order.name, message, hint, since=since)
