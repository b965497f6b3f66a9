"""The commands of connectctl that the principal in use may run completely, partly, or not.

The table is ``ops/core/rights.py``; brokers report the allowed operations. Operations that they do
not report are unknown, never allowed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from connectctl.ops.checks.acls.emit import additions
from connectctl.ops.clients.protocols import AclReads, RightsReads
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rights import COMMANDS, Allowed, Effect, Name, Need, When, needs_of
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka.acls import (
    ANY,
    CLUSTER_NAME,
    Binding,
    Operation,
    Pattern,
    Permission,
    Resource,
    Right,
)
from connectctl.ops.kafka.visibility import Reason, grant

MISSING = Rule("RIGHT001", Severity.ERROR)
UNKNOWN = Rule("RIGHT002", Severity.INFO)
ANYTHING = {Name.ANY_TOPIC: Resource.TOPIC, Name.ANY_ID: Resource.TRANSACTIONAL_ID}
_ENDS_TRANSACTIONS = {Operation.ALTER: Operation.CLUSTER_ACTION}
"""Another operation that also allows an operation on the cluster: brokers write markers as well
(KIP-664).
"""
NOT_REPORTED = "no request reports it without using it"
HIDES = "Kafka omits what the principal may not describe, without an error"


class RightState(StrEnum):
    ALLOWED = "allowed"
    MISSING = "missing"
    UNKNOWN = "not known"


class CommandVerdict(StrEnum):
    """The result for a command. UNKNOWN: nothing is known to be missing."""

    WHOLE = "whole"
    UNKNOWN = "not known"
    PART = "sees a part"
    REFUSED = "refused"


@dataclass(frozen=True)
class ResourceNames:
    """The names of the cluster's resources, by role. A role without names is not used on this
    cluster.

    ``lost`` are the roles whose names could not be determined, with the reason.
    """

    names: Mapping[Name, tuple[str, ...]]
    lost: Mapping[Name, str] = field(default_factory=dict)
    named: bool = False
    """Whether the user named all internal topics, so that none is searched."""
    exist: frozenset[str] = frozenset()
    """The topics that exist, as far as they are visible."""


@dataclass(frozen=True)
class Checked:
    """One right of a command on this cluster, and its state; ``why`` is the reason if it is
    unknown.
    """

    need: Need
    right: Right
    state: RightState
    why: str = ""


@dataclass(frozen=True)
class OfCommand:
    """The rights of the principal for one command."""

    command: str
    rights: tuple[Checked, ...]

    def of(self, state: RightState) -> tuple[Checked, ...]:
        return tuple(right for right in self.rights if right.state is state)

    @property
    def verdict(self) -> CommandVerdict:
        """Return the result by the most severe effect of a missing right."""
        missing = {right.need.effect for right in self.of(RightState.MISSING)}
        if Effect.REFUSED in missing:
            return CommandVerdict.REFUSED
        if missing:
            return CommandVerdict.PART
        return CommandVerdict.UNKNOWN if self.of(RightState.UNKNOWN) else CommandVerdict.WHOLE


def commands(
    reads: RightsReads, acls: AclReads, resources: ResourceNames, wanted: Sequence[str] = ()
) -> tuple[OfCommand, ...]:
    """Return every command, or those in ``wanted``, in the order of the table."""
    granted = _Granted(reads, acls, resources)
    found = []
    for command in wanted or COMMANDS:
        rights = tuple(right for need in needs_of(command) for right in granted.each(need))
        found.append(OfCommand(command, rights))
    return tuple(found)


class _Granted:
    """The brokers' responses, requested once for all commands."""

    def __init__(self, reads: RightsReads, acls: AclReads, resources: ResourceNames) -> None:
        self._resources = resources
        try:
            self.unrestricted = acls.bindings() is None
        except ConnectctlError:
            self.unrestricted = False
        # An unused name: an operation that is not allowed for it is not allowed for every name.
        self._unused_group = f"{uuid.uuid4().hex}-connectctl"
        topics = self._of(Resource.TOPIC)
        self._cluster = reads.on_cluster()
        self._topics = reads.on_topics(topics)
        self._groups = reads.on_groups([*self._of(Resource.GROUP), self._unused_group])
        self._ids = reads.describes(self._of(Resource.TRANSACTIONAL_ID))
        self._unseen = {resource: reads.unseen(resource) for resource in ANYTHING.values()}
        missing = [name for name in topics if name not in resources.exist]
        self._creates = reads.creates(missing) if missing else {}

    def _of(self, resource: Resource) -> list[str]:
        roles = {
            need.name for needs in COMMANDS.values() for need in needs if need.resource is resource
        }
        return list(
            dict.fromkeys(name for role in roles for name in self._resources.names.get(role, ()))
        )

    def each(self, need: Need) -> Iterator[Checked]:
        """Yield the right on each name of its role."""
        if need.when is When.UNNAMED and self._resources.named:
            return
        if need.name in self._resources.lost:
            yield Checked(
                need, Right(need.operation, need.resource, f"<{need.name}>"), *self._lost(need)
            )
            return
        for name in self._names(need):
            if need.when is When.CREATES and name in self._resources.exist:
                continue
            state, why = (RightState.ALLOWED, "") if self.unrestricted else self._state(need, name)
            yield Checked(need, Right(need.operation, need.resource, name), state, why)

    def _names(self, need: Need) -> Sequence[str]:
        if need.resource is Resource.CLUSTER:
            return (CLUSTER_NAME,)
        if need.name in (*ANYTHING, Name.ANY_GROUP):
            return (ANY,)
        return self._resources.names.get(need.name, ())

    def _lost(self, need: Need) -> tuple[RightState, str]:
        return (
            (RightState.ALLOWED, "")
            if self.unrestricted
            else (RightState.UNKNOWN, self._resources.lost[need.name])
        )

    def _state(self, need: Need, name: str) -> tuple[RightState, str]:
        if need.resource is Resource.CLUSTER:
            return _state_of(self._cluster, need.operation, _ENDS_TRANSACTIONS.get(need.operation))
        if name == ANY:
            return self._every(need)
        if need.resource is Resource.GROUP:
            return _state_of(self._groups[name], need.operation)
        if need.resource is Resource.TRANSACTIONAL_ID:
            return self._on_id(need.operation, self._ids.get(name))
        if need.operation is Operation.CREATE:
            return self._on_missing_topic(name)
        return _state_of(self._topics[name], need.operation)

    def _every(self, need: Need) -> tuple[RightState, str]:
        if need.name is Name.ANY_GROUP:
            # Describe on the cluster lists every group (KafkaApis.handleListGroupsRequest).
            if _state_of(self._cluster, Operation.DESCRIBE)[0] is RightState.ALLOWED:
                return RightState.ALLOWED, ""
            operations = self._groups[self._unused_group].operations
            denied = operations is not None and Operation.DESCRIBE not in operations
            return (RightState.MISSING, "") if denied else (RightState.UNKNOWN, HIDES)
        gaps = self._unseen[need.resource]
        if any(gap.reason is Reason.NOT_AUTHORIZED for gap in gaps):
            return RightState.MISSING, ""
        return (RightState.UNKNOWN, f"{HIDES}; {gaps[0].why}") if gaps else (RightState.ALLOWED, "")

    def _on_id(self, operation: Operation, described: bool | None) -> tuple[RightState, str]:
        if described is False:
            # Write includes Describe: a principal without Describe lacks Write
            return RightState.MISSING, ""
        if operation is Operation.DESCRIBE and described:
            return RightState.ALLOWED, ""
        return RightState.UNKNOWN, NOT_REPORTED if described else "no coordinator answered"

    def _on_missing_topic(self, name: str) -> tuple[RightState, str]:
        on_cluster, _ = _state_of(self._cluster, Operation.CREATE)
        created = self._creates.get(name)
        if on_cluster is RightState.ALLOWED or created:
            return RightState.ALLOWED, ""
        return (
            (RightState.UNKNOWN, "the broker does not report it")
            if created is None
            else (RightState.MISSING, "")
        )


def _state_of(
    allowed: Allowed, operation: Operation, other: Operation | None = None
) -> tuple[RightState, str]:
    if allowed.operations is None:
        return RightState.UNKNOWN, allowed.why
    is_allowed = operation in allowed.operations or other in allowed.operations
    return (RightState.ALLOWED, "") if is_allowed else (RightState.MISSING, "")


def findings(found: Sequence[OfCommand]) -> Iterator[Finding]:
    """Yield one finding for each missing right and for each unknown one, with the commands that
    need it.
    """
    for state, rule in ((RightState.MISSING, MISSING), (RightState.UNKNOWN, UNKNOWN)):
        for right, needing in _by_right(found, state).items():
            refused = [
                command for command, checked in needing if checked.need.effect is Effect.REFUSED
            ]
            part = [command for command, checked in needing if checked.need.effect is Effect.PART]
            texts = [f"refused without it: {', '.join(refused)}"] if refused else []
            texts += [f"sees a part: {', '.join(part)}"] if part else []
            why = next((checked.why for _, checked in needing if checked.why), "")
            message = f"{'; '.join(texts)}{f' ({why})' if why else ''}."
            severity = Severity.WARNING if state is RightState.MISSING and not refused else None
            hint = grant(right) if state is RightState.MISSING else None
            yield rule.found(str(right), message[0].upper() + message[1:], hint, severity=severity)


def _by_right(
    found: Sequence[OfCommand], state: RightState
) -> dict[Right, list[tuple[str, Checked]]]:
    by_right: dict[Right, list[tuple[str, Checked]]] = {}
    for command in found:
        for checked in command.of(state):
            by_right.setdefault(checked.right, []).append((command.command, checked))
    return by_right


def emitted(found: Sequence[OfCommand], principal: str, bootstrap: str) -> Iterator[str]:
    """Yield kafka-acls.sh commands that add the missing rights; unknown ones follow as comments for
    the operator.
    """
    yield "#!/bin/sh"
    yield f"# Rights that connectctl lacks as {_printable(principal)}."
    yield "# Set CLIENT_PROPERTIES to a Java properties file if the brokers require credentials."
    missing = [_binding(right, principal) for right in _by_right(found, RightState.MISSING)]
    yield from additions(missing, bootstrap) if missing else ["# Nothing is missing."]
    unknown = _by_right(found, RightState.UNKNOWN)
    names = {right: needing for right, needing in unknown.items() if not right.name.startswith("<")}
    if names:
        yield "# Unknown whether these rights are granted:"
        yield from (
            f"# {line}"
            for line in additions([_binding(right, principal) for right in names], bootstrap)
        )
    for right, needing in unknown.items():
        if right not in names:
            yield f"# {_printable(f'{right}: {needing[0][1].why}.')}"


def _binding(right: Right, principal: str) -> Binding:
    return Binding(
        right.resource,
        right.name,
        Pattern.LITERAL,
        principal,
        ANY,
        right.operation,
        Permission.ALLOW,
    )


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
