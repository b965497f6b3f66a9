from __future__ import annotations

import pytest
from connectctl.ops.checks.acls.principals import (
    Client,
    Identity,
    identity,
    parse_principals,
    principal_of,
)
from connectctl.ops.core.errors import BadInput

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def test_principals_are_the_workers_a_roles_or_one_connectors() -> None:
    said = parse_principals(
        ["User:w", "producer=User:p", "orders:v2:admin=User:a", "super=User:root", "super=User:ops"]
    )
    assert said.worker == "User:w"
    assert said.roles == {Client.WORKER: "User:w", Client.PRODUCER: "User:p"}
    assert said.connectors == {("orders:v2", Client.ADMIN): "User:a"}
    assert said.super_users == {"User:root", "User:ops"}


def test_principals_can_be_given_again_as_they_were() -> None:
    said = parse_principals(
        ["User:w", "producer=User:p", "orders:v2:admin=User:a", "super=User:root"]
    )
    assert said.arguments == (
        "worker=User:w",
        "producer=User:p",
        "orders:v2:admin=User:a",
        "super=User:root",
    )
    assert parse_principals(said.arguments) == said


def test_a_principal_may_have_equals_signs_and_colons_in_it() -> None:
    assert parse_principals(["User:CN=w,O=x:y"]).worker == "User:CN=w,O=x:y"
    assert parse_principals(["admin=User:CN=a"]).roles == {Client.ADMIN: "User:CN=a"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("worker", "is not a principal"),
        ("User:", "is not a principal"),
        ("produces=x", "is not a principal"),
        ("orders:User:x", "is not a principal"),
        ("orders:worker=User:x", "a connector has no worker"),
        ("orders:super=User:x", "a connector has no super"),
    ],
)
def test_what_is_no_principal_is_refused_with_the_forms_there_are(given: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as raised:
        parse_principals([given])
    assert "\n" not in str(raised.value)
    assert "CONNECTOR:ROLE=User:NAME" in str(raised.value)


def test_a_role_has_one_principal() -> None:
    assert parse_principals(["User:w", "worker=User:w"]).worker == "User:w"
    with pytest.raises(BadInput, match="gives the worker twice: User:w and User:x"):
        parse_principals(["User:w", "User:x"])
    with pytest.raises(BadInput, match="gives the admin of c twice"):
        parse_principals(["c:admin=User:w", "c:admin=User:x"])


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"sasl.jaas.config": f'{PLAIN} username="alice" password="s";'}, "User:alice"),
        ({"sasl.jaas.config": f"{SCRAM} password='x' username='a b';"}, "User:a b"),
        ({"sasl.jaas.config": f"{SCRAM} username=bare password=x;"}, "User:bare"),
        ({"sasl.jaas.config": rf'{PLAIN} username="a\"b" password="s";'}, 'User:a"b'),
        ({"security.protocol": "PLAINTEXT"}, "User:ANONYMOUS"),
        (
            {
                "security.protocol": "SASL_SSL",
                "ssl.keystore.location": "/k",
                "sasl.jaas.config": f"{PLAIN} username=u;",
            },
            "User:u",
        ),
    ],
)
def test_a_login_by_name_tells_who_it_is(properties: dict[str, str], expected: str) -> None:
    assert identity(properties) == Identity(expected)


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"security.protocol": "SSL"}, "certificate"),
        ({"ssl.keystore.location": "/k"}, "certificate"),
        ({"sasl.jaas.config": "x.OAuthBearerLoginModule required;"}, "OAuthBearerLoginModule"),
        (
            {
                "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required "
                "principal='k';"
            },
            "Krb5LoginModule",
        ),
        ({"sasl.jaas.config": "${file:/run/secrets:jaas}"}, "config provider"),
        (
            {"sasl.jaas.config": f'{PLAIN} username="${{file:/s:user}}" password="x";'},
            "config provider",
        ),
        (
            {"sasl.jaas.config": f'{SCRAM} username="id" password="x" tokenauth="true";'},
            "delegation token",
        ),
        ({"sasl.jaas.config": f'{PLAIN} password="x";'}, "no username"),
        ({"sasl.oauthbearer.token.endpoint.url": "https://x"}, "token"),
    ],
)
def test_other_logins_do_not_and_it_is_said_why(properties: dict[str, str], why: str) -> None:
    found = identity(properties)
    assert found is not None
    assert found.principal is None
    assert why in found.why


@pytest.mark.parametrize(
    "properties",
    [{}, {"linger.ms": "5"}, {"bootstrap.servers": "b:1"}, {"security.protocol": "SASL_SSL"}],
)
def test_properties_that_change_nobody_leave_it_to_the_worker(properties: dict[str, str]) -> None:
    assert identity(properties) is None


def test_who_a_client_is_is_said_for_it_then_configured_then_said_for_its_role_then_the_worker() -> (
    None
):
    config = {"producer.override.sasl.jaas.config": f"{PLAIN} username=own password=x;"}
    said = parse_principals(
        ["User:w", "producer=User:role", "consumer=User:role", "c:producer=User:told"]
    )
    assert principal_of("c", Client.PRODUCER, config, said).principal == "User:told"
    assert principal_of("d", Client.PRODUCER, config, said).principal == "User:own"
    assert principal_of("d", Client.CONSUMER, config, said).principal == "User:role"
    assert principal_of("d", Client.ADMIN, config, said).principal == "User:w"
    assert (
        "workers' properties" in principal_of("d", Client.ADMIN, config, parse_principals([])).why
    )
