"""The cluster that a command on connectors works with: its clients, and each connector as it is now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.operations.connectors import observe

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
    from connectctl.ops.connect.connect_protocol import ConnectGroup


@dataclass(frozen=True)
class ConnectorAccess:
    """The clients of a command. Where only workers are asked, ``kafka`` and ``group`` are None.

    ``facts`` reads what decides on the state of connectors besides what workers say.
    """

    calls: ConnectCalls
    kafka: KafkaReads | None
    group: ConnectGroup | None
    facts: Callable[[], observe.Facts] | None = None

    def cluster_id(self) -> str:
        if self.kafka is not None:
            return self.kafka.cluster_id()
        return str(self.calls.get("/").get("kafka_cluster_id"))

    @property
    def group_id(self) -> str:
        """The workers' group, empty where only workers are asked, who do not tell it."""
        return self.group.id if self.group is not None else ""

    def connectors(self, names: Sequence[str] | None = None) -> tuple[observe.ConnectorHealth, ...]:
        """The connectors that ``names`` name or match, or every one, read now.

        Raises ``BadInput`` for unknown ones, and what keeps workers of the group from answering: without them nothing is
        changed.
        """
        listed = observe.from_workers(self.calls)
        found = observe.listing_of(self.calls, listed, self.group, self.facts, self.calls.urls).connectors
        return found if names is None else observe.matching(found, names)
