"""A principal's rights that are a set of bindings, as brokers tell them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from connectctl.ops.core.errors import NotAuthorized
from connectctl.ops.core.rights import Allowed
from connectctl.ops.kafka.acls import Acls, Action, Authorizer, Binding, Operation, Resource
from connectctl.ops.kafka.name_visibility import hidden_gaps, samples
from connectctl.ops.kafka.visibility import DESCRIBE_CLUSTER, Gap, Reason

ME = "User:me"


@dataclass
class FakeRights:
    """Keeps ``RightsReads`` and ``AclReads``; ``there`` are the topics that exist."""

    bindings_: tuple[Binding, ...] = ()
    there: frozenset[str] = frozenset()
    authorizer_: Authorizer = field(default_factory=Authorizer)
    secured: bool = True
    bootstrap: str = "fake:9092"

    def _may(self, operation: Operation, resource: Resource, name: str) -> bool:
        if not self.secured:
            return True
        acls = Acls(self.bindings_, self.authorizer_)
        return acls.decide(Action(ME, operation, resource, name), "127.0.0.1").allowed

    def _all(self, resource: Resource, name: str) -> frozenset[Operation]:
        return frozenset(op for op in Operation if self._may(op, resource, name))

    def cluster_id(self) -> str:
        return "fake-cluster"

    def bindings(self) -> tuple[Binding, ...] | None:
        if not self.secured:
            return None
        if not self._may(Operation.DESCRIBE, Resource.CLUSTER, "kafka-cluster"):
            raise NotAuthorized("Not allowed to list ACLs")
        return self.bindings_

    def authorizer(self) -> Authorizer:
        return self.authorizer_

    def topic_names(self) -> frozenset[str]:
        return self.there

    def wants_idempotent_write(self) -> bool:
        return False

    def on_cluster(self) -> Allowed:
        return Allowed(self._all(Resource.CLUSTER, "kafka-cluster"))

    def on_topics(self, names: Sequence[str]) -> dict[str, Allowed]:
        return {name: self._topic(name) for name in names}

    def _topic(self, name: str) -> Allowed:
        operations = self._all(Resource.TOPIC, name)
        if Operation.DESCRIBE not in operations:
            return Allowed(frozenset())
        return (
            Allowed(operations)
            if name in self.there
            else Allowed(None, "UNKNOWN_TOPIC_OR_PARTITION")
        )

    def on_groups(self, ids: Sequence[str]) -> dict[str, Allowed]:
        return {id_: Allowed(self._all(Resource.GROUP, id_)) for id_ in ids}

    def describes(self, ids: Sequence[str]) -> dict[str, bool | None]:
        return {id_: self._may(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, id_) for id_ in ids}

    def unseen(self, resource: Resource) -> tuple[Gap, ...]:
        if not self.secured:
            return ()
        sees = self._may(Operation.DESCRIBE, Resource.CLUSTER, "kafka-cluster")
        asked = samples(self.bindings_ if sees else (), resource, (), "nobodys-name")
        hidden = [name for name in asked if not self._may(Operation.DESCRIBE, resource, name)]
        denied = hidden_gaps("every name", resource, asked, hidden)
        return tuple(denied) or (
            () if sees else (Gap("every name", Reason.NOT_PROVEN, DESCRIBE_CLUSTER),)
        )

    def creates(self, names: Sequence[str]) -> dict[str, bool | None]:
        return {name: self._may(Operation.CREATE, Resource.TOPIC, name) for name in names}
