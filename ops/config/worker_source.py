"""A context from the properties of a worker, and from the variables from which images make them.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.config import java_clients

TOPICS = {
    "config.storage.topic": "config",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "status",
}
REST_PORT = "8083"
VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")
_PREFIX = "CONNECT_"
_DEBEZIUMS = ("BOOTSTRAP_SERVERS", "GROUP_ID", *(n.upper().replace(".", "_") for n in TOPICS))
"""Variables of Debezium's image without a prefix."""
_LISTENER = re.compile(r"(https?)://([^:/]*):(\d+)", re.IGNORECASE)
_ANY_HOST = ("", "0.0.0.0", "[::]", "localhost")


@dataclass
class Source:
    """The entry of a context, and notes: what was not taken, and what is left to do."""

    entry: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Secrets:
    """Makes references to environment variables. ``of_variable`` are the values of variables that
    hold a secret alone.
    """

    context: str
    source: Source
    of_variable: Mapping[str, str] = field(default_factory=dict)

    def refer(self, name: str, value: str) -> Mapping[str, str]:
        variable = next((v for v, text in self.of_variable.items() if text == value), None)
        if (interpolated := VARIABLE.fullmatch(value)) and not interpolated[2]:
            variable = interpolated[1] or interpolated[3]
        own = re.sub(r"\W", "_", f"{self.context}_{name}").upper()
        self.source.notes.append(
            f"client.{name} is read from the environment variable {variable or own}: set it"
        )
        return {"env": variable or own}


def of_worker(
    properties: Mapping[str, str],
    context: str,
    variables: Mapping[str, str] | None = None,
    *,
    is_discovered: bool = True,
) -> Source:
    """Return the context ``context`` of a worker with ``properties``, which come from ``variables``
    if given. ``is_discovered``: its REST server is found through its group.
    """
    source = Source()
    entry = source.entry
    for name, ours in (("bootstrap.servers", "bootstrap_servers"), ("group.id", "group_id")):
        if value := _literal(properties, name, source):
            entry[ours] = ",".join(part.strip() for part in value.split(","))
    if "group.id" not in properties:
        source.notes.append(
            "there is no group.id: a standalone worker has none; for a distributed one give --group-id"
        )
    topics = {
        ours: value
        for name, ours in TOPICS.items()
        if (value := _literal(properties, name, source))
    }
    if topics:
        entry["topics"] = topics
    source.notes += _about_rest(properties, is_discovered)
    client = java_clients.client_of(properties, _Secrets(context, source, variables or {}).refer)
    if client.entry:
        entry["client"] = dict(client.entry)
    source.notes += [f"not taken: {reason}" for reason in client.missing]
    return source


def _literal(properties: Mapping[str, str], name: str, source: Source) -> str:
    """Return a property; "" with a note if it has a variable that nothing sets: the name of a
    group or topic that is one would be searched for as it stands.
    """
    value = properties.get(name, "").strip()
    if not (unset := VARIABLE.search(value)):
        return value
    source.notes.append(f"not taken: {name}, because nothing sets its variable {unset[0]}")
    return ""


def _about_rest(properties: Mapping[str, str], is_discovered: bool) -> Iterator[str]:
    """Yield notes about REST: all workers of the group are found, and not only this one."""
    url = _rest(properties)
    if url is not None and is_discovered:
        yield f"REST: workers are found through their group; this one advertises {url}"
    if url is not None and url.startswith("https:"):
        yield "REST has TLS: --set rest_tls.ca=FILE unless the system trusts its certificate"
    if "BasicAuthSecurityRestExtension" in properties.get("rest.extension.classes", ""):
        yield "REST has a login: --set rest_auth.username=NAME --set rest_auth.password=env:NAME"


def _rest(properties: Mapping[str, str]) -> str | None:
    """Return the address that the worker advertises; None if it is the name of its host."""
    listeners = properties.get("listeners", "")
    first = _LISTENER.search(listeners)
    host = properties.get("rest.advertised.host.name") or properties.get("rest.host.name")
    host = host or (first[2] if first and first[2] not in _ANY_HOST else None)
    if not host or host in _ANY_HOST:
        return None
    port = properties.get("rest.advertised.port") or rest_port(properties)
    scheme = properties.get("rest.advertised.listener") or (first[1] if first else "http")
    return f"{scheme.lower()}://{host}:{port}"


def rest_port(properties: Mapping[str, str]) -> str:
    first = _LISTENER.search(properties.get("listeners", ""))
    return first[3] if first else properties.get("rest.port", REST_PORT)


def is_of_worker(variables: Mapping[str, str]) -> bool:
    debeziums = {"BOOTSTRAP_SERVERS", "GROUP_ID"} <= variables.keys()
    return f"{_PREFIX}BOOTSTRAP_SERVERS" in variables or debeziums


def properties_of(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the worker's properties, as the images of Confluent and Debezium make them."""
    own = {name: variables[name] for name in _DEBEZIUMS if name in variables}
    prefixed = {
        name.removeprefix(_PREFIX): value
        for name, value in variables.items()
        if name.startswith(_PREFIX)
    }
    return {
        re.sub("_+", _separator, name).lower(): value for name, value in {**own, **prefixed}.items()
    }


def _separator(found: re.Match[str]) -> str:
    return {1: ".", 2: "-", 3: "_"}.get(len(found[0]), found[0])
