"""One request to every broker of a cluster through kafka-python; the failure of a broker is its
result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.leaders import metadata_request
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from connectctl.ops.kafka.error_handling import Code, name_of

BROKER = 4
"""The type of resource in DescribeConfigs."""
_DESCRIBE = 8
"""The operation on the cluster that lets a principal list every group."""
_DENIED = (
    Code.CLUSTER_AUTHORIZATION_FAILED,
    Code.GROUP_AUTHORIZATION_FAILED,
    Code.TOPIC_AUTHORIZATION_FAILED,
)


class BrokerFanout:
    def __init__(self, wire: KafkaProtocolClient) -> None:
        self.wire = wire

    def of_brokers(self, doing: str, one: Callable[[int], Awaitable[Any]]) -> dict[int, Any]:
        """Return the response of every broker, or connectctl's error."""
        brokers = self.wire.brokers()
        answers = self.wire.run(doing, lambda: self.wire.each(map(one, brokers)))
        return {
            broker: self.ours(answer, doing)
            for broker, answer in zip(brokers, answers, strict=True)
        }

    def ours(self, answer: Any, doing: str) -> Any:
        """Return a response unchanged, an exception as connectctl's error; raise what is not a
        failure of Kafka.
        """
        if not isinstance(answer, Exception):
            return answer
        return self.wire.failure(answer, doing)

    def error(self, code: int, doing: str, permission: str) -> ConnectctlError | None:
        """Return the meaning of a broker's error code; ``permission`` is the right that a principal
        needs.
        """
        if code == Code.NONE:
            return None
        if code not in _DENIED:
            return ConnectctlError(
                f"Kafka at {self.wire.bootstrap} could not {doing}", why=name_of(code)
            )
        why, hint = (
            f"this principal lacks {permission}",
            f"Grant it {permission}, or use another principal.",
        )
        return NotAuthorized(
            f"Not authorized to {doing} (Kafka at {self.wire.bootstrap})", why=why, next_step=hint
        )

    def check(self, code: int, doing: str, permission: str) -> None:
        error = self.error(code, doing, permission)
        if error is not None:
            raise error

    def lists_every_group(self) -> bool:
        """Return whether this principal may list all groups; without Describe on the cluster it
        gets those that it may describe.
        """
        request = metadata_request([], include_cluster_authorized_operations=True)
        answer = self.wire.run("look up topics", lambda: self.wire.ask(request))
        allowed = answer.authorized_operations
        # Brokers that do not say what we may do (before 2.3) list all or nothing.
        return allowed is None or _DESCRIBE in allowed

    async def settings(self, broker: int, names: Sequence[str]) -> dict[str, str] | ConnectctlError:
        """Return the properties in ``names`` of ``broker``."""
        from kafka.protocol.admin import DescribeConfigsRequest

        resource = DescribeConfigsRequest.DescribeConfigsResource
        resource_ = resource(
            resource_type=BROKER, resource_name=str(broker), configuration_keys=list(names)
        )
        (result,) = (
            await self.wire.ask(DescribeConfigsRequest(resources=[resource_]), broker)
        ).results
        error = self.error(
            result.error_code, "describe its settings", "DescribeConfigs on the cluster"
        )
        return error or {
            entry.name: str(entry.value) for entry in result.configs if entry.value is not None
        }
