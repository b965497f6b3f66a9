"""A directory of configurations applied as a whole: deletions, order of steps, and changes by
others since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from connectctl.ops.connect.config_topic import CONNECTOR
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.connectors.access import ClusterAccess
from connectctl.ops.operations.connectors.config.directory import (
    Pruned,
    PruneRequest,
    drift_of,
    ordered,
    pruned,
    takeovers,
    why_not_applied,
)
from connectctl.ops.operations.connectors.config.history import (
    ConfigOrigin,
    ConfigVersion,
    config_records,
    origins,
    topic_versions,
)
from connectctl.ops.operations.connectors.config.plan import Desired, Planner
from connectctl.ops.operations.connectors.config.steps import ChangeConnector, DeleteConnector
from connectctl.ops.operations.connectors.config.values import Config, stored_config
from connectctl.ops.operations.connectors.remaining_resources import remaining_resources
from connectctl.ops.operations.connectors.steps import ConnectorStep


@dataclass
class Directory:
    """The part of ``connectors apply`` that concerns the directory as a whole. ``pruned`` is the
    result of ``pruned()``.
    """

    cluster: ClusterAccess
    desired: Mapping[str, Desired]
    pruned: Pruned
    history: History

    @classmethod
    def of(
        cls,
        cluster: ClusterAccess,
        planner: Planner,
        connectors: Sequence[Desired],
        request: PruneRequest | None,
    ) -> Directory:
        """Determine the connectors to delete, of those not in ``connectors``."""
        by_name = {connector.name: connector for connector in connectors}
        history = History(cluster)
        missing = [name for name in planner.current if name not in by_name] if request else []
        if request is None or not missing:
            return cls(cluster, by_name, Pruned((), ()), history)
        known = history.origins(missing)

        def not_applied(name: str) -> str | None:
            versions = history.versions(name)
            return why_not_applied(
                planner.current[name].connector.config, known[name], versions, history.unseen
            )

        found = pruned(missing, known, request, not_applied)
        return cls(cluster, by_name, found, history)

    def finish(self, planner: Planner) -> None:
        """Add deletions and drift to the steps of ``planner``, and sort them."""
        self._delete(planner)
        planner.noops += self.pruned.unchanged
        former = {name: health.connector.config for name, health in planner.current.items()}
        touched = {step.subject for step in planner.steps}
        changed = [
            step.subject
            for step in planner.steps
            if isinstance(step, ChangeConnector | DeleteConnector)
        ]
        known = self.history.origins(changed)
        steps = [self._with_drift(step, planner, known) for step in planner.steps]
        new = {name: desired.config for name, desired in self.desired.items() if name in touched}
        planner.steps = ordered(steps, takeovers({name: former[name] for name in changed}, new))

    def _delete(self, planner: Planner) -> None:
        group = self.cluster.group_id
        calls = (
            (lambda: self.cluster.clients.transactions) if self.cluster.kafka is not None else None
        )
        for name in self.pruned.delete:
            connector = planner.current[name].connector
            planner.delete(
                name,
                remaining_resources(
                    self.cluster.calls, connector, group, calls, with_offsets=False
                ),
            )

    def _with_drift(
        self, step: ConnectorStep, planner: Planner, known: Mapping[str, ConfigOrigin]
    ) -> ConnectorStep:
        if not isinstance(step, ChangeConnector | DeleteConnector):
            return step
        name = step.subject
        origin = known.get(name)
        found = drift_of(
            planner.current[name].connector.config,
            self.desired[name].config if isinstance(step, ChangeConnector) else None,
            origin,
            self.history.applied(origin),
            self.history.versions(name),
            planner.passwords.get(name, frozenset()),
            self.history.unseen,
        )
        return replace(step, drift=found)


class History:
    """Connectors' history in the journal and the config topic; each is read once, when first
    needed.
    """

    def __init__(self, cluster: ClusterAccess) -> None:
        self._cluster = cluster
        self._records: dict[bytes, list[ConsumerRecord]] | None = None
        self.unseen: str | None = None

    def origins(self, names: Sequence[str]) -> Mapping[str, ConfigOrigin]:
        """Return the configurations written by runs of this machine."""
        if not names:
            return {}
        journal = self._cluster.clients.journal(read_only=True)
        return origins(journal, self._cluster.cluster_id(), self._cluster.group_id, names)

    def versions(self, name: str) -> list[ConfigVersion]:
        """Return the versions of ``name`` in the config topic, the oldest first; none if unread:
        see ``unseen``.
        """
        if self._records is None:
            self._records = {}
            try:
                for record in config_records(self._cluster):
                    self._records.setdefault(record.key or b"", []).append(record)
            except ConnectctlError as e:
                self.unseen = e.what
        return topic_versions(self._records.get(f"{CONNECTOR}{name}".encode(), ()), name)

    def applied(self, origin: ConfigOrigin | None) -> Config | None:
        """Return the configuration last applied from a file, None if the journal no longer has
        it.
        """
        if origin is None or origin.applied is None:
            return None
        try:
            return stored_config(
                self._cluster.clients.journal(read_only=True), origin.applied.digest
            )
        except ConnectctlError:
            return None
