"""The ACLs of a Kafka cluster in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.acls import (
    BY_ACLS_ALONE,
    Authorizer,
    Binding,
    Operation,
    Pattern,
    Permission,
    Resource,
)


@dataclass
class FakeAcls:
    """Keeps ``AclReads``. ``acls`` is None without an authorizer; ``errors`` are raised by the
    methods they name.
    """

    acls: list[Binding] | None = field(default_factory=list)
    settings: Authorizer = field(
        default_factory=lambda: Authorizer(BY_ACLS_ALONE[0], frozenset(), False)
    )
    topics: set[str] = field(default_factory=set)
    bootstrap: str = "fake:9092"
    id: str = "fake-cluster"
    old: bool = False
    errors: dict[str, ConnectctlError] = field(default_factory=dict)

    def _maybe_fail(self, method: str) -> None:
        if method in self.errors:
            raise self.errors[method]

    def cluster_id(self) -> str:
        self._maybe_fail("cluster_id")
        return self.id

    def bindings(self) -> tuple[Binding, ...] | None:
        self._maybe_fail("bindings")
        return None if self.acls is None else tuple(self.acls)

    def authorizer(self) -> Authorizer:
        self._maybe_fail("authorizer")
        return Authorizer("") if self.acls is None else self.settings

    def topic_names(self) -> frozenset[str]:
        self._maybe_fail("topic_names")
        return frozenset(self.topics)

    def wants_idempotent_write(self) -> bool:
        return self.old


def allow(
    principal: str,
    operation: Operation,
    resource: Resource,
    name: str,
    *,
    prefixed: bool = False,
    host: str = "*",
    deny: bool = False,
) -> Binding:
    """A binding, literal and from anywhere unless said otherwise."""
    pattern = Pattern.PREFIXED if prefixed else Pattern.LITERAL
    permission = Permission.DENY if deny else Permission.ALLOW
    return Binding(resource, name, pattern, principal, host, operation, permission)
