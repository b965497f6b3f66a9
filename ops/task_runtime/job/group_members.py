"""Removes static members of ended tasks from their consumer group.

A closed static member does not leave its group (KIP-345): its partitions are not read until its
session times out. So the driver removes the members of ended tasks by their ``group.instance.id``.
The next driver removes the members of a killed driver.

A member that is killed between the two halves of a cooperative rebalance leaves unassigned
partitions: its successor is assigned the partitions of the first half, and no member requests the
second rebalance (KIP-345 with KIP-429). So the driver checks the group before each round of leases,
while none of its members is active, and periodically during a round.
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
from connectctl.ops.connect.transactional_ids import task_id, task_id_prefix
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
    """The members of the tasks of ``connector`` in the consumer group of the subscription
    ``reads``. ``group`` is the Connect group.

    ``shared`` is the connection to the group coordinator within ``connected``. Otherwise each
    request opens a connection.
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
        """Remove the members of the tasks ``numbers``. A warning is noted if that fails: such a
        member stays until its session times out.
        """
        if not self.reads.consumer.dynamic:
            with self._noted(), self._coordinator() as coordinator:
                self._remove(coordinator, {task_id(self.group, self.connector, n) for n in numbers})

    def instance_ids(self) -> list[str]:
        """Return the ``group.instance.id`` of each task that is a member, sorted."""
        with self._coordinator() as coordinator:
            described = coordinator.describe()
        ids = (
            [m.instance_id for m in described.members if m.instance_id is not None]
            if described
            else []
        )
        return sorted(filter(self._is_ours, ids))

    def remove_ids(self, ids: Collection[str]) -> None:
        """Remove the members ``ids``. Raises ``ConnectctlError`` if one cannot be removed."""
        with self._coordinator() as coordinator:
            self._remove(coordinator, ids)

    def pending(self) -> frozenset[TopicPartition]:
        """Return the partitions with pending offsets of a transaction in the group."""
        with self._coordinator() as coordinator:
            return coordinator.stable_offsets(self._partitions())[1]

    def others(self) -> list[str]:
        """Return the members that are not tasks of this connector, each with its id and host. The
        list is empty if members are dynamic: they have no ids that identify tasks.
        """
        if self.reads.consumer.dynamic:
            return []
        with self._coordinator() as coordinator:
            described = coordinator.describe()
        members = () if described is None else described.members
        foreign = [m for m in members if m.instance_id is None or not self._is_ours(m.instance_id)]
        return [f"{m.instance_id or m.client_id} on {m.client_host.lstrip('/')}" for m in foreign]

    def settle(self, active: Collection[int], *, at_work: bool = False) -> bool:
        """Remove the members of all tasks that are not ``active``. Return True if the group is
        stable and has unassigned partitions: then remove the members of all tasks, unless they are
        ``at_work``.
        """
        incomplete = False
        if self.reads.consumer.dynamic:
            return incomplete
        with self._noted(), self._coordinator() as coordinator:
            described = coordinator.describe()
            members = () if described is None else described.members
            matching = {
                m.instance_id
                for m in members
                if m.instance_id is not None and self._is_ours(m.instance_id)
            }
            over = matching - {task_id(self.group, self.connector, n) for n in active}
            incomplete = (
                described is not None
                and is_stable(described.state)
                and bool(matching)
                and self._unassigned(members)
            )
            self._remove(coordinator, matching if incomplete and not at_work else over)
        return incomplete

    def _is_ours(self, instance_id: str) -> bool:
        prefix = task_id_prefix(self.group, self.connector)
        return re.fullmatch(re.escape(prefix) + "[0-9]+", instance_id) is not None

    def _unassigned(self, members: Collection[RawMember]) -> bool:
        assigned = {
            partition for member in members for partition in assigned_partitions(member.assignment)
        }
        return any(partition not in assigned for partition in self._partitions())

    def _partitions(self) -> list[TopicPartition]:
        names, known = self.reads.topics, self.kafka.topic_names()
        if (regex := self.reads.regex) is not None:
            names = tuple(topic for topic in known if re.fullmatch(regex, topic))
        existing = self.kafka.partition_counts(sorted({*names} & known))
        return [TopicPartition(topic, n) for topic, count in existing.items() for n in range(count)]

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
    """A measurement of the time between two leases, in which no task's member sends a heartbeat. It
    notes a warning once if the session time-out is too short. ``reads`` is None for a source, which
    has no members.
    """

    reads: Subscription | None
    note: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    _began: float | None = None

    def begin(self) -> None:
        """Start the measurement: the tasks' leases have ended."""
        self._began = self.now()

    def end(self, working: bool) -> None:
        """End the measurement if tasks are ``working`` again according to their messages."""
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
    """Raise ``Refused`` if the group still has other members after ``patience`` seconds:
    partitions would be assigned to them.
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
