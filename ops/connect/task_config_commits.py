"""Whether a worker that starts would have the task configurations of each connector, by the order of the config topic.

A worker reads the whole topic when it starts. ``KafkaConfigBackingStore.processTasksCommitRecord`` throws a commit away
whose connector it has not read yet, and with it the task configurations before: it takes the connector for deleted.
Identical ``PUT /connectors/X/config`` write ``connector-X`` again and tasks that did not change not, so that compaction can
leave ``commit-X`` before ``connector-X`` (KAFKA-17719, KAFKA-17676). Workers that run have the tasks in memory and notice
nothing; what is restarted does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.config_topic import COMMIT, CONNECTOR, TASK, read, task_of
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import ConsumerRecord

_Decoded = tuple[str, Any, "ConsumerRecord"]

UNDER_WAY = 30.0
"""Seconds in which a changed configuration may still be followed by the tasks that it brings about."""
TASK_CONFIGS_LOST = Rule("TASK010", Severity.ERROR)


@dataclass
class _Reading:
    """What a worker that reads the topic from its beginning has of one connector so far. Offsets are -1 for none."""

    config: Any = None
    first: int = -1
    at: int = -1
    written: int | None = None
    commit: int = -1
    committed: Any = None
    tasks: int = 0
    taken: bool = True
    waiting: set[int] = field(default_factory=set)

    def configure(self, value: Any, record: ConsumerRecord) -> None:
        """``connector-X``; a tombstone deletes it."""
        if value is None:
            self.__init__()  # type: ignore[misc]  # all fields at their defaults
            return
        self.first = self.first if self.first >= 0 else record.offset
        self.config, self.at, self.written = value, record.offset, record.timestamp

    def commit_tasks(self, value: Any, offset: int) -> None:
        """``commit-X``: takes the task configurations before it, unless the connector is not known or one is missing."""
        if self.config is not None and value is None:
            return
        self.commit, self.committed = offset, self.config
        self.tasks = value["tasks"] if value is not None else 0
        self.taken = self.config is not None and self.waiting.issuperset(range(self.tasks))
        self.waiting = set()


@dataclass(frozen=True)
class TaskConfigOrder:
    """A connector whose tasks a worker loses. ``lost``: at its next start; else once ``first`` is compacted away.

    ``commit`` is the offset of the commit of its ``tasks``, ``config`` that of its newest configuration, ``first`` that of
    the configuration before the commit, -1 where compaction has removed it.
    """

    name: str
    tasks: int
    commit: int
    config: int
    first: int

    @property
    def lost(self) -> bool:
        """Whether no configuration is left before the commit."""
        return self.first < 0


def endangered(records: Iterable[ConsumerRecord], now: float) -> Iterator[TaskConfigOrder]:
    """The connectors of a config topic whose tasks get lost, by name. ``records`` are all that the topic still has.

    ``now`` is in seconds since the epoch: behind a configuration that changed a moment ago the new tasks are still to come.
    """
    ordered = list(_decoded(sorted(records, key=lambda record: record.offset)))
    whole = {name: each for name, each in _read(ordered).items() if each.config is not None and each.tasks}
    late = {name for name, each in whole.items() if each.taken and each.at > each.commit}
    # What compaction leaves of these: the newest record of each key.
    newest = {each[0]: each for each in ordered if _name_of(each[0]) in late} if late else {}
    compacted = _read(sorted(newest.values(), key=lambda each: each[2].offset))
    for name, reading in sorted(whole.items()):
        if not reading.taken:
            yield TaskConfigOrder(name, reading.tasks, reading.commit, reading.at, -1)
        elif name in late and not compacted[name].taken and not _under_way(reading, now):
            yield TaskConfigOrder(name, reading.tasks, reading.commit, reading.at, reading.first)


def _name_of(key: str) -> str:
    if key.startswith(TASK):
        return key.removeprefix(TASK).rpartition("-")[0]
    return key.removeprefix(CONNECTOR if key.startswith(CONNECTOR) else COMMIT)


def _decoded(records: Iterable[ConsumerRecord]) -> Iterator[_Decoded]:
    """What the order of commits depends on; of a task's configuration only whether there is one.

    One that is ignored is reported by ``config_topic.parse``: it is not read once more here.
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
            found.setdefault(key.removeprefix(COMMIT), _Reading()).commit_tasks(value, record.offset)
        elif value and (task := task_of(key)) is not None:
            found.setdefault(task[0], _Reading()).waiting.add(task[1])
    return found


def _under_way(reading: _Reading, now: float) -> bool:
    """Whether the newest configuration is another than that of the tasks, and so new that its tasks may follow it."""
    if reading.written is None or abs(now - reading.written / 1000) > UNDER_WAY:
        return False
    return bool(reading.committed != reading.config)


def task_configs_lost(order: TaskConfigOrder, topic: str) -> Finding:
    where = f"in {topic} its configuration (offset {order.config}) follows the commit of its {order.tasks} tasks"
    if order.lost:
        message = f"A worker that starts has no task configurations of it: {where} (offset {order.commit})."
    else:
        message = (
            f"After the next compaction, workers that start have no task configurations of it: {where} (offset "
            f"{order.commit}); only an earlier copy (offset {order.first}), which compaction removes, precedes it."
        )
    hint = f"Make it publish its tasks again: connectctl connectors cure {order.name}"
    return TASK_CONFIGS_LOST.found(order.name, message, hint)
