"""What goes to the global offsets topic arrives however long it takes, holds up nobody, and is
never more than is new.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from connectctl.ops.core.errors import TimedOut
from connectctl.ops.task_runtime.task import global_offsets_writer
from connectctl.ops.task_runtime.task.global_offsets_writer import GlobalOffsetsWriter
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from fakes.snapshots import Snapshots
from live.real import eventually

KEY, OTHER = b'["c",{"file":"a"}]', b'["c",{"file":"b"}]'


class Broker:
    """librdkafka's producer and a topic behind it, that refuses records while ``refuses`` says why,
    or says nothing.
    """

    def __init__(self) -> None:
        self.topic: list[tuple[bytes, bytes | None]] = []
        self.refuses: str | None = None
        self.silent = False
        self.room = 100_000
        self.purged = 0
        self.asked = 0
        self._queue: list[tuple[bytes, bytes | None, Callable[[Any, Any], None]]] = []
        self._lock = threading.Lock()

    def properties(self, **more: Any) -> dict[str, Any]:
        return more

    def ask(self, doing: str, work: Callable[[], Any]) -> Any:
        return self

    def produce(
        self, topic: str, value: bytes | None, key: bytes, on_delivery: Callable[[Any, Any], None]
    ) -> None:
        with self._lock:
            if len(self._queue) >= self.room:
                raise BufferError
            self.asked += 1
            self._queue.append((key, value, on_delivery))

    def poll(self, seconds: float) -> None:
        time.sleep(0.001)
        if self.silent:
            return
        with self._lock:
            queue, self._queue = self._queue, []
        for key, value, told in queue:
            if self.refuses is None:
                self.topic.append((key, value))
            told(self._error(), None)

    def _error(self) -> Any:
        why = self.refuses
        return None if why is None else type("Error", (), {"str": lambda self: why})()

    def purge(self) -> None:
        self.purged += 1

    def flush(self, seconds: float) -> int:
        return 0

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def newest(self) -> dict[bytes, bytes | None]:
        return dict(self.topic)


class Stored(Snapshots):
    """An offset store that says what it is given."""

    def __init__(self, values: dict[bytes, bytes]):
        super().__init__()
        self.values = values

    def refresh(self, patience: float) -> None: ...

    def value(self, key: bytes) -> bytes | None:
        return self.values.get(key)

    def known(self) -> frozenset[bytes]:
        return frozenset(self.values)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_offsets_writer, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(global_offsets_writer, "LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(global_offsets_writer, "CLOSING", 0.3)


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def writer(broker: Broker) -> Iterator[GlobalOffsetsWriter]:
    made = opened(broker)
    yield made
    made.close()


@pytest.fixture
def hasty(broker: Broker) -> Iterator[GlobalOffsetsWriter]:
    """One whose patience is soon over, for what is never answered."""
    made = opened(broker, patience=0.3)
    yield made
    made.close()


def opened(broker: Broker, *unwritten: bytes, patience: float = 60) -> GlobalOffsetsWriter:
    kafka: Any = broker
    return GlobalOffsetsWriter(kafka, "global", patience, unwritten)


def test_what_is_refused_is_sent_again_until_it_is_taken_and_counted(
    broker: Broker, writer: GlobalOffsetsWriter
) -> None:
    broker.refuses = "Broker: Topic authorization failed"
    writer.write_values({KEY: b"1"})
    eventually(lambda: writer.failures > 5)
    assert (writer.unwritten, writer.problem) == (frozenset({KEY}), broker.refuses)
    broker.refuses = None
    eventually(lambda: not writer.unwritten)
    assert (broker.topic, writer.problem) == ([(KEY, b"1")], None)


def test_of_each_source_partition_the_newest_value_is_kept_and_no_more(
    broker: Broker, writer: GlobalOffsetsWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(global_offsets_writer, "MOST_IN_FLIGHT", 10)
    broker.silent = True
    for n in range(1000):
        writer.write_values({KEY: b"%d" % n, OTHER: b"%d" % -n})
    assert broker.waiting == 10  # the task has waited for nothing
    assert writer.unwritten == {KEY, OTHER}
    broker.silent = False
    eventually(lambda: not writer.unwritten)
    assert broker.newest == {KEY: b"999", OTHER: b"-999"}
    assert broker.asked == 12


def test_an_older_value_that_was_refused_is_not_sent_behind_a_newer_one(
    broker: Broker, writer: GlobalOffsetsWriter
) -> None:
    broker.silent, broker.refuses = True, "no"
    writer.write_values({KEY: b"1"})
    eventually(lambda: broker.waiting == 1)
    writer.write_values({KEY: b"2"})
    broker.silent = False
    eventually(lambda: writer.failures >= 3)
    broker.refuses = None
    eventually(lambda: not writer.unwritten)
    assert broker.topic == [(KEY, b"2")]


def test_what_finds_no_room_in_the_producer_waits_for_some(
    broker: Broker, writer: GlobalOffsetsWriter
) -> None:
    broker.room = 1
    writer.write_values({KEY: b"1", OTHER: b"2"})
    eventually(lambda: not writer.unwritten)
    assert (broker.newest, writer.failures) == ({KEY: b"1", OTHER: b"2"}, 0)


def test_a_tombstone_arrives_before_it_returns_and_overtakes_no_older_value(
    broker: Broker, writer: GlobalOffsetsWriter
) -> None:
    writer.write_values({KEY: b"1"})
    writer.write_tombstones({KEY: None, OTHER: b"2"})
    assert broker.topic == [(KEY, b"1"), (KEY, None)]
    writer.write_values({KEY: None, OTHER: b"2"})
    eventually(lambda: not writer.unwritten)
    assert broker.newest == {KEY: None, OTHER: b"2"}


def test_a_tombstone_that_is_refused_fails_the_commit_at_once_and_is_not_sent_again(
    broker: Broker, writer: GlobalOffsetsWriter
) -> None:
    broker.refuses = "Broker: Topic authorization failed"
    with pytest.raises(
        TimedOut, match="Could not write a tombstone to global: Broker: Topic authorization failed"
    ):
        writer.write_tombstones({KEY: None})
    broker.refuses = None
    writer.write_values({OTHER: b"2"})
    eventually(lambda: broker.newest == {OTHER: b"2"})


def test_a_tombstone_that_is_refused_after_its_commit_failed_is_not_sent_again(
    broker: Broker, hasty: GlobalOffsetsWriter
) -> None:
    broker.silent = True
    with pytest.raises(TimedOut, match="timed out"):
        hasty.write_tombstones({KEY: None})
    broker.silent, broker.refuses = False, "no"
    eventually(lambda: hasty.failures == 1)
    broker.refuses = None
    hasty.write_values({OTHER: b"2"})
    eventually(lambda: broker.newest == {OTHER: b"2"})
    assert broker.asked == 2


def test_a_tombstone_that_nobody_answers_fails_the_commit_after_its_patience(
    broker: Broker, hasty: GlobalOffsetsWriter
) -> None:
    broker.silent = True
    with pytest.raises(TimedOut, match="timed out"):
        hasty.write_tombstones({KEY: None})


def test_a_tombstone_takes_the_place_of_a_value_that_was_not_written(
    broker: Broker, writer: GlobalOffsetsWriter
) -> None:
    broker.refuses = "no"
    writer.write_values({KEY: b"1"})
    eventually(lambda: writer.failures > 1)
    broker.refuses = None
    writer.write_tombstones({KEY: None})
    writer.write_values({KEY: None})
    eventually(lambda: not writer.unwritten)
    assert broker.newest == {KEY: None}


@pytest.mark.parametrize("committed", [True, False])
def test_what_a_doubtful_transaction_came_to_is_read_and_written(
    broker: Broker, committed: bool
) -> None:
    writer, store = opened(broker), Stored({KEY: b"2" if committed else b"1"})
    ledger = SourceOffsetsLedger("offsets", store, writer)
    ledger.before({KEY: b"2"})  # and nobody knows whether it was committed
    assert writer.unwritten == {KEY}
    ledger.refresh(1)
    eventually(lambda: not writer.unwritten)
    assert broker.newest == store.values
    writer.close()


def test_what_a_lease_cannot_write_is_told_at_once_and_the_next_one_writes_what_is_newest_by_then(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(global_offsets_writer, "CLOSING", 600)
    first = opened(broker, patience=600)
    broker.refuses = "Broker: Topic authorization failed"
    first.write_values({KEY: b"1", OTHER: b"1"})
    eventually(lambda: first.failures > 1)
    began = time.monotonic()
    first.close()
    assert time.monotonic() - began < 300  # of its patience
    assert (first.unwritten, first.problem, broker.purged) == (
        frozenset({KEY, OTHER}),
        broker.refuses,
        1,
    )
    broker.refuses = None
    second = opened(broker, *first.unwritten)
    SourceOffsetsLedger("offsets", Stored({KEY: b"7", OTHER: b"8"}), second).refresh(1)
    second.close()
    assert not second.unwritten
    assert broker.newest == {KEY: b"7", OTHER: b"8"}


def test_the_end_of_a_lease_waits_a_moment_for_a_topic_that_does_not_answer(broker: Broker) -> None:
    writer = opened(broker, patience=0.3)
    broker.silent = True
    writer.write_values({KEY: b"1"})
    began = time.monotonic()
    writer.close()
    assert time.monotonic() - began > 0.2
    assert (writer.unwritten, writer.failures) == (frozenset({KEY}), 0)


def test_a_lease_ends_with_everything_written_where_the_topic_answers(broker: Broker) -> None:
    writer = opened(broker)
    writer.write_values({KEY: b"1"})
    writer.close()
    assert (broker.newest, writer.unwritten) == ({KEY: b"1"}, frozenset())
