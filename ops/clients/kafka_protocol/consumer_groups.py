"""Groups of readers through kafka-python: the offsets of many groups in one request.

Members come through librdkafka, because kafka-python does not know how to describe groups of
KIP-848.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from connectctl.ops.clients.kafka_protocol.broker_fanout import BrokerFanout
from connectctl.ops.clients.kafka_protocol.client import batches
from connectctl.ops.clients.kafka_protocol.leaders import parts_of
from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from connectctl.ops.kafka.brokers import (
    CONNECT,
    CONSUMER,
    SHARE,
    ReaderGroup,
    ReaderGroups,
    ReaderMember,
)
from connectctl.ops.kafka.sentinels import offset_of
from connectctl.ops.kafka.topic_partition import TopicPartition


class Groups:
    """The groups of one Kafka cluster, those of Connect workers left out."""

    def __init__(self, brokers: BrokerFanout, kafka: Connection) -> None:
        self._brokers = brokers
        self._kafka = kafka

    def readers(self) -> ReaderGroups:
        """See ``BrokerReads.readers``. Coordinators list their own groups, and are asked about
        those.
        """
        from kafka.protocol.admin import ListGroupsRequest

        async def one(broker: int) -> tuple[ReaderGroup, ...]:
            answer = await self._brokers.wire.ask(ListGroupsRequest(), broker)
            self._brokers.check(answer.error_code, "list groups", "Describe on the cluster")
            return tuple(
                _listed(group, broker) for group in answer.groups if group.protocol_type != CONNECT
            )

        answers = self._brokers.of_brokers("list groups", one)
        problems = {
            broker: answer
            for broker, answer in answers.items()
            if isinstance(answer, ConnectctlError)
        }
        listed = [
            group
            for broker, subset in answers.items()
            if broker not in problems
            for group in subset
        ]
        sharing = [group for group in listed if group.type == SHARE]
        others = [group for group in listed if group.type != SHARE]
        found = [*self._with_members(self._with_offsets(others)), *sharing]
        complete = self._brokers.lists_every_group()
        return ReaderGroups(tuple(sorted(found, key=lambda group: group.id)), complete, problems)

    def _with_offsets(self, groups: Sequence[ReaderGroup]) -> list[ReaderGroup]:
        from kafka.protocol.consumer import OffsetFetchRequest

        wire = self._brokers.wire
        batched = wire.newest(OffsetFetchRequest) >= 8
        requested = [
            (broker, some)
            for broker, names in _by_coordinator(groups)
            for some in (batches(names) if batched else ([group] for group in names))
        ]

        async def one(broker: int, some: Sequence[ReaderGroup]) -> list[ReaderGroup]:
            if not batched:
                single = OffsetFetchRequest(group_id=some[0].id, topics=None, max_version=7)
                return [self._committed(some[0], await wire.ask(single, broker))]
            wanted = [
                OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group.id, topics=None)
                for group in some
            ]
            # Version 10 names topics by their ids alone.
            request = OffsetFetchRequest(
                groups=wanted, require_stable=False, min_version=8, max_version=9
            )
            answers = {each.group_id: each for each in (await wire.ask(request, broker)).groups}
            return [self._committed(group, answers[group.id]) for group in some]

        return self._of_coordinators("list the offsets of groups", requested, one)

    def _committed(self, group: ReaderGroup, answer: Any) -> ReaderGroup:
        doing = "list the offsets of a group"
        error = self._brokers.error(answer.error_code, doing, "Describe on the group")
        offsets: dict[TopicPartition, int] = {}
        for partition, part in parts_of(answer.topics):
            # A partition missing in the answer is not one without an offset.
            error = error or self._brokers.error(
                part.error_code, doing, f"Describe on the topic {partition.topic}"
            )
            offset = offset_of(part.committed_offset)
            if offset is not None and not part.error_code:
                offsets[partition] = offset
        return replace(group, committed=offsets, problem=error)

    def _of_coordinators(
        self,
        doing: str,
        asked: Sequence[tuple[int, Sequence[ReaderGroup]]],
        one: Callable[[int, Sequence[ReaderGroup]], Awaitable[list[ReaderGroup]]],
    ) -> list[ReaderGroup]:
        """Return the groups with what ``one`` adds, or the reason if it adds nothing; all
        coordinators are asked concurrently.
        """
        wire = self._brokers.wire
        results = wire.run(
            doing, lambda: wire.each(one(broker, subset) for broker, subset in asked)
        )
        found: list[ReaderGroup] = []
        for (_, subset), result in zip(asked, results, strict=True):
            if isinstance(result, Exception):
                error = self._brokers.ours(result, doing)
                found += [replace(group, problem=error) for group in subset]
            else:
                found += result
        return found

    def _with_members(self, groups: Sequence[ReaderGroup]) -> list[ReaderGroup]:
        requested = [
            group.id for group in groups if group.active and group.type in ("classic", CONSUMER)
        ]
        if not requested:
            return list(groups)
        admin, timeout = self._kafka.admin, self._brokers.wire.timeout
        futures = self._kafka.ask(
            "describe groups",
            lambda: admin.describe_consumer_groups(requested, request_timeout=timeout),
        )
        return [
            self._described(group, futures[group.id]) if group.id in futures else group
            for group in groups
        ]

    def _described(self, group: ReaderGroup, future: Any) -> ReaderGroup:
        from confluent_kafka import KafkaException

        try:
            return replace(
                group, members=tuple(_member(member) for member in future.result().members)
            )
        except KafkaException as e:
            error = self._kafka.failure(e.args[0], "describe groups")
            # A group of some other protocol (a schema registry's) cannot be described this way;
            # the offsets that it committed, if any, are known.
            denied = isinstance(error, NotAuthorized)
            return replace(group, problem=group.problem or error) if denied else group


def _listed(group: Any, broker: int) -> ReaderGroup:
    # Brokers before 2.6 return no state, before 3.8 no type.
    return ReaderGroup(
        group.group_id, group.group_type or "classic", group.group_state or "Unknown", broker
    )


def _member(raw: Any) -> ReaderMember:
    topics = (
        frozenset(part.topic for part in raw.assignment.topic_partitions)
        if raw.assignment
        else frozenset()
    )
    return ReaderMember(raw.client_id, raw.host, topics)


def _by_coordinator(groups: Iterable[ReaderGroup]) -> list[tuple[int, list[ReaderGroup]]]:
    parts: dict[int, list[ReaderGroup]] = defaultdict(list)
    for group in groups:
        parts[group.coordinator].append(group)
    return list(parts.items())
