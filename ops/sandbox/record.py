"""The stored state of a sandbox while it exists: ``sandbox.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from connectctl.ops.config import whole_file
from connectctl.ops.core.errors import BadInput
from connectctl.ops.sandbox import properties, security
from connectctl.ops.sandbox.layout import BROKER, SandboxLayout
from connectctl.ops.sandbox.ports import LOOPBACK
from connectctl.ops.sandbox.spec import SandboxSpec


@dataclass(frozen=True, slots=True)
class Node:
    """One process of a sandbox: a broker (``group_id`` empty) or a worker.

    ``pid`` is None if it was stopped on purpose. ``created`` is the process's start time, in
    seconds since the epoch as psutil returns it: pid and start time together identify a process; a
    pid alone may be that of a later one.
    """

    name: str
    port: int
    kafka_version: str
    group_id: str = ""
    pid: int | None = None
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class SandboxRecord:
    """A sandbox as it was last left. ``ready`` is False from the first port chosen until everything
    answered.

    ``listeners`` are the first broker's ports by listener name, ``peers`` those of the other
    brokers, by broker.
    """

    spec: SandboxSpec
    cluster_id: str
    listeners: Mapping[str, int]
    ready: bool = False
    nodes: tuple[Node, ...] = field(default_factory=tuple)
    peers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def brokers(self) -> dict[str, Mapping[str, int]]:
        """Return the ports of every broker by listener name."""
        return {BROKER: self.listeners, **self.peers}

    def addresses(self, listener: str) -> str:
        """Return the bootstrap servers of this listener: one address of each broker, separated by
        commas.
        """
        return ",".join(f"{LOOPBACK}:{ports[listener]}" for ports in self.brokers.values())

    @property
    def bootstrap_servers(self) -> str:
        """Return the brokers' addresses for operators and workers."""
        return self.addresses(people(self.spec))

    def node(self, name: str) -> Node:
        """Return the node of this name; KeyError when there is none."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def workers(self, group_id: str) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.group_id == group_id)

    def with_node(self, node: Node) -> SandboxRecord:
        """This record with ``node`` in the place of its namesake, or at the end."""
        by_name = {known.name: known for known in self.nodes} | {node.name: node}
        return replace(self, nodes=tuple(by_name.values()))

    def ports(self) -> set[int]:
        return {port for ports in self.brokers.values() for port in ports.values()} | {
            n.port for n in self.nodes
        }


def people(spec: SandboxSpec) -> str:
    """Return the listener for operators and workers."""
    return security.SCRAM if spec.secured else properties.PLAINTEXT


def save(record: SandboxRecord, layout: SandboxLayout) -> None:
    """Write the record so that a reader, and a kill at any moment, sees the old one or the new one
    whole.
    """
    whole_file.write(layout.record, json.dumps(asdict(record), indent=1))


def load(layout: SandboxLayout) -> SandboxRecord | None:
    """Return the record, or None when there is none or it cannot be read, which both mean: start
    over.
    """
    try:
        data: dict[str, Any] = json.loads(layout.record.read_text())
        nodes = tuple(Node(**node) for node in data.pop("nodes"))
        return SandboxRecord(**data | {"spec": SandboxSpec(**data["spec"]), "nodes": nodes})
    except (OSError, ValueError, TypeError, KeyError, BadInput):
        return None
