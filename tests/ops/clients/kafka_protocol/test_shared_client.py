"""A client that several producers share: one request after the other, and closed by the last of them."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.shared_client import SharedProtocolClient


def test_it_is_closed_by_the_last_who_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Any] = []

    def close(self: Any) -> None:
        closed.append(self)

    monkeypatch.setattr(KafkaProtocolClient, "close", close)
    first = SharedProtocolClient({"bootstrap.servers": "h:1"}, timeout=1)
    second = first.one_more()
    assert second is first
    first.close()
    assert closed == []
    second.close()
    assert closed == [first]


def test_no_request_is_on_its_way_beside_another(monkeypatch: pytest.MonkeyPatch) -> None:
    under_way: list[int] = []
    most: list[int] = []

    def run(self: Any, doing: str, work: Any) -> None:
        under_way.append(1)
        most.append(len(under_way))
        time.sleep(0.001)
        under_way.pop()

    monkeypatch.setattr(KafkaProtocolClient, "run", run)
    client = SharedProtocolClient({"bootstrap.servers": "h:1"}, timeout=1)
    threads = [threading.Thread(target=client.run, args=("x", lambda: None)) for _ in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert most == [1] * 20
