"""The beginnings and the ends of partitions, requested from their leaders until each has responded.

A missing response is not an offset. librdkafka completes a request to a leader that has just died
without an error, with the offset -1001; metadata may have a topic without its partitions, or with
fewer than it has; an end may be below an earlier one, until a new leader has caught up. Such
requests are repeated until the time is over, and then it is an error: a partition that counts as
read although it was not would let a task begin at the beginning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection
from confluent_kafka.admin import OffsetSpec
from connectctl.ops.clients.librdkafka.connection import MOVING, Connection
from connectctl.ops.clients.librdkafka.group_positions import positions
from connectctl.ops.clients.librdkafka.patience import Patience
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized, TimedOut
from connectctl.ops.kafka.sentinels import Offset, offset_of
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import KnownEnds, Layout, OffsetRange
from connectctl.ops.kafka.visibility import describe_topic

PAUSE = 0.1
"""Seconds before what was not answered is asked about again."""
FIRST_ATTEMPT = 2.0
"""Seconds for the first answer."""
NEW_TOPIC = 10.0
"""Seconds for which a topic may be unknown to brokers after the controller has created it."""
_UNKNOWN = {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_ID"}
_AGAIN = (
    _UNKNOWN
    | MOVING
    | {"OFFSET_NOT_AVAILABLE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "REQUEST_TIMED_OUT"}
    | {"_NOENT", "_TRANSPORT", "_TIMED_OUT", "_TIMED_OUT_QUEUE"}
)
"""Errors that a moment mends: a leader moves, a broker has just gone."""
_NOBODY = {"_TRANSPORT", "_TIMED_OUT"}


class _Patience(Patience):
    """The time for the offsets of one question."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds, FIRST_ATTEMPT)
        self.failure: ConnectctlError | None = None
        """The error of the last attempt, if no broker responded to it."""


def end_offsets(
    kafka: Connection, topics: Sequence[str], seen: Mapping[str, KnownEnds] | None = None
) -> dict[str, dict[int, Offset]]:
    """Return the high watermark of every partition, by topic; none of them is below the beginning
    of the partition or ``seen``.

    Raises ``BadInput`` for a topic that does not exist, ``TimedOut`` with the partition that did
    not respond, and ``ConnectctlError`` if a topic was created again since it was ``seen``.
    """
    patience = _Patience(kafka.timeout)
    layouts = layouts_of(kafka, topics, patience)
    first = _every(kafka, layouts, OffsetSpec.earliest(), patience)
    return _ends(kafka, layouts, first, seen or {}, patience)


def read_extents(kafka: Connection, topics: Sequence[str]) -> dict[str, dict[int, OffsetRange]]:
    """Return the beginning of every partition, the end of its committed records, and its end."""
    patience = _Patience(kafka.timeout)
    layouts = layouts_of(kafka, topics, patience)
    first = _every(kafka, layouts, OffsetSpec.earliest(), patience)
    stable = _every(kafka, layouts, OffsetSpec.latest(), patience, IsolationLevel.READ_COMMITTED)
    # The end comes last: what is committed meanwhile must not look as if it were beyond the end.
    ends = _ends(
        kafka,
        layouts,
        {partition: max(first[partition], stable[partition]) for partition in first},
        {},
        patience,
    )
    return {
        t: {
            p: OffsetRange(first[TopicPartition(t, p)], stable[TopicPartition(t, p)], end)
            for p, end in by.items()
        }
        for t, by in ends.items()
    }


def offsets_at(
    kafka: Connection, topics: Sequence[str], timestamp: int
) -> dict[str, dict[int, Offset]]:
    """Return the first offset of every partition with a record of ``timestamp`` (milliseconds) or
    later; its end if there is none.
    """
    patience = _Patience(kafka.timeout)
    layouts = layouts_of(kafka, topics, patience)
    at = _asked(
        kafka,
        _topic_partitions(layouts),
        OffsetSpec.for_timestamp(timestamp),
        patience,
        none=_NO_SUCH,
    )
    ends = end_offsets(kafka, topics)
    return {
        t: {
            p: end if (found := at[TopicPartition(t, p)]) is None else found
            for p, end in by.items()
        }
        for t, by in ends.items()
    }


def latest_of(kafka: Connection, topic_partition: TopicPartition) -> Offset | None:
    """Return the high watermark of one partition, as soon as its leader knows it (KIP-207)."""
    return _asked(kafka, [topic_partition], OffsetSpec.latest(), _Patience(kafka.timeout))[
        topic_partition
    ]


def reset_positions(
    kafka: Connection, topic_partitions: Sequence[TopicPartition], *, earliest: bool
) -> dict[TopicPartition, int]:
    """Return the first offsets for a reader with read_committed: the beginnings of
    ``topic_partitions``, or else their last stable offsets.
    """
    spec = OffsetSpec.earliest() if earliest else OffsetSpec.latest()
    found = _asked(
        kafka, topic_partitions, spec, _Patience(kafka.timeout), IsolationLevel.READ_COMMITTED
    )
    return {partition: offset for partition, offset in found.items() if offset is not None}


_NO_ID = "A" * 22
"""The topic id of brokers before 2.8, in Kafka's spelling of its 16 bytes, which are all 0."""
_NO_SUCH = -1
"""A broker's response if a partition has no record of that time or later."""


def layouts_of(
    kafka: Connection, topics: Iterable[str], patience: _Patience | None = None
) -> dict[str, Layout]:
    """Return the current layouts of ``topics``. Raises ``BadInput`` for a missing topic,
    ``TimedOut`` for incomplete metadata.
    """
    kafka.cluster_id()  # first contact, whose failure is distinguished from a broker that died since
    patience = patience or _Patience(kafka.timeout)
    found: dict[str, Layout] = {}
    while missing := [topic for topic in topics if topic not in found]:
        patience.failure = None
        futures = kafka.admin.describe_topics(
            TopicCollection(missing), request_timeout=patience.attempt
        )
        silent: dict[str, str] = dict.fromkeys(missing, "no answer")
        for topic, future in futures.items():
            layout = _described(kafka, topic, future, patience)
            if isinstance(layout, Layout):
                found[topic] = layout
                silent.pop(topic)
            else:
                silent[topic] = layout
        if silent:
            topic, why = min(silent.items())
            _pause(kafka, patience, f"The partitions of {topic} could not be determined", why)
    kafka.layouts.update(found)
    return found


def _described(kafka: Connection, topic: str, future: Any, patience: _Patience) -> Layout | str:
    """Return the layout in a topic's description, or why it is incomplete."""
    try:
        return _layout(kafka, topic, future.result())
    except (KafkaException, RuntimeError) as e:
        why = _again(kafka, e, f"describe the topic {topic}", topic)
        unknown = isinstance(e, KafkaException) and e.args[0].name() in _UNKNOWN
        if unknown and patience.spent > min(kafka.timeout, NEW_TOPIC):
            raise BadInput(
                f"Topic not found: {topic} (Kafka at {kafka.bootstrap})", code="no-topic"
            ) from e
        if isinstance(e, KafkaException) and e.args[0].name() in _NOBODY:
            # Any broker may answer this, and none did.
            patience.failure = kafka.failure(e.args[0], f"describe the topic {topic}")
        return why


def _layout(kafka: Connection, topic: str, described: Any) -> Layout | str:
    numbers = sorted(partition.id for partition in described.partitions)
    if not numbers or numbers != list(range(len(numbers))):
        return (
            f"metadata has the partitions {numbers}"
            if numbers
            else "metadata has none of its partitions"
        )
    id_ = (
        None
        if described.topic_id is None or str(described.topic_id) == _NO_ID
        else str(described.topic_id)
    )
    before = kafka.layouts.get(topic)
    if before is not None and before.id == id_ and len(numbers) < before.partitions:
        return f"metadata has {len(numbers)} partitions of it, and had {before.partitions} before"
    return Layout(id_, len(numbers))


def _topic_partitions(layouts: Mapping[str, Layout]) -> list[TopicPartition]:
    return [
        TopicPartition(topic, p)
        for topic, layout in layouts.items()
        for p in range(layout.partitions)
    ]


def _every(
    kafka: Connection,
    layouts: Mapping[str, Layout],
    spec: Any,
    patience: _Patience,
    isolation: Any = None,
) -> dict[TopicPartition, Offset]:
    found = _asked(kafka, _topic_partitions(layouts), spec, patience, isolation)
    return {partition: offset for partition, offset in found.items() if offset is not None}


def _ends(
    kafka: Connection,
    layouts: Mapping[str, Layout],
    first: Mapping[TopicPartition, int],
    seen: Mapping[str, KnownEnds],
    patience: _Patience,
) -> dict[str, dict[int, Offset]]:
    floors = {partition: (offset, "begins") for partition, offset in first.items()}
    for topic, before in seen.items():
        _same_topic(topic, before, layouts[topic])
        for p, read_to in enumerate(before.ends):
            partition = TopicPartition(topic, p)
            if read_to > floors.get(partition, (-1, ""))[0]:
                floors[partition] = read_to, "was read"
    topic_partitions = {*_topic_partitions(layouts), *floors}

    def doubt(partition: TopicPartition, end: int) -> str | None:
        floor, how = floors[partition]
        return (
            f"it ends at {end} and {how} {'at' if how == 'begins' else 'up to'} {floor}"
            if end < floor
            else None
        )

    found = _asked(kafka, sorted(topic_partitions), OffsetSpec.latest(), patience, doubt=doubt)
    by_topic: dict[str, dict[int, Offset]] = {topic: {} for topic in layouts}
    for (topic, p), end in found.items():
        assert end is not None
        by_topic[topic][p] = end
    return by_topic


def _same_topic(topic: str, before: KnownEnds, now: Layout) -> None:
    if before.id is not None and now.id is not None and before.id != now.id:
        raise ConnectctlError(
            f"The topic {topic} was deleted and created again while it was in use",
            why="the records that were read before are gone",
            next_step="If this was intended, start again: the new topic is then used as it is.",
            code="topic-recreated",
        )


def _asked(
    kafka: Connection,
    topic_partitions: Sequence[TopicPartition],
    spec: Any,
    patience: _Patience,
    isolation: Any = None,
    *,
    none: int | None = None,
    doubt: Callable[[TopicPartition, int], str | None] = lambda partition, offset: None,
) -> dict[TopicPartition, Offset | None]:
    """Return an offset of every partition, requested until each leader has returned one that is not
    in ``doubt``; None if it returns ``none``.
    """
    isolation = isolation or IsolationLevel.READ_UNCOMMITTED
    found: dict[TopicPartition, Offset | None] = {}
    while missing := [partition for partition in topic_partitions if partition not in found]:
        specs = dict.fromkeys(positions(missing), spec)
        # A response without a partition is no response for it.
        silent = dict.fromkeys(missing, "no answer")
        futures = kafka.admin.list_offsets(
            specs, isolation_level=isolation, request_timeout=patience.attempt
        )
        for where, future in futures.items():
            partition = TopicPartition(where.topic, where.partition)
            try:
                raw = future.result().offset
            except (KafkaException, RuntimeError) as e:
                silent[partition] = _again(
                    kafka, e, f"list the offsets of {partition}", partition.topic
                )
                continue
            offset = offset_of(raw)
            if offset is None and raw != none:
                silent[partition] = "its leader gave no answer"
            elif offset is not None and (why := doubt(partition, offset)):
                silent[partition] = why
            else:
                found[partition] = offset
                silent.pop(partition)
        if silent:
            partition, why = min(silent.items())
            _pause(kafka, patience, f"The end of {partition} could not be determined", why)
    return found


def _again(kafka: Connection, error: Exception, doing: str, topic: str) -> str:
    """Return why there was no response, if repeating the request may bring one; else raise
    connectctl's error.
    """
    if not isinstance(error, KafkaException):
        # the client's own check of an answer's length
        return "only some of the requests were answered"
    why = error.args[0]
    if why.name() not in _AGAIN and not why.retriable():
        raise kafka.failure(why, doing, describe_topic(topic)) from error
    failure = kafka.failure(why, doing, describe_topic(topic))
    if isinstance(failure, NotAuthorized):
        raise failure from error
    return str(why.str())


def _pause(kafka: Connection, patience: _Patience, what: str, why: str) -> None:
    """Wait before another attempt, with a new connection. Raises ``TimedOut`` when the time is
    over.
    """
    if patience.left <= 0:
        if patience.failure is not None:
            raise patience.failure
        raise TimedOut(what, why=why, next_step="Check the brokers, and try again.")
    patience.grow()
    # librdkafka's admin client keeps the leaders, and their epochs, of before a broker's death; a
    # new one asks afresh.
    kafka.renew()
    time.sleep(min(PAUSE, max(0.0, patience.left)))
