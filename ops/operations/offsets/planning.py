"""Plans changes of source offsets. Pure: from a snapshot and requests to steps, or ``Refused`` with all reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.connector import State, at_rest_for_plan
from connectctl.ops.connect.last_commit import Side
from connectctl.ops.core.errors import NotAuthorized, Refused
from connectctl.ops.core.finding import counted
from connectctl.ops.core.plan import Plan
from connectctl.ops.kafka.visibility import grant
from connectctl.ops.operations.connectors.steps import Await, SetTargetState, steps_back
from connectctl.ops.operations.offsets import changes, rest_api, validity
from connectctl.ops.operations.offsets.changes import MergeOffsets, OffsetRequest, RestoreBackup
from connectctl.ops.operations.offsets.ends import ends_of
from connectctl.ops.operations.offsets.incomplete import check_seen
from connectctl.ops.operations.offsets.obstacles import obstacles, overruled
from connectctl.ops.operations.offsets.record_changes import Conflict, OffsetChanges, RecordChange, decide, digest
from connectctl.ops.operations.offsets.snapshot import WorkerFacts
from connectctl.ops.operations.offsets.steps import Backup, Change, Check, Configure, CreateTopic
from connectctl.ops.operations.offsets.task_producers import FenceTasks, Producers
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState, is_of
from connectctl.ops.operations.sink_offsets.steps import ChangeGroupOffsets

if TYPE_CHECKING:
    from connectctl.ops.connect.run_presence import Holder
    from connectctl.ops.core.journal import Run
    from connectctl.ops.kafka.acls import Right
    from connectctl.ops.operations.offsets.engine import View

TOPIC_PROPERTY = "offsets.storage.topic"


@dataclass(frozen=True)
class ConnectorState:
    """What the planner depends on, of one connector.

    ``state`` is that of ``state_for_plan``, None if it is not configured. ``workers_up`` is False if the group has no
    workers: then no worker runs it, whatever its last status. ``workers`` is only filled in for changes through REST.
    ``producers`` are those of its tasks, ``holders`` the connectctl runs that run it; ``runs_unseen`` is why those could
    not be listed. ``without_rest``: its workers have no REST API, and cannot be asked to stop it.
    """

    name: str
    places: tuple[OffsetsTopicState, ...]
    state: State | None
    workers_up: bool
    config: dict[str, str]
    workers: WorkerFacts = field(default_factory=WorkerFacts)
    producers: Producers = field(default_factory=Producers)
    holders: tuple[Holder, ...] = ()
    runs_unseen: NotAuthorized | None = None
    without_rest: bool = False

    @property
    def at_rest(self) -> bool:
        """Whether none of its tasks can be writing offsets, by the state that was judged."""
        return at_rest_for_plan(self.state, workers_up=self.workers_up)

    @property
    def running(self) -> bool:
        """Whether its tasks are known to run."""
        return self.workers_up and self.state is State.RUNNING

    def asked(self, request: OffsetRequest) -> OffsetRequest:
        """``request`` with what of the connector's state its decision depends on."""
        return replace(request, running=self.running) if isinstance(request, MergeOffsets) else request


@dataclass(frozen=True)
class Changes:
    """A plan, and the records that it would write now: the dry run."""

    plan: Plan
    writes: Collection[RecordChange]
    conflicts: tuple[Conflict, ...]
    warnings: tuple[str, ...] = ()
    merged: Mapping[str, int] = field(default_factory=dict)
    """By connector the source partitions in the topic that a merge is made of."""


def plan_changes(
    operation: str,
    cluster_id: str,
    pairs: Sequence[tuple[ConnectorState, OffsetRequest]],
    *,
    stop: bool,
    group_id: str = "",
    view: View | None = None,
    via: str = "kafka",
) -> Changes:
    """The plan for all requests, on what ``view`` has read.

    Raises ``Refused`` with all reasons, ``NotAuthorized`` where a missing right is one of them.
    """
    check_seen(at for subject, _ in pairs for at in subject.places)
    asked = [(subject, subject.asked(request)) for subject, request in pairs]
    decisions = [
        (subject, request, view.decide(request) if view else decide(request, subject.places))
        for subject, request in asked
    ]
    reasons = [
        reason for subject, request, decision in decisions for reason in _reasons(subject, request, decision, stop, via)
    ]
    if via == "rest":
        reasons += [reason for subject, _, decision in decisions for reason in _beyond_rest(subject, decision)]
    valid = [
        validity.validated(request, subject.config, subject.places, decision.writes, via)
        for subject, request, decision in decisions
    ]
    invalid = [each.problem for each in valid if each.problem]
    reasons += invalid
    denied = [each for subject, request, decision in decisions for each in _denied(subject, request, decision, via)]
    hint = validity.FORCE if invalid else None
    refuse([*reasons, *(why for why, _ in denied)], [right for _, right in denied if right], hint)
    steps: list[Any] = []
    for subject, request, decision in decisions:
        steps += _steps(subject, request, decision, via)
    return Changes(
        Plan(operation, cluster_id, tuple(steps), group_id=group_id),
        decisions[0][2].writes
        if len(decisions) == 1
        else tuple(write for _, _, decision in decisions for write in decision.writes),
        tuple(conflict for _, _, decision in decisions for conflict in decision.conflicts),
        tuple(each.warning for each in valid if each.warning),
        {subject.name: decision.merged for subject, _, decision in decisions},
    )


def _reasons(
    subject: ConnectorState, request: OffsetRequest, decision: OffsetChanges, stop: bool, via: str
) -> list[str]:
    found = [at.reason for at in subject.places if at.reason] + obstacles(request, subject.places, decision)
    if subject.without_rest:
        found.append(
            f"{subject.name} cannot be stopped, because its workers have no REST API (MirrorMaker 2 in dedicated "
            "mode): stop the process, change the offsets, and start it again"
        )
    elif not subject.at_rest and not stop:
        hint = f"stop it first (connectctl connectors stop {subject.name} --wait), or use --stop"
        found.append(f"{subject.name} is {subject.state}: {hint}")
    if subject.holders:
        runs = "; ".join(map(str, subject.holders))
        found.append(f"a connectctl run is running {subject.name} ({runs}): stop it first with SIGTERM")
    return found + (list(_merge_obstacles(subject, request)) if isinstance(request, MergeOffsets) else [])


def _denied(
    subject: ConnectorState, request: OffsetRequest, decision: OffsetChanges, via: str
) -> Iterator[tuple[str, Right | None]]:
    """Yield why it is unknown who else may write the offsets, with the missing right if that is why."""
    # The workers' REST endpoint fences by itself. Other writes are safe only after fencing, which needs the ids.
    producers, runs = subject.producers, subject.runs_unseen
    if producers.unseen and via == "kafka" and (decision.writes or _moves(subject, request)):
        yield producers.unseen, producers.right
    # A run that cannot be listed is fenced if it has transactional ids; live workers keep the connector to themselves.
    if runs and (producers.unseen or not (producers.ids or subject.workers_up)):
        yield f"{runs.what}: {runs.why}", runs.right


def refuse(reasons: Iterable[str], rights: Sequence[Right] = (), hint: str | None = None) -> None:
    """Raise the error of a change that ``reasons`` forbid, if there are any; ``rights`` are those that are missing."""
    what, why = "Offset change refused", "; ".join(dict.fromkeys(reasons))
    if rights:
        raise NotAuthorized(what, why=why, next_step=grant(rights[0]), right=rights[0])
    if why:
        raise Refused(what, why=why, next_step=hint, code="refused")


def _merge_obstacles(subject: ConnectorState, request: MergeOffsets) -> Iterator[str]:
    own = [at.topic for at in subject.places if at.side is Side.DEDICATED]
    if request.into == Side.DEDICATED and request.dedicated_topic not in (None, *own):
        yield (
            f"{subject.name} has its own offsets topic {own[0]}: merge it into the global one first "
            f"(connectctl offsets merge {subject.name} --into global --unset-topic --stop)"
        )
    elsewhere = next((at.bootstrap for at in subject.places if at.bootstrap), None)
    if request.into == Side.GLOBAL and request.dedicated_topic is not None and elsewhere:
        yield (
            f"{subject.name} writes to {elsewhere}, and with exactly-once its offsets are stored there with or without a "
            "dedicated topic: omit --unset-topic"
        )
    if _changes_offsets_topic(subject, request) and not subject.config:
        yield f"{subject.name} is not configured, so its {TOPIC_PROPERTY} cannot be changed"
    elif _changes_offsets_topic(subject, request) and not subject.workers_up:
        yield f"cannot change {TOPIC_PROPERTY} of {subject.name}: no worker is running"


def current_states(pairs: Sequence[tuple[ConnectorState, OffsetRequest]], changes: Changes) -> list[str]:
    """For each connector, what the topic that it is to continue in has of its offsets, and what it lacks."""
    lines = []
    for subject, request in pairs:
        if not isinstance(request, MergeOffsets):
            continue
        into = next((at for at in subject.places if at.side is Side(request.into)), None)
        other = next((at for at in subject.places if at.side is not Side(request.into)), None)
        if into is None or other is None:
            continue
        own: dict[bytes, bytes | None] = {}
        for write in changes.writes:
            if write.topic == into.topic and is_of(write.key, subject.name):
                own.setdefault(write.key, write.before)
        lacks = sum(before is None for before in own.values())
        count = counted(changes.merged[subject.name], "source partition")
        lines.append(
            f"{subject.name}: {other.topic} has {count}; of these {into.topic} lacks {lacks}, and has another offset for "
            f"{len(own) - lacks} (as of now)."
        )
    return lines


def _beyond_rest(subject: ConnectorState, decision: OffsetChanges) -> list[str]:
    found = (
        []
        if subject.config
        else [f"{subject.name} is not configured: workers only change offsets of configured connectors"]
    )
    return found + rest_api.obstacles(decision, subject.places, subject.workers)


def _steps(subject: ConnectorState, request: OffsetRequest, decision: OffsetChanges, via: str) -> list[Any]:
    moves = _moves(subject, request)
    reverted = [
        (name, value)
        for name, value in (request.properties if isinstance(request, RestoreBackup) else ())
        if subject.config and subject.config.get(name) != value
    ]
    if not decision.writes and not moves and not reverted:
        return []
    running = not subject.at_rest
    topics = tuple(at.topic for at in subject.places)
    own = [at.topic for at in subject.places if at.side is Side.DEDICATED]
    dedicated = own[0] if own else None
    steps: list[Any] = []
    if running:
        steps += [SetTargetState(subject.name, "stop", str(subject.state)), Await(subject.name, State.STOPPED)]
    # The workers' REST endpoint fences, but is asked only where there is something to write.
    if subject.producers.ids and (via == "kafka" or not decision.writes):
        steps.append(FenceTasks(subject.name, subject.producers.ids))
    steps.append(Backup(subject.name, topics, dedicated))
    missing = [at for at in subject.places if at.side is Side.DEDICATED and not at.partitions_exist]
    steps += [CreateTopic(subject.name, at.topic, at.bootstrap) for at in missing]
    agreed = None if running else digest(decision.writes)
    summary = _summary(subject, request, decision, via)
    policy = isinstance(request, MergeOffsets) and request.chosen and running
    steps.append(
        Change(
            subject.name,
            changes.to_data(request),
            agreed,
            summary,
            dedicated,
            via,
            str(subject.state) if running else None,
            overruled(subject.places, decision.conflicts) if policy else None,
            () if running else ends_of(subject.places),
            _topics_written(decision, via),
        )
    )
    if isinstance(request, MergeOffsets) and moves:
        value = request.dedicated_topic if request.into == Side.DEDICATED else None
        steps.append(Configure(subject.name, TOPIC_PROPERTY, value, subject.config.get(TOPIC_PROPERTY)))
    steps += [Configure(subject.name, name, value, subject.config.get(name)) for name, value in reverted]
    if isinstance(request, MergeOffsets) and request.into == Side.DEDICATED:
        in_use = any(at.in_use and at.side is Side.DEDICATED for at in subject.places)
        steps.append(Check(subject.name, request.chosen or in_use))
    if running:
        steps += steps_back(subject.name, str(subject.state))
    return steps


def _topics_written(decision: OffsetChanges, via: str) -> tuple[str, ...]:
    """Return the topics of the workers' cluster to which connectctl itself writes."""
    written = {write.topic for write in decision.writes if write.bootstrap is None} if via == "kafka" else set()
    return tuple(sorted(written))


def _moves(subject: ConnectorState, request: OffsetRequest) -> bool:
    return isinstance(request, MergeOffsets) and _changes_offsets_topic(subject, request)


def _changes_offsets_topic(subject: ConnectorState, request: MergeOffsets) -> bool:
    """Whether the connector gets another offsets topic."""
    return request.dedicated_topic is not None and subject.config.get(TOPIC_PROPERTY) != (
        request.dedicated_topic if request.into == Side.DEDICATED else None
    )


def _summary(subject: ConnectorState, request: OffsetRequest, decision: OffsetChanges, via: str) -> str:
    verb = changes.to_data(request)["kind"]
    written = Counter((write.topic, write.value is None) for write in decision.writes)
    deleted = sum(number for (_, is_tombstone), number in written.items() if is_tombstone)
    count = f"{len(decision.writes) - deleted} records" + (f", {deleted} tombstones" if deleted else "")
    topics = " and ".join(dict.fromkeys(topic for topic, _ in written)) or "no topic"
    policy = f" ({request.policy})" if isinstance(request, MergeOffsets) else ""
    origin = f" from run {request.run}" if isinstance(request, RestoreBackup) and request.run else ""
    way = " through the workers" if via == "rest" else ""
    kept = f"; {counted(decision.moved, 'source partition')} moved since and kept" if decision.moved else ""
    return f"{verb} offsets of {subject.name}{policy}{origin}: write {count} to {topics}{way}{kept}"


_AT_REST = (Change, ChangeGroupOffsets, Configure, Check)
"""The steps of a connector that rest on the offsets that were there when it was stopped."""


def first_to_do(run: Run, steps: Sequence[Any]) -> int:
    """Where an interrupted run resumes: at the first step that is not done, or at the connector's first step while its
    offsets are not written and verified, because it may have been started since. Steps of other connectors are not
    repeated: those run again, and their offsets have advanced.
    """
    undone = [number for number in range(len(steps)) if not run.done(number)]
    if not undone:
        return len(steps)
    its = [number for number, step in enumerate(steps) if step.subject == steps[undone[0]].subject]
    writing = any(isinstance(steps[number], _AT_REST) for number in its if number in undone)
    return its[0] if writing else undone[0]
