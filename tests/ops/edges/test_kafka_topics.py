"""A topic that was just created, and that brokers do not know yet."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from connectctl.ops.edges import kafka
from connectctl.ops.edges.kafka import Kafka
from connectctl.ops.errors import BadInput, NotAuthorized


class Admin:
    """Knows the topic from its ``when``-th answer on; before, who asks for it by name gets ``code``."""

    code = KafkaError.UNKNOWN_TOPIC_OR_PART

    def __init__(self, when: int):
        self.asked, self._when = 0, when

    def list_topics(self, timeout: float) -> Any:
        self.asked += 1
        known = {"t": SimpleNamespace(partitions={0: None, 1: None})} if self.asked >= self._when else {}
        return SimpleNamespace(topics=known, brokers={}, cluster_id="c")

    def describe_topics(self, names: Any, request_timeout: float) -> dict[str, Future[None]]:
        self.asked += 1
        future: Future[None] = Future()
        if self.asked >= self._when:
            future.set_result(None)
        else:
            future.set_exception(KafkaException(KafkaError(self.code)))
        return {"t": future}


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


def test_one_that_may_not_be_seen_is_not_taken_for_one_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    found, admin = made(monkeypatch, 10**9, 60.0)
    admin.code = KafkaError.TOPIC_AUTHORIZATION_FAILED
    for ask in (found.partitions, lambda t: found.topics([t]), lambda t: found.extents([t])):
        with pytest.raises(NotAuthorized, match="Describe on Topic t is missing"):
            ask("t")
    (gap,) = found.existing(["t"]).gaps
    assert str(gap.right) == "Describe on Topic t"
