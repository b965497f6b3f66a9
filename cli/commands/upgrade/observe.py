"""What migrations have to look at besides the workers: offsets topics, tasks, a stream application; and their way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connectctl.cli.commands.offsets.execution import Target, look_at
from connectctl.cli.commands.tasks import _look
from connectctl.cli.output import findings
from connectctl.ops.connect.connector import State, path_of
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.wait import wait_until
from connectctl.ops.kafka.streams_eos import model_of_value
from connectctl.ops.operations.connectors.steps import Await, SetTargetState
from connectctl.ops.operations.offsets.changes import MergeOffsets, Policy, Side
from connectctl.ops.operations.offsets.planning import plan_changes, stale
from connectctl.ops.operations.offsets.undo import rollbacks
from connectctl.ops.operations.streams_upgrade import planning, run_state
from connectctl.ops.operations.streams_upgrade.observe import ApplicationReader, observe
from connectctl.ops.operations.streams_upgrade.steps import InstanceStep
from connectctl.ops.operations.tasks_max.remedies import Reconfigure
from connectctl.ops.operations.upgrade.planning import RollingPlan, UpgradeRequest
from connectctl.ops.operations.upgrade.steps import Borrowed, WorkerStep

if TYPE_CHECKING:
    from connectctl.cli.commands.upgrade.scene import Scene
    from connectctl.migrations.registry import Migration
    from connectctl.ops.checks.tasks_max.observe import Release, TasksSeen
    from connectctl.ops.clients.protocols import WorkerDriver
    from connectctl.ops.operations.offsets.changes import OffsetRequest
    from connectctl.ops.operations.offsets.planning import Changes, ConnectorState
    from connectctl.ops.operations.upgrade.runs import LoadedRun

Given = Mapping[str, str]
Found = tuple[tuple[Any, ...], Any]
"""Steps of another operation that come first, and what else was seen."""
TOPIC = "offsets.storage.topic"
PAUSE = 0.3
"""Seconds between two looks at a group that rebalances."""


def given_of(pairs: Sequence[str]) -> dict[str, str]:
    """What was given with ``--set NAME=VALUE``. Raises ``BadInput``."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise BadInput(f"--set {pair} is not NAME=VALUE")
        if name in found:
            raise BadInput(f"--set {name} is given twice")
        found[name] = value
    return found


def seen_for(scene: Scene, migration: Migration, given: Given) -> Found:
    """What the migration has to know. Raises ``BadInput`` for what it does not take."""
    migration.check(given)
    if migration.requires == "offsets":
        return {
            "own-offsets-topic": own_topic,
            "global-offsets-topic": home,
            "stale-offsets-topics": stale_topics,
        }[migration.name](scene, given)
    if migration.requires == "tasks":
        return (), tasks(scene, given)
    if migration.requires == "application":
        return (), application(scene, given)
    return home(scene, given) if migration.merges_offsets else ((), None)


# ---------------------------------------------------------------------------------------------------------- offsets


def own_topic(scene: Scene, given: Given) -> Found:
    """The steps that give a connector its own topic, as ``offsets merge --into dedicated --topic`` makes them."""
    name = given.get("connector", "").strip()
    if not name:
        return (), None  # the migration says what is missing
    topic = given.get("topic", "").strip() or f"{name}-offsets"
    policy, chosen = _policy(given)

    def wish(subject: ConnectorState) -> MergeOffsets:
        return MergeOffsets(name, Side.DEDICATED.value, policy or Policy.EFFECTIVE.value, chosen, topic)

    return _changes(scene, [name], wish, lambda _: topic)


def home(scene: Scene, given: Given) -> Found:
    """The steps that bring connectors back to the global topic, as ``offsets merge --into global --unset-topic`` does."""
    policy, chosen = _policy(given)

    def wish(subject: ConnectorState) -> MergeOffsets:
        own = next((at.topic for at in subject.places if at.side is Side.DEDICATED), None)
        if own is None:
            hint = "Its offsets are in the global one."
            raise BadInput(f"{subject.name} has no dedicated offsets topic", next_step=hint)
        return MergeOffsets(subject.name, Side.GLOBAL.value, policy or Policy.EFFECTIVE.value, chosen, own)

    return _changes(scene, _named(scene, given), wish)


def stale_topics(scene: Scene, given: Given) -> Found:
    """What is stale, and the steps for it where ``stale`` says which way."""
    topics = {name: topic for name in _named(scene, given) if (topic := _configured(scene, name))}
    _, subjects = look_at(scene.session, [Target(name, None, topic) for name, topic in topics.items()])
    found = {subject.name: why for subject in subjects if (why := stale(subject.places))}

    def wish(subject: ConnectorState) -> MergeOffsets:
        if given["stale"] == "merge":
            return MergeOffsets(subject.name, Side.DEDICATED.value, Policy.NEWEST.value, True, topics[subject.name])
        return MergeOffsets(subject.name, Side.GLOBAL.value, Policy.NEWEST.value, True, topics[subject.name])

    told = tuple(f"{name}: {why.rstrip('.')}" for name, why in found.items())
    if not found or given.get("stale") not in ("merge", "unset"):
        return (), told
    steps, remarks = _changes(scene, list(found), wish, topics.get)
    return steps, (*told, *(remarks or ()))


def _policy(given: Given) -> tuple[str | None, bool]:
    policy = given.get("policy")
    if policy is not None and policy not in list(Policy):
        raise BadInput(f"policy={policy} is none of {', '.join(Policy)}")
    return policy, policy is not None


def _named(scene: Scene, given: Given) -> list[str]:
    named = [name.strip() for name in given.get("connector", "").split(",") if name.strip()]
    return named or list(scene.snapshot.dedicated)


def _configured(scene: Scene, connector: str) -> str | None:
    """The topic that a connector's configuration names, whatever its workers know of it."""
    found = scene.reader.calls.get(path_of("connectors", connector, "config")).get(TOPIC)
    return None if found is None else str(found)


def _changes(
    scene: Scene,
    names: Sequence[str],
    wish: Callable[[ConnectorState], OffsetRequest],
    topic: Callable[[str], str | None] = lambda name: None,
) -> Found:
    targets: list[Target] = [Target(name, None, topic(name)) for name in names]
    if not targets:
        return (), ()
    looked, subjects = look_at(scene.session, targets)
    pairs = [(subject, wish(subject)) for subject in subjects]
    changes = plan_changes("offsets merge", scene.snapshot.cluster_id, pairs, stop=True, view=looked.view)
    return changes.plan.steps, tuple(how_they_stand(pairs, changes))


def how_they_stand(pairs: Sequence[tuple[ConnectorState, OffsetRequest]], changes: Changes) -> list[str]:
    """For each connector, what the topic that it is to continue in has of its offsets, and what it lacks."""
    lines = []
    for subject, wish in pairs:
        if not isinstance(wish, MergeOffsets):
            continue
        into = next((at for at in subject.places if at.side is Side(wish.into)), None)
        other = next((at for at in subject.places if at.side is not Side(wish.into)), None)
        if into is None or other is None:
            continue
        own = {
            write.key: write.before
            for write in changes.writes
            if write.topic == into.topic and write.key in other.records
        }
        lacks = sum(before is None for before in own.values())
        number = sum(other.value(key) is not None for key in other.records)
        count = f"{number} source partition{'' if number == 1 else 's'}"
        lines.append(
            f"{subject.name}: {other.topic} has {count}; of these {into.topic} lacks {lacks}, and has another offset for "
            f"{len(own) - lacks}, as things are now."
        )
    return lines


# ------------------------------------------------------------------------------------------------------------ tasks


def tasks(scene: Scene, given: Given) -> tuple[TasksSeen, Release | None]:
    """The connectors with their tasks, and the release that is planned."""
    return _look(scene.session), findings.release(given.get("version"))


# ------------------------------------------------------------------------------------------------------ application


def application(scene: Scene, given: Given) -> Any:
    """The stream application as a planner sees it; None where none is named, which the migration refuses."""
    if not given.get("application", "").strip():
        return None
    reader, known = reader_for(scene, given)
    named = [part.strip() for part in given.get("instances", "").split(",") if part.strip()]
    # A rebalance hides what members are, and passes.
    groups = reader.groups
    wait_until(
        lambda: None if "Rebalance" in groups.group(reader.application).state else True, scene.session.timeout, PAUSE
    )
    return observe(reader, named or known)


def reader_for(scene: Scene, given: Given) -> tuple[ApplicationReader, list[str]]:
    """What an application is looked at and changed with, and its instances as the context has them."""
    session, name = scene.session, given["application"].strip()
    driver: WorkerDriver
    driver, instances = session.application(name)
    reader = ApplicationReader(name, session.client_groups, session.transactions, session.brokers, driver)
    return reader, instances


# --------------------------------------------------------------------------------------------------------- the way back


def has_own_way_back(restored: LoadedRun) -> bool:
    """Whether the run changed no worker, but offsets, connectors or a stream application."""
    own = any(isinstance(step, Borrowed | Reconfigure | InstanceStep) for step in restored.steps)
    return own and not any(isinstance(step, WorkerStep) for step in restored.steps)


def rollback_request(scene: Scene, restored: LoadedRun) -> RollingPlan:
    """The plan that takes such a run back from where it stands."""
    wish = UpgradeRequest(None, restored.wish.name, aborts=restored.run.id, given=dict(restored.wish.given))
    remarks: tuple[str, ...] = ()
    if restored.wish.given.get("application"):
        steps, remarks = _application_back(scene, restored)
    elif any(isinstance(step, Borrowed) for step in restored.steps):
        steps = _offsets_back(scene, restored)
    else:
        steps = _tasks_back(restored)
    return RollingPlan(scene.snapshot, wish, steps, remarks=remarks)


def _offsets_back(scene: Scene, restored: LoadedRun) -> tuple[Any, ...]:
    plain = [step.inner if isinstance(step, Borrowed) else step for step in restored.steps]
    wishes = rollbacks(scene.journal, restored.run, plain)
    targets = [Target(name, None, back.dedicated_topic, new=True, purpose=back.wish) for name, back in wishes.items()]
    if not targets:
        return ()
    looked, subjects = look_at(scene.session, targets)
    pairs: list[tuple[ConnectorState, OffsetRequest]] = [(subject, wishes[subject.name].wish) for subject in subjects]
    changes = plan_changes("offsets undo", scene.snapshot.cluster_id, pairs, stop=True, view=looked.view)
    why = f"as it was before {restored.run.id}"
    return (*(Borrowed(step, why) for step in changes.plan.steps), *_resumed(restored, subjects, changes))


def _resumed(restored: LoadedRun, subjects: Sequence[ConnectorState], changes: Changes) -> list[Any]:
    """The steps that start again what the run has stopped and not yet started."""
    found: list[Any] = []
    for subject in subjects:
        was = next((s.now for s in restored.steps if _stops(s, subject.name)), None)
        if was is None or subject.state is not State.STOPPED:
            continue
        verb, state = ("pause", State.PAUSED) if was == State.PAUSED else ("resume", State.RUNNING)
        back = [SetTargetState(subject.name, verb, "STOPPED"), Await(subject.name, state)]
        found += [Borrowed(step, "as it was before") for step in back]
    return found


def _stops(step: Any, connector: str) -> bool:
    inner = step.inner if isinstance(step, Borrowed) else None
    return isinstance(inner, SetTargetState) and inner.verb == "stop" and inner.subject == connector


def _tasks_back(restored: LoadedRun) -> tuple[Any, ...]:
    begun = {mark.step for mark in restored.run.marks if mark.what in ("begun", "done")}
    done = [step for number, step in enumerate(restored.steps) if number in begun and isinstance(step, Reconfigure)]
    return tuple(
        Reconfigure(step.subject, step.was, step.values, step.patch, f"as it was before {restored.run.id}")
        for step in reversed(done)
    )


def _application_back(scene: Scene, restored: LoadedRun) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    was = run_state.Notes.load(scene.journal, restored.run.id).was
    values = {value for value in was.values() if value}
    if not was:
        return (), ()
    to = model_of_value(next(iter(values))) if len(values) == 1 and None not in was.values() else None
    if to is None:
        raise Refused(
            "What the instances were before is not known, so that the run cannot be taken back",
            why=", ".join(f"{instance}: {value or 'unknown'}" for instance, value in sorted(was.items())),
            next_step="Plan the other migration instead, or end the run: connectctl upgrade abort --leave.",
            code="unknown-before",
        )
    reader, known = reader_for(scene, restored.wish.given)
    named = [part.strip() for part in restored.wish.given.get("instances", "").split(",") if part.strip()]
    snapshot = observe(reader, named or known)
    members = next((step.members for step in restored.steps if hasattr(step, "members")), None)
    wish = planning.ApplicationRequest(to, values.pop(), members=members, only=tuple(reversed(was)))
    made = planning.plan(snapshot, wish)
    return made.steps, made.remarks
