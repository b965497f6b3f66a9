"""Single records until they become batches: what belongs together, in which order, and how each is
named.
"""

from __future__ import annotations

from connectctl.ops.clients.kafka_protocol.refusals import Named
from connectctl.ops.clients.kafka_protocol.transactional_writer import Block
from connectctl.ops.kafka.record_batch_encoder import RecordColumns
from connectctl.ops.kafka.record_columns import Rows
from connectctl.ops.task_runtime.spi.transaction_batch import (
    ColumnBatch,
    ProducerRecord,
    RecordLists,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.record_buffer import RecordBuffer


def poll(first: int, count: int) -> TransactionBatch:
    """Records with and without a partition, in turn, and messages for both."""
    records = [
        ProducerRecord("t", b"k", b"%d" % n, n % 2 or None) for n in range(first, first + count)
    ]
    lists = RecordLists(
        "t", [b"m%d" % n for n in range(count)], partitions=[n % 2 or None for n in range(count)]
    )
    columns = ColumnBatch("other", RecordColumns([b"c"]))
    return TransactionBatch(
        records, [columns, lists], describe_record=lambda n: f"record {n} from {first}"
    )


def parts(block: Block) -> tuple[str, Rows, Named | None]:
    assert isinstance(block.records, Rows)
    return block.topic, block.records, block.named


def test_columns_come_after_the_records_of_their_topic_that_were_polled_before_and_not_after_others() -> (
    None
):
    buffer = RecordBuffer(1000, 10_000)
    buffer.add(
        TransactionBatch([ProducerRecord("t", None, b"1"), ProducerRecord("u", None, b"other")])
    )
    columns = [RecordColumns([b"3"]), RecordColumns([b"4"])]
    found = buffer.add(
        TransactionBatch(
            record_batches=[
                RecordLists("t", [b"2"]),
                *(ColumnBatch("t", each) for each in columns),
                RecordLists("t", [b"5"]),
            ]
        )
    )
    assert [block.topic for block in found] == ["t", "t", "t"]
    assert parts(found[0])[1].values == [b"1", b"2"]
    assert [block.records for block in found[1:]] == columns
    assert {topic: rows.values for topic, rows, _ in map(parts, buffer.take())} == {
        "t": [b"5"],
        "u": [b"other"],
    }


def test_what_several_polls_gave_is_together_in_its_order_and_each_is_named_by_its_own_poll() -> (
    None
):
    buffer = RecordBuffer(1000, 10_000)
    buffer.add(poll(0, 3))
    buffer.add(poll(3, 2))
    ((topic, rows, named),) = map(parts, buffer.take())
    assert named is not None
    assert (topic, rows.values) == (
        "t",
        [b"0", b"1", b"2", b"m0", b"m1", b"m2", b"3", b"4", b"m0", b"m1"],
    )
    assert rows.partitions == [None, 1, None, None, 1, None, 1, None, None, 1]
    # A row of columns has the number behind the records: 3 in the first poll, 2 in the second.
    first, second = (
        [f"record {n} from 0" for n in (0, 1, 2, 4, 5, 6)],
        [f"record {n} from 3" for n in (0, 1, 3, 4)],
    )
    assert [named(n) for n in range(len(rows))] == [*first, *second]
    assert list(buffer.take()) == []


def test_records_that_nobody_can_name_have_no_names() -> None:
    buffer = RecordBuffer(1000, 10_000)
    buffer.add(poll(0, 2))
    buffer.add(TransactionBatch([ProducerRecord("t", None, b"x"), ProducerRecord("u", None, b"x")]))
    buffer.add(
        TransactionBatch([ProducerRecord("v", None, b"x")], describe_record=lambda n: f"record {n}")
    )
    assert {topic: named is None for topic, _, named in map(parts, buffer.take())} == {
        "t": True,
        "u": True,
        "v": False,
    }


def test_only_what_is_large_enough_is_taken_where_not_everything_is() -> None:
    buffer = RecordBuffer(100, 1000)
    buffer.add(
        TransactionBatch(
            [ProducerRecord("t", b"k" * 50, b"v" * 49), ProducerRecord("u", None, None)]
        )
    )
    assert list(buffer.take(everything=False)) == []
    buffer.add(TransactionBatch([ProducerRecord("t", None, b"v")]))
    assert [block.topic for block in buffer.take(everything=False)] == ["t"]
    assert [block.topic for block in buffer.take()] == ["u"]


def test_a_topic_waits_for_enough_of_each_partition_that_its_records_name() -> None:
    buffer = RecordBuffer(100, 1000)
    buffer.add(TransactionBatch([ProducerRecord("t", None, b"v" * 60, n) for n in range(3)]))
    assert list(buffer.take(everything=False)) == []
    buffer.add(TransactionBatch([ProducerRecord("t", None, b"v" * 120, 0)]))
    assert [block.topic for block in buffer.take(everything=False)] == ["t"]


def test_everything_is_taken_where_many_topics_have_too_much_together() -> None:
    buffer = RecordBuffer(100, 120)
    buffer.add(TransactionBatch([ProducerRecord(topic, None, b"v" * 60) for topic in ("t", "u")]))
    assert [block.topic for block in buffer.take(everything=False)] == ["t", "u"]


def test_columns_without_keys_headers_and_times_have_none() -> None:
    buffer = RecordBuffer(100, 1000)
    buffer.add(TransactionBatch([ProducerRecord("t", None, b"v"), ProducerRecord("t", None, None)]))
    ((_, rows, _),) = map(parts, buffer.take())
    columns = rows.columns()
    assert (columns.keys, columns.timestamps, columns.headers) == (None, None, None)
    assert columns.values.to_pylist() == [b"v", None]
