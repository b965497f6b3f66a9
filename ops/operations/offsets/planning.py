"""Plans changes of source offsets: steps, or ``Refused`` with all reasons. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.connector import State, at_rest_for_plan
from connectctl.ops.connect.last_commit import Side
from connectctl.ops.connect.offset_store import TOPIC
from connectctl.ops.core.errors import NotAuthorized, Refused
from connectctl.ops.core.finding import counted
from connectctl.ops.core.plan import Plan
from connectctl.ops.kafka.visibility import grant
from connectctl.ops.operations.connectors.steps import while_stopped
from connectctl.ops.operations.offsets import changes, rest_api, validity
from connectctl.ops.operations.offsets.changes import MergeOffsets, OffsetRequest, RestoreBackup
from connectctl.ops.operations.offsets.ends import ends_of
from connectctl.ops.operations.offsets.incomplete import check_readable
from connectctl.ops.operations.offsets.record_changes import (
    Conflict,
    OffsetChanges,
    RecordChange,
    decide,
    digest,
)
from connectctl.ops.operations.offsets.snapshot import WorkerFacts
from connectctl.ops.operations.offsets.steps import Backup, Change, Check, Configure, CreateTopic
from connectctl.ops.operations.offsets.task_producers import FenceTasks, Producers
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState, is_of
from connectctl.ops.operations.offsets.validity import obstacles, overruled
from connectctl.ops.operations.sink_offsets.steps import ChangeGroupOffsets

if TYPE_CHECKING:
    from connectctl.ops.connect.run_presence import Holder
    from connectctl.ops.core.journal import Run
    from connectctl.ops.kafka.acls import Right
    from connectctl.ops.operations.offsets.engine import View


@dataclass(frozen=True)
class ConnectorState:
    """The state of one connector, as the planner requires it.

    ``state`` is from ``state_for_plan``, None if it is not configured. ``workers_up`` is False if
    the group has no workers: then no worker runs it, and its last status is void. ``workers`` is
    only set for changes through REST. ``producers`` are the producers of its tasks, ``holders`` the
    connectctl runs that run it; ``runs_unseen`` is the error of listing them. ``without_rest``: its
    workers have no REST API, and cannot stop it on request.
    """

    name: str
    topic_states: tuple[OffsetsTopicState, ...]
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
        """Return whether none of its tasks can write offsets, according to ``state``."""
        return at_rest_for_plan(self.state, workers_up=self.workers_up)

    @property
    def running(self) -> bool:
        """Return whether its tasks are known to run."""
        return self.workers_up and self.state is State.RUNNING

    def with_running(self, request: OffsetRequest) -> OffsetRequest:
        """Return ``request`` with the part of the connector's state on which its decision
        depends.
        """
        return (
            replace(request, running=self.running) if isinstance(request, MergeOffsets) else request
        )


@dataclass(frozen=True)
class Changes:
    """A plan, and the records that it would write: the dry run."""

    plan: Plan
    writes: Collection[RecordChange]
    conflicts: tuple[Conflict, ...]
    warnings: tuple[str, ...] = ()
    merged: Mapping[str, int] = field(default_factory=dict)
    """The number of source partitions in the source topic of a merge, by connector."""


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
    """Return the plan for all requests, from the topics in ``view``.

    Raises ``Refused`` with all reasons, ``NotAuthorized`` if a missing right is one of them.
    """
    check_readable(state for subject, _ in pairs for state in subject.topic_states)
    complete = [(subject, subject.with_running(request)) for subject, request in pairs]
    decisions = [
        (subject, request, view.decide(request) if view else decide(request, subject.topic_states))
        for subject, request in complete
    ]
    reasons = [
        reason
        for subject, request, decision in decisions
        for reason in _reasons(subject, request, decision, stop, via)
    ]
    if via == "rest":
        reasons += [
            reason
            for subject, _, decision in decisions
            for reason in _beyond_rest(subject, decision)
        ]
    valid = [
        validity.validated(request, subject.config, subject.topic_states, decision.writes, via)
        for subject, request, decision in decisions
    ]
    invalid = [validation.problem for validation in valid if validation.problem]
    reasons += invalid
    denied = [
        reason
        for subject, request, decision in decisions
        for reason in _denied(subject, request, decision, via)
    ]
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
        tuple(validation.warning for validation in valid if validation.warning),
        {subject.name: decision.merged for subject, _, decision in decisions},
    )


def _reasons(
    subject: ConnectorState, request: OffsetRequest, decision: OffsetChanges, stop: bool, via: str
) -> list[str]:
    found = [state.reason for state in subject.topic_states if state.reason] + obstacles(
        request, subject.topic_states, decision
    )
    if subject.without_rest:
        found.append(
            f"{subject.name} cannot be stopped, because its workers have no REST API (MirrorMaker "
            "2 in dedicated mode): stop the process, change the offsets, and start it again"
        )
    elif not subject.at_rest and not stop:
        hint = f"stop it first (connectctl connectors stop {subject.name} --wait), or use --stop"
        found.append(f"{subject.name} is {subject.state}: {hint}")
    if subject.holders:
        runs = "; ".join(map(str, subject.holders))
        found.append(
            f"a connectctl run is running {subject.name} ({runs}): stop it first with SIGTERM"
        )
    return found + (
        list(_merge_obstacles(subject, request)) if isinstance(request, MergeOffsets) else []
    )


def _denied(
    subject: ConnectorState, request: OffsetRequest, decision: OffsetChanges, via: str
) -> Iterator[tuple[str, Right | None]]:
    """Yield the reasons why other writers of the offsets are unknown, with the missing right if it
    is the reason.
    """
    # The workers' REST endpoint fences tasks itself. Other writes are safe only after fencing,
    # which requires the ids.
    producers, runs = subject.producers, subject.runs_unseen
    if producers.unseen and via == "kafka" and (decision.writes or _moves_topic(subject, request)):
        yield producers.unseen, producers.right
    # A run that cannot be listed is fenced if it has transactional ids; a connector with live
    # workers has no run.
    if runs and (producers.unseen or not (producers.ids or subject.workers_up)):
        yield f"{runs.what}: {runs.why}", runs.right


def refuse(reasons: Iterable[str], rights: Sequence[Right] = (), hint: str | None = None) -> None:
    """Raise the error of a change for ``reasons``, if there are any; ``rights`` are the missing
    ones.
    """
    what, why = "Offset change refused", "; ".join(dict.fromkeys(reasons))
    if rights:
        raise NotAuthorized(what, why=why, next_step=grant(rights[0]), right=rights[0])
    if why:
        raise Refused(what, why=why, next_step=hint, code="refused")


def _merge_obstacles(subject: ConnectorState, request: MergeOffsets) -> Iterator[str]:
    dedicated = [state.topic for state in subject.topic_states if state.side is Side.DEDICATED]
    if request.into == Side.DEDICATED and request.dedicated_topic not in (None, *dedicated):
        yield (
            f"{subject.name} has its own offsets topic {dedicated[0]}: merge it into the global "
            f"one first (connectctl offsets merge {subject.name} --into global --unset-topic "
            "--stop)"
        )
    elsewhere = next((state.bootstrap for state in subject.topic_states if state.bootstrap), None)
    if request.into == Side.GLOBAL and request.dedicated_topic is not None and elsewhere:
        yield (
            f"{subject.name} writes to {elsewhere}, and with exactly-once its offsets are stored "
            "there with or without a dedicated topic: omit --unset-topic"
        )
    if _changes_offsets_topic(subject, request) and not subject.config:
        yield f"{subject.name} is not configured, so its {TOPIC} cannot be changed"
    elif _changes_offsets_topic(subject, request) and not subject.workers_up:
        yield f"cannot change {TOPIC} of {subject.name}: no worker is running"


def current_states(
    pairs: Sequence[tuple[ConnectorState, OffsetRequest]], changes: Changes
) -> list[str]:
    """Return a line for each merged connector: the offsets that the target topic lacks, and those
    that differ in it.
    """
    lines = []
    for subject, request in pairs:
        if not isinstance(request, MergeOffsets):
            continue
        into = next(
            (state for state in subject.topic_states if state.side is Side(request.into)), None
        )
        other = next(
            (state for state in subject.topic_states if state.side is not Side(request.into)), None
        )
        if into is None or other is None:
            continue
        replaced: dict[bytes, bytes | None] = {}
        for write in changes.writes:
            if write.topic == into.topic and is_of(write.key, subject.name):
                replaced.setdefault(write.key, write.before)
        lacks = sum(before is None for before in replaced.values())
        count = counted(changes.merged[subject.name], "source partition")
        lines.append(
            f"{subject.name}: {other.topic} has {count}; of these {into.topic} lacks {lacks}, and "
            f"has another offset for {len(replaced) - lacks} (as of now)."
        )
    return lines


def _beyond_rest(subject: ConnectorState, decision: OffsetChanges) -> list[str]:
    found = (
        []
        if subject.config
        else [
            f"{subject.name} is not configured: workers only change offsets of configured "
            "connectors"
        ]
    )
    return found + rest_api.obstacles(decision, subject.topic_states, subject.workers)


def _steps(
    subject: ConnectorState, request: OffsetRequest, decision: OffsetChanges, via: str
) -> list[Any]:
    moves = _moves_topic(subject, request)
    reverted = [
        (name, value)
        for name, value in (request.properties if isinstance(request, RestoreBackup) else ())
        if subject.config and subject.config.get(name) != value
    ]
    if not decision.writes and not moves and not reverted:
        return []
    running = not subject.at_rest
    topics = tuple(state.topic for state in subject.topic_states)
    dedicated_topics = [
        state.topic for state in subject.topic_states if state.side is Side.DEDICATED
    ]
    dedicated_topic = dedicated_topics[0] if dedicated_topics else None
    steps: list[Any] = []
    # The workers' REST endpoint fences, but gets a request only if there are offsets to write.
    if subject.producers.ids and (via == "kafka" or not decision.writes):
        steps.append(FenceTasks(subject.name, subject.producers.ids))
    steps.append(Backup(subject.name, topics, dedicated_topic))
    missing = [
        state
        for state in subject.topic_states
        if state.side is Side.DEDICATED and not state.partitions_exist
    ]
    steps += [CreateTopic(subject.name, state.topic, state.bootstrap) for state in missing]
    agreed = None if running else digest(decision.writes)
    summary = _summary(subject, request, decision, via)
    policy = isinstance(request, MergeOffsets) and request.chosen and running
    steps.append(
        Change(
            subject.name,
            changes.to_data(request),
            agreed,
            summary,
            dedicated_topic,
            via,
            str(subject.state) if running else None,
            overruled(subject.topic_states, decision.conflicts) if policy else None,
            () if running else ends_of(subject.topic_states),
            _topics_written(decision, via),
        )
    )
    if isinstance(request, MergeOffsets) and moves:
        value = request.dedicated_topic if request.into == Side.DEDICATED else None
        steps.append(Configure(subject.name, TOPIC, value, subject.config.get(TOPIC)))
    steps += [
        Configure(subject.name, name, value, subject.config.get(name)) for name, value in reverted
    ]
    if isinstance(request, MergeOffsets) and request.into == Side.DEDICATED:
        in_use = any(
            state.in_use and state.side is Side.DEDICATED for state in subject.topic_states
        )
        steps.append(Check(subject.name, request.chosen or in_use))
    return while_stopped(subject.name, subject.state if running else None, steps)


def _topics_written(decision: OffsetChanges, via: str) -> tuple[str, ...]:
    """Return the topics of the workers' cluster to which connectctl itself writes."""
    written = (
        {write.topic for write in decision.writes if write.bootstrap is None}
        if via == "kafka"
        else set()
    )
    return tuple(sorted(written))


def _moves_topic(subject: ConnectorState, request: OffsetRequest) -> bool:
    return isinstance(request, MergeOffsets) and _changes_offsets_topic(subject, request)


def _changes_offsets_topic(subject: ConnectorState, request: MergeOffsets) -> bool:
    """Return whether the connector gets another offsets topic."""
    return request.dedicated_topic is not None and subject.config.get(TOPIC) != (
        request.dedicated_topic if request.into == Side.DEDICATED else None
    )


def _summary(
    subject: ConnectorState, request: OffsetRequest, decision: OffsetChanges, via: str
) -> str:
    verb = changes.to_data(request)["kind"]
    written = Counter((write.topic, write.value is None) for write in decision.writes)
    deleted = sum(number for (_, is_tombstone), number in written.items() if is_tombstone)
    count = counted(len(decision.writes) - deleted, "record") + (
        f", {counted(deleted, 'tombstone')}" if deleted else ""
    )
    topics = " and ".join(dict.fromkeys(topic for topic, _ in written)) or "no topic"
    policy = f" ({request.policy})" if isinstance(request, MergeOffsets) else ""
    origin = (
        f" from run {request.run}" if isinstance(request, RestoreBackup) and request.run else ""
    )
    way = " through the workers" if via == "rest" else ""
    kept = (
        f"; {counted(decision.moved, 'source partition')} moved since and kept"
        if decision.moved
        else ""
    )
    return f"{verb} offsets of {subject.name}{policy}{origin}: write {count} to {topics}{way}{kept}"


_AT_REST = (Change, ChangeGroupOffsets, Configure, Check)
"""The steps of a connector that depend on its offsets after its stop."""


def first_to_do(run: Run, steps: Sequence[Any]) -> int:
    """Return the index at which an interrupted run resumes: of the first step that is not done, or
    of the connector's first step while its offsets are not written and verified.

    The connector may have been started since. Steps of other connectors are not repeated: these run
    again, and their offsets have advanced.
    """
    undone = [number for number in range(len(steps)) if not run.done(number)]
    if not undone:
        return len(steps)
    of_connector = [
        number for number, step in enumerate(steps) if step.subject == steps[undone[0]].subject
    ]
    writing = any(
        isinstance(steps[number], _AT_REST) for number in of_connector if number in undone
    )
    return of_connector[0] if writing else undone[0]
