"""Translates Java client properties of connectors and workers to librdkafka's, where these exist.

Only the properties of the connection are translated. Java keystores (JKS) and references to config
providers (``${file:…}``) have no equivalent; for such a cluster the context has the client
properties. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from connectctl.ops.config import jaas, masking

_SAME = {
    "security.protocol",
    "sasl.mechanism",
    "ssl.key.password",
    "client.dns.lookup",
    "sasl.kerberos.service.name",
}
_RENAMED = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_LOGIN = {"username": "sasl.username", "password": "sasl.password"}
_OAUTH = {
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_CONNECTION = re.compile(r"sasl\..*|ssl\..*")
_NOT_OF_CLIENTS = re.compile(
    r"ssl\.(protocol|enabled\.protocols|\w+store\.(type|password))|sasl\.login\..*"
)
_PROVIDER = re.compile(r"\$\{(?:env:([A-Za-z_]\w*)|dir(?:ectory)?:([^:}]+):([^:}]+))\}")


def from_java(overrides: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's properties for the Java client properties in ``overrides``; what has no equal is
    left out.
    """
    found = {name: value for name, value in overrides.items() if name in _SAME}
    found |= {_RENAMED[name]: value for name, value in overrides.items() if name in _RENAMED}
    login = jaas.options(overrides.get("sasl.jaas.config", ""))
    found |= {ours: login[name] for name, ours in _LOGIN.items() if name in login}
    if (
        overrides.get("ssl.truststore.type", "").upper() == "PEM"
        and "ssl.truststore.location" in overrides
    ):
        found["ssl.ca.location"] = overrides["ssl.truststore.location"]
    if (
        overrides.get("ssl.keystore.type", "").upper() == "PEM"
        and "ssl.keystore.location" in overrides
    ):
        found["ssl.certificate.location"] = found["ssl.key.location"] = overrides[
            "ssl.keystore.location"
        ]
    if overrides.get("ssl.endpoint.identification.algorithm") == "":
        found["ssl.endpoint.identification.algorithm"] = "none"
    return found


@dataclass(frozen=True)
class Client:
    """The ``client`` section of a context for Java client properties, and what it cannot have: each
    with its reason.
    """

    entry: Mapping[str, Any]
    missing: tuple[str, ...]


def client_of(
    properties: Mapping[str, str], refer: Callable[[str, str], Mapping[str, str]]
) -> Client:
    """Return the ``client`` section for a worker's ``properties``. Secrets are references: to what a
    config provider reads, else those of ``refer``, which gets our property and the secret.
    """
    plain = from_java(properties) | _oidc(properties)
    entry = {
        name: (_of_provider(value) or refer(name, value)) if masking.is_secret(name) else value
        for name, value in plain.items()
    }
    known = {*_SAME, *_RENAMED}
    known |= {"ssl.truststore.location"} if "ssl.ca.location" in plain else set()
    known |= {"ssl.keystore.location"} if "ssl.key.location" in plain else set()
    known |= {"sasl.jaas.config"} if plain.keys() & {"sasl.username", _OAUTH["clientId"]} else set()
    known |= {_ENDPOINT} if _ENDPOINT in plain else set()
    if properties.get("ssl.endpoint.identification.algorithm", "").lower() in ("", "https"):
        known.add("ssl.endpoint.identification.algorithm")
    missing = [
        _reason(name, properties)
        for name in properties
        if name not in known and _CONNECTION.fullmatch(name) and not _NOT_OF_CLIENTS.fullmatch(name)
    ]
    return Client(entry, tuple(missing))


def _oidc(properties: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's properties for a login with client credentials (OIDC), none for
    others.
    """
    text = properties.get("sasl.jaas.config", "")
    options = jaas.options(text) if "OAuthBearerLoginModule" in text else {}
    found = {ours: options[name] for name, ours in _OAUTH.items() if name in options}
    if not found or _ENDPOINT not in properties:
        return {}
    return found | {"sasl.oauthbearer.method": "oidc", _ENDPOINT: properties[_ENDPOINT]}


def _reason(name: str, properties: Mapping[str, str]) -> str:
    if name == "ssl.truststore.location":
        return f"{name}: export its certificates as PEM, and --set client.ssl.ca.location=FILE"
    if name == "ssl.keystore.location":
        return (
            f"{name}: export it as PEM, and --set client.ssl.certificate.location=FILE "
            "--set client.ssl.key.location=FILE"
        )
    if name == "sasl.jaas.config":
        return f"{name}: a login by {properties.get('sasl.mechanism', 'GSSAPI')} has no equal here"
    return f"{name}: it has no equal here"


def _of_provider(value: str) -> Mapping[str, str] | None:
    """Return the reference to what Kafka's config providers of variables and directories read."""
    found = _PROVIDER.fullmatch(value.strip())
    if found is None:
        return None
    return {"env": found[1]} if found[1] else {"file": f"{found[2]}/{found[3]}"}
