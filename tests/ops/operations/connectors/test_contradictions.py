"""Connectors of which workers and the config topic tell differently are shown, and not changed."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, repeat
from typing import Any

import pytest
from connectctl.ops.connect.connector import (
    Connector,
    State,
    Status,
    at_rest,
    state_for_plan,
    verdict_of,
)
from connectctl.ops.connect.health import failed_parts
from connectctl.ops.core.errors import ConnectctlError, Refused, Unreachable
from connectctl.ops.operations.connectors import context as steps_context
from connectctl.ops.operations.connectors import observe
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.connectors.observe import (
    ConnectorListing,
    FactsReader,
    connector_listing,
)
from connectctl.ops.operations.connectors.steps import plan_state
from fakes.kafkareads import FakeKafka, connect_group, records
from fakes.workers import FakeConnector, FakeWorkers

NAMED: dict[str, str | None] = {"config": "cfg", "offsets": "off", "status": "sta"}
GROUP = connect_group("connect", one=[("a", -1), ("a", 0)], two=[])
CONFIG = {"properties": {"connector.class": "x.y.Source"}}


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "AGREEING", 0.0)
    monkeypatch.setattr(steps_context, "AGREEING", 0.0)


def kafka(*names: str) -> FakeKafka:
    written = [(f"connector-{name}", CONFIG) for name in names]
    return FakeKafka({"cfg": records(*written), "off": [], "sta": []}, groups={"connect": GROUP})


class Apart(FakeWorkers):
    """The second worker lists ``second``, or does not answer."""

    second: list[str] | None = None

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        if path == "/connectors" and url == "http://two:8083":
            if self.second is None:
                raise Unreachable("gone", why="Connection refused")
            return self.second
        return super().get(path, url=url, timeout=timeout)


def seen(reads: FakeKafka, calls: FakeWorkers) -> ConnectorListing:
    return connector_listing(calls, reads, GROUP, NAMED)


def ids(listing: ConnectorListing) -> list[tuple[str, str]]:
    return [(finding.id, finding.subject) for finding in listing.findings]


def test_a_connector_that_only_the_config_topic_has_is_shown_with_a_doubt_and_not_changed() -> None:
    listing = seen(kafka("a", "b"), FakeWorkers({"a": FakeConnector()}))
    assert [each.name for each in listing.connectors] == ["a", "b"]
    assert ids(listing) == [("SIGHT004", "connector b")]
    with pytest.raises(Refused, match="connector b: the worker does not list it"):
        plan_state("k", listing.connectors, "stop", wait=False)
    assert plan_state("k", listing.connectors[:1], "stop", wait=False).steps


def test_a_connector_that_only_workers_have_is_not_at_rest_whatever_its_status_is() -> None:
    listing = seen(
        kafka("a"), FakeWorkers({"a": FakeConnector(), "b": FakeConnector(own="STOPPED", tasks=[])})
    )
    assert ids(listing) == [("SIGHT004", "connector b")]
    ghost = listing.connectors[1]
    assert not at_rest(ghost.connector)
    assert state_for_plan(ghost.connector, ghost.verdict) is State.UNASSIGNED


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (["a"], []),
        ([], [("SIGHT004", "connector a")]),
        (["a", "z"], [("SIGHT004", "connector z")]),
        (None, [("SIGHT002", "worker http://two:8083")]),
    ],
)
def test_members_that_list_differently_or_not_at_all_are_named(
    second: list[str] | None, found: list[tuple[str, str]]
) -> None:
    calls = Apart({"a": FakeConnector()}, urls=("http://one:8083", "http://two:8083"))
    calls.second = second
    assert ids(seen(kafka("a"), calls)) == found


@pytest.mark.parametrize("reads", [None, FakeKafka({"off": []}, groups={"connect": GROUP})])
def test_members_that_list_differently_are_compared_where_the_config_topic_is_not_known(
    reads: FakeKafka | None,
) -> None:
    calls = Apart({"a": FakeConnector()}, urls=("http://one:8083", "http://two:8083"))
    calls.second = []
    listing = connector_listing(
        calls, reads, GROUP if reads else None, {"config": "cfg"} if reads else {}
    )
    with pytest.raises(
        Refused, match="connector a: http://two:8083 does not list it, and another worker does"
    ):
        plan_state("k", listing.connectors, "stop", wait=False)


def test_lists_that_agree_a_moment_later_are_no_contradiction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(observe, "AGREEING", 30.0)
    monkeypatch.setattr(observe, "PAUSE", 0.0)
    calls = Apart({"a": FakeConnector()}, urls=("http://one:8083", "http://two:8083"))
    late = chain([[], []], repeat(["a"]))
    calls.__class__ = type("Late", (Apart,), {"second": property(lambda self: next(late))})
    assert ids(seen(kafka("a"), calls)) == []


def test_a_rebalance_is_a_finding_and_statuses_are_shown() -> None:
    reads = kafka("a")
    reads.groups["connect"] = replace(GROUP, state="PreparingRebalance")
    listing = connector_listing(FakeWorkers({"a": FakeConnector()}), reads, GROUP, NAMED)
    assert ids(listing) == [("CLUSTER002", "connect")]
    assert str(listing.connectors[0].verdict) == "RUNNING"


def test_a_step_finds_a_contradiction_when_it_is_done() -> None:
    reads = kafka("a", "b")
    context = StepContext(
        FakeWorkers({"a": FakeConnector()}), 1.0, facts=FactsReader(reads, "connect", "cfg")
    )
    assert context.read("a").target_state == "STARTED"
    with pytest.raises(Refused, match="do not agree about b"):
        context.read("b")
    with pytest.raises(ConnectctlError) as unknown:
        context.read("c")
    assert unknown.value.code == "not-found"


def test_a_failure_that_another_worker_reported_is_not_the_tasks_of_now() -> None:
    failed = Status("FAILED", "one:8083")
    moved = Connector(
        "a",
        Status("RUNNING", "one:8083"),
        {0: failed, 1: failed},
        assigned={0: "two:8083", 1: "one:8083"},
    )
    assert failed_parts(moved).keys() == {1}
    assert failed_parts(replace(moved, assigned=None)).keys() == {0, 1}


@pytest.mark.parametrize(
    ("target", "tasks", "assigned", "state"),
    [
        ("STOPPED", 0, {}, State.STOPPED),
        ("STOPPED", 0, None, State.STOPPED),
        ("STOPPED", 1, {0: "one:8083"}, State.RUNNING),
        ("STARTED", 1, {}, State.RUNNING),
        ("PAUSED", 1, {}, State.PAUSED),
        (None, None, {}, State.STOPPED),
    ],
)
def test_a_plan_takes_for_stopped_only_what_the_config_topic_has_so(
    target: str | None, tasks: int | None, assigned: dict[int, str] | None, state: State
) -> None:
    """Its status is STOPPED in all of these: where only workers can be asked, that is all there
    is.
    """
    found = Connector(
        "a",
        Status("STOPPED", "one:8083"),
        target_state=target,
        committed_tasks=tasks,
        assigned=assigned,
    )
    assert state_for_plan(found, verdict_of(found)) is state
