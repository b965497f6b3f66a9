"""Plans for changes of source offsets: pure, from what was seen and wished to steps, or ``Refused`` with every reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect import offsets_findings
from connectctl.ops.connect.connector import State
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.connectors.steps import Await, SetTargetState
from connectctl.ops.operations.offsets import changes, rest_api
from connectctl.ops.operations.offsets.changes import Merge, Restore, Side, Wish
from connectctl.ops.operations.offsets.digest import digest
from connectctl.ops.operations.offsets.record_changes import Conflict, Decision, Place, Write, decide
from connectctl.ops.operations.offsets.snapshot import Workers
from connectctl.ops.operations.offsets.steps import Backup, Change, Check, Configure, CreateTopic
from connectctl.ops.operations.offsets.task_producers import FenceTasks, Producers

if TYPE_CHECKING:
    from connectctl.ops.connect.run_presence import Holder
    from connectctl.ops.core.journal import Run
    from connectctl.ops.operations.offsets.backup_file import Saved

TOPIC_PROPERTY = "offsets.storage.topic"


@dataclass(frozen=True)
class Subject:
    """What a planner may look at of one connector.

    ``state`` is its verdict, None where it is not configured. ``workers_up`` is False where the group has no workers:
    then no worker runs it, whatever the last status said. ``workers`` is only filled in for changes through their REST API.
    ``producers`` are those of its tasks, ``holders`` the runs of connectctl that have it; ``runs_unseen`` is why those could
    not be seen.
    """

    name: str
    places: tuple[Place, ...]
    state: State | None
    workers_up: bool
    config: dict[str, str]
    workers: Workers = field(default_factory=Workers)
    producers: Producers = field(default_factory=Producers)
    holders: tuple[Holder, ...] = ()
    runs_unseen: str | None = None

    @property
    def at_rest(self) -> bool:
        """Whether no task of it can be writing offsets."""
        return self.state in (State.STOPPED, None) or not self.workers_up


@dataclass(frozen=True)
class Changes:
    """A plan, and what it would write as things are now: the dry run."""

    plan: Plan
    writes: tuple[Write, ...]
    conflicts: tuple[Conflict, ...]

    def as_json(self) -> dict[str, Any]:
        """The plan as scripts get it, with every record."""
        return self.plan.as_json() | {
            "writes": [
                {
                    "topic": w.topic,
                    "kafkaPartition": w.partition,
                    "key": w.key.decode(errors="backslashreplace"),
                    "before": _text(w.before),
                    "after": _text(w.value),
                }
                for w in self.writes
            ],
            "conflicts": [
                {"key": c.key, "global": c.global_, "dedicated": c.dedicated, "taken": c.taken, "why": c.why}
                for c in self.conflicts
            ],
        }


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="backslashreplace")


def plan_changes(
    operation: str,
    cluster_id: str,
    pairs: Sequence[tuple[Subject, Wish]],
    *,
    stop: bool,
    group_id: str = "",
    backups: Mapping[Wish, Saved] | None = None,
    via: str = "kafka",
) -> Changes:
    """The plan that carries out each wish. Raises ``Refused`` with all reasons why it must not be."""
    decisions = [(subject, wish, decide(wish, subject.places, (backups or {}).get(wish))) for subject, wish in pairs]
    reasons = [
        reason for subject, wish, decision in decisions for reason in _reasons(subject, wish, decision, stop, via)
    ]
    if via == "rest":
        reasons += [reason for subject, _, decision in decisions for reason in _beyond_rest(subject, decision)]
    if reasons:
        raise Refused("The offsets are not changed", why="; ".join(dict.fromkeys(reasons)), code="refused")
    steps: list[Any] = []
    for subject, wish, decision in decisions:
        steps += _steps(subject, wish, decision, via)
    return Changes(
        Plan(operation, cluster_id, tuple(steps), group_id=group_id),
        tuple(write for _, _, decision in decisions for write in decision.writes),
        tuple(conflict for _, _, decision in decisions for conflict in decision.conflicts),
    )


def _reasons(subject: Subject, wish: Wish, decision: Decision, stop: bool, via: str) -> list[str]:
    found = [at.problem for at in subject.places if at.problem] + list(decision.refusals)
    if not subject.at_rest and not stop:
        found.append(f"{subject.name} is {subject.state}: stop it first (connectctl connectors stop), or give --stop")
    if subject.holders:
        runs = "; ".join(map(str, subject.holders))
        found.append(f"a connectctl run has {subject.name} ({runs}): end it first, with SIGTERM")
    # The workers' own endpoint fences by itself. All other writes are safe behind a fence only, which needs the ids.
    producers = subject.producers
    if producers.unseen and decision.writes and via == "kafka":
        found.append(producers.unseen)
    # A run that cannot be seen is fenced where it has transactional ids; workers let no other take a connector over.
    if subject.runs_unseen and (producers.unseen or not (producers.ids or subject.workers_up)):
        found.append(subject.runs_unseen)
    return found + (list(_against_merging(subject, wish)) if isinstance(wish, Merge) else [])


def _against_merging(subject: Subject, wish: Merge) -> Iterator[str]:
    own = [at.topic for at in subject.places if at.side is Side.DEDICATED]
    if wish.into == Side.DEDICATED and wish.dedicated_topic not in (None, *own):
        yield (
            f"{subject.name} has its own topic {own[0]}: bring its offsets to the global one first "
            f"(connectctl offsets merge {subject.name} --into global --unset-topic)"
        )
    elsewhere = next((at.bootstrap for at in subject.places if at.bootstrap), None)
    if wish.into == Side.GLOBAL and wish.dedicated_topic is not None and elsewhere:
        yield (
            f"{subject.name} writes to {elsewhere}, and with exactly-once its offsets live there whether or not it names "
            "a topic: leave out --unset-topic"
        )
    if _moves(subject, wish) and not subject.config:
        yield f"{subject.name} is not configured, so its {TOPIC_PROPERTY} cannot be changed"
    elif _moves(subject, wish) and not subject.workers_up:
        yield f"no worker is up to change the {TOPIC_PROPERTY} of {subject.name}"
    if not wish.chosen and (older := stale(subject.places)):
        yield f"{older} Choose with --policy which offsets are right"


def stale(places: Sequence[Place]) -> str | None:
    """What shows that the dedicated topic is from before a downgrade: the global one was written later, otherwise."""
    by_side = {at.side: at for at in places}
    ours, theirs = by_side.get(Side.DEDICATED), by_side.get(Side.GLOBAL)
    if ours is None or theirs is None:
        return None
    for key in sorted(ours.records):
        old, new = ours.record(key), theirs.record(key)
        if old is None or new is None or old.value in (None, new.value):
            continue
        later = (new.timestamp or 0) - (old.timestamp or 0)
        if later > offsets_findings.STALE_MS:
            return (
                f"The dedicated topic {ours.topic} looks stale: what it says of {key.decode(errors='backslashreplace')}, "
                f"{_text(old.value)}, is {later // 1000} s older than the global {_text(new.value) or 'tombstone'}."
            )
    return None


def _beyond_rest(subject: Subject, decision: Decision) -> list[str]:
    found = (
        [] if subject.config else [f"{subject.name} is not configured: workers change offsets of connectors they have"]
    )
    return found + rest_api.obstacles(decision, subject.places, subject.workers)


def _steps(subject: Subject, wish: Wish, decision: Decision, via: str) -> list[Any]:
    moves = isinstance(wish, Merge) and _moves(subject, wish)
    reverted = [
        (name, value)
        for name, value in (wish.properties if isinstance(wish, Restore) else ())
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
    if decision.writes and via == "kafka" and subject.producers.ids:
        steps.append(FenceTasks(subject.name, subject.producers.ids))
    steps.append(Backup(subject.name, topics, dedicated))
    missing = [at for at in subject.places if at.side is Side.DEDICATED and not at.partitions_exist]
    steps += [CreateTopic(subject.name, at.topic, at.bootstrap) for at in missing]
    agreed = None if running else digest(decision.writes)
    summary = _summary(subject, wish, decision, via)
    steps.append(Change(subject.name, changes.to_data(wish), agreed, summary, dedicated, via))
    if isinstance(wish, Merge) and moves:
        value = wish.dedicated_topic if wish.into == Side.DEDICATED else None
        steps.append(Configure(subject.name, TOPIC_PROPERTY, value, subject.config.get(TOPIC_PROPERTY)))
    steps += [Configure(subject.name, name, value, subject.config.get(name)) for name, value in reverted]
    if isinstance(wish, Merge) and wish.into == Side.DEDICATED:
        steps.append(Check(subject.name))
    if running:
        verb, state = ("pause", State.PAUSED) if subject.state is State.PAUSED else ("resume", State.RUNNING)
        steps += [SetTargetState(subject.name, verb, "STOPPED"), Await(subject.name, state)]
    return steps


def _moves(subject: Subject, wish: Merge) -> bool:
    """Whether the connector is to be pointed at another topic."""
    return wish.dedicated_topic is not None and subject.config.get(TOPIC_PROPERTY) != (
        wish.dedicated_topic if wish.into == Side.DEDICATED else None
    )


def _summary(subject: Subject, wish: Wish, decision: Decision, via: str) -> str:
    verbs = {"Merge": "merge", "Copy": "copy", "Put": "set", "Reset": "reset", "Restore": "restore"}
    deleted = sum(write.value is None for write in decision.writes)
    count = f"{len(decision.writes) - deleted} records" + (f", {deleted} tombstones" if deleted else "")
    topics = " and ".join(dict.fromkeys(write.topic for write in decision.writes)) or "no topic"
    policy = f" ({wish.policy})" if isinstance(wish, Merge) else ""
    origin = f" from run {wish.run}" if isinstance(wish, Restore) and wish.run else ""
    way = " through the workers" if via == "rest" else ""
    return f"{verbs[type(wish).__name__]} offsets of {subject.name}{policy}{origin}: write {count} to {topics}{way}"


def first_to_do(run: Run, steps: Sequence[Any]) -> int:
    """Where an interrupted run goes on: at the first step that is not done, but at the connector's first one as long as
    its offsets are not written, for it may have been started meanwhile. What is done for other connectors stays done:
    they run again, and their offsets have moved on.
    """
    undone = [number for number in range(len(steps)) if not run.done(number)]
    if not undone:
        return len(steps)
    its = [number for number, step in enumerate(steps) if step.subject == steps[undone[0]].subject]
    writing = any(isinstance(steps[number], Change) for number in its if number in undone)
    return its[0] if writing else undone[0]
