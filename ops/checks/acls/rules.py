"""ACL001 to ACL010: permissions that the principals of workers and connectors lack (see
``requirements``).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from itertools import groupby

from connectctl.ops.checks.acls.emit import removal
from connectctl.ops.checks.acls.evaluation import Evaluation, evaluate, overreaching
from connectctl.ops.checks.acls.observe import AclFacts
from connectctl.ops.checks.acls.principals import Client
from connectctl.ops.checks.acls.requirements import AclStage, Requirement, Use, stage_of
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule, Several
from connectctl.ops.kafka.acls import Because, Binding, Resource

_BY_ROLE = {
    Client.WORKER: Rule("ACL001", Severity.ERROR),
    Client.PRODUCER: Rule("ACL002", Severity.ERROR),
    Client.CONSUMER: Rule("ACL003", Severity.ERROR),
    Client.ADMIN: Rule("ACL004", Severity.ERROR),
}
_DENIED = Rule("ACL005", Severity.ERROR)
_OVERREACH = Rule("ACL006", Severity.WARNING)
_LESS = Rule("ACL007", Severity.INFO)
_BY_USE = {
    Use.SINK: Rule("ACL008", Severity.ERROR),
    Use.DEAD_LETTERS: Rule("ACL009", Severity.ERROR),
    Use.PATTERN: Rule("ACL010", Severity.WARNING),
}
_MOST = 4
"""The number of names that a message lists before it counts the rest."""


@Several
def of_acls(facts: AclFacts, goal: Goal) -> Iterator[Finding]:
    """Yield all findings about ACLs under ``goal``; none if the brokers have no authorizer."""
    evaluations = evaluate(facts, stage_of(goal, facts.enabled_now))
    yield from lacks(facts, evaluations)
    yield from denies(evaluations)
    yield from overreaches(facts, evaluations)


def lacks(facts: AclFacts, evaluations: Iterable[Evaluation]) -> Iterator[Finding]:
    """Yield ACL001–004 and ACL007–010: one for each client of a connector that lacks a permission
    on a cluster.
    """
    missing = [evaluation for evaluation in evaluations if evaluation.lacking]
    for (connector, _, cluster, optional, _), group in groupby(
        sorted(missing, key=_order), key=_order
    ):
        found = list(group)
        needs = [evaluation.need for evaluation in found]
        rule = _LESS if optional else _BY_USE.get(needs[0].use) or _BY_ROLE[needs[0].role]
        downgrade_severity = (
            Severity.WARNING if _may_be_allowed_otherwise(facts, cluster) and not optional else None
        )
        matched = ", matched by its topics.regex" if needs[0].use is Use.PATTERN else ""
        message = f"{_who(needs[0])} lacks {described(needs)}{_where(facts, found)}{matched}."
        yield rule.found(
            connector or facts.group_id, message, _next(facts, needs), severity=downgrade_severity
        )


def denies(evaluations: Iterable[Evaluation]) -> Iterator[Finding]:
    """Yield ACL005: one finding for each binding that denies, and each client that it affects."""
    denied: dict[tuple[str, str, Client, Binding], list[Requirement]] = {}
    for evaluated in evaluations:
        if evaluated.decision.because is Because.DENIED and not evaluated.need.optional:
            need = evaluated.need
            for binding in evaluated.decision.bindings:
                denied.setdefault((need.connector, need.cluster, need.role, binding), []).append(
                    need
                )
    for (connector, cluster, _, binding), needs in denied.items():
        message = (
            f"{_who(needs[0])} needs {described(needs)}, which is denied by the ACL: {binding}."
        )
        subject = connector or needs[0].action.principal
        yield _DENIED.found(subject, message, f"Remove it: {removal(binding, cluster)}")


def overreaches(facts: AclFacts, evaluations: Iterable[Evaluation]) -> Iterator[Finding]:
    """Yield ACL006: one finding for each binding that covers the ids of others."""
    for overreach in overreaching(facts, evaluations):
        other_names = _named(overreach.other_owners)
        message = (
            f"{overreach.binding}, which {_named(overreach.connectors)} uses, also covers "
            f"transactional ids of {other_names}."
        )
        subject = f"{overreach.binding.resource.word} {overreach.binding.name}"
        hint = (
            "Allow each id by its full name instead, and remove it: "
            f"{removal(overreach.binding, overreach.cluster)}"
        )
        yield _OVERREACH.found(subject, message, hint)


def _order(evaluated: Evaluation) -> tuple[str, int, str, bool, int]:
    need = evaluated.need
    return (
        need.connector,
        list(Client).index(need.role),
        need.cluster,
        need.optional,
        list(Use).index(need.use),
    )


def _who(need: Requirement) -> str:
    owner = "the workers' principal" if need.role is Client.WORKER else f"its {need.role}"
    return f"{need.action.principal}, {owner},"


def described(needs: Iterable[Requirement]) -> str:
    """Return permissions as text: those on one resource together, many ids by their number."""
    operations: dict[tuple[Resource, str], list[str]] = {}
    for need in needs:
        operation_words = operations.setdefault((need.action.resource, need.action.name), [])
        operation_words.extend(
            [need.action.operation.word] * (need.action.operation.word not in operation_words)
        )
    names: dict[tuple[Resource, tuple[str, ...]], list[str]] = {}
    for (resource, name), operation_words in operations.items():
        names.setdefault((resource, tuple(operation_words)), []).append(name)
    return "; ".join(
        f"{_listed(operation_words)} on {resource.word} {_named(n)}"
        for (resource, operation_words), n in names.items()
    )


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _named(names: Iterable[str]) -> str:
    known = list(names)
    return (
        _listed(known)
        if len(known) <= _MOST
        else f"{', '.join(known[: _MOST - 1])} and {len(known) - _MOST + 1} more"
    )


def _where(facts: AclFacts, found: Iterable[Evaluation]) -> str:
    hosts = sorted({host for evaluated in found for host in evaluated.refused})
    is_partial = len(hosts) < len(facts.hosts)
    return f" from {_named(hosts)}, though other workers have it" if is_partial else ""


def _may_be_allowed_otherwise(facts: AclFacts, cluster: str) -> bool:
    acls = facts.clusters[cluster].acls
    return acls is not None and acls.authorizer.decides_by_more


def _next(facts: AclFacts, needs: list[Requirement]) -> str:
    need = needs[0]
    latest = max((n.stage for n in needs), key=list(AclStage).index)
    step = f"{_command(facts, need.connector, latest)} prints the commands that allow it."
    acls = facts.clusters[need.cluster].acls
    if acls is not None and acls.authorizer.super_users is None:
        step += (
            " If it is a super user, which the brokers do not report: --principal "
            f"super={need.action.principal}."
        )
    return step


def _command(facts: AclFacts, connector: str, stage: AclStage) -> str:
    goal = [] if stage is AclStage.DISABLED else ["--for", stage.value]
    principals = [
        part for argument in facts.options.arguments for part in ("--principal", argument)
    ]
    words = ["connectctl", "preflight", *([connector] if connector else []), *goal, *principals]
    return shlex.join([*words, "--emit", "kafka-acls"])
