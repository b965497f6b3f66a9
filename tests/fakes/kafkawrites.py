"""A Kafka cluster in memory that can be written, and edges that break at the n-th call, before or after its effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.kafka.records import ConsumerRecord
from fakes.kafkareads import FakeKafka


@dataclass
class FakeKafkaWrites(FakeKafka):
    """Keeps ``KafkaWrites``. ``transactions`` are the ids of those committed; ``now`` is the next record's time."""

    transactions: list[str] = field(default_factory=list)
    now: int = 1_000_000

    def transact(self, id_: str, records: Iterable[tuple[str, int, bytes, bytes | None]]) -> int:
        wanted = list(records)
        for topic, partition, _, _ in wanted:
            if topic not in self.records or not 0 <= partition < self.partitions.get(topic, 1):
                raise ConnectctlError(f"there is no {topic}-{partition}", code="_UNKNOWN_PARTITION")
        for topic, partition, key, value in wanted:
            self.append(topic, key, value, partition)
        self.transactions.append(id_)
        return len(wanted)

    def create_topic(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        if name not in self.records:
            self.records[name], self.partitions[name], self.config[name] = [], partitions, dict(config)

    def append(self, topic: str, key: bytes, value: bytes | None, partition: int = 0) -> None:
        """Write one record at the end."""
        log = self.records[topic]
        log.append(ConsumerRecord(key, value, partition, len(log), self.now))
        self.now += 1

    def live(self) -> dict[tuple[str, int, bytes | None], bytes]:
        """Every value that is there, by topic, partition and key."""
        newest = {(topic, r.partition, r.key): r.value for topic, log in self.records.items() for r in log}
        return {place: value for place, value in newest.items() if value is not None}


@dataclass
class Faults:
    """Makes call number ``at`` (from 1) fail, ``after`` its effect or before it, and ``for_ever`` all that follow it too."""

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
    """Any edge, every call of which goes through ``faults``; attributes that are no functions do not."""

    def __init__(self, inner: Any, faults: Faults):
        self._inner, self._faults = inner, faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found
        return lambda *args, **kwargs: self._faults.around(name, found, args, kwargs)
