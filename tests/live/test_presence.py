"""Who has a connector, as the group's coordinator knows it: one alone, whoever comes at once, and
nobody after a death.
"""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.clients.kafka_protocol import run_presence
from connectctl.ops.clients.kafka_protocol.run_presence import Presence
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import Refused
from live.real import eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
PATIENCE = 600.0


def test_of_several_that_come_at_once_one_has_the_connector_until_it_leaves(
    cluster: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_presence, "GONE", 6.0)
    name = f"alone-{secrets.token_hex(4)}"
    kafka = Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=60)
    several = [Presence(kafka, cluster.group_id, name, cluster.topics["config"]) for _ in range(3)]

    def refused(one: Presence) -> str:
        try:
            one.hold_alone(PATIENCE)
        except Refused as e:
            return str(e)
        return ""

    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(refused, several))
    alone = [one for one, answer in zip(several, answers, strict=True) if not answer]
    assert all(
        f"Another connectctl run is running {name}: process" in answer
        for answer in answers
        if answer
    )
    try:
        (first,) = alone
        assert [holder.client for holder in kafka.holders(cluster.group_id, name)] == [first.client]
        first.leave()
        eventually(lambda: kafka.holders(cluster.group_id, name) == ())
        again = next(one for one in several if one is not first)
        assert not refused(again)
        assert again.overtaken is None
    finally:
        for one in several:
            one.leave()
