"""A directory of connectors is applied as one: what is deleted, in which order, what restarts, and
who changed what.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from connectctl.cli import flow
from connectctl.ops.connect.cluster_lock import LockHolder
from connectctl.ops.core.journal import Journal
from fakes.changingworld import Clock, Killed, World, timed_by
from fakes.memory import directory_in_memory
from typer.testing import Result

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with directory_in_memory() as directory:
        monkeypatch.setattr(flow, "context_of", partial(timed_by, Clock(), flow.context_of))
        monkeypatch.setenv("CONNECTCTL_JOURNAL", str(directory / "journal"))
        (directory / "d").mkdir()
        yield World(directory)


def give(world: World, name: str, *, place: str = "d", **more: str) -> None:
    directory = world.directory / place
    directory.mkdir(exist_ok=True)
    config = {
        "name": name,
        "connector.class": FILE_SOURCE,
        "file": f"/in/{name}",
        "topic": name,
    } | more
    (directory / f"{name}.json").write_text(json.dumps(config))


def take(world: World, *names: str) -> None:
    for name in names:
        (world.directory / "d" / f"{name}.json").unlink()


def apply(world: World, *args: str, place: str = "d", code: int = 0) -> Result:
    result = world.run("connectors", "apply", "-f", str(world.directory / place), *args)
    assert result.exit_code == code, result.output
    return result


def planned(world: World, *args: str, place: str = "d") -> dict[str, Any]:
    data: dict[str, Any] = json.loads(
        apply(world, *args, "--dry-run", "-o", "json", place=place).stdout
    )
    jsonschema.validate(data, json.loads((SCHEMAS / "plan.json").read_text()))
    return data


def steps(plan: dict[str, Any]) -> list[tuple[str, str]]:
    return [(step["step"], step["subject"]) for step in plan["steps"]]


def left(plan: dict[str, Any]) -> dict[str, str]:
    return {noop["subject"]: noop["why"].removeprefix("left alone: ") for noop in plan["unchanged"]}


def by_rest(world: World, name: str, **changes: str) -> None:
    """What somebody else does with the workers' REST API."""
    fake = world.workers.connectors[name]
    fake.config = fake.config | changes
    world.workers.configured(name, fake.config)


def test_prune_deletes_what_was_applied_from_the_directory_and_nothing_else(world: World) -> None:
    for name in ("a", "b"):
        give(world, name)
    give(world, "c", place="others")
    apply(world, "--yes")
    apply(world, "--yes", place="others")
    take(world, "a")
    plan = planned(world, "--prune")
    assert steps(plan) == [("DeleteConnector", "a")]
    unknown = "no run in this machine's journal applied it from a file"
    assert left(plan) == {
        "b": "unchanged",
        "c": f"it was applied from {world.directory}/others/c.json",
        **dict.fromkeys(("off", "orders", "users"), unknown),
    }
    assert "delete a; what remains: its topics" in apply(world, "--prune", "--yes").output
    assert world.workers.connectors.keys() == {"b", "c", "off", "orders", "users"}
    assert steps(planned(world, "--prune")) == []


def test_without_prune_nothing_is_deleted_and_nothing_said_of_others(world: World) -> None:
    for name in ("a", "b"):
        give(world, name)
    apply(world, "--yes")
    take(world, "a")
    plan = planned(world)
    assert (steps(plan), left(plan)) == ([], {"b": "unchanged"})


def test_a_connector_that_the_files_only_found_as_it_is_is_not_theirs(world: World) -> None:
    for name in ("orders", "a"):
        give(world, name)
    by_rest(
        world, "orders", **{"connector.class": FILE_SOURCE, "file": "/in/orders", "topic": "orders"}
    )
    apply(world, "--yes")
    take(world, "orders")
    assert steps(planned(world, "--prune")) == []


def test_what_was_deleted_and_created_again_by_somebody_else_is_left_alone(world: World) -> None:
    for name in ("a", "b"):
        give(world, name)
    apply(world, "--yes")
    take(world, "a")
    world.workers.send("DELETE", "/connectors/a")
    world.workers.send(
        "POST", "/connectors", {"name": "a", "config": {"connector.class": "x.y.Other"}}
    )
    plan = planned(world, "--prune")
    assert steps(plan) == []
    assert left(plan)["a"].startswith("another client deleted it at 20")


def test_a_prune_that_was_undone_is_planned_again_and_an_apply_that_was_undone_counts_for_nothing(
    world: World,
) -> None:
    for name in ("a", "b"):
        give(world, name)
    apply(world, "--yes")
    give(world, "orders")
    apply(world, "--yes")
    assert world.run("runs", "undo", world.runs()[0]["id"], "--yes").exit_code == 0
    take(world, "a", "orders")
    apply(world, "--prune", "--yes")
    assert ("a" in world.workers.connectors, "orders" in world.workers.connectors) == (False, True)
    assert world.run("runs", "undo", world.runs()[0]["id"], "--yes").exit_code == 0
    assert steps(planned(world, "--prune")) == [("DeleteConnector", "a")]


def test_prune_match_deletes_what_no_run_applied(world: World) -> None:
    give(world, "a")
    apply(world, "--yes", "--prune-match", "o*")
    assert world.workers.connectors.keys() == {"a", "users"}
    assert (
        "left alone: it does not match --prune-match"
        in apply(world, "--dry-run", "--prune-match", "none-*").output
    )


def test_prune_of_an_empty_directory_and_of_standard_input_is_refused(world: World) -> None:
    give(world, "a")
    apply(world, "--yes")
    take(world, "a")
    assert "has no configuration of a connector" in apply(world, "--prune", "--yes", code=2).stderr
    refused = world.run("connectors", "apply", "-f", "-", "--prune", "--yes")
    assert (refused.exit_code, "standard input is neither" in refused.stderr) == (2, True)


def test_what_takes_source_partitions_over_waits_for_whoever_is_deleted(world: World) -> None:
    for name in ("old", "z"):
        give(world, name)
    apply(world, "--yes")
    take(world, "old")
    give(world, "a")
    give(world, "m", file="/in/old")
    give(world, "z", batch="5")
    plan = planned(world, "--prune")
    assert steps(plan) == [
        ("DeleteConnector", "old"),
        ("CreateConnector", "a"),
        ("AwaitRelease", "m"),
        ("CreateConnector", "m"),
        ("ChangeConnector", "z"),
    ]
    said = [step["description"] for step in plan["steps"]]
    assert said[2] == "wait until no worker runs old, whose source partitions m reads"
    assert not [text for text in said if "reads the same source partitions" in text]
    apply(world, "--prune", "--yes", "--wait")
    assert world.workers.connectors.keys() >= {"a", "m", "z"}


def test_where_the_deletion_fails_nobody_takes_the_source_partitions_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "z"):
        give(world, name)
    apply(world, "--yes")
    take(world, "old")
    give(world, "m", file="/in/old")
    give(world, "n")
    monkeypatch.setattr(
        "connectctl.cli.apply.confirm", lambda *args, **more: by_rest(world, "old", x="1")
    )
    refused = apply(world, "--prune", "--yes", code=4)
    assert "old was changed since the plan was made" in refused.stderr
    assert (
        "old still reads source partitions that m is to read; m is left as it is" in refused.stderr
    )
    assert world.workers.connectors.keys() >= {"old", "n"}
    assert "m" not in world.workers.connectors


def test_the_plan_says_what_restarts_and_what_does_not(world: World) -> None:
    for name in ("a", "off"):
        give(world, name, topic=f"of-{name}")
    apply(world, "--yes")
    for name in ("a", "off"):
        give(world, name, topic=f"of-{name}", batch="5")
    said = {step["subject"]: step for step in planned(world)["steps"]}
    assert said["a"]["restarts"] == "restarts the connector and its tasks"
    assert said["a"]["description"].endswith("; restarts the connector and its tasks")
    assert (said["off"]["restarts"], "restarts" in said["off"]["description"]) == ("", False)


def test_drift_is_told_with_who_is_newer(world: World) -> None:
    for name in ("a", "b", "c"):
        give(world, name, x="1", y="1")
    apply(world, "--yes")
    (run,) = world.runs()
    by_rest(world, "a", x="2")
    by_rest(world, "b", x="2")
    give(world, "b", x="1", y="2")
    give(world, "c", x="1", y="2")
    give(world, "orders")
    drift = {
        step["subject"]: step["drift"]
        for step in planned(world)["steps"]
        if step["step"] == "ChangeConnector"
    }
    newer = {name: (each["newer"], each["cluster"], each["file"]) for name, each in drift.items()}
    assert newer == {
        "a": ("cluster", ["x"], []),
        "b": ("both", ["x"], ["y"]),
        "c": ("file", [], ["y"]),
        "orders": ("unknown", [], []),
    }
    assert (drift["a"]["run"], drift["a"]["applied"], drift["a"]["changed_by"]) == (
        run["id"],
        {"x": "1"},
        "another client",
    )
    assert drift["a"]["changed_at"] >= drift["a"]["applied_at"]
    text = apply(world, "--dry-run").output
    assert "the cluster is newer: x changed on the cluster at 20" in text
    assert "y changed in the file as well" in text
    assert text.count("the cluster is newer") == 1


def test_a_patch_from_this_machine_is_drift_with_its_run(world: World) -> None:
    give(world, "a")
    apply(world, "--yes")
    assert world.run("connectors", "patch", "a", "x=2", "--yes").exit_code == 0
    (step,) = planned(world)["steps"]
    assert (step["drift"]["newer"], step["drift"]["changed_by"]) == (
        "cluster",
        f"run {world.runs()[0]['id']}",
    )


def test_a_config_topic_that_may_not_be_read_leaves_the_time_unknown(world: World) -> None:
    give(world, "a")
    apply(world, "--yes")
    by_rest(world, "a", x="2")
    world.kafka.forbidden.add("cfg")
    (step,) = planned(world)["steps"]
    assert (step["drift"]["newer"], step["drift"]["changed_at"]) == ("cluster", None)
    assert "at an unknown time (Not allowed to read" in step["description"]


def test_what_was_changed_by_somebody_is_not_pruned_where_the_config_topic_may_not_be_read(
    world: World,
) -> None:
    for name in ("a", "b"):
        give(world, name)
    apply(world, "--yes")
    by_rest(world, "a", x="2")
    take(world, "a")
    assert [name for _, name in steps(planned(world, "--prune"))] == ["a"]
    world.kafka.forbidden.add("cfg")
    plan = planned(world, "--prune")
    assert steps(plan) == []
    assert (
        "unknown whether it is the connector that was applied (Not allowed to read"
        in left(plan)["a"]
    )


def test_exit_codes_say_whether_something_is_to_be_done(world: World) -> None:
    give(world, "a")
    apply(world, "--dry-run", "--exit-code", code=3)
    apply(world, "--yes")
    done = apply(world, "--dry-run", "--exit-code", "--prune")
    assert "Nothing to do." in done.output
    take(world, "a")
    give(world, "b")
    apply(world, "--yes")
    apply(world, "--dry-run", "--exit-code")
    apply(world, "--dry-run", "--exit-code", "--prune", code=3)


def test_many_with_nothing_to_do_are_one_line_and_one_by_one_in_json(world: World) -> None:
    for n in range(30):
        give(world, f"a{n:02}")
    apply(world, "--yes")
    assert "  -  a00 and 29 more: unchanged" in apply(world, "--dry-run").output
    assert "already    a00 and 29 more: unchanged" in apply(world, "--yes").output.replace(
        "\t", " "
    )
    assert "  -  a07: unchanged" in apply(world, "--dry-run", "-o", "wide").output
    assert len(planned(world)["unchanged"]) == 30


def test_references_of_kafkas_config_providers_travel_untouched(world: World) -> None:
    references = {"p": "${file:/run/s.properties:p}", "q": "${env:Q}", "r": "${vault:a/b:c}"}
    give(world, "a", **references)
    shown = planned(world)["steps"][0]["config"]
    apply(world, "--yes")
    assert {name: world.workers.connectors["a"].config[name] for name in references} == references
    assert {name: shown[name] for name in references} == references


def test_the_second_of_two_people_is_refused_with_who_holds_the_lock(world: World) -> None:
    give(world, "a")
    world.session.lock.other = LockHolder(
        "20260101-103100-ab12", "anna@ops-1", "2026-01-01T10:31:00Z"
    )
    refused = apply(world, "--yes", code=4)
    assert "anna@ops-1" in refused.stderr
    assert "a" not in world.workers.connectors


def test_a_plan_merges_with_what_touched_other_connectors_and_is_stale_where_it_touched_the_same(
    world: World,
) -> None:
    for name in ("a", "b"):
        give(world, name)
    apply(world, "--yes")
    give(world, "a", x="1")
    take(world, "b")
    saved = world.directory / "plan.json"
    saved.write_text(apply(world, "--prune", "--dry-run", "-o", "json").stdout)
    give(world, "theirs", place="others")
    give(world, "users", place="others")
    apply(world, "--yes", place="others")
    by_rest(world, "b", x="1")
    refused = world.run("runs", "apply", str(saved), "--yes")
    assert (refused.exit_code, "The plan is stale: b was changed" in refused.stderr) == (4, True)
    assert "x" not in world.workers.connectors["a"].config
    world.workers.connectors["b"].config.pop("x")
    done = world.run("runs", "apply", str(saved), "--yes")
    assert done.exit_code == 0, done.output
    assert world.workers.connectors["a"].config["x"] == "1"
    assert world.workers.connectors.keys() == {"a", "off", "orders", "theirs", "users"}


# ----------------------------------------------------------------------------- killed at every step


class Twenty:
    """A directory that was applied, and then changed: 6 connectors are to be deleted, 7 changed and
    7 created.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        for n in range(13):
            give(world, f"c{n:02}")
        apply(world, "--yes")
        take(world, *(f"c{n:02}" for n in range(6)))
        for n in range(6, 20):
            give(world, f"c{n:02}", x="1", file="/in/c00" if n == 13 else f"/in/c{n:02}")

    def copy(self, directory: Path, left: int = -1) -> World:
        """The cluster and the journal as they are, of which one may be killed."""
        directory.mkdir()
        shutil.copytree(self.world.directory / "journal", directory / "journal")
        victim = World(directory, left=left)
        victim.workers.connectors = deepcopy(self.world.workers.connectors)
        for topic, log in self.world.kafka.records.items():
            victim.kafka.records[topic] = list(log)
        victim.kafka.groups.update(self.world.kafka.groups)
        return victim

    def apply(self, victim: World, *more: str) -> Result:
        return victim.run(
            "connectors", "apply", "-f", str(self.world.directory / "d"), "--prune", "--yes", *more
        )


POINTS = 220
"""More than the calls of the workers and the journal in such an apply, before and after each."""


@pytest.mark.parametrize(
    "phase",
    [pytest.param(n, marks=[pytest.mark.slow] if n else []) for n in range(10)],
    ids=lambda n: f"from{n}",
)
def test_an_apply_of_twenty_that_is_killed_anywhere_is_resumed_to_the_same_end(
    world: World, phase: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    twenty = Twenty(world)
    reference = twenty.copy(world.directory / "reference")
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(reference.directory / "journal"))
    done = twenty.apply(reference)
    assert done.exit_code == 0, done.output
    assert len(reference.workers.sent) == 20
    wanted, killed = reference.state(), 0
    for point in range(phase + 1, POINTS, 10):
        victim = twenty.copy(world.directory / str(point), point)
        monkeypatch.setenv("CONNECTCTL_JOURNAL", str(victim.directory / "journal"))
        with pytest.MonkeyPatch.context() as counted, suppress(Killed):
            for name in ("mark", "end"):
                counted.setattr(Journal, name, victim.counted(getattr(Journal, name)))
            twenty.apply(victim)
        killed += victim.left <= 0
        victim.left = -1
        victim.new_session()
        run = victim.runs()[0]
        if run["state"] == "open":
            resumed = victim.run("runs", "resume", run["id"], "--yes")
            assert resumed.exit_code == 0, (point, resumed.output)
        elif victim.state() != wanted:
            assert victim.workers.sent == [], point
            assert twenty.apply(victim).exit_code == 0
        assert victim.state() == wanted, point
        assert steps(_again(twenty, victim)) == [], point
        shutil.rmtree(victim.directory)
    assert killed > 8
    assert _points_of(twenty, monkeypatch) < POINTS


def _again(twenty: Twenty, victim: World) -> dict[str, Any]:
    where = ("-f", str(twenty.world.directory / "d"), "--prune", "--dry-run", "-o", "json")
    found: dict[str, Any] = json.loads(victim.run("connectors", "apply", *where).stdout)
    return found


def _points_of(twenty: Twenty, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many points there are at which the process may be killed."""
    whole = twenty.copy(twenty.world.directory / "whole", left=10**6)
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(whole.directory / "journal"))
    with pytest.MonkeyPatch.context() as counted:
        for name in ("mark", "end"):
            counted.setattr(Journal, name, whole.counted(getattr(Journal, name)))
        assert twenty.apply(whole).exit_code == 0
    return 10**6 - whole.left


# ------------------------------------------------------------------------------------------ secrets


@pytest.fixture
def referring(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A directory with a configuration in each form that refers to secrets, one of them under a
    name that says nothing.
    """
    monkeypatch.setenv("ORDERS_SECRET", "hush-env-4711")
    (world.directory / "secret.txt").write_text("hush-file-4711\n")
    refers: dict[str, Any] = {
        "db.password": {"env": "ORDERS_SECRET"},
        "option": {"file": str(world.directory / "secret.txt")},
        "extra": {"command": "echo hush-command-4711"},
        "provider": "${env:ORDERS_SECRET}",
    }
    config = {"connector.class": FILE_SOURCE, "file": "/in/a", "topic": "a"} | refers
    (world.directory / "d" / "a.json").write_text(json.dumps({"name": "a", "config": config}))
    manifest = {
        "kind": "KafkaConnector",
        "metadata": {"name": "b"},
        "spec": {"class": FILE_SOURCE, "config": refers},
    }
    (world.directory / "d" / "b.yaml").write_text(
        json.dumps(manifest | {"apiVersion": "kafka.strimzi.io/v1beta2"})
    )
    return world


REVEALED = {
    "db.password": "hush-env-4711",
    "option": "hush-file-4711",
    "extra": "hush-command-4711",
    "provider": "${env:ORDERS_SECRET}",
}


def test_references_to_secrets_are_followed_and_the_secrets_are_in_no_plan_and_no_output(
    referring: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = [apply(referring, "--dry-run", *more).output for more in ([], ["-o", "json"])]
    shown.append(apply(referring, "--yes").output)
    for name in ("a", "b"):
        sent = referring.workers.connectors[name].config
        assert {each: sent[each] for each in REVEALED} == REVEALED
    assert steps(planned(referring)) == []
    monkeypatch.setenv("ORDERS_SECRET", "hush-other-4711")
    (referring.directory / "secret.txt").write_text("hush-next-4711")
    shown += [apply(referring, "--dry-run", *more).output for more in ([], ["-o", "json"])]
    file = str(referring.directory / "d" / "a.json")
    shown.append(referring.run("connectors", "diff", "a", "-f", file).output)
    shown.append(apply(referring, "--yes").output)
    assert referring.workers.connectors["a"].config["option"] == "hush-next-4711"
    shown += [path.read_text() for path in (referring.directory / "journal").rglob("plan.json")]
    shown.append(
        (referring.directory / "journal" / "journal.db").read_bytes().decode(errors="replace")
    )
    assert [text for text in shown if "hush" in text] == []


def test_a_saved_plan_reads_the_secrets_again_and_refuses_others(
    referring: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = referring.directory / "plan.json"
    saved.write_text(apply(referring, "--dry-run", "-o", "json").stdout)
    monkeypatch.setenv("ORDERS_SECRET", "hush-other-4711")
    refused = referring.run("runs", "apply", str(saved), "--yes")
    assert (refused.exit_code, "has another configuration of a" in refused.stderr) == (4, True)
    monkeypatch.setenv("ORDERS_SECRET", "hush-env-4711")
    assert referring.run("runs", "apply", str(saved), "--yes").exit_code == 0
    assert referring.workers.connectors["a"].config["db.password"] == "hush-env-4711"


def test_a_saved_plan_without_secrets_needs_no_file_and_one_with_secrets_says_which(
    world: World,
) -> None:
    give(world, "a")
    saved = world.directory / "plan.json"
    saved.write_text(apply(world, "--dry-run", "-o", "json").stdout)
    give(world, "b", **{"db.password": "hush-4711"})
    other = world.directory / "other.json"
    other.write_text(apply(world, "--dry-run", "-o", "json").stdout)
    take(world, "a", "b")
    assert world.run("runs", "apply", str(saved), "--yes").exit_code == 0
    world.workers.send("DELETE", "/connectors/a")
    refused = world.run("runs", "apply", str(other), "--yes")
    assert (refused.exit_code, "does not hold the secrets of b, and" in refused.stderr) == (
        4,
        True,
    ), refused.stderr


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"env": "NOT_THERE_4711"}, "p: the environment variable NOT_THERE_4711"),
        ({"file": "/not/there"}, "p: /not/there cannot be read"),
        ({"command": "exit 7"}, "p: its command printed no secret: exit status 7"),
        ({"env": "A", "file": "b"}, "p is an object"),
        ({"env": ""}, "p is an object"),
        ({"vault": "a"}, "p is an object"),
    ],
)
def test_a_reference_that_leads_nowhere_is_one_line(
    world: World, value: dict[str, str], words: str
) -> None:
    (world.directory / "d" / "a.json").write_text(
        json.dumps({"name": "a", "connector.class": "x", "p": value})
    )
    refused = apply(world, "--yes", code=2)
    assert words in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1


def test_validation_without_a_cluster_follows_no_reference(referring: World) -> None:
    file = str(referring.directory / "d" / "a.json")
    (referring.directory / "d" / "a.json").write_text(
        Path(file).read_text().replace("echo hush-command-4711", f"touch {referring.directory}/ran")
    )
    assert referring.run("validate", "-f", file, "--offline").exit_code in (0, 1)
    assert not (referring.directory / "ran").exists()
