"""The rights of the principal in use, as the brokers report them, through requests that change
nothing.

KIP-430 has the exact sets: Metadata, DescribeGroups and DescribeCluster return the operations that
their authorizer allows, denials and super users included. For transactional ids there is no such
set: DescribeTransactions shows whether one may be described, and no request shows whether one may
be written to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from connectctl.ops.clients.kafka_protocol.acls import OPERATIONS, Namespaces
from connectctl.ops.clients.kafka_protocol.client import ClusterClient, batches, known_code
from connectctl.ops.clients.kafka_protocol.leaders import metadata_request
from connectctl.ops.clients.kafka_protocol.transactions import (
    GROUP,
    TransactionClient,
    find_request,
)
from connectctl.ops.core.rights import Allowed
from connectctl.ops.kafka.acls import Operation, Resource
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.kafka.visibility import Gap

_DENIED = (
    Code.TOPIC_AUTHORIZATION_FAILED,
    Code.GROUP_AUTHORIZATION_FAILED,
    Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Code.CLUSTER_AUTHORIZATION_FAILED,
)
_TIMEOUT_MS = 30_000


class OwnRights(ClusterClient):
    """See ``RightsReads``. ``properties`` are librdkafka's; ``timeout`` in seconds, for each
    request.
    """

    def __init__(self, properties: Mapping[str, Any], *, timeout: float) -> None:
        self._properties = properties
        self._timeout = timeout
        super().__init__(properties, timeout=timeout)
        self._names = Namespaces(self._wire)

    def on_cluster(self) -> Allowed:
        request = metadata_request([], include_cluster_authorized_operations=True)
        answer = self._wire.run("list the client's permissions", lambda: self._wire.ask(request))
        return _allowed(answer.authorized_operations)

    def on_topics(self, names: Sequence[str]) -> dict[str, Allowed]:
        found: dict[str, Allowed] = {}
        for subset in batches(names):
            request = metadata_request(subset, include_topic_authorized_operations=True)
            # the default's type
            answer = self._wire.run(
                "list the client's permissions for topics",
                lambda r=request: self._wire.ask(r),  # type: ignore[misc]
            )
            for topic in answer.topics:
                found[topic.name] = _answer(topic.error_code, topic.authorized_operations)
        return found

    def on_groups(self, ids: Sequence[str]) -> dict[str, Allowed]:
        async def one(id_: str) -> Allowed:
            from kafka.protocol.admin import DescribeGroupsRequest

            found = await self._wire.ask(find_request(id_, GROUP))
            if found.error_code:
                return _answer(found.error_code, None)
            # From version 6 on a group that is not there is an error, without the operations.
            request = DescribeGroupsRequest(
                groups=[id_], include_authorized_operations=True, max_version=5
            )
            answer = (await self._wire.ask(request, found.node_id)).groups[0]
            return _answer(answer.error_code, answer.authorized_operations)

        doing = "list the client's permissions for groups"
        answers = self._wire.run(doing, lambda: self._wire.each(one(id_) for id_ in ids))
        return {
            id_: Allowed(None, str(a)) if isinstance(a, Exception) else a
            for id_, a in zip(ids, answers, strict=True)
        }

    def describes(self, ids: Sequence[str]) -> dict[str, bool | None]:
        with closing(TransactionClient(self._properties, timeout=self._timeout)) as calls:
            answers = calls.describe(ids)
        known = (Code.TRANSACTIONAL_ID_NOT_FOUND,)
        return {
            id_: False
            if answer in _DENIED
            else True
            if isinstance(answer, Transaction) or answer in known
            else None
            for id_, answer in answers.items()
        }

    def unseen(self, resource: Resource) -> tuple[Gap, ...]:
        def hidden(names: list[str]) -> list[str]:
            if resource is Resource.TOPIC:
                return [
                    name
                    for name, allowed in self.on_topics(names).items()
                    if allowed.operations == frozenset()
                ]
            return [name for name, described in self.describes(names).items() if described is False]

        return self._names.gaps(f"every {resource.word}", resource, (), hidden)

    def creates(self, names: Sequence[str]) -> dict[str, bool | None]:
        from kafka.protocol.admin import CreateTopicsRequest

        plain = {"num_partitions": 1, "replication_factor": 1}
        topics = [CreateTopicsRequest.CreatableTopic(name=name, **plain) for name in names]
        request = CreateTopicsRequest(topics=topics, timeout_ms=_TIMEOUT_MS, validate_only=True)
        controller = self._wire.manager.cluster.controller
        node = controller.node_id if controller else None
        answer = self._wire.run(
            "list the topics that the client may create", lambda: self._wire.ask(request, node)
        )
        codes = {topic.name: known_code(topic.error_code) for topic in answer.topics}
        sure = {
            Code.NONE: True,
            Code.TOPIC_AUTHORIZATION_FAILED: False,
            Code.CLUSTER_AUTHORIZATION_FAILED: False,
        }
        return {name: sure.get(codes.get(name, Code.NO_ANSWER)) for name in names}


def _answer(code: int, operations: Any) -> Allowed:
    known = known_code(code)
    if known is Code.NONE:
        return _allowed(operations)
    if known in _DENIED:
        return Allowed(frozenset())
    return Allowed(None, known.name)


def _allowed(operations: Any) -> Allowed:
    """Return the operations; brokers before 2.3 do not report them."""
    if operations is None:
        return Allowed(None, "the broker does not report it")
    return Allowed(frozenset(OPERATIONS.get(number, Operation.UNKNOWN) for number in operations))
