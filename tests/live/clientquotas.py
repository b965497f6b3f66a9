"""Quotas of clients on a real broker, for the time of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from live.brokerfeatures import asked


@contextmanager
def quota(bootstrap: str, client_id: str, key: str, value: float) -> Iterator[None]:
    """``client_id`` may have so much of ``key``, as ``producer_byte_rate``."""
    _alter(bootstrap, client_id, key, value)
    try:
        yield
    finally:
        _alter(bootstrap, client_id, key, None)


def _alter(bootstrap: str, client_id: str, key: str, value: float | None) -> None:
    from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest

    entry = AlterClientQuotasRequest.EntryData
    one = entry(
        entity=[entry.EntityData(entity_type="client-id", entity_name=client_id)],
        ops=[entry.OpData(key=key, value=value or 0.0, remove=value is None)],
    )
    answer: Any = asked(bootstrap, AlterClientQuotasRequest(entries=[one], validate_only=False))
    assert {each.error_code for each in answer.entries} == {0}, answer
