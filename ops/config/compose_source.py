"""A context from the service of a worker in a compose file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from connectctl.ops.config.endpoints import problem_of_brokers
from connectctl.ops.config.json_shape import an_object, anything, array, either, mapping, text
from connectctl.ops.config.placeholders import environment_of
from connectctl.ops.config.worker_source import (
    VARIABLE,
    Source,
    is_of_worker,
    of_worker,
    properties_of,
    rest_port,
)

_ADVERTISED = ("KAFKA_ADVERTISED_LISTENERS", "KAFKA_CFG_ADVERTISED_LISTENERS")
_OBJECT = mapping(anything)
SERVICE = an_object(
    {},
    {
        "environment": either(array(anything), _OBJECT),
        "env_file": either(text, array(anything), _OBJECT),
        "ports": array(anything),
    },
)


class ComposeFile:
    """The ``services`` of the compose file at ``path``, with their variables."""

    def __init__(self, services: Mapping[str, Mapping[str, Any]], path: Path):
        file = path.parent / ".env"
        defaults = environment_of(file) if file.is_file() else {}
        self._services = services
        self._variables = {
            name: _variables(service, path.parent, defaults) for name, service in services.items()
        }

    @property
    def workers(self) -> list[str]:
        """Return the services that are workers."""
        return [name for name, variables in self._variables.items() if is_of_worker(variables)]

    def context_of(self, worker: str, context: str) -> Source:
        """Return the context ``context`` of the service ``worker``."""
        variables = self._variables[worker]
        properties = properties_of(variables)
        source = of_worker(properties, context, variables, is_discovered=False)
        self._publish_rest(source, worker, rest_port(properties))
        self._publish_brokers(source)
        return source

    def _publish_rest(self, source: Source, worker: str, port: str) -> None:
        """Take the address at which the file publishes the worker's REST server."""
        ports = dict(_ports(self._services[worker]))
        if port in ports:
            source.entry["rest"] = [f"http://localhost:{ports[port]}"]
            source.entry["rest_is_group"] = True
        else:
            source.notes.append(f"not taken: REST, because {worker} publishes no port {port}")

    def _publish_brokers(self, source: Source) -> None:
        """Replace the brokers' addresses between containers by those that they advertise to
        others.
        """
        servers = str(source.entry.get("bootstrap_servers", "")).split(",")
        inside = [server for server in servers if _host(server) in self._services]
        if not inside:
            return
        advertised = [
            address
            for server in inside
            for address in _advertised(self._variables[_host(server)])
            if _host(address) not in self._services
        ]
        if advertised:
            source.entry["bootstrap_servers"] = ",".join(dict.fromkeys(advertised))
            return
        source.notes.append(
            f"{inside[0]} is an address of the containers: give --bootstrap-servers as this "
            "machine reaches the brokers"
        )


def _host(address: str) -> str:
    return address.rsplit(":", 1)[0]


def _variables(
    service: Mapping[str, Any], directory: Path, defaults: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a service, with its files of variables in ``directory``."""
    found: dict[str, str] = {}
    listed = service.get("env_file") or []
    for each in [listed] if isinstance(listed, (str, dict)) else listed:
        name = each.get("path") if isinstance(each, dict) else each
        found |= environment_of(directory / str(name))
    given = service.get("environment") or {}
    pairs = given.items() if isinstance(given, dict) else (str(g).split("=", 1) for g in given)
    for name, *value in pairs:
        text = "" if not value or value[0] is None else str(value[0])
        found[str(name)] = _interpolated(text, defaults)
    return found


def _interpolated(text: str, known: Mapping[str, str]) -> str:
    """Return ``text`` with the defaults of its variables; one without a default is kept."""

    def value_of(found: re.Match[str]) -> str:
        return known.get(found[1] or found[3]) or found[2] or found[0]

    return "$".join(VARIABLE.sub(value_of, part) for part in text.split("$$"))


def _advertised(variables: Mapping[str, str]) -> Iterator[str]:
    text = next((variables[name] for name in _ADVERTISED if name in variables), "")
    for listener in text.split(","):
        address = listener.rpartition("://")[2].strip()
        if address and problem_of_brokers(address) is None:
            yield address


def _ports(service: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the container's ports with those of this machine."""
    for port in service.get("ports") or ():
        if isinstance(port, dict):
            yield str(port.get("target")), str(port.get("published") or port.get("target"))
            continue
        *before, inner = str(port).split("/")[0].split(":")
        yield inner, before[-1] if before else inner
