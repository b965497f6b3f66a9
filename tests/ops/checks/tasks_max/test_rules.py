from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from connectctl.ops.checks.tasks_max import rules
from connectctl.ops.connect.connector import Connector, Status
from connectctl.ops.connect.worker import Worker
from connectctl.ops.core.errors import BadInput, NotAuthorized, Unreachable
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.rule import check
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.cluster import observe as cluster_observe
from connectctl.ops.operations.connectors.observe import with_health
from connectctl.ops.operations.tasks_max import observe as tasks_max_observe
from connectctl.ops.operations.tasks_max.forecast import (
    TasksMaxForecast,
    horizon,
    on_present_workers,
    on_release,
)
from connectctl.ops.operations.tasks_max.observe import (
    CONFIG_TOPIC,
    WORKERS,
    Release,
    TaskSet,
    TasksMaxRefusal,
    TasksSeen,
)
from fakes.kafkareads import FakeKafka, connect_group, records
from fakes.workers import FakeConnector, FakeWorkers
from hypothesis import given
from hypothesis import strategies as st

OLD, NEW = "3.7.2", "4.3.1"
TRACE = (
    "org.apache.kafka.connect.runtime.TooManyTasksException: The connector a has generated {} "
    "tasks, which is greater than {}, the maximum number of tasks it is configured to create. "
    "This behaviour should be considered a bug\n\tat x"
)
NAMED: dict[str, str | None] = {"config": "cfg", "offsets": "off", "status": "sta"}
LATER = None


def tasks(
    limit: str | None = "1",
    size: int = 0,
    *,
    enforce: str | None = None,
    own: str = "RUNNING",
    failed: int = 0,
    refused: tuple[int, int] | None = None,
    last: int | None = None,
    last_limit: int | None = None,
) -> TaskSet:
    """A connector called ``a`` with ``size`` tasks, ``failed`` of which are FAILED for their
    number.
    """
    config = {"connector.class": "x.y.Source"}
    config |= {"tasks.max": limit} if limit is not None else {}
    config |= {"tasks.max.enforce": enforce} if enforce is not None else {}
    each = "PAUSED" if own == "PAUSED" else "RUNNING"
    statuses: dict[int, Status | None] = {n: Status(each, "one:8083") for n in range(size)}
    statuses |= {n: Status("FAILED", "one:8083", TRACE.format(size, limit)) for n in range(failed)}
    trace = (
        TRACE.format(*refused)
        if refused
        else "java.lang.RuntimeException: other"
        if own == "FAILED"
        else None
    )
    connector = Connector("a", Status(own, "one:8083", trace), statuses, config, "source")
    (one,) = with_health([connector], None)
    return TaskSet(one, size, last, last_limit, CONFIG_TOPIC)


def seen(each: TaskSet, *versions: str | None) -> TasksSeen:
    found = tuple(
        Worker(f"w{n}:8083", f"http://w{n}:8083", version=v) for n, v in enumerate(versions)
    )
    return TasksSeen("cluster", found, (each,))


def found(each: TaskSet, *versions: str | None, on: Release | None = None) -> list[tuple[str, str]]:
    return [(f.id, f.severity.value) for f in check(rules, seen(each, *versions), on)]


def text(each: TaskSet, *versions: str, on: Release | None = None) -> str:
    return " ".join(
        f"{f.message} {f.next_step or ''}" for f in check(rules, seen(each, *versions), on)
    )


FITS = tasks("2", 2)
TOO_MANY = tasks("1", 2)
FREED = tasks("1", 2, enforce="false")
PAUSED = tasks("1", 2, own="PAUSED")


@pytest.mark.parametrize(
    ("each", "versions", "expected"),
    [
        (FITS, [OLD], []),
        (FITS, [NEW], []),
        (tasks(None, 1), [NEW], []),
        (tasks("2", 2, own="FAILED"), [NEW], []),
        (tasks("1", own="FAILED", refused=(2, 1)), [NEW], [("TASK001", "error")]),
        (tasks("1", 1, own="FAILED", refused=(2, 1)), [NEW], [("TASK001", "error")]),
        (
            tasks("1", 2, own="FAILED", refused=(2, 1)),
            [NEW],
            [("TASK001", "error"), ("TASK003", "error")],
        ),
        (tasks("1", 2, failed=2), [NEW], [("TASK002", "error")]),
        (tasks("1", 2, failed=1), [NEW], [("TASK002", "error")]),
        (tasks("2", 2, failed=2), [NEW], [("TASK002", "error")]),
        (TOO_MANY, [NEW], [("TASK003", "error")]),
        (PAUSED, [NEW], [("TASK003", "error")]),
        (TOO_MANY, [OLD, NEW], [("TASK003", "error")]),
        (TOO_MANY, [OLD], [("TASK004", "warning")]),
        (PAUSED, [OLD], [("TASK004", "warning")]),
        (TOO_MANY, [None], [("TASK004", "warning")]),
        (TOO_MANY, [], [("TASK004", "warning")]),
        (FREED, [OLD], [("TASK005", "info")]),
        (FREED, [NEW], [("TASK005", "warning")]),
        (FREED, [OLD, NEW], [("TASK005", "warning")]),
        (tasks("2", 2, enforce="False "), [NEW], [("TASK006", "info")]),
        (tasks("2", 2, enforce="true"), [NEW], []),
        (tasks("1", enforce="false", own="STOPPED"), [NEW], []),
        (tasks("2", enforce="false", own="STOPPED", last=2), [NEW], [("TASK006", "info")]),
        (tasks("1", enforce="false", own="STOPPED", last=2), [NEW], [("TASK005", "warning")]),
        (tasks("3", 1), [NEW], [("TASK007", "info")]),
        (tasks("1"), [NEW], [("TASK007", "info")]),
        (tasks("1", own="FAILED"), [NEW], []),
        (tasks("1", own="UNASSIGNED"), [NEW], []),
        (tasks("0", 1), [NEW], [("TASK008", "error")]),
        (tasks("many", 1), [NEW], [("TASK008", "error")]),
        (tasks("1", 1, enforce="banana"), [NEW], [("TASK008", "error")]),
        (tasks("1", 1, enforce="banana"), [OLD], [("TASK008", "warning")]),
        (tasks("1", 1, enforce="banana"), [], [("TASK008", "error")]),
        (tasks("1", own="STOPPED"), [NEW], []),
        (tasks("1", own="STOPPED", last=1), [NEW], []),
        (tasks("1", own="STOPPED", last=2), [NEW], [("TASK009", "warning")]),
        (tasks("1", own="STOPPED", last=2), [OLD], [("TASK009", "warning")]),
    ],
)
def test_what_is_found(
    each: TaskSet, versions: list[str | None], expected: list[tuple[str, str]]
) -> None:
    assert found(each, *versions) == expected


@pytest.mark.parametrize(
    ("each", "on", "expected"),
    [
        (TOO_MANY, Release(3, 8), [("TASK004", "error")]),
        (TOO_MANY, Release(4, 3), [("TASK004", "error")]),
        (TOO_MANY, Release(3, 6), []),
        (FREED, Release(3, 8), [("TASK005", "info")]),
        (tasks("1", 1, enforce="banana"), Release(3, 8), [("TASK008", "error")]),
        (tasks("1", 1, enforce="banana"), Release(3, 6), [("TASK008", "warning")]),
        (FITS, Release(3, 8), []),
    ],
)
def test_a_planned_release_makes_an_error_of_what_it_breaks(
    each: TaskSet, on: Release, expected: list[tuple[str, str]]
) -> None:
    assert found(each, OLD, on=on) == expected


@pytest.mark.parametrize(
    ("each", "version", "on", "expected"),
    [
        (FITS, OLD, Release(3, 8), (TasksMaxForecast.OK, TasksMaxForecast.OK)),
        (TOO_MANY, OLD, Release(3, 8), (TasksMaxForecast.UNENFORCED, TasksMaxForecast.FAILS)),
        (TOO_MANY, OLD, Release(3, 6), (TasksMaxForecast.UNENFORCED, TasksMaxForecast.UNENFORCED)),
        (TOO_MANY, NEW, LATER, (TasksMaxForecast.NEXT_START, TasksMaxForecast.FAILS)),
        (TOO_MANY, None, Release(3, 8), (TasksMaxForecast.UNKNOWN, TasksMaxForecast.FAILS)),
        (FREED, OLD, Release(3, 8), (TasksMaxForecast.UNENFORCED, TasksMaxForecast.ALLOWED)),
        (FREED, NEW, LATER, (TasksMaxForecast.ALLOWED, TasksMaxForecast.FAILS)),
        (
            tasks("1", own="FAILED", refused=(2, 1)),
            NEW,
            LATER,
            (TasksMaxForecast.FAILED, TasksMaxForecast.FAILS),
        ),
        (
            tasks("2", own="FAILED", refused=(2, 1)),
            NEW,
            Release(4, 0),
            (TasksMaxForecast.FAILED, TasksMaxForecast.OK),
        ),
        (tasks("1", 2, failed=2), NEW, LATER, (TasksMaxForecast.FAILED, TasksMaxForecast.FAILS)),
        (
            tasks("1", own="STOPPED", last=2),
            NEW,
            LATER,
            (TasksMaxForecast.MAY_FAIL, TasksMaxForecast.MAY_FAIL),
        ),
        (
            tasks("1", own="STOPPED", last=2),
            OLD,
            Release(3, 8),
            (TasksMaxForecast.UNENFORCED, TasksMaxForecast.MAY_FAIL),
        ),
        (
            tasks("1", own="STOPPED", last=1),
            NEW,
            LATER,
            (TasksMaxForecast.ON_RESUME, TasksMaxForecast.ON_RESUME),
        ),
        (
            tasks("1", own="PAUSED"),
            NEW,
            LATER,
            (TasksMaxForecast.ON_RESUME, TasksMaxForecast.ON_RESUME),
        ),
        (
            tasks("1", own="FAILED"),
            NEW,
            LATER,
            (TasksMaxForecast.UNKNOWN, TasksMaxForecast.UNKNOWN),
        ),
        (tasks("x", 1), NEW, LATER, (TasksMaxForecast.INVALID, TasksMaxForecast.INVALID)),
        (
            tasks("1", 1, enforce="x"),
            OLD,
            Release(3, 8),
            (TasksMaxForecast.OK, TasksMaxForecast.INVALID),
        ),
        (
            tasks("${file:/a:n}", 1),
            NEW,
            LATER,
            (TasksMaxForecast.UNKNOWN, TasksMaxForecast.UNKNOWN),
        ),
    ],
)
def test_the_outlook_in_one_word(
    each: TaskSet,
    version: str | None,
    on: Release | None,
    expected: tuple[TasksMaxForecast, TasksMaxForecast],
) -> None:
    assert (on_present_workers(each, seen(each, version)), on_release(each, on)) == expected


def test_messages_name_numbers_workers_and_what_to_do() -> None:
    assert text(tasks("1", 1, own="FAILED", refused=(3, 1)), NEW).startswith(
        "It is FAILED: it generated 3 tasks with a tasks.max of 1. It still has its previous 1 "
        "task. Set tasks.max to 3 or more;"
    )
    assert "each task that starts again on w1:8083 FAILS" in text(TOO_MANY, OLD, NEW)
    assert "Workers of 3.7.2 allow it; on 4.0 every task of the set FAILS." in text(
        TOO_MANY, OLD, on=Release(4, 0)
    )
    assert "2 of its 2 tasks are FAILED: the set is larger than tasks.max, which is 1." in text(
        tasks("1", 2, failed=2), NEW
    )
    assert "It no longer is. connectctl connectors restart a --only-failed" in text(
        tasks("2", 2, failed=2), NEW
    )
    resumed = tasks("2", own="STOPPED", last=3, last_limit=2)
    assert "generated for a tasks.max of 2: its plugin ignores it" in text(resumed, NEW)
    assert "plugin ignores" not in text(tasks("2", own="STOPPED", last=3, last_limit=3), NEW)
    assert "From 3.8 on that is enforced." in text(resumed, OLD)


@pytest.mark.parametrize(
    ("versions", "expected"),
    [((OLD,), Release(3, 8)), ((OLD, NEW), Release(3, 8)), ((NEW,), None), ((), Release(3, 8))],
)
def test_the_next_release_that_changes_anything(
    versions: tuple[str, ...], expected: Release | None
) -> None:
    assert horizon(seen(FITS, *versions)) == expected


@given(
    limit=st.integers(1, 9),
    size=st.integers(0, 9),
    enforce=st.sampled_from([None, "true", "false"]),
    new=st.booleans(),
)
def test_what_is_ok_now_and_then_has_no_error_and_what_fails_has_one(
    limit: int, size: int, enforce: str | None, new: bool
) -> None:
    each = tasks(str(limit), size, enforce=enforce)
    view = seen(each, NEW if new else OLD)
    after = Release(4, 0)
    worst = {f.severity.value for f in check(rules, view, after)}
    assert (
        ("error" in worst)
        == (on_release(each, after) is TasksMaxForecast.FAILS)
        == (size > limit and enforce != "false")
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", 1),
        (" 12 ", 12),
        ("+3", 3),
        ("2147483647", 2147483647),
        ("2147483648", None),
        ("0", None),
        ("-1", None),
        ("1_0", None),
        ("1.0", None),
        ("", None),
    ],
)
def test_tasks_max_is_read_as_a_worker_reads_it(value: str, expected: int | None) -> None:
    assert tasks(value).limit == expected


# -------------------------------------------------------------------------------------------- facts


def test_a_refusal_is_told_from_other_failures() -> None:
    assert tasks_max_observe.refusal_in(
        Status("FAILED", "w", TRACE.format(5, 3))
    ) == TasksMaxRefusal(5, 3)
    assert (
        tasks_max_observe.refusal_in(Status("FAILED", "w", "x.y.connect.runtime.TooManyTasks: no"))
        is None
    )
    assert tasks_max_observe.refusal_in(
        Status("FAILED", "w", "org.apache.kafka.connect.runtime.TooManyTasksException: ?")
    ) == (TasksMaxRefusal())
    assert tasks_max_observe.refusal_in(Status("RUNNING", "w", TRACE.format(5, 3))) is None
    assert tasks_max_observe.refusal_in(None) is None


def sets(connectors: Sequence[Connector], topic: list[ConsumerRecord] | None) -> dict[str, TaskSet]:
    image = None if topic is None else FakeKafka({"cfg": topic}).image(["cfg"], patience=0)["cfg"]
    return {
        each.name: each for each in tasks_max_observe.sets_of(with_health(connectors, None), image)
    }


def config_topic(*pairs: tuple[str, Mapping[str, Any] | None]) -> list[ConsumerRecord]:
    config = {"properties": {"connector.class": "x.Source", "tasks.max": "1"}}
    return records(("connector-a", config), *pairs)


def task(n: int, **config: str) -> tuple[str, dict[str, Any]]:
    return f"task-a-{n}", {"properties": config}


def test_the_config_topic_tells_the_size_and_the_last_run() -> None:
    stopped = Connector("a", Status("STOPPED"), {}, {"tasks.max": "1"}, "source")
    grown = [task(0), task(1), task(2), ("commit-a", {"tasks": 3})]
    shrunk = [
        task(0, **{"tasks.max": "2"}),
        task(1, **{"tasks.max": "2"}),
        ("commit-a", {"tasks": 2}),
    ]
    newest = [
        task(2),
        task(0, **{"tasks.max": "2"}),
        task(1, **{"tasks.max": "2"}),
        ("commit-a", {"tasks": 0}),
    ]
    one = sets([stopped], config_topic(*grown))["a"]
    assert (one.size, one.last, one.last_limit, one.read_from) == (3, 3, None, CONFIG_TOPIC)
    two = sets([stopped], config_topic(*newest))["a"]
    assert (two.size, two.last, two.last_limit) == (0, 2, 2)
    assert sets([stopped], config_topic(*shrunk))["a"].last == 2
    assert sets([stopped], config_topic())["a"].last is None


def test_a_first_task_that_is_missing_or_unreadable_proves_no_last_run() -> None:
    running = Connector("a", Status("RUNNING"), {0: None}, {}, "source")
    broken = [
        *config_topic(task(1)),
        ConsumerRecord(b"task-a-0", b"{", 0, 99),
        ConsumerRecord(None, b"x", 0, 100),
    ]
    assert sets([running], broken)["a"].last is None


def test_without_the_topic_workers_tell_the_size() -> None:
    running = Connector("a", Status("RUNNING"), {0: None, 1: None}, {}, "source")
    assert (sets([running], None)["a"].size, sets([running], None)["a"].read_from) == (2, WORKERS)
    assert (sets([running], [])["a"].size, sets([running], [])["a"].read_from) == (2, WORKERS)


def kafka() -> FakeKafka:
    topic = [
        ("connector-a", {"properties": {"connector.class": "x.Source"}}),
        task(0),
        ("commit-a", {"tasks": 1}),
    ]
    return FakeKafka({"cfg": records(*topic), "off": [], "sta": []})


def look(reads: FakeKafka, calls: FakeWorkers) -> TasksSeen:
    group = connect_group("connect", one=[("a", -1), ("a", 0)])
    return tasks_max_observe.observe(
        cluster_observe.observe_cluster(reads, calls, group, NAMED), reads
    )


def test_a_clean_cluster_gives_nothing() -> None:
    view = look(kafka(), FakeWorkers({"a": FakeConnector()}))
    assert (view.unseen, list(check(rules, view))) == ((), [])
    assert [(s.name, s.size, s.limit) for s in view.sets] == [("a", 1, 1)]
    assert (view.releases, view.enforcing) == (frozenset({Release(4, 3)}), ("one:8083",))


def test_a_config_topic_that_may_not_be_read_costs_a_finding_and_not_the_answer() -> None:
    reads = kafka()
    view = cluster_observe.observe_cluster(
        reads, FakeWorkers({"a": FakeConnector()}), connect_group(one=[("a", -1), ("a", 0)]), NAMED
    )

    def denied(*_: object, **__: object) -> dict[str, Any]:
        raise NotAuthorized("Not allowed to read", why="no Read on cfg")

    reads.image = denied  # type: ignore[method-assign]
    found = tasks_max_observe.observe(view, reads)
    assert [(u.what, u.why) for u in found.unseen] == [("cfg", "no Read on cfg")]
    assert [(s.size, s.read_from) for s in found.sets] == [(1, WORKERS)]


def test_a_silent_worker_and_unknown_connectors_are_told() -> None:
    calls = FakeWorkers(
        {"a": FakeConnector()}, errors={"": Unreachable("gone", why="Connection refused")}
    )
    view = look(kafka(), calls)
    assert [u.what for u in view.unseen] == ["worker one:8083", "connectors (connect)"]
    assert [s.size for s in view.sets] == [1]
    reads = kafka()
    del reads.records["cfg"]
    assert {u.what for u in look(reads, calls).unseen} == {
        "worker one:8083",
        "connectors",
        "the config topic",
    }


def test_workers_alone_can_be_asked() -> None:
    calls = FakeWorkers(
        {"a": FakeConnector(tasks=["RUNNING"] * 2), "b": FakeConnector(own="STOPPED", tasks=[])}
    )
    view = tasks_max_observe.tasks_of_workers(calls)
    assert [(s.name, s.size, s.read_from) for s in view.sets] == [
        ("a", 2, WORKERS),
        ("b", 0, WORKERS),
    ]
    assert [u.what for u in view.unseen] == ["the config topic"]
    assert (view.cluster_id, view.enforcing) == ("fake-cluster", ("one:8083",))


def test_a_reference_is_what_was_not_seen() -> None:
    each = tasks("${file:/etc/a.properties:tasks}", 2)
    view = seen(each, NEW)
    assert [u.what for u in view.unseen] == ["tasks.max of a"]
    assert list(check(rules, view)) == []


def test_only_the_named_connectors_are_left() -> None:
    view = seen(TOO_MANY, NEW)
    assert view.only(["a"]).sets == view.sets
    with pytest.raises(BadInput, match="Connector not found: b"):
        view.only(["b"])


def test_every_rule_is_met_by_the_table_and_findings_are_whole() -> None:
    met: dict[str, Finding] = {}
    for each in (
        FITS,
        TOO_MANY,
        FREED,
        tasks("0"),
        tasks("1", own="STOPPED", last=2),
        tasks("3", 1),
    ):
        met |= {f.id: f for f in check(rules, seen(each, NEW))}
    assert all(f.why and f.next_step for f in met.values() if f.id != "TASK007")
    assert met.keys() <= {f"TASK{n:03}" for n in range(1, 10)}
