"""The presence of a run, visible in the whole Kafka cluster: a member of its own consumer group,
which leaves with its process.

The member reads nothing and commits nothing. While its process lives it answers the group's
coordinator; ``SESSION`` seconds after its death the coordinator removes it, and an empty group is
forgotten. Its client id identifies it.
"""

from __future__ import annotations

import os
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from connectctl.ops.clients.kafka_protocol.coordinator_loaded import described
from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.connect.run_presence import Holder, client_id, holder, presence_group
from connectctl.ops.core.errors import (
    ConnectctlError,
    NotAuthorized,
    Refused,
    TimedOut,
    Unreachable,
)
from connectctl.ops.kafka.acls import Operation, Resource, Right
from connectctl.ops.kafka.visibility import describe_group, not_authorized

SESSION = 10.0
"""Seconds after which the coordinator removes a member without heartbeats."""
GONE = SESSION + 5.0
"""Seconds after which a dead process is certainly out of its group."""
POLL = 0.5
PAUSE = 0.5


def holders(kafka: Connection, group_id: str, connector: str) -> tuple[Holder, ...]:
    """Return the runs of ``connector`` that are alive, or died less than ``SESSION`` ago. Raises
    ``NotAuthorized``.

    The group is described by its name, because a listing leaves out groups that may not be seen.
    That there are none is accepted only of a coordinator that has loaded the whole group.
    """
    name = presence_group(group_id, connector)
    try:
        group = described(kafka, name)
    except NotAuthorized as e:
        what = f"Not authorized to check whether a connectctl run is running {connector}"
        raise not_authorized(what, describe_group(name)) from e
    members = () if group is None else group.members
    return tuple(
        holder(member.client_id, member.client_host.removeprefix("/")) for member in members
    )


class Presence:
    """The membership of one run of ``connector``. ``topic`` is any that exists: members of a group
    must name one.
    """

    def __init__(
        self,
        kafka: Connection,
        group_id: str,
        connector: str,
        topic: str,
        now: Callable[[], float] = time.time,
    ):
        self._kafka, self._group_id, self._connector, self._topic = (
            kafka,
            group_id,
            connector,
            topic,
        )
        self.client = client_id(socket.gethostname(), os.getpid(), now(), secrets.token_hex(4))
        self._group = presence_group(group_id, connector)
        self._over = threading.Event()
        self._joined = threading.Event()
        self._thread: threading.Thread | None = None
        self._first: str | None = None
        self._dropped = False
        self.overtaken: str | None = None
        """The run that holds the connector now, because this process was considered dead; None
        while this one holds it.
        """
        self.problem: ConnectctlError | None = None
        """Why this process could not become a member."""

    def others(self) -> tuple[Holder, ...]:
        """The other runs of the connector that are alive, or died less than ``SESSION`` ago. Raises
        ``NotAuthorized``.
        """
        return tuple(
            h
            for h in holders(self._kafka, self._group_id, self._connector)
            if h.client != self.client
        )

    def join(self) -> None:
        """Become a member, in a thread that keeps it; does not wait until the coordinator has
        answered.
        """
        self._over.clear()
        self._joined.clear()
        self._thread = threading.Thread(
            target=self._keep, name=f"presence of {self._connector}", daemon=True
        )
        self._thread.start()

    def leave(self) -> None:
        """Leave the group immediately."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(SESSION)
            self._thread = None

    def hold_alone(self, patience: float) -> None:
        """Become the only member. Raises ``Refused`` if another member is alive, ``TimedOut``,
        ``NotAuthorized``.

        If two join at the same time, at least one sees the other: both leave and try again, after
        different pauses.
        """
        began = time.monotonic()
        while True:
            others = self.others()
            if not others:
                self.join()
                try:
                    self._wait(patience)
                    others = self.others()
                except ConnectctlError:
                    self.leave()
                    raise
                if not others:
                    return
                self.leave()
            if time.monotonic() - began > GONE:
                raise Refused(
                    f"Another connectctl run is running {self._connector}",
                    why="; ".join(map(str, others)),
                    next_step="Stop that run first, or wait until it ends.",
                    code="in-use",
                )
            time.sleep(PAUSE * random.uniform(0.5, 2))

    def _wait(self, patience: float) -> None:
        if not self._joined.wait(patience):
            what = f"The group {self._group} could not be joined in {patience:g} s"
            raise TimedOut(what, next_step="Try a longer --timeout.")
        if self.problem is not None:
            raise self.problem

    def _keep(self) -> None:
        """Be a member until it is over; a client that failed by itself is replaced."""
        from confluent_kafka import KafkaException

        while not self._over.is_set():
            try:
                self._be_a_member()
            except KafkaException as e:
                failure = self._failure(e)
                if not isinstance(failure, Unreachable) or isinstance(failure, NotAuthorized):
                    self.problem = failure
                    self._joined.set()
                    return
                self._over.wait(PAUSE)

    def _be_a_member(self) -> None:
        from confluent_kafka import Consumer, KafkaException

        properties = self._kafka.properties(
            client__id=self.client,
            group__id=self._group,
            session__timeout__ms=int(SESSION * 1000),
            heartbeat__interval__ms=int(SESSION * 1000 / 4),
            max__poll__interval__ms=60_000,
            enable__auto__commit=False,
        )
        consumer: Any = Consumer(properties)
        try:
            consumer.subscribe([self._topic], on_assign=self._on_assign)
            while not self._over.is_set():
                message = consumer.poll(POLL)
                if self._dropped:
                    self._look_for_others()
                if (
                    message is not None
                    and message.error()
                    and message.error().name() == "GROUP_AUTHORIZATION_FAILED"
                ):
                    raise KafkaException(message.error())
        finally:
            with suppress(KafkaException):
                consumer.close()

    def _failure(self, error: Any) -> ConnectctlError:
        found = self._kafka.failure(error.args[0], f"join the group {self._group}")
        if isinstance(found, NotAuthorized):
            what = (
                f"Not authorized to join the group by which a run of {self._connector} shows "
                "that it is alive"
            )
            return not_authorized(what, Right(Operation.READ, Resource.GROUP, self._group))
        return found

    def _on_assign(self, consumer: Any, partitions: list[Any]) -> None:
        consumer.assign([])  # nothing is read
        me = str(consumer.memberid())
        if self._first is None or not self._joined.is_set():
            self._first = me
        elif me != self._first:
            # The coordinator had dropped us; a client that came meanwhile rightly took us for dead.
            self._first, self._dropped = me, True
        self._joined.set()

    def _look_for_others(self) -> None:
        """See who came while we were dropped; asked again until it is answered."""
        with suppress(ConnectctlError):
            if others := self.others():
                self.overtaken = str(others[0])
            self._dropped = False
