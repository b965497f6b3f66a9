"""Connections of a producer's requests: one that is idle for long, or on which an answer is
missing, is replaced.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from connectctl.ops.clients.kafka_protocol import direct_requests
from connectctl.ops.clients.kafka_protocol.direct_requests import DirectRequests
from connectctl.ops.core.errors import Unreachable


class Connection:
    """Answers with its own number; ``fails`` is raised instead."""

    fails: BaseException | None = None

    def __init__(self, opened: list[Connection]):
        self.number, self.closed = len(opened), False
        opened.append(self)

    def ask(self, request: Any) -> None:
        if self.fails is not None:
            raise self.fails

    def allow(self, seconds: float) -> None: ...

    def answer_to(self, request: Any) -> int:
        return self.number

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    found: list[Connection] = []
    monkeypatch.setattr(
        direct_requests,
        "RawConnection",
        lambda wire, broker, timeout, room, patience: Connection(found),
    )
    return found


@pytest.fixture
def requests() -> DirectRequests:
    wire: Any = SimpleNamespace(failure=lambda error, doing: Unreachable(doing))
    return DirectRequests(cast(Any, wire), 5)


REQUEST = SimpleNamespace(API_VERSION=5)


def test_each_broker_has_one_connection(opened: list[Connection], requests: DirectRequests) -> None:
    assert [requests.ask("x", REQUEST, broker) for broker in (1, 2, 1, 2)] == [0, 1, 0, 1]
    requests.close()
    assert [each.closed for each in opened] == [True, True]


def test_one_that_was_idle_for_long_is_replaced(
    opened: list[Connection], requests: DirectRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(direct_requests, "time", SimpleNamespace(monotonic=lambda: now[0]))
    found = []
    for waited in (0, 59, 59, 61):
        now[0] += waited
        found.append(requests.ask("x", REQUEST, 1))
    assert found == [0, 0, 0, 1]
    assert [each.closed for each in opened] == [True, False]


@pytest.mark.parametrize(
    ("error", "told"), [(TimeoutError(), Unreachable), (KeyboardInterrupt(), KeyboardInterrupt)]
)
def test_one_on_which_an_answer_is_missing_is_replaced(
    opened: list[Connection],
    requests: DirectRequests,
    error: BaseException,
    told: type[BaseException],
) -> None:
    requests.ask("x", REQUEST, 1)
    opened[0].fails = error
    with pytest.raises(told):
        requests.ask("commit", REQUEST, 1)
    assert opened[0].closed
    assert requests.ask("x", REQUEST, 1) == 1
