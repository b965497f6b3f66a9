"""The consumer group member of one attempt of a task, in a real cluster, through librdkafka.

The ``group.instance.id`` of a static member (KIP-345) is the transactional id of its task. So a new
attempt takes over the partitions immediately and fences the older attempt. The end of a lease and
the start of the next one cause no rebalance. A separate thread polls (``poll_thread``), so that a
revocation is an event.

FENCED_INSTANCE_ID is fatal to a consumer. An exception in a callback leaves the poll, and the
records of the poll are lost: a new member begins. If a static member is replaced during a
cooperative rebalance, the new member is assigned the partitions of the first half, and the
partitions that its predecessor had to revoke stay unassigned. A member of KIP-848's protocol
without partitions receives no assignment, so it has joined as soon as it has an epoch.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.librdkafka.group_positions import (
    group_offsets,
    membership,
    positions,
    positions_at,
)
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, TimedOut
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import (
    Assigned,
    GroupEvent,
    GroupOffsets,
    Lost,
    Polled,
    Revoked,
)
from connectctl.ops.task_runtime.group.poll_interval import PollInterval
from connectctl.ops.task_runtime.group.poll_thread import PollThread
from connectctl.ops.task_runtime.task.transactional_producer import (
    OF_A_GENERATION,
    Fenced,
    Rebalancing,
    UnknownOutcome,
)

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.group.consumer_settings import ConsumerSettings
    from connectctl.ops.task_runtime.group.stable_offsets import StableOffsets

JOIN_POLL = 0.2
LOOK = 3.0
"""Seconds between two checks for a newer generation of tasks, while a member waits for an
assignment.
"""
WITHOUT_PARTITIONS = 1.0
"""Seconds to wait for a first assignment after the member has an epoch."""
_STARTS = ("earliest", "latest")
_FENCED = {"FENCED_INSTANCE_ID", "_FENCED"}
_PERMANENT = {
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "INVALID_SESSION_TIMEOUT",
} | {
    "INCONSISTENT_GROUP_PROTOCOL",
    "GROUP_MAX_SIZE_REACHED",
    "_AUTO_OFFSET_RESET",
    "UNSUPPORTED_VERSION",
    "TOPIC_EXCEPTION",
}
_MISSING = {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"}
_PASSING = {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT"} | _MISSING
"""Errors that librdkafka reports and retries itself."""
_ERROR = methodcaller("error")
_END = "_PARTITION_EOF"
_NO_FAILURE = _PASSING | {_END}


@dataclass(eq=False)
class TaskMember:
    """A ``GroupConsumer`` in the group of ``settings``, subscribed to ``topics``. A topic that
    begins with ``^`` is a pattern, as in librdkafka.

    Dynamic members do not use ``instance_id``. ``stable`` reads the committed offsets. The member
    stops waiting once ``stopped`` returns True. ``stale_because`` returns the reason if the task is
    stale, and the wait for an assignment fails. ``on_assignment`` receives the assigned partitions
    at each change, except while the member closes. ``waits_for_topics`` waits without a limit for
    topics that do not exist. ``patience`` is the seconds for the first assignment; ``asking`` is
    the context of that wait.
    """

    kafka: Kafka
    settings: ConsumerSettings
    topics: Sequence[str]
    instance_id: str
    stable: StableOffsets
    stopped: Callable[[], bool] = lambda: False
    on_assignment: Callable[[Collection[TopicPartition]], None] = lambda topic_partitions: None
    stale_because: Callable[[], str | None] = lambda: None
    waits_for_topics: bool = False
    patience: float = 30.0
    asking: Callable[[str], AbstractContextManager[None]] = lambda what: nullcontext()

    def __post_init__(self) -> None:
        from confluent_kafka import Consumer

        settings, self._fatal = self.settings, None
        self._interval = PollInterval(settings.poll_interval_ms / 1000)
        self.took = self._interval.took
        self._thread = PollThread()
        self._events = deque[GroupEvent]()
        self._joined = self._closing = False
        self._usable = False
        """True while the positions are known. A failed poll sets it to False."""
        self._ahead: list[Any] = []
        self._next: dict[TopicPartition, int | None] = {}
        """The offset of the next record of each assigned partition; None while it is unknown."""
        self._at_end: set[TopicPartition] = set()
        self._read: set[TopicPartition] = set()
        """Partitions of which a record was returned since the last assignment or seek."""
        self._sought: set[TopicPartition] = set()
        properties = (
            self.kafka.properties()
            | {"auto.offset.reset": settings.reset}
            | dict(settings.properties)
        )
        properties |= {
            "group.id": settings.group,
            "isolation.level": "read_committed",  # else it would not wait for pending offsets
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "error_cb": self._on_error,
        }
        if not settings.dynamic:
            properties |= {
                "group.instance.id": self.instance_id,
                "partition.assignment.strategy": "cooperative-sticky",
            }
            properties.setdefault("session.timeout.ms", settings.session_ms)
        self._consumer: Any = self.kafka.ask("open a consumer", lambda: Consumer(properties))

    def _on_error(self, error: Any) -> None:
        # The polling thread checks for the error after the same call. An exception here is lost.
        if error.fatal() or error.name() in _FENCED:
            self._fatal = error

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self._next)

    def join(self) -> None:
        """Subscribe and wait for the first assignment, or until the task is stopped. Raises
        ``TimedOut``, ``Fenced`` and ``NotAuthorized``. Raises ``UnknownOutcome`` if the task is
        stale: an older attempt that runs beside its successor may never be assigned partitions.
        """
        if not self._joined:
            with self.asking("join the consumer group"):
                self._join(self.patience)

    def _join(self, patience: float) -> None:
        missing = ""
        callbacks = {"on_assign": self._assigned, "on_revoke": self._revoked, "on_lost": self._lost}
        self._call(
            "join its group", lambda: self._consumer.subscribe(list(self.topics), **callbacks)
        )
        end, without, next_check = time.monotonic() + patience, 0.0, time.monotonic() + LOOK
        while not self._joined and not self.stopped():
            found = self._next_messages(JOIN_POLL, 1)
            self._ahead += found
            if unavailable := [
                e.str() for m in found if (e := m.error()) is not None and e.name() in _MISSING
            ]:
                missing = unavailable[0]
                self.stable.waiting(missing, self.waits_for_topics)
            without = without + JOIN_POLL if self._has_epoch else 0.0
            if without > WITHOUT_PARTITIONS:
                return
            if time.monotonic() > next_check and not self._joined:
                if why := self.stale_because():
                    raise UnknownOutcome(why)
                if not missing:
                    self.stable.waiting(f"the consumer group {self.settings.group} rebalances")
                next_check = time.monotonic() + LOOK
            if (
                time.monotonic() > end
                and not self._joined
                and not (missing and self.waits_for_topics)
            ):
                raise TimedOut(
                    f"No assignment received from the group {self.settings.group} for "
                    f"{patience:g} s",
                    why=missing or None,
                    next_step="Create the topic."
                    if missing
                    else "See its members: kafka-consumer-groups.sh --describe --members.",
                )

    @property
    def _has_epoch(self) -> bool:
        return self.settings.dynamic and membership(self.metadata).generation > 0

    def poll(self, seconds: float, most: int) -> GroupEvent:
        self._interval.check()
        # A held poll continues before records are returned: some may be of revoked partitions.
        if not self._events and (self._thread.is_held or not self._ahead):
            self._ahead += self._next_messages(seconds, most)
        if self._events:
            return self._events.popleft()
        ready, self._ahead = self._ahead, []
        self._usable = False
        # In order: the end of a partition comes after the records before it.
        messages = [m for m in ready if not self._is_end(m) and self._is_next(m)]
        self._usable = True
        return Polled(messages)

    def _next_messages(self, seconds: float, most: int) -> list[Any]:
        """Return the messages of a poll; none if a callback holds the poll, which is an event."""
        found: list[Any] | None = self._thread.poll(lambda: self._consume(seconds, most))
        return found or []

    def _consume(self, seconds: float, most: int) -> list[Any]:
        self._usable = False
        with self._interval.polling():
            found = self._call("read records", lambda: self._consumer.consume(most, seconds))
        if self._fatal is not None:
            self._fail(self._fatal, "read records")
        # librdkafka reports a fatal error once, in the poll that also reports the lost partitions.
        for error in filter(None, map(_ERROR, found)):
            if error.name() not in _NO_FAILURE or error.fatal():
                self._fail(error, "read records")
        self._usable = True
        return list(found)

    def _is_end(self, message: Any) -> bool:
        """Return whether ``message`` is not a record. It may be the end of a partition."""
        if (error := message.error()) is None:
            return False
        if error.name() == _END:
            partition = TopicPartition(message.topic(), message.partition())
            # this offset is after control records, for which there are no messages
            if self._is_in_order(partition, message.offset()):
                self._next[partition] = message.offset()
                self._at_end.add(partition)
        return True

    def _is_next(self, message: Any) -> bool:
        """Return whether the partition is still assigned and the record was not returned before."""
        partition, offset = TopicPartition(message.topic(), message.partition()), message.offset()
        if not self._is_in_order(partition, offset):
            return False
        self._next[partition] = offset + 1
        self._at_end.discard(partition)
        self._sought.discard(partition)
        self._read.add(partition)
        return True

    def _is_in_order(self, topic_partition: TopicPartition, offset: int) -> bool:
        """Return whether ``offset`` is after the records that were returned of an assigned
        partition.

        librdkafka resets the position without an error if a topic was created again or its log was
        truncated (``auto.offset.reset``). Positions in the older log must not be committed for the
        newer log, and the first records of the newer log must not be skipped.
        """
        if topic_partition not in self._next:
            return False
        known = self._next[topic_partition] or 0
        if offset >= known:
            return True
        if topic_partition in self._sought:  # it was fetched before the seek to another offset
            return False
        if topic_partition in self._read:
            raise UnknownOutcome(
                f"{topic_partition} starts again at offset {offset}, after {known - 1}: its topic "
                "was created again, or its log was truncated"
            )
        return True  # the group's offset is beyond the end of the log

    # ----------------------------------------------------------------------------------- rebalances

    def _assigned(self, consumer: Any, partitions: Sequence[Any]) -> None:
        if self._closing:
            return
        topic_partitions = [TopicPartition(p.topic, p.partition) for p in partitions]
        starts = self._starts(topic_partitions)
        starting = positions_at(
            {partition: starts[partition].offset for partition in topic_partitions}
        )
        self._call("take its partitions", lambda: consumer.incremental_assign(starting))
        self._next |= {partition: starts[partition].offset for partition in topic_partitions}
        self._at_end -= set(topic_partitions)
        self._joined = True
        self._events.append(Assigned(topic_partitions, starts))
        self.on_assignment(self.assignment)

    def _starts(self, topic_partitions: Sequence[TopicPartition]) -> GroupOffsets:
        committed = self.stable(topic_partitions)
        return {
            **committed,
            **self._reset_positions([p for p in topic_partitions if p not in committed]),
        }

    def _reset_positions(self, topic_partitions: Sequence[TopicPartition]) -> GroupOffsets:
        """Return the first or end offsets of ``topic_partitions``, which have no committed offset.
        They are read from the brokers, as by a worker's consumer.
        """
        if not topic_partitions:
            return {}
        if self.settings.reset not in _STARTS:
            raise ConnectctlError(
                f"The group {self.settings.group} has no committed offset of {topic_partitions[0]}",
                why="consumer.override.auto.offset.reset=none",
                next_step="Set the group's offset, or choose earliest or latest.",
                code="no-offset",
            )
        found = self.kafka.positions(topic_partitions, earliest=self.settings.reset == "earliest")
        return {partition: GroupOffset(offset) for partition, offset in found.items()}

    def _revoked(self, consumer: Any, partitions: Sequence[Any]) -> None:
        topic_partitions = [TopicPartition(p.topic, p.partition) for p in partitions]
        if not self._closing:
            self._events.append(Revoked(topic_partitions))
            self._usable = True  # also if the commit before the revocation fails
            self._thread.hold()
            self._usable = False
        self._forget(topic_partitions)

    def _lost(self, consumer: Any, partitions: Sequence[Any]) -> None:
        topic_partitions = [TopicPartition(p.topic, p.partition) for p in partitions]
        self._forget(topic_partitions)
        if not self._closing:
            self._events.append(Lost(topic_partitions))

    def _forget(self, topic_partitions: Collection[TopicPartition]) -> None:
        for partition in topic_partitions:
            self._next.pop(partition, None)
            for known in (self._at_end, self._read, self._sought):
                known.discard(partition)
        if not self._closing:
            self.on_assignment(self.assignment)

    # -------------------------------------------------------------------------------------- offsets

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        for partition, offset in offsets.items():
            (position,) = positions_at({partition: offset})
            self._call("seek", partial(self._consumer.seek, position))
            self._next[partition] = offset if offset >= 0 else None
            self._at_end.discard(partition)
            self._read.discard(partition)
            self._sought.add(partition)
        self._ahead = [
            m for m in self._ahead if TopicPartition(m.topic(), m.partition()) not in offsets
        ]

    def rewind(self) -> bool:
        while self._thread.is_held:  # the partitions are revoked, and the rebalance continues
            self._next_messages(0, 1)
        # There is no poll between two attempts: the group may have revoked the partitions.
        if not (self._joined and self._usable) or self._interval.passed > self._interval.seconds:
            return False
        topic_partitions, self._ahead = tuple(self._next), []
        self._events.clear()
        starts = self._starts(topic_partitions)
        self._usable = False
        self.seek({partition: starts[partition].offset for partition in topic_partitions})
        # no record that was fetched before is before the committed offsets of the same log
        self._sought.difference_update(topic_partitions)
        if topic_partitions:
            self.resume(topic_partitions)
            self._events.append(Assigned(topic_partitions, starts))
        self._usable = True
        return True

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        self._call("pause partitions", lambda: self._consumer.pause(positions(partitions)))

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        self._call("resume partitions", lambda: self._consumer.resume(positions(partitions)))

    def commit(self, offsets: GroupOffsets) -> None:
        self._interval.check()
        committed = group_offsets(offsets)
        answer = self._call(
            "commit offsets", lambda: self._consumer.commit(offsets=committed, asynchronous=False)
        )
        for each in answer or ():
            if each.error is not None:
                self._fail(each.error, "commit offsets")

    @property
    def metadata(self) -> Any:
        """The current generation, member id and instance id."""
        self._interval.check()
        return self._thread.ask(self._consumer.consumer_group_metadata)

    @property
    def lag(self) -> int | None:
        return None if self._consumer is None else self._thread.ask(self._cached_lag)

    def _cached_lag(self) -> int | None:
        lag = 0
        for partition, position in self._next.items():
            if partition in self._at_end:
                continue
            low, high = self._consumer.get_watermark_offsets(*positions([partition]), cached=True)
            if high < 0 or (position is None and low < 0):
                return None
            lag += max(0, high - (low if position is None else position))
        return lag

    @property
    def has_more(self) -> bool:
        return not self._at_end.issuperset(self._next)

    def close(self) -> None:
        """Close the consumer on its polling thread, without waiting for it. A static member stays
        in the group.
        """
        self._closing = True
        consumer, self._consumer = self._consumer, None
        self.stable.close()
        if consumer is not None:
            self._thread.close(partial(_close, consumer))

    # --------------------------------------------------------------------------------------- errors

    def _call(self, doing: str, call: Callable[[], Any]) -> Any:
        from confluent_kafka import KafkaException

        try:
            return self._thread.ask(call)
        except KafkaException as e:
            self._fail(e.args[0], doing, e)

    def _fail(self, error: Any, doing: str, cause: Exception | None = None) -> None:
        first = self._fatal if self._fatal is not None else error
        # A poll wraps the error as "_FATAL", with the reason in its text, and fatal() is False. If
        # the error were not recognised, the older attempt would begin again, and both attempts
        # would fence each other without an end.
        is_fatal = first.fatal() or first.name() == "_FATAL"
        if first.name() in _FENCED or (is_fatal and "fenced" in first.str().lower()):
            raise Fenced(f"another attempt has its group.instance.id: {first.str()}") from cause
        failure: ConnectctlError = self.kafka.failure(first, doing)
        if isinstance(failure, NotAuthorized) or first.name() in _PERMANENT:
            raise failure from cause
        kind = Rebalancing if first.name() in OF_A_GENERATION else UnknownOutcome
        raise kind(f"could not {doing}: {first.str()}") from cause


def _close(consumer: Any) -> None:
    with suppress(Exception):  # a fenced consumer may raise again
        consumer.close()
