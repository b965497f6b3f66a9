"""Kafka's ACLs: bindings, and how the brokers' authorizer decides on an action by them
(``StandardAuthorizer``).

A deny wins over every allow. ``allow.everyone.if.no.acl.found`` decides for a resource without
bindings; super users are always allowed. Names are Kafka's (``TRANSACTIONAL_ID``, ``PREFIXED``);
``word`` spells them as kafka-acls.sh does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from shlex import quote

ANYBODY = "User:*"
ANY = "*"
"""Any name, where a literal pattern has it; any host, where a binding has it."""
CLUSTER_NAME = "kafka-cluster"
"""The one name that the resource CLUSTER has."""
BY_ACLS_ALONE = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)
"""Authorizers that decide by ACLs and by nothing else."""


class _Word(StrEnum):
    @property
    def word(self) -> str:
        """Return the name as kafka-acls.sh spells it: ``TransactionalId``."""
        return "".join(part.capitalize() for part in self.value.split("_"))


class Resource(_Word):
    """The type of a resource. UNKNOWN is a type of newer brokers."""

    UNKNOWN = "UNKNOWN"
    TOPIC = "TOPIC"
    GROUP = "GROUP"
    CLUSTER = "CLUSTER"
    TRANSACTIONAL_ID = "TRANSACTIONAL_ID"
    DELEGATION_TOKEN = "DELEGATION_TOKEN"  # a kind of resource, no secret
    USER = "USER"


class Pattern(_Word):
    """The type of a binding's pattern."""

    UNKNOWN = "UNKNOWN"
    LITERAL = "LITERAL"
    PREFIXED = "PREFIXED"


class Operation(_Word):
    UNKNOWN = "UNKNOWN"
    ALL = "ALL"
    READ = "READ"
    WRITE = "WRITE"
    CREATE = "CREATE"
    DELETE = "DELETE"
    ALTER = "ALTER"
    DESCRIBE = "DESCRIBE"
    CLUSTER_ACTION = "CLUSTER_ACTION"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    ALTER_CONFIGS = "ALTER_CONFIGS"
    IDEMPOTENT_WRITE = "IDEMPOTENT_WRITE"
    CREATE_TOKENS = "CREATE_TOKENS"
    DESCRIBE_TOKENS = "DESCRIBE_TOKENS"
    TWO_PHASE_COMMIT = "TWO_PHASE_COMMIT"


class Permission(_Word):
    UNKNOWN = "UNKNOWN"
    ALLOW = "ALLOW"
    DENY = "DENY"


_IMPLIED = {
    Operation.DESCRIBE: frozenset(
        {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""Operations that come with others; where they are allowed, not where they are denied."""


@dataclass(frozen=True, slots=True, order=True)
class Binding:
    """One ACL: it allows or denies ``principal`` (``User:x``) from ``host`` the ``operation`` on
    the resources of its pattern.
    """

    resource: Resource
    name: str
    pattern: Pattern
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def covers(self, name: str) -> bool:
        """Return whether the pattern matches the resource ``name``."""
        if self.pattern is Pattern.PREFIXED:
            return name.startswith(self.name)
        return self.pattern is Pattern.LITERAL and self.name in (name, ANY)

    def concerns(self, action: Action, host: str) -> bool:
        """Return whether the binding decides ``action`` from ``host``, for a resource that its
        pattern matches.
        """
        if self.principal not in (action.principal, ANYBODY) or self.host not in (host, ANY):
            return False
        if self.operation in (action.operation, Operation.ALL):
            return True
        return self.permission is Permission.ALLOW and self.operation in _IMPLIED.get(
            action.operation, frozenset()
        )

    def __str__(self) -> str:
        what = f"{self.operation.word} on {self.resource.word} {self.name}"
        prefixed = "… (prefixed)" if self.pattern is Pattern.PREFIXED else ""
        host = "" if self.host == ANY else f" from {self.host}"
        return f"{self.permission.word} {self.principal}{host} {what}{prefixed}"


@dataclass(frozen=True, slots=True, order=True)
class Action:
    """An ``operation`` of a principal on the resource of this name."""

    principal: str
    operation: Operation
    resource: Resource
    name: str


@dataclass(frozen=True)
class Authorizer:
    """The brokers' authorizer by their configuration; None for a value that cannot be read.

    ``class_name`` is empty if there is no authorizer. Brokers hide the values of ``super.users``
    and ``allow.everyone.if.no.acl.found`` from everybody, because a property that they do not know
    may be a secret; they only show that these are set.
    """

    class_name: str | None = None
    super_users: frozenset[str] | None = None
    open_by_default: bool | None = None

    @property
    def decides_by_more(self) -> bool:
        """Return whether this authorizer may decide by more than ACLs."""
        return bool(self.class_name) and self.class_name not in BY_ACLS_ALONE


class Because(StrEnum):
    SUPER_USER = "super user"
    ALLOWED = "allowed by a binding"
    DENIED = "denied by a binding"
    OPEN = "no binding exists, and everyone is allowed"
    NO_ACL = "no binding exists"
    NOT_MINE = "others have bindings"


@dataclass(frozen=True)
class Decision:
    """The authorizer's decision on an action, and the bindings that it rests on: all that allow, or
    all that deny.
    """

    allowed: bool
    because: Because
    bindings: tuple[Binding, ...] = ()


@dataclass(frozen=True)
class Acls:
    """All bindings of a Kafka cluster, with its authorizer."""

    bindings: tuple[Binding, ...]
    authorizer: Authorizer = Authorizer()

    @cached_property
    def _by_pattern(self) -> dict[tuple[Resource, Pattern, str], list[Binding]]:
        found: dict[tuple[Resource, Pattern, str], list[Binding]] = {}
        for binding in self.bindings:
            found.setdefault((binding.resource, binding.pattern, binding.name), []).append(binding)
        return found

    @cached_property
    def _prefix_lengths(self) -> dict[Resource, set[int]]:
        found: dict[Resource, set[int]] = {}
        for resource, pattern, name in self._by_pattern:
            if pattern is Pattern.PREFIXED:
                found.setdefault(resource, set()).add(len(name))
        return found

    @cached_property
    def hosts(self) -> frozenset[str]:
        """Return the hosts that any binding names: from all others, everything is decided alike."""
        return frozenset(binding.host for binding in self.bindings) - {ANY}

    def on(self, resource: Resource, name: str) -> Iterator[Binding]:
        """Yield the bindings whose pattern covers the resource: found by its prefixes, for clusters
        have many thousands.
        """
        for literal in dict.fromkeys((name, ANY)):
            yield from self._by_pattern.get((resource, Pattern.LITERAL, literal), ())
        for length in self._prefix_lengths.get(resource, ()):
            if length <= len(name):
                yield from self._by_pattern.get((resource, Pattern.PREFIXED, name[:length]), ())

    def decide(self, action: Action, host: str) -> Decision:
        """Return the authorizer's decision on ``action`` from ``host``, an address as the broker
        sees it.

        ``host`` may be ``*`` if it is unknown: then only bindings for any host count.
        """
        if action.principal in (self.authorizer.super_users or ()):
            return Decision(True, Because.SUPER_USER)
        bindings = list(self.on(action.resource, action.name))
        mine = [binding for binding in bindings if binding.concerns(action, host)]
        denying = tuple(b for b in mine if b.permission is Permission.DENY)
        if denying:
            return Decision(False, Because.DENIED, denying)
        if allowing := tuple(b for b in mine if b.permission is Permission.ALLOW):
            return Decision(True, Because.ALLOWED, allowing)
        if bindings:
            return Decision(False, Because.NOT_MINE)
        if self.authorizer.open_by_default:
            return Decision(True, Because.OPEN)
        return Decision(False, Because.NO_ACL)


OPTIONS = {
    Resource.TOPIC: "--topic",
    Resource.GROUP: "--group",
    Resource.TRANSACTIONAL_ID: "--transactional-id",
}
"""The options of kafka-acls.sh that name a resource; the cluster has none to name."""


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """An operation that an ACL allows on one resource; ``name`` is ``*`` for every resource of that
    type.

    ``prefixed``: on all resources whose names begin with ``name``.
    """

    operation: Operation
    resource: Resource
    name: str = CLUSTER_NAME
    prefixed: bool = False

    def __str__(self) -> str:
        return (
            f"{self.operation.word} on {self.resource.word} "
            f"{self.name}{'… (prefixed)' if self.prefixed else ''}"
        )

    @property
    def arguments(self) -> str:
        """Return the right as arguments of kafka-acls.sh (``--operation Describe --group
        connect-prod``), quoted for a shell.
        """
        option = OPTIONS.get(self.resource)
        about = f"{option} {quote(self.name)}" if option else "--cluster"
        pattern = " --resource-pattern-type prefixed" if self.prefixed else ""
        return f"--operation {self.operation.word} {about}{pattern}"
