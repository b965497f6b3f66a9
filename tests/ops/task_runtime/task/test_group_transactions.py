"""A sink's commit in a transaction of the task loop: its failures are told as what they are, and
nothing is written beside an older one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, TimedOut, Unreachable
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.ledger import GroupLedger
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord, TransactionBatch
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop, TaskTransaction
from connectctl.ops.task_runtime.task.rejected_records import RejectedRecord
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


def commit_of(
    producer: Producer, refused: Callable[[Exception], None] | None = None
) -> Callable[[], None]:
    any_: Any = producer
    ledger = GroupLedger(lambda: any_, 1.0)
    ledger.refresh(1.0)
    body: Any = SimpleNamespace(committed=lambda batch: producer.calls.append("committed"))
    transaction = TaskTransaction(AttemptLoop(lambda: any_, ledger), any_, body)
    records = [ProducerRecord("manifest", b"k", b"v")]
    batch = TransactionBatch(records, offsets=OFFSETS, read=5, refused=refused)
    return lambda: transaction.handle(batch)


def test_a_topic_is_looked_at_for_an_older_open_transaction_once_and_before_anything_is_written() -> (
    None
):
    producer = Producer()
    commit = commit_of(producer)
    commit()
    commit()
    whole = ["begin", "send", "offsets", "commit", "committed"]
    assert producer.calls == ["look manifest", *whole, *whole]
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
    with pytest.raises(type(error)):
        commit_of(producer, refused=lambda error: None)()
    assert "abort" not in producer.calls
    assert "committed" not in producer.calls


def test_offsets_of_an_older_generation_abort_the_transaction_and_are_offered_again() -> None:
    producer, refused = Producer(("offsets", Rebalancing("newer"))), list[str]()
    commit_of(producer, lambda error: refused.append(str(error)))()
    assert (producer.calls[-1], refused) == ("abort", ["newer"])
    assert "committed" not in producer.calls


def test_offsets_of_an_older_generation_that_are_not_offered_again_are_a_doubt() -> None:
    with pytest.raises(Rebalancing):
        commit_of(Producer(("offsets", Rebalancing("newer"))))()
