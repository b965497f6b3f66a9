"""The audit's jobs on Spark give what the same functions give in this process."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from connectctl import schema as of
from connectctl.ops.audit import field_extractor, sequences, transactions
from connectctl.ops.audit.field_extractor import by_spec, sequence_spec
from connectctl.ops.audit.scan import PartitionRange, TransactionPart
from connectctl.ops.audit.sequences import Committed, SequenceRange
from connectctl.ops.audit.violations import Violation
from connectctl.ops.jobs import audit
from connectctl.ops.jobs.audit_sequences import Runs, Wanted
from connectctl.ops.kafka.batch_headers import ABORT, COMMIT
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.converters import converters
from fakes.auditrows import Message, as_rows, rows, values
from fakes.schemaregistry import schema_registry
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# PySpark leaves the socket open over which a frame comes in parts.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"
)


def found(
    messages: list[Message],
    sequence: str,
    by: str = "key",
    size: int = 3,
    configs: dict[str, str] | None = None,
) -> list[tuple[Any, ...]]:
    """Source, first and last number of every run, and at the end the counts; messages come in
    batches of ``size``.
    """
    runs = Runs(Wanted(sequence_spec(sequence), by_spec(by), converters=configs or {}))
    told: list[SequenceRange] = []
    for at in range(0, len(messages), size):
        for partition in (0, 1):
            some = [
                message for message in messages[at : at + size] if message.partition() == partition
            ]
            told += runs.take(TopicPartition("t", partition), some) if some else ()
    return sorted(((r.source, r.first, r.last) for r in [*told, *runs.rest()]), key=str)


def test_numbers_that_follow_each_other_are_one_run_over_batches() -> None:
    messages = values(*({"seq": n} for n in range(10)))
    assert found(messages, "$.seq") == [("k", 0, 9), (None, 10, 0)]
    nested = values(*({"a": {"b": {"seq": n, "x": [1]}}, "z": None} for n in range(10)))
    assert found(nested, "$.a.b.seq") == [("k", 0, 9), (None, 10, 0)]


@pytest.mark.parametrize(
    "odd",
    [
        {"seq": "3"},
        {"seq": 3.0},
        {"schema": None, "payload": {"seq": 3}},
        b'{"seq":3,"seq2":{}}\n',
        b'{\n"seq":\n3}',
        {"x": 1, "seq": 3, "deep": {"er": [1, {"a": 2}]}},
    ],
)
def test_a_value_that_is_spelled_otherwise_counts_all_the_same(odd: Any) -> None:
    assert found(values({"seq": 1}, {"seq": 2}, odd, {"seq": 4}), "$.seq", size=4) == [
        ("k", 1, 4),
        (None, 4, 0),
    ]


@pytest.mark.parametrize(
    "nothing",
    [None, b"", b"no json", {"sequence": 3}, {"seq": None}, {"seq": "x"}, [1], {"seq": True}],
)
def test_a_value_that_tells_no_number_is_counted_as_such(nothing: Any) -> None:
    assert found(values({"seq": 1}, {"seq": 2}, nothing, {"seq": 3}), "$.seq", size=4) == [
        ("k", 1, 3),
        (None, 4, 1),
    ]


def test_source_partitions_come_from_wherever_they_are_asked() -> None:
    some = values(*({"task": n % 2, "name": f"n{n % 2}", "seq": n // 2} for n in range(8)))
    expected = [("0", 0, 3), ("1", 0, 3), (None, 8, 0)]
    assert found(some, "$.seq", "$.task") == expected
    assert found(some, "$.seq", "$.name") == [("n0", 0, 3), ("n1", 0, 3), (None, 8, 0)]
    keyed = [Message(n, m.value(), json.dumps({"t": n % 2}).encode()) for n, m in enumerate(some)]
    assert found(keyed, "$.seq", "key:$.t") == expected
    headed = [
        Message(n, b"x", None, 0, [("s", b"9"), ("s", str(n).encode()), ("t", b"a")])
        for n in range(4)
    ]
    assert found(headed, "header:s", "header:t") == [("a", 0, 3), (None, 4, 0)]
    told = found(
        [Message(n, b"line %d of b" % n) for n in range(4)], r"text:line (\d+)", "text:of (.)"
    )
    assert told == [("b", 0, 3), (None, 4, 0)]
    assert found([Message(n, b"%d" % n, None, n % 2) for n in range(4)], "$", "partition") == [
        ("0", 0, 0),
        ("0", 2, 2),
        ("1", 1, 1),
        ("1", 3, 3),
        (None, 2, 0),
        (None, 2, 0),
    ]


def test_labels_of_mixed_types_are_the_same_as_one_by_one() -> None:
    some = values(
        *({"by": by, "seq": n} for n, by in enumerate([1, "1", None, {"a": 1}, 1.5, True, [2]]))
    )
    labels = [
        field_extractor.text_of(field_extractor.found_in(m.value(), ("by",))) or "" for m in some
    ]
    told = found(some, "$.seq", "$.by", size=7)
    assert {source for source, _, _ in told if source is not None} == set(labels)


def test_lines_are_measured_as_the_file_has_them() -> None:
    lines = [b"abc", "häß".encode(), "𝄞".encode(), b'"quoted"', b""]
    runs = Runs(Wanted(None, measure=True))
    list(runs.take(TopicPartition("t", 0), [Message(n, line) for n, line in enumerate(lines)]))
    (counts,) = runs.rest()
    assert counts.last_offset == 4 + 4 + 3 + 7 + 1


spans = st.lists(
    st.builds(
        lambda p, start, size: PartitionRange(
            "t", p, start, start + size, start + size, start + size
        ),
        st.integers(0, 5),
        st.integers(0, 9),
        st.integers(1, 9999),
    ),
    max_size=6,
    unique_by=lambda span: span.partition,
)


@given(spans, st.integers(1, 8))
def test_pieces_cover_every_offset_once_and_no_task_has_two_of_a_partition(
    some: list[PartitionRange], tasks: int
) -> None:
    shares = audit.split(audit.pieces(some, tasks), tasks)
    assert len(shares) <= tasks
    covered = sorted(
        (s.partition, n) for share in shares for s in share for n in (s.start, s.until)
    )
    for span in some:
        edges = [n for p, n in covered if p == span.partition]
        assert (min(edges), max(edges)) == (span.start, span.until)
        assert (
            sum(s.size for share in shares for s in share if s.partition == span.partition)
            == span.size
        )
    for share in shares:
        assert len({s.partition for s in share}) == len(share)


def test_runs_are_swept_on_spark_as_here(spark: SparkSession) -> None:
    runs = [
        SequenceRange(
            "t", f"s{n % 5}", n * 3 % 40, "t", n % 2, n, n * 3 % 40 + n % 4, n + 3, 1000 + n
        )
        for n in range(200)
    ] + [SequenceRange("", None, 100, "t", p, -1, 3, 0, -1) for p in range(2)]
    committed = {"s1": Committed(3, 3), "s2": Committed(90, 90)}
    frame = spark.createDataFrame([tuple(run) for run in runs], audit.RUNS)
    here = as_rows(sequences.SequenceCheck(0, committed).sweep(sorted(runs, key=sequences.order)))
    assert rows(audit.sweep_frame(frame, 1, 0, committed)) == here
    shared = rows(audit.sweep_frame(frame.repartition(3), 2, 0, committed))
    assert [row for row in shared if row[0] != "read"] == [row for row in here if row[0] != "read"]


def test_transactions_are_joined_on_spark_as_here(spark: SparkSession) -> None:
    parts = [
        TransactionPart(
            producer_id=n % 3,
            epoch=n // 6,
            marker_ts=1000 + 10 * n if n % 11 else -1,
            topic="t",
            partition=n % 2,
            outcome=(2 if n % 11 == 0 else ABORT if n % 7 == 0 else COMMIT),
            marker_epoch=n // 6 + 1,
            first=n,
            last=n,
            marker=n + 1,
            records=n,
            readable=n,
            first_ts=1000,
            last_ts=1000,
            append_time=False,
        )
        for n in range(60)
    ]
    here = list(audit.joined(sorted(parts, key=transactions.order)))
    blank = audit.result_of(None)
    frame = spark.createDataFrame(
        [(*blank, *part) for part in parts], f"{audit.RESULT}, {audit._prefixed(audit.SEGMENTS)}"
    )
    there = audit.join_frame(frame.repartition(4), 2).collect()
    assert sorted(str(Violation(*row[3:])) for row in there if row.what == "violation") == sorted(
        str(each) for each in here if isinstance(each, Violation)
    )
    whole = transactions.TransactionTotals()
    for row in there:
        if row.what == "transactions":
            whole.merge(json.loads(row.reported))
    (totals,) = [each for each in here if isinstance(each, transactions.TransactionTotals)]
    assert (whole.transactions, whole.records, whole.torn) == (
        totals.transactions,
        totals.records,
        totals.torn,
    )
    assert audit.summary_frame(frame).count() == 0


@pytest.mark.parametrize("kind", ["AvroConverter", "JsonSchemaConverter", "ProtobufConverter"])
def test_numbers_in_values_of_a_registry_are_read_by_their_converter(kind: str) -> None:
    order = of.struct("shop.Order", seq=of.INT64, price=of.decimal(0), by=of.struct(s=of.STRING))
    with schema_registry() as registry:
        configs = {"value.converter": kind, "value.converter.schema.registry.url": registry.url}
        write = converters(configs).of_value
        made = [
            write("t", order, {"seq": n, "price": Decimal(n), "by": {"s": "ab"[n % 2]}})
            for n in range(6)
        ]
        messages = [Message(n, each, b"k") for n, each in enumerate([*made, b"other", None])]
        for sequence in ("$.seq", "$.price"):
            assert found(messages, sequence, "key", configs=configs) == [("k", 0, 5), (None, 8, 2)]
        alone = [("ab"[n % 2], n, n) for n in range(6)]
        by = found(messages, "$.seq", "$.by.s", configs=configs)
        assert by == sorted([*alone, (None, 8, 2)], key=str)
        assert found(messages, "$.seq") == [(None, 8, 8)]
