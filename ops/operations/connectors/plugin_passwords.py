"""The properties that plugins define as passwords, whose values are masked in output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.config.masking import remember
from connectctl.ops.connect.connector import path_of
from connectctl.ops.core.errors import ConnectctlError

_WITHOUT_PASSWORDS = tuple(
    f"org.apache.kafka.connect.{package}."
    for package in ("json", "storage", "converters", "transforms")
)
"""Packages of Kafka's own converters, transformations and predicates: none defines a password."""
PATIENCE = 2.0
"""Seconds within which a worker must list the properties of a plugin."""


def remember_passwords(
    calls: ConnectCalls, data: Mapping[str, Any], url: str | None = None
) -> None:
    """Register the passwords of a connector for masking, before a trace is shown that may contain
    one. The worker at ``url`` is asked for them.
    """
    status, info = data.get("status") or {}, data.get("info") or {}
    if any(
        part.get("trace") for part in (status.get("connector") or {}, *(status.get("tasks") or ()))
    ):
        config = info.get("config") or {}
        remember(config, defined_passwords(calls, config, url))


def defined_passwords(
    calls: ConnectCalls, config: Mapping[str, str], url: str | None = None
) -> frozenset[str]:
    """Return the properties of ``config`` that its plugins define with the type PASSWORD, according
    to the worker at ``url`` or the first that answers (KIP-769).

    The plugins are the connector's class, its converters, transforms and predicates, with their
    prefixes.
    """
    found: set[str] = set()
    for prefix, plugin in _plugins(config):
        if plugin not in _PASSWORDS_OF:
            try:
                reported = calls.get(
                    path_of("connector-plugins", plugin, "config"), url=url, timeout=PATIENCE
                )
            except ConnectctlError:
                # Workers before 3.2 do not list them; the masking uses names and values only.
                continue
            if not isinstance(reported, list):
                continue  # an answer that is not Connect's lists nothing
            _PASSWORDS_OF[plugin] = frozenset(
                str(definition.get("name"))
                for definition in reported
                if isinstance(definition, dict) and definition.get("type") == "PASSWORD"
            )
        found |= {f"{prefix}{name}" for name in _PASSWORDS_OF[plugin]}
    return frozenset(found)


def plugins_without_definitions(config: Mapping[str, str]) -> frozenset[str]:
    """Return the plugins of ``config`` whose properties no worker has listed: that a property is a
    password is then known by its name and by the form of its value alone.
    """
    return frozenset(plugin for _, plugin in _plugins(config) if plugin not in _PASSWORDS_OF)


_PASSWORDS_OF: dict[str, frozenset[str]] = {}
"""The password properties by plugin class; each class is requested once per process."""


def _plugins(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    properties = [("", "connector.class")]
    properties += [
        (f"{converter}.", converter)
        for converter in ("key.converter", "value.converter", "header.converter")
    ]
    for kind in ("transforms", "predicates"):
        for alias in (config.get(kind) or "").split(","):
            properties.append((f"{kind}.{alias.strip()}.", f"{kind}.{alias.strip()}.type"))
    for prefix, name in properties:
        plugin = (config.get(name) or "").strip()
        if plugin and not plugin.startswith(_WITHOUT_PASSWORDS):
            yield prefix, plugin
