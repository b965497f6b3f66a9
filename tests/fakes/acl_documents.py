"""The YAML of ``preflight --emit yaml``, read back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml
from connectctl.ops.checks.acls.requirements import AclStage
from connectctl.ops.kafka.acls import Binding, Operation, Pattern, Permission, Resource


@dataclass(frozen=True)
class Document:
    """The bindings for one Kafka cluster, each with the stage that needs it."""

    cluster_id: str
    bootstrap: str
    items: tuple[tuple[AclStage, Binding], ...]

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """All bindings, whatever needs them."""
        return tuple(binding for _, binding in self.items)


def read(text: str) -> tuple[Document, ...]:
    """The documents in ``text``."""
    found = list(yaml.safe_load_all(text))
    assert {data["kind"] for data in found} == {"AclBindings"}
    return tuple(
        Document(data["clusterId"], data["bootstrapServers"], tuple(map(_item, data["items"])))
        for data in found
    )


def _item(data: dict[str, Any]) -> tuple[AclStage, Binding]:
    binding = Binding(
        Resource(data["resourceType"]),
        data["resourceName"],
        Pattern(data["patternType"]),
        data["principal"],
        data["host"],
        Operation(data["operation"]),
        Permission(data["permissionType"]),
    )
    return AclStage(data["for"]), binding
