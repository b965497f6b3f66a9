"""A cluster that does not answer at first: not up yet, or nobody's name."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from connectctl.ops.clients.first_contact import first_contact
from connectctl.ops.core.errors import (
    NeverAnswered,
    NotAuthorized,
    NotTrusted,
    TimedOut,
    UnknownHost,
    Unreachable,
)

AWAY = Unreachable("Kafka does not answer", why="Connection refused", next_step="Check it.")


def resolve(name: str, port: None) -> Any:
    """DNS that knows what begins with ``up``, and has troubles of its own with what begins with
    ``later``.
    """
    if name.startswith("up") or name in ("10.0.0.1", "::1"):
        return []
    raise socket.gaierror(
        socket.EAI_AGAIN if name.startswith("later") else socket.EAI_NONAME, "no such name"
    )


@pytest.mark.parametrize(
    ("bootstrap", "kind"),
    [
        ("up:9092", NeverAnswered),
        ("nowhere:9092,up:9092", NeverAnswered),
        ("nowhere:9092, later:9092", NeverAnswered),
        ("10.0.0.1:9092", NeverAnswered),
        ("[::1]:9092", NeverAnswered),
        ("nowhere:9092", UnknownHost),
        ("PLAINTEXT://nowhere:9092,elsewhere:9093", UnknownHost),
        (f"{'x' * 70}.example:9092", UnknownHost),
    ],
)
def test_what_may_come_up_is_told_apart_from_a_name_that_nobody_has(
    bootstrap: str, kind: type[Unreachable]
) -> None:
    with pytest.raises(kind) as raised, first_contact(bootstrap, resolve):
        raise AWAY
    assert type(raised.value) is kind
    assert raised.value.what == AWAY.what
    if kind is UnknownHost:
        assert "DNS has no address of " in str(raised.value)


@pytest.mark.parametrize(
    "error", [NotAuthorized("The login is refused"), NotTrusted("No TLS"), TimedOut("Slow")]
)
def test_what_a_person_mends_and_what_is_no_first_word_is_let_through(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, first_contact("nowhere:1", resolve):
        raise error
    assert raised.value is error
