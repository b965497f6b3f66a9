"""librdkafka's properties in kafka-python's terms."""

from __future__ import annotations

import base64
import json
import logging
import ssl
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient, failure
from connectctl.ops.clients.kafka_protocol.client_properties import arguments
from connectctl.ops.clients.kafka_protocol.connection_failures import ConnectionFailures
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized, Unreachable
from kafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    NodeNotReadyError,
    SaslAuthenticationFailedError,
)
from kafka.future import Future

SERVERS = {"bootstrap.servers": "one:9092, two:9092"}


def test_without_security_only_the_servers_and_the_name_are_told() -> None:
    assert arguments(SERVERS | {"socket.keepalive.enable": True}) == {
        "bootstrap_servers": ["one:9092", "two:9092"],
        "client_id": "connectctl",
        "security_protocol": "PLAINTEXT",
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
def test_passwords_are_handed_over(mechanism: str, name: str) -> None:
    client = {
        "security.protocol": "sasl_plaintext",
        name: mechanism,
        "sasl.username": "ops",
        "sasl.password": "s3cret",
    }
    found = arguments(SERVERS | client)
    assert found["security_protocol"] == "SASL_PLAINTEXT"
    assert found["sasl_mechanism"] == mechanism
    assert (found["sasl_plain_username"], found["sasl_plain_password"]) == ("ops", "s3cret")


def test_tls_checks_certificate_and_name_unless_told_not_to() -> None:
    context = arguments(SERVERS | {"security.protocol": "ssl"})["ssl_context"]
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    no_name = {"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": "none"}
    context = arguments(SERVERS | no_name)["ssl_context"]
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, False)
    nothing = {"security.protocol": "ssl", "enable.ssl.certificate.verification": "false"}
    assert arguments(SERVERS | nothing)["ssl_context"].verify_mode == ssl.CERT_NONE


def test_an_unsecured_token_has_the_claims_that_were_configured() -> None:
    client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=ops scope=a,b lifeSeconds=60",
        "sasl.oauthbearer.extensions": "tenant=x",
    }
    provider = arguments(SERVERS | client)["sasl_oauth_token_provider"]
    head, claims, signature = provider.token().split(".")
    decoded = json.loads(base64.urlsafe_b64decode(claims + "=="))
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "none"}
    assert (decoded["sub"], decoded["scope"], signature) == ("ops", ["a", "b"], "")
    assert decoded["exp"] - decoded["iat"] == 60
    assert provider.extensions() == {"tenant": "x"}


@pytest.mark.parametrize(
    ("client", "words"),
    [
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "x"},
            "sasl.password is missing",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MAGIC"},
            "AWS_MAGIC is not supported",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"},
            "no token source configured",
        ),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "x",
            },
            "sasl.oauthbearer.client.secret is missing",
        ),
        (
            {"security.protocol": "SSL", "ssl.ca.location": "/nowhere/ca.pem"},
            "ssl.ca.location cannot be read: /nowhere/ca.pem",
        ),
        ({"security.protocol": "SSL", "ssl.key.pem": "nonsense"}, "TLS files cannot be used"),
        ({"security.protocol": "SSL", "ssl.keystore.location": "/k.p12"}, "PKCS#12"),
    ],
)
def test_what_cannot_be_translated_is_bad_input_and_never_dropped(
    client: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput) as raised:
        arguments(SERVERS | client)
    assert words in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_kafka_pythons_errors_become_ours() -> None:
    import kafka.errors as theirs

    def of(error: Exception, *causes: Exception) -> ConnectctlError:
        failures = ConnectionFailures()
        for cause in causes:
            failures.note("bootstrap-0", cause)
        return failure(error, "one:9092", "connect", failures)

    unknown = KafkaConnectionError("111 ECONNREFUSED")
    assert type(of(LATE, unknown)) is Unreachable
    assert "ECONNREFUSED" in str(of(LATE, unknown))
    assert type(of(REFUSED)) is NotAuthorized
    # Nobody answered the login in time: no word about the credentials.
    assert type(of(LATE, KafkaTimeoutError("SASL Authentication timed out"))) is Unreachable
    assert type(of(theirs.ClusterAuthorizationFailedError())) is NotAuthorized
    assert of(theirs.IncompatibleBrokerVersion("old")).code == "unsupported"
    with pytest.raises(ZeroDivisionError):
        of(ZeroDivisionError())


REFUSED, CUT, LATE = (
    SaslAuthenticationFailedError("no"),
    KafkaConnectionError("cut"),
    KafkaTimeoutError("late"),
)


def test_the_reason_of_a_refused_login_outlives_later_complaints_until_there_is_an_answer() -> None:
    failures = ConnectionFailures()
    for node, error in [
        (0, REFUSED),
        (0, CUT),
        (0, KafkaTimeoutError("SASL Authentication timed out")),
        (1, CUT),
    ]:
        failures.note(f"bootstrap-{node}", error)
    assert type(failure(LATE, "one:9092", "connect", failures)) is NotAuthorized
    failures.brokers_are_known()
    assert type(failure(LATE, "one:9092", "connect", failures)) is Unreachable


def test_a_refused_login_is_the_reason_of_its_own_broker_alone() -> None:
    failures = ConnectionFailures()
    failures.brokers_are_known()
    failures.note(1, REFUSED)
    found = [
        failure(each, "one:9092", "connect", failures)
        for each in (*map(NodeNotReadyError, (1, 2)), LATE)
    ]
    assert [type(each) for each in found] == [NotAuthorized, Unreachable, Unreachable]


def test_a_connection_that_is_made_forgets_why_the_one_before_was_not() -> None:
    failures, connections = (
        ConnectionFailures(),
        [SimpleNamespace(init_future=Future()) for _ in range(2)],
    )
    manager = SimpleNamespace(get_connection=lambda node_id: connections[node_id])
    failures.watch(manager)
    for node in (0, 1):
        assert manager.get_connection(node) is connections[node]
        connections[node].init_future.failure(REFUSED)
    connections[0].init_future = Future()
    manager.get_connection(0)
    connections[0].init_future.success(None)
    assert (failures.of_node(0), failures.of_node(1)) == ([], [REFUSED])


def test_a_refused_login_of_one_client_is_not_an_error_of_another() -> None:
    """They share kafka-python's loggers, which say the same for all of them."""
    other = KafkaProtocolClient({"bootstrap.servers": "two:9092"}, timeout=1)
    other.explains = False
    logging.getLogger("kafka.net.manager").warning(
        "Bootstrap connection to bootstrap-0 failed: %s (backoff", REFUSED
    )
    assert type(other.failure(LATE, "connect")) is Unreachable
