"""A group of a cluster whose brokers are down in part."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from connectctl.ops.clients.librdkafka import client, named_groups
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import TimedOut, Unreachable

BROKERS = 3


@pytest.fixture
def listening() -> Iterator[list[int]]:
    """The ports of ``BROKERS`` servers."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(BROKERS)
        ]
        yield [server.getsockname()[1] for server in servers]


def cluster(monkeypatch: pytest.MonkeyPatch, listening: list[int], down: int) -> Kafka:
    """Return a client of brokers that list no group, and whose coordinator does not answer; nothing
    listens at the ports of the first ``down`` of them.
    """

    def described(kafka: Kafka, group: str) -> None:
        raise TimedOut(f"No coordinator of the group {group} answered within 30 s", why="refused")

    monkeypatch.setattr(named_groups, "_listed", lambda kafka, group: None)
    monkeypatch.setattr(named_groups, "described", described)
    monkeypatch.setattr(client, "OUTAGE", 0.0)
    ports = [*range(1, down + 1), *listening[down:]]
    brokers = {n: SimpleNamespace(id=n, host="127.0.0.1", port=p) for n, p in enumerate(ports, 1)}
    kafka = Kafka({"bootstrap.servers": "b:9092"}, timeout=1)
    kafka.__dict__["_metadata"] = SimpleNamespace(cluster_id="c", brokers=brokers)
    return kafka


def test_no_coordinator_is_waited_for_while_most_brokers_are_down(
    monkeypatch: pytest.MonkeyPatch, listening: list[int]
) -> None:
    with pytest.raises(Unreachable) as raised:
        cluster(monkeypatch, listening, 2).group("g")
    assert str(raised.value).startswith(
        "Most brokers of Kafka at b:9092 do not answer: 2 of 3 do not accept connections: "
        "1 (127.0.0.1:1), 2 (127.0.0.1:2)"
    )


@pytest.mark.parametrize("down", [1, 3])
def test_a_coordinator_that_does_not_answer_is_told_with_the_brokers_that_are_down(
    monkeypatch: pytest.MonkeyPatch, listening: list[int], down: int
) -> None:
    kafka = cluster(monkeypatch, listening, down)
    with pytest.raises(TimedOut, match=f"{down} of 3 brokers do not accept connections: 1 \\("):
        kafka.group("g")


def test_brokers_that_accept_connections_are_not_accused(
    monkeypatch: pytest.MonkeyPatch, listening: list[int]
) -> None:
    with pytest.raises(TimedOut, match="refused"):
        cluster(monkeypatch, listening, 0).group("g")
