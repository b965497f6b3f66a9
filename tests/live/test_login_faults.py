"""Logins and certificates that a real broker refuses: named as such, long before the time-out."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, NotTrusted
from connectctl.ops.sandbox.security import MTLS, OAUTH, PLAIN, SCRAM
from live.securedcluster import as_admin

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
TIMEOUT = 120.0
"""Seconds that nobody waits for."""
FAULTS: dict[str, tuple[str, dict[str, Any], type[ConnectctlError], str]] = {
    "a wrong SCRAM password": (
        SCRAM,
        {"sasl.password": "wrong"},
        NotAuthorized,
        "the user name, the password",
    ),
    "a wrong PLAIN password": (
        PLAIN,
        {"sasl.password": "wrong"},
        NotAuthorized,
        "the user name, the password",
    ),
    "a token whose principal is in another claim": (
        OAUTH,
        {"sasl.oauthbearer.config": "principal=admin lifeSeconds=60"},
        NotAuthorized,
        "Authentication failed",
    ),
    "no certificate": (
        MTLS,
        {"ssl.certificate.location": None, "ssl.key.location": None},
        NotTrusted,
        "certificate",
    ),
    "an authority that is not trusted": (
        SCRAM,
        {"ssl.ca.location": None},
        NotTrusted,
        "not trusted here",
    ),
    "no TLS": (
        SCRAM,
        {"security.protocol": "PLAINTEXT"},
        NotTrusted,
        "it requires TLS on this port",
    ),
}


def librdkafka(properties: dict[str, Any]) -> Any:
    return Kafka(properties, timeout=TIMEOUT).cluster_id()


def kafka_python(properties: dict[str, Any]) -> Any:
    wire = KafkaProtocolClient(properties, timeout=TIMEOUT)
    try:
        return wire.brokers()
    finally:
        wire.close()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("ask", [librdkafka, kafka_python])
def test_what_a_broker_refuses_is_named_before_the_time_is_over(
    secured: Sandbox, ask: Callable[[dict[str, Any]], Any]
) -> None:
    for fault, (way, changes, kind, words) in FAULTS.items():
        given = as_admin(secured, way) | changes
        began = time.monotonic()
        with pytest.raises(ConnectctlError) as caught:
            ask({name: value for name, value in given.items() if value is not None})
        took, error = time.monotonic() - began, caught.value
        print(f"{fault:32} {took:5.1f} s  {error}")
        assert isinstance(error, kind), (fault, error)
        assert words in str(error), fault
        assert "rights" not in str(error), fault
        assert took < TIMEOUT / 2, fault
        if kind is NotAuthorized:
            assert error.what.startswith("Authentication failed"), fault
        del caught, error
    # kafka-python forgets its socket where a handshake fails; found here, and not in another test
    gc.collect()
