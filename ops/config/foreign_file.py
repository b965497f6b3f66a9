"""Files that are no configurations of connectors, by name, with the command that makes one of them or
reads them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from shlex import quote
from typing import Any

from connectctl.ops.config import strimzi
from connectctl.ops.core.errors import BadInput

VALIDATE = "connectctl validate -f -"
CHART, KUSTOMIZATION = "Chart.yaml", ("kustomization.yaml", "kustomization.yml")
_OWN = "connectctl/"
_WORKERS = frozenset({"config.storage.topic", "offset.storage.topic", "group.id", "plugin.path"})
_ENVIRONMENT = re.compile(r"(CONNECT_)?(BOOTSTRAP_SERVERS|GROUP_ID|(CONFIG|OFFSET)_STORAGE_TOPIC)")


def is_other_resource(members: Mapping[str, Any]) -> bool:
    """Return whether an object is a resource of Kubernetes that is not a connector."""
    version, kind = members.get("apiVersion"), members.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str) or version.startswith(_OWN):
        return False
    return not (kind == strimzi.KIND and strimzi.is_manifest(members)) and kind != "Template"


def name_of(members: Mapping[str, Any]) -> str:
    """Return the kind and name of a resource of Kubernetes."""
    metadata = getattr(members.get("metadata"), "last", {})
    return f"{members['kind']} {metadata.get('name') or ''}".strip()


def refuse(members: Mapping[str, Any], file: str) -> None:
    """Raise ``BadInput`` for an object that is known to be something else than a connector's
    configuration.
    """
    if members.keys() & {"connector.class", "config"}:
        return
    for why, step in _recognised(members, file):
        raise BadInput(f"{file} is not a connector configuration", why=why, next_step=step)


def refuse_directory(names: frozenset[str], directory: str) -> None:
    """Raise ``BadInput`` for a directory whose file ``names`` say that it is rendered first."""
    tool = next(
        (
            (what, command)
            for names_of_it, what, command in (
                ({CHART}, "a Helm chart", "helm template"),
                ({*KUSTOMIZATION}, "a kustomization", "kubectl kustomize"),
            )
            if names & names_of_it
        ),
        None,
    )
    if tool:
        raise BadInput(
            f"{directory} is {tool[0]}", next_step=_rendered(f"{tool[1]} {quote(directory)}")
        )


def _rendered(command: str) -> str:
    return f"Render it first: {command} | {VALIDATE}"


def _recognised(members: Mapping[str, Any], file: str) -> Iterator[tuple[str, str]]:
    kind = members.get("kind")
    directory = str(PurePath(file).parent)
    context = f"connectctl context add NAME --from {quote(file)}"
    if kind == "Template":
        yield "it is a Template of OpenShift", _rendered(f"oc process -f {quote(file)}")
    if kind == "Kustomization" or PurePath(file).name in KUSTOMIZATION:
        yield "it is a kustomization", _rendered(f"kubectl kustomize {quote(directory)}")
    if PurePath(file).name == CHART:
        yield "it describes a Helm chart", _rendered(f"helm template {quote(directory)}")
    if _has_members(members.get("services")):
        step = "Connectors are not configured in it. For a context of its worker: "
        yield "it is a compose file of containers", f"{step}{context}"
    if kind == "KafkaConnect" and strimzi.is_manifest(members):
        step = f"Give its KafkaConnector manifests. For a context of its workers: {context}"
        yield "it is a KafkaConnect: the workers, and no connector", step
    if len(_WORKERS & members.keys()) > 1 or any(map(_ENVIRONMENT.fullmatch, members)):
        yield "it is the configuration of a worker", f"For a context of it: {context}"
    if not kind and any(isinstance(members.get(part), list) for part in ("tasks", "roles")):
        yield "it is a playbook of Ansible", "Give the configurations that it sends."
    lists = [name for name, value in members.items() if _is_list_of_objects(value)]
    if lists and any(name.startswith("kafka_connect_") for name in members):
        yield f"they are variables of Ansible; {lists[0]} is a list of objects", _alone(lists, file)
    elif lists and not kind:
        why = f"it has no connector.class; {lists[0]} is a list of objects"
        yield why, _alone(lists, file)


def _alone(lists: list[str], file: str) -> str:
    return f"Give the list by itself, for example: yq .{lists[0]} {quote(file)} | {VALIDATE}"


def _has_members(value: Any) -> bool:
    return bool(getattr(value, "last", None))


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(hasattr(item, "last") for item in value)
