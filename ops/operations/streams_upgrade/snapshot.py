"""What a planner may look at of a stream application: its instances, its group, its transactional ids, the brokers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from connectctl.ops.kafka.consumer_group import GROUP_AWARE, ClientGroup
from connectctl.ops.kafka.streams_eos import ProducerModel, model_of_id, model_of_value


@dataclass(frozen=True)
class Instance:
    """An instance of the application. ``configured`` is its driver's ``processing.guarantee``, None if unknown.

    ``obstacle``: why it could not be changed. ``change_descriptions``: how its driver sets each value.
    """

    address: str
    configured: str | None = None
    source: str = ""
    obstacle: str | None = None
    by_hand: bool = False
    change_descriptions: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> ProducerModel | None:
        """The kind of its producers, by its property."""
        return model_of_value(self.configured)


@dataclass(frozen=True)
class TransactionalId:
    """A transactional id of the application, and whether a transaction of it is open."""

    id: str
    open: bool = False


@dataclass(frozen=True)
class ApplicationSnapshot:
    """A stream application. ``old_brokers`` are those that cannot check a member's generation, with what they speak.

    ``lag`` is how many records wait for it, None where it has committed nothing yet. ``unseen`` is what was not seen.
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
        """The versions of Streams' protocol that its members know; empty where none of them tells."""
        return frozenset(m.streams.protocol for m in self.group.members if m.streams)

    @property
    def processes(self) -> frozenset[str]:
        """The processes in the group, as far as members tell theirs."""
        return frozenset(m.streams.process for m in self.group.members if m.streams)

    @property
    def all_streams(self) -> bool:
        """Whether every member says that it is Kafka Streams, and which."""
        return bool(self.group.members) and all(m.streams for m in self.group.members)

    @property
    def group_aware(self) -> bool:
        """Whether it is proven that every member commits with its generation: that it is Streams of 2.6 or newer."""
        return self.all_streams and min(self.protocols) >= GROUP_AWARE

    def ids_of(self, kind: ProducerModel) -> tuple[TransactionalId, ...]:
        """Its transactional ids of one kind."""
        return tuple(known for known in self.ids if model_of_id(self.application, known.id) is kind)

    def digest(self) -> str:
        """What a plan depends on: which instances there are, and what they are told to be."""
        depends = [self.application, [[i.address, i.configured] for i in self.instances], sorted(self.protocols)]
        return hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:16]
