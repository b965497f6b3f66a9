"""A sandbox that is up, in the hands of a test, a demo or a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectctl.ops.sandbox import groups, properties
from connectctl.ops.sandbox.access import access
from connectctl.ops.sandbox.groups import Group, current, launcher
from connectctl.ops.sandbox.jars.cache import cached
from connectctl.ops.sandbox.launch import Launcher
from connectctl.ops.sandbox.layout import SandboxLayout, broker_name
from connectctl.ops.sandbox.record import SandboxRecord
from connectctl.ops.sandbox.spec import SandboxSpec


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A sandbox that is up. ``was_running`` says that ``up`` found it so."""

    layout: SandboxLayout
    was_running: bool = False

    @property
    def record(self) -> SandboxRecord:
        """What is written down about it now. Raises ConnectctlError when it is gone."""
        return current(self.layout)

    @property
    def spec(self) -> SandboxSpec:
        return self.record.spec

    @property
    def cluster_id(self) -> str:
        return self.record.cluster_id

    @property
    def listeners(self) -> dict[str, str]:
        """The brokers' addresses by listener name, those of ``extra_listeners`` too."""
        known = self.record
        return {name: known.addresses(name) for name in known.listeners if name != properties.CONTROLLER}

    @property
    def bootstrap_servers(self) -> str:
        return self.record.bootstrap_servers

    @property
    def client(self) -> dict[str, Any]:
        """librdkafka's properties of the broker's super user."""
        return dict(access(self.layout, self.record).client)

    @property
    def group(self) -> Group:
        """The main group of workers."""
        return Group(self.layout, f"connect-sandbox-{self.layout.name}")

    @property
    def group_id(self) -> str:
        return self.group.group_id

    @property
    def topics(self) -> dict[str, str]:
        return self.group.topics

    @property
    def rest_urls(self) -> tuple[str, ...]:
        return self.group.rest_urls

    @property
    def context_path(self) -> Path:
        return self.layout.context

    @property
    def missing_plugins(self) -> tuple[str, ...]:
        """Connector plugins that the Maven repository does not have in this version."""
        jars = cached(self.spec.version) if self.spec.workers else None
        return jars.missing if jars else ()

    def properties_file(self, number: int) -> Path:
        """The properties file of a worker of the main group; edits are read when the worker is started again."""
        return self.layout.properties(self.group.worker_name(number))

    def extra_group(
        self,
        group_id: str,
        *,
        workers: int = 1,
        support: str = "disabled",
        properties: Mapping[str, str] | None = None,
        kafka_version: str | None = None,
    ) -> Group:
        """Another Connect cluster on the same broker, with its own group id and internal topics."""
        with launcher(self.layout) as launch:
            nodes = groups.prepare(launch, group_id, workers, support, properties or {}, kafka_version)
            groups.start(launch, group_id, nodes)
        return Group(self.layout, group_id)

    def kill_broker(self, number: int = 1) -> None:
        """End a broker by SIGKILL; its data stays. Brokers are numbered from 1."""
        with launcher(self.layout) as launch:
            launch.end(broker_name(number), kill=True)

    def start_broker(self, number: int = 1) -> None:
        """Start a broker on its data and properties file, and wait until it answers; the workers find it again."""
        with launcher(self.layout) as launch:
            launch.end(broker_name(number), kill=True)
            launch.start_brokers([number])
        # Without the lock: a broker of a cluster that has lost its quorum answers when another one was started, too.
        Launcher(self.layout, self.record).wait_for_brokers([number])
