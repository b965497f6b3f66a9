"""``connectors cure``: slow zombie fencing, or task configurations that compaction removes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.connect.zombie_fencing import CURE, ids_to_fence
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics
from connectctl.ops.operations.connectors import observe
from connectctl.ops.operations.connectors.contradictions import refuse_doubtful
from connectctl.ops.operations.connectors.cure import (
    LATER,
    AwaitPublished,
    AwaitRound,
    CureContext,
    RestartWhatFailed,
    SetOverrides,
    check_policy,
    orders,
    plan_cure,
    plan_republish,
)
from connectctl.ops.operations.connectors.operation import ConnectorOperation
from connectctl.ops.operations.connectors.steps import Await, SetTargetState
from connectctl.ops.operations.operation import Planned

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import Clients, KafkaReads
    from connectctl.ops.connect.connector import Connector
    from connectctl.ops.connect.task_config_commits import TaskConfigOrder
    from connectctl.ops.core.journal import Run
    from connectctl.ops.operations.connectors.access import ClusterAccess


class Cure(ConnectorOperation[str]):
    """``connectors cure`` of one connector, by its name."""

    name = "connectors cure"
    steps = (SetOverrides, AwaitRound, RestartWhatFailed, SetTargetState, Await, AwaitPublished)
    irreversible = "it restarted tasks, and set at most two properties"

    def instead(self, run: Run) -> str:
        """Return the command that removes the properties that the operation sets."""
        removed = " ".join(f"{name}-" for name in CURE)
        return f"To remove the properties: connectctl connectors patch {run.subjects[0]} {removed}"

    def plan(self, access: ClusterAccess, request: str) -> Planned:
        """Return the plan for the problem of the connector. Raises ``BadInput`` without brokers,
        and for a sink.
        """
        topic = _ConfigTopic.of(access)
        health = observe.exactly_one(access.connectors(), request)
        refuse_doubtful([health.connector])
        plan = topic.republishing(health.connector) or topic.cure(health.connector)
        if any(isinstance(step, SetOverrides) for step in plan.steps):
            check_policy(access.calls, health.name, health.connector.config)
            return Planned(plan, (f"{LATER}.",))
        return Planned(plan)

    def plan_round(self, access: ClusterAccess, name: str) -> Plan:
        """Return the plan for a round of fencing of the connector ``name``, which stops nothing."""
        return _ConfigTopic.of(access).cure(
            observe.exactly_one(access.connectors(), name).connector
        )

    def request_of(self, plan: Plan) -> str:
        """Return the connector of the plan."""
        (name,) = plan.resources
        return name

    def context(self, access: ClusterAccess, planned: Planned) -> CureContext:
        """Return a context that reads the config topic again."""
        topic, timeout = _ConfigTopic.of(access), access.clients.timeout
        return CureContext(
            access.calls, timeout, facts=access.facts, pending=topic.pending, order=topic.order
        )


@dataclass(frozen=True)
class _ConfigTopic:
    """The config topic of the group, which each method reads again."""

    clients: Clients
    kafka: KafkaReads
    group_id: str

    @classmethod
    def of(cls, access: ClusterAccess) -> _ConfigTopic:
        if access.kafka is None:
            raise BadInput(
                "connectors cure requires the config topic, to check whether fencing is pending",
                next_step="Give --bootstrap-servers.",
            )
        return cls(access.clients, access.kafka, access.group_id)

    @property
    def name(self) -> str:
        named = self.clients.named_topics
        found = named.get("config")
        if found is None:
            found = find_internal_topics(
                self.kafka, self.kafka.group(self.group_id), named, needed=("config",)
            ).config
        assert found is not None
        return found

    def pending(self, connector: str) -> bool:
        """Return whether a round of fencing is due. Without ids to fence, the leader only writes
        its record.
        """
        found = observe.configured(self.kafka, self.name, connector)
        return found is not None and bool(
            ids_to_fence(found.task_count_record, found.task_count, found.fencing_pending)
        )

    def order(self, connector: str) -> TaskConfigOrder | None:
        """Return the order of the connector's records, if compaction removes its task
        configurations.
        """
        return next(
            (order for order in orders(self.kafka, self.name) if order.name == connector), None
        )

    def cure(self, connector: Connector) -> Plan:
        if connector.type == "sink":
            raise BadInput(f"{connector.name} is a sink connector, whose tasks are never fenced")
        configured = observe.configured(self.kafka, self.name, connector.name)
        pending = self.pending(connector.name)
        return plan_cure(
            self.kafka.cluster_id(), connector, configured, pending=pending, group_id=self.group_id
        )

    def republishing(self, connector: Connector) -> Plan | None:
        """Return the plan for a connector whose task configurations compaction removes; None if it
        does not.
        """
        found = self.order(connector.name)
        if found is None:
            return None
        facts = observe.facts_reader(
            self.kafka, self.kafka.group(self.group_id), self.clients.named_topics
        )
        with_facts = facts().of(connector) if facts else connector
        return plan_republish(self.kafka.cluster_id(), with_facts, found, group_id=self.group_id)
