"""What is looked at once, for all the areas of preflight: the cluster, its topics, what its connectors are.

Whatever cannot be seen is noted and the rest is looked at all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from connectctl.ops.checks.acls.clusters import Open
from connectctl.ops.checks.types import Unseen, answer_of, unseen_by
from connectctl.ops.clients.protocols import AclReads, BrokerReads, ConnectCalls, KafkaReads, TransactionCalls
from connectctl.ops.connect import status_topic
from connectctl.ops.connect.config_topic import ConfigState
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.roll_state import RollState
from connectctl.ops.connect.transactional_ids import TransactionalIdIndex
from connectctl.ops.connect.worker import Support
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.operations.cluster import observe
from connectctl.ops.operations.cluster.config_state import state_in
from connectctl.ops.operations.cluster.observe import ClusterView
from connectctl.ops.operations.cluster.read_once import read_once
from connectctl.ops.operations.connectors.fencing_diagnosis import write_times
from connectctl.ops.operations.fencing.observe import FencingSources as FenceSources
from connectctl.ops.operations.fencing.observe import visible_connectors

PATIENCE = 5.0
"""Seconds that an open transaction may hold up a reading of the internal topics."""


@dataclass(frozen=True)
class Edges:
    """Whom preflight may ask. What is a function is opened only where it is needed.

    ``configured`` is the value of a worker's property, by its address, as its driver reports it; None if unknown.
    ``roll`` is how far a rolling change of the workers is.
    """

    kafka: KafkaReads
    calls: ConnectCalls
    transactions: Callable[[], TransactionCalls]
    brokers: Callable[[], BrokerReads]
    acls: Callable[[], AclReads]
    other_acls: Open
    other_kafka: Callable[[str, Mapping[str, str]], KafkaReads]
    bootstrap: str
    configured: Callable[[str, str], str | None] = lambda worker, name: None
    named_servers: tuple[str, ...] = ()
    """The bootstrap servers of the clusters that the context names."""
    roll: Callable[[ClusterView], RollState] = lambda view: RollState()


@dataclass
class CheckContext:
    """The cluster as all areas see it.

    ``checked`` are the connectors that were asked for, all of them if none was named. ``written`` is when the newest
    record of each key of the config and status topics was written, in seconds since the epoch.
    """

    edges: Edges
    view: ClusterView
    checked: tuple[Connector, ...] = ()
    state: ConfigState | None = None
    written: Mapping[str, float] = field(default_factory=dict)
    recorded: Mapping[str, frozenset[str]] | None = None
    """The topics of connectors by the status topic, None where it was not read."""
    unseen: list[Unseen] = field(default_factory=list)
    _properties: dict[str, str | None] = field(default_factory=dict)

    @property
    def group(self) -> ConnectGroup:
        return self.view.group

    @property
    def internal(self) -> dict[str, str]:
        """The workers' topics by role, as far as they were found."""
        return {topic.role: topic.name for topic in self.view.topics if topic.name}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the connectors that are judged."""
        return tuple(each.name for each in self.checked)

    @property
    def everybody(self) -> tuple[Connector, ...]:
        """All connectors, asked for or not: any sink may read what one of them writes."""
        return tuple(health.connector for health in self.view.connectors)

    @property
    def sources(self) -> list[Connector]:
        """The source connectors among those that were asked for."""
        return [each for each in self.checked if each.type != "sink"]

    @property
    def enabled(self) -> bool | None:
        """Whether exactly-once is enabled on a worker, None where no worker tells."""
        supports = {worker.support for worker in self.view.workers} - {Support.UNKNOWN}
        return Support.ENABLED in supports if supports else None

    @property
    def versions(self) -> tuple[str, ...]:
        return tuple(sorted({worker.version for worker in self.view.workers if worker.version}))

    @cached_property
    def directory(self) -> TransactionalIdIndex:
        """The connectors of all groups that can be seen."""
        try:
            sources = FenceSources(
                self.edges.transactions(), self.group.id, self.edges.kafka.group, lambda g: frozenset()
            )
            seen = visible_connectors(sources)
        except ConnectctlError as e:
            self.unseen.append(unseen_by("connectors of other groups", e))
            return TransactionalIdIndex({self.group.id: frozenset()})
        self.unseen += [Unseen("connectors of other groups", gap.why, gap.next_step) for gap in seen.gaps]
        return seen.seen

    def worker_property(self, name: str) -> str | None:
        """A property of the workers, where all drivers that tell it tell the same."""
        if name not in self._properties:
            values = {self.edges.configured(worker.address, name) for worker in self.view.workers} - {None}
            self._properties[name] = values.pop() if len(values) == 1 else None
        return self._properties[name]


def see(edges: Edges, group: ConnectGroup, named: Mapping[str, str | None], wanted: Sequence[str]) -> CheckContext:
    """Look at the cluster. Raises ``BadInput`` for a connector in ``wanted`` that is not there."""
    edges = replace(edges, kafka=read_once(edges.kafka))
    view = observe.observe_cluster(edges.kafka, edges.calls, group, named)
    known = {health.name: health.connector for health in view.connectors}
    _check(wanted, list(known))
    context = CheckContext(edges, view)
    picked = frozenset(wanted) or known.keys()
    context.checked = tuple(connector for name, connector in sorted(known.items()) if name in picked)
    _read_config_topic(context)
    return context


def _check(wanted: Sequence[str], known: Sequence[str]) -> None:
    from difflib import get_close_matches

    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]}?" if near else "connectctl connectors list"
            raise BadInput(f"Connector not found: {name}", next_step=hint)


def _read_config_topic(context: CheckContext) -> None:
    topics = [context.internal[role] for role in ("config", "status") if role in context.internal]
    read = partial(context.edges.kafka.image, topics, patience=PATIENCE)
    images = answer_of(read, context.unseen, "the config and status topics") or {}
    config = context.internal.get("config")
    if config in images:
        context.state = state_in(context.edges.kafka, images[config], patience=PATIENCE)
    status = context.internal.get("status")
    if status in images:
        context.recorded = status_topic.topics(images[status].latest)
    context.written = {key: at for image in images.values() for key, at in write_times(image.latest).items()}
