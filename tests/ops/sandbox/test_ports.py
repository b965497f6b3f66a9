"""Free ports."""

from __future__ import annotations

import random
import socket

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.sandbox.ports import (
    LOOPBACK,
    LOWEST,
    answers,
    can_bind,
    ephemeral_start,
    free_ports,
)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("32768\t60999\n", 32768),
        ("49152 65535", 49152),
        ("1024 65535", 49152),
        ("", 49152),
        ("nonsense", 49152),
    ],
)
def test_where_the_systems_own_ports_begin(text: str, start: int) -> None:
    assert ephemeral_start(text) == start


def test_ports_are_below_the_systems_own_and_differ() -> None:
    for seed in range(50):
        ports = free_ports(5, is_free=lambda port: True, seed=random.Random(seed))
        assert len(set(ports)) == 5
        assert all(LOWEST <= port < ephemeral_start() for port in ports)


def test_what_is_taken_or_busy_is_passed_over() -> None:
    free = set(range(LOWEST, LOWEST + 4))
    ports = free_ports(2, taken={LOWEST, LOWEST + 1}, is_free=free.__contains__)
    assert set(ports) == {LOWEST + 2, LOWEST + 3}


def test_no_ports_left_is_said() -> None:
    with pytest.raises(ConnectctlError, match=r"No 1 free ports on 127\.0\.0\.1"):
        free_ports(1, is_free=lambda port: False)


def test_a_port_that_is_listened_on_is_not_free() -> None:
    (port,) = free_ports(1)
    with socket.socket() as server:
        server.bind((LOOPBACK, port))
        server.listen()
        assert not can_bind(port)
        assert answers(port)
    assert not answers(port)
