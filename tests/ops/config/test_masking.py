"""Secrets in what others print are hidden, and the rest stays readable."""

from __future__ import annotations

import json
import time

import pytest
from connectctl.ops.config import masking
from connectctl.ops.config.masking import (
    BY_NAME,
    MASK,
    config_of,
    is_secret,
    masked,
    masked_message,
    remember,
    secrets_of,
    value_of,
)
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding, Severity
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=hunter2 rest", "password=****** rest"),
        ("Password: hunter2", "Password: ******"),
        ("DB_PASSWORD='hun ter2'; ls", "DB_PASSWORD=******; ls"),
        ('password="hun \\"ter2" rest', "password=****** rest"),
        ('password="hunter2 with no end', "password=******"),
        ("ssl.key.password : hunter2 goes on", "ssl.key.password : ******"),
        ('{"password": "hunter2", "a": 1}', '{"password": ******, "a": 1}'),
        ('"{\\"api_key\\": \\"hunter2\\", \\"a\\": 1}"', '"{\\"api_key\\": ******, \\"a\\": 1}"'),
        ("tool --password hunter2 --force", "tool --password ****** --force"),
        ("curl -u ops:hunter2 url", "curl -u ops:****** url"),
        ("sshpass -p hunter2 ssh host", "sshpass -p ****** ssh host"),
        ("GET http://ops:hunter2@host/", "GET http://******@host/"),
        ("curl -H 'Authorization: Basic aHVudGVyMg==' url", "curl -H 'Authorization: ******' url"),
        ("sent Bearer hunter2hunter2", "sent Bearer ******"),
        ('sasl.jaas.config=Plain required password="hunter2";', "sasl.jaas.config=******"),
        (
            "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\nrest",
            "-----BEGIN PRIVATE KEY-----******\nrest",
        ),
        ("redis://:hunter2@host:6379/0", "redis://******@host:6379/0"),
        ("amqp://me:hun/t@er2@host/vhost", "amqp://******@host/vhost"),
        (
            "jdbc:oracle:thin:scott/hunter2@//host:1521/x",
            "jdbc:oracle:thin:scott/******@//host:1521/x",
        ),
        (
            "jdbc:sqlserver://h:1433;user=sa;password=hunter2;encrypt=true",
            "jdbc:sqlserver://h:1433;user=sa;password=******;encrypt=true",
        ),
        (
            "POST https://hooks.slack.com/services/T0/B0/hunter2 failed",
            "POST https://hooks.slack.com/services/****** failed",
        ),
        ("https://discord.com/api/webhooks/1/hunter2", "https://discord.com/api/webhooks/******"),
        (
            "GET https://api.telegram.org/bot123456:hunter2hunter2hunter2/getMe",
            "GET https://api.telegram.org/bot******/getMe",
        ),
        ("GET https://h/?sig=hunter2&x=1", "GET https://h/?sig=******&x=1"),
        ('{"Authorization": "hunter2"}', '{"Authorization": ******}'),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.hunter2", "jwt ******"),
        ("AccountName=a;AccountKey=hunter2==;End=x", "AccountName=a;AccountKey=******;End=x"),
        ("basic.auth.user.info=me:hunter2", "basic.auth.user.info=******"),
        (
            "Invalid value hunter2 for configuration db.password",
            "Invalid value ****** for configuration db.password",
        ),
        ("… hunter2\n-----END PRIVATE KEY-----\nrest", "******\nrest"),
        ("-----BEGIN RSA PRIVATE KEY-----\nhunter2", "-----BEGIN RSA PRIVATE KEY-----******"),
    ],
)
def test_what_is_called_a_secret_is_hidden(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Permission denied (publickey,password).",
        "exactly.once.source.support=enabled",
        "Failed to restart connect.service: Unit connect.service not found.",
        "http://worker-1:8083/connectors",
        "the basic idea",
        "password=${file:/run/secrets:db}",
        "http://host:8083/a/path@home",
        "http://ops@host/",
        "org.apache.kafka.common.errors.TokenizerException: at line 3",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert masked(text) == text


@given(st.text(), st.text(min_size=4).filter(lambda s: s not in "******"), st.text())
def test_a_known_secret_is_never_left(before: str, secret: str, after: str) -> None:
    assert secret not in masked(f"{before}{secret}{after}", [secret]) or secret in "******" * 3


def test_of_two_secrets_the_longer_is_hidden_whole() -> None:
    assert masked("x hunter2-more y", ["hunter2", "hunter2-more"]) == "x ****** y"


@pytest.mark.parametrize(
    "unit", ["a", "\n", " ", "password", "jaas", "a.password ", "//a:", '\\"', 'password=\\"', "-"]
)
def test_no_text_takes_long(unit: str) -> None:
    began = time.process_time()
    masked(unit * (65536 // len(unit)))
    # Tens of milliseconds; what grows with the square of the length takes minutes.
    assert time.process_time() - began < 20


NAMES = [
    "basic.auth.user.info",
    "connection.password",
    "db.passwd",
    "pwd",
    "userPwd",
    "ftp.pass",
    "mqttPass",
    "client.secret",
    "oauth2ClientSecret",
    "access_token",
    "slack.token",
    "apiKey",
    "api.key",
    "API_KEY",
    "aws.access.key.id",
    "aws_secret_access_key",
    "http.authorization",
    "headers.Authorization",
    "gcs.credentials.json",
    "producer.override.sasl.jaas.config",
    "ssl.keystore.key",
    "azure.storage.account.key",
    "slack.webhook",
    "private_key",
    "ssl.key.password",
]
HARMLESS = [
    "key.converter",
    "tokenizer",
    "tokenize.fields",
    "topics",
    "message.key",
    "routing.key",
    "primary.key",
    "transforms.unkey.type",
    "key.ignore",
    "keyspace",
    "monkey",
    "bypass",
    "passthrough",
    "max.tokens",
    "delegation.token.max.lifetime.ms",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.truststore.location",
    "ssl.keystore.type",
    "authorization.mode",
    "author",
    "compass",
    "table.name",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_property_is_a_secret_by_its_name(name: str) -> None:
    assert value_of(name, "hunter2") == BY_NAME
    assert value_of(name, "hunter2", frozenset({name})) == MASK


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_property_stays_in_sight(name: str) -> None:
    assert not is_secret(name)
    assert value_of(name, "org.example.Thing") == "org.example.Thing"


@pytest.mark.parametrize("name", ["password", "url", "anything"])
@pytest.mark.parametrize(
    "value",
    ["${file:/run/secrets:db.password}", "${env:PASSWORD}", "${vault:a:b}", "${a:b}:${c:d}"],
)
def test_a_reference_to_a_secret_stays_in_sight(name: str, value: str) -> None:
    assert value_of(name, value) == value


def test_a_reference_beside_the_secret_itself_hides_it() -> None:
    assert value_of("password", "${env:HALF}hunter2") == BY_NAME
    assert (
        value_of("url", "jdbc:x://h?user=${env:U}&password=${env:P}")
        == "jdbc:x://h?user=${env:U}&password=${env:P}"
    )
    assert value_of("url", "http://${env:U}:${env:P}@h/") == "http://${env:U}:${env:P}@h/"


def test_what_the_plugin_defines_as_a_password_is_one() -> None:
    assert config_of({"pin": "1234", "a": "b"}, frozenset({"pin"})) == {"pin": MASK, "a": "b"}


def test_what_says_only_yes_or_no_stays() -> None:
    assert value_of("token.auth", "true") == "true"


def test_json_in_a_value_is_hidden_by_its_own_names() -> None:
    value = (
        '{"url": "http://u:hunter2@h", "auth": {"password": "hunter2", "pin": [1]}, "list": '
        '[{"token": 7}], "n": 1.5}'
    )
    shown = value_of("extra", value)
    assert "hunter2" not in shown
    assert json.loads(shown)["list"] == [{"token": MASK}]
    assert json.loads(shown)["n"] == 1.5
    assert value_of("extra", '{"a": 1}') == '{"a": 1}'
    assert "hunter2" not in value_of("extra", '{"password": "hunter2", broken')


def test_a_value_that_is_nested_without_end_is_no_bug() -> None:
    assert value_of("extra", "[" * 100_000)


@pytest.fixture
def nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "seen_secrets", masking.SeenSecrets())


@pytest.mark.usefixtures("nothing_seen")
@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("db.password", "correct horse", "correct horse"),
        ("basic.auth.user.info", "me:correct horse", "correct horse"),
        ("connection.url", "jdbc:mysql://h/db?user=u&password=battery", "battery"),
        ("uri", "redis://:staple123@h", "staple123"),
        ("x.jaas.config", 'Plain required username="u" password="staple123";', "staple123"),
        ("extra", '{"password": "staple123"}', "staple123"),
    ],
)
def test_what_was_seen_in_a_configuration_is_hidden_wherever_it_is_repeated(
    name: str, value: str, secret: str
) -> None:
    assert secret in secrets_of({name: value})
    remember({name: value})
    trace = f"SQLException: login with {secret} failed"
    assert secret not in masked(trace)
    assert secret not in str(ConnectctlError("x", why=trace))
    assert secret not in Finding("X001", Severity.ERROR, "x", trace).message


@pytest.mark.usefixtures("nothing_seen")
def test_short_and_plain_values_are_not_looked_for() -> None:
    remember({"password": "admin", "token": "true", "secret": "${env:SECRET}"})
    assert masked("admin is true ${env:SECRET}") == "admin is true ${env:SECRET}"


def test_a_remark_of_ours_behind_a_secrets_name_stays() -> None:
    remark = "client.sasl.password: the environment variable KAFKA_PASSWORD is not set"
    assert masked_message(remark) == remark
    assert (
        masked_message("the broker refuses sasl.password=hunter2 now")
        == "the broker refuses sasl.password=****** now"
    )


@given(st.dictionaries(st.sampled_from([*NAMES, *HARMLESS, "x.url"]), st.text()))
def test_hiding_is_done_once_and_for_all(config: dict[str, str]) -> None:
    shown = config_of(config)
    assert shown.keys() == config.keys()
    assert config_of(shown) == shown


@given(st.text(st.characters(categories=["L", "N"]), min_size=7))
def test_no_secret_is_left_in_any_of_its_places(secret: str) -> None:
    def shown(secret: str) -> str:
        config = {
            "connection.password": secret,
            "connection.url": f"jdbc:mysql://h/db?user=u&password={secret}&x=y",
            "uri": f"redis://:{secret}@h",
            "oracle": f"jdbc:oracle:thin:me/{secret}@h",
            "extra": f'{{"deep": {{"apiKey": "{secret}"}}}}',
        }
        return "".join(config_of(config).values())

    # such as "passwor", which is in the text around it
    assert secret not in shown(secret) or secret in shown("")
