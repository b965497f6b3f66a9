"""Compares every permission that is needed with the ACLs: what is missing, and which binding allows the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from connectctl.ops.checks.acls.observe import AclFacts
from connectctl.ops.checks.acls.principals import Client
from connectctl.ops.checks.acls.requirements import AclStage, Requirement, needs
from connectctl.ops.connect.transactional_ids import leader_id
from connectctl.ops.kafka.acls import ANY, CLUSTER_NAME, Acls, Action, Because, Binding, Decision, Operation, Resource


@dataclass(frozen=True)
class Evaluation:
    """A required permission, and the authorizer's decision. ``refused`` are the workers' hosts that get a refusal."""

    need: Requirement
    decision: Decision
    refused: tuple[str, ...] = ()

    @property
    def lacking(self) -> bool:
        """Whether a binding that allows it is missing somewhere."""
        return bool(self.refused) and self.decision.because is not Because.DENIED


def evaluate(facts: AclFacts, stage: AclStage) -> tuple[Evaluation, ...]:
    """Every need at ``stage``, evaluated from every worker's host; the decision given is that of a host which is refused."""
    return tuple(_evaluated(facts, need) for need in dict.fromkeys(needs(facts, stage)))


def _evaluated(facts: AclFacts, need: Requirement) -> Evaluation:
    acls = facts.clusters[need.cluster].acls
    assert acls is not None, "needs are made for clusters with an authorizer only"
    decisions: dict[str, Decision] = {}
    for host in facts.hosts:
        # Hosts that no binding names get the same decision: evaluated one time, as there may be thousands of needs.
        alike = host if host in acls.hosts else ANY
        if alike not in decisions:
            decisions[alike] = decide(acls, need.action, host)
    refused = tuple(h for h in facts.hosts if not decisions[h if h in acls.hosts else ANY].allowed)
    # A deny is the decision to report: another allow would not help.
    ordered = sorted(decisions.values(), key=lambda d: (d.allowed, d.because is not Because.DENIED))
    return Evaluation(need, ordered[0], refused)


def decide(acls: Acls, action: Action, host: str) -> Decision:
    """What the brokers answer; a principal with Create on the cluster may create a topic (``ControllerApis``)."""
    decision = acls.decide(action, host)
    if decision.allowed or (action.operation, action.resource) != (Operation.CREATE, Resource.TOPIC):
        return decision
    anywhere = acls.decide(Action(action.principal, Operation.CREATE, Resource.CLUSTER, CLUSTER_NAME), host)
    return anywhere if anywhere.allowed else decision


@dataclass(frozen=True)
class Overreach:
    """A binding with which a principal may use transactional ids of others. ``theirs`` says whose, in words."""

    cluster: str
    binding: Binding
    connectors: tuple[str, ...]
    theirs: tuple[str, ...]


def overreaching(facts: AclFacts, evaluations: Iterable[Evaluation]) -> Iterator[Overreach]:
    """Bindings that allow writing with a task's id and cover ids of other connectors or groups."""
    uses: dict[tuple[str, Binding], set[str]] = {}
    for evaluated in evaluations:
        if evaluated.need.task and evaluated.need.action.operation is Operation.WRITE and not evaluated.refused:
            for binding in evaluated.decision.bindings:
                if not (binding.pattern == "LITERAL" and binding.name == evaluated.need.action.name):
                    uses.setdefault((evaluated.need.cluster, binding), set()).add(evaluated.need.connector)
    for (cluster, binding), connectors in sorted(uses.items()):
        theirs = tuple(_reached(facts, cluster, binding, connectors))
        if theirs:
            yield Overreach(cluster, binding, tuple(sorted(connectors)), theirs)


def _reached(facts: AclFacts, cluster: str, binding: Binding, users: set[str]) -> Iterator[str]:
    for source in facts.sources:
        # Somebody who may use these ids anyway reaches nothing new; whose principals are not known is told elsewhere.
        owners = {source.principals.get(role, binding.principal) for role in (Client.PRODUCER, Client.ADMIN)}
        if source.name in users or owners == {binding.principal} or source.clusters[Client.PRODUCER] != cluster:
            continue
        if covers_ids(binding, facts.group_id, source.name):
            yield f"connector {source.name}"
    if cluster == facts.bootstrap:
        if facts.worker not in (None, binding.principal) and binding.covers(leader_id(facts.group_id)):
            yield "the leader"
        yield from (f"group {group}" for group in sorted(facts.groups) if covers_group(binding, group))


def covers_ids(binding: Binding, group: str, connector: str) -> bool:
    """Whether the pattern covers any id that a task of ``connector`` can have."""
    stem = f"{group}-{connector}-"
    number = binding.name.removeprefix(stem) if binding.name.startswith(stem) else ""
    return binding.covers(stem) or (binding.pattern == "PREFIXED" and number.isdigit())


def covers_group(binding: Binding, group: str) -> bool:
    """Whether the pattern covers any id that a task of ``group`` can have, whatever its connectors are called."""
    stem = f"{group}-"
    return binding.covers(stem) or (binding.pattern == "PREFIXED" and binding.name.startswith(stem))
