"""Tests of contexts from the files with which workers are started."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from connectctl.ops.config import context_edit, context_file
from connectctl.ops.config.context_source import read_source
from connectctl.ops.config.worker_source import Source
from connectctl.ops.core.errors import BadInput
from fakes.anyjson import mutated
from hypothesis import given
from hypothesis import strategies as st

PASSWORD = 'hun"ter2'
LOGIN = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="ops" password="hun\\"ter2";'
)
WORKER = {
    "bootstrap.servers": "b1:9093, b2:9093",
    "group.id": "connect-prod",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": LOGIN,
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": "/etc/ca.pem",
}
ENTRY = {
    "bootstrap_servers": "b1:9093,b2:9093",
    "group_id": "connect-prod",
    "topics": {"config": "c", "offsets": "o", "status": "s"},
    "client": {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "ops",
        "sasl.password": {"env": "PROD_SASL_PASSWORD"},
        "ssl.ca.location": "/etc/ca.pem",
    },
}
COMPOSE = """x-common: &common {CONNECT_GROUP_ID: g}
services:
  kafka:
    environment: {KAFKA_ADVERTISED_LISTENERS: "PLAINTEXT://kafka:29092,HOST://localhost:9092"}
  connect:
    ports: ["18083:28083"]
    env_file: connect.env
    environment:
      <<: *common
      CONNECT_BOOTSTRAP_SERVERS: ${BROKERS:-kafka:29092}
      CONNECT_LISTENERS: http://0.0.0.0:28083
      CONNECT_SASL_JAAS_CONFIG: a.PlainLoginModule required username="u" password="${KAFKA_PW}";
  debezium:
    environment: [BOOTSTRAP_SERVERS=elsewhere:9092, GROUP_ID=1]
"""


def properties(more: dict[str, str] | None = None) -> str:
    lines = {**WORKER, **(more or {})}.items()
    return "\n".join(f"{name}={value}".replace("\\", "\\\\") for name, value in lines) + "\n"


def variables(more: dict[str, str] | None = None) -> str:
    lines = {**WORKER, **(more or {})}.items()
    return "".join(f"CONNECT_{n.upper().replace('.', '_')}='{value}'\n" for n, value in lines)


def source(tmp_path: Path, text: str, name: str, part: str = "") -> Source:
    (tmp_path / name).write_text(text)
    found = read_source(f"{tmp_path / name}{part}", "prod")
    written = context_edit.add("", "prod", found.entry)
    parsed = context_file.read(tmp_path / "config.yaml", written)
    assert not parsed.broken, "it is a context that can be used"
    assert PASSWORD not in written
    return found


@pytest.mark.parametrize(
    ("text", "name"), [(properties(), "worker.properties"), (variables(), "connect.env")]
)
def test_a_worker_is_a_context_whose_password_is_a_reference(
    tmp_path: Path, text: str, name: str
) -> None:
    found = source(tmp_path, text, name)
    assert found.entry == ENTRY
    assert found.notes == [
        "client.sasl.password is read from the environment variable PROD_SASL_PASSWORD: set it"
    ]


DEBEZIUM = """BOOTSTRAP_SERVERS=kafka:9092
GROUP_ID=1
CONFIG_STORAGE_TOPIC=c
OFFSET_STORAGE_TOPIC=o
STATUS_STORAGE_TOPIC=s
CONNECT_SECURITY_PROTOCOL=SASL_SSL
CONNECT_SASL_JAAS_CONFIG=a.OAuthBearerLoginModule required clientId="me" clientSecret="hun-ter";
CONNECT_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL=https://idp/token
"""


def test_debeziums_variables_need_no_prefix(tmp_path: Path) -> None:
    entry = source(tmp_path, DEBEZIUM, "debezium.env").entry
    assert (entry["bootstrap_servers"], entry["group_id"]) == ("kafka:9092", "1")
    assert entry["topics"] == {"config": "c", "offsets": "o", "status": "s"}
    assert entry["client"] == {
        "security.protocol": "SASL_SSL",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": {"env": "PROD_SASL_OAUTHBEARER_CLIENT_SECRET"},
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
    }


@pytest.mark.parametrize(
    ("more", "entry", "note"),
    [
        (
            {"ssl.truststore.type": "JKS"},
            {},
            "not taken: ssl.truststore.location: export its certificates as PEM",
        ),
        (
            {"ssl.keystore.location": "/k.p12", "ssl.keystore.type": "PKCS12"},
            {},
            "not taken: ssl.keystore.location: export it as PEM",
        ),
        (
            {"sasl.mechanism": "GSSAPI", "sasl.jaas.config": "a.Krb5LoginModule required;"},
            {},
            "not taken: sasl.jaas.config: a login by GSSAPI",
        ),
        (
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": "/k.pem",
                "ssl.key.password": "${dir:/run/secrets:key}",
            },
            {"ssl.key.password": {"file": "/run/secrets/key"}, "ssl.key.location": "/k.pem"},
            "",
        ),
        ({"ssl.key.password": "${env:KEY}"}, {"ssl.key.password": {"env": "KEY"}}, ""),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
            "",
        ),
        (
            {"rest.advertised.listener": "https", "rest.advertised.host.name": "w1"},
            {},
            "this one advertises https://w1:8083",
        ),
        (
            {"listeners": "http://w2:18083"},
            {},
            "REST: workers are found through their group; this one advertises http://w2:18083",
        ),
    ],
)
def test_what_a_context_cannot_have_is_named_and_the_rest_is_taken(
    tmp_path: Path, more: dict[str, str], entry: dict[str, Any], note: str
) -> None:
    found = source(tmp_path, properties(more), "worker.properties")
    assert found.entry["client"].items() >= entry.items()
    assert any(note in each for each in found.notes), found.notes


def test_a_variable_that_is_a_secret_alone_is_its_own_reference(tmp_path: Path) -> None:
    found = source(tmp_path, variables({"ssl.key.password": "hun-ter"}), "connect.env")
    assert found.entry["client"]["ssl.key.password"] == {"env": "CONNECT_SSL_KEY_PASSWORD"}


def test_a_service_of_a_compose_file_has_the_addresses_that_its_ports_publish(
    tmp_path: Path,
) -> None:
    (tmp_path / "connect.env").write_text("CONNECT_CONFIG_STORAGE_TOPIC=c\n")
    found = source(tmp_path, COMPOSE, "docker-compose.yml", ":connect")
    assert found.entry == {
        "bootstrap_servers": "localhost:9092",
        "group_id": "g",
        "topics": {"config": "c"},
        "client": {"sasl.username": "u", "sasl.password": {"env": "KAFKA_PW"}},
        "rest": ["http://localhost:18083"],
        "rest_is_group": True,
    }
    found = source(tmp_path, COMPOSE, "docker-compose.yml", ":debezium")
    assert found.entry == {"bootstrap_servers": "elsewhere:9092", "group_id": "1"}
    assert found.notes == ["not taken: REST, because debezium publishes no port 8083"]
    inner = COMPOSE.replace(",HOST://localhost:9092", "")
    found = source(tmp_path, inner, "docker-compose.yml", ":connect")
    assert "give --bootstrap-servers as this machine reaches the brokers" in found.notes[-1]


STRIMZI = """apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnect
metadata: {name: my-connect, namespace: ns}
spec:
  bootstrapServers: my-cluster-kafka-bootstrap:9093
  tls: {trustedCertificates: [{secretName: ca, certificate: ca.crt}]}
  authentication: AUTHENTICATION
  config: {group.id: g, config.storage.topic: c}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaConnect
metadata: {name: new}
spec:
  bootstrapServers: b:9092
  groupId: g1
  configStorageTopic: c1
  offsetStorageTopic: o1
  statusStorageTopic: s1
"""


@pytest.mark.parametrize(
    ("login", "client"),
    [
        (
            "{type: scram-sha-512, username: me, passwordSecret: {secretName: s, password: p}}",
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "me",
                "sasl.password": 'kubectl get secret s -n ns -o go-template=\'{{index .data "p"',
            },
        ),
        (
            "{type: tls, certificateAndKey: {secretName: s, certificate: c.crt, key: c.key}}",
            {
                "security.protocol": "SSL",
                "ssl.certificate.pem": "kubectl get secret s -n ns",
                "ssl.key.pem": "kubectl get secret s -n ns",
                "ssl.ca.pem": "kubectl get secret ca -n ns",
            },
        ),
    ],
)
def test_a_kafka_connect_is_a_context_whose_secrets_kubectl_prints(
    tmp_path: Path, login: str, client: dict[str, str]
) -> None:
    text = STRIMZI.replace("AUTHENTICATION", login)
    entry = source(tmp_path, text, "kafkaconnect.yaml", ":my-connect").entry
    expected = {
        "config": "c",
        "offsets": "connect-cluster-offsets",
        "status": "connect-cluster-status",
    }
    assert (entry["group_id"], entry["topics"]) == ("g", expected)
    assert entry["rest"] == ["http://my-connect-connect-api.ns.svc:8083"]
    for name, begin in client.items():
        value = entry["client"][name]
        assert (value if isinstance(value, str) else value["command"]).startswith(begin)
    newer = source(tmp_path, text, "kafkaconnect.yaml", ":new").entry
    assert newer["topics"] == {"config": "c1", "offsets": "o1", "status": "s1"}
    assert (newer["group_id"], newer["client"]) == ("g1", {"security.protocol": "PLAINTEXT"})


@pytest.mark.parametrize(
    ("trusted", "missing"),
    [
        ("{secretName: ca, certificate: ca.crt}", ""),
        ('{secretName: ca, pattern: "*.crt"}', "not taken: trustedCertificates of ca; --set"),
        (
            "{secretName: ca, certificate: ca.crt}, {secretName: more, certificate: x}",
            "not taken: trustedCertificates of more; --set",
        ),
    ],
)
def test_certificates_of_a_kafka_connect_that_are_not_taken_are_named(
    tmp_path: Path, trusted: str, missing: str
) -> None:
    text = STRIMZI.replace("AUTHENTICATION", "{}")
    text = text.replace("{secretName: ca, certificate: ca.crt}", trusted)
    notes = source(tmp_path, text, "kafkaconnect.yaml", ":my-connect").notes
    assert missing in " ".join(notes)
    assert ("trustedCertificates" in " ".join(notes)) is bool(missing)


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (COMPOSE, "docker-compose.yml", "it has connect, debezium. Name one: --from "),
        (STRIMZI, "k.yaml", "it has my-connect, new. Name one: --from "),
        ("services: {a: {image: b}}", "compose.yaml", "has no service of a worker. Give worker."),
        ("a: b", "x.yaml", "neither a compose file nor a KafkaConnect of Strimzi. Give worker."),
        ("", "x.yaml", "it is empty. Give worker.properties"),
        ("a: [", "x.yaml", "line 1 is not YAML: expected the node content, but found '<stream"),
        ('services: {a: {env_file: "\\0"}}', "c.yaml", "cannot be read: embedded null byte"),
        ("words\n", "x.env", "is not a configuration of a worker"),
        ("bootstrap.servers=\\u00", "w.properties", "cannot be read"),
    ],
)
def test_a_file_that_is_no_worker_says_why(tmp_path: Path, text: str, name: str, said: str) -> None:
    (tmp_path / "connect.env").write_text("")
    with pytest.raises(BadInput) as e:
        source(tmp_path, text, name)
    assert said in str(e.value)


def test_properties_are_latin_1_as_java_reads_them_and_other_files_utf_8(tmp_path: Path) -> None:
    (tmp_path / "w.properties").write_bytes(b"# caf\xe9\nbootstrap.servers=k:9092\ngroup.id=g\n")
    assert read_source(str(tmp_path / "w.properties"), "prod").entry["group_id"] == "g"
    for name in ("w.yaml", "w.env"):
        (tmp_path / name).write_bytes(b"a: caf\xe9\n")
        with pytest.raises(BadInput, match=r"is not UTF-8\. Give worker"):
            read_source(str(tmp_path / name), "prod")


def test_a_name_with_a_variable_that_nothing_sets_is_not_taken(tmp_path: Path) -> None:
    text = (
        "services: {connect: {environment: {CONNECT_BOOTSTRAP_SERVERS: 'k:9092', "
        "CONNECT_GROUP_ID: '${GROUP}', CONNECT_CONFIG_STORAGE_TOPIC: '$TOPIC', "
        "CONNECT_OFFSET_STORAGE_TOPIC: '${O:-offsets}'}}}"
    )
    found = source(tmp_path, text, "compose.yaml")
    assert "group_id" not in found.entry
    assert found.entry["topics"] == {"offsets": "offsets"}
    notes = "; ".join(found.notes)
    assert "not taken: group.id, because nothing sets its variable ${GROUP}" in notes
    assert "not taken: config.storage.topic, because nothing sets its variable $TOPIC" in notes


def test_a_worker_without_a_group_is_told(tmp_path: Path) -> None:
    (note,) = source(tmp_path, "bootstrap.servers=k:9092\n", "standalone.properties").notes
    assert note.startswith("there is no group.id")


def test_a_member_of_the_wrong_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "connect.env").write_text("")
    for text, name, why in (
        (STRIMZI, "k.yaml:my-connect", "spec.authentication is a text, and not an object"),
        ("services: {a: {ports: 1}}", "c.yaml", "services.a.ports is a whole number"),
    ):
        (tmp_path / name.partition(":")[0]).write_text(text)
        with pytest.raises(BadInput) as e:
            read_source(str(tmp_path / name), "prod")
        assert why in str(e.value)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("any")
    (place / "connect.env").write_text("")
    return place


LOGIN_OF_STRIMZI = "{type: plain, username: u, passwordSecret: {secretName: s, password: p}}"
VALID = [
    yaml.safe_load(COMPOSE),
    next(yaml.safe_load_all(STRIMZI.replace("AUTHENTICATION", LOGIN_OF_STRIMZI))),
]


@given(st.sampled_from(VALID).flatmap(mutated))
def test_whatever_a_file_holds_is_a_context_or_one_error(directory: Path, data: Any) -> None:
    (directory / "any.yaml").write_text(json.dumps(data))
    with suppress(BadInput):
        read_source(str(directory / "any.yaml"), "prod")
