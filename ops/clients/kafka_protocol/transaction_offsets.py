"""Requests that put offsets of a consumer group into a transaction (KIP-98), as what a member commits (KIP-447).

AddOffsetsToTxn tells the transaction's coordinator of the group; TxnOffsetCommit gives the offsets to the group's, which
keeps them pending until the transaction ends. Under transaction version 2 (KIP-890) TxnOffsetCommit does both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connectctl.ops.kafka.error_handling import Code

if TYPE_CHECKING:
    from connectctl.ops.clients.kafka_protocol.group_coordinator import CommittedOffset
    from connectctl.ops.kafka.group_membership import GroupMembership
    from connectctl.ops.kafka.transactions import Place

TXN_OFFSET_COMMIT = 3
"""The first version with generation, member and instance id, which Kafka 2.5 has. Older ones would not fence a zombie."""
ASK_AGAIN = {
    Code.COORDINATOR_LOAD_IN_PROGRESS,
    Code.COORDINATOR_NOT_AVAILABLE,
    Code.NOT_COORDINATOR,
    Code.CONCURRENT_TRANSACTIONS,
}
"""Answers of a group's coordinator behind which the same offsets may be given again: it has moved, or is not ready."""


def add_offsets_request(id_: str, who: tuple[int, int], group: str) -> Any:
    """AddOffsetsToTxn of the transactional id ``id_``; ``who`` are its producer id and epoch."""
    from kafka.protocol.producer.transaction import AddOffsetsToTxnRequest

    return AddOffsetsToTxnRequest(
        transactional_id=id_, producer_id=who[0], producer_epoch=who[1], group_id=group, max_version=3
    )


def txn_offset_commit_request(
    id_: str,
    who: tuple[int, int],
    member: GroupMembership,
    offsets: Mapping[Place, CommittedOffset],
    version: int = TXN_OFFSET_COMMIT,
) -> Any:
    """TxnOffsetCommit of ``offsets`` as of ``member``."""
    from kafka.protocol.producer.transaction import TxnOffsetCommitRequest

    topic_of = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    topics: dict[str, list[Any]] = {}
    for place, each in sorted(offsets.items()):
        part = topic_of.TxnOffsetCommitRequestPartition(
            partition_index=place.partition,
            committed_offset=each.offset,
            committed_leader_epoch=-1 if each.leader_epoch is None else each.leader_epoch,
            committed_metadata=each.metadata,
        )
        topics.setdefault(place.topic, []).append(part)
    return TxnOffsetCommitRequest(
        transactional_id=id_,
        group_id=member.group,
        producer_id=who[0],
        producer_epoch=who[1],
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        topics=[topic_of(name=name, partitions=parts) for name, parts in topics.items()],
        min_version=version,
        max_version=version,
    )


def codes_of(answer: Any) -> set[int]:
    """The errors in the answer to a TxnOffsetCommit."""
    return {part.error_code for topic in answer.topics for part in topic.partitions} - {Code.NONE}
