"""A person is told what to do: a change once, a restart every time."""

from __future__ import annotations

from connectctl.ops.clients.drivers.manual import Manual
from connectctl.ops.clients.protocols import RestartMode


def test_a_change_is_told_when_it_is_another_one() -> None:
    heard: list[str] = []
    driver = Manual(heard.append)
    for value in ("preparing", "preparing", "enabled", "preparing"):
        driver.change("w1:8083", "p", value)
    assert [line.split()[1] for line in heard] == ["p=preparing", "p=enabled", "p=preparing"]


def test_every_restart_is_told() -> None:
    heard: list[str] = []
    driver = Manual(heard.append)
    driver.restart("w1:8083")
    driver.restart("w1:8083")
    assert heard == ["Restart worker w1:8083, and no other."] * 2


def test_nothing_is_known_and_a_person_is_waited_for() -> None:
    driver = Manual(print)
    assert driver.configured("w1:8083", "p") is None
    assert driver.restart_mode("w1:8083") == RestartMode(by_hand=True)
    assert driver.check("w1:8083") is None
