"""The coordinator of a group, asked through kafka-python, wherever it moves meanwhile.

Not through librdkafka: whatever its admin client asks a coordinator (DescribeConsumerGroups,
ListConsumerGroupOffsets) may end the whole process where the connection breaks at the wrong moment.
Seen with 2.16.0, as its driver of a run was cut off from its brokers now and then:
``rd_kafka_enq_once_del_source_return: Assertion `eonce->refcnt > 0' failed`` (librdkafka's issue
4605).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.leaders import by_topic, parts_of
from connectctl.ops.clients.kafka_protocol.transactions import GROUP, find_request
from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, TimedOut, Unreachable
from connectctl.ops.kafka.error_handling import Code, name_of
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.group_state import is_dead
from connectctl.ops.kafka.sentinels import offset_of
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.visibility import describe_group, not_authorized

T = TypeVar("T")
PAUSE = 0.2
_PASSING = (Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE, Code.NOT_COORDINATOR)


class Again(Exception):
    """Ask once more: another broker may have become the coordinator."""


@dataclass(frozen=True)
class RawMember:
    """A member as its coordinator describes it; metadata and assignment are as the member's
    protocol has them.
    """

    id: str
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes
    instance_id: str | None = None
    """``group.instance.id`` of a static member."""


@dataclass(frozen=True)
class Described:
    """A classic group: its state, type of protocol, chosen protocol and members."""

    state: str
    protocol_type: str
    protocol: str
    members: tuple[RawMember, ...]


class Coordinator:
    """The coordinator of ``group``. ``timeout`` is in seconds."""

    def __init__(self, wire: KafkaProtocolClient, group: str, timeout: float) -> None:
        self._wire, self.group, self.timeout = wire, group, timeout
        self._broker: int | None = None

    def ask(self, request: Any, patience: float) -> Any:
        """The coordinator's answer. Raises ``Again`` where it has moved or does not answer, and
        ``NotAuthorized``.
        """
        broker = self._broker if self._broker is not None else self._find(patience)
        try:
            return self._wire.run(
                "ask a coordinator", lambda: self._wire.ask(request, broker, patience)
            )
        except NotAuthorized:
            raise
        except Unreachable as e:
            self._broker = None
            raise Again(str(e)) from e

    def _find(self, patience: float) -> int:
        request = find_request(self.group, GROUP)
        try:
            answer = self._wire.run(
                "find a coordinator", lambda: self._wire.ask(request, None, patience)
            )
        except NotAuthorized:
            raise
        except Unreachable as e:
            raise Again(str(e)) from e
        self.check(answer.error_code)
        self._broker = int(answer.node_id)
        return self._broker

    def check(self, code: int) -> int:
        """``code`` where it is for the caller to judge. Raises ``Again`` and ``NotAuthorized``."""
        if code == Code.GROUP_AUTHORIZATION_FAILED:
            raise not_authorized(
                f"Kafka at {self._wire.bootstrap} refuses to describe the group {self.group}",
                describe_group(self.group),
            )
        if code in _PASSING:
            self._broker = None
            raise Again(name_of(code))
        return code

    def until(self, once: Callable[[], T]) -> T:
        """Return the result of ``once``, as soon as a coordinator responds. Raises ``TimedOut``
        after the timeout.
        """
        end = time.monotonic() + self.timeout
        while True:
            try:
                return once()
            except Again as e:
                if time.monotonic() > end:
                    raise TimedOut(
                        f"No coordinator of the group {self.group} answered within "
                        f"{self.timeout:g} s",
                        why=str(e),
                    ) from e
            time.sleep(PAUSE)

    def describe(self) -> Described | None:
        """The group; None where its coordinator knows no classic one of that name, or not yet: see
        ``settled``.
        """
        from kafka.protocol.admin import DescribeGroupsRequest

        def once() -> Described | None:
            answer = self.ask(
                DescribeGroupsRequest(groups=[self.group], max_version=5), self.timeout
            )
            (group,) = answer.groups
            code = self.check(group.error_code)
            if code not in (Code.NONE, Code.GROUP_ID_NOT_FOUND):
                raise ConnectctlError(
                    f"The group {self.group} cannot be described", why=name_of(code), code="group"
                )
            if code == Code.GROUP_ID_NOT_FOUND or is_dead(group.group_state):
                return None
            members = tuple(map(_member, group.members))
            return Described(group.group_state, group.protocol_type, group.protocol_data, members)

        return self.until(once)

    def listed(self) -> Any:
        """The group in the coordinator's list, which has groups of every type; None where it lists
        none.
        """
        from kafka.protocol.admin import ListGroupsRequest

        def once() -> Any:
            answer = self.ask(ListGroupsRequest(), self.timeout)
            self.check(answer.error_code)
            return next((each for each in answer.groups if each.group_id == self.group), None)

        return self.until(once)

    def kind(self) -> str | None:
        """The type of a group of that name, as ``ReaderGroup`` has it; None where the coordinator
        lists none.
        """
        group = self.listed()
        # Brokers before 3.8 return no type.
        return None if group is None else str(group.group_type or "classic").lower()

    def stable_offsets(
        self, partitions: Collection[TopicPartition]
    ) -> tuple[dict[TopicPartition, GroupOffset], frozenset[TopicPartition]]:
        """Return the committed offsets of ``partitions`` (OffsetFetch with ``require_stable``,
        KIP-447), and the partitions with pending offsets, which have none here
        (UNSTABLE_OFFSET_COMMIT). Other partitions have no committed offset.
        """
        from kafka.protocol.consumer import OffsetFetchRequest

        members = [
            OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
            for topic, numbers in by_topic(sorted(partitions)).items()
        ]

        def once() -> tuple[dict[TopicPartition, GroupOffset], frozenset[TopicPartition]]:
            request = OffsetFetchRequest(
                group_id=self.group,
                topics=members,
                require_stable=True,
                min_version=7,
                max_version=7,
            )
            return self._offsets_of(self.ask(request, self.timeout), Code.UNSTABLE_OFFSET_COMMIT)

        return self.until(once)

    def _offsets_of(
        self, answer: Any, passing: Code | None
    ) -> tuple[dict[TopicPartition, GroupOffset], frozenset[TopicPartition]]:
        """The offsets in ``answer``, and the partitions with the error ``passing``; any other one
        is raised.
        """
        if code := self.check(answer.error_code):
            raise self._not_readable(name_of(code))
        found: dict[TopicPartition, GroupOffset] = {}
        pending: set[TopicPartition] = set()
        for partition, part in parts_of(answer.topics):
            code = self.check(part.error_code)
            if code and code == passing:
                pending.add(partition)
            elif code:
                raise self._not_readable(f"{partition}: {name_of(code)}")
            elif (offset := offset_of(part.committed_offset)) is not None:
                epoch = offset_of(part.committed_leader_epoch)
                found[partition] = GroupOffset(offset, epoch, part.metadata or "")
        return found, frozenset(pending)

    def _not_readable(self, why: str) -> ConnectctlError:
        return ConnectctlError(f"The offsets of {self.group} cannot be read", why=why, code="group")

    def remove_static(self, instance_ids: Collection[str]) -> dict[str, int]:
        """Take static members out of the group by their ``group.instance.id`` (LeaveGroup v3+,
        KIP-345); gives the error code of each that was not removed. One that the group does not
        have (UNKNOWN_MEMBER_ID) is not an error.
        """
        from kafka.protocol.consumer.group import LeaveGroupRequest

        member = LeaveGroupRequest.MemberIdentity
        members = [member(member_id="", group_instance_id=each) for each in sorted(instance_ids)]

        def once() -> dict[str, int]:
            answer = self.ask(
                LeaveGroupRequest(group_id=self.group, members=members, min_version=3), self.timeout
            )
            if (code := self.check(answer.error_code)) not in (Code.NONE, Code.UNKNOWN_MEMBER_ID):
                return dict.fromkeys(instance_ids, code)
            codes = {each.group_instance_id: self.check(each.error_code) for each in answer.members}
            return {
                id_: code
                for id_, code in codes.items()
                if code not in (Code.NONE, Code.UNKNOWN_MEMBER_ID)
            }

        return self.until(once) if members else {}

    def committed(self, *, stable: bool = False) -> dict[TopicPartition, int]:
        """The offsets that the group has committed, by topic and partition.

        With ``stable`` it is an error where an open transaction holds others (KIP-447).
        """
        from kafka.protocol.consumer import OffsetFetchRequest

        def once() -> dict[TopicPartition, int]:
            request = OffsetFetchRequest(
                group_id=self.group, topics=None, require_stable=stable, max_version=7
            )
            found, _ = self._offsets_of(self.ask(request, self.timeout), None)
            return {partition: each.offset for partition, each in found.items()}

        return self.until(once)


def coordinated(kafka: Connection, group: str, ask: Callable[[Coordinator], T]) -> T:
    """Return the result of ``ask`` for the group's coordinator, on separate connections."""
    with closing(KafkaProtocolClient(kafka.client, timeout=kafka.timeout)) as wire:
        return ask(Coordinator(wire, group, kafka.timeout))


def _member(raw: Any) -> RawMember:
    metadata, assignment = bytes(raw.member_metadata or b""), bytes(raw.member_assignment or b"")
    instance = raw.group_instance_id or None
    return RawMember(
        raw.member_id, raw.client_id, str(raw.client_host), metadata, assignment, instance
    )
