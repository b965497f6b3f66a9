"""Consequences of requested configurations for stored source offsets, and for other connectors."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.connector import at_rest
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.operations.connectors.access import ClusterAccess
from connectctl.ops.operations.connectors.config import outlook as config_outlook
from connectctl.ops.operations.connectors.config.outlook import (
    Entries,
    OffsetsByConnector,
    OffsetsOfChange,
)
from connectctl.ops.operations.connectors.config.plan import Desired
from connectctl.ops.operations.connectors.config.values import Config
from connectctl.ops.operations.connectors.observe import ConnectorHealth
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.observe import observe
from connectctl.ops.operations.offsets.snapshot import INCOMPLETE, OffsetsQuery
from connectctl.ops.operations.offsets.sources import PATIENCE, sources_of


class ConfigOutlook:
    """The consequences of ``desired`` configurations for stored source offsets, and for the other
    ``existing`` connectors without ``deleted`` ones.
    """

    def __init__(
        self,
        cluster: ClusterAccess,
        existing: Collection[ConnectorHealth],
        desired: Sequence[Desired],
        deleted: Sequence[str] = (),
    ) -> None:
        self._existing = [connector for connector in existing if connector.name not in deleted]
        self._wanted = {connector.name: connector.config for connector in desired}
        known = {connector.name for connector in existing}
        new = [connector.name for connector in desired if connector.name not in known]
        self._stored = _stored_offsets(cluster, new)

    def others(self, name: str) -> dict[str, Config]:
        """Return the future configurations of connectors other than ``name``."""
        existing: dict[str, Config] = {
            health.name: health.connector.config for health in self._existing
        }
        return {
            other: config for other, config in {**existing, **self._wanted}.items() if other != name
        }

    def of_new(self, desired: Desired, entries: Entries = ()) -> OffsetsOfChange:
        """Return the consequences of a new connector, with ``entries`` as its initial offsets."""
        if entries:
            partitions = tuple(read_json(partition) for partition, _ in entries)
            effects = OffsetsOfChange(partitions={config_outlook.CARRIED: partitions})
            return effects + config_outlook.of_others(
                desired.name, desired.config, self.others(desired.name)
            )
        effects_of_name = config_outlook.of_new(desired.name, desired.config, self._stored)
        return effects_of_name + config_outlook.of_others(
            desired.name, desired.config, self.others(desired.name), self._stored
        )

    def has_former(self, desired: Desired) -> bool:
        """Return whether offsets of its source partitions are stored under another name, and none
        under its own.
        """
        return bool(config_outlook.stored_under_others(desired.name, desired.config, self._stored))

    def carried(self, connectors: Sequence[Desired], entries: Entries) -> Entries:
        """Return the offsets under the former name of the only connector in ``connectors``. Raises
        ``BadInput`` and ``Refused``.
        """
        if entries or len(connectors) != 1:
            what = (
                "requires exactly one connector"
                if len(connectors) != 1
                else "cannot be combined with --offsets"
            )
            raise BadInput(
                f"{config_outlook.CARRY} {what}",
                next_step="Create them one by one, or with --offsets.",
            )
        running = {health.name for health in self._existing if not at_rest(health.connector)}
        return config_outlook.carried(
            connectors[0].name, connectors[0].config, self._stored, running
        )


def _stored_offsets(cluster: ClusterAccess, names: Sequence[str]) -> OffsetsByConnector:
    """Return the offsets in the global topic by connector if ``names`` are created, otherwise
    none.
    """
    if not names:
        return OffsetsByConnector()
    if cluster.kafka is None:
        return OffsetsByConnector(
            unseen=BadInput("the brokers are not given", next_step="Add --bootstrap-servers.")
        )
    query = OffsetsQuery((), True, False, False)
    try:
        snapshot = observe(sources_of(cluster.clients, PATIENCE)[0], query)
    except ConnectctlError as e:
        return OffsetsByConnector(unseen=e)
    found = assemble(snapshot, query)
    if not found.complete:
        hint = next(
            (
                finding.next_step
                for finding in found.findings
                if finding.id in INCOMPLETE and finding.next_step
            ),
            None,
        )
        return OffsetsByConnector(
            unseen=ConnectctlError("the offsets topic was not read to its end", next_step=hint)
        )
    pairs = {
        c.name: [(o.key.partition or {}, o.effective) for o in c.offsets] for c in found.connectors
    }
    return OffsetsByConnector(
        {name: [pair for pair in offsets if pair[1] is not None] for name, offsets in pairs.items()}
    )
