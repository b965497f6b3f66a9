"""Secrets in what others print are hidden, and the rest stays readable."""

from __future__ import annotations

import time

import pytest
from connectctl.ops.model.masking import masked
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
