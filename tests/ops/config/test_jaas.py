"""The options of a login module, as Kafka's clients read them."""

from __future__ import annotations

import pytest
from connectctl.ops.config import jaas
from connectctl.ops.config.java_clients import client_of, from_java

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{PLAIN} username=\"a\" password='b';", {"username": "a", "password": "b"}),
        (f'{PLAIN} username="a b" password="p;\\"q\\"";', {"username": "a b", "password": 'p;"q"'}),
        (f"{PLAIN} username=a password=b;", {"username": "a", "password": "b"}),
        (f'{PLAIN} username="the password=x" password="y";', {"username": "the password=x"}),
        (f"{PLAIN};", {}),
        ("", {}),
    ],
)
def test_options_are_read_without_their_quotes(text: str, expected: dict[str, str]) -> None:
    found = jaas.options(text)
    assert expected.items() <= found.items()
    logins = {f"sasl.{name}": value for name, value in found.items()}
    assert from_java({"sasl.jaas.config": text}) == logins


def test_a_login_by_client_credentials_keeps_spaces_and_semicolons() -> None:
    text = (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'clientId="connect" clientSecret="a;b c" scope="read write";'
    )
    secrets: list[str] = []

    def refer(name: str, value: str) -> dict[str, str]:
        secrets.append(value)
        return {"env": "SECRET"}

    endpoint = "sasl.oauthbearer.token.endpoint.url"
    client = client_of({"sasl.jaas.config": text, endpoint: "https://idp/token"}, refer)
    assert client.entry["sasl.oauthbearer.scope"] == "read write"
    assert (secrets, client.missing) == (["a;b c"], ())
