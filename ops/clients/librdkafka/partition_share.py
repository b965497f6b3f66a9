"""Reads a share of some topics: what a Spark task does of a big reading, with the reader that the local engine uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from typing import Any

from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.clients.librdkafka.read import KEY_OF, TopicReading, consumer_of, record_of
from connectctl.ops.connect.source_keys import owners_of
from connectctl.ops.kafka import spill
from connectctl.ops.kafka.records import ConsumerRecord, Row
from connectctl.ops.kafka.sentinels import Offset
from connectctl.ops.kafka.spill import blocks_in_order


def read_share(
    kafka: Connection,
    ends: Mapping[str, Mapping[int, int]],
    wanted: Mapping[str, Collection[str] | None],
    strangers: Collection[str] = (),
    *,
    owner_of: Callable[[bytes | None], str | None],
    newest: bool,
) -> Iterator[tuple[str, bool, list[Row]]]:
    """The records of keys in each partition below its end, with read_committed: the topic, and some of its rows.

    ``newest``: of each key only the newest one; else older ones may be among them. ``ends`` are offsets that such a reader
    can get to. ``wanted`` are by topic the connectors whose keys are read, None for all keys. Of topics among ``strangers``
    one key that is not Connect's, with no ``owner_of`` it, is given, too, where there is one, with True.
    """
    if not ends:
        return
    offsets = {topic: {p: Offset(end) for p, end in by.items()} for topic, by in ends.items()}
    reading = Choosing(kafka, offsets, wanted, strangers, owner_of)
    with closing(consumer_of(kafka, "read_committed")) as consumer:
        if newest:
            reading.run(consumer, None)
        else:
            for _ in reading.rounds(consumer, None):
                yield from reading.too_much()
    for topic in ends:
        for rows in reading.blocks(topic):
            yield topic, False, rows
        for rows in blocks_in_order(reading.strangers.get(topic, ()), owners_of):
            yield topic, True, rows


class Choosing(TopicReading):
    """Keeps what may be wanted, and forgets the rest at once."""

    def __init__(
        self,
        kafka: Connection,
        ends: Mapping[str, Mapping[int, Offset]],
        wanted: Mapping[str, Collection[str] | None],
        strangers: Collection[str],
        owner_of: Callable[[bytes | None], str | None],
    ):
        super().__init__(kafka, ends, groups_of=owners_of)
        self._wanted = {
            topic: None if names is None else {name.encode(errors="surrogatepass") for name in names}
            for topic, names in wanted.items()
        }
        self._owner_of, self._unseen = owner_of, set(strangers)
        self.strangers: dict[str, tuple[ConsumerRecord]] = {}

    def too_much(self) -> Iterator[tuple[str, bool, list[Row]]]:
        """What is in memory, where that is much."""
        if self._held() > spill.MOST:
            for topic in self._latest:
                yield topic, False, self._given(topic, owners_of)

    def blocks(self, topic: str) -> Iterator[list[Row]]:
        """The rest of ``topic``, or all of it."""
        if topic in self._spilled:
            return self._spill(topic, owners_of).blocks()
        return iter([self._given(topic, owners_of)])

    def _chosen(self, topic: str, messages: list[Any]) -> list[Any]:
        keys, names = list(map(KEY_OF, messages)), self._wanted[topic]
        if topic in self._unseen:
            stranger = next((m for m, key in zip(messages, keys, strict=True) if self._owner_of(key) is None), None)
            if stranger is not None:
                self._unseen.discard(topic)
                self.strangers[topic] = (record_of(stranger),)
        if names is None:
            return messages
        # The beginning of a key tells; what only begins as a key is left out when keys are looked at.
        return [message for message, owner in zip(messages, owners_of(keys), strict=True) if owner in names]
