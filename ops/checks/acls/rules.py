"""ACL001 …: what the principals of workers and connectors lack (KIP-618's tables, see ``requirements``)."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from connectctl.ops.checks.acls.emit import removal
from connectctl.ops.checks.acls.evaluation import Judgement, judge, overreaching
from connectctl.ops.checks.acls.principals import Role
from connectctl.ops.checks.acls.requirements import Stage, stage_of
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka.acls import Because, Resource

if TYPE_CHECKING:
    from connectctl.ops.checks.acls.observe import AclFacts
    from connectctl.ops.checks.acls.requirements import Need
    from connectctl.ops.checks.types import Wish
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.kafka.acls import Binding

_KIP = "KIP-618, Connector principal permissions"
WORKER_LACKS = Rule(
    "ACL001",
    Severity.ERROR,
    "The workers' principal lacks a permission",
    "A worker that may not use the leader's transactional id cannot write to the config topic, nor start connectors",
    "KIP-618, Worker principal permissions",
    """
    From preparing on, the leader writes to the config topic with the transactional id connect-cluster-<group.id>, with
    the credentials that stand in the worker's properties without a prefix. It needs Write and Describe on that id, beside
    what every worker needs: Read on the group, and Read, Write and Describe on its three topics.

    Where it is not allowed, a worker that becomes leader cannot claim its write privileges: creating, changing, stopping
    and deleting connectors fail with 500 until the permission is there.

    Let connectctl preflight --for enabled --principal User:NAME --emit kafka-acls print the commands, for preparing and
    for enabled, and run them before the first worker is restarted. Permissions hold at once; nothing has to be restarted.
    """,
)
PRODUCER_LACKS = Rule(
    "ACL002",
    Severity.ERROR,
    "A connector's producer lacks a permission",
    "Its tasks fail when they initialise their transactions or write their first records",
    _KIP,
    """
    With exactly-once support enabled, each task of a source connector writes its records and its offsets with the
    transactional id <group.id>-<connector>-<task>. Its producer needs Write and Describe on every such id, Write on the
    offsets topic that the connector uses, the workers' own one included, and as before Write on the topics it writes to.

    Who the producer is says producer.override.sasl.jaas.config of the connector, else producer.sasl.jaas.config or
    sasl.jaas.config of the worker.

    The ids counted are as many as tasks.max, the tasks of now, or the last round of fencing say, whichever is the most.
    """,
)
CONSUMER_LACKS = Rule(
    "ACL003",
    Severity.ERROR,
    "A connector's consumer lacks a permission",
    "Its tasks cannot read the offsets from which they are to go on, and fail",
    _KIP,
    """
    With exactly-once support enabled, or with an offsets topic of its own, a source connector reads its offsets with a
    consumer of its own, for which consumer.override.* holds. Before KIP-458 and KIP-618 source connectors had none, so
    that this principal is easily forgotten.

    It needs Read on the offsets topic: the one that offsets.storage.topic of the connector names, else the workers'.
    """,
)
ADMIN_LACKS = Rule(
    "ACL004",
    Severity.ERROR,
    "A connector's admin client lacks a permission",
    "A round of fencing fails with its first id that is not allowed, and with it every task of the connector",
    f"{_KIP}; Worker.fenceZombies",
    """
    Before new tasks start, the leader fences the producers of the old ones, with the connector's admin client. It needs
    Write and Describe on all their transactional ids, the same as the producer does. Kafka's documentation lists these
    permissions for the connector without saying that its admin client needs them, and it may be another principal.

    A connector that is started for the first time has nothing to fence and runs. The lack shows with its first
    reconfiguration or restart of all tasks: they are FAILED with TransactionalIdAuthorizationException, while the
    connector says RUNNING. Give the permission, then restart them: connectctl connectors restart NAME.

    Old ids count, too: after tasks.max went from 10 to 3, ten ids are fenced. Besides, the admin client reads the end of
    the offsets topic (Describe), and creates that topic where it does not exist (Create).
    """,
)
DENIED = Rule(
    "ACL005",
    Severity.ERROR,
    "A permission that is needed is denied by an ACL",
    "A deny wins over every allow, so that adding permissions does not help",
    "StandardAuthorizer; KIP-11",
    """
    Brokers look at all ACLs whose pattern covers a resource: literal, prefixed, and *. If one of them denies the operation
    to the principal or to User:*, it is refused, whatever others allow. A deny of Read or Write does not deny Describe;
    a deny of All denies everything.

    Take the deny away, or narrow its pattern or its hosts. The finding gives the command.
    """,
)
OVERREACH = Rule(
    "ACL006",
    Severity.WARNING,
    "A pattern for transactional ids also covers somebody else's",
    "Whoever may write with an id may fence its producer, by mistake or on purpose",
    _KIP,
    """
    The proposal suggests the prefix <group.id>-<connector> for convenience, where there is no risk of conflict. That prefix
    also covers the ids of a connector called <connector>2. With a dash at its end it still covers those of a connector
    called <connector>-1, and group a with connector b-1 has the same ids as group a-b with connector 1.

    The finding names connectors with other principals and other Connect clusters whose ids are covered. Where their
    owners are to be kept apart, replace the pattern by literal ids: connectctl preflight --emit kafka-acls prints them.
    Otherwise leave the finding out with --ignore ACL006.
    """,
)
SEES_LESS = Rule(
    "ACL007",
    Severity.INFO,
    "The workers' principal cannot see the configuration of an internal topic",
    "Workers then start without checking that the topic is compacted",
    "TopicAdmin.describeTopicConfigs",
    """
    At its start a worker checks that its three topics have cleanup.policy=compact, and refuses to start otherwise. It
    needs DescribeConfigs on them. Without that permission it goes on without a word above DEBUG, and a topic that is not
    compacted, but deleted after a week, loses connectors and offsets.

    connectctl checks the topics itself (TOPIC002), if its own principal may see them.
    """,
)
RULES: tuple[Rule, ...] = (
    WORKER_LACKS,
    PRODUCER_LACKS,
    CONSUMER_LACKS,
    ADMIN_LACKS,
    DENIED,
    OVERREACH,
    SEES_LESS,
)
_BY_ROLE = {
    Role.WORKER: WORKER_LACKS,
    Role.PRODUCER: PRODUCER_LACKS,
    Role.CONSUMER: CONSUMER_LACKS,
    Role.ADMIN: ADMIN_LACKS,
}
_MOST = 4
"""Names that a message gives before it counts the rest."""


def check(facts: AclFacts, wish: Wish) -> Iterator[Finding]:
    """All findings about ACLs under ``wish``; none where the brokers have no authorizer."""
    judgements = judge(facts, stage_of(wish, facts.enabled_now))
    yield from lacks(facts, judgements)
    yield from denies(judgements)
    yield from overreaches(facts, judgements)


def lacks(facts: AclFacts, judgements: Iterable[Judgement]) -> Iterator[Finding]:
    """ACL001–004 and ACL007: one finding for each client of a connector that lacks anything on a cluster."""
    missing = [j for j in judgements if j.lacking]
    for (connector, _, cluster, optional), some in groupby(sorted(missing, key=_order), key=_order):
        found = list(some)
        needs = [j.need for j in found]
        rule = SEES_LESS if optional else _BY_ROLE[needs[0].role]
        softened = Severity.WARNING if _may_be_allowed_otherwise(facts, cluster) and not optional else None
        message = f"{_who(needs[0])} lacks {said(needs)}{_where(facts, found)}."
        yield rule.found(connector or facts.group_id, message, _next(facts, needs), severity=softened)


def denies(judgements: Iterable[Judgement]) -> Iterator[Finding]:
    """ACL005: one finding for each binding that denies and each client that it hits."""
    hit: dict[tuple[str, str, Role, Binding], list[Need]] = {}
    for judged in judgements:
        if judged.decision.because is Because.DENIED and not judged.need.optional:
            need = judged.need
            for binding in judged.decision.bindings:
                hit.setdefault((need.connector, need.cluster, need.role, binding), []).append(need)
    for (connector, cluster, _, binding), needs in hit.items():
        message = f"{_who(needs[0])} needs {said(needs)}, which is denied by the ACL: {binding}."
        subject = connector or needs[0].action.principal
        yield DENIED.found(subject, message, f"Take it away: {removal(binding, cluster)}")


def overreaches(facts: AclFacts, judgements: Iterable[Judgement]) -> Iterator[Finding]:
    """ACL006: one finding for each binding that covers the ids of others."""
    for each in overreaching(facts, judgements):
        names = _named(each.theirs)
        message = (
            f"{each.binding}, with which {_named(each.connectors)} runs, also covers transactional ids of {names}."
        )
        subject = f"{each.binding.resource.word} {each.binding.name}"
        hint = f"Allow every id by its full name instead, and take it away: {removal(each.binding, each.cluster)}"
        yield OVERREACH.found(subject, message, hint)


def _order(judged: Judgement) -> tuple[str, int, str, bool]:
    need = judged.need
    return need.connector, list(Role).index(need.role), need.cluster, need.optional


def _who(need: Need) -> str:
    whose = "the workers' principal" if need.role is Role.WORKER else f"its {need.role}"
    return f"{need.action.principal}, {whose},"


def said(needs: Iterable[Need]) -> str:
    """Permissions in words, those on one resource together, many ids by their number."""
    operations: dict[tuple[Resource, str], list[str]] = {}
    for need in needs:
        words = operations.setdefault((need.action.resource, need.action.name), [])
        words.extend([need.action.operation.word] * (need.action.operation.word not in words))
    names: dict[tuple[Resource, tuple[str, ...]], list[str]] = {}
    for (resource, name), words in operations.items():
        names.setdefault((resource, tuple(words)), []).append(name)
    return "; ".join(f"{_listed(words)} on {resource.word} {_named(n)}" for (resource, words), n in names.items())


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _named(names: Iterable[str]) -> str:
    known = list(names)
    return (
        _listed(known) if len(known) <= _MOST else f"{', '.join(known[: _MOST - 1])} and {len(known) - _MOST + 1} more"
    )


def _where(facts: AclFacts, found: Iterable[Judgement]) -> str:
    hosts = sorted({host for judged in found for host in judged.refused})
    some = len(hosts) < len(facts.hosts)
    return f" from {_named(hosts)}, though other workers have it" if some else ""


def _may_be_allowed_otherwise(facts: AclFacts, cluster: str) -> bool:
    acls = facts.clusters[cluster].acls
    return acls is not None and acls.authorizer.decides_by_more


def _next(facts: AclFacts, needs: list[Need]) -> str:
    need = needs[0]
    latest = max((n.stage for n in needs), key=list(Stage).index)
    say = f"{_command(facts, need.connector, latest)} prints the commands that allow it."
    acls = facts.clusters[need.cluster].acls
    if acls is not None and acls.authorizer.super_users is None:
        say += f" If it is a super user, which the brokers do not tell: --principal super={need.action.principal}."
    return say


def _command(facts: AclFacts, connector: str, stage: Stage) -> str:
    wish = [] if stage is Stage.DISABLED else ["--for", stage.value]
    principals = [part for argument in facts.said.arguments for part in ("--principal", argument)]
    words = ["connectctl", "preflight", *([connector] if connector else []), *wish, *principals]
    return shlex.join([*words, "--emit", "kafka-acls"])
