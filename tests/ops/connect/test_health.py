"""Which workers, connectors and tasks are not healthy."""

from __future__ import annotations

import pytest
from connectctl.ops.clients.rest.connect import Connect
from connectctl.ops.connect.connector import Connector, Owners, Status
from connectctl.ops.connect.health import (
    STARTING,
    answer_problem,
    failed_parts,
    is_healthy,
    unhealthy_components,
    unhealthy_workers,
)
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from fakes.restserver import rest_server


@pytest.mark.parametrize(
    ("state", "healthy"),
    [
        *((state, True) for state in ("RUNNING", "PAUSED", "STOPPED")),
        *(
            (state, False)
            for state in ("FAILED", "DEGRADED", "UNASSIGNED", "RESTARTING", "DESTROYED")
        ),
    ],
)
def test_a_state_that_somebody_asked_for_is_healthy(state: str, healthy: bool) -> None:
    assert is_healthy(state) is healthy


def test_a_worker_is_healthy_in_the_group_and_answering() -> None:
    found = unhealthy_workers(
        ["a:1", "b:1", "c:1"], ["a:1", "b:1", "d:1"], {"b:1": "timeout", "d:1": "timeout"}
    )
    assert list(map(str, found)) == ["c:1 is not in the group", "b:1 does not answer: timeout"]


def test_a_connector_without_an_owner_is_unassigned_unless_it_is_stopped() -> None:
    running = Connector(
        "a", Status("RUNNING", "w:1"), {0: Status("FAILED", "w:1", "java.io.IOException: boom")}
    )
    stopped = Connector("b", Status("STOPPED", "gone:1"))
    found = unhealthy_components([running, stopped], Owners({("a", 0): "w:1"}))
    assert [str(each) for each in found] == [
        "a is UNASSIGNED (not assigned to a worker)",
        "a/0 is FAILED (java.io.IOException: boom)",
    ]
    assert list(failed_parts(running)) == [0]


def test_a_worker_that_has_no_resources_yet_is_starting() -> None:
    with (
        rest_server({"GET /": (404, "<html>Not Found")}) as server,
        pytest.raises(ConnectctlError) as caught,
    ):
        Connect((server.url,), auth={}, tls={}, timeout=0.5).get("/")
    assert answer_problem(caught.value, 3.0) == STARTING
    assert answer_problem(TimedOut("no answer"), 3.0) == "it did not answer within 3 s"
