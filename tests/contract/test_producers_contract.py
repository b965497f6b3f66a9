"""What a task's producers keep to, be they real or made for tests: the same tests on all."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord, TransactionBatch
from connectctl.ops.task_runtime.task.transactional_producer import (
    Fenced,
    UnknownOutcome,
)
from connectctl.ops.task_runtime.testing.faults import Faults
from connectctl.ops.task_runtime.testing.memory_kafka import MemoryKafka, MemoryProducer
from fakes.consumergroup import Group, Producer
from fakes.openfiles import many_open_files

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

PATIENCE = 60.0


@dataclass(frozen=True)
class Stage:
    """A topic with two partitions, how to open a producer of it, and the values that read_committed
    readers get.

    ``open`` takes the suffix of another transactional id. ``wait`` lets the coordinator abort what
    is open for longer than the producers' time-out.
    """

    topic: str
    open: Callable[..., Any]
    values: Callable[[], list[bytes | None]]
    wait: Callable[[Any], None] = lambda producer: None

    def opened(self, suffix: str = "") -> Any:
        producer = self.open(suffix)
        producer.initialise(PATIENCE)
        return producer

    def write(self, producer: Any, *values: bytes, partition: int = 0) -> None:
        """A transaction, not ended yet, with a record for each value, of which each lies one
        partition after the last.
        """
        producer.begin()
        for number, value in enumerate(values, partition):
            producer.send(TransactionBatch([ProducerRecord(self.topic, b"k", value, number)]))

    def transact(self, producer: Any, *values: bytes, partition: int = 0) -> None:
        self.write(producer, *values, partition=partition)
        producer.commit(PATIENCE)


class OneProducerContract:
    """What also holds where there is never a second producer."""

    def test_committed_records_are_read_and_aborted_ones_are_not(self, stage: Stage) -> None:
        producer = stage.opened()
        for value, end in (
            (b"1", producer.commit),
            (b"2", producer.abort),
            (b"3", producer.commit),
        ):
            stage.write(producer, value)
            end(PATIENCE)
        assert stage.values() == [b"1", b"3"]

    def test_a_transaction_with_a_record_for_a_partition_that_is_not_there_is_not_committed(
        self, stage: Stage
    ) -> None:
        producer = stage.opened()
        with pytest.raises(ConnectctlError) as failed:
            stage.transact(producer, b"0", b"1", b"2", b"3")
        assert "UNKNOWN" in failed.value.code
        producer.discard()
        stage.transact(stage.opened(), b"3", partition=1)
        assert stage.values() == [b"3"]

    def test_descriptors_of_which_select_takes_none_are_as_good_as_others(
        self, stage: Stage
    ) -> None:
        with many_open_files():
            producer = stage.opened()
            stage.transact(producer, b"1")
            stage.write(producer, b"2")
            producer.abort(PATIENCE)
            producer.discard()
        assert stage.values() == [b"1"]


class ProducersContract(OneProducerContract):
    """What a newer producer of the id, and the coordinator, do to one."""

    def test_a_producer_that_was_not_initialised_commits_nothing(self, stage: Stage) -> None:
        producer = stage.open()
        with pytest.raises((ConnectctlError, UnknownOutcome, Fenced)):
            stage.transact(producer, b"1")
        assert stage.values() == []

    def test_a_newer_producer_fences_the_older_whatever_that_does_next(self, stage: Stage) -> None:
        older = stage.opened()
        stage.write(older, b"old")
        newer = stage.opened()
        with pytest.raises(Fenced):
            older.commit(PATIENCE)
        stage.write(newer, b"new")
        with pytest.raises(Fenced):
            stage.transact(older, b"again")
        newer.commit(PATIENCE)
        assert stage.values() == [b"new"]

    def test_the_abort_of_a_fenced_producer_is_refused_and_ends_nothing_of_the_newer_one(
        self, stage: Stage
    ) -> None:
        older = stage.opened()
        stage.write(older, b"old")
        newer = stage.opened()
        stage.write(newer, b"new")
        with pytest.raises(Fenced):
            older.commit(PATIENCE)
        with pytest.raises(Fenced):
            older.abort(PATIENCE)
        newer.commit(PATIENCE)
        assert stage.values() == [b"new"]

    def test_two_producers_in_one_process_end_each_its_own_transaction(self, stage: Stage) -> None:
        one, other = stage.opened("-1"), stage.opened("-2")
        for value in (b"1", b"2"):
            stage.write(one, b"one " + value)
            stage.write(other, b"other " + value)
            other.abort(PATIENCE) if value == b"1" else other.commit(PATIENCE)
            one.commit(PATIENCE)
        assert sorted(value or b"" for value in stage.values()) == [b"one 1", b"one 2", b"other 2"]
        stage.opened("-1")
        stage.transact(other, b"other 3")
        with pytest.raises(Fenced):
            stage.transact(one, b"one 3")
        assert b"one 3" not in stage.values()
        assert b"other 3" in stage.values()

    def test_a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_is_refused(
        self, stage: Stage
    ) -> None:
        producer = stage.opened()
        stage.write(producer, b"late")
        stage.wait(producer)
        with pytest.raises((Fenced, UnknownOutcome)):
            producer.commit(PATIENCE)
        assert producer.expired() is True
        stage.transact(stage.opened(), b"new")
        assert stage.values() == [b"new"]


class TestFakeProducer(ProducersContract):
    """The producer that tests of transforms believe in."""

    @pytest.fixture
    def stage(self) -> Stage:
        group = Group({}, output_partitions=2)
        return Stage(
            "out",
            lambda suffix="": Producer(group, f"id{suffix}"),
            lambda: list(group.output),
            lambda producer: group.expire(producer.id),
        )


class TestMemoryProducer(OneProducerContract):
    """The one of ``connectctl.testing``."""

    @pytest.fixture
    def stage(self) -> Stage:
        kafka = MemoryKafka(Faults({}), {"out": 2})

        def values() -> list[bytes | None]:
            return [record.value for records, _ in kafka.transactions for record in records]

        return Stage("out", lambda suffix="": MemoryProducer(kafka, f"id{suffix}"), values)


@pytest.mark.live
class TestRealProducer(ProducersContract):
    """The real one on a real broker."""

    @pytest.fixture
    def stage(self, cluster: Sandbox) -> Iterator[Stage]:
        from connectctl.ops.clients.librdkafka.client import Kafka
        from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
        from live.real import create_topic

        topic = create_topic(
            cluster.bootstrap_servers, f"contract-{secrets.token_hex(4)}", 2, "delete"
        )
        kafka = Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
        made: list[Any] = []

        def opened(suffix: str = "") -> Any:
            made.append(TaskProducer(kafka, topic + suffix, timeout_ms=10_000))
            return made[-1]

        def values() -> list[bytes | None]:
            image = kafka.image([topic], patience=PATIENCE, superseded=True)[topic]
            found = sorted(
                (*image.latest, *image.superseded),
                key=lambda record: (record.timestamp, record.offset),
            )
            return [record.value for record in found]

        def wait(producer: Any) -> None:
            # A few records are sent with their commit: more of them, so that the coordinator has
            # the transaction.
            producer.send(TransactionBatch([ProducerRecord(topic, b"k", bytes(900_000), 0)] * 6))
            end = time.monotonic() + 600
            while producer.expired() is not True:
                assert time.monotonic() < end
                time.sleep(0.2)

        yield Stage(topic, opened, values, wait)
        for each in made:
            with suppress(ConnectctlError, UnknownOutcome, Fenced):
                each.discard()
