"""TLS and logins that do not come about: the same cause in the same words, whichever client met
it.
"""

from __future__ import annotations

import gc
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError
from connectctl.ops.clients import connection_errors
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.librdkafka import connection
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.rest.connect import Connect
from connectctl.ops.core.errors import (
    BadInput,
    ConnectctlError,
    NotAuthorized,
    NotTrusted,
    Unreachable,
)
from fakes.tlsservers import Fault, faults

TIMEOUT = 3.0


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Fault]]:
    with faults(tmp_path_factory.mktemp("tls")) as found:
        yield found


def librdkafka(fault: Fault) -> Any:
    return Kafka(client(fault), timeout=TIMEOUT).cluster_id()


def kafka_python(fault: Fault) -> Any:
    wire = KafkaProtocolClient(client(fault), timeout=TIMEOUT)
    try:
        return wire.brokers()
    finally:
        wire.close()


def rest(fault: Fault) -> Any:
    url = f"{'https' if fault.tls else 'http'}://{fault.address}"
    tls = {"ca": fault.authority} | (
        {"certificate": fault.certificate} if fault.certificate else {}
    )
    return Connect([url, url], auth={}, tls=tls, timeout=TIMEOUT).get("/connectors")


def client(fault: Fault) -> dict[str, Any]:
    protocol = "SSL" if fault.tls else "PLAINTEXT"
    given = {
        "bootstrap.servers": fault.address,
        "security.protocol": protocol,
        "ssl.ca.location": fault.authority,
    }
    own = {"ssl.certificate.location": fault.certificate, "ssl.key.location": fault.certificate}
    return given | (own if fault.certificate else {})


# kafka-python forgets its socket where a handshake fails; the collector finds it, here and not in
# another test.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("ask", [librdkafka, kafka_python, rest])
def test_a_client_that_fails_tells_the_cause(
    wrong: list[Fault], ask: Callable[[Fault], Any]
) -> None:
    with ThreadPoolExecutor() as pool:
        told = list(pool.map(lambda fault: error_of(ask, fault), wrong))
    for fault, error in zip(wrong, told, strict=True):
        assert isinstance(error, NotTrusted), (fault.name, error)
        assert fault.words in str(error.why), fault.name
        assert "\n" not in str(error)
        assert "connectctl context show" in str(error.next_step)
    del told, error
    gc.collect()


def error_of(ask: Callable[[Fault], Any], fault: Fault) -> ConnectctlError:
    with pytest.raises(ConnectctlError) as caught:
        ask(fault)
    return caught.value


LONG = 600.0
"""A time-out that no test waits for."""


def test_what_the_handshake_decides_is_told_at_once(
    wrong: list[Fault], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "TIMEOUT", LONG)
    began = time.monotonic()
    with ThreadPoolExecutor() as pool:
        told = list(pool.map(lambda fault: error_of(librdkafka, fault), wrong))
    assert all(isinstance(error, NotTrusted) for error in told)
    assert time.monotonic() - began < LONG / 2
    del told
    gc.collect()


@pytest.mark.parametrize("name", ["ca", "certificate"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    missing = str(tmp_path / "missing.pem")
    told = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SSL",
        f"ssl.{name}.location": missing,
    }
    wire = KafkaProtocolClient(told, timeout=1)
    asked: dict[str, Callable[[], Any]] = {
        f"client.ssl.{name}.location": Kafka(told, timeout=1).cluster_id,
        f"client.ssl.{name}.location ": wire.brokers,
        f"rest_tls.{name}": lambda: Connect(
            ["https://127.0.0.1:1"], auth={}, tls={name: missing}, timeout=1
        ).get("/"),
    }
    for setting, ask in asked.items():
        with pytest.raises(BadInput) as caught:
            ask()
        assert str(caught.value).startswith(
            f"The file of {setting.strip()} cannot be read: {missing}: No such file"
        )
    wire.close()


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    odd = tmp_path / "odd.pem"
    odd.write_text("this is no certificate")
    wire = KafkaProtocolClient({"security.protocol": "SSL", "ssl.ca.location": str(odd)}, timeout=1)
    calls = Connect(["https://127.0.0.1:1"], auth={}, tls={"ca": str(odd)}, timeout=1)
    for ask in (wire.brokers, lambda: calls.get("/")):
        with pytest.raises(BadInput, match=str(odd)):
            ask()
    wire.close()


@pytest.mark.parametrize("words", ["SASL authentication error: Authentication failed", None])
def test_a_login_that_is_refused_is_no_missing_right(words: str | None) -> None:
    error = connection.failure(
        KafkaError(KafkaError._AUTHENTICATION, "no"), "list its topics", "b:1", words
    )
    assert isinstance(error, NotAuthorized)
    assert (
        error.what == "Authentication failed: Kafka at b:1 refuses the login (to list its topics)"
    )
    assert "rights" not in str(error)
    denied = connection.failure(
        KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), "list its topics", "b:1"
    )
    assert denied.what == "Not authorized to list its topics (Kafka at b:1)"


def test_nobody_there_is_not_a_matter_of_trust() -> None:
    lost = Unreachable("The worker at x cannot be reached", why="Connection refused")
    assert connection_errors.explained(lost, "127.0.0.1:1", ssl.create_default_context) is lost
    assert connection_errors.explained(lost, "127.0.0.1:1", lambda: None) is lost


@pytest.mark.parametrize(
    "said",
    [
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism SCRAM-SHA-512",
        "SaslAuthenticationFailedError: Authentication failed: Invalid username or password",
        '{"status":"invalid_token"}',
    ],
)
def test_a_wrong_password_is_told_in_words_with_what_the_broker_said(said: str) -> None:
    error = connection_errors.explained(
        NotAuthorized("Not authorized to connect", why=said), "x:1", lambda: None
    )
    assert str(error.why) == f"the user name, the password or the token is wrong ({said})"


def test_other_refusals_stay_as_they_are() -> None:
    error = NotAuthorized("Not authorized to read t", why="Topic authorization failed")
    assert connection_errors.explained(error, "x:1", lambda: None) is error
