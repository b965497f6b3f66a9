"""A Kafka cluster in memory that can be written, and edges that break at the n-th call, before or
after its effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.kafka.records import ConsumerRecord, UnreadTail
from fakes.kafkareads import FakeKafka


@dataclass
class FakeKafkaWrites(FakeKafka):
    """Keeps ``KafkaWrites``. ``transactions`` are the ids of those committed; ``now`` is the next
    record's time.

    Offsets are each partition's own, and the marker at the end of a transaction takes one, too.
    """

    transactions: list[str] = field(default_factory=list)
    now: int = 1_000_000
    _ends: dict[tuple[str, int], int] = field(default_factory=dict)
    """Where partitions end that have a marker behind their last record."""
    _open: dict[str, list[tuple[str, ConsumerRecord]]] = field(default_factory=dict)

    def transact(self, id_: str, records: Iterable[tuple[str, int, bytes, bytes | None]]) -> int:
        wanted = list(records)
        for topic, partition, _, _ in wanted:
            if topic not in self.records or not 0 <= partition < self.partitions.get(topic, 1):
                raise ConnectctlError(f"there is no {topic}-{partition}", code="_UNKNOWN_PARTITION")
        self._abort(id_)
        for topic, partition, key, value in wanted:
            self.append(topic, key, value, partition)
        self._mark({(topic, partition) for topic, partition, _, _ in wanted})
        self.transactions.append(id_)
        return len(wanted)

    def leave_open(
        self, id_: str, topic: str, key: bytes, value: bytes, partition: int = 0
    ) -> None:
        """Write a record in a transaction of ``id_`` that stays open until the next one of that
        id.
        """
        self.append(topic, key, value, partition)
        self._open.setdefault(id_, []).append((topic, self.records[topic][-1]))

    def _abort(self, id_: str) -> None:
        left = self._open.pop(id_, [])
        for topic, record in left:
            self.records[topic].remove(record)
            self._ends[topic, record.partition] = max(
                self._end(topic, record.partition), record.offset + 1
            )
        self._mark({(topic, record.partition) for topic, record in left})

    def _mark(self, places: Collection[tuple[str, int]]) -> None:
        self._ends |= {place: self._end(*place) + 1 for place in places}

    def _end(self, topic: str, partition: int) -> int:
        last = next(
            (r.offset for r in reversed(self.records[topic]) if r.partition == partition), -1
        )
        return max(last + 1, self._ends.get((topic, partition), 0))

    def ends(self, topic: str) -> dict[int, int]:
        return {
            partition: max(end, self._end(topic, partition))
            for partition, end in super().ends(topic).items()
        }

    def held_back(self, topic: str) -> tuple[UnreadTail, ...]:
        stable: dict[int, int] = {}
        for record in (r for some in self._open.values() for where, r in some if where == topic):
            stable[record.partition] = min(
                record.offset, stable.get(record.partition, record.offset)
            )
        return tuple(
            UnreadTail(p, offset, self._end(topic, p)) for p, offset in sorted(stable.items())
        )

    def create_topic(
        self,
        name: str,
        partitions: int,
        replicas: int,
        config: Mapping[str, str],
        *,
        exactly: bool = False,
    ) -> None:
        if name not in self.records:
            self.records[name], self.partitions[name], self.config[name] = (
                [],
                partitions,
                dict(config),
            )

    def append(self, topic: str, key: bytes, value: bytes | None, partition: int = 0) -> None:
        """Write one record at the end."""
        log = self.records[topic]
        log.append(ConsumerRecord(key, value, partition, self._end(topic, partition), self.now))
        self.now += 1

    def live(self) -> dict[tuple[str, int, bytes | None], bytes]:
        """Every value that is there, by topic, partition and key."""
        newest = {
            (topic, r.partition, r.key): r.value for topic, log in self.records.items() for r in log
        }
        return {place: value for place, value in newest.items() if value is not None}


@dataclass
class Faults:
    """Makes call number ``at`` (from 1) fail, ``after`` its effect or before it, and ``for_ever``
    all that follow it too.
    """

    at: int = 0
    after: bool = False
    for_ever: bool = False
    calls: list[str] = field(default_factory=list)
    fired: str | None = None

    @property
    def count(self) -> int:
        """Calls so far."""
        return len(self.calls)

    def around(self, name: str, call: Any, args: Any, kwargs: Any) -> Any:
        """Make a call, or not."""
        self.calls.append(name)
        strikes = self.at and (self.count == self.at or (self.for_ever and self.count > self.at))
        if not strikes:
            return call(*args, **kwargs)
        self.fired = self.fired or name
        if self.after and self.count == self.at:
            call(*args, **kwargs)
        raise Unreachable(f"broken at call {self.count}, {name}")


class Breaking:
    """Any edge, every call of which goes through ``faults``; attributes that are no functions do
    not.
    """

    def __init__(self, inner: Any, faults: Faults):
        self._inner, self._faults = inner, faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found
        return lambda *args, **kwargs: self._faults.around(name, found, args, kwargs)
