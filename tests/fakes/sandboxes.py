"""What tests do to a sandbox that people do not: more groups and workers, and brokers that die."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from connectctl.ops.sandbox import groups
from connectctl.ops.sandbox.groups import Group, launcher
from connectctl.ops.sandbox.handle import Sandbox
from connectctl.ops.sandbox.launch import Launcher
from connectctl.ops.sandbox.layout import broker_name
from connectctl.ops.sandbox.spec import SandboxSpec


def properties_file(sandbox: Sandbox, number: int) -> Path:
    """The properties file of a worker of the main group; edits are read when the worker is started
    again.
    """
    return sandbox.layout.properties(sandbox.group.worker_name(number))


def extra_group(
    sandbox: Sandbox,
    group_id: str,
    *,
    workers: int = 1,
    support: str = "disabled",
    properties: Mapping[str, str] | None = None,
    kafka_version: str | None = None,
) -> Group:
    """Another Connect cluster on the same broker, with its own group id and internal topics."""
    with launcher(sandbox.layout) as launch:
        nodes = groups.prepare(launch, group_id, workers, support, properties or {}, kafka_version)
        groups.start(launch, group_id, nodes)
    return Group(sandbox.layout, group_id)


def add_worker(
    group: Group,
    *,
    support: str | None = None,
    properties: Mapping[str, str] | None = None,
    kafka_version: str | None = None,
    wait: bool = True,
) -> int:
    """Start one more worker of ``group``; gives its number.

    In the main group it is like the others where nothing else is said; in another, Connect's
    defaults hold.
    """
    with launcher(group.layout) as launch:
        spec = launch.record.spec
        like = (
            spec
            if group.group_id == spec.group_id
            else SandboxSpec(spec.name, kafka_version=spec.kafka_version)
        )
        extra = {**like.extra_worker_properties, **(properties or {})}
        (node,) = groups.prepare(
            launch, group.group_id, 1, support or like.support, extra, kafka_version
        )
        groups.start(launch, group.group_id, [node], wait=wait)
    return len(group.workers)


def kill_broker(sandbox: Sandbox, number: int = 1) -> None:
    """End a broker by SIGKILL; its data stays. Brokers are numbered from 1."""
    with launcher(sandbox.layout) as launch:
        launch.end(broker_name(number), kill=True)


def start_broker(sandbox: Sandbox, number: int = 1) -> None:
    """Start a broker on its data and properties file, and wait until it answers; the workers find
    it again.
    """
    with launcher(sandbox.layout) as launch:
        launch.end(broker_name(number), kill=True)
        launch.start_brokers([number])
    # Without the lock: a broker of a cluster that has lost its quorum answers when another one was
    # started, too.
    Launcher(sandbox.layout, sandbox.record).wait_for_brokers([number])
