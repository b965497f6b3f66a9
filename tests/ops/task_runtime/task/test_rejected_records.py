"""A record that no broker takes is named by its place in the source, and batches are as small as
topics want them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.boundaries import Boundaries
from connectctl.ops.task_runtime.spi.connector import SourceRecord, SourceRecords, SourceTask
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.transaction_batch import (
    EndReason,
    ProducerRecord,
    RecordLists,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.at_least_once import ALONE, IdempotentProducer
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.batch_limits import BatchSizeLimits
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from connectctl.ops.task_runtime.task.rejected_records import RejectedRecord
from fakes.snapshots import Snapshots

A, B = {"file": "a"}, {"file": "b"}


class Given(SourceTask):
    """Gives what ``polls`` holds."""

    polls: Sequence[Any] = ()

    def start(self, configs: Any) -> None:
        self._left = list(self.polls)

    def poll(self) -> Any:
        return self._left.pop(0)

    @property
    def finished(self) -> bool:
        return not self._left


class Topics(Snapshots):
    """A store without offsets, and producers that refuse a record with the value ``bad`` until they
    are to name it.
    """

    def __init__(self, bad: bytes | None = None, *, names: bool = True):
        super().__init__()
        self.bad, self.names, self.naming, self.opened, self.sent = (
            bad,
            names,
            False,
            0,
            list[bytes](),
        )

    def value(self, key: bytes) -> bytes | None:
        return None

    def known(self) -> frozenset[bytes]:
        return frozenset()

    def refresh(self, patience: float) -> None:
        self.looked()

    def handle(self) -> Producer:
        self.opened += 1
        return Producer(self)

    def send_one_by_one(self) -> bool:
        if self.naming or not self.names:
            return False
        self.naming = True
        return True


class Producer:
    id, timeout_ms, overdue = "g-c-0", 60_000, False

    def __init__(self, topics: Topics):
        self._topics = topics
        self._open: list[bytes] = []

    def send(self, step: TransactionBatch) -> None:
        values = [r.value for r in step.records] + [
            m["value"] for bulk in step.record_batches for m in bulk.messages
        ]
        for number, value in enumerate(values):
            if value == self._topics.bad:
                raise (
                    ConnectctlError(f"{step.record_name(number)}")
                    if self._topics.naming
                    else RejectedRecord("One of them")
                )
        self._open += values

    def send_offsets(self, topic: str, offsets: Any) -> None:
        self._topics.wrote(*offsets)

    def commit(self, patience: float) -> None:
        self._topics.sent += self._open
        self._open = []

    def initialise(self, patience: float) -> None: ...
    def open_older_transaction(self, topics: Any) -> None: ...
    def begin(self) -> None: ...
    def abort(self, patience: float) -> None: ...
    def unusable_because(self) -> None: ...
    def discard(self) -> None: ...


def run(topics: Topics, *polls: Any, **more: Any) -> Any:
    """``polls`` by a polled task, with more of the kernel's fields."""
    text = "org.apache.kafka.connect.storage.StringConverter"
    made = type("Made", (Given,), {"polls": polls})
    supply = PolledSource(
        made,
        "c",
        {},
        lambda: Boundaries(Boundary.POLL, 60.0),
        converters({"value.converter": text}),
        "offsets",
    )
    ledger = SourceOffsetsLedger("offsets", topics)
    whole: dict[str, Any] = {"open_producer": topics.handle, "ledger": ledger} | more
    return AttemptLoop(
        **whole, sleep=lambda seconds: None, send_one_by_one=topics.send_one_by_one
    ).run(supply)


def record(value: str, n: int, partition: Any = A, topic: str = "t", **more: Any) -> SourceRecord:
    return SourceRecord(partition, {"n": n}, topic, value, **more)


@pytest.mark.parametrize(
    ("poll", "said"),
    [
        (
            [record("x", 1), record("bad", 2), record("y", 3)],
            'The record of {"file":"a"} at {"n":2}',
        ),
        (
            [record("x", 1, B, "u"), record("y", 2), record("z", 3, B, "u"), record("bad", 4)],
            '"a"} at {"n":4}',
        ),
        (
            [record("x", 1, timestamp=5), record("y", 2, topic="u"), record("bad", 7, B)],
            '"b"} at {"n":7}',
        ),
        (
            SourceRecords(A, {"n": 9}, "t", ["x", "bad", "y", "z"]),
            '"a"}, 2 before the one at {"n":9}',
        ),
        (SourceRecords(A, {"n": 9}, "t", ["x", "bad"]), 'The record of {"file":"a"} at {"n":9}'),
    ],
    ids=["one topic", "two topics", "with times", "at once", "last"],
)
def test_a_record_of_a_polled_task_that_is_refused_is_named_by_its_place_once_it_comes_again(
    poll: Any, said: str
) -> None:
    topics = Topics(b"bad")
    with pytest.raises(ConnectctlError) as caught:
        run(topics, [record("before", 0)], poll)
    assert said in str(caught.value)
    assert topics.opened == 2
    assert b"x" not in topics.sent
    with pytest.raises(RejectedRecord):
        run(Topics(b"bad", names=False), poll)


def test_a_record_that_does_not_come_again_is_no_reason_to_end() -> None:
    topics = Topics(b"bad")
    Flaky = [record("bad", 1)]
    topics.send_one_by_one = lambda: bool(Flaky) and not Flaky.clear()  # type: ignore[method-assign,func-returns-value]
    assert run(topics, Flaky, [record("x", 2)]).reason is EndReason.ENDED
    assert topics.sent == [b"x"]


@pytest.mark.parametrize(
    ("partition", "offset", "why"),
    [
        (None, {"n": 1}, "source_partition is not a JSON object"),
        (A, "1", "source_offset is not a JSON object"),
        (A, {"n": {1, 2}}, "source_offset: n is a set, which JSON does not have"),
        (
            A,
            {"n": [1, 2]},
            "source_offset may hold primitive values only, and n is not one: it is an array",
        ),
        (
            {"f": {"g": 1}},
            {"n": 1},
            "source_partition may hold primitive values only, and f is not one: it is an object",
        ),
        (A, {"n": 2**70}, "source_offset: n does not fit 64 bits"),
        (A, {"n": float("nan")}, "source_offset: n is nan, which JSON does not have"),
        (A, {1: 1}, "source_offset has a key that is not a string: 1"),
        (A, 7, "source_offset is not a JSON object"),
    ],
)
def test_an_offset_that_connect_would_not_write_fails_the_task_and_names_method_and_partition(
    partition: Any, offset: Any, why: str
) -> None:
    invalid = SourceRecord(partition, offset, "t", "y")
    polled = [record("x", 1), invalid]
    if partition is A:  # the next offset, which would be committed, is valid
        polled.append(SourceRecord(A, {"n": 2}, "t", "z"))
    with pytest.raises(
        ConnectctlError, match=r"\.poll of c returned an invalid source offset"
    ) as caught:
        run(Topics(), polled)
    assert f"{offset!r} for {partition!r}: " in str(caught.value)
    assert why in str(caught.value)


def test_batches_fit_the_smallest_topic_that_was_seen_and_a_record_the_largest() -> None:
    asked: list[Any] = []

    def largest(topics: Collection[str]) -> dict[str, int]:
        asked.append(sorted(topics))
        return {
            name: size
            for name, size in {"small": 2000, "large": 5_000_000}.items()
            if name in topics
        }

    limits = BatchSizeLimits(largest, {})
    assert limits.properties() == {"batch.size": "1000000"}
    assert limits.fits({"unseen"})
    assert not limits.fits({"small", "unseen"})
    assert limits.properties() == {"batch.size": "2000"}
    assert limits.fits({"small"})
    assert limits.fits({"large"})  # a record that needs it finds it out
    assert limits.properties() == {"batch.size": "2000", "message.max.bytes": "5000000"}
    assert asked == [["unseen"], ["small"], ["large"]]
    given = BatchSizeLimits(largest, {"batch.size": "500", "message.max.bytes": "3000"})
    assert given.fits({"small"})
    assert given.properties() == {"batch.size": "500"}


def test_a_topic_that_takes_less_than_those_before_gets_another_producer() -> None:
    limits, topics = (
        BatchSizeLimits(lambda names: dict.fromkeys({"u"} & set(names), 2000), {}),
        Topics(),
    )
    sizes: list[str] = []

    def opened() -> Any:
        sizes.append(limits.properties()["batch.size"])
        return topics.handle()

    ended = run(
        topics,
        [record("x", 1)],
        [record("y", 2, topic="u")],
        batch_size_fits=limits.fits,
        open_producer=opened,
    )
    assert (ended.reason, sizes, ended.stats.doubts) == (EndReason.ENDED, ["1000000", "2000"], [])


@pytest.mark.parametrize(
    "given",
    [
        {"records": [ProducerRecord("t", b"k", b"v"), ProducerRecord("t", b"key", b"x" * 2000)]},
        {"record_batches": [RecordLists("t", [b"v", b"x" * 2000], [b"k", b"key"])]},
    ],
    ids=["records", "lists"],
)
def test_what_the_client_itself_has_no_room_for_is_named_without_a_broker(given: Any) -> None:
    kafka = Kafka({"bootstrap.servers": "127.0.0.1:1"}, timeout=1)
    step = TransactionBatch(**given, describe_record=lambda number: f"Record {number}")
    small = {"message.max.bytes": "1000"}
    made = IdempotentProducer(kafka, "g-c-0", timeout_ms=1000, properties=small | ALONE)
    made.begin()
    with pytest.raises(
        ConnectctlError, match="Record 1 is too large: 2003 bytes of key and value"
    ) as caught:
        made.send(step)
    assert "Raise max.message.bytes of t, or reduce the size of the row" in str(caught.value)
    made.discard()
    plain = IdempotentProducer(kafka, "g-c-0", timeout_ms=1000, properties=small)
    plain.begin()
    with pytest.raises(RejectedRecord):
        plain.send(step)
    plain.discard()
