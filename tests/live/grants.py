"""ACLs made and taken away on a real broker, for the time of a test."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.kafka_protocol.acls import AclReader
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.kafka.acls import Binding, Operation, Pattern, Permission, Resource

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

# Kafka's numbers, counted here apart from the edge that reads them.
RESOURCES = {
    Resource.TOPIC: 2,
    Resource.GROUP: 3,
    Resource.CLUSTER: 4,
    Resource.TRANSACTIONAL_ID: 5,
}
PATTERNS = {Pattern.LITERAL: 3, Pattern.PREFIXED: 4}
PERMISSIONS = {Permission.DENY: 2, Permission.ALLOW: 3}
OPERATIONS = {
    Operation.ALL: 2,
    Operation.READ: 3,
    Operation.WRITE: 4,
    Operation.CREATE: 5,
    Operation.DELETE: 6,
    Operation.ALTER: 7,
    Operation.DESCRIBE: 8,
    Operation.DESCRIBE_CONFIGS: 10,
    Operation.ALTER_CONFIGS: 11,
    Operation.IDEMPOTENT_WRITE: 12,
}


class Grants:
    """Changes a broker's ACLs as its super user, and waits until the broker has them."""

    def __init__(self, cluster: Sandbox):
        properties = {"bootstrap.servers": cluster.bootstrap_servers}
        self.reads = AclReader(properties, timeout=120)
        self._wire = KafkaProtocolClient(properties, timeout=120)

    def close(self) -> None:
        self.reads.close()
        self._wire.close()

    def there(self) -> set[Binding]:
        return set(self.reads.bindings() or ())

    def add(self, bindings: Iterable[Binding]) -> None:
        from kafka.protocol.admin.acl import CreateAclsRequest

        wanted = set(bindings)
        creations = [
            CreateAclsRequest.AclCreation(resource_name=b.name, **_fields(b, "")) for b in wanted
        ]
        answer = self._ask(CreateAclsRequest(creations=creations, min_version=1))
        assert [result.error_code for result in answer.results] == [0] * len(wanted), answer
        self._until(lambda: wanted <= self.there())

    def remove(self, bindings: Iterable[Binding]) -> None:
        from kafka.protocol.admin.acl import DeleteAclsRequest

        gone = set(bindings)
        filters = [
            DeleteAclsRequest.DeleteAclsFilter(resource_name_filter=b.name, **_fields(b, "_filter"))
            for b in gone
        ]
        self._ask(DeleteAclsRequest(filters=filters, min_version=1))
        self._until(lambda: not gone & self.there())

    @contextmanager
    def given(self, *bindings: Binding) -> Iterator[None]:
        """Just for a moment. The broker that answers is the one that decides."""
        self.add(bindings)
        try:
            yield
        finally:
            self.remove(bindings)

    def _ask(self, request: Any) -> Any:
        return self._wire.run("change ACLs", lambda: self._wire.ask(request))

    def _until(self, true: Any) -> None:
        end = time.monotonic() + 600
        while not true():
            assert time.monotonic() < end, "the broker does not take over the ACLs"
            time.sleep(0.05)


def _fields(b: Binding, suffix: str) -> dict[str, Any]:
    return {
        f"resource_type{suffix}": RESOURCES[b.resource],
        "pattern_type_filter" if suffix else "resource_pattern_type": PATTERNS[b.pattern],
        f"principal{suffix}": b.principal,
        f"host{suffix}": b.host,
        "operation": OPERATIONS[b.operation],
        "permission_type": PERMISSIONS[b.permission],
    }
