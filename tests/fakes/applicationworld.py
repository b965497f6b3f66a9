"""A stream application whose instances can be changed and restarted, in memory, beside a Connect
cluster.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from connectctl.ops.clients.protocols import ConfiguredValue, RestartMode
from connectctl.ops.kafka.brokers import BrokerVersion
from connectctl.ops.kafka.consumer_group import GROUP_AWARE, ClientGroup, GroupMember, StreamsMember
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fence_attempt import InitProducerIdResponse
from connectctl.ops.kafka.streams_eos import (
    PROPERTY,
    ProducerModel,
    model_of_id,
    model_of_value,
    process_of,
)
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Listing, Transaction
from connectctl.ops.kafka.visibility import Complete
from fakes.rollingworld import START, Breaking, Faults, RollingSession, RollingWorld

NAME = "totals"
NEW = 11


@dataclass
class FakeInstance:
    """An instance. ``file`` is its property, ``value`` what it runs with; ``next`` the protocol of
    the binaries in place.
    """

    file: str
    value: str
    protocol: int = NEW
    next: int = NEW
    process: str | None = None
    back_at: float | None = None
    stays_away: bool = False


@dataclass
class ApplicationWorld(RollingWorld):
    """``instances`` by address; ``fenced`` are the ids that were fenced, ``opened`` those with an
    open transaction.
    """

    instances: dict[str, FakeInstance] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    opened: set[str] = field(default_factory=set)
    fenced: list[str] = field(default_factory=list)
    servers: bool = True
    apis: Mapping[int, int] = field(default_factory=lambda: {28: 5, 9: 9})
    extra_members: int = 0
    stuck: bool = False
    _processes: int = 0

    @classmethod
    def running(
        cls,
        journal: Path,
        *values: str,
        protocol: int = NEW,
        faults: Faults | None = None,
        **more: Any,
    ) -> ApplicationWorld:
        """Instances x:1, x:2 … that run with these values, beside two workers."""
        world = cast("ApplicationWorld", cls.of(journal, "disabled", "disabled", **more))
        world.instances = {
            f"x:{n}": FakeInstance(value, value, protocol) for n, value in enumerate(values, 1)
        }
        for address in world.instances:
            world._come_up(address)
        world.faults = faults or Faults()
        return world

    def session(self) -> ApplicationSession:
        return ApplicationSession(world=self, told={"timeout": 10, "topics.config": "cfg"})

    # --------------------------------------------------------------------------------- what happens

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        for address, instance in self.instances.items():
            if instance.back_at is not None and self.clock >= instance.back_at:
                instance.back_at = None
                instance.value, instance.protocol = instance.file, instance.next
                self._come_up(address)

    def _come_up(self, address: str) -> None:
        instance = self.instances[address]
        self._processes += 1
        instance.process = str(uuid.UUID(int=self._processes))
        aware = model_of_value(instance.value) is ProducerModel.GROUP_AWARE
        if aware and any(
            other.process and other.protocol < GROUP_AWARE for other in self.instances.values()
        ):
            self.violations.append(
                f"{address} became group-aware while another cannot commit with its generation"
            )
        self.ids |= (
            {f"{NAME}-{instance.process}-1"} if aware else {f"{NAME}-0_{n}" for n in range(2)}
        )

    def restart_instance(self, address: str) -> None:
        away = [
            other
            for other, instance in self.instances.items()
            if instance.process is None and other != address
        ]
        if away:
            self.violations.append(f"{address} was restarted while {away} was away")
        instance = self.instances[address]
        if instance.back_at is not None:
            self.violations.append(f"{address} was restarted while it was starting")
        self.history.append((address, instance.file))
        instance.process = None
        instance.back_at = None if instance.stays_away else self.clock + START

    def living(self) -> list[FakeInstance]:
        return [instance for instance in self.instances.values() if instance.process]

    def values(self) -> dict[str, str]:
        return {
            address: instance.value
            for address, instance in self.instances.items()
            if instance.process
        }

    # ------------------------------------------------------------------------------------ the edges

    def client_group(self, group_id: str) -> ClientGroup:
        members = [
            GroupMember(
                f"{i.process}-consumer",
                f"{NAME}-{i.process}",
                "127.0.0.1",
                StreamsMember(i.process, i.protocol, address if self.servers else None),
                1,
            )
            for address, i in self.instances.items()
            if i.process
        ]
        members += [
            GroupMember(f"other-{n}", "other", "10.0.0.9") for n in range(self.extra_members)
        ]
        return ClientGroup(group_id, "Stable" if members else "Empty", "consumer", tuple(members))

    def listed(
        self,
        *,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        prefixes: Sequence[str] = (),
    ) -> Complete[tuple[Listing, ...]]:
        own = [id_ for id_ in sorted(self.ids) if id_.startswith(tuple(prefixes))]
        return Complete(
            tuple(
                Listing(i, "Ongoing" if i in self.opened else "Empty", n, 1)
                for n, i in enumerate(own)
            )
        )

    def describe(self, ids: Sequence[str]) -> dict[str, Any]:
        known = {
            i: Transaction(i, "Ongoing" if i in self.opened else "Empty", 1, 0, 10_000)
            for i in ids
            if i in self.ids
        }
        return known | super().describe([i for i in ids if i not in self.ids])

    def fence(
        self,
        timeouts: Mapping[str, int],
        patience: float,
        told: Callable[[str, InitProducerIdResponse], None],
    ) -> None:
        living = {instance.process: model_of_value(instance.value) for instance in self.living()}
        for id_ in timeouts:
            kind, process = model_of_id(NAME, id_), process_of(NAME, id_)
            used = living.get(process) is kind if process else kind in living.values()
            if used:
                self.violations.append(f"{id_} was fenced while it is used")
            self.fenced.append(id_)
            busy = id_ in self.opened  # its transaction is aborted first
            self.opened.discard(id_)
            told(id_, InitProducerIdResponse(Code.CONCURRENT_TRANSACTIONS if busy else Code.NONE))


@dataclass
class ApplicationDriver:
    """Keeps ``WorkerDriver`` for the instances of a world."""

    world: ApplicationWorld
    name: str = "fake"

    def restart_mode(self, worker: str) -> RestartMode:
        return RestartMode(by_hand=self.world.by_hand)

    def describe(self, worker: str, name: str, value: str) -> str:
        return f"set {name}={value} on {worker}, then restart it"

    def check(self, worker: str) -> str | None:
        return None if worker in self.world.instances else f"nobody knows {worker}"

    def configured(self, worker: str, name: str) -> ConfiguredValue | None:
        known = self.world.instances.get(worker)
        return (
            ConfiguredValue(known.file, f"file {worker}")
            if self.world.tells and name == PROPERTY and known
            else None
        )

    def change(self, worker: str, name: str, value: str) -> str | None:
        self.world.instances[worker].file = value
        return None

    def restart(self, worker: str) -> str | None:
        self.world.restart_instance(worker)
        return None


@dataclass
class ClientGroups:
    """Keeps ``GroupReads``."""

    world: ApplicationWorld

    def group(self, group_id: str) -> ClientGroup:
        return self.world.client_group(group_id)

    def committed(self, group_id: str) -> dict[TopicPartition, int]:
        return {
            TopicPartition("in", 0): 10 if self.world.stuck else int(10 + self.world.clock * 10)
        }

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {TopicPartition("in", 0): int(10 + self.world.clock * 10)}


@dataclass
class Versions:
    """Brokers that tell their versions."""

    world: ApplicationWorld

    def versions(self) -> dict[int, BrokerVersion]:
        return {
            1: BrokerVersion(
                1, (2, 4) if self.world.apis.get(28, 0) < 3 else (4, 3), self.world.apis
            )
        }


@dataclass
class ApplicationSession(RollingSession):
    """A session in an application's world."""

    @property
    def client_groups(self) -> Any:
        return Breaking(ClientGroups(self.its), self.its)

    @property
    def brokers(self) -> Any:
        return Versions(self.its)

    @property
    def its(self) -> ApplicationWorld:
        assert isinstance(self.world, ApplicationWorld)
        return self.world

    def application(self, name: str) -> Any:
        return Breaking(ApplicationDriver(self.its), self.its), list(self.its.instances)
