"""Requests of a transactional producer to its coordinator (KIP-98), those for offsets of a consumer
group too (KIP-447).

AddOffsetsToTxn names the group to the transaction's coordinator; TxnOffsetCommit gives the offsets
to the group's, which keeps them pending until the transaction ends. Under transaction version 2
(KIP-890) TxnOffsetCommit does both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.leaders import by_topic
from connectctl.ops.clients.kafka_protocol.refusals import check
from connectctl.ops.kafka.brokers import TRANSACTION_VERSION
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.group_positions import GroupMembership, GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition

OLD_PRODUCE, NEW_PRODUCE = 8, 12
"""The newest Produce whose fields have fixed lengths, which Kafka 2.4 has; and the one that adds
its partition itself.
"""
OLD_END, NEW_END = 4, 5
"""EndTxn without and with the next epoch in its answer."""
NEW_OFFSET_COMMIT = 5
"""The TxnOffsetCommit that adds its group itself."""
TXN_OFFSET_COMMIT = 3
"""The first version with generation, member and instance id, which Kafka 2.5 has. Older ones would
not fence a zombie.
"""
ASK_AGAIN = {
    Code.COORDINATOR_LOAD_IN_PROGRESS,
    Code.COORDINATOR_NOT_AVAILABLE,
    Code.NOT_COORDINATOR,
    Code.CONCURRENT_TRANSACTIONS,
}
"""Errors of a group's coordinator after which the same offsets may be sent again: it has moved, or
is not ready.
"""

_NOT_ATTEMPTED = 55
"""OPERATION_NOT_ATTEMPTED: the error of a partition that was refused only with others."""


def add_partitions_request(
    id_: str, who: tuple[int, int], topic_partitions: Iterable[TopicPartition]
) -> Any:
    """AddPartitionsToTxn of ``topic_partitions`` for the transactional id ``id_``; ``who`` are its
    producer id and epoch.
    """
    from kafka.protocol.producer.transaction import AddPartitionsToTxnRequest

    topic_of = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=id_,
        v3_and_below_producer_id=who[0],
        v3_and_below_producer_epoch=who[1],
        v3_and_below_topics=[
            topic_of(name=name, partitions=each)
            for name, each in by_topic(topic_partitions).items()
        ],
        max_version=3,
    )


def partition_codes(answer: Any) -> set[int]:
    """The errors in the answer to an AddPartitionsToTxn."""
    parts = [
        part
        for topic in answer.results_by_topic_v3_and_below
        for part in topic.results_by_partition
    ]
    return {part.partition_error_code for part in parts} - {Code.NONE, _NOT_ATTEMPTED}


def end_request(id_: str, who: tuple[int, int], commit: bool, version: int) -> Any:
    """EndTxn of at most ``version``, and of no older one where that is transaction version 2's."""
    from kafka.protocol.producer.transaction import EndTxnRequest

    return EndTxnRequest(
        transactional_id=id_,
        producer_id=who[0],
        producer_epoch=who[1],
        committed=commit,
        min_version=version if version == NEW_END else 0,
        max_version=version,
    )


def add_offsets_request(id_: str, who: tuple[int, int], group: str) -> Any:
    """AddOffsetsToTxn of the transactional id ``id_``; ``who`` are its producer id and epoch."""
    from kafka.protocol.producer.transaction import AddOffsetsToTxnRequest

    return AddOffsetsToTxnRequest(
        transactional_id=id_,
        producer_id=who[0],
        producer_epoch=who[1],
        group_id=group,
        max_version=3,
    )


def group_codes(answer: Any) -> set[int]:
    """The error in the answer to an AddOffsetsToTxn."""
    return {answer.error_code} - {Code.NONE}


def txn_offset_commit_request(
    id_: str,
    who: tuple[int, int],
    member: GroupMembership,
    offsets: Mapping[TopicPartition, GroupOffset],
    version: int = TXN_OFFSET_COMMIT,
) -> Any:
    """TxnOffsetCommit of ``offsets`` as of ``member``."""
    from kafka.protocol.producer.transaction import TxnOffsetCommitRequest

    topic_of = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    topics: dict[str, list[Any]] = {}
    for partition, each in sorted(offsets.items()):
        part = topic_of.TxnOffsetCommitRequestPartition(
            partition_index=partition.partition,
            committed_offset=each.offset,
            committed_leader_epoch=-1 if each.leader_epoch is None else each.leader_epoch,
            committed_metadata=each.metadata,
        )
        topics.setdefault(partition.topic, []).append(part)
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


def has_version_2(wire: KafkaProtocolClient) -> bool:
    """Return whether transactions are written in version 2, which the finalized feature
    ``transaction.version`` decides. Brokers offer the newer versions of the requests also where it
    is off, and a broker that reports no features has none (docs/decisions/0030).
    """
    from kafka.protocol.metadata import ApiVersionsRequest
    from kafka.protocol.producer import EndTxnRequest, ProduceRequest, TxnOffsetCommitRequest

    newest = {
        ProduceRequest: NEW_PRODUCE,
        EndTxnRequest: NEW_END,
        TxnOffsetCommitRequest: NEW_OFFSET_COMMIT,
    }
    if any(wire.newest(request) < version for request, version in newest.items()):
        return False
    request = ApiVersionsRequest(client_software_name="connectctl", client_software_version="1")
    answer = wire.run("read the cluster's features", lambda: wire.ask(request))
    check(answer.error_code)
    return finalized(answer).get(TRANSACTION_VERSION, 0) >= 2


def finalized(answer: Any) -> dict[str, int]:
    """Return the cluster's features in an ApiVersions ``answer`` with their levels; empty if it has
    none.
    """
    if (answer.finalized_features_epoch or 0) < 0:
        return {}
    return {feature.name: feature.max_version_level for feature in answer.finalized_features or ()}
