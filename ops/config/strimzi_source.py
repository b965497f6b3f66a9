"""A context from Strimzi's KafkaConnect. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connectctl.ops.config.json_shape import an_object, anything, array, mapping, or_null
from connectctl.ops.config.worker_source import REST_PORT, Source, of_worker

_OBJECT = mapping(anything)
METADATA = an_object({}, {"metadata": _OBJECT})
KAFKA_CONNECT = an_object(
    {},
    {
        "metadata": _OBJECT,
        "spec": an_object(
            {},
            {
                "config": _OBJECT,
                "authentication": an_object(
                    {}, {"passwordSecret": _OBJECT, "certificateAndKey": _OBJECT}
                ),
                "tls": an_object({}, {"trustedCertificates": array(or_null(_OBJECT))}),
            },
        ),
    },
)


def of_strimzi(name: str, resource: Mapping[str, Any], context: str) -> Source:
    spec = resource.get("spec") or {}
    namespace = (resource.get("metadata") or {}).get("namespace")
    config = {
        "group.id": "connect-cluster",
        "config.storage.topic": "connect-cluster-configs",
        "offset.storage.topic": "connect-cluster-offsets",
        "status.storage.topic": "connect-cluster-status",
    } | {key: str(value) for key, value in (spec.get("config") or {}).items()}
    for member, key in (
        ("bootstrapServers", "bootstrap.servers"),
        ("groupId", "group.id"),
        ("configStorageTopic", "config.storage.topic"),
        ("offsetStorageTopic", "offset.storage.topic"),
        ("statusStorageTopic", "status.storage.topic"),
    ):
        if spec.get(member):
            config[key] = str(spec[member])
    login, tls = spec.get("authentication") or {}, spec.get("tls")
    kind = str(login.get("type", ""))
    sasl = kind in ("plain", "oauth") or kind.startswith("scram-")
    config["security.protocol"] = ("SASL_" if sasl else "") + (
        "PLAINTEXT" if tls is None else "SSL"
    )
    source = of_worker(config, context)
    client = source.entry.setdefault("client", {})
    secret = _Kubernetes(namespace)
    if kind == "plain" or kind.startswith("scram-"):
        client |= {"sasl.mechanism": kind.upper(), "sasl.username": str(login.get("username"))}
        password = login.get("passwordSecret") or {}
        client["sasl.password"] = secret.of(password, "password")
    elif kind == "tls":
        pair = login.get("certificateAndKey") or {}
        client["ssl.certificate.pem"] = secret.of(pair, "certificate")
        client["ssl.key.pem"] = secret.of(pair, "key")
    elif kind:
        source.notes.append(f"not taken: authentication of the type {kind}")
    trusted = [each for each in (tls or {}).get("trustedCertificates") or () if each]
    if trusted and trusted[0].get("certificate"):
        client["ssl.ca.pem"] = secret.of(trusted.pop(0), "certificate")
    if trusted:
        secrets = ", ".join(str(each.get("secretName")) for each in trusted)
        source.notes.append(
            f"not taken: trustedCertificates of {secrets}; --set client.ssl.ca.location=FILE"
        )
    service = f"{name}-connect-api" + (f".{namespace}.svc" if namespace else "")
    source.entry["rest"], source.entry["rest_is_group"] = [f"http://{service}:{REST_PORT}"], True
    source.notes.append(f"{service} is an address within Kubernetes: elsewhere forward its port")
    return source


@dataclass(frozen=True)
class _Kubernetes:
    """Makes references to Secrets, which kubectl prints."""

    namespace: str | None

    def of(self, secret: Mapping[str, Any], member: str) -> dict[str, str]:
        where = f" -n {self.namespace}" if self.namespace else ""
        key = str(secret.get(member) or member)
        template = f'{{{{index .data "{key}" | base64decode}}}}'
        command = f"kubectl get secret {secret.get('secretName')}{where}"
        return {"command": f"{command} -o go-template='{template}'"}
