"""Asks the brokers whether this principal is allowed to see every transactional id, or every topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from uuid import uuid4

from connectctl.ops.clients.kafka_protocol.acls import AclQueries
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.core.errors import NotAuthorized
from connectctl.ops.kafka.acls import Binding, Resource
from connectctl.ops.kafka.name_visibility import hidden_gaps, samples
from connectctl.ops.kafka.visibility import DESCRIBE_BROKERS, DESCRIBE_CLUSTER, Gap, Reason


class Namespaces:
    """What this principal sees of the names on one Kafka cluster. The ACLs are read once."""

    def __init__(self, wire: KafkaProtocolClient) -> None:
        self._acls = AclQueries(wire)

    def gaps(
        self, subject: str, resource: Resource, prefixes: Sequence[str], hidden: Callable[[list[str]], Iterable[str]]
    ) -> tuple[Gap, ...]:
        """What may be hidden of the names that begin with ``prefixes``, or of all; empty where that is nothing, proven.

        ``hidden`` picks from a list of names those that the brokers refuse to describe.
        """
        bindings, doubt = self._bindings
        if bindings is None:
            return ()
        asked = samples(bindings, resource, prefixes, uuid4().hex)
        denied = hidden_gaps(subject, resource, asked, hidden(list(asked)))
        if denied:
            return tuple(denied)
        return (Gap(subject, doubt.reason, doubt.right, doubt.detail),) if doubt else ()

    @cached_property
    def _bindings(self) -> tuple[Sequence[Binding] | None, Gap | None]:
        """All ACLs, None where there is no authorizer; and why they do not prove anything, where they do not."""
        try:
            bindings = self._acls.bindings()
        except NotAuthorized:
            return (), Gap("", Reason.NOT_PROVEN, DESCRIBE_CLUSTER, "to read the ACLs")
        if bindings is None:
            return None, None
        try:
            authorizer = self._acls.authorizer()
        except NotAuthorized:
            return bindings, Gap("", Reason.NOT_PROVEN, DESCRIBE_BROKERS, "to read which authorizer decides")
        if authorizer.decides_by_more:
            return bindings, Gap("", Reason.NOT_PROVEN, None, f"{authorizer.class_name} decides by more than ACLs")
        return bindings, None
