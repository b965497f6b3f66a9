"""The ACLs of a Kafka cluster and the settings of its authorizer, through kafka-python: librdkafka
knows fewer resources.

By them it is proven whether this principal is allowed to see every transactional id, or every
topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any
from uuid import uuid4

from connectctl.ops.clients.kafka_protocol.client import ClusterClient, KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.leaders import metadata_request
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from connectctl.ops.kafka.acls import (
    Authorizer,
    Binding,
    Operation,
    Pattern,
    Permission,
    Resource,
    Right,
)
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.name_visibility import hidden_gaps, samples
from connectctl.ops.kafka.visibility import (
    DESCRIBE_BROKERS,
    DESCRIBE_CLUSTER,
    Gap,
    Reason,
    not_authorized,
)

_ANY = 1
_SECURITY_DISABLED = 54
_BROKER = 4
"""The type of a broker in DescribeConfigs."""
_AUTHORIZER, _SUPER, _OPEN = (
    "authorizer.class.name",
    "super.users",
    "allow.everyone.if.no.acl.found",
)
_RESOURCES = {
    2: "TOPIC",
    3: "GROUP",
    4: "CLUSTER",
    5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN",
    7: "USER",
}
_PATTERNS = {3: "LITERAL", 4: "PREFIXED"}
_PERMISSIONS = {2: "DENY", 3: "ALLOW"}
OPERATIONS = dict(enumerate(list(Operation)[1:], start=2))
"""Kafka's numbers (``ResourceType``, ``PatternType``, ``AclPermissionType``, ``AclOperation``),
which never change.
"""


class AclQueries:
    """The ACLs at the other end of ``wire``, as ``AclReads`` gives them."""

    def __init__(self, wire: KafkaProtocolClient) -> None:
        self._wire = wire

    @property
    def bootstrap(self) -> str:
        return self._wire.bootstrap

    def bindings(self) -> tuple[Binding, ...] | None:
        from kafka.protocol.admin.acl import DescribeAclsRequest

        request = DescribeAclsRequest(
            resource_type_filter=_ANY,
            resource_name_filter=None,
            pattern_type_filter=_ANY,
            principal_filter=None,
            host_filter=None,
            operation=_ANY,
            permission_type=_ANY,
            min_version=1,
        )
        answer = self._wire.run("list its ACLs", lambda: self._wire.ask(request))
        if answer.error_code == _SECURITY_DISABLED:
            return None
        self._check(answer.error_code, answer.error_message, "list its ACLs", DESCRIBE_CLUSTER)
        return tuple(
            _binding(resource, acl) for resource in answer.resources for acl in resource.acls
        )

    def authorizer(self) -> Authorizer:
        from kafka.protocol.admin import DescribeConfigsRequest

        broker = self._wire.brokers()[0]
        names = [_AUTHORIZER, _SUPER, _OPEN]
        filters = {
            "resource_type": _BROKER,
            "resource_name": str(broker),
            "configuration_keys": names,
        }
        request = DescribeConfigsRequest(
            resources=[DescribeConfigsRequest.DescribeConfigsResource(**filters)]
        )
        answer = self._wire.run("describe its brokers", lambda: self._wire.ask(request, broker))
        result = answer.results[0]
        self._check(
            result.error_code, result.error_message, "describe its brokers", DESCRIBE_BROKERS
        )
        return _authorizer({entry.name: entry.value for entry in result.configs})

    def _check(self, code: int, words: str | None, doing: str, right: Right) -> None:
        if code == Code.CLUSTER_AUTHORIZATION_FAILED:
            # The broker's own words are the whole request, printed.
            raise not_authorized(f"Not authorized to {doing} (Kafka at {self.bootstrap})", right)
        if code != Code.NONE:
            what = f"Kafka at {self.bootstrap} could not {doing}"
            raise ConnectctlError(what, why=words or f"it answers with error {code}")


class AclReader(ClusterClient, AclQueries):
    """The ACLs of one Kafka cluster. ``properties`` are librdkafka's; ``timeout`` is in seconds."""

    def topic_names(self) -> frozenset[str]:
        answer = self._wire.run("list its topics", lambda: self._wire.ask(metadata_request(None)))
        return frozenset(topic.name for topic in answer.topics)

    def wants_idempotent_write(self) -> bool:
        from kafka.protocol.admin.cluster import DescribeClusterRequest

        _ = self._wire.manager
        # DescribeCluster came with 2.8 (KIP-700), as did idempotent producers without that ACL
        # (KIP-679).
        return self._wire.newest(DescribeClusterRequest) < 0


class Namespaces:
    """The names on one Kafka cluster that this principal may see. The ACLs are read once."""

    def __init__(self, wire: KafkaProtocolClient) -> None:
        self._acls = AclQueries(wire)

    def gaps(
        self,
        subject: str,
        resource: Resource,
        prefixes: Sequence[str],
        hidden: Callable[[list[str]], Iterable[str]],
    ) -> tuple[Gap, ...]:
        """Return the gaps in the names that begin with ``prefixes``, or in all; empty if nothing is
        hidden, proven.

        ``hidden`` returns those of a list of names that the brokers refuse to describe.
        """
        bindings, doubt = self._bindings
        if bindings is None:
            return ()
        filters = samples(bindings, resource, prefixes, uuid4().hex)
        denied = hidden_gaps(subject, resource, filters, hidden(list(filters)))
        if denied:
            return tuple(denied)
        return (Gap(subject, doubt.reason, doubt.right, doubt.detail),) if doubt else ()

    @cached_property
    def _bindings(self) -> tuple[Sequence[Binding] | None, Gap | None]:
        """All ACLs, None where there is no authorizer; and why they do not prove anything, where
        they do not.
        """
        try:
            bindings = self._acls.bindings()
        except NotAuthorized:
            return (), Gap("", Reason.NOT_PROVEN, DESCRIBE_CLUSTER, "to read the ACLs")
        if bindings is None:
            return None, None
        try:
            authorizer = self._acls.authorizer()
        except NotAuthorized:
            return bindings, Gap(
                "", Reason.NOT_PROVEN, DESCRIBE_BROKERS, "to read which authorizer decides"
            )
        if authorizer.decides_by_more:
            return bindings, Gap(
                "", Reason.NOT_PROVEN, None, f"{authorizer.class_name} decides by more than ACLs"
            )
        return bindings, None


def _binding(resource: Any, acl: Any) -> Binding:
    return Binding(
        resource=Resource(_RESOURCES.get(resource.resource_type, "UNKNOWN")),
        name=resource.resource_name,
        pattern=Pattern(_PATTERNS.get(resource.pattern_type, "UNKNOWN")),
        principal=acl.principal,
        host=acl.host,
        operation=OPERATIONS.get(acl.operation, Operation.UNKNOWN),
        permission=Permission(_PERMISSIONS.get(acl.permission_type, "UNKNOWN")),
    )


def _authorizer(values: Mapping[str, str | None]) -> Authorizer:
    # What is not set is left out of the response, and what is set and hidden is there without
    # its value.
    users, everyone = values.get(_SUPER, ""), values.get(_OPEN, "false")
    return Authorizer(
        class_name=values.get(_AUTHORIZER, ""),
        super_users=None
        if users is None
        else frozenset(filter(None, (user.strip() for user in users.split(";")))),
        open_by_default=None if everyone is None else everyone.strip().lower() == "true",
    )
