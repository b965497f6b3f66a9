"""A sandbox that is up, in the hands of a test, a demo or a command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectctl.ops.sandbox import properties, registry
from connectctl.ops.sandbox.access import access
from connectctl.ops.sandbox.groups import Group, current
from connectctl.ops.sandbox.jars.cache import Jars, cached
from connectctl.ops.sandbox.layout import SandboxLayout
from connectctl.ops.sandbox.record import SandboxRecord
from connectctl.ops.sandbox.spec import SandboxSpec


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A running sandbox. ``was_running``: it ran before ``up``."""

    layout: SandboxLayout
    was_running: bool = False

    @property
    def record(self) -> SandboxRecord:
        """Its current record. Raises ConnectctlError when it is gone."""
        return current(self.layout)

    @property
    def spec(self) -> SandboxSpec:
        return self.record.spec

    @property
    def cluster_id(self) -> str:
        return self.record.cluster_id

    @property
    def listeners(self) -> dict[str, str]:
        """Return the brokers' addresses by listener name, those of ``extra_listeners`` too."""
        known = self.record
        return {
            name: known.addresses(name) for name in known.listeners if name != properties.CONTROLLER
        }

    @property
    def bootstrap_servers(self) -> str:
        return self.record.bootstrap_servers

    @property
    def client(self) -> dict[str, Any]:
        """librdkafka's properties of the broker's super user."""
        return dict(access(self.layout, self.record).client)

    @property
    def group(self) -> Group:
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
    def registry_url(self) -> str | None:
        """Return the address of the Schema Registry's API; None without one."""
        return registry.url(self.record.node(registry.NAME).port) if self.spec.registry else None

    @property
    def context_path(self) -> Path:
        return self.layout.context

    @property
    def missing_plugins(self) -> tuple[str, ...]:
        """Connector plugins that the Maven repository does not have in this version."""
        return self._plugins.missing

    @property
    def older_plugins(self) -> dict[str, str]:
        """The release of the plugins that the Maven repository has in an older version only."""
        return self._plugins.older

    @property
    def _plugins(self) -> Jars:
        """Return the jars of the workers; without workers none are missing."""
        jars = cached(self.spec.version) if self.spec.workers else None
        return jars or Jars(self.layout.root)
