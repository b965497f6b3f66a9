"""Reads the YAML of ``preflight --emit yaml`` again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connectctl.ops.checks.acls.emit import KIND
from connectctl.ops.checks.acls.requirements import Stage
from connectctl.ops.config import yaml_text
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.acls import Binding, Operation, Pattern, Permission, Resource

_HOW = "Print one with: connectctl preflight --emit yaml."


@dataclass(frozen=True)
class Wanted:
    """The bindings of one document: of one Kafka cluster, each with the stage that needs it."""

    cluster_id: str
    bootstrap: str
    items: tuple[tuple[Stage, Binding], ...]

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """All bindings, whatever needs them."""
        return tuple(binding for _, binding in self.items)


def read(text: str, source: str) -> tuple[Wanted, ...]:
    """The documents in ``text``. Raises ``BadInput``, naming ``source``, for what is none."""
    import yaml

    try:
        documents = yaml_text.read_all(text)
    except yaml.YAMLError as e:
        raise BadInput(f"{source} is not valid YAML", why=" ".join(str(e).split()), next_step=_HOW) from e
    return tuple(_document(data, source) for data in documents)


def _document(data: Any, source: str) -> Wanted:
    if not isinstance(data, Mapping) or data.get("kind") != KIND or not isinstance(data.get("items"), list):
        raise BadInput(f"{source} has no ACLs in it", why=f"it is not a document of kind {KIND}", next_step=_HOW)
    items = tuple(_item(item, f"{source}, item {number}") for number, item in enumerate(data["items"], 1))
    return Wanted(str(data.get("clusterId", "")), str(data.get("bootstrapServers", "")), items)


def _item(data: Any, where: str) -> tuple[Stage, Binding]:
    if not isinstance(data, Mapping):
        raise BadInput(f"{where} is not an ACL", next_step=_HOW)
    try:
        binding = Binding(
            resource=Resource(data["resourceType"]),
            name=str(data["resourceName"]),
            pattern=Pattern(data["patternType"]),
            principal=str(data["principal"]),
            host=str(data["host"]),
            operation=Operation(data["operation"]),
            permission=Permission(data["permissionType"]),
        )
        return Stage(data.get("for", Stage.DISABLED)), binding
    except KeyError as e:
        raise BadInput(f"{where} has no {e.args[0]}", next_step=_HOW) from e
    except ValueError as e:
        raise BadInput(f"{where} is not an ACL", why=str(e), next_step=_HOW) from e
