"""The lock of a Connect cluster: exclusive membership in a Kafka group of its own, through
kafka-python.

A classic group takes a member only if it shares an assignment protocol with all others
(``ClassicGroup.supportsProtocols``); else JoinGroup is answered INCONSISTENT_GROUP_PROTOCOL, and
the group is not disturbed. Each run joins with one protocol of its own, so that the first one in
stays alone. The coordinator decides, one request after the other; it writes the member to its log
at SyncGroup, so that another coordinator knows it, too; and it drops a member that sends no
heartbeats for ``SESSION``, which is how a killed run loses the lock.
"""

from __future__ import annotations

import getpass
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.group_coordinator import Again, Coordinator, Described
from connectctl.ops.connect.cluster_lock import LockHolder, group_of
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Refused, TimedOut
from connectctl.ops.core.times import now_utc
from connectctl.ops.kafka.acls import Operation, Resource, Right
from connectctl.ops.kafka.error_handling import Code, name_of
from connectctl.ops.kafka.visibility import grant

SESSION = 30.0
"""Seconds without a heartbeat after which the coordinator gives the lock free; brokers allow 6 s to
30 min by default.

With 10 s a machine at a load of 20 lost the lock of a run that lived: an answer that takes
``ONE_BEAT`` leaves time for one more heartbeat only.
"""
LONGEST_SESSION = 300.0
BEAT = 3.0
"""Seconds between two heartbeats."""
ONE_BEAT = 5.0
"""Seconds that one heartbeat may take, so that another coordinator is looked for while the session
still lasts.
"""
LISTED = 0.05
"""Seconds between two looks whether the coordinator lists a member whose JoinGroup it has not
answered yet.
"""
_PROTOCOL_TYPE = "connectctl-lock"


class GroupLock:
    """The lock of the workers' group ``group_id``. ``properties`` are librdkafka's; ``timeout`` is
    in seconds.
    """

    def __init__(self, properties: Mapping[str, Any], group_id: str, *, timeout: float) -> None:
        self._properties = properties
        self._workers = group_id
        self._group = group_of(group_id)
        self._timeout = timeout

    def holder(self) -> LockHolder | None:
        """The holder of the lock, None without one. Raises ``NotAuthorized``, ``Unreachable``."""
        from connectctl.ops.clients.kafka_protocol.coordinator_loaded import described
        from connectctl.ops.clients.librdkafka.connection import Connection

        return _holder(described(Connection(self._properties, timeout=self._timeout), self._group))

    @contextmanager
    def held(
        self, run: str, ours: Callable[[str], bool] = lambda run: False
    ) -> Iterator[Callable[[], None]]:
        """Hold the lock as ``run``; yield a function that raises ``ConnectctlError`` if it is not
        held any more.

        Raises ``Refused`` if another client holds it, ``NotAuthorized`` if the right is missing.
        ``ours`` returns whether no other process can execute a run, because this one has locked its
        journal's file: if such a run still holds the lock and its process on this host is gone, the
        lock is taken immediately.
        """
        who = f"{_user()}@{socket.gethostname()}"
        since = now_utc("seconds")
        me = LockHolder(run, who, since, os.getpid())
        properties = {**self._properties, "client.id": me.client_id}
        wire, aside = (KafkaProtocolClient(properties, timeout=self._timeout) for _ in range(2))
        session = _Session(wire, aside, self._group, self._timeout)
        try:
            self._join(session, run, ours)
            with session.beating():
                yield session.confirm
        finally:
            session.leave()
            aside.close()
            wire.close()

    def _join(self, session: _Session, run: str, ours: Callable[[str], bool]) -> None:
        try:
            other = session.join(run)
            if (
                other is not None
                and ours(other.run)
                and other.host == socket.gethostname()
                and _is_gone(other.pid)
            ):
                session.remove(other.member)
                other = session.join(run)
        except NotAuthorized as e:
            right = Right(Operation.READ, Resource.GROUP, self._group)
            raise NotAuthorized(
                f"Not authorized to take the lock of {self._workers}; nothing was done",
                why=f"{right} is missing",
                next_step=f"{grant(right)} If nothing else changes this cluster, lock only this "
                "machine: --lock local.",
                right=right,
            ) from e
        if other is not None:
            raise Refused(
                f"Another connectctl is changing {self._workers}; nothing was done",
                why=f"its lock is held by {other}",
                next_step="Wait until that run has ended; if its process was killed, the lock is "
                f"free {SESSION:g} s later.",
                code="locked",
            )


class _Session:
    """One membership in the lock's group: joined, kept by heartbeats on a separate thread, and
    left.

    A coordinator answers the JoinGroup of a group's first member only after
    ``group.initial.rebalance.delay.ms``, by default 3 s, and nothing else on that connection
    meanwhile. It has the member from the beginning, though, and refuses every other: so the lock is
    held as soon as the coordinator lists the member, which is requested on ``aside``, a second
    connection.
    """

    def __init__(
        self, wire: KafkaProtocolClient, aside: KafkaProtocolClient, group: str, timeout: float
    ) -> None:
        self._group, self._timeout = group, timeout
        self._coordinator = Coordinator(wire, group, timeout)
        self._aside = Coordinator(aside, group, timeout)
        self._entering: threading.Thread | None = None
        self._entered: int | ConnectctlError = Code.NONE
        self._member, self._generation, self._session_timeout = "", -1, SESSION
        self._protocol = ""
        self._lost: str | None = None
        self._one_at_a_time = threading.Lock()

    # ------------------------------------------------------------------------------------ the group

    def join(self, run: str) -> LockHolder | None:
        """Become the only member. Return the holder of the lock if another member is in the group,
        else None.
        """
        # The run's name is not sufficient: a second process that resumes the same run would share
        # it, and could join.
        self._protocol = f"{run}-{secrets.token_hex(4)}"
        end = time.monotonic() + self._timeout
        while True:
            code = self._enter() if self._member else int(self._coordinator.until(self._join_once))
            if code == Code.NONE:
                return None
            if code in (Code.INCONSISTENT_GROUP_PROTOCOL, Code.GROUP_MAX_SIZE_REACHED):
                try:
                    other = _holder(self._coordinator.describe())
                except NotAuthorized:  # may be joined and not described
                    return LockHolder(
                        "", "a member that this principal may not see (Describe on the group)", ""
                    )
                if other is not None:
                    return other
                # It has left between the two answers.
            elif code in (Code.UNKNOWN_MEMBER_ID, Code.ILLEGAL_GENERATION, Code.FENCED_INSTANCE_ID):
                self._member = ""
            elif code == Code.INVALID_SESSION_TIMEOUT and self._session_timeout < LONGEST_SESSION:
                # group.min.session.timeout.ms of these brokers is longer
                self._session_timeout *= 2
            elif code not in (Code.MEMBER_ID_REQUIRED, Code.REBALANCE_IN_PROGRESS):
                raise ConnectctlError(
                    f"The group {self._group} cannot be joined", why=name_of(code), code="lock"
                )
            if time.monotonic() > end:
                raise TimedOut(
                    f"Timed out after {self._timeout:g} s waiting for the lock of {self._group}",
                    why=name_of(code),
                )

    def _enter(self) -> int:
        """Join under the member id that was given, and sync; done as soon as the coordinator lists
        the member.
        """
        self._entering = threading.Thread(target=self._enter_at_last, name="lock-join", daemon=True)
        self._entering.start()
        while self._is_entering(LISTED):
            if self._is_listed():
                return Code.NONE
        if isinstance(self._entered, ConnectctlError):
            raise self._entered
        return self._entered

    def _enter_at_last(self) -> None:
        try:
            code = int(self._coordinator.until(self._join_once))
            self._entered = (
                code if code != Code.NONE else int(self._coordinator.until(self._sync_once))
            )
        except ConnectctlError as e:
            self._entered = e

    def _is_entering(self, patience: float = 0.0) -> bool:
        """Return whether JoinGroup is not answered yet, after ``patience`` seconds."""
        if self._entering is None:
            return False
        self._entering.join(patience)
        return self._entering.is_alive()

    def _is_listed(self) -> bool:
        with suppress(ConnectctlError, Again):
            found = self._aside.describe()
            return found is not None and [member.id for member in found.members] == [self._member]
        return False

    def _join_once(self) -> int:
        from kafka.protocol.consumer.group import JoinGroupRequest

        milliseconds = int(self._session_timeout * 1000)
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=milliseconds,
            rebalance_timeout_ms=milliseconds,
            member_id=self._member,
            protocol_type=_PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=self._protocol, metadata=b"")
            ],
            reason="connectctl changes the Connect cluster",
        )
        # A group that was empty waits for group.initial.rebalance.delay.ms (3 s by default) before
        # it answers.
        answer = self._coordinator.ask(request, self._timeout + self._session_timeout)
        code = self._coordinator.check(answer.error_code)
        if code in (Code.NONE, Code.MEMBER_ID_REQUIRED):
            self._member, self._generation = answer.member_id, answer.generation_id
        return code

    def _sync_once(self) -> int:
        from kafka.protocol.consumer.group import SyncGroupRequest

        mine = SyncGroupRequest.SyncGroupRequestAssignment(member_id=self._member, assignment=b"")
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self._generation,
            member_id=self._member,
            protocol_type=_PROTOCOL_TYPE,
            protocol_name=self._protocol,
            assignments=[mine],
        )
        return self._coordinator.check(self._coordinator.ask(request, self._timeout).error_code)

    def leave(self) -> None:
        """Release the lock immediately, if the coordinator responds; else it is released after the
        session.
        """
        if self._member and not self._lost:
            with suppress(ConnectctlError, Again):
                self._leave_once(
                    self._aside if self._is_entering() else self._coordinator,
                    self._member,
                    ONE_BEAT,
                )
            self._is_entering(ONE_BEAT)

    def remove(self, member: str) -> None:
        """Take another member out of the group; not there is fine. Raises ``TimedOut`` where no
        coordinator answers.
        """
        self._coordinator.until(lambda: self._leave_once(self._coordinator, member, self._timeout))

    def _leave_once(self, coordinator: Coordinator, member: str, patience: float) -> None:
        from kafka.protocol.consumer.group import LeaveGroupRequest

        identity = LeaveGroupRequest.MemberIdentity(member_id=member)
        request = LeaveGroupRequest(group_id=self._group, member_id=member, members=[identity])
        coordinator.check(coordinator.ask(request, patience).error_code)

    # ----------------------------------------------------------------------------------- heartbeats

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Send heartbeats all the while, on a thread of their own."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(BEAT) and self._lost is None:
                if self._is_entering():
                    continue
                with self._one_at_a_time, suppress(Again, ConnectctlError):
                    self._beat()

        thread = threading.Thread(target=beat, name="lock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(ONE_BEAT * 2)

    def confirm(self) -> None:
        """Return where the lock is held now. Raises ``ConnectctlError`` where it is lost, or this
        is unknown.
        """
        if self._is_entering() and self._is_listed():
            return
        with self._one_at_a_time:
            self._is_entering(self._timeout + self._session_timeout)
            try:
                self._coordinator.until(self._beat)
            except ConnectctlError as e:
                raise ConnectctlError(
                    "Whether the cluster's lock is still held cannot be confirmed, so nothing "
                    "more is changed",
                    why=f"the brokers do not answer for the group {self._group}: {e.why or e.what}",
                    next_step="Check the brokers.",
                    code="lock-unconfirmed",
                ) from e
        if self._lost is not None:
            raise ConnectctlError(
                "The cluster's lock was lost, so nothing more is changed",
                why=self._lost,
                next_step="See who holds it: connectctl upgrade status.",
                code="lock-lost",
            )

    def _beat(self) -> None:
        """Send one heartbeat: the coordinator still has this member, or the lock is lost."""
        from kafka.protocol.consumer.group import HeartbeatRequest

        if self._lost is not None:
            return
        request = HeartbeatRequest(
            group_id=self._group, generation_id=self._generation, member_id=self._member
        )
        code = self._coordinator.check(self._coordinator.ask(request, ONE_BEAT).error_code)
        if code == Code.REBALANCE_IN_PROGRESS:
            # No other member can have joined; the member stays one while it joins again under its
            # id.
            code = self._join_once() or self._sync_once()
        if code != Code.NONE:
            self._lost = (
                f"the coordinator dropped this member of {self._group} ({name_of(code)}): its "
                f"heartbeats did not arrive for {self._session_timeout:g} s, or it was removed"
            )


def _holder(group: Described | None) -> LockHolder | None:
    """The only member of the lock's group."""
    members = () if group is None else group.members
    return next(
        (LockHolder.from_client_id(m.client_id, m.client_host.lstrip("/"), m.id) for m in members),
        None,
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        return f"uid-{os.getuid()}"


def _is_gone(pid: int) -> bool:
    """Return whether the process that held the lock is gone. One with our own id is: its id was
    reused.
    """
    if pid <= 0:
        return False
    if pid == os.getpid():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


class LocalLock:
    """No lock of the cluster, for clusters that nothing else changes: the journal's file is locked
    nevertheless.
    """

    def holder(self) -> LockHolder | None:
        """Unknown without a lock."""
        return None

    @contextmanager
    def held(
        self, run: str, ours: Callable[[str], bool] = lambda run: False
    ) -> Iterator[Callable[[], None]]:
        """Hold nothing."""
        yield lambda: None
