"""The static members that the tasks of a run leave in their consumer group, which only the driver
can take out.

A static member does not leave by itself (KIP-345): its partitions rest until its session times out.
So the driver removes those of tasks that are over, by their ``group.instance.id``; those of a
driver that was killed are the next one's to remove. A member that was killed between the two halves
of a cooperative rebalance leaves partitions that nobody has: whoever takes its place gets what it
had in the first half, and nobody asks for the second (KIP-345 with KIP-429). So the driver looks
before each round of leases, when none of its members is at work, and now and then in between.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.group_coordinator import Coordinator, RawMember
from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.core.finding import some_of
from connectctl.ops.core.wait import wait_until
from connectctl.ops.kafka.consumer_group import assigned_partitions
from connectctl.ops.kafka.error_handling import name_of
from connectctl.ops.kafka.group_state import is_stable
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer_settings import session_warning

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.spi.subscription import Subscription

PAUSE = 0.3
MOST_NAMED = 5


@dataclass(frozen=True)
class TaskMembers:
    """The members of the tasks of ``connector`` in the consumer group of what it ``reads``.
    ``group`` is the workers'.

    ``shared`` is the connection to the group's coordinator of ``connected``; without it each
    request opens its own.
    """

    kafka: Kafka
    group: str
    connector: str
    reads: Subscription
    note: Callable[[str], None] = lambda line: None
    shared: Coordinator | None = None

    @contextmanager
    def connected(self) -> Iterator[TaskMembers]:
        """Yield the same members with one connection for all requests."""
        with self._coordinator() as coordinator:
            yield replace(self, shared=coordinator)

    def remove(self, numbers: Collection[int]) -> None:
        """Take those of the tasks ``numbers`` out. What cannot be removed is noted, and costs its
        session time-out.
        """
        if not self.reads.consumer.dynamic:
            with self._noted(), self._coordinator() as coordinator:
                self._remove(coordinator, {task_id(self.group, self.connector, n) for n in numbers})

    def instance_ids(self) -> list[str]:
        """The ``group.instance.id`` of each task that is a member, in order."""
        with self._coordinator() as coordinator:
            described = coordinator.describe()
        ids = (
            [m.instance_id for m in described.members if m.instance_id is not None]
            if described
            else []
        )
        return sorted(filter(self._is_ours, ids))

    def remove_ids(self, ids: Collection[str]) -> None:
        """Take out these members. Raises ``ConnectctlError`` where one cannot be removed."""
        with self._coordinator() as coordinator:
            self._remove(coordinator, ids)

    def pending(self) -> frozenset[TopicPartition]:
        """The partitions of which a transaction holds an offset of the group that is pending."""
        with self._coordinator() as coordinator:
            return coordinator.stable_offsets(self._partitions())[1]

    def others(self) -> list[str]:
        """The members that are no tasks of this connector here, each with its client and host.
        Where members are dynamic, tasks cannot be told from others, and none is given.
        """
        if self.reads.consumer.dynamic:
            return []
        with self._coordinator() as coordinator:
            described = coordinator.describe()
        members = () if described is None else described.members
        foreign = [m for m in members if m.instance_id is None or not self._is_ours(m.instance_id)]
        return [f"{m.instance_id or m.client_id} on {m.client_host.lstrip('/')}" for m in foreign]

    def settle(self, active: Collection[int], *, at_work: bool = False) -> bool:
        """Take out the members of all tasks that are not ``active``. Return True if the group is at
        rest and has partitions that no member has: then take out all, unless they are ``at_work``.
        """
        incomplete = False
        if self.reads.consumer.dynamic:
            return incomplete
        with self._noted(), self._coordinator() as coordinator:
            described = coordinator.describe()
            members = () if described is None else described.members
            ours = {
                m.instance_id
                for m in members
                if m.instance_id is not None and self._is_ours(m.instance_id)
            }
            over = ours - {task_id(self.group, self.connector, n) for n in active}
            incomplete = (
                described is not None
                and is_stable(described.state)
                and bool(ours)
                and self._unassigned(members)
            )
            self._remove(coordinator, ours if incomplete and not at_work else over)
        return incomplete

    def _is_ours(self, instance_id: str) -> bool:
        return (
            re.fullmatch(re.escape(f"{self.group}-{self.connector}-") + "[0-9]+", instance_id)
            is not None
        )

    def _unassigned(self, members: Collection[RawMember]) -> bool:
        assigned = {place for member in members for place in assigned_partitions(member.assignment)}
        return any(place not in assigned for place in self._partitions())

    def _partitions(self) -> list[TopicPartition]:
        names, known = self.reads.topics, self.kafka.topic_names()
        if (regex := self.reads.regex) is not None:
            names = tuple(topic for topic in known if re.fullmatch(regex, topic))
        there = self.kafka.partition_counts(sorted({*names} & known))
        return [TopicPartition(topic, n) for topic, count in there.items() for n in range(count)]

    def _remove(self, coordinator: Coordinator, ids: Collection[str]) -> None:
        if refused := coordinator.remove_static(ids):
            id_, code = min(refused.items())
            raise ConnectctlError(
                f"Could not remove the member {id_}", why=name_of(code), code="group-member"
            )

    @contextmanager
    def _coordinator(self) -> Iterator[Coordinator]:
        if self.shared is not None:
            yield self.shared
            return
        with closing(KafkaProtocolClient(self.kafka.client, timeout=self.kafka.timeout)) as wire:
            yield Coordinator(wire, self.reads.consumer.group, self.kafka.timeout)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except ConnectctlError as e:
            consumer = self.reads.consumer
            self.note(
                "warning: static members of tasks that are over may stay in the consumer group "
                f"{consumer.group} until their session times out ({consumer.session_ms / 1000:g} "
                f"s): {e}"
            )


@dataclass
class LeaseGap:
    """Measures the time between two leases, in which no member of the consumer group sends a
    heartbeat, and notes once that a session is too short for it. ``reads`` is None for a source,
    which has no members.
    """

    reads: Subscription | None
    note: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    _began: float | None = None

    def begin(self) -> None:
        """The tasks' leases are over."""
        self._began = self.now()

    def look(self, working: bool) -> None:
        """Whether tasks are ``working`` again, by what they say of themselves."""
        if self.reads is None or self._began is None or not working:
            return
        gap, self._began = self.now() - self._began, None
        consumer = self.reads.consumer
        if (
            not consumer.dynamic
            and (warning := session_warning(consumer.session_ms, gap)) is not None
        ):
            self.reads = None
            self.note(f"warning: {warning}")


def check_group_is_free(members: TaskMembers, patience: float = 0.0) -> None:
    """Raises ``Refused`` where the group has other members after ``patience`` seconds: they would
    take partitions.
    """
    others: list[str] = []

    def free() -> bool | None:
        nonlocal others
        others = members.others()
        return None if others else True

    if not wait_until(free, patience, PAUSE):
        group = members.reads.consumer.group
        raise Refused(
            f"The consumer group {group} of {members.connector} has other members",
            why=some_of(others, MOST_NAMED),
            next_step="Stop them, or set consumer.override.group.id to a group of its own.",
            code="group-in-use",
        )
