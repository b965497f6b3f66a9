"""What ``doctor`` sends to the workers: two requests each, at the same time to all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from connectctl.ops.checks.context import observe_cluster
from connectctl.ops.checks.runner import CheckRun, doctor_run, edges_of
from connectctl.ops.clients.rest.connect import Connect
from connectctl.ops.connect.worker import Support
from connectctl.ops.operations.cluster import worker_answers
from fakes.changingworld import World
from fakes.kafkareads import connect_group
from fakes.restserver import Answer, Asked, RestServer, Script, rest_server
from fakes.restworkers import RestWorkers

NAMES = ("one", "two", "three", "four")
LIST, HEALTH = "GET /connectors", "GET /health"
LATE = 0, 600
FORBIDDEN = {"error_code": 403, "message": "Forbidden"}
UNHEALTHY = 500, {"status": "unhealthy", "message": "Request timed out."}


@contextmanager
def cluster(
    directory: Path, **answers: Answer | Script
) -> Iterator[tuple[World, dict[str, RestServer]]]:
    """A cluster of four workers before 3.9 that record what they are asked; ``answers`` are the
    lists of those that give others.
    """
    world = World(directory)
    world.workers.connectors["users"].tasks = ["RUNNING", "RUNNING"]
    with ExitStack() as stack:
        servers: dict[str, RestServer] = {}
        for name in NAMES:
            script = RestServer() if name in answers else RestWorkers(workers=world.workers)
            if name in answers:
                script.on(LIST, answers[name])
            servers[name] = stack.enter_context(rest_server(script=script))
        group = connect_group("connect", one=[], two=[], three=[], four=[])
        members = tuple(replace(m, url=servers[m.client_id].url) for m in group.members)
        world.kafka.groups["connect"] = replace(group, members=members)
        urls = [servers[name].url for name in NAMES]
        world.session.calls = Connect(urls, auth={}, tls={}, timeout=30)  # type: ignore[assignment]
        yield world, servers


def hanging(number: int) -> Script:
    """A script that hangs, once it was asked ``number`` times at once."""
    together = threading.Barrier(number)

    def hang(asked: Asked) -> Answer:
        together.wait(60)
        return 0, 600

    return hang


def look(world: World) -> tuple[CheckRun, list[str]]:
    run = doctor_run(world.session, [])
    return run, [finding.id for finding in run.findings()]


def test_each_worker_gets_two_requests_and_one_of_them_what_one_can_answer(tmp_path: Path) -> None:
    with cluster(tmp_path) as (world, servers):
        run, ids = look(world)
    assert "GROUP005" not in ids
    assert [servers[name].requests() for name in NAMES[1:]] == [[LIST, HEALTH]] * 3
    assert servers["one"].requests() == [
        LIST,
        HEALTH,
        "GET /",
        "GET /connector-plugins",
        "PUT /connector-plugins/x.y.Source/config/validate",
        "GET /connectors?expand=status&expand=info",
    ]
    assert run.context.enabled
    assert {worker.support for worker in run.context.view.workers[1:]} >= {Support.UNKNOWN}


@pytest.mark.parametrize("hung", [("two", "four"), ("one", "three"), NAMES])
def test_workers_that_hang_are_asked_at_the_same_time_with_one_deadline(
    tmp_path: Path, hung: tuple[str, ...]
) -> None:
    with cluster(tmp_path, **dict.fromkeys(hung, hanging(len(hung)))) as (world, servers):
        for name in hung:
            servers[name].on("GET /", (200, {"version": "4.3.1"}))
        run, ids = look(world)
    assert {tuple(servers[name].requests()) for name in hung} == {(LIST, "GET /")}
    subjects = {f.subject for f in run.findings() if f.id == "GROUP005"}
    assert subjects == {servers[name].url.removeprefix("http://") for name in hung}
    assert "CLUSTER004" not in ids
    assert ("CLUSTER010" in ids) == (hung == NAMES)


@pytest.mark.parametrize(
    ("answers", "held"),
    [
        ([LATE, LATE], True),
        ([LATE, (200, {"status": "healthy"})], False),
        ([UNHEALTHY], True),
        ([(200, {"status": "healthy"})], False),
        ([(404, {"error_code": 404, "message": "HTTP 404 Not Found"})], False),
        ([(403, FORBIDDEN)], False),
    ],
)
def test_a_worker_that_lists_its_connectors_and_whose_herder_is_held_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[Answer], *, held: bool
) -> None:
    if LATE in answers:
        patience = (1.0, 1.0 if answers[-1] == LATE else 60.0)
        monkeypatch.setattr(worker_answers, "HEALTH_PATIENCE", patience)
    with cluster(tmp_path, two=(200, [])) as (world, servers):
        servers["two"].on(LIST, (200, list(world.workers.connectors)))
        servers["two"].on(HEALTH, *answers)
        run, ids = look(world)
    assert servers["two"].requests() == [LIST, *(HEALTH for _ in answers)]
    found = [f for f in run.findings() if f.id == "GROUP005"]
    two = servers["two"].url.removeprefix("http://")
    assert [f.subject for f in found] == [two] * held
    assert all("not GET /health" in f.message for f in found)
    assert not {"CLUSTER004", "CLUSTER010", "WORKER012"} & set(ids)


def test_a_worker_that_does_not_allow_the_question_for_its_health_may_be_held_all_the_same(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path, two=(200, [])) as (world, servers):
        servers["two"].on(LIST, (200, list(world.workers.connectors)))
        servers["two"].on(HEALTH, (403, FORBIDDEN))
        run, _ = look(world)
    (unseen,) = (f for f in run.findings() if f.id == "SIGHT001")
    address = servers["two"].url.removeprefix("http://")
    assert unseen.subject == f"GET /health of {address}"
    assert unseen.message == "May be incomplete: not authorized (Forbidden)."
    assert unseen.next_step == "Check rest_auth and rest_tls: connectctl context show."


def test_a_worker_that_answers_nothing_is_silent_and_not_one_whose_herder_hangs(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path, two=(0, 600)) as (world, servers):
        servers["two"].on("GET /", (0, 600))
        run, ids = look(world)
    assert "GROUP005" not in ids
    (silent,) = (f for f in run.findings() if f.id == "CLUSTER004")
    assert silent.subject == servers["two"].url.removeprefix("http://")
    assert "did not answer within 3 s" in silent.message


def test_a_contradiction_is_read_twice_more_while_it_lasts(tmp_path: Path) -> None:
    with cluster(tmp_path, two=(200, [])) as (world, servers):
        _, ids = look(world)
    assert servers["two"].requests() == [LIST, HEALTH, LIST, LIST]
    assert "WORKER012" in ids


def test_a_contradiction_is_not_waited_for_where_nothing_changes_as_in_a_bundle(
    tmp_path: Path,
) -> None:
    waited: list[float] = []
    with cluster(tmp_path, two=(200, [])) as (world, servers):
        group = world.session.group()
        edges = replace(edges_of(world.session, group), pause=waited.append)
        observe_cluster(edges, group, world.session.named_topics, [], past=True)
    assert servers["two"].requests() == [LIST, HEALTH, LIST, LIST]
    assert waited == [0.3, 3.0]
