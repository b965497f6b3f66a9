"""Which commands of connectctl work whole with the principal in use, which see a part, and which are refused.

The table is ``ops/core/rights.py``; brokers report what is allowed. What they do not report is unknown, never allowed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.rights import COMMANDS, Allowed, Effect, Name, When, needs_of
from connectctl.ops.kafka.acls import ANY, CLUSTER_NAME, Operation, Resource, Right
from connectctl.ops.kafka.visibility import Reason

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import AclReads, RightsReads
    from connectctl.ops.core.rights import Need

ANYTHING = {Name.ANY_TOPIC: Resource.TOPIC, Name.ANY_ID: Resource.TRANSACTIONAL_ID}
_ENDS_TRANSACTIONS = {Operation.ALTER: Operation.CLUSTER_ACTION}
"""What also allows an operation on the cluster: markers are written by brokers, too (KIP-664)."""
NOT_TOLD = "no request tells it without using it"
HIDES = "Kafka leaves out what may not be described, and does not say so"


class State(StrEnum):
    """Whether a right is there."""

    ALLOWED = "allowed"
    MISSING = "missing"
    UNKNOWN = "not known"


class Verdict(StrEnum):
    """What a command can do. UNKNOWN: whole, as far as can be told."""

    WHOLE = "whole"
    UNKNOWN = "not known"
    PART = "sees a part"
    REFUSED = "refused"


@dataclass(frozen=True)
class Places:
    """The cluster's own names for what rights are on, by role. A role without names here is not used on this cluster.

    ``lost`` are the roles whose names could not be found out, and why.
    """

    names: Mapping[Name, tuple[str, ...]]
    lost: Mapping[Name, str] = field(default_factory=dict)
    named: bool = False
    """Whether all internal topics were named, so that none is looked for."""
    exist: frozenset[str] = frozenset()
    """Those of the topics that are there, as far as they may be seen."""


@dataclass(frozen=True)
class Checked:
    """One right of a command on this cluster, and whether it is there. ``why`` where that is not known."""

    need: Need
    right: Right
    state: State
    why: str = ""


@dataclass(frozen=True)
class OfCommand:
    """What the principal can do with one command."""

    command: str
    rights: tuple[Checked, ...]

    def of(self, state: State) -> tuple[Checked, ...]:
        """Its rights of that state."""
        return tuple(each for each in self.rights if each.state is state)

    @property
    def verdict(self) -> Verdict:
        """The worst that a right makes of it."""
        missing = {each.need.effect for each in self.of(State.MISSING)}
        if Effect.REFUSED in missing:
            return Verdict.REFUSED
        if missing:
            return Verdict.PART
        return Verdict.UNKNOWN if self.of(State.UNKNOWN) else Verdict.WHOLE


def commands(reads: RightsReads, acls: AclReads, places: Places, wanted: Sequence[str] = ()) -> tuple[OfCommand, ...]:
    """Every command, or those ``wanted``, in the order of the table."""
    granted = _Granted(reads, acls, places)
    found = []
    for command in wanted or COMMANDS:
        rights = tuple(right for need in needs_of(command) for right in granted.each(need))
        found.append(OfCommand(command, rights))
    return tuple(found)


class _Granted:
    """What brokers say, asked once for all commands."""

    def __init__(self, reads: RightsReads, acls: AclReads, places: Places) -> None:
        self._places = places
        try:
            self.unrestricted = acls.bindings() is None
        except ConnectctlError:
            self.unrestricted = False
        # A name that nobody has: what is not allowed for it is not allowed for every name.
        self._nobodys = f"{uuid.uuid4().hex}-connectctl"
        topics = self._of(Resource.TOPIC)
        self._cluster = reads.on_cluster()
        self._topics = reads.on_topics(topics)
        self._groups = reads.on_groups([*self._of(Resource.GROUP), self._nobodys])
        self._ids = reads.describes(self._of(Resource.TRANSACTIONAL_ID))
        self._unseen = {resource: reads.unseen(resource) for resource in ANYTHING.values()}
        missing = [name for name in topics if name not in places.exist]
        self._creates = reads.creates(missing) if missing else {}

    def _of(self, resource: Resource) -> list[str]:
        roles = {need.name for needs in COMMANDS.values() for need in needs if need.resource is resource}
        return list(dict.fromkeys(name for role in roles for name in self._places.names.get(role, ())))

    def each(self, need: Need) -> Iterator[Checked]:
        """The right on each of the names that it is about."""
        if need.when is When.UNNAMED and self._places.named:
            return
        if need.name in self._places.lost:
            yield Checked(need, Right(need.operation, need.resource, f"<{need.name}>"), *self._lost(need))
            return
        for name in self._names(need):
            if need.when is When.CREATES and name in self._places.exist:
                continue
            state, why = (State.ALLOWED, "") if self.unrestricted else self._state(need, name)
            yield Checked(need, Right(need.operation, need.resource, name), state, why)

    def _names(self, need: Need) -> Sequence[str]:
        if need.resource is Resource.CLUSTER:
            return (CLUSTER_NAME,)
        if need.name in (*ANYTHING, Name.ANY_GROUP):
            return (ANY,)
        return self._places.names.get(need.name, ())

    def _lost(self, need: Need) -> tuple[State, str]:
        return (State.ALLOWED, "") if self.unrestricted else (State.UNKNOWN, self._places.lost[need.name])

    def _state(self, need: Need, name: str) -> tuple[State, str]:
        if need.resource is Resource.CLUSTER:
            return _told(self._cluster, need.operation, _ENDS_TRANSACTIONS.get(need.operation))
        if name == ANY:
            return self._every(need)
        if need.resource is Resource.GROUP:
            return _told(self._groups[name], need.operation)
        if need.resource is Resource.TRANSACTIONAL_ID:
            return self._on_id(need.operation, self._ids.get(name))
        if need.operation is Operation.CREATE:
            return self._on_missing_topic(name)
        return _told(self._topics[name], need.operation)

    def _every(self, need: Need) -> tuple[State, str]:
        if need.name is Name.ANY_GROUP:
            # Whoever may describe the cluster is told of every group (KafkaApis.handleListGroupsRequest).
            if _told(self._cluster, Operation.DESCRIBE)[0] is State.ALLOWED:
                return State.ALLOWED, ""
            operations = self._groups[self._nobodys].operations
            denied = operations is not None and Operation.DESCRIBE not in operations
            return (State.MISSING, "") if denied else (State.UNKNOWN, HIDES)
        gaps = self._unseen[need.resource]
        if any(gap.reason is Reason.NOT_AUTHORIZED for gap in gaps):
            return State.MISSING, ""
        return (State.UNKNOWN, f"{HIDES}; {gaps[0].why}") if gaps else (State.ALLOWED, "")

    def _on_id(self, operation: Operation, described: bool | None) -> tuple[State, str]:
        if described is False:
            return State.MISSING, ""  # Write comes with Describe: who lacks the one lacks the other
        if operation is Operation.DESCRIBE and described:
            return State.ALLOWED, ""
        return State.UNKNOWN, NOT_TOLD if described else "no coordinator answered"

    def _on_missing_topic(self, name: str) -> tuple[State, str]:
        on_cluster, _ = _told(self._cluster, Operation.CREATE)
        created = self._creates.get(name)
        if on_cluster is State.ALLOWED or created:
            return State.ALLOWED, ""
        return (State.UNKNOWN, "the broker does not report it") if created is None else (State.MISSING, "")


def _told(allowed: Allowed, operation: Operation, other: Operation | None = None) -> tuple[State, str]:
    if allowed.operations is None:
        return State.UNKNOWN, allowed.why
    there = operation in allowed.operations or other in allowed.operations
    return (State.ALLOWED, "") if there else (State.MISSING, "")
