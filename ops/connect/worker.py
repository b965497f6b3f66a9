"""What is known of a worker, and what its answers prove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

NOT_ENABLED = "This worker does not have exactly-once source support enabled."
_PROPERTY = "exactly.once.support"
_QUIET_PLUGINS = (
    "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
    "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "org.apache.kafka.connect.tools.VerifiableSourceConnector",
    "org.apache.kafka.connect.tools.MockSourceConnector",
)
"""Connectors whose validation touches nothing outside the worker, the ones that are nearly always there first."""


class Support(StrEnum):
    """``exactly.once.source.support`` of a worker as far as its REST API proves it.

    Whether a worker that is not enabled is ``preparing`` or ``disabled`` cannot be seen from outside.
    """

    ENABLED = "enabled"
    NOT_ENABLED = "not enabled"
    NOT_SUPPORTED = "not supported"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Worker:
    """A worker as the group knows it and as it answers. ``problem`` is why its REST server gave no answer.

    ``shut``: it is there, and let us in neither by TLS nor by a login. ``without_rest``: it has no REST API.
    """

    address: str
    url: str
    leader: bool = False
    version: str | None = None
    cluster_id: str | None = None
    support: Support = Support.UNKNOWN
    problem: str | None = None
    connectors: int = 0
    tasks: int = 0
    config_offset: int | None = None
    shut: bool = False
    without_rest: bool = False


def probe_plugin(plugins: Sequence[Mapping[str, Any]]) -> str | None:
    """The source connector to ask a worker about exactly-once with, from its ``GET /connector-plugins``."""
    sources = [str(p["class"]) for p in plugins if p.get("type") == "source"]
    return next((name for name in _QUIET_PLUGINS if name in sources), sources[0] if sources else None)


def probe_config(plugin: str) -> dict[str, str]:
    """A configuration whose validation, on any worker, tells whether exactly-once is enabled there."""
    return {"connector.class": plugin, "name": "connectctl-probe", "tasks.max": "1", _PROPERTY: "required"}


def support_proven_by(validation: Mapping[str, Any]) -> Support:
    """What a worker's answer to the validation of ``probe_config`` proves (``DistributedHerder``, KIP-618)."""
    for entry in validation.get("configs", ()):
        value = entry.get("value", {})
        if value.get("name") == _PROPERTY:
            return Support.NOT_ENABLED if NOT_ENABLED in value.get("errors", ()) else Support.ENABLED
    # Workers before 3.3 do not know the property and say nothing about it.
    return Support.NOT_SUPPORTED
