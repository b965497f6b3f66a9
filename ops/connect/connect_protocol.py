"""The metadata and assignments that Connect workers exchange in the group protocol, decoded.

Source: ``ConnectProtocol`` (version 0), ``IncrementalCooperativeConnectProtocol`` (1 and 2) of
Apache Kafka. A worker's member metadata holds its REST URL and its config offset. Its assignment
holds the leader, the connectors and tasks that it runs, and the delay before lost tasks are
assigned to other workers. MirrorMaker 2 in dedicated mode advertises a word (``NOTUSED``) instead
of a URL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from connectctl.ops.kafka.field_reader import FieldReader
from connectctl.ops.kafka.group_state import is_settled

CONNECTOR_INSTANCE = -1
"""The task number that stands for the connector itself in an assignment."""
_SCHEMES = ("http://", "https://")
_AT = "@"
"""The separator in the name of a worker without REST; no address contains it."""


def rest_url(advertised: str) -> str:
    """Return the REST URL that a worker advertises; empty where it advertises none."""
    return advertised.rstrip("/") if advertised.lower().startswith(_SCHEMES) else ""


def mirror_source(group_id: str) -> str | None:
    """Return the source cluster of a dedicated MirrorMaker 2, whose group is ``SOURCE-mm2``; else
    None.
    """
    source = group_id.removesuffix("-mm2")
    return source if source != group_id else None


def is_mirror(group_id: str, client_id: str) -> bool:
    """Return whether a member is a process of MirrorMaker 2 in dedicated mode, with the client id
    ``SOURCE->TARGET``.

    Its REST server, if it has one (KIP-710), serves its own processes alone.
    """
    source = mirror_source(group_id)
    return source is not None and client_id.startswith(f"{source}->")


@dataclass(frozen=True)
class Assignment:
    """The assignment of a worker. ``tasks`` are ``(connector, task)``; ``delay_ms`` is the
    remaining rebalance delay.

    Since protocol version 1 an assignment holds only the parts that a rebalance added and
    ``revoked``; see ``merged_with``.
    """

    leader_id: str
    leader_url: str
    config_offset: int
    config_mismatch: bool
    connectors: tuple[str, ...]
    tasks: tuple[tuple[str, int], ...]
    delay_ms: int = 0
    revoked: frozenset[tuple[str, int]] = frozenset()

    def merged_with(self, before: Assignment | None) -> Assignment:
        """Return all that a worker runs that ran ``before`` when it joined
        (``WorkerCoordinator.onJoinComplete``).
        """
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
    """A worker in the group. ``assignment`` is None before the first sync.

    ``url`` is the address of its REST API; it is empty where the worker has none and where it is
    unknown, as in a rebalance. ``without_rest`` is True for a worker that is known to have no REST
    API.
    """

    id: str
    client_id: str
    host: str
    url: str
    config_offset: int
    assignment: Assignment | None
    without_rest: bool = False

    @property
    def name(self) -> str:
        """Return the name for users: ``host:port`` of the REST server, or the client id and host
        without one.
        """
        if self.without_rest:
            return f"{self.client_id}{_AT}{self.host.lstrip('/')}"
        return self.url.partition("//")[2].partition("/")[0] or self.client_id

    def wrote(self, worker_id: str) -> bool:
        """Return whether a status with ``worker_id`` is from this worker, by the worker's metadata
        in the group.

        MirrorMaker 2 writes ``host/CLIENT/UUID``, ``host:port/CLIENT`` with REST on, and the client
        id alone before 3.5.
        """
        if self.without_rest:
            return self.client_id in (worker_id, *worker_id.split("/"))
        return bool(self.url) and worker_id == self.name


@dataclass(frozen=True)
class ConnectGroup:
    """The group of the workers as its coordinator describes it. ``state`` is Kafka's: Stable,
    Empty, Dead …
    """

    id: str
    state: str
    protocol: str
    members: tuple[Member, ...]

    @property
    def settled(self) -> bool:
        """Return whether its assignments and addresses are known: coordinators report neither
        during a rebalance.
        """
        return is_settled(self.state)

    @property
    def without_rest(self) -> bool:
        """Return whether its workers are known to have no REST API, as MirrorMaker 2 in dedicated
        mode.
        """
        return bool(self.members) and all(member.without_rest for member in self.members)

    @property
    def leader(self) -> Member | None:
        """Return the leader of the last rebalance; None if it has left or is unknown."""
        leaders = {member.assignment.leader_id for member in self.members if member.assignment}
        return next((member for member in self.members if member.id in leaders), None)

    @property
    def leader_url(self) -> str | None:
        """Return the REST address of the leader, None if no worker knows it."""
        urls = (rest_url(m.assignment.leader_url) for m in self.members if m.assignment)
        return next(filter(None, urls), None)

    @property
    def delay_ms(self) -> int:
        """Return the milliseconds for which lost connectors and tasks stay unassigned, as of the
        last rebalance.
        """
        return max((m.assignment.delay_ms for m in self.members if m.assignment), default=0)

    @cached_property
    def owners(self) -> dict[tuple[str, int], Member]:
        """Return the worker that runs each task; ``CONNECTOR_INSTANCE`` stands for the connector
        itself.
        """
        found: dict[tuple[str, int], Member] = {}
        for member in self.members:
            if member.assignment:
                found |= {
                    (name, CONNECTOR_INSTANCE): member for name in member.assignment.connectors
                }
                found |= dict.fromkeys(member.assignment.tasks, member)
        return found


def is_address(worker: str) -> bool:
    """Return whether a worker's name is ``host:port`` of its REST server, as statuses name
    workers.
    """
    return _AT not in worker


def _tasks(reader: FieldReader) -> list[tuple[str, int]]:
    """Return the connectors and tasks in an assignment."""
    found = []
    for _ in range(max(0, reader.number(4))):
        connector = reader.string()
        found += [(connector, reader.number(4)) for _ in range(max(0, reader.number(4)))]
    return found


def decode_metadata(data: bytes) -> tuple[str, int]:
    """Return ``(REST URL, config offset)`` from a member's metadata of any protocol version. Raises
    ``ValueError``.
    """
    reader = FieldReader(data)
    reader.number(2)
    return reader.string(), reader.number(8)


def decode_current(data: bytes) -> Assignment | None:
    """Return the assignment that a member had when it joined; None for version 0, which releases it
    first.
    """
    reader = FieldReader(data)
    version = reader.number(2)
    reader.string()
    reader.number(8)
    return decode_assignment(reader.block()) if version >= 1 else None


# A command describes the group several times; an assignment of 50,000 tasks is long.
@lru_cache(maxsize=512)
def decode_assignment(data: bytes) -> Assignment | None:
    """Return a member's assignment, None if it has none yet.

    Raises ``ValueError`` for bytes that are not an assignment.
    """
    if not data:
        return None
    reader = FieldReader(data)
    version, error = reader.number(2), reader.number(2)
    leader_id, leader_url, config_offset = reader.string(), reader.string(), reader.number(8)
    assigned = _tasks(reader)
    revoked: list[tuple[str, int]] = []
    delay = 0
    if version >= 1:
        revoked = _tasks(reader)
        delay = reader.number(4)
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
