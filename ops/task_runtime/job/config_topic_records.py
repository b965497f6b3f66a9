"""Reads and writes the records of a connector and its tasks in a config topic, in Connect's format.
Pure.

Source: ``KafkaConfigBackingStore``. A set of task configs is valid after its commit record. Tasks
may start after the next task count record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.masking import remember
from connectctl.ops.connect.config_topic import (
    COMMIT,
    CONNECTOR,
    FENCING,
    STARTED,
    TARGET,
    TASK,
    is_task_number,
    newest,
    target_state,
)
from connectctl.ops.connect.source_keys import connect_json

if TYPE_CHECKING:
    from connectctl.ops.connect.group_mark import GroupMark
    from connectctl.ops.kafka.records import ConsumerRecord

STOPPED = "STOPPED"
KeyValue = tuple[bytes, bytes]


@dataclass(frozen=True)
class ConfigTopicState:
    """The state of one connector in a config topic, with offsets that identify newer states.

    ``commit`` and ``fenced`` are the offsets of the newest commit record and task count record, -1
    without one. ``target_at`` is the offset of the target state.
    """

    config: Mapping[str, str] | None = None
    tasks: tuple[Mapping[str, str], ...] = ()
    task_count: int | None = None
    commit: int = -1
    fenced: int = -1
    committed_tasks: int = 0
    target: str = STARTED
    target_at: int = -1

    @property
    def transactional_ids(self) -> int:
        """The number of transactional ids that earlier tasks may still use."""
        return max(self.task_count or 0, self.committed_tasks)


def config_topic_state(records: Iterable[ConsumerRecord], name: str) -> ConfigTopicState:
    """Return the state of the connector ``name`` by ``records`` of a config topic, in any order."""
    found = newest(records, lambda key: _of(key, name))
    commit_at, commit = found.get(COMMIT + name, (-1, {}))
    fenced_at, fencing = found.get(FENCING + name, (-1, {}))
    target_at, target = found.get(TARGET + name, (-1, {}))
    _, config = found.get(CONNECTOR + name, (-1, {}))
    count = commit.get("tasks", 0)
    tasks = [found.get(f"{TASK}{name}-{n}", (-1, {}))[1].get("properties") for n in range(count)]
    for each in (config.get("properties"), *tasks):
        remember(each or {})
    return ConfigTopicState(
        config=config.get("properties"),
        tasks=tuple(t for t in tasks if t is not None) if all(t is not None for t in tasks) else (),
        task_count=fencing.get("task-count"),
        commit=commit_at,
        fenced=fenced_at,
        committed_tasks=count,
        target=target_state(target) if target else STARTED,
        target_at=target_at,
    )


def _of(key: str, name: str) -> bool:
    if key in (COMMIT + name, FENCING + name, TARGET + name, CONNECTOR + name):
        return True
    stem, _, number = key.rpartition("-")
    return stem == TASK + name and is_task_number(number)


def task_set(
    name: str,
    config: Mapping[str, str],
    tasks: Sequence[Mapping[str, str]],
    mark: GroupMark | None = None,
) -> list[KeyValue]:
    """Return the records of one transaction: the connector's configuration, its task configs, and
    their commit record with ``mark``.
    """
    found: list[tuple[str, dict[str, Any]]] = [(CONNECTOR + name, {"properties": dict(config)})]
    found += [(f"{TASK}{name}-{n}", {"properties": dict(task)}) for n, task in enumerate(tasks)]
    found.append((COMMIT + name, {"tasks": len(tasks), **(mark.members() if mark else {})}))
    return [(key.encode(), connect_json(value).encode()) for key, value in found]


def count_record(name: str, tasks: int) -> list[KeyValue]:
    """Return the task count record, which is written after zombie fencing of the tasks."""
    return [((FENCING + name).encode(), connect_json({"task-count": tasks}).encode())]


@dataclass(frozen=True)
class Generation:
    """One set of task configs in ``topic``, identified by the offset of its commit record.

    ``target_at`` is the offset of the STOPPED record of a take-over, None if the run wrote the set.
    ``read_to`` is the end of the topic at which the set was the newest, -1 if it was not read.
    """

    topic: str
    connector: str
    commit: int
    target_at: int | None = None
    read_to: int = field(default=-1, compare=False)

    @property
    def since(self) -> int:
        """The offset from which records show that the set is still the newest."""
        if self.target_at is not None:
            return max(self.target_at, 0)
        return max(self.commit, 0)

    def stale_because(self, records: Iterable[ConsumerRecord]) -> str | None:
        """Return the reason if the ``records`` from ``since`` show that the set is not the newest;
        None while it is.
        """
        now = config_topic_state(records, self.connector)
        if self.target_at is not None:
            if now.target_at > self.target_at and now.target != STOPPED:
                return (
                    f"{self.connector} was started on the Connect cluster (target state "
                    f"{now.target})"
                )
            if now.commit > self.commit and now.committed_tasks:
                return f"the workers have new task configurations of {self.connector}"
            return None
        if now.commit > self.commit:
            return f"the connector {self.connector} has already generated a new set of task configs"
        if now.fenced < self.commit:
            return (
                "no zombie fencing has completed for the current task configurations of "
                f"{self.connector}"
            )
        return None
