"""Determines whether a cluster uses transaction version 2 (KIP-890's second part).

The finalized feature ``transaction.version`` decides. Brokers offer the newer versions of the
requests also where the feature is off, and a broker that reports no features has none. See
docs/decisions/0030.
"""

from __future__ import annotations

from typing import Any

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.refusals import check
from connectctl.ops.kafka.brokers import TRANSACTION_VERSION

OLD_PRODUCE, NEW_PRODUCE = 8, 12
"""The newest Produce whose fields have fixed lengths, which Kafka 2.4 has; and the one that adds
its partition itself.
"""
OLD_END, NEW_END = 4, 5
"""EndTxn without and with the next epoch in its answer."""
NEW_OFFSET_COMMIT = 5
"""The TxnOffsetCommit that adds its group itself."""


def has_version_2(wire: KafkaProtocolClient) -> bool:
    """Return whether transactions are written in version 2."""
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
