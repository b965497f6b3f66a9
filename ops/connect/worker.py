"""The known facts about a worker, and the proof in its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from connectctl.ops.kafka.visibility import Gap

NOT_ENABLED = "This worker does not have exactly-once source support enabled."
_PROPERTY = "exactly.once.support"
_QUIET_PLUGINS = (
    "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
    "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "org.apache.kafka.connect.tools.VerifiableSourceConnector",
    "org.apache.kafka.connect.tools.MockSourceConnector",
)
"""Connectors whose validation accesses nothing outside the worker; those that are usually installed
come first.
"""


class Support(StrEnum):
    """``exactly.once.source.support`` of a worker, where its REST API proves it.

    The REST API does not show whether a worker that is not enabled is ``preparing`` or
    ``disabled``.
    """

    ENABLED = "enabled"
    NOT_ENABLED = "not enabled"
    NOT_SUPPORTED = "not supported"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Worker:
    """A worker in the group, with the facts from its REST API. ``problem`` is why its REST server
    gave no answer.

    ``shut``: its server exists, but refuses our TLS connection or login. ``without_rest``: it has
    no REST API. ``listed`` are the connectors that it listed, None if it was not asked. ``hung`` is
    the request that it did not answer, although its REST server answered another one.
    ``health_gap`` is why its herder's health could not be seen; None if it was seen, or not asked.
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
    listed: frozenset[str] | None = None
    hung: str | None = None
    health_gap: Gap | None = None


def probe_plugin(plugins: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the source connector to probe a worker's exactly-once support with, from
    ``GET /connector-plugins``.
    """
    sources = [str(p["class"]) for p in plugins if p.get("type") == "source"]
    return next(
        (name for name in _QUIET_PLUGINS if name in sources), sources[0] if sources else None
    )


def probe_config(plugin: str) -> dict[str, str]:
    """Return a configuration whose validation shows whether exactly-once is enabled on a worker."""
    return {
        "connector.class": plugin,
        "name": "connectctl-probe",
        "tasks.max": "1",
        _PROPERTY: "required",
    }


def support_proven_by(validation: Mapping[str, Any]) -> Support:
    """Return what a worker's validation of ``probe_config`` proves (``DistributedHerder``,
    KIP-618).
    """
    for entry in validation.get("configs", ()):
        value = entry.get("value", {})
        if value.get("name") == _PROPERTY:
            return (
                Support.NOT_ENABLED if NOT_ENABLED in value.get("errors", ()) else Support.ENABLED
            )
    # Workers before 3.3 do not know the property and do not report it.
    return Support.NOT_SUPPORTED
