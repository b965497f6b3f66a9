"""Committed offsets of a group changed by a client that is not a member: what
``Admin.alterConsumerGroupOffsets`` and ``Admin.deleteConsumerGroupOffsets`` send.

The coordinator itself refuses both while the group has members
(``GroupCoordinator.validateOffsetCommit`` and ``validateOffsetDelete``), so that no check of ours
has to be the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connectctl.ops.clients.kafka_protocol.group_coordinator import Coordinator
from connectctl.ops.clients.kafka_protocol.leaders import by_topic, parts_of
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused
from connectctl.ops.kafka.acls import Operation, Resource, Right
from connectctl.ops.kafka.error_handling import Code, name_of
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.visibility import not_authorized, read_topic

_MEMBERS = (
    Code.ILLEGAL_GENERATION,
    Code.UNKNOWN_MEMBER_ID,
    Code.REBALANCE_IN_PROGRESS,
    Code.NON_EMPTY_GROUP,
    Code.GROUP_SUBSCRIBED_TO_TOPIC,
)
"""A coordinator's responses to a change by a client that is not a member while the group has
members.
"""
_GENERATION_OF_NOBODY = -1
_COMMIT_VERSION = 9
"""The last version of OffsetCommit that names topics."""


def commit(coordinator: Coordinator, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit ``offsets`` as no member's. Raises ``Refused`` where the group has members,
    ``NotAuthorized``, ``TimedOut``.
    """
    from kafka.protocol.consumer import OffsetCommitRequest

    topic_of = OffsetCommitRequest.OffsetCommitRequestTopic
    partition_of = topic_of.OffsetCommitRequestPartition
    parts: dict[str, list[Any]] = {}
    for partition, offset in sorted(offsets.items()):
        part = partition_of(
            partition_index=partition.partition, committed_offset=offset, committed_metadata=""
        )
        parts.setdefault(partition.topic, []).append(part)
    topics = [topic_of(name=topic, partitions=subset) for topic, subset in parts.items()]
    request = OffsetCommitRequest(
        group_id=coordinator.group,
        generation_id_or_member_epoch=_GENERATION_OF_NOBODY,
        member_id="",
        topics=topics,
        max_version=_COMMIT_VERSION,
    )

    def once() -> None:
        _check_topics(coordinator, coordinator.ask(request, coordinator.timeout), Operation.READ)

    coordinator.until(once)


def delete(coordinator: Coordinator, topic_partitions: Sequence[TopicPartition]) -> None:
    """Delete what the group has committed of ``topic_partitions``; raises as ``commit`` does. A
    group that is gone has nothing.
    """
    from kafka.protocol.consumer import OffsetDeleteRequest

    topic_of = OffsetDeleteRequest.OffsetDeleteRequestTopic
    partition_of = topic_of.OffsetDeleteRequestPartition
    topics = [
        topic_of(name=topic, partitions=[partition_of(partition_index=p) for p in parts])
        for topic, parts in by_topic(sorted(topic_partitions)).items()
    ]
    request = OffsetDeleteRequest(group_id=coordinator.group, topics=topics)

    def once() -> None:
        answer = coordinator.ask(request, coordinator.timeout)
        if answer.error_code == Code.GROUP_ID_NOT_FOUND:
            return
        _check(coordinator, answer.error_code, "", Operation.DELETE)
        _check_topics(coordinator, answer, Operation.DELETE)

    coordinator.until(once)


def newer_state(coordinator: Coordinator) -> str | None:
    """The state of a group of KIP-848 by its coordinator's list, which names no members; None where
    it lists none.
    """
    group = coordinator.listed()
    return None if group is None else str(group.group_state)


def stable(coordinator: Coordinator, holder: Callable[[], str]) -> dict[TopicPartition, int]:
    """As ``Coordinator.committed``. Raises ``Refused`` while a transaction, which ``holder`` names,
    holds offsets of the group that are pending.
    """
    try:
        return coordinator.committed(stable=True)
    except ConnectctlError as e:
        if e.why is not None and e.why.endswith(Code.UNSTABLE_OFFSET_COMMIT.name):
            group = coordinator.group
            raise Refused(
                f"An open transaction holds offsets of the group {group}, and its commit would "
                "overwrite the change",
                why=f"{holder()}: {e.why}",
                next_step="Wait for its end, or end it: connectctl transactions abort ID.",
                code="pending",
            ) from e
        raise


def _check_topics(coordinator: Coordinator, answer: Any, operation: Operation) -> None:
    for partition, part in parts_of(answer.topics):
        _check(coordinator, part.error_code, str(partition), operation)


def _check(coordinator: Coordinator, code: int, topic_partition: str, operation: Operation) -> None:
    """Raises for an error's ``code``; ``operation`` on the group is what it needs. See
    ``Coordinator.check``.
    """
    group = coordinator.group
    if code == Code.GROUP_AUTHORIZATION_FAILED:
        raise not_authorized(
            f"Not authorized to change offsets of the group {group}",
            Right(operation, Resource.GROUP, group),
        )
    if code == Code.TOPIC_AUTHORIZATION_FAILED:
        topic = topic_partition.rpartition("-")[0]
        raise not_authorized(
            f"Not authorized to change offsets of {topic_partition}", read_topic(topic)
        )
    if code in _MEMBERS:
        raise Refused(
            f"The offsets of the group {group} were not changed: it has members",
            why=name_of(code),
            next_step="Stop its members, and try again.",
            code="in-use",
        )
    if code == Code.UNKNOWN_TOPIC_OR_PARTITION:
        raise BadInput(f"Partition not found: {topic_partition}", code="no-topic")
    if coordinator.check(code):
        raise ConnectctlError(
            f"The offsets of {group} could not be changed",
            why=f"{topic_partition} {name_of(code)}".strip(),
        )
