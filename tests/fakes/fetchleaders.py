"""Leaders that answer a fetcher's requests over real sockets, with partitions that a test names."""

from __future__ import annotations

import socket
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol import batch_fetcher, fetch_protocol
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.fetch_protocol import (
    FetchLimits,
    PartitionData,
    Position,
)
from connectctl.ops.clients.kafka_protocol.leaders import TopicLayouts
from connectctl.ops.kafka.topic_partition import TopicPartition

Requested = list[tuple[TopicPartition, Position]]


class Leaders:
    """``layouts`` is what brokers tell of topics. ``requests`` are those of all leaders, with the
    partitions in their order; ``limits`` are those of the last one. ``seconds`` is the fetcher's
    clock.
    """

    def __init__(self, patch: pytest.MonkeyPatch, layouts: TopicLayouts):
        self.layouts, self.seconds = layouts, 100.0
        self.requests: list[tuple[int, Requested]] = []
        self.limits: FetchLimits | None = None
        self.answers = defaultdict[int, deque[list[PartitionData] | OSError]](deque)
        self.connections: dict[int, _Connection] = {}
        patch.setattr(batch_fetcher, "topic_layouts", lambda wire, topics: self.layouts)
        patch.setattr(batch_fetcher, "RawConnection", self._connect)
        patch.setattr(batch_fetcher, "PAUSE", 0.0)
        clock = SimpleNamespace(monotonic=lambda: self.seconds, sleep=lambda seconds: None)
        patch.setattr(batch_fetcher, "time", clock)
        patch.setattr(fetch_protocol, "fetch_request", self._request)
        patch.setattr(
            fetch_protocol,
            "read_response",
            lambda connection, ids, *, committed: (0, connection.parts),
        )
        patch.setattr(KafkaProtocolClient, "newest", lambda wire, kind: fetch_protocol.BY_NAME)

    def _connect(self, wire: Any, leader: int, timeout: float, *, room: int) -> _Connection:
        self.connections[leader] = _Connection(self, leader)
        return self.connections[leader]

    def _request(
        self,
        positions: Mapping[TopicPartition, Position],
        ids: Any,
        limits: FetchLimits,
        *,
        committed: bool,
    ) -> Requested:
        self.limits = limits
        return list(positions.items())

    def answer(self, leader: int, *parts: PartitionData | OSError) -> None:
        """Answer the open request of ``leader``, or its next one; with an error, break the
        connection.
        """
        error = next((part for part in parts if isinstance(part, OSError)), None)
        given = [part for part in parts if isinstance(part, PartitionData)]
        self.answers[leader].append(error or given)
        if leader in self.connections:
            self.connections[leader].send_answer()

    def close(self) -> None:
        for each in self.connections.values():
            each.close()


class _Connection:
    def __init__(self, leaders: Leaders, leader: int):
        self.leaders, self.leader = leaders, leader
        self.ours, self.theirs = socket.socketpair()
        self.asked = False
        self.parts: Iterator[PartitionData] = iter(())

    def fileno(self) -> int:
        return self.ours.fileno()

    def send(self, request: Requested) -> int:
        self.leaders.requests.append((self.leader, request))
        self.asked = True
        self.send_answer()
        return len(self.leaders.requests)

    def send_answer(self) -> None:
        if self.asked and self.leaders.answers[self.leader]:
            self.asked = False
            self.theirs.sendall(b"x")

    def await_answer(self, number: int) -> None:
        self.ours.recv(1)
        answer = self.leaders.answers[self.leader].popleft()
        if isinstance(answer, OSError):
            raise answer
        self.parts = iter(answer)

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()
