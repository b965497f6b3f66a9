"""Translates the context's client properties, which are librdkafka's, to kafka-python's.

Properties that only tune librdkafka are left out. Those that change the identity or the trust are
translated or refused, never dropped.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from connectctl.ops.clients.connection_errors import check_files, naming
from connectctl.ops.clients.kafka_protocol.oauth import provider
from connectctl.ops.core.errors import BadInput

_REFUSED = {
    "ssl.keystore.location": "a PKCS#12 keystore; give ssl.certificate.location and "
    "ssl.key.location, in PEM",
    "ssl.engine.location": "an OpenSSL engine",
    "ssl.providers": "an OpenSSL provider",
    "sasl.kerberos.keytab": "a keytab; get a ticket with kinit instead",
}
_PLAIN = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def arguments(properties: Mapping[str, Any]) -> dict[str, Any]:
    """kafka-python's arguments for a connection with librdkafka's ``properties``. Raises
    ``BadInput``.
    """
    for name, what in _REFUSED.items():
        if properties.get(name):
            raise BadInput(f"{name} cannot be used for transactions: it is {what}")
    servers = str(
        properties.get("bootstrap.servers") or properties.get("metadata.broker.list") or ""
    )
    protocol = str(properties.get("security.protocol", "plaintext")).upper()
    found: dict[str, Any] = {
        "bootstrap_servers": [server.strip() for server in servers.split(",") if server.strip()],
        "client_id": str(properties.get("client.id", "connectctl")),
        "security_protocol": protocol,
    }
    if context := tls(properties):
        found["ssl_context"] = context
    if protocol.startswith("SASL_"):
        found |= _sasl(properties)
    return found


def _sasl(properties: Mapping[str, Any]) -> dict[str, Any]:
    mechanism = str(
        properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or "GSSAPI"
    ).upper()
    found: dict[str, Any] = {"sasl_mechanism": mechanism}
    if mechanism in _PLAIN:
        for part in ("username", "password"):
            if f"sasl.{part}" not in properties:
                raise BadInput(f"client: sasl.{part} is missing, which {mechanism} needs")
            found[f"sasl_plain_{part}"] = str(properties[f"sasl.{part}"])
    elif mechanism == "OAUTHBEARER":
        found["sasl_oauth_token_provider"] = provider(properties)
    elif mechanism == "GSSAPI":
        found["sasl_kerberos_service_name"] = str(
            properties.get("sasl.kerberos.service.name", "kafka")
        )
    else:
        raise BadInput(
            f"client: sasl.mechanism {mechanism} is not supported for transactions",
            next_step=f"Use {', '.join(_PLAIN)}, OAUTHBEARER or GSSAPI.",
        )
    return found


def tls(properties: Mapping[str, Any]) -> ssl.SSLContext | None:
    """Return trust and identity as librdkafka has them; it verifies the broker's name unless
    configured otherwise.

    None for a protocol without TLS. Raises ``BadInput`` for files that cannot be used.
    """
    import ssl

    if str(properties.get("security.protocol", "plaintext")).upper() not in ("SSL", "SASL_SSL"):
        return None
    check_files(tls_files(properties))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        _trust(context, properties)
        _identify(context, properties)
        if properties.get("ssl.cipher.suites"):
            context.set_ciphers(str(properties["ssl.cipher.suites"]).replace(",", ":"))
    except (OSError, ValueError) as e:
        why = str(e) or type(e).__name__
        raise BadInput(
            "The client's TLS files cannot be used", why=why, next_step="Check client: ssl.…."
        ) from e
    return context


def tls_files(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The files of librdkafka's TLS properties, by the setting that names them; none for a protocol
    without TLS.
    """
    if str(properties.get("security.protocol", "plaintext")).upper() not in ("SSL", "SASL_SSL"):
        return {}
    named = (f"ssl.{what}.location" for what in ("ca", "certificate", "key", "keystore", "crl"))
    return {f"client.{name}": properties[name] for name in named if properties.get(name)}


def _trust(context: ssl.SSLContext, properties: Mapping[str, Any]) -> None:
    import ssl

    authorities = properties.get("ssl.ca.location")
    if properties.get("ssl.ca.pem"):
        context.load_verify_locations(cadata=str(properties["ssl.ca.pem"]))
    elif authorities and authorities != "probe":
        location = Path(str(authorities)).expanduser()
        with naming(location):
            if location.is_dir():
                context.load_verify_locations(capath=location)
            else:
                context.load_verify_locations(cafile=location)
    else:
        context.load_default_certs()
    if properties.get("ssl.crl.location"):
        context.load_verify_locations(cafile=str(properties["ssl.crl.location"]))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if str(properties.get("ssl.endpoint.identification.algorithm", "https")).lower() == "none":
        context.check_hostname = False
    if str(properties.get("enable.ssl.certificate.verification", "true")).lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE


def _identify(context: ssl.SSLContext, properties: Mapping[str, Any]) -> None:
    import tempfile

    secret = properties.get("ssl.key.password")
    password = str(secret) if secret else None
    pem = [
        str(properties[name])
        for name in ("ssl.key.pem", "ssl.certificate.pem")
        if properties.get(name)
    ]
    if pem:
        # The ssl module reads identities from files only; this one is readable by its owner and
        # gone at once.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write("\n".join(pem))
            file.flush()
            context.load_cert_chain(file.name, password=password)
    elif properties.get("ssl.certificate.location"):
        certificate = Path(str(properties["ssl.certificate.location"])).expanduser()
        key = properties.get("ssl.key.location")
        with naming(f"{certificate} and {key}" if key else certificate):
            context.load_cert_chain(
                certificate, Path(str(key)).expanduser() if key else None, password=password
            )
