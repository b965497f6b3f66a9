"""Brokers through kafka-python: what they speak, how they are set, and the groups that read from
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from connectctl.ops.clients.connection_errors import not_listening
from connectctl.ops.clients.kafka_protocol.broker_fanout import BrokerFanout
from connectctl.ops.clients.kafka_protocol.client import ClusterClient
from connectctl.ops.clients.kafka_protocol.consumer_groups import Groups
from connectctl.ops.clients.kafka_protocol.leaders import Leaders
from connectctl.ops.clients.kafka_protocol.transaction_requests import finalized
from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.brokers import BrokerVersion, ReaderGroups

ACCEPTING = 5.0
"""Seconds for a second connection to a broker that did not accept a first one."""


class Brokers(ClusterClient):
    """The brokers of one Kafka cluster. ``properties`` are librdkafka's; ``timeout`` in seconds,
    for each request.
    """

    def __init__(self, properties: Mapping[str, Any], *, timeout: float) -> None:
        super().__init__(properties, timeout=timeout)
        self._all = BrokerFanout(self._wire)
        self._groups = Groups(self._all, Connection(properties, timeout=timeout))

    def versions(self) -> dict[int, BrokerVersion | ConnectctlError]:
        from kafka.protocol.metadata import ApiVersionsRequest

        async def one(broker: int) -> BrokerVersion:
            request = ApiVersionsRequest(
                client_software_name="connectctl", client_software_version="1"
            )
            answer = await self._wire.ask(request, broker)
            self._all.check(answer.error_code, "list its API versions", "a permission")
            return _version(broker, answer)

        return self._all.of_brokers("list their API versions", one)

    def unreachable(self) -> dict[int, str]:
        return not_listening(not_listening(self._wire.addresses()), ACCEPTING)

    def settings(self, names: Sequence[str]) -> dict[int, dict[str, str] | ConnectctlError]:
        async def one(broker: int) -> dict[str, str] | ConnectctlError:
            return await self._all.settings(broker, names)

        return self._all.of_brokers("describe their settings", one)

    def hidden(self, topics: Sequence[str]) -> frozenset[str]:
        return frozenset(Leaders(self._wire).hidden(topics) if topics else ())

    def readers(self) -> ReaderGroups:
        return self._groups.readers()


def _version(broker: int, answer: Any) -> BrokerVersion:
    from kafka.protocol.broker_version_data import BrokerVersionData

    ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    return BrokerVersion(
        id=broker,
        release=tuple(BrokerVersionData(api_versions=ranges).broker_version),
        apis={key: newest for key, (_, newest) in ranges.items()},
        supported={
            feature.name: feature.max_version for feature in answer.supported_features or ()
        },
        finalized=finalized(answer),
    )
