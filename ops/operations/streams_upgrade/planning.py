"""Plan the change between per-partition and group-aware producers (KIP-447). Pure; raises
``Refused`` with all reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.kafka.consumer_group import GROUP_AWARE, KNOWS_V2, first_release_of, release_of
from connectctl.ops.kafka.group_state import is_stable
from connectctl.ops.kafka.streams_eos import (
    BETA,
    PER_PARTITION,
    PROPERTY,
    V2,
    ProducerModel,
    model_of_value,
    process_of,
)
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
from connectctl.ops.operations.streams_upgrade.fencing import FenceUnusedIds
from connectctl.ops.operations.streams_upgrade.snapshot import ApplicationSnapshot, Instance
from connectctl.ops.operations.streams_upgrade.steps import (
    ApplicationGate,
    AwaitInstance,
    RestartInstance,
    SetGuarantee,
)

FIRST = (
    "KIP-447, Compatibility: every instance has to commit with its generation, and wait for what "
    "others left open, before one of them stops using a producer per partition"
)
SECOND = "KIP-447, Compatibility: the second roll, when every instance is group-aware"
BACK = "KIP-447, Compatibility: one roll is enough on a release that is group-aware"
OLDER = "KIP-447, Compatibility: an older release only after no producer is group-aware any more"


@dataclass(frozen=True)
class ApplicationRequest:
    """The requested producer model; ``value`` is the property's value, by default the best that the
    release supports.

    ``older``: a release before 2.6 is installed afterwards. ``members``: the expected number of
    group members, by default the current one. ``only``: the instances that the rollback of a run
    changes.
    """

    to: ProducerModel
    value: str | None = None
    older: bool = False
    members: int | None = None
    only: tuple[str, ...] | None = None


def plan(snapshot: ApplicationSnapshot, request: ApplicationRequest) -> PlannedSteps:
    """Plan the steps for ``request``. Raises ``Refused`` with all reasons."""
    value = request.value or target_guarantee(snapshot, request.to)
    if not snapshot.instances:
        raise Refused(
            f"No instance of {snapshot.application} is named",
            next_step="Give --set instances=HOST:PORT,…, or describe it under applications in the "
            "context.",
            code="no-instances",
        )
    if model_of_value(value) is not request.to:
        raise BadInput(f"{value} is not a {request.to} processing.guarantee")
    first, second = rolls(snapshot, request, value)
    open_ids = [known for known in snapshot.ids_of(_other(request.to)) if known.open]
    is_older = snapshot.all_streams and max(snapshot.protocols) < GROUP_AWARE
    pending = bool(first or second or open_ids or (request.older and not is_older))
    if pending and (reasons := list(_reasons(snapshot, request))):
        raise Refused(
            f"Upgrade of {snapshot.application} refused", why="; ".join(reasons), code="refused"
        )
    steps = tuple(_steps(snapshot, request, value, first, second)) if pending else ()
    return PlannedSteps(
        steps, (*_remarks(snapshot), *_unknown(snapshot, request, first, value, pending))
    )


def _other(kind: ProducerModel) -> ProducerModel:
    return (
        ProducerModel.PER_PARTITION
        if kind is ProducerModel.GROUP_AWARE
        else ProducerModel.GROUP_AWARE
    )


def target_guarantee(snapshot: ApplicationSnapshot, to: ProducerModel) -> str:
    """Return the guarantee that the release supports; the newer name if that release is not yet
    installed.
    """
    if to is ProducerModel.PER_PARTITION:
        return PER_PARTITION
    return BETA if snapshot.group_aware and min(snapshot.protocols) < KNOWS_V2 else V2


def rolls(
    snapshot: ApplicationSnapshot, request: ApplicationRequest, value: str
) -> tuple[list[Instance], list[Instance]]:
    """Return the instances of the first roll, to a group-aware release, and those whose property
    changes.
    """
    chosen = [i for i in snapshot.instances if request.only is None or i.address in request.only]
    second = [
        i
        for i in chosen
        if i.configured != value
        or (request.to is ProducerModel.GROUP_AWARE and _not_restarted(snapshot, i))
    ]
    needed = KNOWS_V2 if value == V2 else GROUP_AWARE
    supported = snapshot.all_streams and min(snapshot.protocols) >= needed
    first = chosen if request.to is ProducerModel.GROUP_AWARE and not supported else []
    return first, second


def _not_restarted(snapshot: ApplicationSnapshot, instance: Instance) -> bool:
    """Whether a process runs with another value than its file has: it has partitions, but no
    transactional id.
    """
    here = {
        m.streams.process
        for m in snapshot.group.members
        if m.streams and m.streams.server == instance.address
    }
    busy = {m.streams.process for m in snapshot.group.members if m.streams and m.partitions}
    known = {process_of(snapshot.application, each.id) for each in snapshot.ids}
    return bool(here & busy - known)


# -------------------------------------------------------------------------------- reasons to refuse


def _reasons(snapshot: ApplicationSnapshot, request: ApplicationRequest) -> Iterator[str]:
    group, name = snapshot.group, snapshot.application
    if not group.members:
        yield f"the group {name} has no members: start the application first"
        return
    if group.kind != "consumer":
        yield f"the group {name} speaks the protocol {group.kind!r}, and not that of consumers"
        return
    if not is_stable(group.state):
        yield f"the group {name} is {group.state}: wait until the rebalance is over"
        return
    if not snapshot.all_streams:
        yield f"not every member of the group {name} is a Kafka Streams instance"
    elif len(snapshot.processes) != len(snapshot.instances):
        yield (
            f"{len(snapshot.processes)} processes are in the group and {len(snapshot.instances)} "
            "instances are given: start or give the missing ones"
        )
    if snapshot.old_brokers:
        yield f"brokers must be 2.5 or newer first: {'; '.join(snapshot.old_brokers)}"
    yield from (f"could not read {unseen}" for unseen in snapshot.unseen)
    yield from _instance_reasons(snapshot, request)


def _instance_reasons(snapshot: ApplicationSnapshot, request: ApplicationRequest) -> Iterator[str]:
    for instance in snapshot.instances:
        if instance.obstacle:
            yield f"{instance.address} cannot be changed: {instance.obstacle}"
        elif instance.source and instance.kind is None:
            text = f"{PROPERTY}={instance.configured}" if instance.configured else f"no {PROPERTY}"
            yield f"{instance.address} has {text}, which is not exactly-once; nothing to migrate"
    ahead = [i.address for i in snapshot.instances if i.kind is ProducerModel.GROUP_AWARE]
    if (
        request.to is ProducerModel.GROUP_AWARE
        and ahead
        and snapshot.all_streams
        and not snapshot.group_aware
    ):
        yield (
            f"{', '.join(ahead)} is group-aware already while Kafka Streams 2.5 or older runs: "
            "roll it back first"
        )


# ---------------------------------------------------------------------------------------- the steps


def _steps(
    snapshot: ApplicationSnapshot,
    request: ApplicationRequest,
    value: str,
    first: Sequence[Instance],
    second: Sequence[Instance],
) -> Iterator[Any]:
    count, lag = request.members or len(snapshot.group.members), snapshot.lag or 0
    name = snapshot.application

    def gate(instance: Instance) -> ApplicationGate:
        return ApplicationGate(
            name, count, lag, reason=f"one instance at a time: this was {instance.address}"
        )

    yield ApplicationGate(
        name, count, lag, first=True, reason="problems from before must not be attributed to it"
    )
    needed = KNOWS_V2 if value == V2 else GROUP_AWARE
    for instance in first:
        yield RestartInstance(instance.address, 1, FIRST, members=count)
        yield AwaitInstance(
            instance.address,
            1,
            "its release shows in its subscription",
            protocol=needed,
            by_hand=instance.by_hand,
        )
        yield gate(instance)
    for instance in second:
        yield SetGuarantee(
            instance.address, 2, _change_reason(request), now=instance.configured or "", value=value
        )
        yield RestartInstance(instance.address, 2, _restart_reason(instance, value), members=count)
        yield AwaitInstance(
            instance.address,
            2,
            "",
            protocol=_lowest_protocol(request, needed),
            by_hand=instance.by_hand,
        )
        yield gate(instance)
    yield FenceUnusedIds(name, request.to)
    for instance in snapshot.instances if request.older else ():
        yield RestartInstance(instance.address, 3, OLDER, members=count)
        yield AwaitInstance(
            instance.address,
            3,
            OLDER,
            most=GROUP_AWARE - 1,
            by_hand=instance.by_hand,
        )
        yield gate(instance)


def _change_reason(request: ApplicationRequest) -> str:
    return SECOND if request.to is ProducerModel.GROUP_AWARE else BACK


def _lowest_protocol(request: ApplicationRequest, needed: int) -> int:
    return needed if request.to is ProducerModel.GROUP_AWARE else GROUP_AWARE


def _restart_reason(instance: Instance, value: str) -> str:
    change = instance.change_descriptions.get(value)
    return f"an instance reads its properties when it starts{f': {change}' if change else ''}"


# ----------------------------------------------------------------------------------------- messages


def _remarks(snapshot: ApplicationSnapshot) -> Iterator[str]:
    group = snapshot.group
    releases = ", ".join(release_of(p) for p in sorted(snapshot.protocols)) or "unknown"
    yield (
        f"{snapshot.application}: {len(group.members)} members of {len(snapshot.processes)} "
        f"processes, the group is {group.state}, Kafka Streams {releases}, lag "
        f"{snapshot.lag or 0}."
    )
    for kind in ProducerModel:
        known = snapshot.ids_of(kind)
        opened = sum(each.open for each in known)
        also = f", {opened} with an open transaction" if opened else ""
        yield f"{len(known)} transactional ids are {kind}{also}."


def _unknown(
    snapshot: ApplicationSnapshot,
    request: ApplicationRequest,
    first: Sequence[Instance],
    value: str,
    pending: bool,
) -> Iterator[str]:
    if not pending:
        return
    silent = [instance.address for instance in snapshot.instances if not instance.source]
    if silent:
        yield f"{PROPERTY} of {', '.join(silent)} is unknown: its driver cannot read it."
    if first:
        needed = first_release_of(KNOWS_V2 if value == V2 else GROUP_AWARE)
        yield (
            "The first roll starts the installed release on each instance: install Kafka Streams "
            f"{needed} or newer before, and leave {PROPERTY} unchanged. The run checks the "
            "release of each instance that comes back, and stops at an older one."
        )
    if request.to is ProducerModel.PER_PARTITION:
        yield (
            f"Kafka Streams 4.0 does not support {PER_PARTITION} and fails with it; 3.2 to 4.x "
            "look the same from outside."
        )
    if request.older:
        yield "You choose the older release; the run checks that it is 2.5 or older."
    yield (
        "An instance leaves its members behind when it stops, unless configured otherwise: the "
        "group is stable again after session.timeout.ms (45 s by default), and that is waited "
        "for."
    )
