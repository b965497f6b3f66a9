from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from connectctl.ops.connect.config_topic import ConfiguredConnector
from connectctl.ops.connect.connector import Owners, State, at_rest
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused, TimedOut, Unreachable
from connectctl.ops.core.journal import Run, RunState, StepEvent
from connectctl.ops.core.plan import Noop, Outcome, Plan
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.connectors.observe import (
    ConnectorHealth,
    Facts,
    from_workers,
    select,
    with_health,
)
from connectctl.ops.operations.connectors.steps import (
    Await,
    Restart,
    SetTargetState,
    VerifyState,
    plan_restart,
    plan_state,
    restarts_instead,
)
from connectctl.ops.registry import KINDS
from fakes.executing import performed
from fakes.workers import TRACE, FakeConnector, FakeWorkers


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


def cluster() -> FakeWorkers:
    return FakeWorkers(
        {
            "well": FakeConnector(),
            "ill": FakeConnector(tasks=["RUNNING", "FAILED"]),
            "dead": FakeConnector(tasks=["FAILED"], fails_again=True),
            "off": FakeConnector(own="STOPPED", tasks=[]),
            "held": FakeConnector(own="PAUSED", tasks=["PAUSED"]),
        }
    )


def context(workers: FakeWorkers, timeout: float = 30.0) -> StepContext:
    clock = Clock()
    return StepContext(workers, timeout, now=clock.now, sleep=clock.sleep)


def seen(workers: FakeWorkers) -> tuple[ConnectorHealth, ...]:
    return with_health(from_workers(workers), None)


def outcomes(workers: FakeWorkers, plan_steps: Any, timeout: float = 30.0) -> dict[str, str]:
    results = performed(plan_steps, context(workers, timeout))
    return {
        r.subject: f"{r.outcome} {r.error.what if r.error else r.detail or ''}".strip()
        for r in results
    }


def test_what_is_already_so_is_in_the_plan_as_needless() -> None:
    workers = cluster()
    plan = plan_state("x", select(seen(workers), ["off", "well"]), "stop", wait=False)
    assert plan.steps == (SetTargetState("well", "stop", now="RUNNING", former="RUNNING"),)
    assert plan.noops == (Noop("off", "already STOPPED"),)


@pytest.mark.parametrize(
    ("verb", "needless"), [("stop", {"off"}), ("pause", {"held"}), ("resume", {"well"})]
)
def test_each_verb_leaves_alone_what_it_would_not_change(verb: str, needless: set[str]) -> None:
    plan = plan_state("x", seen(cluster()), verb, wait=False)
    assert {n.subject for n in plan.noops} == needless


def test_the_same_look_gives_the_same_plan() -> None:
    found = seen(cluster())
    assert plan_state("x", found, "stop", wait=True) == plan_state("x", found, "stop", wait=True)


def test_all_changes_come_before_all_waits() -> None:
    plan = plan_state("x", select(seen(cluster()), ["well", "ill"]), "stop", wait=True)
    assert [step.describe() for step in plan.steps] == [
        "stop well",
        "stop ill",
        "wait until well is STOPPED",
        "wait until ill is STOPPED",
    ]


def test_unknown_connectors_are_named_all_at_once_with_the_nearest_names() -> None:
    with pytest.raises(BadInput, match=r"Connector not found: wel, zzz\. Did you mean well\?"):
        select(seen(cluster()), ["wel", "zzz", "ill"])


def test_a_restart_of_what_is_stopped_or_paused_is_refused_with_all_reasons() -> None:
    with pytest.raises(Refused, match=r"off is STOPPED, held is PAUSED.*resume off held"):
        plan_restart(
            "x",
            select(seen(cluster()), ["off", "held", "well"]),
            only_failed=False,
            named=True,
            wait=False,
        )


def test_a_restart_of_all_passes_over_what_is_at_rest_and_with_only_failed_over_what_is_well() -> (
    None
):
    plan = plan_restart("x", seen(cluster()), only_failed=True, named=False, wait=False)
    assert [step.subject for step in plan.steps] == ["dead", "ill"]
    assert {n.subject: n.why for n in plan.noops} == {
        "off": "it is STOPPED",
        "held": "it is PAUSED",
        "well": "nothing has failed",
    }


@pytest.mark.parametrize(
    ("verb", "name"), [("stop", "well"), ("pause", "ill"), ("resume", "off"), ("resume", "held")]
)
def test_a_wait_ends_when_it_is_so(verb: str, name: str) -> None:
    workers = cluster()
    plan = plan_state("x", select(seen(workers), [name]), verb, wait=True)
    wanted = {"stop": "STOPPED", "pause": "PAUSED", "resume": "RUNNING"}[verb]
    assert outcomes(workers, plan.steps) == {name: f"done {wanted}"}
    assert workers.sent == [f"PUT /connectors/{name}/{verb}"]


def test_a_restart_is_not_fooled_by_the_failure_from_before() -> None:
    workers = cluster()
    plan = plan_restart(
        "x", select(seen(workers), ["ill"]), only_failed=True, named=True, wait=True
    )
    assert outcomes(workers, plan.steps) == {"ill": "done RUNNING"}
    assert workers.sent == ["POST /connectors/ill/restart?includeTasks=true&onlyFailed=true"]


def test_a_restart_that_fails_again_is_told_at_once_and_the_others_are_done() -> None:
    workers = cluster()
    plan = plan_restart(
        "x", select(seen(workers), ["dead", "ill"]), only_failed=False, named=True, wait=True
    )
    work = context(workers)
    results = {r.description: r for r in performed(plan.steps, work)}
    failed = results["wait until dead is RUNNING"]
    assert failed.outcome is Outcome.FAILED
    assert failed.error is not None
    assert failed.error.why == "java.io.IOException: disk full"
    assert results["wait until ill is RUNNING"].outcome is Outcome.DONE
    assert work.now() < 10


FENCED = (
    "org.apache.kafka.common.errors.InvalidTxnStateException: The producer attempted a "
    "transactional operation"
)


@pytest.mark.parametrize(
    ("trace", "again", "outcome"),
    [
        (
            FENCED,
            False,
            "done RUNNING; tasks that had failed because their producer was fenced were restarted "
            "once",
        ),
        (
            FENCED,
            True,
            "failed c is FAILED 1 of 1 task failed; tasks that had failed because their producer "
            "was fenced were",
        ),
        (TRACE, False, "failed c is FAILED 1 of 1 task failed"),
    ],
)
def test_what_is_fenced_as_it_starts_is_restarted_once_and_nothing_else_is(
    trace: str, again: bool, outcome: str
) -> None:
    fake = FakeConnector(own="STOPPED", tasks=[], fails_again=again, fails_once=True, trace=trace)
    workers = FakeWorkers({"c": fake})
    plan = plan_state("x", seen(workers), "resume", wait=True)
    assert outcomes(workers, plan.steps)["c"].startswith(outcome)
    restarts = [each for each in workers.sent if "restart" in each]
    assert restarts == (
        ["POST /connectors/c/restart?includeTasks=true&onlyFailed=true"] if trace == FENCED else []
    )


def test_what_had_failed_before_the_run_is_not_restarted_by_a_wait() -> None:
    workers = FakeWorkers({"c": FakeConnector(tasks=["FAILED"], trace=FENCED)})
    (result,) = performed([Await("c", State.RUNNING)], context(workers))
    assert (result.outcome, workers.sent) == (Outcome.FAILED, [])


def test_many_waits_take_no_longer_than_one() -> None:
    workers = FakeWorkers({f"c{n}": FakeConnector() for n in range(20)})
    plan = plan_restart("x", seen(workers), only_failed=False, named=True, wait=True)
    work = context(workers)
    assert {r.outcome for r in performed(plan.steps, work)} == {Outcome.DONE}
    assert work.now() < 10


def test_a_wait_that_does_not_end_in_time_tells_the_last_state() -> None:
    workers = cluster()
    workers.connectors["well"].change = lambda verb, count: None  # type: ignore[method-assign]
    (result,) = performed([Await("well", State.STOPPED)], context(workers, 3))
    assert isinstance(result.error, TimedOut)
    assert "well is not STOPPED after 3 s: it is RUNNING" in str(result.error)


def test_a_wait_outlives_a_worker_that_is_away() -> None:
    workers = cluster()
    workers.errors["/connectors/off"] = Unreachable("No worker answers")
    work = context(workers, 2)
    work.before["off"] = next(j.connector for j in seen(cluster()) if j.name == "off"), 0.0
    (result,) = performed([Await("off", State.STOPPED)], work)
    assert isinstance(result.error, TimedOut)
    assert "No worker answers" in str(result.error)


@pytest.mark.parametrize("code", ["not-found", "unsupported"])
def test_workers_that_cannot_stop_say_since_when_one_can(code: str) -> None:
    workers = cluster()
    workers.errors["/connectors/well/stop"] = ConnectctlError(
        "404", why="HTTP 404 Not Found", code=code
    )
    (result,) = performed([SetTargetState("well", "stop", now="RUNNING")], context(workers))
    assert "3.5" in str(result.error)


def test_workers_that_restart_only_the_connector_are_found_out() -> None:
    workers = cluster()
    workers.send = lambda *a, **k: None  # type: ignore[method-assign]
    (result,) = performed([Restart("well", False, now="RUNNING")], context(workers))
    assert "older than 3.0" in str(result.error)


def test_what_holds_by_the_time_of_doing_is_not_done() -> None:
    workers = cluster()
    (result,) = performed([SetTargetState("off", "stop", now="RUNNING")], context(workers))
    assert (result.outcome, result.detail, workers.sent) == (Outcome.ALREADY, "already STOPPED", [])


# ------------------------------------------------ what decides: the target state and the assignment


def facts(target: str, tasks: int, *assigned: int, name: str = "c") -> Facts:
    """The config topic's target state and count of tasks, and the parts that the worker one:8083
    has.
    """
    owners = Owners({(name, part): "one:8083" for part in (-1, *assigned)})
    return Facts({name: ConfiguredConnector(name, {}, target, tasks)}, owners)


def decided(workers: FakeWorkers, known: Facts) -> tuple[ConnectorHealth, ...]:
    return with_health(map(known.of, from_workers(workers)), None)


def poisoned() -> FakeWorkers:
    """A stopped connector over whose status a run wrote RUNNING that was killed."""
    return FakeWorkers(
        {"c": FakeConnector(own="RUNNING", tasks=["RUNNING"], worker="driver:41234", running=[])}
    )


def test_a_status_that_a_killed_run_left_over_a_stopped_connector_fools_nobody() -> None:
    known = facts("STOPPED", 0)
    (one,) = decided(poisoned(), known)
    assert (one.verdict.state, at_rest(one.connector)) == (State.STOPPED, True)
    assert plan_state("x", (one,), "stop", wait=True).noops == (Noop("c", "already STOPPED"),)
    assert [step.describe() for step in plan_state("x", (one,), "resume", wait=True).steps] == [
        "resume c",
        "wait until c is RUNNING",
    ]
    with pytest.raises(Refused, match="c is STOPPED"):
        plan_restart("x", (one,), only_failed=False, named=True, wait=False)


def test_a_resume_does_not_take_what_a_killed_run_left_for_its_success() -> None:
    work = context(poisoned(), 20)
    work.facts = lambda: facts("STARTED", 1)  # asked for, and no worker has a task yet
    (result,) = performed([Await("c", State.RUNNING)], work)
    assert isinstance(result.error, TimedOut)


def test_a_connector_is_not_stopped_while_a_worker_has_one_of_its_tasks_or_it_is_to_have_some() -> (
    None
):
    workers = FakeWorkers({"c": FakeConnector(own="STOPPED", tasks=[])})
    for known in (
        facts("STOPPED", 0, 0),
        facts("STOPPED", 1),
        facts("STARTED", 0),
        facts("PAUSED", 0),
    ):
        (one,) = decided(workers, known)
        assert not at_rest(one.connector), known
        assert plan_state("x", (one,), "stop", wait=False).steps, known
    unknown = replace(facts("STOPPED", 0), owners=None)  # in a rebalance
    (one,) = decided(workers, unknown)
    assert not at_rest(one.connector)


def test_a_stop_is_waited_for_until_the_tasks_have_left_the_assignment() -> None:
    work, looks = context(cluster()), iter([facts("STOPPED", 0, 0, name="well")] * 5)
    work.facts = lambda: next(looks, facts("STOPPED", 0, name="well"))
    assert Await("well", State.STOPPED).apply(work) == "STOPPED"
    assert next(looks, None) is None


def test_a_resume_of_what_has_failed_is_no_success_and_says_what_is() -> None:
    workers = FakeWorkers({"c": FakeConnector(tasks=["FAILED"])})
    known = facts("STARTED", 1, 0)
    (needless,) = plan_state("x", decided(workers, known), "resume", wait=False).noops
    assert (
        "FAILED 1 of 1 task failed. Restart the failed parts: connectctl connectors restart c "
        "--only-failed" in needless.why
    )
    plan = plan_state("x", decided(workers, known), "resume", wait=True)
    work = context(workers)
    work.facts = lambda: known
    (result,) = performed(plan.steps, work)
    assert "c is FAILED 1 of 1 task failed" in str(result.error)
    assert "connectors restart c --only-failed" in str(result.error)


# ---------------------------------------------------------------------- what a plan leaves as it is


TOO_MANY = (
    "org.apache.kafka.connect.runtime.TooManyTasksException: The connector c has generated "
    "3 tasks, which is greater"
)


@pytest.mark.parametrize(
    ("fake", "wanted", "said"),
    [
        (FakeConnector(), State.RUNNING, "done RUNNING"),
        (FakeConnector(tasks=["FAILED"]), State.RUNNING, "failed c is FAILED 1 of 1 task failed"),
        (
            FakeConnector(own="STOPPED", tasks=[]),
            State.RUNNING,
            "failed c is STOPPED, and its file means RUNNING",
        ),
        (
            FakeConnector(own="PAUSED", tasks=["PAUSED"]),
            State.RUNNING,
            "failed c is PAUSED, and its file means RUNNING",
        ),
        (FakeConnector(own="PAUSED", tasks=["PAUSED"]), State.PAUSED, "done PAUSED"),
        (FakeConnector(), State.PAUSED, "failed c is RUNNING, and its file means PAUSED"),
    ],
)
def test_an_unchanged_connector_is_verified_and_nothing_of_it_is_changed(
    fake: FakeConnector, wanted: State, said: str
) -> None:
    workers = FakeWorkers({"c": fake})
    work = context(workers)
    (result,) = performed((VerifyState("c", wanted),), work)
    assert f"{result.outcome} {result.error.what if result.error else result.detail}" == said
    assert workers.sent == []
    assert work.now() <= 6, "whatever is seen of it is new: only RUNNING has to last"


def test_unchanged_connectors_are_verified_together() -> None:
    names = [f"c{n}" for n in range(20)]
    work = replace(
        context(FakeWorkers({name: FakeConnector() for name in names})), verified=tuple(names)
    )
    results = performed([VerifyState(name, State.RUNNING) for name in names], work)
    assert {result.outcome for result in results} == {Outcome.DONE}
    assert work.now() <= 10


def test_connectors_that_are_to_be_in_different_states_are_awaited_in_one_run() -> None:
    workers = FakeWorkers({"a": FakeConnector(), "b": FakeConnector()})
    steps = (
        Restart("a", False),
        SetTargetState("b", "pause"),
        Await("a", State.RUNNING),
        Await("b", State.PAUSED),
    )
    results = performed(steps, context(workers))
    assert [(result.outcome, result.error) for result in results] == [(Outcome.DONE, None)] * 4


@pytest.mark.parametrize(
    ("marks", "restarts"),
    [
        ([(0, "done"), (1, "failed")], True),
        ([(0, "done")], True),
        ([(0, "begun")], False),
        ([(0, "done"), (1, "done")], False),
    ],
)
def test_a_resumed_run_restarts_what_has_failed_after_its_change(
    marks: list[tuple[int, str]], restarts: bool
) -> None:
    events = tuple(StepEvent(step, what, None, "") for step, what in marks)
    run = Run(
        "r", "connectors resume", "cluster", "group", ("c",), RunState.FAILED, "", None, events
    )
    wait = Await("c", State.RUNNING)
    steps = (SetTargetState("c", "resume", now="PAUSED"), wait, Await("other", State.STOPPED))
    instead = restarts_instead(run, steps)
    assert instead.keys() == ({1} if restarts else set())
    workers = FakeWorkers({"c": FakeConnector(tasks=["FAILED"])})
    work = context(workers)
    work.resumed = True
    (result,) = performed((instead.get(1, wait),), work)
    sent = ["POST /connectors/c/restart?includeTasks=true&onlyFailed=true"] if restarts else []
    assert (result.outcome is Outcome.DONE, workers.sent) == (restarts, sent)


def test_the_way_out_of_too_many_tasks_is_no_restart() -> None:
    ill = FakeConnector(tasks=["FAILED"], trace=TOO_MANY, fails_again=True)
    (result,) = performed((Await("c", State.RUNNING),), context(FakeWorkers({"c": ill})))
    assert result.error is not None
    assert "connectctl connectors patch c tasks.max=N" in str(result.error.next_step)
    assert "--only-failed" not in str(result.error.next_step)


@pytest.mark.parametrize(
    ("own", "tasks", "only_failed", "warning"),
    [
        (
            "FAILED",
            ["RUNNING"] * 3,
            False,
            "c: the restart ends its 3 running tasks, which may not start again",
        ),
        ("FAILED", ["RUNNING"] * 3, True, "c: the failed parts will fail again"),
        ("RUNNING", ["FAILED", "FAILED"], True, "c: the failed parts will fail again"),
        ("RUNNING", ["RUNNING"], False, None),
    ],
)
def test_a_restart_with_too_many_tasks_is_warned_of(
    own: str, tasks: list[str], only_failed: bool, warning: str | None
) -> None:
    workers = FakeWorkers({"c": FakeConnector(own=own, tasks=tasks, trace=TOO_MANY)})
    plan = plan_restart("x", seen(workers), only_failed=only_failed, named=True, wait=False)
    assert [each.startswith(str(warning)) for each in plan.warnings] == ([True] if warning else [])
    assert Plan.from_json(plan.as_json(), KINDS).warnings == plan.warnings
