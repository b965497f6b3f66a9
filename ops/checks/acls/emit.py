"""Prints the missing ACLs, ready to run or apply: kafka-acls.sh commands, or YAML that can be
parsed.

Each stage has a heading: ``disabled`` for the ACLs that the cluster needs in its present state,
``preparing`` and ``enabled`` for the additional ones of each. Nothing here changes anything.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from connectctl.ops.checks.acls.evaluation import Evaluation, covers_group, covers_ids, evaluate
from connectctl.ops.checks.acls.observe import AclFacts
from connectctl.ops.checks.acls.principals import Client
from connectctl.ops.checks.acls.requirements import AclStage, Requirement, stage_of
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.transactional_ids import task_id_prefix
from connectctl.ops.core.unseen import Unseen
from connectctl.ops.kafka.acls import (
    ANY,
    OPTIONS,
    Because,
    Binding,
    Pattern,
    Permission,
    Resource,
)

KIND = "AclBindings"
_NAMES_AT_ONCE = 50
"""The most names in one command: each command starts a JVM, and the length of a line is limited."""
_CLIENT = '${CLIENT_PROPERTIES:+--command-config "$CLIENT_PROPERTIES"}'
_HEADING = {
    AclStage.DISABLED: "Needed by the cluster as it is now",
    AclStage.PREPARING: "Needed before exactly.once.source.support=preparing",
    AclStage.ENABLED: "Needed before exactly.once.source.support=enabled",
}


@dataclass(frozen=True)
class Grant:
    """Bindings to be added on one cluster for one client: of the workers (no ``connector``), or of
    a connector.

    ``risk`` describes the names that a prefix covers unintentionally.
    """

    cluster: str
    stage: AclStage
    connector: str
    role: str
    bindings: tuple[Binding, ...]
    risk: str | None = None

    @property
    def owner(self) -> str:
        """Return the owner of the client as text."""
        return f"the {self.role} of {self.connector}" if self.connector else "the workers"


def emit(
    facts: AclFacts, goal: Goal, form: str, *, prefixed: bool = False, unseen: Sequence[Unseen] = ()
) -> str:
    """Return the text for ``--emit FORM``: ``kafka-acls`` or ``yaml``.

    ``prefixed``: one pattern for all tasks of a connector.
    """
    evaluations = evaluate(facts, stage_of(goal, facts.enabled_now))
    missing = grants(facts, evaluations, prefixed=prefixed)
    notes = [
        *_notes(facts),
        *(f"Not checked: {u.what}, because {u.why}." for u in unseen),
        *_denied(evaluations),
    ]
    return (
        "\n".join(
            _commands(facts, missing, notes)
            if form == "kafka-acls"
            else _yaml(facts, missing, notes)
        )
        + "\n"
    )


def grants(
    facts: AclFacts, evaluations: Iterable[Evaluation], *, prefixed: bool = False
) -> tuple[Grant, ...]:
    """Return the grants to add, by stage; a binding that several clients need is in the earliest
    stage only.
    """
    needs_by_client: dict[tuple[int, str, str, int], list[Requirement]] = {}
    for evaluated in evaluations:
        if evaluated.lacking:
            need = evaluated.need
            stage, role = list(AclStage).index(need.stage), list(Client).index(need.role)
            needs_by_client.setdefault((stage, need.cluster, need.connector, role), []).append(need)
    granted: set[tuple[str, Binding]] = set()
    found = []
    for _, needs in sorted(needs_by_client.items(), key=lambda item: item[0]):
        first = needs[0]
        bindings = dict.fromkeys(_binding(facts, need, prefixed) for need in needs)
        fresh = tuple(b for b in bindings if (first.cluster, b) not in granted)
        granted.update((first.cluster, b) for b in fresh)
        if fresh:
            prefixes = [b for b in fresh if b.pattern is Pattern.PREFIXED]
            risk = _risk(facts, first.connector, prefixes[0]) if prefixes else None
            found.append(
                Grant(first.cluster, first.stage, first.connector, first.role, fresh, risk)
            )
    return tuple(found)


def _binding(facts: AclFacts, need: Requirement, prefixed: bool) -> Binding:
    action = need.action
    literal = Binding(
        action.resource,
        action.name,
        Pattern.LITERAL,
        action.principal,
        ANY,
        action.operation,
        Permission.ALLOW,
    )
    if prefixed and need.prefix:
        return replace(literal, name=need.prefix, pattern=Pattern.PREFIXED)
    if not (prefixed and need.task):
        return literal
    # The name ends with a dash, unlike KIP-618's.
    prefix = task_id_prefix(facts.group_id, need.connector)
    return replace(literal, name=prefix, pattern=Pattern.PREFIXED)


def _risk(facts: AclFacts, connector: str, binding: Binding) -> str:
    if binding.resource is Resource.TOPIC:
        return (
            f"The prefix {binding.name} also covers topics that topics.regex of {connector} "
            "does not match."
        )
    others = [
        s.name
        for s in facts.sources
        if s.name != connector and covers_ids(binding, facts.group_id, s.name)
    ]
    covered = [f"connector {name}" for name in others]
    covered += [f"group {group}" for group in sorted(facts.groups) if covers_group(binding, group)]
    general = f"a connector called {connector}-… or a group called {facts.group_id}-{connector}"
    if covered:
        return (
            f"The prefix {binding.name} also covers transactional ids of {', '.join(covered)}; "
            f"and those of {general}."
        )
    return (
        f"The prefix {binding.name} would also cover the transactional ids of {general}; there "
        "is none now."
    )


def _notes(facts: AclFacts) -> Iterator[str]:
    for bootstrap, cluster in facts.clusters.items():
        if cluster.acls is None:
            yield (
                f"The brokers at {bootstrap} have no authorizer: every principal is allowed "
                "every operation there."
            )
    for sink in facts.sinks:
        if sink.regex:
            yield (
                f"{sink.name} reads the topics that match {sink.regex}: it also needs Read on "
                "matching topics that are created later."
            )


def _denied(evaluations: Iterable[Evaluation]) -> Iterator[str]:
    denied = dict.fromkeys(
        (evaluated.need.cluster, binding)
        for evaluated in evaluations
        if evaluated.decision.because is Because.DENIED
        for binding in evaluated.decision.bindings
    )
    for cluster, binding in denied:
        yield (
            f"Denied; a deny overrides every allow: {binding}. Remove it: "
            f"{removal(binding, cluster)}"
        )


# ------------------------------------------------------------------------------------ kafka-acls.sh


def _commands(facts: AclFacts, missing: Sequence[Grant], notes: Iterable[str]) -> Iterator[str]:
    yield "#!/bin/sh"
    yield _comment(f"ACLs that the Connect cluster {facts.group_id} lacks.")
    yield _comment(
        "Set CLIENT_PROPERTIES to a Java properties file if the brokers require credentials."
    )
    yield from map(_comment, notes)
    if not missing:
        yield _comment("Nothing is missing.")
    stage = None
    for grant in missing:
        if grant.stage is not stage:
            stage = grant.stage
            yield from ("", _comment(f"{_HEADING[stage]}:"))
        yield _comment(f"For {grant.owner}.{f' {grant.risk}' if grant.risk else ''}")
        yield from additions(grant.bindings, grant.cluster)


def additions(bindings: Iterable[Binding], bootstrap: str) -> Iterator[str]:
    """Yield kafka-acls.sh commands that add ``bindings``.

    Each command starts a JVM, so that bindings of one principal and resource type share a command.
    """
    operations: dict[tuple[str, Resource, Pattern, str, str], list[str]] = {}
    for b in bindings:
        operations.setdefault((b.principal, b.resource, b.pattern, b.host, b.name), []).append(
            b.operation.word
        )
    names: dict[tuple[str, Resource, Pattern, str, tuple[str, ...]], list[str]] = {}
    for (principal, resource, pattern, host, name), words in operations.items():
        names.setdefault((principal, resource, pattern, host, tuple(words)), []).append(name)
    for (principal, resource, pattern, host, operation_words), all_names in names.items():
        for at in range(0, len(all_names), _NAMES_AT_ONCE):
            what = _what(resource, pattern, all_names[at : at + _NAMES_AT_ONCE])
            who = _option("--allow-principal", principal) + (
                [] if host == ANY else _option("--allow-host", host)
            )
            yield _line(bootstrap, ["--add", *who, *_operations(operation_words), *what])


def removal(binding: Binding, bootstrap: str) -> str:
    """Return the kafka-acls.sh command that removes ``binding``."""
    kind = "deny" if binding.permission is Permission.DENY else "allow"
    who = [
        *_option(f"--{kind}-principal", binding.principal),
        *_option(f"--{kind}-host", binding.host),
    ]
    what = _what(binding.resource, binding.pattern, [binding.name])
    return _line(
        bootstrap, ["--remove", "--force", *who, *_operations([binding.operation.word]), *what]
    )


def _line(bootstrap: str, arguments: Sequence[str]) -> str:
    return (
        f"kafka-acls.sh --bootstrap-server {shlex.quote(bootstrap)} {_CLIENT} "
        f"{shlex.join(arguments)}"
    )


def _operations(words: Iterable[str]) -> list[str]:
    return [part for word in words for part in ("--operation", word)]


def _what(resource: Resource, pattern: Pattern, names: Iterable[str]) -> list[str]:
    if resource is Resource.CLUSTER:
        return ["--cluster"]
    parts = [part for name in names for part in _option(OPTIONS[resource], name)]
    return [
        *parts,
        *(["--resource-pattern-type", "prefixed"] if pattern is Pattern.PREFIXED else []),
    ]


def _option(option: str, value: str) -> list[str]:
    # A value that looks like an option would be parsed as one.
    return [f"{option}={value}"] if value.startswith("-") else [option, value]


def _comment(text: str) -> str:
    # A name that contains a line break must not begin a new line.
    return f"# {''.join(c if c.isprintable() else '?' for c in text)}"


# --------------------------------------------------------------------------------------------- YAML


def _yaml(facts: AclFacts, missing: Sequence[Grant], notes: Iterable[str]) -> Iterator[str]:
    """Yield one document for each Kafka cluster."""
    yield _comment(
        f"ACLs that the Connect cluster {facts.group_id} lacks. Each item is one ACL, in Kafka's "
        "words;"
    )
    yield _comment('"for" is the exactly.once.source.support that needs it.')
    yield from map(_comment, notes)
    for number, cluster in enumerate(
        dict.fromkeys([facts.bootstrap, *(grant.cluster for grant in missing)])
    ):
        of_cluster = [grant for grant in missing if grant.cluster == cluster]
        yield from ["---"] * (number > 0)
        yield from ("apiVersion: connectctl/v1", f"kind: {KIND}")
        yield f"clusterId: {_scalar(facts.clusters[cluster].cluster_id)}"
        yield f"bootstrapServers: {_scalar(cluster)}"
        yield "items:" if of_cluster else "items: []"
        for grant in of_cluster:
            yield f"  {_comment(f'For {grant.owner}.' + (f' {grant.risk}' if grant.risk else ''))}"
            for binding in grant.bindings:
                yield from _item(grant.stage, binding)


def _item(stage: AclStage, binding: Binding) -> Iterator[str]:
    yield f"  - for: {stage}"
    for name, value in as_json(binding).items():
        yield f"    {name}: {_scalar(value)}"


def _scalar(text: str) -> str:
    """Return ``text`` in double quotes. YAML reads JSON's surrogate pairs as two characters, so
    they are not used.
    """
    escaped = (
        f"\\{c}" if c in '"\\' else c if c.isprintable() else f"\\U{ord(c):08x}" for c in text
    )
    return f'"{"".join(escaped)}"'


def as_json(binding: Binding) -> dict[str, str]:
    """Return a binding in JSON, with the names of Kafka's own classes (``ResourcePattern``,
    ``AccessControlEntry``).
    """
    return {
        "resourceType": binding.resource.value,
        "resourceName": binding.name,
        "patternType": binding.pattern.value,
        "principal": binding.principal,
        "host": binding.host,
        "operation": binding.operation.value,
        "permissionType": binding.permission.value,
    }
