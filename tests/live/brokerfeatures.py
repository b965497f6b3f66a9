"""Features of brokers that a test sets, and preflight on these brokers."""

from __future__ import annotations

from typing import Any

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient


def asked(bootstrap: str, request: Any) -> Any:
    wire = KafkaProtocolClient({"bootstrap.servers": bootstrap}, timeout=120)
    try:
        return wire.run("ask", lambda: wire.ask(request))
    finally:
        wire.close()


def set_feature(bootstrap: str, level: int, kind: int) -> None:
    """``kind`` is 1 for an upgrade, 2 for a safe downgrade."""
    from kafka.protocol.admin.cluster import UpdateFeaturesRequest

    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="transaction.version", max_version_level=level, upgrade_type=kind
    )
    answer = asked(
        bootstrap, UpdateFeaturesRequest(timeout_ms=30_000, feature_updates=[update], min_version=1)
    )
    assert answer.error_code == 0, answer
