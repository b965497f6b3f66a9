"""A topic that was just created, and that brokers do not know yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.edges import kafka
from connectctl.ops.edges.kafka import Kafka
from connectctl.ops.errors import BadInput


class Admin:
    """Knows the topic from its ``when``-th answer on."""

    def __init__(self, when: int):
        self.asked, self._when = 0, when

    def list_topics(self, timeout: float) -> Any:
        self.asked += 1
        known = {"t": SimpleNamespace(partitions={0: None, 1: None})} if self.asked >= self._when else {}
        return SimpleNamespace(topics=known, brokers={}, cluster_id="c")


def made(monkeypatch: pytest.MonkeyPatch, when: int, patience: float) -> tuple[Kafka, Admin]:
    monkeypatch.setattr(kafka, "NEW_TOPIC", patience)
    monkeypatch.setattr(kafka, "NEW_TOPIC_PAUSE", 0.0)
    found, admin = Kafka({"bootstrap.servers": "h:1"}, timeout=60), Admin(when)
    found.__dict__["admin"] = admin
    return found, admin


def test_its_partitions_are_asked_for_until_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    found, admin = made(monkeypatch, 3, 60.0)
    assert (found.partitions("t"), found.partitions("t"), admin.asked) == ([0, 1], [0, 1], 3)


def test_one_that_does_not_come_is_no_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = made(monkeypatch, 10**9, 0.01)
    with pytest.raises(BadInput, match="There is no topic t at h:1"):
        found.partitions("t")
