"""A part of a connector is what the worker that has it says: every reader of statuses asks the one
judge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
from connectctl.ops.connect.connector import Connector, State, Status
from connectctl.ops.connect.health import failed_parts, parts_in
from connectctl.ops.connect.too_many_tasks import EXCEPTION, failed_by_tasks_max, restart_warning
from connectctl.ops.connect.transactional_ids import TransactionalIdIndex
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.connectors.fencing_diagnosis import (
    Case,
    failed_tasks,
    needs_diagnosis,
)
from connectctl.ops.operations.fencing.steps import AwaitFailed, FenceContext
from connectctl.ops.operations.tasks_max import remedies

FENCED = "org.apache.kafka.common.errors.ProducerFencedException: There is a newer producer"
LOST = "java.lang.ThreadDeath"


def moved(state: State, trace: str = "") -> Connector:
    """Both tasks were in ``state`` on a worker that has only the first of them now."""
    status = Status(state, "one:8083", trace)
    assigned = {-1: "one:8083", 0: "one:8083", 1: "two:8083"}
    return Connector("a", Status("RUNNING", "one:8083"), {0: status, 1: status}, assigned=assigned)


def only_lost(connector: Connector) -> Connector:
    """The same, of which the worker has neither task any more."""
    return Connector(
        "a",
        connector.status,
        connector.tasks,
        assigned={-1: "one:8083", 0: "two:8083", 1: "two:8083"},
    )


class Seen(StepContext):
    """Reads one connector."""

    def __init__(self, connector: Connector) -> None:
        self.connector = connector

    def read(self, name: str, facts: object = None) -> Connector:
        return self.connector


def case(connector: Connector) -> Case:
    return Case("g", connector, None, {}, TransactionalIdIndex({}))


def not_failed(connector: Connector) -> list[int]:
    return AwaitFailed("a", (0, 1))._not_failed(cast("FenceContext", Seen(connector)))


READERS: dict[str, Callable[[], tuple[object, object]]] = {
    "failed parts": lambda: ([*failed_parts(moved(State.FAILED))], [0]),
    "running parts": lambda: ([*parts_in(moved(State.RUNNING), State.RUNNING)], [-1, 0]),
    "fenced tasks": lambda: (
        [each.owner.task for each in failed_tasks(case(moved(State.FAILED, FENCED)))],
        [0],
    ),
    "a look at fencing": lambda: (
        needs_diagnosis(only_lost(moved(State.FAILED, FENCED)), None),
        False,
    ),
    "too many tasks": lambda: (
        failed_by_tasks_max(only_lost(moved(State.FAILED, EXCEPTION))),
        False,
    ),
    "the wait for a fence": lambda: (not_failed(moved(State.FAILED)), [1]),
    "settled tasks": lambda: (remedies._settled(moved(State.RUNNING))[0], False),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_status_of_a_worker_that_has_the_part_no_more_counts_for_nobody(reader: str) -> None:
    found, expected = READERS[reader]()
    assert found == expected


def test_a_part_of_a_worker_without_rest_is_what_its_status_says() -> None:
    failed = Status("FAILED", "NOTUSED")
    dedicated = Connector(
        "a", failed, {0: failed}, assigned={-1: "connect-1@10.0.0.1", 0: "connect-1@10.0.0.1"}
    )
    assert [*failed_parts(dedicated)] == [-1, 0]


def test_the_tasks_that_a_restart_ends_are_counted_by_who_has_them() -> None:
    connector = moved(State.RUNNING)
    refused = Connector(
        "a", Status("FAILED", "one:8083", EXCEPTION), connector.tasks, assigned=connector.assigned
    )
    assert "its running task" in str(restart_warning(refused, only_failed=False))
