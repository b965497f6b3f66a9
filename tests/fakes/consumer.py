"""librdkafka's consumer and its messages, for readings without a broker."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError


class Message:
    """A record at ``offset``, or the end of the partition there."""

    def __init__(self, offset: int, *, end: bool = False):
        self._offset, self._end = offset, end

    def error(self) -> Any:
        return KafkaError(KafkaError._PARTITION_EOF) if self._end else None

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return b"%d" % self._offset

    def value(self) -> bytes:
        return b"v"

    def timestamp(self) -> tuple[int, int]:
        return 1, 1


class Consumer:
    """Returns one batch after the other, and then nothing."""

    def __init__(self, *batches: list[Any]):
        self._batches = list(batches)
        self.assigned: list[Any] = []
        self.paused: list[Any] = []

    def assign(self, places: Any) -> None:
        self.assigned = [(place.partition, place.offset) for place in places]

    def pause(self, places: Any) -> None:
        self.paused += [place.partition for place in places]

    def consume(self, most: int, wait: float) -> list[Message]:
        return self._batches.pop(0) if self._batches else []


class Event(Message):
    """The end of what a consumer may read of a partition."""

    def __init__(self, offset: int, partition: int):
        super().__init__(offset, end=True)
        self._partition = partition

    def partition(self) -> int:
        return self._partition


class Kept(Message):
    """A record of a partition, with a key of few, or none."""

    offsets_read = 0

    def __init__(self, offset: int, partition: int, key: bytes | None):
        super().__init__(offset)
        self._partition, self._key = partition, key

    def partition(self) -> int:
        return self._partition

    def key(self) -> Any:
        return self._key

    def offset(self) -> int:
        Kept.offsets_read += 1
        return self._offset
