"""What migrations have to look at besides the workers: offsets topics, tasks, a stream application; and their way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connectctl.cli.commands.offsets.execution import Target, look_at
from connectctl.cli.commands.tasks import _look
from connectctl.cli.output import findings
from connectctl.ops.connect.connector import path_of
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.wait import wait_until
from connectctl.ops.operations.offsets.changes import MergeOffsets, Policy, Side
from connectctl.ops.operations.offsets.planning import current_states, plan_changes, stale
from connectctl.ops.operations.offsets.undo import rollbacks
from connectctl.ops.operations.streams_upgrade import planning, run_state
from connectctl.ops.operations.streams_upgrade.observe import ApplicationReader, observe
from connectctl.ops.operations.upgrade import runs
from connectctl.ops.operations.upgrade.planning import RollingPlan, UpgradeRequest
from connectctl.ops.operations.upgrade.steps import IncludedStep

if TYPE_CHECKING:
    from connectctl.cli.commands.upgrade.scene import Scene
    from connectctl.migrations.registry import Migration
    from connectctl.ops.checks.tasks_max.observe import Release, TasksSeen
    from connectctl.ops.clients.protocols import WorkerDriver
    from connectctl.ops.operations.offsets.changes import OffsetRequest
    from connectctl.ops.operations.offsets.planning import ConnectorState
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

    def request(subject: ConnectorState) -> MergeOffsets:
        return MergeOffsets(name, Side.DEDICATED.value, policy or Policy.EFFECTIVE.value, chosen, topic)

    return _changes(scene, [name], request, lambda _: topic)


def home(scene: Scene, given: Given) -> Found:
    """The steps that bring connectors back to the global topic, as ``offsets merge --into global --unset-topic`` does."""
    policy, chosen = _policy(given)

    def request(subject: ConnectorState) -> MergeOffsets:
        own = next((at.topic for at in subject.places if at.side is Side.DEDICATED), None)
        if own is None:
            hint = "Its offsets are in the global one."
            raise BadInput(f"{subject.name} has no dedicated offsets topic", next_step=hint)
        return MergeOffsets(subject.name, Side.GLOBAL.value, policy or Policy.EFFECTIVE.value, chosen, own)

    return _changes(scene, _named(scene, given), request)


def stale_topics(scene: Scene, given: Given) -> Found:
    """What is stale, and the steps for it where ``stale`` says which way."""
    topics = {name: topic for name in _named(scene, given) if (topic := _configured(scene, name))}
    _, subjects = look_at(scene.session, [Target(name, None, topic) for name, topic in topics.items()])
    found = {subject.name: why for subject in subjects if (why := stale(subject.places))}

    def request(subject: ConnectorState) -> MergeOffsets:
        if given["stale"] == "merge":
            return MergeOffsets(subject.name, Side.DEDICATED.value, Policy.NEWEST.value, True, topics[subject.name])
        return MergeOffsets(subject.name, Side.GLOBAL.value, Policy.NEWEST.value, True, topics[subject.name])

    told = tuple(f"{name}: {why.rstrip('.')}" for name, why in found.items())
    if not found or given.get("stale") not in ("merge", "unset"):
        return (), told
    steps, remarks = _changes(scene, list(found), request, topics.get)
    return steps, (*told, *(remarks or ()))


def _policy(given: Given) -> tuple[str | None, bool]:
    policy = given.get("policy")
    if policy is not None and policy not in list(Policy):
        raise BadInput(f"policy={policy} is not one of {', '.join(Policy)}")
    return policy, policy is not None


def _named(scene: Scene, given: Given) -> list[str]:
    return _listed(given, "connector") or list(scene.snapshot.dedicated)


def _listed(given: Given, name: str) -> list[str]:
    return [part.strip() for part in given.get(name, "").split(",") if part.strip()]


def _configured(scene: Scene, connector: str) -> str | None:
    """The topic that a connector's configuration names, whatever its workers know of it."""
    found = scene.reader.calls.get(path_of("connectors", connector, "config")).get(TOPIC)
    return None if found is None else str(found)


def _changes(
    scene: Scene,
    names: Sequence[str],
    request: Callable[[ConnectorState], OffsetRequest],
    topic: Callable[[str], str | None] = lambda name: None,
) -> Found:
    targets: list[Target] = [Target(name, None, topic(name)) for name in names]
    if not targets:
        return (), ()
    looked, subjects = look_at(scene.session, targets)
    pairs = [(subject, request(subject)) for subject in subjects]
    changes = plan_changes("offsets merge", scene.snapshot.cluster_id, pairs, stop=True, view=looked.view)
    return changes.plan.steps, tuple(current_states(pairs, changes))


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
    # A rebalance hides what members are, and passes.
    groups = reader.groups
    wait_until(
        lambda: None if "Rebalance" in groups.group(reader.application).state else True, scene.session.timeout, PAUSE
    )
    return observe(reader, _listed(given, "instances") or known)


def reader_for(scene: Scene, given: Given) -> tuple[ApplicationReader, list[str]]:
    """What an application is looked at and changed with, and its instances as the context has them."""
    session, name = scene.session, given["application"].strip()
    driver: WorkerDriver
    driver, instances = session.application(name)
    reader = ApplicationReader(name, session.client_groups, session.transactions, session.brokers, driver)
    return reader, instances


# --------------------------------------------------------------------------------------------------------- the way back


def rollback_request(scene: Scene, restored: LoadedRun) -> RollingPlan:
    """The plan that takes such a run back from where it stands."""
    request = UpgradeRequest(None, restored.request.name, aborts=restored.run.id, given=dict(restored.request.given))
    remarks: tuple[str, ...] = ()
    if restored.request.given.get("application"):
        steps, remarks = _application_back(scene, restored)
    elif any(isinstance(step, IncludedStep) for step in restored.steps):
        steps = _offsets_back(scene, restored)
    else:
        steps = runs.tasks_back(restored)
    return RollingPlan(scene.snapshot, request, steps, remarks=remarks)


def _offsets_back(scene: Scene, restored: LoadedRun) -> tuple[Any, ...]:
    plain = [step.inner if isinstance(step, IncludedStep) else step for step in restored.steps]
    requests = rollbacks(scene.journal, restored.run, plain)
    targets = [
        Target(name, None, back.dedicated_topic, new=True, purpose=back.request) for name, back in requests.items()
    ]
    if not targets:
        return ()
    looked, subjects = look_at(scene.session, targets)
    pairs: list[tuple[ConnectorState, OffsetRequest]] = [
        (subject, requests[subject.name].request) for subject in subjects
    ]
    changes = plan_changes("offsets undo", scene.snapshot.cluster_id, pairs, stop=True, view=looked.view)
    why = f"as it was before {restored.run.id}"
    return (*(IncludedStep(step, why) for step in changes.plan.steps), *runs.resumed(restored, subjects))


def _application_back(scene: Scene, restored: LoadedRun) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    was = run_state.Notes.load(scene.journal, restored.run.id).was
    if not was:
        return (), ()
    request = runs.application_back(restored, was)
    reader, instances = reader_for(scene, restored.request.given)
    made = planning.plan(observe(reader, _listed(restored.request.given, "instances") or instances), request)
    return made.steps, made.remarks
