"""Addresses that a person gave are asked only where they are proven to be workers of the group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from connectctl.ops.connect.rest_membership import NotAMember, disagreement, is_advertised
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.operations.cluster.group_workers import GroupWorkers
from fakes.changingworld import Clock
from fakes.kafkareads import FakeKafka, connect_group, records
from fakes.workers import FakeConnector, FakeWorkers

URL = "http://ingress:80"
CONFIG = {"connector.class": "x.y.Source"}
NAMES = {
    "one": frozenset({"10.0.0.1"}),
    "ingress": frozenset({"10.0.0.9"}),
    "uno": frozenset({"10.0.0.1"}),
}


def kafka(*connectors: str) -> FakeKafka:
    written = records(*((f"connector-{name}", {"properties": CONFIG}) for name in connectors))
    return FakeKafka({"cfg": written}, groups={"connect": connect_group("connect", one=[])})


def workers(reads: FakeKafka, calls: FakeWorkers, url: str = URL, **more: Any) -> GroupWorkers:
    clock = Clock()
    return GroupWorkers(
        (url,),
        lambda urls: calls,
        reads,
        "connect",
        {"config": "cfg"},
        lambda host: NAMES.get(host, frozenset()),
        now=clock.now,
        sleep=clock.sleep,
        **more,
    )


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("http://one:8083", True),
        ("http://uno:8083/", True),
        ("http://10.0.0.1:8083", True),
        ("http://ONE:8083", True),
        ("http://one", False),
        ("http://one:8084", False),
        ("http://ingress:8083", False),
        ("http://nowhere:8083", False),
    ],
)
def test_an_address_is_a_members_where_host_and_port_are(url: str, same: bool) -> None:
    group = connect_group("connect", one=[])
    assert is_advertised(url, group, lambda host: NAMES.get(host, frozenset())) is same


@pytest.mark.parametrize(
    ("listed", "configured", "why"),
    [
        ({"a": CONFIG}, {"a": CONFIG | {"name": "a"}}, None),
        ({"a": CONFIG, "b": {}}, {"a": CONFIG, "b": CONFIG}, None),
        ({}, {}, "neither"),
        ({"a": CONFIG}, {}, "lists a"),
        ({}, {"a": CONFIG}, "does not list a"),
        ({"a": {"x": "1"}}, {"a": CONFIG}, "other configurations"),
    ],
)
def test_a_server_that_lists_the_groups_connectors_is_the_groups(
    listed: Any, configured: Any, why: str | None
) -> None:
    found = disagreement(listed, configured)
    assert found is None if why is None else why in str(found)


def test_an_address_that_nobody_advertises_is_proven_by_the_connectors_and_used() -> None:
    calls = FakeWorkers({"a": FakeConnector(config=dict(CONFIG))}, urls=(URL,))
    proven = workers(kafka("a"), calls)
    assert list(proven.get("/connectors?expand=status&expand=info")) == ["a"]
    proven.send("PUT", "/connectors/a/stop")
    assert calls.sent == ["PUT /connectors/a/stop"]


@pytest.mark.parametrize("connectors", [(), ("b",), ("a", "b")])
def test_another_groups_worker_is_asked_nothing_and_told_nothing(
    connectors: tuple[str, ...],
) -> None:
    calls = FakeWorkers(
        {"a": FakeConnector(config=dict(CONFIG))} if connectors else {}, urls=(URL,)
    )
    stranger = workers(kafka(*connectors), calls)
    with pytest.raises(
        NotAMember,
        match=r"http://ingress:80 is not proven .* advertise http://one:8083.*--rest-is-group",
    ):
        stranger.get("/connectors")
    with pytest.raises(NotAMember):
        stranger.send("PUT", "/connectors/a/stop")
    assert calls.sent == []
    assert stranger.get("/")["version"] == "4.3.1"
    declared = workers(kafka(*connectors), calls, declared=True)
    assert declared.get("/connectors") == list(calls.connectors)


def test_a_worker_of_another_kafka_cluster_is_no_member_whoever_declares_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FakeKafka, "cluster_id", lambda self: "ours")
    with pytest.raises(NotAMember, match="uses the Kafka cluster fake-cluster, not ours"):
        workers(kafka(), FakeWorkers(urls=(URL,)), declared=True).get("/connectors")


def test_a_server_that_proves_nothing_because_it_does_not_answer_is_told_no_change() -> None:
    calls = FakeWorkers({"a": FakeConnector(config=dict(CONFIG))}, urls=(URL,))
    calls.errors[f"{URL}/"] = Unreachable("gone", why="Connection refused")
    silent = workers(kafka("a"), calls)
    assert silent.get("/connectors") == ["a"]  # what answers meanwhile is only read
    with pytest.raises(Unreachable, match="gone"):
        silent.send("PUT", "/connectors/a/stop")
    assert calls.sent == []


def test_a_rebalance_is_waited_for_before_an_address_is_judged() -> None:
    reads = kafka()
    settled = reads.groups["connect"]
    hidden = replace(
        settled,
        state="PreparingRebalance",
        members=(replace(settled.members[0], url="", assignment=None),),
    )
    given = [hidden, hidden, settled]
    reads.group = lambda group_id: given.pop(0) if len(given) > 1 else given[0]  # type: ignore[method-assign]
    assert (
        workers(reads, FakeWorkers(urls=("http://one:8083",)), "http://one:8083").get("/connectors")
        == []
    )
