"""The properties files of the broker and the workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from connectctl.ops.sandbox.jars.versions import parse_version
from connectctl.ops.sandbox.properties import (
    broker_properties,
    render,
    with_changes,
    worker_properties,
)


def worker(version: str, **extra: str) -> dict[str, str]:
    return worker_properties(
        parse_version(version),
        "group",
        bootstrap_servers="127.0.0.1:9092",
        port=8083,
        plugin_path="/jars/plugins",
        support="enabled",
        extra=extra,
    )


def test_the_broker_listens_on_the_loopback_only() -> None:
    made = broker_properties(
        Path("/data"), {"PLAINTEXT": 1, "CONTROLLER": 2, "SASL": 3}, {"SASL": "SASL_PLAINTEXT"}, {}
    )
    assert (
        made["listeners"] == "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2,SASL://127.0.0.1:3"
    )
    assert made["advertised.listeners"] == "PLAINTEXT://127.0.0.1:1,SASL://127.0.0.1:3"
    assert (
        made["listener.security.protocol.map"]
        == "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT"
    )


def test_three_brokers_are_a_quorum_whose_topics_outlive_any_one() -> None:
    def made(number: int, brokers: int) -> dict[str, str]:
        ports = {"PLAINTEXT": 10 + number, "CONTROLLER": 20 + number}
        controllers = [20 + n for n in range(1, brokers + 1)]
        return broker_properties(Path("/d"), ports, {}, {}, number=number, controllers=controllers)

    for number in (1, 2, 3):
        broker = made(number, 3)
        assert broker["node.id"] == str(number)
        assert broker["process.roles"] == "broker,controller"
        assert broker["controller.quorum.voters"] == "1@127.0.0.1:21,2@127.0.0.1:22,3@127.0.0.1:23"
        assert (
            broker["transaction.state.log.replication.factor"]
            == broker["default.replication.factor"]
            == "3"
        )
        assert broker["transaction.state.log.min.isr"] == broker["min.insync.replicas"] == "2"
    # Two controllers would need each other: the second broker has none.
    first, second = made(1, 2), made(2, 2)
    assert (first["process.roles"], second["process.roles"]) == ("broker,controller", "broker")
    assert (
        first["controller.quorum.voters"] == second["controller.quorum.voters"] == "1@127.0.0.1:21"
    )
    assert second["listeners"] == "PLAINTEXT://127.0.0.1:12"
    assert second["min.insync.replicas"] == "1"
    # One is as ever.
    assert "min.insync.replicas" not in made(1, 1)


def test_extra_properties_win() -> None:
    listeners = {"PLAINTEXT": 1, "CONTROLLER": 2}
    assert broker_properties(Path("/d"), listeners, {}, {"node.id": "7"})["node.id"] == "7"
    assert worker("4.3.1", **{"offset.flush.interval.ms": "9"})["offset.flush.interval.ms"] == "9"


def test_the_worker_listens_on_the_loopback_only() -> None:
    made = worker("4.3.1")
    assert made["listeners"] == "http://127.0.0.1:8083"
    assert made["rest.advertised.host.name"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("version", "discovery", "support"),
    [("3.2.3", None, None), ("3.5.2", None, "enabled"), ("3.6.2", "service_load", "enabled")],
)
def test_workers_get_only_properties_that_they_know(
    version: str, discovery: str | None, support: str | None
) -> None:
    made = worker(version)
    assert made.get("plugin.discovery") == discovery
    assert made.get("exactly.once.source.support") == support


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("a", "b", "a=b\n"),
        ("a b", "=x:", "a\\ b=\\=x:\n"),
        ("a", " b ", "a=\\ b \n"),
        ("a", "x\ny\\z\t", "a=x\\ny\\\\z\\t\n"),
        ("a", "é€😀", "a=\\u00e9\\u20ac\\ud83d\\ude00\n"),
    ],
)
def test_what_java_reads_back(key: str, value: str, line: str) -> None:
    assert render({key: value}) == line


def test_edits_keep_every_other_character() -> None:
    text = "# mine\na=1\n\nexactly.once.source.support = disabled\nb=2"
    changed = with_changes(text, {"exactly.once.source.support": "preparing", "c": "3"})
    assert changed == "# mine\na=1\n\nexactly.once.source.support = preparing\nb=2\nc=3\n"
    assert with_changes(changed, {}) == changed
