"""The committed offsets of a connector: read whole, or not at all."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from confluent_kafka import KafkaError
from connectctl.ops.clients.librdkafka import partition_offsets
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.kafka.topics import KnownEnds
from connectctl.ops.task_runtime.task import committed_offsets as committedmodule
from connectctl.ops.task_runtime.task.commit_history import CommitHistory
from connectctl.ops.task_runtime.task.committed_offsets import (
    CommittedOffsets,
    OffsetStore,
    current_ends,
)
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome
from fakes.admin import FakeAdmin, FakeKafka

KEYS = [f'["c",{{"f":{n}}}]'.encode() for n in range(6)]


class Topic:
    """An offsets topic with two partitions, and consumers of it."""

    def __init__(self, id_: str = "id-1") -> None:
        self.logs: list[list[tuple[bytes, bytes | None]]] = [[], []]
        self.id = id_

    def write(self, *keys: bytes, value: bytes | None = b'{"n":1}') -> None:
        for key in keys:
            self.logs[java_partition(key, 2)].append((key, value))

    def end(self, asked: int, place: Any) -> int:
        return len(self.logs[place.partition])

    def kafka(self, *, timeout: float = 0.05, end: Any = None) -> FakeKafka:
        return FakeKafka(
            FakeAdmin(offsets=end or self.end, ids=lambda asked: self.id), timeout=timeout
        )


class Message:
    def __init__(
        self,
        partition: int,
        offset: int,
        key: bytes | None,
        value: bytes | None,
        *,
        end: bool = False,
    ):
        self._all = partition, offset, key, value
        self._error = KafkaError(KafkaError._PARTITION_EOF) if end else None

    def error(self) -> Any:
        return self._error

    def partition(self) -> int:
        return self._all[0]

    def offset(self) -> int:
        return self._all[1]

    def key(self) -> bytes | None:
        return self._all[2]

    def value(self) -> bytes | None:
        return self._all[3]


class Consumer:
    def __init__(self, topic: Topic):
        self._topic, self._messages = topic, deque[Message]()

    def assign(self, places: Any) -> None:
        for place in places:
            log = self._topic.logs[place.partition]
            for offset, record in list(enumerate(log))[place.offset :]:
                self._messages.append(Message(place.partition, offset, *record))
            self._messages.append(Message(place.partition, len(log), None, None, end=True))

    def consume(self, most: int, wait: float) -> list[Message]:
        found, self._messages = list(self._messages), deque()
        return found

    def pause(self, places: Any) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    made = Topic()
    monkeypatch.setattr(committedmodule, "consumer_of", lambda kafka, isolation: Consumer(made))
    monkeypatch.setattr(partition_offsets, "PAUSE", 0.0)
    made.write(*KEYS)
    assert all(made.logs)
    return made


def test_all_of_it_is_read_and_each_key_has_a_place(topic: Topic) -> None:
    store = CommittedOffsets(topic.kafka(), "t", "c")
    store.refresh(5)
    assert store.known() == set(KEYS)
    assert {store.position(key) for key in KEYS} == {
        (p, n) for p, log in enumerate(topic.logs) for n in range(len(log))
    }
    assert store.reached == KnownEnds("id-1", tuple(map(len, topic.logs)))


def test_an_end_that_is_none_fails_and_gives_nothing(topic: Topic) -> None:
    store = CommittedOffsets(topic.kafka(end=lambda asked, place: -1001), "t", "c")
    with pytest.raises(TimedOut, match="The end of t-0 could not be determined"):
        store.refresh(5)


def test_what_was_read_does_not_vanish(topic: Topic) -> None:
    kafka = topic.kafka()
    store = CommittedOffsets(kafka, "t", "c")
    store.refresh(5)
    kafka.fake.offsets = lambda asked, place: 0
    with pytest.raises(TimedOut, match="it ends at 0 and was read up to"):
        store.refresh(5)
    assert store.known() == set(KEYS)


def test_a_topic_that_was_made_anew_is_named(topic: Topic) -> None:
    store = CommittedOffsets(topic.kafka(), "t", "c")
    store.refresh(5)
    topic.id = "id-2"
    with pytest.raises(ConnectctlError, match="The topic t was deleted and created again"):
        store.refresh(5)


def test_another_attempt_is_told_how_far_the_topic_reached(topic: Topic) -> None:
    reached = current_ends(topic.kafka(), "t")
    short: Any = lambda asked, place: max(0, len(topic.logs[place.partition]) - 1)  # noqa: E731
    with pytest.raises(TimedOut, match="was read up to"):
        CommittedOffsets(topic.kafka(end=short), "t", "c", reached).refresh(5)


def test_a_reading_that_believes_in_any_end_is_held_against_what_is_known(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second line: whatever the ends come from."""
    reached = current_ends(topic.kafka(), "t")
    believed: Any = lambda kafka, topics, seen: {"t": {0: -1001, 1: len(topic.logs[1])}}  # noqa: E731
    monkeypatch.setattr(committedmodule, "end_offsets", believed)
    mutant = CommittedOffsets(topic.kafka(), "t", "c")
    mutant._kafka.partitions("t")
    mutant.refresh(5)
    assert mutant.known() != set(KEYS), "without that it begins somewhere at the beginning"
    with pytest.raises(TimedOut, match="t-0 was read incompletely: its end offset was"):
        CommittedOffsets(mutant._kafka, "t", "c", reached).refresh(5)


# -------------------------------------------------------------------------------------- own commits


def read(topic: Topic) -> OffsetStore:
    store = OffsetStore(CommittedOffsets(topic.kafka(), "t", "c"))
    store.refresh(5)
    return store


def test_what_was_committed_must_be_found_behind_what_was_read(topic: Topic) -> None:
    store, history = read(topic), CommitHistory()
    history.committed({KEYS[0]: b'{"n":2}'}, store)
    store.refresh(5)
    with pytest.raises(
        UnknownOutcome, match=r'was read incompletely: \["c",\{"f":0\}\].*, an earlier value'
    ):
        history.check(store)
    topic.write(KEYS[0])
    store.refresh(5)
    history.check(store)
    history.check(store)


def test_a_key_that_is_new_must_be_found_at_all(topic: Topic) -> None:
    store, history, new = read(topic), CommitHistory(), b'["c",{"f":"new"}]'
    history.committed({new: b'{"n":2}'}, store)
    with pytest.raises(UnknownOutcome, match="was found nowhere"):
        history.check(store)
    topic.write(new)
    store.refresh(5)
    history.check(store)


def test_what_another_one_committed_since_is_as_good(topic: Topic) -> None:
    store, history = read(topic), CommitHistory()
    history.committed({KEYS[0]: b'{"n":2}'}, store)
    topic.write(KEYS[0], KEYS[0], value=b'{"n":3}')
    store.refresh(5)
    history.check(store)


def test_a_tombstone_proves_nothing_because_compaction_removes_it(topic: Topic) -> None:
    store, history = read(topic), CommitHistory()
    history.committed({KEYS[0]: b'{"n":2}'}, store)
    history.committed({KEYS[0]: None}, store)
    history.check(store)


def test_what_comes_after_is_told_of_the_commits_too(topic: Topic) -> None:
    store, history = read(topic), CommitHistory()
    before = store.primary.reached
    history.committed({KEYS[0]: b"{}", KEYS[1]: b"{}"}, store)
    beyond = history.beyond(before)
    assert sum(beyond.ends) == sum(before.ends) + 2
    assert beyond.ends[java_partition(KEYS[0], 2)] > before.ends[java_partition(KEYS[0], 2)]
    assert history.beyond(KnownEnds()) == KnownEnds()
