"""The contract of ACLs that both the fake and a broker keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.kafka.acls import BY_ACLS_ALONE, Binding, Operation, Resource
from fakes.acls import allow

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import AclReads


BINDINGS: tuple[Binding, ...] = (
    allow("User:contract", Operation.WRITE, Resource.TRANSACTIONAL_ID, "contract-", prefixed=True),
    allow("User:contract", Operation.ALL, Resource.TOPIC, "*", host="10.1.2.3"),
    allow("User:contract", Operation.READ, Resource.GROUP, "contract", deny=True),
    allow("User:CN=contract,O=x", Operation.DESCRIBE, Resource.CLUSTER, "kafka-cluster"),
)


class GuardedContract:
    """Brokers with an authorizer, and ``BINDINGS`` among their ACLs; their super users are set and
    hidden.
    """

    def test_acls_are_read_as_they_were_made(self, reads: AclReads) -> None:
        assert set(BINDINGS) <= set(reads.bindings() or ())

    def test_the_authorizer_is_known_and_its_super_users_are_not(self, reads: AclReads) -> None:
        found = reads.authorizer()
        assert found.class_name == BY_ACLS_ALONE[0]
        assert (found.super_users, found.open_by_default) == (None, False)
