"""Brokers and groups of readers through kafka-python: features, settings of brokers, committed offsets of many groups.

Members of groups come through librdkafka, because kafka-python does not know how to describe those of KIP-848.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.edges.kafka import Kafka
from connectctl.ops.edges.wire import Wire, batches, failure
from connectctl.ops.errors import ConnectctlError, NotAuthorized
from connectctl.ops.model.brokers import CONNECT, CONSUMER, SHARE, BrokerVersion, Member, ReaderGroup, ReaderGroups
from connectctl.ops.model.transactions import Place
from connectctl.ops.model.verdicts import Code, name_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_BROKER, _GROUP = 4, 32
"""The types of resources in DescribeConfigs."""
_DESCRIBE = 8
"""The operation on the cluster that lets a principal list every group."""
_ISOLATION = "share.isolation.level"
_DENIED = (Code.CLUSTER_AUTHORIZATION_FAILED, Code.GROUP_AUTHORIZATION_FAILED, Code.TOPIC_AUTHORIZATION_FAILED)


class Brokers:
    """The brokers of one Kafka cluster. ``properties`` are librdkafka's; ``timeout`` in seconds, for each request."""

    def __init__(self, properties: Mapping[str, Any], *, timeout: float) -> None:
        self._wire = Wire(properties, timeout=timeout)
        self._kafka = Kafka(properties, timeout=timeout)

    def cluster_id(self) -> str:
        return str(self._wire.manager.cluster.cluster_id)

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    # ------------------------------------------------------------------------------------------------------ brokers

    def versions(self) -> dict[int, BrokerVersion | ConnectctlError]:
        from kafka.protocol.metadata import ApiVersionsRequest

        async def one(broker: int) -> BrokerVersion:
            request = ApiVersionsRequest(client_software_name="connectctl", client_software_version="1")
            answer = await self._wire.ask(request, broker)
            self._check(answer.error_code, "tell its version", "no permission")
            return _version(broker, answer)

        return self._of_brokers("tell their versions", one)

    def settings(self, names: Sequence[str]) -> dict[int, dict[str, str] | ConnectctlError]:
        async def one(broker: int) -> dict[str, str]:
            found = await self._configs(_BROKER, [str(broker)], names, broker)
            values = found[str(broker)]
            if isinstance(values, ConnectctlError):
                raise values
            return values

        return self._of_brokers("describe their settings", one)

    def hidden(self, topics: Sequence[str]) -> frozenset[str]:
        if not topics:
            return frozenset()
        answer = self._metadata(topics)
        return frozenset(t.name for t in answer.topics if t.error_code == Code.TOPIC_AUTHORIZATION_FAILED)

    def _metadata(self, topics: Sequence[str]) -> Any:
        from kafka.protocol.metadata.metadata import MetadataRequest

        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=True,
            max_version=9,
        )
        return self._wire.run("look up topics", lambda: self._wire.ask(request))

    async def _configs(
        self, kind: int, resources: Sequence[str], names: Sequence[str], broker: int
    ) -> dict[str, dict[str, str] | ConnectctlError]:
        from kafka.protocol.admin import DescribeConfigsRequest

        asked = [
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=list(names)
            )
            for name in resources
        ]
        answer = await self._wire.ask(DescribeConfigsRequest(resources=asked), broker)
        found: dict[str, dict[str, str] | ConnectctlError] = {}
        for result in answer.results:
            wanting = "DescribeConfigs on " + ("the cluster" if kind == _BROKER else "the group")
            error = self._error(result.error_code, "describe its settings", wanting)
            values = {entry.name: str(entry.value) for entry in result.configs if entry.value is not None}
            found[result.resource_name] = error or values
        return found

    def _of_brokers(self, doing: str, one: Callable[[int], Awaitable[Any]]) -> dict[int, Any]:
        """What every broker answers, or the error of ours that came instead."""
        brokers = self._wire.brokers()
        answers = self._wire.run(doing, lambda: self._wire.each(map(one, brokers)))
        return {broker: self._ours(answer, doing) for broker, answer in zip(brokers, answers, strict=True)}

    def _ours(self, answer: Any, doing: str) -> Any:
        if not isinstance(answer, Exception):
            return answer
        return failure(answer, self._wire.bootstrap, doing, self._wire.last_words.text)

    def _error(self, code: int, doing: str, permission: str) -> ConnectctlError | None:
        if code == Code.NONE:
            return None
        what = f"Kafka at {self._wire.bootstrap} does not let us {doing}"
        if code in _DENIED:
            why, hint = f"the principal that asks lacks {permission}", f"Give it {permission}, or ask as another."
            return NotAuthorized(what, why=why, next_step=hint)
        return ConnectctlError(f"Kafka at {self._wire.bootstrap} could not {doing}", why=name_of(code))

    def _check(self, code: int, doing: str, permission: str) -> None:
        error = self._error(code, doing, permission)
        if error is not None:
            raise error

    # ------------------------------------------------------------------------------------------------------- groups

    def readers(self) -> ReaderGroups:
        from kafka.protocol.admin import ListGroupsRequest

        async def one(broker: int) -> tuple[ReaderGroup, ...]:
            answer = await self._wire.ask(ListGroupsRequest(), broker)
            self._check(answer.error_code, "list groups", "Describe on the cluster")
            return tuple(_listed(group, broker) for group in answer.groups if group.protocol_type != CONNECT)

        answers = self._of_brokers("list groups", one)
        problems = {broker: answer for broker, answer in answers.items() if isinstance(answer, ConnectctlError)}
        listed = [group for answer in answers.values() if not isinstance(answer, ConnectctlError) for group in answer]
        allowed = self._metadata([]).authorized_operations
        # Brokers that do not say what we may do (before 2.3) list all or nothing.
        complete = allowed is None or _DESCRIBE in allowed
        found = self._with_members(self._with_isolation(self._with_offsets(listed)))
        return ReaderGroups(tuple(sorted(found, key=lambda group: group.id)), complete, problems)

    def _with_offsets(self, groups: Sequence[ReaderGroup]) -> list[ReaderGroup]:
        """The groups with what they committed, asked of the coordinators that listed them."""
        from kafka.protocol.consumer import OffsetFetchRequest

        batched = self._wire.newest(OffsetFetchRequest) >= 8
        asked = [
            (broker, some)
            for broker, own in _by_coordinator(group for group in groups if group.type != SHARE)
            for some in (batches(own) if batched else ([group] for group in own))
        ]

        async def one(broker: int, some: Sequence[ReaderGroup]) -> list[ReaderGroup]:
            if not batched:
                single = OffsetFetchRequest(group_id=some[0].id, topics=None, max_version=7)
                return [self._committed(some[0], await self._wire.ask(single, broker))]
            wanted = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group.id, topics=None) for group in some]
            # Version 10 names topics by their ids alone.
            request = OffsetFetchRequest(groups=wanted, require_stable=False, min_version=8, max_version=9)
            answer = await self._wire.ask(request, broker)
            by_id = {group.id: group for group in some}
            return [self._committed(by_id[each.group_id], each) for each in answer.groups]

        doing = "tell the offsets of groups"
        results = self._wire.run(doing, lambda: self._wire.each(one(broker, some) for broker, some in asked))
        found = [group for group in groups if group.type == SHARE]
        for (_, some), result in zip(asked, results, strict=True):
            if isinstance(result, Exception):
                error = self._ours(result, doing)
                found += [replace(group, problem=error) for group in some]
            else:
                found += result
        return found

    def _committed(self, group: ReaderGroup, answer: Any) -> ReaderGroup:
        error = self._error(answer.error_code, "tell the offsets of a group", "Describe on the group")
        offsets = {
            Place(topic.name, part.partition_index): part.committed_offset
            for topic in answer.topics
            for part in topic.partitions
            if part.committed_offset >= 0 and not part.error_code
        }
        return replace(group, committed=offsets, problem=error)

    def _with_isolation(self, groups: Sequence[ReaderGroup]) -> list[ReaderGroup]:
        """Share groups with their isolation level: a setting of the group on the broker (KIP-932)."""
        found = [group for group in groups if group.type != SHARE]

        async def one(broker: int, some: Sequence[ReaderGroup]) -> dict[str, dict[str, str] | ConnectctlError]:
            return await self._configs(_GROUP, [group.id for group in some], [_ISOLATION], broker)

        asked = _by_coordinator(group for group in groups if group.type == SHARE)
        doing = "describe groups"
        results = self._wire.run(doing, lambda: self._wire.each(one(broker, some) for broker, some in asked))
        for (_, some), result in zip(asked, results, strict=True):
            for group in some:
                values = self._ours(result, doing) if isinstance(result, Exception) else result.get(group.id, {})
                if isinstance(values, ConnectctlError):
                    found.append(replace(group, problem=values))
                else:
                    found.append(replace(group, isolation=values.get(_ISOLATION)))
        return found

    def _with_members(self, groups: Sequence[ReaderGroup]) -> list[ReaderGroup]:
        from confluent_kafka import KafkaException

        asked = [group.id for group in groups if group.active and group.type in ("classic", CONSUMER)]
        if not asked:
            return list(groups)
        admin, timeout = self._kafka.admin, self._wire.timeout
        futures = self._kafka.ask(
            "describe groups", lambda: admin.describe_consumer_groups(asked, request_timeout=timeout)
        )
        found = []
        for group in groups:
            if group.id not in futures:
                found.append(group)
                continue
            try:
                members = tuple(_member(member) for member in futures[group.id].result().members)
                found.append(replace(group, members=members))
            except KafkaException as e:
                # A group of some other protocol (Streams' own, a schema registry's) cannot be described this way; what
                # it committed is known all the same.
                error = self._kafka.failure(e.args[0], "describe groups")
                denied = isinstance(error, NotAuthorized)
                found.append(replace(group, problem=group.problem or error) if denied else group)
        return found


def _version(broker: int, answer: Any) -> BrokerVersion:
    from kafka.protocol.broker_version_data import BrokerVersionData

    ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    agreed = answer.finalized_features if (answer.finalized_features_epoch or 0) >= 0 else ()
    return BrokerVersion(
        id=broker,
        release=tuple(BrokerVersionData(api_versions=ranges).broker_version),
        apis={key: newest for key, (_, newest) in ranges.items()},
        supported={feature.name: feature.max_version for feature in answer.supported_features or ()},
        finalized={feature.name: feature.max_version_level for feature in agreed or ()},
    )


def _listed(group: Any, broker: int) -> ReaderGroup:
    # Brokers before 2.6 tell no state, before 3.8 no type.
    return ReaderGroup(group.group_id, group.group_type or "classic", group.group_state or "Unknown", broker)


def _member(raw: Any) -> Member:
    topics = frozenset(part.topic for part in raw.assignment.topic_partitions) if raw.assignment else frozenset()
    return Member(raw.client_id, raw.host, topics)


def _by_coordinator(groups: Iterable[ReaderGroup]) -> list[tuple[int, list[ReaderGroup]]]:
    parts: dict[int, list[ReaderGroup]] = defaultdict(list)
    for group in groups:
        parts[group.coordinator].append(group)
    return list(parts.items())
