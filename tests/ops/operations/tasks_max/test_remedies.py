from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from connectctl.ops.connect.connector import Connector, Status
from connectctl.ops.connect.worker import Worker
from connectctl.ops.core.errors import BadInput, ConnectctlError, TimedOut
from connectctl.ops.operations.connectors.observe import with_health
from connectctl.ops.operations.tasks_max.observe import (
    Release,
    TaskSet,
    TasksSeen,
    exceeds_tasks_max,
)
from connectctl.ops.operations.tasks_max.remedies import (
    Reconfigure,
    RemedyChoice,
    SettleTasks,
    choices,
    remedies_for,
    steps,
)
from connectctl.ops.operations.upgrade.context import UpgradeContext
from hypothesis import given
from hypothesis import strategies as st

TRACE = (
    "org.apache.kafka.connect.runtime.TooManyTasksException: The connector a has generated {} "
    "tasks, which is greater than {}, the maximum number of tasks it is configured to create. "
    "It\n\tat x"
)


def tasks(
    name: str, limit: int, size: int, enforce: str | None = None, refused: int | None = None
) -> TaskSet:
    config = {"tasks.max": str(limit)} | ({} if enforce is None else {"tasks.max.enforce": enforce})
    own = Status("FAILED", "w", TRACE.format(refused, limit)) if refused else Status("RUNNING", "w")
    connector = Connector(
        name, own, {n: Status("RUNNING", "w") for n in range(size)}, config, "source"
    )
    (one,) = with_health([connector], None)
    return TaskSet(one, size)


def seen(*sets: TaskSet, version: str = "4.3.1") -> TasksSeen:
    return TasksSeen("c", (Worker("w:1", "http://w:1", version=version),), sets)


@pytest.mark.parametrize(
    ("each", "version", "release", "raised", "bridge"),
    [
        (tasks("a", 1, 2), "3.7.0", None, {"tasks.max": "2"}, {"tasks.max.enforce": "false"}),
        (tasks("a", 1, 2), "4.3.1", None, {"tasks.max": "2"}, {"tasks.max.enforce": "false"}),
        (
            tasks("a", 1, 2),
            "4.3.1",
            Release(4, 4),
            {"tasks.max": "2"},
            {"tasks.max.enforce": "false"},
        ),
        (
            tasks("a", 1, 0, refused=4),
            "4.3.1",
            None,
            {"tasks.max": "4"},
            {"tasks.max.enforce": "false"},
        ),
        (
            tasks("a", 2, 2, refused=5),
            "4.3.1",
            None,
            {"tasks.max": "5"},
            {"tasks.max.enforce": "false"},
        ),
        (
            tasks("a", 1, 2, "false"),
            "4.3.1",
            None,
            {"tasks.max": "2", "tasks.max.enforce": None},
            None,
        ),
    ],
)
def test_both_ways_out_are_told(
    each: TaskSet,
    version: str,
    release: Release | None,
    raised: dict[str, Any],
    bridge: dict[str, Any] | None,
) -> None:
    (remedy,) = remedies_for(seen(each, version=version), release)
    assert (remedy.raised, remedy.bridge) == (raised, bridge)
    for choice in RemedyChoice:
        told = remedy.describe(choice)
        assert told.startswith("a: it generates")
        assert "raise:" in told
        assert "bridge:" in told


@pytest.mark.parametrize(
    ("each", "version", "release"),
    [
        (tasks("a", 2, 2), "3.7.0", None),
        (tasks("a", 1, 2), "3.6.0", Release(3, 7)),
        (tasks("a", 1, 2, "false"), "3.7.0", Release(3, 8)),
        (tasks("a", 3, 1), "4.3.1", None),
    ],
)
def test_who_keeps_to_it_is_left_alone(
    each: TaskSet, version: str, release: Release | None
) -> None:
    assert remedies_for(seen(each, version=version), release) == ()


def test_choices_are_made_by_name_and_for_the_others() -> None:
    found = remedies_for(seen(tasks("a", 1, 2), tasks("b", 1, 2), tasks("c", 1, 2)), None)
    assert set(choices(found, {}).values()) == {RemedyChoice.RAISE}
    made = choices(found, {"bridge": "b", "others": "leave", "raise": "c"})
    assert made == {"a": RemedyChoice.LEAVE, "b": RemedyChoice.BRIDGE, "c": RemedyChoice.RAISE}
    says = [step.describe() for step in steps(found, made, patch=True)]
    assert says == [
        "set tasks.max.enforce=false on b",
        "wait for b to stabilise",
        "set tasks.max=2 on c",
        "wait for c to stabilise",
    ]


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({"raise": "x"}, "x does not exceed"),
        ({"raise": "a", "leave": "a"}, "named for raise and for leave"),
        ({"others": "burn"}, "others=burn"),
    ],
)
def test_a_choice_that_cannot_be_meant_is_bad_input(given_: dict[str, str], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        choices(remedies_for(seen(tasks("a", 1, 2)), None), given_)


def test_a_bridge_that_is_there_already_cannot_be_had() -> None:
    found = remedies_for(seen(tasks("a", 1, 2, "false")), None)
    with pytest.raises(BadInput, match="bridge is unavailable for a"):
        list(steps(found, {"a": RemedyChoice.BRIDGE}, patch=False))
    assert choices(found, {"others": "bridge"}) == {"a": RemedyChoice.LEAVE}


@given(
    st.integers(1, 5),
    st.integers(0, 9),
    st.none() | st.integers(6, 9),
    st.sampled_from([None, "true", "false"]),
)
def test_what_is_raised_fits_afterwards(
    limit: int, size: int, refused: int | None, enforce: str | None
) -> None:
    for remedy in remedies_for(seen(tasks("a", limit, size, enforce, refused)), None):
        if remedy.raised is not None:
            assert (
                remedies_for(
                    seen(tasks("a", int(remedy.raised["tasks.max"] or 0), max(size, refused or 0))),
                    None,
                )
                == ()
            )


def test_crowded_connectors_show_in_their_statuses() -> None:
    assert exceeds_tasks_max(tasks("a", 1, 2).health.connector)
    assert exceeds_tasks_max(tasks("a", 1, 0, refused=2).health.connector)
    assert not exceeds_tasks_max(tasks("a", 2, 2).health.connector)


# ---------------------------------------------------------------------------------------- the doing


@dataclass
class Workers:
    """One connector; ``plays`` are its states and tasks' traces, one after the other, the last one
    staying.
    """

    plays: list[tuple[str, list[str | None], str | None]]
    config: dict[str, str | None] = field(default_factory=lambda: {"tasks.max": "1", "x": "y"})
    sent: list[tuple[str, str, Any]] = field(default_factory=list)
    recovers: bool = False
    old: bool = False

    def get(self, path: str, **more: Any) -> Any:
        if path.endswith("/config"):
            return dict(self.config)
        own, each, trace = self.plays[0]
        if path.endswith("/status"):
            if len(self.plays) > 1:
                self.plays.pop(0)
            tasks = [
                {"id": n, "state": "FAILED" if t else "RUNNING", "worker_id": "w", "trace": t}
                for n, t in enumerate(each)
            ]
            return {
                "connector": {"state": own, "worker_id": "w", "trace": trace},
                "tasks": tasks,
                "type": "source",
            }
        return {
            "name": "a",
            "config": self.config,
            "tasks": [{"connector": "a", "task": n} for n in range(len(each))],
        }

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        self.sent.append((method, path, body))
        if path.endswith("/config"):
            if method == "PATCH" and self.old:
                raise ConnectctlError("HTTP 405", code="unsupported")
            config = self.config | body if method == "PATCH" else body
            self.config = {name: value for name, value in config.items() if value is not None}
        if "restart" in path and self.recovers:
            self.plays[:] = [("RUNNING", [None, None], None)]
        return {}


def context(workers: Workers) -> UpgradeContext:
    clock = [0.0]
    made = UpgradeContext(workers, 10, reader=None, driver=None)  # type: ignore[arg-type]
    made.now, made.sleep = (
        lambda: clock[0],
        lambda seconds: clock.__setitem__(0, clock[0] + seconds),
    )
    return made


def test_properties_are_set_in_one_request() -> None:
    step = Reconfigure("a", {"tasks.max": "2", "x": None}, {"tasks.max": "1", "x": "y"}, patch=True)
    patch = ("PATCH", "/connectors/a/config", {"tasks.max": "2", "x": None})
    put = ("PUT", "/connectors/a/config", {"tasks.max": "2", "y": "z"})
    whole = Reconfigure("a", step.values, step.was)
    for each, old, sent in (
        (step, False, [patch]),
        (step, True, [patch, put]),
        (whole, False, [put]),
    ):
        workers = Workers([], {"tasks.max": "1", "x": "y", "y": "z"}, old=old)
        assert each.is_done(context(workers)) is None
        each.apply(context(workers))
        assert workers.sent == sent
        assert each.is_done(context(workers)) == "already set"


def test_what_overwrites_a_configuration_is_seen() -> None:
    workers = Workers([])
    workers.send = lambda *_, **__: {}  # type: ignore[method-assign]
    with pytest.raises(
        TimedOut, match="The configuration of a was accepted, but is different after 10 s"
    ):
        Reconfigure("a", {"tasks.max": "2"}, {"tasks.max": "1"}).apply(context(workers))


def test_tasks_that_had_failed_for_their_number_are_restarted_once() -> None:
    workers = Workers([("RUNNING", [TRACE.format(2, 1)] * 2, None)], recovers=True)
    assert SettleTasks("a", 2).apply(context(workers)) == "RUNNING, 2 tasks"
    assert [path for _, path, _ in workers.sent] == [
        "/connectors/a/restart?includeTasks=true&onlyFailed=true"
    ]


def test_a_connector_that_generates_still_more_stops_the_run() -> None:
    workers = Workers([("FAILED", [None], TRACE.format(4, 2))])
    with pytest.raises(ConnectctlError, match=r"generates 4 tasks with a tasks\.max of 2"):
        SettleTasks("a", 2).apply(context(workers))


def test_a_connector_that_fails_otherwise_is_waited_for_and_told() -> None:
    workers = Workers([("FAILED", [], "java.io.IOException: disk full")])
    with pytest.raises(TimedOut, match="a is not stable"):
        SettleTasks("a", 2).apply(context(workers))
    assert workers.sent == []
