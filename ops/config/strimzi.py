"""Strimzi's ``KafkaConnector`` manifests as connector configurations.

Strimzi's operator builds a configuration as follows: ``spec.config`` with ``connector.class`` from
``spec.class``, ``tasks.max`` from ``spec.tasksMax`` and, for KIP-891, ``connector.plugin.version``
from ``spec.version`` (``AbstractConnectOperator.asJson``). ``spec.state`` is the state in which the
operator keeps the connector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from connectctl.ops.core.errors import BadInput

GROUP = "kafka.strimzi.io/"
KIND = "KafkaConnector"
PROPERTIES = {
    "class": "connector.class",
    "tasksMax": "tasks.max",
    "version": "connector.plugin.version",
}
STATES = {"running": "RUNNING", "paused": "PAUSED", "stopped": "STOPPED"}
_OPERATORS_OWN = frozenset({"autoRestart", "listOffsets", "alterOffsets"})
"""Members for operations of the operator, which are no part of a configuration."""


@dataclass(frozen=True)
class Doubled:
    """A value that a manifest sets twice: at ``path``, which counts, and at ``other_path``, which
    does not.
    """

    path: str
    value: str
    other_path: str
    other_value: str


def is_manifest(members: Mapping[str, Any]) -> bool:
    """Return whether an object is one of Strimzi's resources."""
    return str(members.get("apiVersion") or "").startswith(GROUP)


def read(
    kind: Any, metadata: Mapping[str, Any], spec: Mapping[str, Any], file: str
) -> tuple[str, str | None]:
    """Return the name and state (RUNNING, PAUSED, STOPPED, None without one) of a manifest. Raises
    ``BadInput``.
    """
    if problem := next(_problems(kind, metadata, spec), None):
        raise BadInput(
            f"{file} is not a connector configuration",
            why=problem,
            next_step="Give KafkaConnector manifests, with metadata.name, spec.class and "
            "spec.config.",
        )
    state = spec.get("state")
    if state is None and spec.get("pause") is True:
        state = "paused"  # deprecated, and still read by the operator
    return str(metadata["name"]), None if state is None else STATES[str(state).lower()]


def properties(spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Return the properties that a spec has outside of its ``config``."""
    return (
        (name, spec[member]) for member, name in PROPERTIES.items() if spec.get(member) is not None
    )


def doubled(spec: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Doubled]:
    """Return the values that a spec sets twice, by property, with the one that the operator
    uses.
    """
    found = {
        name: Doubled(f"spec.{member}", str(spec[member]), "spec.config", str(config[name]))
        for member, name in PROPERTIES.items()
        if spec.get(member) is not None and config.get(name) is not None
    }
    if spec.get("pause") is not None and spec.get("state") is not None:
        other = "paused" if spec["pause"] is True else "running"
        found["the state"] = Doubled("spec.state", str(spec["state"]).lower(), "spec.pause", other)
    return found


def _problems(kind: Any, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    if kind != KIND:
        yield f"it is a {kind}, not a {KIND}"
    if not isinstance(metadata.get("name"), str):
        yield "it has no metadata.name"
    if not spec.get("class"):
        yield "it has no spec.class"
    for name in spec.keys() - PROPERTIES.keys() - _OPERATORS_OWN - {"config", "state", "pause"}:
        yield f"spec.{name} is unknown"
    state = spec.get("state")
    if state is not None and str(state).lower() not in STATES:
        yield f"spec.state is {state}, which is not one of {', '.join(STATES)}"
