"""``connectctl doctor`` on a real cluster: nothing about what is well, and what fails again and
again with its first trace, its cause and what changed.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from connectctl.ops.core.times import iso_utc
from live.real import FILE_SOURCE, Ran, connectctl, connector, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live

FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/doctor.json").read_text())


def doctor(*args: str) -> Ran:
    return connectctl("--context", "sandbox-tests", "doctor", *args)


def found(ran: Ran, name: str) -> dict[str, Any]:
    """The findings about the connector or a task of it, and about the group, by id."""
    jsonschema.validate(ran.json, SCHEMA)
    return {
        finding["id"]: finding
        for finding in ran.json["findings"]
        if name in finding["subject"] or finding["id"].startswith("GROUP")
    }


def test_of_a_connector_that_runs_only_its_changes_are_told(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name = f"well-{secrets.token_hex(4)}"
    (tmp_path / "in.txt").write_text("one\n")
    config = {"connector.class": FILE_SOURCE, "file": str(tmp_path / "in.txt"), "topic": name}
    began = iso_utc(time.time() * 1000)
    with connector(cluster, name, config) as rest:
        eventually(lambda: rest.state(name) == ["RUNNING", "RUNNING"])
        ran = eventually(lambda: _without(name, began))
        changes = [(each["kind"], each.get("task")) for each in ran.json["timeline"]]
        assert {("config", None), ("tasks", None), ("worker", None), ("worker", 0)} <= set(changes)


def _without(name: str, began: str) -> Ran | None:
    """Return a run without findings; those of a group that is shared may be about an earlier time."""
    ran = doctor(name, "-o", "json")
    about = {
        id: each
        for id, each in found(ran, name).items()
        if not id.startswith("GROUP") or each.get("since", began) >= began
    }
    print(about)
    return ran if not about else None


def test_what_fails_again_and_again_is_told_with_how_it_began(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name = f"failing-{secrets.token_hex(4)}"
    missing = tmp_path / "no-such-directory" / "out.txt"
    config = {"connector.class": FILE_SINK, "file": str(missing), "topics": name}
    with connector(cluster, name, config) as rest:
        eventually(lambda: rest.state(name)[1:] == ["FAILED"])
        once = found(doctor(name, "-o", "json"), name)["FAIL001"]
        assert "out.txt" in once["message"]
        assert once["since"]
        for _ in range(2):
            before = failures(name)
            rest.call("POST", f"/connectors/{name}/tasks/0/restart")
            eventually(partial(_failed_since, name, before))
        prometheus = tmp_path / "doctor.prom"
        ran = doctor(name, "-o", "json", "--prometheus", str(prometheus))
        again = found(ran, name)
        assert "FAIL001" not in again
        assert re.search(r"failed 3 times within", again["FAIL003"]["message"])
        assert again["FAIL003"]["since"] == once["since"]
        assert {"kind": "task", "name": f"{name}/0"}.items() <= ran.json["patients"][0].items()
        assert (
            f'id="FAIL003",severity="error",kind="task",name="{name}/0"' in prometheus.read_text()
        )
        assert ran.code == 1


def _failed_since(name: str, before: int) -> bool:
    return failures(name) > before


def failures(name: str) -> int:
    changes = doctor(name, "-o", "json").json["timeline"]
    return sum(each["kind"] == "failed" for each in changes)


def test_the_coordinators_records_have_the_workers_and_their_leader(cluster: Sandbox) -> None:
    from connectctl.cli.session import Session
    from connectctl.ops.connect.group_rounds import rounds_in

    session = Session(flags={}, context="sandbox-tests")
    try:
        group = session.group()
        newest = rounds_in(session.kafka.group_log(group.id, 0))[-1]
    finally:
        session.close()
    assert newest.members.keys() == {member.name for member in group.members}
    assert group.leader is not None
    assert newest.leader == group.leader.name
    assert newest.ids == {member.id: member.name for member in group.members}
