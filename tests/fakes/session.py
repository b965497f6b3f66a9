"""A session whose cluster is made of fakes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from connectctl.cli.session import Session
from connectctl.ops.config.settings import Setting, Settings
from fakes.brokers import FakeBrokers
from fakes.coordinators import FakeCoordinators
from fakes.groupoffsets import FakeGroupOffsets
from fakes.kafkareads import FakeKafka
from fakes.locks import FakeLock
from fakes.rights import FakeRights
from fakes.workers import FakeWorkers


@dataclass
class FakeSession(Session):
    """``told`` are the settings by name; Kafka and the workers are ``reads`` and ``calls``."""

    told: dict[str, Any] = field(default_factory=dict)
    reads: FakeKafka = field(default_factory=FakeKafka)
    calls: FakeWorkers = field(default_factory=FakeWorkers)
    lock: FakeLock = field(default_factory=FakeLock)
    committed: FakeGroupOffsets = field(default_factory=FakeGroupOffsets)

    @cached_property
    def settings(self) -> Settings:
        given = {
            "bootstrap_servers": "fake:9092",
            "group_id": "connect",
            "timeout": 10,
            "lock": "cluster",
        } | self.told
        return Settings({name: Setting(value, "test") for name, value in given.items()}, "prod")

    @cached_property
    def cluster_lock(self) -> Any:
        return super().cluster_lock if self.told.get("lock", "cluster") != "cluster" else self.lock

    @cached_property
    def kafka(self) -> Any:
        return self.reads

    @cached_property
    def group_offsets(self) -> Any:
        return self.committed

    @cached_property
    def own_rights(self) -> Any:
        return FakeRights(secured=False)

    @cached_property
    def transactions(self) -> Any:
        return FakeCoordinators()

    @cached_property
    def brokers(self) -> Any:
        return FakeBrokers()

    def connect(self, urls: tuple[str, ...]) -> Any:
        return self.calls
