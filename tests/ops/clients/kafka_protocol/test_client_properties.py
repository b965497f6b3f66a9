"""librdkafka's properties in kafka-python's terms."""

from __future__ import annotations

import base64
import json
import ssl
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol.client import LastError, failure
from connectctl.ops.clients.kafka_protocol.client_properties import arguments
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized, Unreachable

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
    client = {"security.protocol": "sasl_plaintext", name: mechanism, "sasl.username": "ops", "sasl.password": "s3cret"}
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
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MAGIC"}, "AWS_MAGIC is not supported"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "no token source configured"),
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
def test_what_cannot_be_translated_is_bad_input_and_never_dropped(client: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput) as raised:
        arguments(SERVERS | client)
    assert words in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_kafka_pythons_errors_become_ours() -> None:
    import kafka.errors as theirs

    def of(error: Exception, words: str | None = None) -> ConnectctlError:
        return failure(error, "one:9092", "connect", words)

    assert type(of(theirs.KafkaTimeoutError("late"), "111 ECONNREFUSED")) is Unreachable
    assert "ECONNREFUSED" in str(of(theirs.KafkaTimeoutError("late"), "111 ECONNREFUSED"))
    assert type(of(theirs.SaslAuthenticationFailedError("no"))) is NotAuthorized
    assert type(of(theirs.KafkaTimeoutError("late"), "SaslAuthenticationFailedError: no")) is NotAuthorized
    # Nobody answered the login in time: no word about the credentials.
    assert type(of(theirs.KafkaTimeoutError("late"), "KafkaTimeoutError: SASL Authentication timed out")) is Unreachable
    assert type(of(theirs.ClusterAuthorizationFailedError())) is NotAuthorized
    assert of(theirs.IncompatibleBrokerVersion("old")).code == "unsupported"
    with pytest.raises(ZeroDivisionError):
        of(ZeroDivisionError())


def test_the_reason_of_a_refused_login_outlives_later_complaints() -> None:
    import logging

    words = LastError()

    def say(text: str) -> None:
        words.emit(logging.LogRecord("kafka", logging.ERROR, "", 0, text, None, None))

    say("Bootstrap connection to bootstrap-0 failed: 111 ECONNREFUSED (backoff 0.10 secs)")
    assert words.text == "111 ECONNREFUSED"
    say("Bootstrap connection to bootstrap-0 failed: SaslAuthenticationFailedError: no (backoff 0.10 secs)")
    say("Bootstrap connection to bootstrap-0 failed: timed out (backoff 0.10 secs)")
    say(
        "Bootstrap connection to bootstrap-0 failed: KafkaTimeoutError: SASL Authentication timed out (backoff 0.10 secs)"
    )
    say("Bootstrap failed: KafkaTimeoutError: Unable to bootstrap")
    assert words.text == "SaslAuthenticationFailedError: no"
