"""The client properties for connections to a Kafka cluster. One function decides on credentials.

The context's credentials are sent only to servers that the context names (``bootstrap_servers``,
``clusters``), at these addresses. A connector can name any server in its overrides; it is reached
only with the connector's own credentials, never with any of the context's. Brokers that a named
cluster advertises in its metadata belong to that cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connectctl.ops.clients.secrets import reveal
from connectctl.ops.config.endpoints import problem_of_brokers
from connectctl.ops.config.java_clients import from_java
from connectctl.ops.config.settings import Settings
from connectctl.ops.core.errors import BadInput, Unreachable
from connectctl.ops.kafka.bootstrap import NAME_IT, share_a_server

_PLAINTEXT, _SASL = "PLAINTEXT", "SASL_"
_MECHANISM = "sasl.mechanism"
_LOGIN = ("sasl.username", "sasl.password")
_IDENTITY = {"ssl.certificate.pem": "ssl.key.pem", "ssl.certificate.location": "ssl.key.location"}
_WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Mechanisms for which a name and a password suffice. Others use what this machine has: a ticket, a
token, a file.
"""


@dataclass(frozen=True)
class NamedCluster:
    """A Kafka cluster that the context names: its addresses in the context's spelling, and
    references to its secrets.
    """

    bootstrap: str
    client: Mapping[str, Any]
    prefix: str

    @property
    def is_own(self) -> bool:
        """Return whether it is the cluster of the context's own ``bootstrap_servers``."""
        return self.prefix == "client."

    def properties(self) -> dict[str, Any]:
        """Return librdkafka's properties, secrets included."""
        client = {
            name: reveal(f"{self.prefix}{name}", value) for name, value in self.client.items()
        }
        return client | {"bootstrap.servers": self.bootstrap}


def named_cluster(settings: Settings, bootstrap: str) -> NamedCluster | None:
    """Return the cluster of the context that has a server of ``bootstrap``, None if the context
    names none of them.
    """
    section = settings.section("clusters")
    for key, value in section.items():
        name, _, what = key.partition(".")
        if what == "bootstrap_servers" and share_a_server(str(value), bootstrap):
            prefix = f"{name}.client."
            client = {k.removeprefix(prefix): v for k, v in section.items() if k.startswith(prefix)}
            return NamedCluster(str(value), client, f"clusters.{prefix}")
    own = str(settings.get("bootstrap_servers") or "")
    return (
        NamedCluster(own, settings.section("client"), "client.")
        if share_a_server(own, bootstrap)
        else None
    )


def connection_properties(
    settings: Settings, bootstrap: str, overrides: Mapping[str, str]
) -> dict[str, Any]:
    """Return librdkafka's properties for the servers that a connector names, with credentials that
    they may have.

    ``overrides`` are the connector's client properties by Java's names. Raises ``Unreachable`` if
    nothing may be sent.
    """
    if problem := problem_of_brokers(bootstrap):
        raise BadInput(f"{bootstrap!r} are not the addresses of brokers", why=problem)
    named = named_cluster(settings, bootstrap)
    if named is None:
        secured = str(settings.get("client.security.protocol", _PLAINTEXT)).upper() != _PLAINTEXT
        return _of_connector(bootstrap, overrides, secured=secured) | {
            "bootstrap.servers": bootstrap
        }
    return (
        _as_principal(named.properties(), from_java(overrides))
        if named.is_own
        else named.properties()
    )


def _as_principal(ours: dict[str, Any], theirs: Mapping[str, str]) -> dict[str, Any]:
    """Return ``ours`` with the connector's login in place of ours, if it has a complete one;
    encryption stays as it is.
    """
    mechanism = str(
        theirs.get(_MECHANISM) or ours.get(_MECHANISM) or ours.get("sasl.mechanisms") or ""
    ).upper()
    protocol = str(ours.get("security.protocol", _PLAINTEXT)).upper()
    if (
        protocol.startswith(_SASL)
        and mechanism in _WITH_PASSWORD
        and all(theirs.get(name) for name in _LOGIN)
    ):
        kept = {name: value for name, value in ours.items() if not name.startswith("sasl.")}
        return kept | {_MECHANISM: mechanism} | {name: theirs[name] for name in _LOGIN}
    certificate = next(
        (c for c, key in _IDENTITY.items() if theirs.get(c) and theirs.get(key)), None
    )
    if certificate is None:
        return ours
    kept = {
        name: value
        for name, value in ours.items()
        if not name.startswith(("ssl.certificate.", "ssl.key"))
    }
    own = (certificate, _IDENTITY[certificate], "ssl.key.password")
    return kept | {name: theirs[name] for name in own if name in theirs}


def _of_connector(bootstrap: str, overrides: Mapping[str, str], *, secured: bool) -> dict[str, Any]:
    """Return the connector's own properties, whole. Raises ``Unreachable`` if they are not enough,
    or not its own.
    """
    protocol = overrides.get("security.protocol", "").upper()
    theirs = from_java(overrides)
    if not protocol and secured:
        raise _not_named(
            bootstrap,
            "the connector gives no security.protocol for it: it connects with the workers'",
        )
    if any("${" in value for value in theirs.values()):
        raise _not_named(
            bootstrap, "only workers can resolve the references in the connector's overrides"
        )
    if {
        "ssl.keystore.location",
        "ssl.keystore.key",
    } & overrides.keys() and "ssl.key.pem" not in theirs:
        raise _not_named(bootstrap, "the connector's key is in a file of its workers")
    if protocol.startswith(_SASL):
        mechanism = theirs.get(_MECHANISM, "GSSAPI").upper()
        if mechanism not in _WITH_PASSWORD:
            raise _not_named(
                bootstrap, f"the connector logs in by {mechanism}, for which it has no password"
            )
        if not all(theirs.get(name) for name in _LOGIN):
            raise _not_named(bootstrap, "the connector's overrides have no complete login")
    dropped = ("ssl.certificate.location", "ssl.key.location")
    return {name: value for name, value in theirs.items() if name not in dropped}


def _not_named(bootstrap: str, why: str) -> Unreachable:
    why = f"the context does not name these servers, and {why}"
    return Unreachable(
        f"The Kafka cluster at {bootstrap} was not asked",
        why=why,
        next_step=NAME_IT,
        code="not-named",
    )
