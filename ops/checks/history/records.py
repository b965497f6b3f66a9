"""The retained records of the workers' topics in their order, as values for the rules of all areas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from connectctl.ops.connect import config_topic, status_topic
from connectctl.ops.connect.connector import Status
from connectctl.ops.connect.group_rounds import GroupRound
from connectctl.ops.connect.health import Part
from connectctl.ops.connect.source_keys import owners_of
from connectctl.ops.core.unseen import Unseen
from connectctl.ops.kafka.records import ConsumerRecord, KeyTimes
from connectctl.ops.kafka.rhythm import Rhythm

STARTING = 20.0
"""Seconds after a rebalance or a change in which workers start connectors and tasks, and report on
them.
"""


@dataclass(frozen=True, slots=True)
class StatusRecord:
    """A status that a worker wrote. ``state`` is None for a tombstone; ``at`` is in seconds since
    the epoch, None if the record has no time.

    ``generation`` is that of the group in which the worker wrote it.
    """

    part: Part
    state: str | None
    worker: str | None = None
    trace: str | None = None
    generation: int | None = None
    at: float | None = None
    offset: int = -1

    @property
    def status(self) -> Status | None:
        """Return it as the status of its part; None for a tombstone."""
        return None if self.state is None else Status(self.state, self.worker, self.trace)


@dataclass(frozen=True)
class ConfigRecord:
    """A record of the config topic. ``kind`` is its prefix (``config_topic.CONNECTOR`` …), ``task``
    is None but for a task configuration, ``raw`` is None for a tombstone.
    """

    kind: str
    connector: str
    task: int | None
    raw: bytes | None
    at: float | None
    offset: int

    @cached_property
    def value(self) -> Mapping[str, Any] | None:
        """Return the decoded value; None for a tombstone, and for one that workers ignore."""
        key = f"{self.kind}{self.connector}" + ("" if self.task is None else f"-{self.task}")
        with suppress(ValueError):
            return config_topic.read(ConsumerRecord(key.encode(), self.raw, 0, self.offset))[1]
        return None


@dataclass(frozen=True)
class History:
    """The retained records of the config and status topics, oldest first, and the times at which
    source offsets were written.

    Compaction removes older records of a key: what is not here may have happened nevertheless.
    ``offset_times`` are by connector and raw key of the offsets topics, in seconds since the epoch,
    the newest ``MOST`` of each, oldest first. ``config_read``: the config topic was read to its end.
    """

    statuses: Mapping[Part, tuple[StatusRecord, ...]] = field(default_factory=dict)
    configs: tuple[ConfigRecord, ...] = ()
    offset_times: Mapping[str, Mapping[bytes, tuple[float, ...]]] = field(default_factory=dict)
    rounds: tuple[GroupRound, ...] = ()
    """The generations of the group in the last hour by its coordinator, oldest first."""
    rhythms: Mapping[str, tuple[Rhythm, ...]] = field(default_factory=dict)
    """The rhythm of each source partition's offsets by connector, of topics read to their ends."""
    rhythms_of_topic: tuple[Rhythm, ...] = ()
    """Those in the workers' own offsets topic, if it was read to its end."""
    config_read: bool = False
    unseen: tuple[Unseen, ...] = ()

    def newest_status_at(self, connector: str, tasks: Iterable[int]) -> float | None:
        """Return when the newest status of any of the tasks was written, in seconds since the
        epoch; None if that is not retained.
        """
        newest = (self.statuses.get((connector, task), ())[-1:] for task in tasks)
        return max((s.at for found in newest for s in found if s.at is not None), default=None)

    @cached_property
    def by_connector(self) -> Mapping[str, tuple[ConfigRecord, ...]]:
        """Return the records of the config topic by connector, oldest first."""
        found: dict[str, list[ConfigRecord]] = {}
        for record in self.configs:
            found.setdefault(record.connector, []).append(record)
        return {name: tuple(records) for name, records in found.items()}


def status_records(records: Iterable[ConsumerRecord]) -> dict[Part, tuple[StatusRecord, ...]]:
    """Return the retained statuses of each part, oldest first. Records that are not Connect's are
    left out; ``status_topic.newest`` reports them.
    """
    found: dict[Part, list[StatusRecord]] = {}
    for part, record, value in status_topic.retained(records):
        found.setdefault(part, []).append(_status(part, record, value))
    return {part: tuple(statuses) for part, statuses in found.items()}


def _status(part: Part, record: ConsumerRecord, value: Mapping[str, Any] | None) -> StatusRecord:
    at = seconds(record)
    if value is None:
        return StatusRecord(part, None, at=at, offset=record.offset)
    return StatusRecord(
        part,
        value["state"],
        value.get("worker_id"),
        value.get("trace"),
        value.get("generation"),
        at,
        record.offset,
    )


def config_records(records: Iterable[ConsumerRecord]) -> tuple[ConfigRecord, ...]:
    """Return the records of the config topic, oldest first, without those that concern no
    connector.
    """
    found = []
    for record in sorted(records, key=lambda r: r.offset):
        subject = config_topic.subject_of((record.key or b"").decode(errors="replace"))
        if subject is not None:
            found.append(ConfigRecord(*subject, record.value, seconds(record), record.offset))
    return tuple(found)


def times_by_connector(topics: Iterable[KeyTimes]) -> dict[str, dict[bytes, tuple[float, ...]]]:
    """Return the times of source offsets by connector and raw key, in seconds, oldest first."""
    found: dict[str, dict[bytes, tuple[float, ...]]] = {}
    for topic in topics:
        keys = list(topic.times)
        for key, owner in zip(keys, owners_of(keys), strict=True):
            times = tuple(at / 1000 for at in topic.times[key])
            by_key = found.setdefault(owner.decode(errors="replace"), {})
            by_key[key] = tuple(sorted([*by_key.get(key, ()), *times]))
    return found


def rhythms_by_connector(topics: Iterable[KeyTimes]) -> dict[str, tuple[Rhythm, ...]]:
    """Return the rhythms of source offsets by connector, of the topics that were read to their ends:
    what follows an open transaction may be newer.
    """
    found: dict[str, list[Rhythm]] = {}
    for topic in topics:
        keys = [] if topic.held_back else list(topic.rhythms)
        for key, owner in zip(keys, owners_of(keys), strict=True):
            found.setdefault(owner.decode(errors="replace"), []).append(topic.rhythms[key])
    return {name: tuple(rhythms) for name, rhythms in found.items()}


def seconds(record: ConsumerRecord) -> float | None:
    """Return the time of ``record`` in seconds since the epoch."""
    return None if record.timestamp is None else record.timestamp / 1000
