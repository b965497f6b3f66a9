"""Exit codes for cron and probes, and a group that does not exist."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.kafkareads import FakeKafka, connect_group, records
from fakes.runner import invoke
from fakes.session import FakeSession
from fakes.workers import FakeConnector, FakeWorkers
from typer.testing import Result

TOPICS = {"topics.config": "cfg", "topics.offsets": "off", "topics.status": "sta"}
CONFIG = {"connector.class": "x.y.Source"}
LOOKS = (("cluster", "show"), ("connectors", "list"))


def session(**connectors: FakeConnector) -> FakeSession:
    written = [(f"connector-{name}", {"properties": CONFIG}) for name in connectors]
    owners = [(name, task) for name, c in connectors.items() for task in range(-1, len(c.tasks))]
    group = connect_group("connect", one=owners)
    kafka = FakeKafka({"cfg": records(*written), "off": [], "sta": []}, groups={"connect": group})
    return FakeSession(told=dict(TOPICS), reads=kafka, calls=FakeWorkers(connectors))


def run(session: FakeSession, *args: str) -> Result:
    return invoke(list(args), obj=session)


@pytest.mark.parametrize("look", LOOKS)
def test_a_probe_fails_for_what_is_failed_and_for_nothing_that_somebody_wanted(
    look: tuple[str, ...],
) -> None:
    healthy = {
        "orders": FakeConnector(config=CONFIG),
        "off": FakeConnector(own="STOPPED", tasks=[], config=CONFIG),
    }
    assert run(session(**healthy), *look, "--exit-code").exit_code == 0
    broken = session(**healthy, users=FakeConnector(tasks=["RUNNING", "FAILED"], config=CONFIG))
    result = run(broken, *look, "--exit-code")
    assert result.exit_code == 1
    assert "not healthy: users is DEGRADED" in result.stderr
    assert run(broken, *look).exit_code == 0


@pytest.mark.parametrize("look", LOOKS)
def test_a_probe_fails_where_no_worker_runs_anything(look: tuple[str, ...]) -> None:
    down = session(orders=FakeConnector(config=CONFIG))
    down.reads.groups["connect"] = replace(down.reads.groups["connect"], state="Empty", members=())
    assert run(down, *look, "--exit-code").exit_code == 1


@pytest.mark.parametrize(
    "look",
    [*LOOKS, ("connectors", "stop", "orders", "--yes"), ("preflight",), ("preflight", "orders")],
)
def test_a_group_that_does_not_exist_is_one_line_and_bad_input(look: tuple[str, ...]) -> None:
    nowhere = session(orders=FakeConnector(config=CONFIG))
    nowhere.told |= {"group_id": "conect", **dict.fromkeys(TOPICS)}
    nowhere.reads.records.clear()
    nowhere.calls = FakeWorkers({}, urls=())
    nowhere.transactions.groups = frozenset({"connect", "other"})
    result = run(nowhere, *look)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Kafka has no group conect" in result.stderr
    assert "Did you mean connect?" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_group_whose_workers_have_long_been_down_is_still_shown_from_its_topics() -> None:
    down = session(orders=FakeConnector(config=CONFIG))
    down.reads.groups.clear()
    result = run(down, "connectors", "list")
    assert result.exit_code == 0, result.stderr
    assert "orders" in result.stdout
