"""Translates a connector's Java client overrides to librdkafka's properties, where these exist.

Only the properties of the connection are translated. Java keystores (JKS) and references to config
providers (``${file:…}``) have no equivalent; for such a cluster the context's ``clusters`` has the
client properties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

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
_JAAS = re.compile(r"""\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")


def from_java(overrides: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's properties for the Java client properties in ``overrides``; what has no equal is
    left out.
    """
    found = {name: value for name, value in overrides.items() if name in _SAME}
    found |= {_RENAMED[name]: value for name, value in overrides.items() if name in _RENAMED}
    for name, quoted, single in _JAAS.findall(overrides.get("sasl.jaas.config", "")):
        found[f"sasl.{name}"] = re.sub(r"\\(.)", r"\1", quoted) or single
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
