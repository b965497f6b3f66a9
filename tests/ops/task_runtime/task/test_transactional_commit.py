"""A sink's commit in a transaction: its failures are told as what they are, and nothing is written
beside an older one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, TimedOut, Unreachable
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord
from connectctl.ops.task_runtime.task.rejected_records import RejectedRecord
from connectctl.ops.task_runtime.task.transactional_commit import TransactionalCommit
from connectctl.ops.task_runtime.task.transactional_producer import (
    Expired,
    Fenced,
    Rebalancing,
    UnknownOutcome,
)

OFFSETS = {TopicPartition("in", 0): GroupOffset(5)}


class Producer:
    """Notes its calls; ``fails`` raises in one of them. ``older`` is where an older transaction is
    open.
    """

    timeout_ms = 10_000
    overdue = False

    def __init__(
        self,
        fails: tuple[str, Exception] | None = None,
        older: str | None = None,
        expired: bool | None = None,
    ):
        self.fails, self.older, self.calls = fails, older, list[str]()
        self.expired = lambda: expired

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.fails is not None and self.fails[0] == name:
            raise self.fails[1]

    def open_older_transaction(self, topics: Sequence[str]) -> str | None:
        self.calls.append(f"look {','.join(topics)}")
        return self.older

    def begin(self) -> None:
        self._call("begin")

    def send(self, batch: Any) -> None:
        self._call("send")

    def send_group_offsets(self, offsets: Any, consumer: Any, patience: float) -> None:
        self._call("offsets")

    def commit(self, patience: float) -> None:
        self._call("commit")

    def abort(self, patience: float) -> None:
        self._call("abort")

    def unusable_because(self) -> str | None:
        return None


def commit_of(producer: Producer) -> Callable[[], None]:
    task: Any = SimpleNamespace(
        transaction_records=lambda offsets: [ProducerRecord("manifest", b"k", b"v")]
    )
    any_: Any = producer
    commit = TransactionalCommit(any_, any_, task, 1.0)
    return lambda: commit(OFFSETS)


def test_a_topic_is_looked_at_for_an_older_open_transaction_once_and_before_anything_is_written() -> (
    None
):
    producer = Producer()
    commit = commit_of(producer)
    commit()
    commit()
    assert producer.calls == ["look manifest", *["begin", "send", "offsets", "commit"] * 2]
    left = Producer(older="hanging transaction: manifest-0 from offset 7")
    with pytest.raises(UnknownOutcome, match="hanging transaction: manifest-0 from offset 7"):
        commit_of(left)()
    assert left.calls == ["look manifest"]


@pytest.mark.parametrize("call", ["send", "offsets", "commit"])
def test_a_transaction_that_the_coordinator_has_timed_out_is_no_fence(call: str) -> None:
    producer = Producer((call, Fenced("PRODUCER_FENCED")), expired=True)
    with pytest.raises(Fenced):  # in time
        commit_of(producer)()
    producer.overdue = True
    with pytest.raises(
        Expired, match=r"its transaction was open for longer than transaction\.timeout\.ms of 10 s"
    ):
        commit_of(producer)()
    producer.expired = lambda: None
    with pytest.raises(
        Fenced, match=r"PRODUCER_FENCED; .* Increase producer.override.transaction.timeout.ms"
    ):
        commit_of(producer)()
    producer.expired = lambda: False
    with pytest.raises(Fenced, match=r"^PRODUCER_FENCED$"):
        commit_of(producer)()


@pytest.mark.parametrize(
    "error", [NotAuthorized("no Read on the group"), RejectedRecord("too large", code="x")]
)
def test_what_waiting_does_not_help_is_raised_as_it_is(error: ConnectctlError) -> None:
    producer = Producer(("offsets", error))
    with pytest.raises(type(error)) as raised:
        commit_of(producer)()
    assert raised.value is error


@pytest.mark.parametrize("error", [Unreachable("gone"), TimedOut("late")])
def test_what_may_pass_leaves_the_outcome_unknown(error: ConnectctlError) -> None:
    producer = Producer(("commit", error))
    with pytest.raises(UnknownOutcome, match=str(error)):
        commit_of(producer)()
    assert "abort" not in producer.calls


def test_offsets_of_an_older_generation_abort_the_transaction() -> None:
    producer = Producer(("offsets", Rebalancing("newer")))
    with pytest.raises(Rebalancing):
        commit_of(producer)()
    assert producer.calls[-1] == "abort"
