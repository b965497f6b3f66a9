"""Observe a Connect cluster for a roll: fully for a plan, and quickly and repeatedly for a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from connectctl.ops.clients.protocols import (
    ConfiguredValue,
    ConnectCalls,
    KafkaReads,
    TransactionCalls,
    WorkerDriver,
)
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.connector import Connector, owners_of
from connectctl.ops.connect.health import answer_problem, unhealthy_components
from connectctl.ops.connect.internal_topics import address
from connectctl.ops.connect.offset_store import TOPIC
from connectctl.ops.connect.rest_membership import Resolve, is_advertised, is_among
from connectctl.ops.connect.transactional_ids import LeaderId
from connectctl.ops.connect.worker import Worker
from connectctl.ops.core.errors import ConnectctlError, NoRestApi, Refused
from connectctl.ops.core.times import now_utc
from connectctl.ops.kafka.group_state import is_stable
from connectctl.ops.kafka.visibility import Gap
from connectctl.ops.operations.cluster.worker_answers import MOST_AT_ONCE, PATIENCE, ask_all
from connectctl.ops.operations.connectors import observe as reading
from connectctl.ops.operations.connectors.observe import ConnectorListing
from connectctl.ops.operations.fencing.observe import observe_leader_id
from connectctl.ops.operations.tasks_max.observe import exceeds_tasks_max
from connectctl.ops.operations.upgrade.connector_listing import (
    LISTING,
    listing_for_roll,
    other_servers,
)
from connectctl.ops.operations.upgrade.gates import HealthSnapshot
from connectctl.ops.operations.upgrade.mode import (
    PROPERTY,
    Evidence,
    JournalRecord,
    SourceSupport,
    mode_of,
)
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot, RollingWorker

MAX_DELAY = "scheduled.rebalance.max.delay.ms"


@dataclass(frozen=True)
class ClusterReader:
    """The clients that observe a cluster. ``extra``: REST URLs of workers from the settings, in the
    group or not.

    ``remembered``: addresses of workers that an earlier run recorded, with its id. ``named``:
    internal topics from the settings, by role. ``resolve`` gives the IP addresses of a host.
    """

    kafka: KafkaReads
    calls: ConnectCalls
    group_id: str
    transactions: TransactionCalls
    driver: WorkerDriver | None = None
    extra: tuple[str, ...] = ()
    remembered: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, str | None] = field(default_factory=dict)
    resolve: Resolve = lambda host: frozenset()

    def group(self) -> ConnectGroup:
        """Describe the workers' group."""
        return self.kafka.group(self.group_id)


def members_of(group: ConnectGroup) -> dict[str, str]:
    """The member ids of the workers in the group, by address."""
    return {address(member.url): member.id for member in group.members if member.url}


def observe(
    reader: ClusterReader, group: ConnectGroup, journal_records: Mapping[str, JournalRecord]
) -> RollingSnapshot:
    """Take the snapshot of the cluster for a planner.

    Raises ``Refused`` if a rebalance hides the workers' addresses, and ``NoRestApi`` if they have
    none.
    """
    if group.without_rest:
        raise NoRestApi(
            f"The workers of {group.id} have no REST API; their mode can be neither seen nor "
            "changed",
            why="they are MirrorMaker 2 in dedicated mode",
            next_step="Set TARGET.exactly.once.source.support (first preparing, then enabled) and "
            "dedicated.mode.enable.internal.rest=true in mm2.properties, and restart "
            "the processes one by one.",
        )
    if not group.settled:
        raise Refused(
            f"The group {group.id} is {group.state}, and its workers cannot be identified during "
            "a rebalance",
            next_step="Try again when the rebalance is over: connectctl cluster show --watch.",
            code="rebalancing",
        )
    answers = [*ask_all(reader.calls, group), *_absent_workers(reader, group)]
    members, known = members_of(group), observe_leader_id(reader.transactions, reader.group_id)
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        futures = [
            pool.submit(_worker, reader, a, members, known, journal_records, group) for a in answers
        ]
        workers = tuple(sorted((future.result() for future in futures), key=lambda w: w.address))
    urls = [w.url for w in workers if not w.broken]
    silent = [f"{w.url.rstrip('/') or w.address}: {w.problem}" for w in workers if w.problem]
    listing = listing_for_roll(reader.calls, reader.kafka, group, reader.named, urls, silent)
    listed = listing if isinstance(listing, ConnectorListing) else None
    found = [each.connector for each in listed.connectors] if listed else None
    unseen = [] if listed else [f"connector status: {listing}"]
    if isinstance(known, Gap):
        unseen.append(f"{known.subject}: {known.why}")
    leader = next((w for w in workers if w.leader), None)
    return RollingSnapshot(
        cluster_id=reader.kafka.cluster_id(),
        group_id=group.id,
        state=group.state,
        workers=workers,
        protocol=group.protocol,
        delay_ms=group.delay_ms,
        max_delay=_value(_configured(reader, leader.address, MAX_DELAY)[0]) if leader else None,
        baseline=unhealthy_components(found or [], owners_of(group)),
        dedicated=tuple(
            sorted(c.name for c in found or [] if c.type == "source" and c.config.get(TOPIC))
        ),
        exceeds_tasks_max=tuple(sorted(c.name for c in found or [] if exceeds_tasks_max(c))),
        connectors=None if found is None else len(found),
        driver=reader.driver.name if reader.driver else "none",
        taken_at=now_utc("seconds"),
        unseen=tuple(unseen),
        findings=(
            *other_servers(reader.calls, group, reader.extra, reader.resolve),
            *(listed.findings if listed else ()),
        ),
    )


def _absent_workers(reader: ClusterReader, group: ConnectGroup) -> list[Worker]:
    """The workers from the settings or from an earlier run that are not in the group."""
    named = {address(url): url for url in reader.extra} | {
        where: f"http://{where}" for where in _lost_workers(reader)
    }
    absent = {
        where: url for where, url in named.items() if not is_advertised(url, group, reader.resolve)
    }
    return [
        Worker(where, url, problem=_absence_reason(reader, where)) for where, url in absent.items()
    ]


def _lost_workers(reader: ClusterReader) -> dict[str, str]:
    """The workers that only an earlier run recorded, with its id."""
    remembered = reader.remembered.items()
    return {
        worker: run
        for worker, run in remembered
        if not is_among(f"http://{worker}", reader.extra, reader.resolve)
    }


def _absence_reason(reader: ClusterReader, worker: str) -> str:
    run = reader.remembered.get(worker)
    return f"it is not in the group, and was in run {run}" if run else "it is not in the group"


def _worker(
    reader: ClusterReader,
    answer: Worker,
    members: Mapping[str, str],
    known: LeaderId | Gap,
    journal_records: Mapping[str, JournalRecord],
    group: ConnectGroup,
) -> RollingWorker:
    configured, obstacle = _configured(reader, answer.address, PROPERTY)
    # Without signed requests the leader may write nothing for a week; its transactional id then
    # expires.
    described = known if isinstance(known, LeaderId) else None
    usable = described if group.protocol == "sessioned" or (described and described.who) else None
    evidence = Evidence(
        answer.support,
        answer.version,
        answer.problem,
        answer.leader,
        usable,
        configured,
        journal_records.get(answer.address),
    )
    restart_mode = reader.driver.restart_mode(answer.address) if reader.driver else None
    return RollingWorker(
        address=answer.address,
        url=answer.url,
        mode=mode_of(evidence),
        leader=answer.leader,
        version=answer.version,
        support=answer.support,
        member=members.get(answer.address),
        problem=answer.problem,
        obstacle=obstacle or (reader.driver.check(answer.address) if reader.driver else None),
        restart_group=restart_mode.together if restart_mode else None,
        by_hand=restart_mode.by_hand if restart_mode else True,
        lost=None if answer.address in members else _lost_workers(reader).get(answer.address),
        change_descriptions=_change_descriptions(reader, answer.address),
    )


def _change_descriptions(reader: ClusterReader, worker: str) -> dict[str, str]:
    values = (SourceSupport.DISABLED, SourceSupport.PREPARING, SourceSupport.ENABLED)
    try:
        return (
            {v: reader.driver.describe(worker, PROPERTY, v) for v in values}
            if reader.driver
            else {}
        )
    except ConnectctlError:
        return {}  # check returns the reason


def _configured(
    reader: ClusterReader, worker: str, name: str
) -> tuple[ConfiguredValue | None, str | None]:
    """Return the value of a property that the driver reports, and why it cannot report one."""
    try:
        return (reader.driver.configured(worker, name) if reader.driver else None), None
    except ConnectctlError as e:
        return None, str(e)


def _value(configured: ConfiguredValue | None) -> str | None:
    return configured.value if configured else None


def members_now(
    reader: ClusterReader,
    group: ConnectGroup,
    journal_records: Mapping[str, JournalRecord],
    only: str | None = None,
) -> tuple[RollingWorker, ...]:
    """Return every worker in the group with its mode, or ``only`` the one at that address."""
    chosen = [
        member for member in group.members if member.url and only in (None, address(member.url))
    ]
    return with_modes(
        reader, group, ask_all(reader.calls, group, chosen) if chosen else (), journal_records
    )


def with_modes(
    reader: ClusterReader,
    group: ConnectGroup,
    answers: Sequence[Worker],
    journal_records: Mapping[str, JournalRecord],
) -> tuple[RollingWorker, ...]:
    """Return the workers of the group that gave ``answers``, with their modes."""
    members, known = members_of(group), observe_leader_id(reader.transactions, reader.group_id)
    return tuple(
        _worker(reader, answer, members, known, journal_records, group) for answer in answers
    )


def _listed(reader: ClusterReader, urls: Sequence[str]) -> tuple[list[Connector] | None, list[str]]:
    """The connectors as one worker lists them, for a gate: the others may be away, and read the
    config topic again.
    """
    why = "no worker answers"
    for url in urls:
        try:
            return reading.from_workers(reader.calls, url=url, timeout=LISTING), []
        except ConnectctlError as e:
            why = str(e)
    return None, [f"connector status: {why}"]


def health(reader: ClusterReader, at: float) -> HealthSnapshot:
    """Take a health snapshot for a gate; a failed request becomes its ``problem``, not an error."""
    try:
        group = reader.group()
    except ConnectctlError as e:
        return HealthSnapshot(at, problem=f"cannot describe the worker group: {e}")
    urls = {address(member.url): member.url for member in group.members if member.url}
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        problems = pool.map(lambda url: _response_problem(reader.calls, url), urls.values())
        answers = dict(zip(urls, problems, strict=True))
    silent = {worker: why for worker, why in answers.items() if why}
    found, unseen = _listed(reader, [url for worker, url in urls.items() if worker not in silent])
    if found is None and urls and is_stable(group.state):
        return HealthSnapshot(
            at,
            group.state,
            members_of(group),
            silent,
            group.delay_ms,
            problem=f"could not read {'; '.join(unseen)}",
        )
    return HealthSnapshot(
        at=at,
        state=group.state,
        members=members_of(group),
        silent=silent,
        delay_ms=group.delay_ms,
        leader=leader_of(group),
        unhealthy_components=unhealthy_components(found or [], owners_of(group)),
        assigned={part: member.id for part, member in group.owners.items()},
    )


def leader_of(group: ConnectGroup) -> str | None:
    """The leader's address, None if the group has none."""
    return address(group.leader.url) if group.leader and group.leader.url else None


def _response_problem(calls: ConnectCalls, url: str) -> str | None:
    """Return why the worker's REST server does not respond, None if it does."""
    try:
        calls.get("/", url=url, timeout=PATIENCE)
    except ConnectctlError as e:
        return answer_problem(e, PATIENCE)
    return None
