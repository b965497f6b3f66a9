"""The properties of a converter that are about its Schema Registry, for confluent-kafka's client.

Names and defaults are those of Confluent's converters (``AbstractKafkaSchemaSerDeConfig``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectctl.ops.config.prefixed import full_name
from connectctl.ops.core.errors import BadInput

URL = "schema.registry.url"
TIMEOUT = 30.0
"""Seconds for an answer."""
_SOURCE, _USER_INFO = "basic.auth.credentials.source", "basic.auth.user.info"
_BEARER, _TOKEN = "bearer.auth.credentials.source", "bearer.auth.token"
_OAUTH = tuple(
    f"bearer.auth.{name}"
    for name in (
        "client.id",
        "client.secret",
        "scope",
        "issuer.endpoint.url",
        "logical.cluster",
        "identity.pool.id",
    )
)
_STORES = {
    "truststore": {"ssl.ca.location": "location"},
    "keystore": {"ssl.certificate.location": "location", "ssl.key.location": "location"},
}
_NUMBERS = {"max.retries": "5", "retries.wait.ms": "1000", "retries.max.wait.ms": "20000"}


def client_settings(configs: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of ``SchemaRegistryClient``. Raises ``BadInput``."""
    if not configs.get(URL, "").strip():
        name = full_name(configs, URL)
        raise BadInput(f'Missing required configuration "{name}" which has no default value.')
    found: dict[str, Any] = {"url": configs[URL].strip(), "timeout": TIMEOUT}
    return (
        found
        | _login(configs)
        | _tls(configs)
        | {n: whole(configs, n, d) for n, d in _NUMBERS.items()}
    )


def whole(configs: Mapping[str, str], name: str, default: str) -> int:
    """Return a whole number. Raises ``BadInput``."""
    value = configs.get(name, default).strip()
    if not (value.isascii() and value.isdigit()):
        raise BadInput(
            f"Invalid value {value} for configuration {full_name(configs, name)}: "
            "it must be a number"
        )
    return int(value)


def flag(configs: Mapping[str, str], name: str, default: bool) -> bool:
    """Return a boolean. Raises ``BadInput``."""
    value = configs.get(name, str(default)).strip().lower()
    if value not in ("true", "false"):
        raise BadInput(
            f"Invalid value {value} for configuration {full_name(configs, name)}: use true or false"
        )
    return value == "true"


def _login(configs: Mapping[str, str]) -> dict[str, Any]:
    source = configs.get(_SOURCE, "URL").strip().upper()
    if source == "USER_INFO":
        return {_USER_INFO: configs.get(_USER_INFO, "")}
    if source != "URL":
        raise BadInput(
            f"Unsupported {full_name(configs, _SOURCE)} {source}",
            next_step=f"Use USER_INFO with {full_name(configs, _USER_INFO)}.",
        )
    bearer = configs.get(_BEARER, "").strip().upper()
    if not bearer:
        return {}
    if bearer == "STATIC_TOKEN":
        found = {_BEARER: bearer, _TOKEN: configs.get(_TOKEN, "")}
    elif bearer == "OAUTHBEARER":
        found = {_BEARER: bearer}
    else:
        raise BadInput(
            f"Unsupported {full_name(configs, _BEARER)} {bearer}",
            next_step="Use STATIC_TOKEN or OAUTHBEARER.",
        )
    # The client requires a logical cluster, which registries other than Confluent Cloud's ignore.
    return (
        found
        | {"bearer.auth.logical.cluster": ""}
        | {name: configs[name] for name in _OAUTH if name in configs}
    )


def _tls(configs: Mapping[str, str]) -> dict[str, Any]:
    """Return the files of certificates, which are in PEM."""
    found: dict[str, Any] = {}
    for store, names in _STORES.items():
        path = configs.get(f"schema.registry.ssl.{store}.location")
        if path is None:
            continue
        kind = configs.get(f"schema.registry.ssl.{store}.type", "JKS").upper()
        if kind != "PEM":
            name = full_name(configs, f"schema.registry.ssl.{store}")
            raise BadInput(
                f"{name}.location is of type {kind}, which Python cannot read",
                next_step=f"Export it as PEM, and set {name}.type=PEM.",
            )
        found |= dict.fromkeys(names, path)
    if "schema.registry.ssl.key.password" in configs and "ssl.key.location" in found:
        found["ssl.key.password"] = configs["schema.registry.ssl.key.password"]
    return found
