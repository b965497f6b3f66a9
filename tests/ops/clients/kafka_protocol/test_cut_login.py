"""A broker that dies in the middle of a login has refused nobody: it is waited for, as any other
that dies.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from connectctl.ops.clients import connection_errors
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.librdkafka.connection import failure
from connectctl.ops.core.errors import NotAuthorized, NotTrusted, Unreachable
from connectctl.ops.task_runtime.task.retries import is_retriable
from fakes.dyingbroker import AUTHENTICATE, HANDSHAKE, VERSIONS, DyingBroker

CLIENTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "librdkafka": lambda client: Kafka(client, timeout=1).cluster_id(),
    "kafka-python": lambda client: KafkaProtocolClient(client, timeout=1).manager,
}


@pytest.mark.parametrize("client", list(CLIENTS))
@pytest.mark.parametrize(
    "at", [VERSIONS, HANDSHAKE, AUTHENTICATE], ids=["versions", "handshake", "authenticate"]
)
@pytest.mark.parametrize("reset", [False, True])
def test_a_login_that_is_cut_short_is_an_outage(client: str, at: int, reset: bool) -> None:
    broker = DyingBroker(at, reset=reset, mechanism="SCRAM-SHA-512")
    login = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "u", "sasl.password": "p"}
    try:
        with pytest.raises(Unreachable) as raised:
            CLIENTS[client](
                {
                    "bootstrap.servers": broker.address,
                    "security.protocol": "SASL_PLAINTEXT",
                    **login,
                }
            )
    finally:
        broker.close()
    assert type(raised.value) is Unreachable, raised.value
    assert is_retriable(raised.value)
    assert broker.died


REFUSED = (
    "SASL authentication error: Authentication failed during authentication due to invalid "
    "credentials"
)
CUT = (
    "SASL authentication error: SaslAuthenticateRequest failed: Local: Broker transport failure "
    "(after 0ms in state DOWN)"
)
CUT_EARLIER = (
    "SASL PLAIN mechanism handshake failed: Local: Timed out: broker's supported mechanisms: (n/a)"
)


@pytest.mark.parametrize(
    "name", ["REQUEST_TIMED_OUT", "NOT_COORDINATOR", "UNKNOWN", "COORDINATOR_NOT_AVAILABLE"]
)
def test_a_login_that_was_refused_before_is_not_the_reason_of_a_brokers_answer(name: str) -> None:
    answer: Any = type("E", (), {"name": lambda self: name, "str": lambda self: "later"})()
    found = failure(
        answer, "commit its transaction", "a:1", "SASL authentication error: Authentication failed"
    )
    assert not isinstance(found, NotAuthorized)
    assert "Authentication" not in str(found)


@pytest.mark.parametrize(
    ("name", "text", "last_words", "kind"),
    [
        ("_AUTHENTICATION", REFUSED, None, NotAuthorized),
        ("_AUTHENTICATION", CUT, None, Unreachable),
        ("_AUTHENTICATION", CUT_EARLIER, CUT_EARLIER, Unreachable),
        ("_AUTHENTICATION", CUT, REFUSED, NotAuthorized),
        ("_TRANSPORT", "Local: Broker transport failure", CUT, Unreachable),
        ("_TRANSPORT", "Local: Broker transport failure", REFUSED, NotAuthorized),
        ("SASL_AUTHENTICATION_FAILED", "Broker: SASL Authentication failed", None, NotAuthorized),
    ],
)
def test_librdkafkas_words_tell_a_refusal_from_a_broker_that_died(
    name: str, text: str, last_words: str | None, kind: type[Unreachable]
) -> None:
    error: Any = type("E", (), {"name": lambda self: name, "str": lambda self: text})()
    assert type(failure(error, "list its topics", "a:1", last_words)) is kind


@pytest.mark.parametrize(("times", "cause"), [(1, None), (2, connection_errors.NO_TLS)])
def test_a_server_that_hangs_up_once_is_dying_and_one_that_does_so_again_speaks_no_tls(
    monkeypatch: pytest.MonkeyPatch, times: int, cause: str | None
) -> None:
    monkeypatch.setattr(connection_errors, "DYING", 0.01)
    server = socket.create_server(("127.0.0.1", 0))

    def hang_up() -> None:
        with suppress(OSError):
            for _ in range(times):
                server.accept()[0].close()
        server.close()

    port = server.getsockname()[1]
    if times == 1:
        monkeypatch.setattr(connection_errors, "DYING", 0.5)
    thread = threading.Thread(target=hang_up)
    thread.start()
    assert connection_errors.cause(f"127.0.0.1:{port}", ssl.create_default_context()) == cause
    thread.join(60)
    assert not thread.is_alive()
    assert not issubclass(Unreachable, NotTrusted)
