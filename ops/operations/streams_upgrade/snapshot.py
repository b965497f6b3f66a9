"""The input of the Streams planner: instances, consumer group, transactional ids and brokers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from connectctl.ops.kafka.consumer_group import GROUP_AWARE, ClientGroup
from connectctl.ops.kafka.streams_eos import ProducerModel, model_of_id, model_of_value


@dataclass(frozen=True)
class Instance:
    """An instance of the application. ``configured`` is its driver's ``processing.guarantee``, None
    if unknown.

    ``obstacle``: why it could not be changed. ``change_descriptions``: how its driver sets each
    value.
    """

    address: str
    configured: str | None = None
    source: str = ""
    obstacle: str | None = None
    by_hand: bool = False
    change_descriptions: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> ProducerModel | None:
        """The producer model of its property."""
        return model_of_value(self.configured)


@dataclass(frozen=True)
class TransactionalId:
    """A transactional id of the application, and whether its transaction is open."""

    id: str
    open: bool = False


@dataclass(frozen=True)
class ApplicationSnapshot:
    """A Streams application. ``old_brokers``: brokers that cannot check a member's generation, with
    what they support.

    ``lag``: its consumer lag in records, None if it has committed nothing. ``unseen``: what could
    not be read.
    """

    application: str
    group: ClientGroup
    instances: tuple[Instance, ...]
    ids: tuple[TransactionalId, ...] = ()
    old_brokers: tuple[str, ...] = ()
    lag: int | None = None
    unseen: tuple[str, ...] = ()

    @property
    def protocols(self) -> frozenset[int]:
        """The Streams protocol versions that its members report; empty if none reports one."""
        return frozenset(m.streams.protocol for m in self.group.members if m.streams)

    @property
    def processes(self) -> frozenset[str]:
        """The processes in the group that members report."""
        return frozenset(m.streams.process for m in self.group.members if m.streams)

    @property
    def all_streams(self) -> bool:
        """Whether every member reports its Kafka Streams protocol and process."""
        return bool(self.group.members) and all(m.streams for m in self.group.members)

    @property
    def group_aware(self) -> bool:
        """Whether every member verifiably commits with its generation: Streams 2.6 or newer."""
        return self.all_streams and min(self.protocols) >= GROUP_AWARE

    def ids_of(self, kind: ProducerModel) -> tuple[TransactionalId, ...]:
        """Its transactional ids of one producer model."""
        return tuple(known for known in self.ids if model_of_id(self.application, known.id) is kind)

    def digest(self) -> str:
        """The digest of what a plan depends on: instances, their configured values, protocol
        versions.
        """
        depends = [
            self.application,
            [[i.address, i.configured] for i in self.instances],
            sorted(self.protocols),
        ]
        return hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:16]
