"""Which credentials go to the servers that a connector names."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from connectctl.cli.session import Session
from connectctl.ops.clients.cluster_credentials import connection_properties, named_cluster
from connectctl.ops.config.settings import SecretSource, Setting, Settings
from connectctl.ops.core.errors import BadInput, Unreachable
from connectctl.ops.operations.transactions.sources import coordinators_of
from hypothesis import given
from hypothesis import strategies as st

OWN, OTHER, ELSEWHERE = "b1:9093,b2:9093", "dr1:9093,dr2:9093", "evil:9092"
SECRETS = {"ours-password", "dr-password", "ours.key"}
CLIENT = {
    "security.protocol": "SASL_SSL",
    "ssl.ca.location": "/ca.pem",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "ops",
    "sasl.password": SecretSource("env", "OURS"),
    "ssl.key.location": "ours.key",
}
JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="own" '
    'password="theirs";'
)
LOGIN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS}
OVERRIDES = {
    "security.protocol": ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "sasl_plaintext"],
    "sasl.mechanism": ["PLAIN", "GSSAPI", "OAUTHBEARER", "SCRAM-SHA-512"],
    "sasl.jaas.config": [
        JAAS,
        "${file:/x:jaas}",
        JAAS.replace("theirs", "${env:OURS}"),
        JAAS.partition("password")[0],
    ],
    "ssl.keystore.location": ["/k.jks", "/home/ops/ours.key"],
    "ssl.keystore.type": ["PEM", "JKS"],
    "ssl.keystore.key": ["-----BEGIN PRIVATE KEY-----"],
    "ssl.keystore.certificate.chain": ["-----BEGIN CERTIFICATE-----"],
    "ssl.truststore.location": ["/t.pem"],
    "ssl.truststore.type": ["PEM"],
    "ssl.endpoint.identification.algorithm": [""],
}


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "ours-password")
    monkeypatch.setenv("DR", "dr-password")


def context(client: dict[str, Any] = CLIENT, **clusters: Any) -> Settings:
    dr = {"bootstrap_servers": OTHER, "client.security.protocol": "SASL_SSL"}
    dr |= {"client.sasl.mechanism": "PLAIN", "client.sasl.username": "dr"}
    values: dict[str, Any] = {"bootstrap_servers": OWN, "client.none": None}
    values |= {f"client.{name}": value for name, value in client.items()}
    values |= {f"clusters.dr.{name}": value for name, value in dr.items()}
    values["clusters.dr.client.sasl.password"] = SecretSource("env", "DR")
    del values["client.none"]
    return Settings({name: Setting(value, "test") for name, value in values.items()})


anything = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in OVERRIDES.items()}
)


@given(anything)
def test_servers_that_only_a_connector_names_get_nothing_of_the_contexts(
    overrides: dict[str, str],
) -> None:
    with pytest.MonkeyPatch.context() as patch, suppress(Unreachable):
        patch.setenv("OURS", "ours-password")
        found = connection_properties(context(), ELSEWHERE, overrides)
        text = repr(found)
        assert [secret for secret in (*SECRETS, "'ops'", "/ca.pem", "${") if secret in text] == []
        assert found["bootstrap.servers"] == ELSEWHERE
        if found["security.protocol"].upper().startswith("SASL"):
            assert (found["sasl.username"], found["sasl.password"]) == ("own", "theirs")


@given(
    anything,
    st.sampled_from([(OWN, OWN), (OTHER, OTHER), ("b2:9093", OWN), (f"{ELSEWHERE},b1:9093", OWN)]),
)
def test_named_servers_are_asked_at_the_contexts_addresses_over_the_contexts_encryption(
    overrides: dict[str, str], servers: tuple[str, str]
) -> None:
    asked, named = servers
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OURS", "ours-password")
        patch.setenv("DR", "dr-password")
        found = connection_properties(context(), asked, overrides)
    assert found["bootstrap.servers"] == named
    assert found["security.protocol"] == "SASL_SSL"
    ours = "dr-password" if named == OTHER else "ours-password"
    mechanism = "PLAIN" if named == OTHER else "SCRAM-SHA-512"
    assert found["sasl.password"] != ours or found["sasl.mechanism"] == mechanism
    assert "ssl.endpoint.identification.algorithm" not in found


@pytest.mark.parametrize(
    ("overrides", "why"),
    [
        ({}, "it connects with the workers'"),
        ({"sasl.jaas.config": JAAS}, "it connects with the workers'"),
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            "have no complete login",
        ),
        (
            LOGIN | {"sasl.jaas.config": JAAS.replace("theirs", "${env:P}")},
            "only workers can resolve",
        ),
        (LOGIN | {"sasl.mechanism": "OAUTHBEARER"}, "logs in by OAUTHBEARER"),
        ({"security.protocol": "SASL_SSL", "sasl.jaas.config": JAAS}, "logs in by GSSAPI"),
        (
            {"security.protocol": "SSL", "ssl.keystore.location": "/k", "ssl.keystore.type": "PEM"},
            "in a file of its",
        ),
    ],
)
def test_a_connector_without_a_login_of_its_own_is_not_followed(
    overrides: dict[str, str], why: str
) -> None:
    with pytest.raises(Unreachable, match=why) as told:
        connection_properties(context(), ELSEWHERE, overrides)
    assert (told.value.code, str(told.value.next_step)[:28]) == (
        "not-named",
        "Name that cluster under clus",
    )


def test_a_connectors_own_login_is_used_whole() -> None:
    found = connection_properties(
        context(), ELSEWHERE, LOGIN | {"ssl.truststore.certificates": "pem"}
    )
    assert found == {
        "bootstrap.servers": ELSEWHERE,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "own",
        "sasl.password": "theirs",
        "ssl.ca.pem": "pem",
    }


def test_a_connectors_own_login_replaces_the_contexts_on_the_contexts_servers() -> None:
    found = connection_properties(context(), OWN, LOGIN | {"security.protocol": "SASL_PLAINTEXT"})
    assert (found["security.protocol"], found["sasl.mechanism"]) == ("SASL_SSL", "PLAIN")
    assert (found["sasl.username"], found["sasl.password"]) == ("own", "theirs")
    keys = {"ssl.keystore.certificate.chain": "chain", "ssl.keystore.key": "key"}
    found = connection_properties(
        context({"security.protocol": "SSL", "ssl.key.location": "ours.key"}), OWN, keys
    )
    assert (found["ssl.certificate.pem"], found["ssl.key.pem"]) == ("chain", "key")
    assert "ssl.key.location" not in found


def test_without_security_another_cluster_is_asked_without_credentials() -> None:
    assert connection_properties(context({}), "there:9092", {}) == {
        "bootstrap.servers": "there:9092"
    }
    with pytest.raises(BadInput):
        connection_properties(context({}), "no address", {})


def test_the_coordinators_of_a_connector_are_its_own_clusters() -> None:
    session = Session()
    session.__dict__["settings"] = context()
    session.__dict__["transactions"] = ours = object()
    assert coordinators_of(session, {"bootstrap.servers": f"b1:9093,{ELSEWHERE}"}) is ours
    assert coordinators_of(session, {}) is ours
    with pytest.raises(Unreachable, match="was not asked"):
        coordinators_of(session, {"bootstrap.servers": ELSEWHERE})
    assert context().named_servers == (OWN, OTHER)
    assert named_cluster(context(), ELSEWHERE) is None
