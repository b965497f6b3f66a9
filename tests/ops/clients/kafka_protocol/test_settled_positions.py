"""Committed offsets that are pending, or that the coordinator does not give, are unknown, and not
none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol import settled_positions
from connectctl.ops.core.errors import NotAuthorized, TimedOut, Unreachable
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition

PLACES = [TopicPartition("in", number) for number in range(3)]


class FakeCoordinator:
    """Of in-0 the offset 7 is committed, of in-1 it is pending for ``looks`` looks, and of in-2
    there is none.
    """

    def __init__(self, looks: int, error: Exception | None = None) -> None:
        self.looks, self.error = looks, error

    def stable_offsets(self, partitions: Collection[TopicPartition]) -> Any:
        if self.error:
            raise self.error
        self.looks -= 1
        known = {PLACES[0]: GroupOffset(7, None, ""), PLACES[1]: GroupOffset(9, None, "")}
        pending = frozenset({PLACES[1]} if self.looks >= 0 else ())
        return {p: o for p, o in known.items() if p in partitions and p not in pending}, pending


def positions(
    monkeypatch: pytest.MonkeyPatch, coordinator: FakeCoordinator, patience: float = 5
) -> Any:
    def coordinated(kafka: Any, group: str, ask: Callable[[Any], Any]) -> Any:
        return ask(coordinator)

    monkeypatch.setattr(settled_positions, "settle", lambda kafka, group: None)
    monkeypatch.setattr(settled_positions, "coordinated", coordinated)
    monkeypatch.setattr(settled_positions, "POLL", 0)
    monkeypatch.setattr(settled_positions, "holder_of", lambda kafka, group: "the transaction of x")
    kafka: Any = SimpleNamespace(partition_counts=lambda topics: dict.fromkeys(topics, 3))
    return settled_positions.positions(kafka, "g", ["in"], patience)


def test_offsets_of_an_open_transaction_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found = positions(monkeypatch, FakeCoordinator(2))
    assert (found.offsets, found.unknown) == ({PLACES[0]: 7, PLACES[1]: 9}, {})


def test_after_that_they_are_unknown_and_what_was_never_committed_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = positions(monkeypatch, FakeCoordinator(99), 0)
    assert (found.offsets, found.unknown) == (
        {PLACES[0]: 7},
        {PLACES[1]: "the transaction of x holds its offset"},
    )


@pytest.mark.parametrize(
    "error", [NotAuthorized("No Describe", why="g"), TimedOut("No coordinator", why="g")]
)
def test_what_the_coordinator_does_not_give_is_unknown(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = positions(monkeypatch, FakeCoordinator(0, error))
    assert found.offsets == {}
    assert set(found.unknown) == set(PLACES)
    assert found.unknown[PLACES[0]].endswith(": g")


def test_a_cluster_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unreachable):
        positions(monkeypatch, FakeCoordinator(0, Unreachable("Kafka does not answer")))
