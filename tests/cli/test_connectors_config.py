"""Configurations of connectors are created, changed, deleted and brought back, and secrets are in
nobody's sight.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from connectctl.ops.config import masking
from connectctl.ops.connect import target_state_wait
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.core.journal import Journal
from fakes.changingworld import Killed, World
from fakes.offsetworld import World as OffsetWorld
from typer.testing import Result

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
SECRET = "hush-hush-4711"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(target_state_wait, "STEADY", 0.0)
    monkeypatch.setattr("connectctl.ops.operations.connectors.steps.QUICK_POLL", 0.001)
    monkeypatch.setattr("connectctl.ops.operations.connectors.steps.POLL", 0.001)
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    return World(tmp_path)


def config(world: World, name: str) -> dict[str, str] | None:
    found = world.workers.connectors.get(name)
    return None if found is None else {k: v for k, v in found.config.items() if k != "name"}


def given(world: World, name: str = "orders", **more: str) -> str:
    path = world.directory / "given.json"
    path.write_text(json.dumps({"name": name, "connector.class": "x.y.Source", **more}))
    return str(path)


def change(world: World, verb: str, *args: str, code: int = 0) -> Result:
    result = world.run("connectors", verb, *args, "--yes")
    assert result.exit_code == code, result.output
    return result


def undo(world: World, number: int = 0, code: int = 0) -> Result:
    result = world.run("runs", "undo", world.runs()[number]["id"], "--yes")
    assert result.exit_code == code, result.output
    return result


def test_secrets_are_in_no_plan_and_no_output_and_reach_the_workers(world: World) -> None:
    file = given(world, **{"db.password": SECRET})
    shown = [
        world.run("connectors", "apply", "-f", file, "--dry-run", *o).output
        for o in ([], ["-o", "json"])
    ]
    shown += [
        change(world, "apply", "-f", file).output,
        world.run("connectors", "diff", "orders", "-f", file).output,
    ]
    shown += [
        change(world, "patch", "orders", f"db.password=another-{SECRET}").output,
        undo(world).output,
    ]
    shown += [change(world, "delete", "orders").output, undo(world).output]
    assert config(world, "orders") == {"connector.class": "x.y.Source", "db.password": SECRET}
    shown += [path.read_text() for path in (world.directory / "journal").rglob("plan.json")]
    shown.append((world.directory / "journal" / "journal.db").read_bytes().decode(errors="replace"))
    assert [text for text in shown if SECRET in text] == []


def test_what_is_kept_for_the_way_back_is_for_its_owner_only(world: World) -> None:
    change(world, "apply", "-f", given(world, **{"db.password": SECRET}))
    kept = [
        path for path in (world.directory / "journal").rglob("kept/*") if SECRET in path.read_text()
    ]
    assert [path.stat().st_mode & 0o077 for path in kept] == [0]


def test_a_property_that_the_file_does_not_have_is_removed_and_the_rest_is_one_request(
    world: World,
) -> None:
    change(world, "patch", "orders", "a=1", "b=2")
    assert "remove b (was 2)" in change(world, "apply", "-f", given(world, a="1")).output
    assert config(world, "orders") == {"connector.class": "x.y.Source", "a": "1"}
    assert world.workers.sent == ["PATCH /connectors/orders/config"] * 2


def test_workers_before_3_8_get_the_whole_configuration(world: World) -> None:
    def send(method: str, *args: Any, real: Any = world.workers.send, **more: Any) -> Any:
        if method == "PATCH":
            raise ConnectctlError("The worker answers 405", code="unsupported")
        return real(method, *args, **more)

    world.workers.send = send  # type: ignore[method-assign]
    change(world, "patch", "orders", "a=1")
    assert config(world, "orders") == {"connector.class": "x.y.Source", "a": "1"}
    assert world.workers.sent == ["PUT /connectors/orders/config"]


def test_a_saved_plan_reads_its_secrets_from_its_file_and_refuses_another(world: World) -> None:
    file = given(world, **{"db.password": SECRET})
    plan = world.directory / "plan.json"
    plan.write_text(world.run("connectors", "apply", "-f", file, "--dry-run", "-o", "json").stdout)
    given(world, **{"db.password": "another-one"})
    refused = world.run("runs", "apply", str(plan), "--yes")
    assert (refused.exit_code, "has another configuration of orders" in refused.stderr) == (
        4,
        True,
    ), refused.output
    given(world, **{"db.password": SECRET})
    world.workers.connectors["orders"].config["x"] = "1"
    refused = world.run("runs", "apply", str(plan), "--yes")
    assert (refused.exit_code, "orders was changed" in refused.stderr) == (4, True), refused.output
    del world.workers.connectors["orders"].config["x"]
    assert world.run("runs", "apply", str(plan), "--yes").exit_code == 0
    assert (config(world, "orders") or {})["db.password"] == SECRET


def test_a_connector_that_was_changed_meanwhile_is_left_as_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def confirm(*args: Any, **more: Any) -> None:
        world.workers.connectors["orders"].config["x"] = "somebody's"

    monkeypatch.setattr("connectctl.cli.apply.confirm", confirm)
    refused = change(world, "patch", "orders", "a=1", code=4)
    assert "orders was changed since the plan was made" in refused.output
    assert world.workers.sent == []


def test_undo_refuses_what_was_changed_since_and_undoes_nothing_of_it(world: World) -> None:
    change(world, "patch", "*s", "a=1")
    change(world, "patch", "orders", "b=2")
    assert "orders was changed since" in undo(world, 1, code=4).stderr
    undo(world)
    undo(world, 2)
    assert config(world, "orders") == config(world, "users") == {"connector.class": "x.y.Source"}
    assert {run["operation"]: run["state"] for run in world.runs()} == {
        "connectors undo": "done",
        "connectors patch": "undone",
    }


def saved_undo(world: World) -> Path:
    """The plan of undoing the newest run, in a file."""
    path = world.directory / "undo.json"
    planned = world.run("runs", "undo", world.runs()[0]["id"], "--dry-run", "-o", "json")
    jsonschema.validate(json.loads(planned.stdout), json.loads((SCHEMAS / "plan.json").read_text()))
    path.write_text(planned.stdout)
    return path


def test_a_saved_plan_of_an_undo_ends_the_run_that_it_undoes(world: World) -> None:
    change(world, "patch", "orders", "x=1")
    plan = saved_undo(world)
    applied = world.run("runs", "apply", str(plan), "--yes")
    assert (applied.exit_code, config(world, "orders")) == (0, {"connector.class": "x.y.Source"}), (
        applied.output
    )
    assert [run["state"] for run in world.runs()] == ["done", "undone"]
    assert "is undone already" in undo(world, 1, code=4).stderr


def test_a_saved_plan_of_an_undo_with_nothing_left_to_do_ends_the_run_too(world: World) -> None:
    change(world, "patch", "orders", "x=1")
    world.workers.connectors["orders"].config.pop("x")
    applied = world.run("runs", "apply", str(saved_undo(world)), "--yes")
    assert applied.exit_code == 0, applied.output
    assert [run["state"] for run in world.runs()] == ["undone"]


@pytest.mark.parametrize("point", [2, 4, 6, 8])
def test_an_undo_that_was_killed_and_resumed_ends_the_run_that_it_undoes(
    world: World, point: int
) -> None:
    change(world, "patch", "orders", "x=1")
    undone = world.runs()[0]["id"]
    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        for name in ("mark", "end"):
            patch.setattr(Journal, name, world.counted(getattr(Journal, name)))
        world.left = point
        world.run("runs", "undo", undone, "--yes")
    world.left = -1
    world.new_session()
    resumed = world.run("runs", "resume", world.runs()[0]["id"], "--yes")
    assert resumed.exit_code == 0, resumed.output
    assert [run["state"] for run in world.runs()] == ["done", "undone"]


def test_undo_of_what_a_killed_run_did_is_the_way_back_of_that_part(world: World) -> None:
    change(world, "patch", "orders", "a=1")
    change(world, "patch", "*s", "a=1")
    undo(world)
    assert config(world, "orders") == {"connector.class": "x.y.Source", "a": "1"}
    assert config(world, "users") == {"connector.class": "x.y.Source"}


def test_initial_offsets_are_set_while_it_is_stopped_and_it_runs_then(world: World) -> None:
    offsets = world.directory / "o.json"
    offsets.write_text('{"offsets": [{"partition": {"t": "a"}, "offset": {"n": 5}}]}')
    change(world, "create", "-f", given(world, "new"), "--offsets", str(offsets), "--wait")
    assert world.workers.sent == [
        "POST /connectors",
        "PATCH /connectors/new/offsets",
        "PUT /connectors/new/resume",
    ]
    assert world.workers.offsets["new"] == {'{"t": "a"}': {"n": 5}}
    undo(world)
    assert ("new" in world.workers.connectors, world.workers.offsets["new"]) == (False, {})


def test_offsets_that_were_deleted_with_it_come_back_with_it(world: World) -> None:
    world.workers.offsets["orders"] = {'{"t": "a"}': {"n": 5}}
    change(world, "delete", "orders", "--with-offsets", "--wait")
    assert world.workers.offsets["orders"] == {}
    undo(world)
    assert world.workers.offsets["orders"] == {'{"t": "a"}': {"n": 5}}
    assert world.workers.connectors["orders"].next[-1][0] == "RUNNING"


@pytest.mark.parametrize("points", range(4, 40, 3))
def test_a_deletion_that_was_killed_anywhere_is_taken_back(
    points: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.workers.offsets["orders"] = {'{"t": "a"}': {"n": 5}}
    wanted = {name: config(world, name) for name in world.workers.connectors}
    world.left = points
    with pytest.MonkeyPatch.context() as counted, suppress(Killed):
        counted.setattr(Journal, "mark", world.counted(Journal.mark))
        world.run("connectors", "delete", "orders", "--with-offsets", "--yes")
    world.left = -1
    world.new_session()
    undone = world.run("runs", "undo", world.runs()[0]["id"], "--yes")
    assert undone.exit_code == 0, undone.output
    assert {name: config(world, name) for name in world.workers.connectors} == wanted
    assert world.workers.offsets["orders"] == {'{"t": "a"}': {"n": 5}}
    (health,) = [
        each
        for each in json.loads(world.run("connectors", "list", "-o", "json").stdout)["connectors"]
        if each["name"] == "orders"
    ]
    fake = world.workers.connectors["orders"]
    assert (fake.next[-1][0] if fake.next else health["state"]) == "RUNNING"


def test_a_connector_that_was_stopped_is_created_stopped_again(world: World) -> None:
    change(world, "delete", "off")
    undo(world)
    assert world.workers.connectors["off"].own == "STOPPED"


def test_delete_says_what_stays(world: World) -> None:
    world.workers.offsets["orders"] = {'{"t": "a"}': {"n": 5}}
    said = change(world, "delete", "orders").output
    assert (
        "delete orders; what remains: its offsets of 1 source partition, its topics (which ones "
        "is unknown)" in said
    )


def test_workers_that_do_not_answer_are_no_proof_that_a_connector_is_not_there(
    world: World,
) -> None:
    world.workers.errors["/connectors/orders/config"] = Unreachable("No worker answers")
    assert "No worker answers" in change(world, "apply", "-f", given(world, a="1"), code=5).output
    assert world.workers.sent == []


def test_what_a_worker_does_not_accept_is_not_begun(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = world.workers.send

    def send(method: str, path: str, *args: Any, **more: Any) -> Any:
        if path.endswith("/config/validate"):
            return {
                "configs": [
                    {"value": {"name": "tasks.max", "errors": ["Value must be at least 1"]}}
                ]
            }
        return real(method, path, *args, **more)

    world.workers.send = send  # type: ignore[method-assign]
    refused = change(world, "patch", "orders", "tasks.max=0", code=2)
    assert "orders: CONFIG030 tasks.max: Value must be at least 1" in refused.output
    assert (world.workers.sent, world.runs()) == ([], [])


def test_a_masked_secret_in_the_editor_stays_what_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(world, "patch", "orders", f"db.password={SECRET}", "a=1")
    monkeypatch.setenv("EDITOR", """sed -i 's/"a": "1"/"a": "2"/;/4711/d'""")
    change(world, "edit", "orders")
    assert config(world, "orders") == {
        "connector.class": "x.y.Source",
        "db.password": SECRET,
        "a": "2",
    }


def test_what_was_written_in_the_editor_is_kept_where_it_cannot_be_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "sed -i s/x.y.Source//")
    refused = change(world, "edit", "orders", code=2)
    path = Path(refused.stderr.strip().rpartition("Your edit is saved in ")[2].rstrip("."))
    assert "orders" in path.read_text()
    assert path.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("patch", "orders", "tasks.max"), 2, "neither name=value nor name-"),
        (("patch", "nobody-*", "a=1"), 2, "No connector matches nobody-*"),
        (("patch", "orders", "name=other"), 2, "cannot be renamed"),
        (("delete", "nobody"), 2, "Connector not found: nobody"),
        (("edit", "*"), 2, "This needs one connector"),
        (("restart", "orders", "--task", "7"), 2, "Task not found: 7 of orders"),
        (
            ("create", "-f", "{directory}/all/orders.properties"),
            4,
            "Connector already exists: orders",
        ),
        (
            ("create", "-f", "{directory}/all", "--offsets", "{directory}/new.json"),
            2,
            "requires exactly one connector",
        ),
        (("apply", "-f", "{directory}/none"), 2, "cannot be read"),
        (
            ("apply", "-f", "{directory}/new.json", "-f", "{directory}/new.json"),
            2,
            "new is configured twice",
        ),
    ],
)
def test_bad_input_is_one_line(world: World, args: tuple[str, ...], code: int, words: str) -> None:
    refused = change(world, *(arg.format(directory=world.directory) for arg in args), code=code)
    assert words in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    assert world.workers.sent == []


def test_a_diff_keeps_to_its_schema_and_masks_both_sides(world: World) -> None:
    change(world, "patch", "orders", f"db.password={SECRET}", "a=1")
    file = given(world, **{"db.password": "another-secret", "b": "2"})
    result = world.run("connectors", "diff", "orders", "-f", file, "-o", "json", "--exit-code")
    data = json.loads(result.stdout)
    jsonschema.validate(data, json.loads((SCHEMAS / "connectors-diff.json").read_text()))
    rows = {each["name"]: (each["now"], each["file"]) for each in data["differences"]}
    hidden = (masking.BY_NAME, f"{masking.BY_NAME} (another value)")
    assert rows == {"a": ("1", None), "b": (None, "2"), "db.password": hidden}
    assert result.exit_code == 3


def test_a_glob_means_every_connector_that_matches(world: World) -> None:
    assert "done       stop users" in change(world, "stop", "[ou]*s").output
    assert world.run("connectors", "show", "ord*").output.splitlines()[0].split() == [
        "CONNECTOR",
        "orders",
    ]


def test_older_workers_do_not_create_in_a_state(world: World) -> None:
    world.workers.version = "3.6.1"
    refused = change(world, "create", "-f", given(world, "new"), "--stopped", code=4)
    assert "requires 3.7 (KIP-980)" in refused.stderr


def test_offsets_of_older_workers_are_in_the_topic_before_the_connector_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    world = OffsetWorld(tmp_path / "journal")
    world.workers.version = "3.6.1"
    (tmp_path / "new.json").write_text('{"name": "new", "connector.class": "x.y.Source"}')
    (tmp_path / "o.json").write_text('[{"partition": {"table": "a"}, "offset": {"lsn": 9}}]')
    args = (
        "create",
        "-f",
        str(tmp_path / "new.json"),
        "--offsets",
        str(tmp_path / "o.json"),
        "--yes",
    )
    result = world.run("connectors", *args)
    assert result.exit_code == 0, result.output
    assert [line.split()[1] for line in result.stdout.splitlines()] == [
        "back",
        "set",
        "create",
        "it",
    ]
    shown = json.loads(world.run("offsets", "show", "new", "-o", "json").stdout)
    assert [each["effective"] for each in shown["connectors"][0]["offsets"]] == [{"lsn": 9}]
    assert "new" in world.workers.connectors
