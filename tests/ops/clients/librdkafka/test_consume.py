"""The loop that reads partitions to their ends."""

from __future__ import annotations

import time
from itertools import islice
from typing import Any

import pytest
from confluent_kafka import KafkaError
from connectctl.ops.clients.librdkafka.consume import Progress, consume_to
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.kafka.topic_partition import TopicPartition
from fakes.admin import FakeAdmin, FakeKafka
from fakes.consumer import Consumer, Event, Kept


class Failed(Event):
    """An error that the consumer returns in place of a record."""

    def __init__(self, code: int):
        super().__init__(0, 0)
        self._code = code

    def error(self) -> Any:
        return KafkaError(self._code)


def records(partition: int, *offsets: int) -> list[Any]:
    return [Kept(offset, partition, b"k") for offset in offsets]


def partition(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def read(progress: Progress, *batches: list[Any], rounds: int = 10) -> tuple[Any, Consumer]:
    """Return what each round yields, as offsets by partition, and the consumer."""
    made = Consumer(*batches)
    kafka = FakeKafka(FakeAdmin(), timeout=0.05)
    found = []
    for runs in consume_to(kafka, made, progress):
        found.append([(place.partition, [m.offset() for m in some]) for place, some in runs])
        if len(found) == rounds:
            break
    return found, made


def test_each_partition_is_read_from_its_start_to_before_its_end_and_then_paused() -> None:
    progress = Progress({partition(0): 3, partition(1): 2}, {partition(0): 1})
    found, made = read(
        progress, records(0, 1, 2, 3, 4) + records(1, 0), records(0, 5), records(1, 1)
    )
    assert found == [[(0, [1, 2]), (1, [0])], [], [(1, [1])]]
    assert (made.assigned, made.paused) == ([(0, 1), (1, 0)], [0])
    assert progress.positions == {partition(0): 3, partition(1): 2}


def test_a_position_stays_below_records_that_were_not_yielded() -> None:
    progress = Progress({partition(0): 2})
    read(progress, records(0, 0, 1, 2, 3))
    assert progress.positions == {partition(0): 2}, "the next reading begins with the rest"


def test_markers_before_the_end_offset_end_a_partition_without_a_record() -> None:
    progress = Progress({partition(0): 3})
    assert read(progress, [*records(0, 0), Event(3, 0)])[0] == [[(0, [0])]]
    assert not progress.held_back


def test_events_and_records_count_in_their_order() -> None:
    progress = Progress({partition(0): 3})
    found, _ = read(progress, [*records(0, 0), Event(1, 0)], rounds=1)
    assert (found, progress.held_back) == ([[(0, [0])]], {partition(0): 1})
    assert progress.is_held_back
    read(progress, [Event(1, 0), *records(0, 1)], rounds=1)
    assert not progress.held_back, "its transaction has ended"
    assert not progress.is_held_back


def test_only_the_last_offset_of_consecutive_records_is_read() -> None:
    progress = Progress({partition(0): 10_000})
    made: Any = Consumer(records(0, *range(5_000)))
    Kept.offsets_read = 0
    next(consume_to(FakeKafka(FakeAdmin(), timeout=1), made, progress))
    assert Kept.offsets_read == 1


@pytest.mark.parametrize(
    "code",
    [KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError.GROUP_AUTHORIZATION_FAILED],
)
def test_errors_that_librdkafka_recovers_from_do_not_end_a_reading(code: int) -> None:
    assert read(Progress({partition(0): 1}), [Failed(code)], records(0, 0))[0] == [[], [(0, [0])]]


def test_an_error_is_no_answer() -> None:
    failing: Any = Consumer(*[[Failed(KafkaError._TRANSPORT)]] * 1000)
    kafka, progress = FakeKafka(FakeAdmin(), timeout=0.05), Progress({partition(0): 1})
    for _ in islice(consume_to(kafka, failing, progress), 100):
        time.sleep(0.001)
    with pytest.raises(Unreachable, match="stopped answering"):
        progress.check_answers(kafka)


def test_other_errors_end_a_reading() -> None:
    with pytest.raises(ConnectctlError, match="read t"):
        read(Progress({partition(0): 1}), [Failed(KafkaError.TOPIC_AUTHORIZATION_FAILED)])


def test_silence_is_an_error_that_names_the_partitions() -> None:
    progress = Progress({partition(0): 1, partition(1): 1})
    read(progress, records(1, 0), rounds=1)
    progress.received -= 1
    with pytest.raises(Unreachable, match="stopped answering") as silent:
        progress.check_answers(FakeKafka(FakeAdmin(), timeout=0.05))
    assert "t-0 was not read to its end" in str(silent.value.why)
