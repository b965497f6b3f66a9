"""Compares the required permissions with the ACLs: the missing ones, and the bindings that allow
the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from connectctl.ops.checks.acls.observe import AclFacts
from connectctl.ops.checks.acls.principals import Client
from connectctl.ops.checks.acls.requirements import AclStage, Requirement, needs
from connectctl.ops.connect.transactional_ids import leader_id, task_id_prefix
from connectctl.ops.kafka.acls import (
    ANY,
    CLUSTER_NAME,
    Acls,
    Action,
    Because,
    Binding,
    Decision,
    Operation,
    Resource,
)


@dataclass(frozen=True)
class Evaluation:
    """A required permission, and the authorizer's decision. ``refused`` are the workers' hosts that
    are refused.
    """

    need: Requirement
    decision: Decision
    refused: tuple[str, ...] = ()

    @property
    def lacking(self) -> bool:
        """Return whether a binding that allows it is missing for some host."""
        return bool(self.refused) and self.decision.because is not Because.DENIED


def evaluate(facts: AclFacts, stage: AclStage) -> tuple[Evaluation, ...]:
    """Return the evaluation of each permission that ``stage`` requires, for every worker's host.

    The decision is that of a refused host, if there is one.
    """
    return tuple(_evaluated(facts, need) for need in dict.fromkeys(needs(facts, stage)))


def _evaluated(facts: AclFacts, need: Requirement) -> Evaluation:
    acls = facts.clusters[need.cluster].acls
    assert acls is not None, "needs are made for clusters with an authorizer only"
    decisions: dict[str, Decision] = {}
    for host in facts.hosts:
        # Hosts that no binding names get the same decision, which is evaluated once: there may be
        # thousands of needs.
        host_key = host if host in acls.hosts else ANY
        if host_key not in decisions:
            decisions[host_key] = decide(acls, need.action, host)
    refused = tuple(h for h in facts.hosts if not decisions[h if h in acls.hosts else ANY].allowed)
    # A deny is the decision to report: another allow would not help.
    ordered = sorted(decisions.values(), key=lambda d: (d.allowed, d.because is not Because.DENIED))
    return Evaluation(need, ordered[0], refused)


def decide(acls: Acls, action: Action, host: str) -> Decision:
    """Return the brokers' decision; a principal with Create on the cluster may create a topic
    (``ControllerApis``).
    """
    decision = acls.decide(action, host)
    if decision.allowed or (action.operation, action.resource) != (
        Operation.CREATE,
        Resource.TOPIC,
    ):
        return decision
    on_cluster = acls.decide(
        Action(action.principal, Operation.CREATE, Resource.CLUSTER, CLUSTER_NAME), host
    )
    return on_cluster if on_cluster.allowed else decision


@dataclass(frozen=True)
class Overreach:
    """A binding by which a principal may use transactional ids of other owners, which
    ``other_owners`` describes.
    """

    cluster: str
    binding: Binding
    connectors: tuple[str, ...]
    other_owners: tuple[str, ...]


def overreaching(facts: AclFacts, evaluations: Iterable[Evaluation]) -> Iterator[Overreach]:
    """Yield the bindings that allow writing with a task's id and cover ids of other connectors or
    groups.
    """
    uses: dict[tuple[str, Binding], set[str]] = {}
    for evaluated in evaluations:
        if (
            evaluated.need.task
            and evaluated.need.action.operation is Operation.WRITE
            and not evaluated.refused
        ):
            for binding in evaluated.decision.bindings:
                if not (
                    binding.pattern == "LITERAL" and binding.name == evaluated.need.action.name
                ):
                    uses.setdefault((evaluated.need.cluster, binding), set()).add(
                        evaluated.need.connector
                    )
    for (cluster, binding), connectors in sorted(uses.items()):
        reached = tuple(_reached(facts, cluster, binding, connectors))
        if reached:
            yield Overreach(cluster, binding, tuple(sorted(connectors)), reached)


def _reached(facts: AclFacts, cluster: str, binding: Binding, users: set[str]) -> Iterator[str]:
    for source in facts.sources:
        # A principal that may use these ids anyway gains nothing. Unknown principals are reported
        # elsewhere.
        owners = {
            source.principals.get(role, binding.principal)
            for role in (Client.PRODUCER, Client.ADMIN)
        }
        if (
            source.name in users
            or owners == {binding.principal}
            or source.clusters[Client.PRODUCER] != cluster
        ):
            continue
        if covers_ids(binding, facts.group_id, source.name):
            yield f"connector {source.name}"
    if cluster == facts.bootstrap:
        if facts.worker not in (None, binding.principal) and binding.covers(
            leader_id(facts.group_id)
        ):
            yield "the leader"
        yield from (
            f"group {group}" for group in sorted(facts.groups) if covers_group(binding, group)
        )


def covers_ids(binding: Binding, group: str, connector: str) -> bool:
    """Return whether the pattern covers any id that a task of ``connector`` can have."""
    stem = task_id_prefix(group, connector)
    number = binding.name.removeprefix(stem) if binding.name.startswith(stem) else ""
    return binding.covers(stem) or (binding.pattern == "PREFIXED" and number.isdigit())


def covers_group(binding: Binding, group: str) -> bool:
    """Return whether the pattern covers any id that a task of ``group`` can have, for any connector
    name.
    """
    stem = f"{group}-"
    return binding.covers(stem) or (binding.pattern == "PREFIXED" and binding.name.startswith(stem))
