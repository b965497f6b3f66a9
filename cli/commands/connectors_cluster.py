"""The clients of ``connectctl connectors``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectctl.cli.session import Session
    from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
    from connectctl.ops.connect.connect_protocol import ConnectGroup
    from connectctl.ops.operations.connectors.observe import Facts


@dataclass
class Cluster:
    """The edges of a command. Without ``--bootstrap-servers`` but with ``--rest`` only the workers are asked."""

    calls: ConnectCalls
    kafka: KafkaReads | None
    group: ConnectGroup | None
    facts: Callable[[], Facts] | None = None


def cluster_of(session: Session) -> Cluster:
    """The clients that the settings ask for."""
    settings = session.settings
    if settings.get("rest") and not settings.get("bootstrap_servers"):
        return Cluster(session.connect_to(None), None, None)
    kafka = session.kafka
    group = session.group()
    return Cluster(session.connect_to(group), kafka, group)
