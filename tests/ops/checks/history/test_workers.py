"""What the rounds of a group tell of its workers: who came, left and started again, since when."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from connectctl.ops.checks.history.records import History
from connectctl.ops.checks.history.timeline import of_connector, timeline
from connectctl.ops.checks.history.workers import joined_later, with_past
from connectctl.ops.connect import cluster_findings
from connectctl.ops.connect.group_rounds import GroupRound
from connectctl.ops.connect.worker import NOT_ENABLED, Support, Worker
from connectctl.ops.core.finding import Severity
from connectctl.ops.operations.cluster.observe import ClusterView
from fakes.kafkareads import connect_group

GROUP = connect_group("connect", one=[], two=[], three=[])
"""Its member ids are ``id-one`` and so on."""


def rounds(*members: str, pause: float = 100.0) -> tuple[GroupRound, ...]:
    """Generations ``pause`` seconds apart, of names in words; ``two!`` is an earlier process of
    two.
    """
    found = []
    for n, words in enumerate(members):
        ids = {f"id-{word}": f"{word.rstrip('!')}:8083" for word in words.split()}
        leader = next(iter(ids.values()), "")
        found.append(GroupRound(n, n * pause, leader, dict.fromkeys(ids.values(), 0), ids))
    return tuple(found)


ROLL = rounds("one! two! three!", "two! three!", "two! three! one", "three! one", "three! one two")


@pytest.mark.parametrize(
    ("past", "expected"),
    [
        ((), {}),
        (rounds("one two three"), {}),
        (rounds("one", "one two", "one two three", pause=20.0), {}),  # a cluster that starts
        (rounds("one two", "one two three"), {"three:8083": 100.0}),
        (ROLL, {"one:8083": 200.0, "two:8083": 400.0}),
        (rounds("one two! three", "one two three"), {"two:8083": 100.0}),
    ],
)
def test_workers_with_which_the_group_began_did_not_join_later(
    past: tuple[GroupRound, ...], expected: dict[str, float]
) -> None:
    assert joined_later(past, GROUP) == expected


def test_the_timeline_has_the_workers_with_their_versions() -> None:
    changes = of_connector(timeline(History(rounds=ROLL), [], {"two:8083": "4.3.1"}), "", 99)
    assert [(each.at, each.worker, each.text) for each in changes] == [
        (100.0, "one:8083", "left"),
        (100.0, "two:8083", "leads the group, one:8083 before"),
        (200.0, "one:8083", "joined"),
        (300.0, "two:8083", "left"),
        (300.0, "three:8083", "leads the group, two:8083 before"),
        (400.0, "two:8083", "joined, Kafka Connect 4.3.1"),
    ]
    assert changes[0].as_json() == {
        "at": "1970-01-01T00:01:40.000Z",
        "worker": "one:8083",
        "kind": "left",
        "change": "left",
    }
    (again,) = timeline(History(rounds=rounds("one two!", "one two")), [])
    assert (again.worker, again.text) == ("two:8083", "started again")


def looked(past: tuple[GroupRound, ...], *versions: str | None) -> tuple[ClusterView, list[str]]:
    """The view with its past, of workers of which the last gave its version and is enabled, and who
    was asked. The others are disabled.
    """
    asked: list[str] = []
    answers = dict(zip(("one", "two", "three"), versions, strict=True))

    def get(path: str, *, url: str, timeout: float) -> Any:
        asked.append(url)
        if path != "/":
            return [{"class": "x.Source", "type": "source"}]
        return {"version": answers[url.removeprefix("http://").removesuffix(":8083")]}

    def send(method: str, path: str, body: Any, *, url: str, timeout: float) -> Any:
        value = {"name": "exactly.once.support", "errors": [NOT_ENABLED]}
        return {"configs": [{"value": value}]}

    workers = [
        Worker(f"{name}:8083", f"http://{name}:8083", listed=frozenset()) for name in answers
    ]
    enabled = {"version": versions[-1], "support": Support.ENABLED}
    workers[-1] = replace(workers[-1], **enabled)  # type: ignore[arg-type]
    before = cluster_findings.rebalance_delayed(GROUP)
    assert before is None
    delayed = cluster_findings.REBALANCE_DELAYED.found("connect", "waits")
    view = ClusterView("c", GROUP, tuple(workers), (), (), "workers", (delayed,))
    calls = cast("Any", SimpleNamespace(get=get, send=send))
    return with_past(view, History(rounds=past), calls, 1000.0), asked


def test_a_rolling_upgrade_is_told_as_such_since_its_first_worker_joined() -> None:
    view, asked = looked(ROLL, "4.3.1", "4.3.1", "3.9.1")
    assert set(asked) == {"http://one:8083", "http://two:8083"}
    delayed, upgrade, support = view.findings
    assert (delayed.id, delayed.since) == ("CLUSTER003", 400.0)
    assert (upgrade.id, upgrade.severity, upgrade.since) == ("CLUSTER005", Severity.INFO, 200.0)
    assert "rolling upgrade is in progress" in upgrade.message
    assert support.id == "CLUSTER006"
    assert "not on one:8083, two:8083" in support.message


def test_workers_that_did_not_start_again_are_not_asked_for_their_versions() -> None:
    view, asked = looked(rounds("one two three"), "4.3.1", "4.3.1", "4.3.1")
    assert (asked, [each.id for each in view.findings]) == ([], ["CLUSTER003"])
    view, asked = looked((), "4.3.1", "4.3.1", "4.3.1")
    assert (asked, view.findings[0].since) == ([], None)


@pytest.mark.parametrize(
    ("seconds", "severity"), [(1.0, Severity.INFO), (60.0, Severity.WARNING)], ids=str
)
def test_parts_of_which_a_status_is_missing_are_starting_right_after_a_rebalance(
    seconds: float, severity: Severity
) -> None:
    unreported = cluster_findings.unreported(["a"])
    assert unreported is not None
    view = ClusterView("c", GROUP, (), (), (), "workers", (unreported,))
    calls = cast("Any", None)
    (found,) = with_past(view, History(rounds=rounds("one")), calls, seconds).findings
    assert (found.since, found.severity) == (0.0, severity)
