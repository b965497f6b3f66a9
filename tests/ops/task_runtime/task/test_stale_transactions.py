"""Whether an older transaction of a task is open: who does not answer has not said that none is."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import OffsetRange
from connectctl.ops.kafka.transactions import PartitionProducer, Transaction
from connectctl.ops.task_runtime.attempt import coalesced_read
from connectctl.ops.task_runtime.task import stale_transactions
from connectctl.ops.task_runtime.task.stale_transactions import open_older_transaction

PLACE = TopicPartition("t", 0)
OURS = Transaction("id", "Empty", 7, 1)


class Calls:
    """A cluster in which something is open on ``PLACE``."""

    def __init__(self, ours: Transaction | Code, producers: tuple[PartitionProducer, ...] | Code):
        self._ours, self._producers = ours, producers

    def extents(self, topics: Any) -> dict[str, dict[int, OffsetRange]]:
        return {"t": {0: OffsetRange(0, 3, 5)}}

    def describe(self, ids: Any) -> dict[str, Transaction | Code]:
        return {"id": self._ours}

    def producers(self, places: Any) -> dict[TopicPartition, tuple[PartitionProducer, ...] | Code]:
        return {PLACE: self._producers}


def asked(monkeypatch: pytest.MonkeyPatch, ours: Any, producers: Any = ()) -> str | None:
    calls: Any = Calls(ours, producers)

    @contextmanager
    def shared(kafka: Any) -> Iterator[Any]:
        yield kafka

    monkeypatch.setattr(stale_transactions, "_calls", shared)
    return open_older_transaction(calls, "id", ["t"])


def test_only_those_partitions_are_looked_at_that_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked_for: list[TopicPartition] = []

    class Leaderless(Calls):
        def extents(self, topics: Any) -> Any:
            raise AssertionError("it would wait for every leader")

        def producers(self, places: Any) -> Any:
            asked_for.extend(places)
            return {PLACE: (PartitionProducer(7, 0, 0, 1, 3),)}

    calls: Any = Leaderless(OURS, ())

    @contextmanager
    def shared(kafka: Any) -> Iterator[Any]:
        yield kafka

    monkeypatch.setattr(stale_transactions, "_calls", shared)
    found = open_older_transaction(calls, "id", ["t"], [PLACE])
    assert (asked_for, "is open on t-0" in str(found)) == ([PLACE], True)


def test_an_older_transaction_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = (PartitionProducer(7, 0, 0, 1, 3),)
    assert "is open on t-0 from offset 3" in str(asked(monkeypatch, OURS, ours))
    assert asked(monkeypatch, OURS, (PartitionProducer(8, 0, 0, 1, 3),)) is None, (
        "another producer's"
    )


@pytest.mark.parametrize(
    "code", [Code.COORDINATOR_NOT_AVAILABLE, Code.NOT_COORDINATOR, Code.NO_ANSWER, Code.NOT_SENT]
)
def test_a_coordinator_that_does_not_answer_leaves_a_doubt(
    monkeypatch: pytest.MonkeyPatch, code: Code
) -> None:
    assert "could not determine whether" in str(asked(monkeypatch, code))


@pytest.mark.parametrize(
    "code", [Code.LEADER_NOT_AVAILABLE, Code.NOT_LEADER_OR_FOLLOWER, Code.NO_ANSWER]
)
def test_a_leader_that_does_not_answer_leaves_a_doubt(
    monkeypatch: pytest.MonkeyPatch, code: Code
) -> None:
    assert "could not determine whether" in str(asked(monkeypatch, OURS, code))


@pytest.mark.parametrize(
    "code",
    [
        Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Code.CLUSTER_AUTHORIZATION_FAILED,
        Code.UNSUPPORTED_VERSION,
    ],
)
def test_who_may_not_see_producers_goes_on_without(
    monkeypatch: pytest.MonkeyPatch, code: Code
) -> None:
    assert asked(monkeypatch, code) is None
    assert asked(monkeypatch, OURS, code) is None


def test_tasks_that_ask_at_once_have_the_brokers_asked_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked_, begun = [], threading.Event()

    class Many(Calls):
        def extents(self, topics: Any) -> dict[str, dict[int, OffsetRange]]:
            asked_.append(topics)
            begun.wait(30)
            return super().extents(topics)

        def describe(self, ids: Any) -> dict[str, Transaction | Code]:
            return {id_: Transaction(id_, "Empty", int(id_), 1) for id_ in ids}

    calls: Any = Many(OURS, (PartitionProducer(7, 0, 0, 1, 3),))

    @contextmanager
    def shared(kafka: Any) -> Iterator[Any]:
        yield kafka

    monkeypatch.setattr(stale_transactions, "_calls", shared)
    with ThreadPoolExecutor(50) as pool:
        told = [pool.submit(open_older_transaction, calls, str(n), ["t"]) for n in range(50)]
        waiting = time.monotonic() + 600
        while (
            sum(each.users for each in coalesced_read._shared.values()) < 50
            and time.monotonic() < waiting
        ):
            time.sleep(0.01)
        begun.set()
        open_ = [n for n, each in enumerate(told) if each.result() is not None]
    assert open_ == [7]
    assert len(asked_) <= 5, "the one that was under way, and one for all who came meanwhile"
    assert not coalesced_read._shared
