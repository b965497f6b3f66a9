"""The sandbox's own access to its broker and its workers, to start and to check them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connectctl.ops.sandbox import properties, security
from connectctl.ops.sandbox.layout import SandboxLayout
from connectctl.ops.sandbox.ports import LOOPBACK
from connectctl.ops.sandbox.record import SandboxRecord
from connectctl.ops.sandbox.spec import SandboxSpec

HTTP, HTTPS = "http", "https"


def internal(spec: SandboxSpec) -> str:
    """Return the listener on which the broker and the sandbox speak to the broker, as its super
    user.
    """
    return security.MTLS if spec.secured else properties.PLAINTEXT


def protocols(spec: SandboxSpec) -> dict[str, str]:
    """Return all listeners of the broker with their security protocols."""
    by_listener = {properties.PLAINTEXT: "PLAINTEXT", properties.CONTROLLER: "PLAINTEXT"}
    if spec.secured:
        by_listener = {**security.PROTOCOLS, properties.CONTROLLER: "SSL"}
    return by_listener | dict(spec.extra_listeners)


def worker_url(spec: SandboxSpec, port: int) -> str:
    return f"{HTTPS if spec.secured else HTTP}://{LOOPBACK}:{port}"


@dataclass(frozen=True, slots=True)
class Access:
    """``client``: librdkafka's properties of the super user. ``rest``: httpx' arguments for the
    workers.
    """

    client: Mapping[str, Any]
    rest: Mapping[str, Any]


def access(layout: SandboxLayout, record: SandboxRecord) -> Access:
    """Return the access of this sandbox to itself."""
    spec = record.spec
    client: dict[str, Any] = {"bootstrap.servers": record.addresses(internal(spec))}
    if not spec.secured:
        return Access(client, {})
    import ssl

    known = security.Security(layout.security)
    client |= known.client(security.MTLS, security.BROKER)
    trust = ssl.create_default_context(cafile=known.authority)
    return Access(
        client, {"verify": trust, "auth": (security.ADMIN, known.password(security.ADMIN))}
    )
