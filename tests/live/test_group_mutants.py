"""Transforms that leave out one part of KIP-447: each meets the moment that the part is for, and
readers of the output tell.

The whole transform goes through the same moments beside them, and nothing is found. Files of an
archive that are named by their first offset are in
``tests/ops/task_runtime/connectors/parquet_archive/test_connector.py``.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from connectctl.ops.clients.kafka_protocol.group_coordinator import coordinated
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
from connectctl.ops.task_runtime.group.stable_offsets import StableOffsets
from connectctl.ops.task_runtime.spi.transaction_batch import IDLE, Event
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from connectctl.ops.task_runtime.task.transform_source import TransformSource
from live.groupslots import PATIENCE, Slots
from live.real import eventually, write_uncommitted

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
TIMEOUT_MS = 240_000
"""Of transactions: only what is looked at may end one."""
WITHIN, LATE = 8.0, 200.0
"""Seconds within which what is missing does not come, and within which everything else does on a
slow machine.
"""


def found(slots: Slots, wrong: set[str]) -> set[str]:
    """What readers with read_committed find wrong when all is there; ``wrong`` is what they are to
    find.
    """
    end = time.monotonic() + (WITHIN if "missing" in wrong else LATE)
    while (
        not set(slots.each_once) <= (seen := Counter(slots.seen())).keys()
        and time.monotonic() < end
    ):
        time.sleep(0.2)
    seen_wrong = {"twice": seen.total() > len(seen), "missing": set(slots.each_once) - seen.keys()}
    seen_wrong["never committed to the input"] = seen.keys() - set(slots.each_once)
    print({what: each for what, each in seen_wrong.items() if each})
    return {what for what, each in seen_wrong.items() if each}


class Died(Exception):
    """The end of an attempt without a last word."""


class Dying(TaskProducer):
    """Dies as its first transaction is to be committed."""

    def commit(self, patience: float) -> None:
        raise Died


class OffsetsBefore(Dying):
    """Commits the offsets beside the transaction of their records, before that ends."""

    def send_group_offsets(
        self, offsets: GroupOffsets, consumer: GroupConsumer, patience: float
    ) -> None:
        consumer.commit(offsets)


class OffsetsAfter(Dying):
    """Commits the offsets when the transaction of their records has ended."""

    def send_group_offsets(
        self, offsets: GroupOffsets, consumer: GroupConsumer, patience: float
    ) -> None:
        pass

    def commit(self, patience: float) -> None:
        TaskProducer.commit(self, patience)
        raise Died


@pytest.mark.parametrize(
    ("kind", "wrong"), [(Dying, set()), (OffsetsBefore, {"missing"}), (OffsetsAfter, {"twice"})]
)
def test_offsets_outside_the_transaction_and_their_records_do_not_die_together(
    cluster: Sandbox, kind: type[Dying], wrong: set[str]
) -> None:
    with Slots.new(cluster) as slots:
        slots.write()
        older = slots.slot(
            0, open_producer=lambda: kind(slots.kafka, slots.id_of(0), timeout_ms=TIMEOUT_MS)
        )
        eventually(lambda: older.ended)
        assert isinstance(older.error, Died)
        slots.slot(0)
        slots.write()
        assert found(slots, wrong) == wrong


@pytest.mark.parametrize(
    ("level", "wrong"),
    [("read_committed", set()), ("read_uncommitted", {"never committed to the input"})],
)
def test_a_read_uncommitted_member_carries_over_what_was_aborted(
    cluster: Sandbox, monkeypatch: pytest.MonkeyPatch, level: str, wrong: set[str]
) -> None:
    real = confluent_kafka.Consumer

    def opened(given: Any) -> Any:
        assert given["isolation.level"] == "read_committed"
        return real(given | {"isolation.level": level})

    with Slots.new(cluster) as slots:
        slots.write()
        aborted = [(None, f"aborted {n}") for n in range(5)]
        write_uncommitted(
            slots.bootstrap, slots.source, f"input-{slots.name}", *aborted
        ).abort_transaction(PATIENCE)
        with monkeypatch.context() as patch:
            patch.setattr(confluent_kafka, "Consumer", opened)
            slot = slots.slot(0)
            eventually(lambda: slot.assignment)
        slots.write()
        assert found(slots, wrong) == wrong


class Held(TaskProducer):
    """Everything of its first transaction is sent but its end, which waits for ``go``."""

    def __init__(self, slots: Slots, id_: str):
        super().__init__(slots.kafka, id_, timeout_ms=TIMEOUT_MS)
        self.asked, self.go = threading.Event(), threading.Event()

    def commit(self, patience: float) -> None:
        self.asked.set()
        assert self.go.wait(LATE)
        super().commit(patience)


class NotStable(StableOffsets):
    """What is committed now, whatever a transaction has pending."""

    def __call__(self, partitions: Collection[TopicPartition]) -> GroupOffsets:
        committed = coordinated(self.kafka, self.group, lambda c: c.committed())
        return {place: GroupOffset(committed[place]) for place in partitions if place in committed}


@pytest.mark.parametrize(("stable", "wrong"), [(StableOffsets, set()), (NotStable, {"twice"})])
def test_whoever_does_not_wait_for_pending_offsets_carries_records_over_again(
    cluster: Sandbox, stable: type[StableOffsets], wrong: set[str]
) -> None:
    with Slots.new(cluster) as slots:
        slots.write()
        made = [Held(slots, slots.id_of(0))]
        held = made[0]
        older = slots.slot(0, open_producer=lambda: made.pop() if made else slots.producer(0))
        eventually(held.asked.is_set)
        assert slots.ask(lambda c: c.remove_static([slots.id_of(0)])) == {}  # its session is over
        newer = slots.slot(1, stable=stable)
        eventually(lambda: newer.task.stats.transactions if wrong else slots.waits)
        held.go.set()
        eventually(lambda: older.task.stats.transactions)
        slots.write()
        assert found(slots, wrong) == wrong


class CommitsLater(TransformSource):
    """Gives a partition up with its transaction open."""

    def _before_revocation(self) -> Event:
        return IDLE


@pytest.mark.parametrize(("source", "wrong"), [(TransformSource, set()), (CommitsLater, {"twice"})])
def test_a_commit_after_the_revocation_is_of_records_that_another_one_has_carried_over(
    cluster: Sandbox, source: type[TransformSource], wrong: set[str]
) -> None:
    with Slots.new(cluster) as slots:
        slots.write()
        opened = lambda: TaskProducer(slots.kafka, slots.id_of(0), timeout_ms=TIMEOUT_MS)  # noqa: E731
        giving = slots.slot(0, interval=12.0, source=source, open_producer=opened)
        eventually(lambda: len(giving.read) == 20)
        taking = slots.slot(1)
        eventually(lambda: len(taking.assignment) == len(giving.assignment) == 2)
        eventually(lambda: giving.task.stats.transactions)
        slots.write()
        assert found(slots, wrong) == wrong


def fixed(slots: Slots) -> str:
    return slots.id_of(0)


def dynamic(slots: Slots) -> str:
    return f"{slots.id_of(0)}-{secrets.token_hex(4)}"


@pytest.mark.parametrize(("id_of", "wrong"), [(fixed, set()), (dynamic, {"missing"})])
def test_a_successor_with_another_transactional_id_waits_for_what_its_predecessor_has_pending(
    cluster: Sandbox, id_of: Callable[[Slots], str], wrong: set[str]
) -> None:
    with Slots.new(cluster) as slots:
        slots.write()
        held = Held(slots, id_of(slots))
        slots.slot(0, open_producer=lambda: held)
        eventually(held.asked.is_set)
        opened = lambda: TaskProducer(slots.kafka, id_of(slots), timeout_ms=TIMEOUT_MS)  # noqa: E731
        slots.slot(0, open_producer=opened)
        assert found(slots, wrong) == wrong
        held.go.set()
        assert found(slots, set()) == set()
