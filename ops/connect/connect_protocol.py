"""What the workers of a Connect cluster tell each other through the group protocol, decoded.

Source: ``ConnectProtocol`` (version 0), ``IncrementalCooperativeConnectProtocol`` (1 and 2) of Apache Kafka.
A worker's member metadata carries its REST URL and how far it has read the config topic; its assignment carries the
leader, the connectors and tasks it runs, and the delay before lost tasks are given to others.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

CONNECTOR_INSTANCE = -1
"""The task number that stands for the Connector itself in an assignment."""


@dataclass(frozen=True)
class Assignment:
    """What the leader gave a worker. ``tasks`` are ``(connector, task)``; ``delay_ms`` is the rebalance delay left.

    Since protocol version 1 the group carries only what a rebalance added, and what it ``revoked``; see ``carried_on``.
    """

    leader_id: str
    leader_url: str
    config_offset: int
    config_mismatch: bool
    connectors: tuple[str, ...]
    tasks: tuple[tuple[str, int], ...]
    delay_ms: int = 0
    revoked: frozenset[tuple[str, int]] = frozenset()

    def carried_on(self, before: Assignment | None) -> Assignment:
        """All that the worker runs, if it ran ``before`` when it joined (``WorkerCoordinator.onJoinComplete``)."""
        if before is None:
            return self
        kept = [c for c in before.connectors if (c, CONNECTOR_INSTANCE) not in self.revoked]
        tasks = [t for t in before.tasks if t not in self.revoked]
        return replace(
            self,
            connectors=tuple(dict.fromkeys([*kept, *self.connectors])),
            tasks=tuple(dict.fromkeys([*tasks, *self.tasks])),
        )


@dataclass(frozen=True)
class Member:
    """One worker in the group. ``url`` is its advertised REST address; ``assignment`` is None before the first sync."""

    id: str
    client_id: str
    host: str
    url: str
    config_offset: int
    assignment: Assignment | None


@dataclass(frozen=True)
class ConnectGroup:
    """The group of the workers as its coordinator describes it. ``state`` is Kafka's: Stable, Empty, Dead …"""

    id: str
    state: str
    protocol: str
    members: tuple[Member, ...]

    @property
    def leader_url(self) -> str | None:
        """The REST address of the leader, where any worker knows one."""
        urls = (m.assignment.leader_url.rstrip("/") for m in self.members if m.assignment)
        return next(filter(None, urls), None)

    @property
    def delay_ms(self) -> int:
        """How long lost connectors and tasks stay unassigned, as of the last rebalance, in milliseconds."""
        return max((m.assignment.delay_ms for m in self.members if m.assignment), default=0)

    @cached_property
    def owners(self) -> dict[tuple[str, int], Member]:
        """Which worker runs a task; the Connector itself is task ``CONNECTOR_INSTANCE``."""
        found: dict[tuple[str, int], Member] = {}
        for member in self.members:
            if member.assignment:
                found |= {(name, CONNECTOR_INSTANCE): member for name in member.assignment.connectors}
                found |= dict.fromkeys(member.assignment.tasks, member)
        return found


class _Reader:
    """Big-endian fields from a buffer. Raises ``ValueError`` where the buffer ends too early."""

    def __init__(self, data: bytes):
        self._data = data
        self._at = 0

    def number(self, form: str) -> int:
        size = struct.calcsize(form)
        if self._at + size > len(self._data):
            raise ValueError(f"{len(self._data)} bytes end before a field at {self._at}")
        (value,) = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += size
        return int(value)

    def text(self) -> str:
        size = self.number("h")
        if size < 0:
            return ""
        raw = self._data[self._at : self._at + size]
        if len(raw) < size:
            raise ValueError(f"a string of {size} bytes is cut short")
        self._at += size
        return raw.decode()

    def block(self) -> bytes:
        size = max(0, self.number("i"))
        raw = self._data[self._at : self._at + size]
        if len(raw) < size:
            raise ValueError(f"a block of {size} bytes is cut short")
        self._at += size
        return raw

    def tasks(self) -> list[tuple[str, int]]:
        found = []
        for _ in range(max(0, self.number("i"))):
            connector = self.text()
            found += [(connector, self.number("i")) for _ in range(max(0, self.number("i")))]
        return found


def decode_metadata(data: bytes) -> tuple[str, int]:
    """``(REST URL, config offset)`` from a member's metadata of any protocol version. Raises ``ValueError``."""
    reader = _Reader(data)
    reader.number("h")
    return reader.text(), reader.number("q")


def decode_current(data: bytes) -> Assignment | None:
    """What a member ran when it joined, from its metadata; None for version 0, which gives everything up first."""
    reader = _Reader(data)
    version = reader.number("h")
    reader.text()
    reader.number("q")
    return decode_assignment(reader.block()) if version >= 1 else None


@lru_cache(maxsize=512)  # One command asks for the group several times, and of 50,000 tasks it is long.
def decode_assignment(data: bytes) -> Assignment | None:
    """A member's assignment, None where it has none yet. Raises ``ValueError`` for bytes that are not assignment."""
    if not data:
        return None
    reader = _Reader(data)
    version, error = reader.number("h"), reader.number("h")
    leader_id, leader_url, config_offset = reader.text(), reader.text(), reader.number("q")
    assigned = reader.tasks()
    revoked: list[tuple[str, int]] = []
    delay = 0
    if version >= 1:
        revoked = reader.tasks()
        delay = reader.number("i")
    return Assignment(
        leader_id=leader_id,
        leader_url=leader_url,
        config_offset=config_offset,
        config_mismatch=error == 1,
        connectors=tuple(name for name, task in assigned if task == CONNECTOR_INSTANCE),
        tasks=tuple((name, task) for name, task in assigned if task != CONNECTOR_INSTANCE),
        delay_ms=delay,
        revoked=frozenset(revoked),
    )
