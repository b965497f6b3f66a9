"""What plans say of source offsets is what tasks are given by their workers after the change, of
changes of all kinds.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.connect import target_state_wait
from live.offsetsasked import KINDS, RESTLESS, Asked, StandIns, text_of
from live.offsetstable import MIRROR, MORE, QUICK, Case
from live.real import Ran, connectctl, eventually, workers
from live.standins import cluster_with_stand_ins

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory: pytest.TempPathFactory, state_home: Path) -> Iterator[Sandbox]:
    with cluster_with_stand_ins(tmp_path_factory.mktemp("standins")) as cluster:
        yield cluster


class Change:
    """A connector, the change of a case, and its way back."""

    def __init__(self, cluster: Sandbox, case: Case, directory: Path, word: str):
        self.cluster, self.case, self.directory, self.rest = (
            cluster,
            case,
            directory,
            workers(cluster),
        )
        self.first = self.name = f"c-{word}"
        self.asking = KINDS.get(case.kind, StandIns)(cluster, directory, word)
        self.before: Asked = {}

    def ctl(self, *args: str) -> Ran:
        ran = connectctl("--context", f"sandbox-{self.cluster.spec.name}", "--timeout", "60", *args)
        assert ran.code == 0, ran.out + ran.err
        return ran

    def begin(self) -> None:
        config = {"connector.class": self.case.kind, "name": self.name} | self.asking.config(
            self.name
        )
        self.rest.create(
            self.name, config | dict(self.case.config), "STOPPED" if self.case.older else "RUNNING"
        )
        if self.case.older:
            body = [
                {"partition": partition, "offset": offset} for partition, offset in self.case.older
            ]
            eventually(lambda: self.rest.state(self.name) == ["STOPPED"])
            answer = self.rest.call("PATCH", f"/connectors/{self.name}/offsets", {"offsets": body})
            assert answer.status_code == 200, answer.text
            self.rest.call("PUT", f"/connectors/{self.name}/resume")
        self.before = self.ask()
        if self.case.renamed or self.case.again:
            self.ctl("connectors", "stop", self.name, "--wait", "--yes")

    def config(self, name: str) -> dict[str, str]:
        return dict(self.rest.call("GET", f"/connectors/{name}/config").json())

    def ask(self) -> Asked:
        """What its tasks are given, once that is committed."""
        config = self.config(self.name)
        asked = self.asking.asked(self.name, config, self.before)
        # A worker names a source partition before it has read its offset to the end of the topic.
        eventually(
            lambda: (
                asked.keys()
                <= {key for key, offset in self.offsets(self.name).items() if offset is not None}
            )
        )
        return asked

    def offsets(self, name: str) -> dict[str, Any]:
        return {text_of(each["partition"]): each["offset"] for each in self.rest.offsets(name)}

    def command(self) -> list[str]:
        """The change, as a command."""
        if not (self.case.renamed or self.case.again):
            return ["patch", self.name, *self.case.change]
        config = self.config(self.name)
        if self.case.again:
            self.ctl("connectors", "delete", self.name, "--yes", "--wait")
        else:
            self.name += "-new"
            config |= {"name": self.name} | self.asking.config(self.name)
            self.asking.seen = 0
        given = self.directory / "given.json"
        given.write_text(json.dumps(config))
        return ["create", "-f", str(given), *self.case.change]

    def planned(self, command: list[str]) -> dict[str, Any]:
        steps = self.ctl("connectors", *command, "--dry-run", "-o", "json").json["steps"]
        (step,) = (each for each in steps if each["step"] in ("ChangeConnector", "CreateConnector"))
        return dict(step)

    def carry_out(self, command: list[str]) -> tuple[str, str]:
        """The id of the run, and what it says of the offsets that workers give at its end."""
        ran = self.ctl("connectors", *command, "--yes", "--wait", "-o", "json").json
        views = [
            str(each["detail"])
            for each in ran["results"]
            if each["description"].startswith("read the offsets")
        ]
        return str(connectctl("runs", "list", "-o", "json").json["runs"][0]["id"]), "".join(views)


@pytest.fixture
def change(request: pytest.FixtureRequest, stand_ins: Sandbox, tmp_path: Path) -> Iterator[Change]:
    word = uuid.uuid4().hex[:8]
    made = Change(stand_ins, request.param.of(str(tmp_path), word), tmp_path, word)
    made.begin()
    yield made
    for name in {made.first, made.name}:
        made.rest.delete(name)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands wait for RUNNING as long as ever, and not for its lasting: each change is followed
    by what tasks do.
    """
    monkeypatch.setattr(target_state_wait, "STEADY", 1.0)


def ids(case: Case) -> str:
    return f"{case.kind.rpartition('.')[2]}: {case.name}"


def told(plan: dict[str, Any], fate: str) -> set[str]:
    return {text_of(each) for each in plan["partitions"].get(fate, ())}


def check_plan(case: Case, plan: dict[str, Any]) -> None:
    """The plan says what the table does."""
    fates = {"orphaned": case.orphaned, "resumed": case.resumed, "begun anew": case.begun}
    for fate, partitions in (
        fates | {"carried over": case.carried, "unknown": case.unknown}
    ).items():
        assert told(plan, fate) == {text_of(each) for each in partitions}, (
            fate,
            plan["description"],
        )
    assert case.says in plan["description"]


def check_asked(
    case: Case,
    plan: dict[str, Any],
    stored: dict[str, Any],
    source: dict[str, Any],
    before: Asked,
    after: Asked,
) -> None:
    """The tasks are given what the plan says; what it carries over is from ``source``. What it says
    nothing of is kept.
    """
    left = {each for each in stored if each in before and each not in after}
    assert left == told(plan, "orphaned") | (told(plan, "carried over") & stored.keys())
    assert told(plan, "resumed") == {
        p for p, o in after.items() if o is not None and p in stored and p not in before
    }
    moved = {p: offset for p, offset in after.items() if offset is not None and p not in stored}
    carried = sorted(text_of(source[each]) for each in told(plan, "carried over"))
    assert carried == sorted(map(text_of, moved.values()))
    anew = {each for each, offset in after.items() if offset is None}
    named = [json.loads(each) for each in told(plan, "begun anew")]
    for each in anew if not case.open else ():
        assert any(stands_for(partition, json.loads(each)) for partition in named), (
            each,
            plan["description"],
        )
    for partition in named:
        assert any(stands_for(partition, json.loads(each)) for each in anew), (partition, after)
    given = {
        each: offset for each, offset in after.items() if each in stored and offset is not None
    }
    assert case.kind in RESTLESS or given == {each: stored[each] for each in given}


def stands_for(partition: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether ``partition``, of which some fields may not be known, is ``other``; a table's name
    may lack its schema.
    """
    return all(
        other.get(key) == value or str(other.get(key)).endswith(f".{value}")
        for key, value in partition.items()
    )


def check_undone(
    change: Change,
    config: dict[str, str],
    stored: dict[str, Any],
    mid: dict[str, Any],
    kept: set[str],
    carried: set[str],
) -> None:
    """The configuration is as before, and so are the offsets but those of what was read until it
    was stopped.

    Offsets that were carried over are carried back: those that were committed last.
    """
    assert text_of(change.config(change.first)) == text_of(config)
    expected, now = stored | {each: mid[each] for each in kept}, change.offsets(change.first)
    assert now.keys() == expected.keys()
    if change.case.kind == MIRROR and carried:  # it runs again, and copies what came meanwhile
        return
    back = sorted(text_of(now[each]) for each in carried & now.keys())
    assert back == sorted(
        text_of(offset) for each, offset in mid.items() if each not in stored and carried
    )
    assert {each: now[each] for each in now.keys() - carried} == {
        each: expected[each] for each in now.keys() - carried
    }


def take_back(change: Change, run: str, moved: bool) -> None:
    """Undo the run; what went on since it was given offsets is not set back, and is deleted
    instead.
    """
    if not moved:
        change.ctl("runs", "undo", run, "--yes", "--wait")
        return
    where = ("--context", f"sandbox-{change.cluster.spec.name}", "--timeout", "60")
    ran = connectctl(*where, "runs", "undo", run, "--yes", "--wait")
    assert (ran.code, f"of {change.name} moved since the run {run}" in ran.err) == (4, True), (
        ran.out + ran.err
    )
    change.ctl("connectors", "delete", change.name, "--yes", "--wait")


def check(change: Change) -> None:
    case, first = change.case, change.first
    config, stored = change.config(first), change.offsets(first)
    command = change.command()
    plan = change.planned(command)
    check_plan(case, plan)
    run, view = change.carry_out(command)
    assert all(each in view.partition("not read: ")[2] for each in told(plan, "orphaned")), view
    own = stored if change.name == first else {}
    before = {} if case.again or case.renamed else change.before
    after = change.ask()
    check_asked(case, plan, own, stored, before, after)
    kept = {each for each, offset in after.items() if each in before and offset is not None}
    kept |= before.keys() if case.kind in RESTLESS else set()
    change.ctl("connectors", "stop", change.name, "--wait", "--yes")
    mid = change.offsets(change.name)
    carried = told(plan, "carried over")
    given = sorted(text_of(stored[each]) for each in carried & stored.keys())
    if carried:
        change.asking.before_undo()
    take_back(
        change, run, bool(case.renamed and carried) and given != sorted(map(text_of, mid.values()))
    )
    if change.name != first or case.again:
        assert change.rest.call("GET", f"/connectors/{change.name}").status_code == 404
    else:
        check_undone(change, config, stored, mid, kept, carried)
    if change.name != first:
        assert change.offsets(first) == stored


@pytest.mark.drawn(5)
@pytest.mark.parametrize("change", QUICK, indirect=True, ids=ids)
def test_tasks_are_given_what_the_plan_says_and_undo_brings_everything_back(change: Change) -> None:
    check(change)


@pytest.mark.slow
@pytest.mark.parametrize("change", MORE, indirect=True, ids=ids)
def test_tasks_are_given_what_the_plan_says_of_many_more_changes(change: Change) -> None:
    check(change)
