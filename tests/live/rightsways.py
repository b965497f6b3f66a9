"""How each command of the table of rights is run in the world of rights: arguments, and what has to
be there before.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

from live.offsetchanges import VERIFIABLE
from live.real import eventually
from live.rightsworld import FRESH, HUNG, OWN, RESTING, SOURCE, TARGET, RightsWorld, Way

YES = ("--yes",)
NEW = VERIFIABLE | {"topic": TARGET, "name": FRESH}


def fixed(*words: str) -> Way:
    """A command that needs nothing before it."""
    return Way(lambda world: words)


def after(prepare: Callable[[RightsWorld], Any], *words: str) -> Way:
    """A command that is run after ``prepare``."""

    def made(world: RightsWorld) -> Sequence[str]:
        prepare(world)
        return words

    return Way(made)


def in_state(name: str, target: str, *words: str) -> Way:
    return after(lambda world: world.state(name, target), *words)


def _gone(world: RightsWorld) -> None:
    world.rest.delete(FRESH)


def _there(world: RightsWorld) -> None:
    if world.rest.call("GET", f"/connectors/{FRESH}").status_code == 404:
        world.rest.create(FRESH, {**NEW}, "STOPPED")


def _created(world: RightsWorld) -> Sequence[str]:
    _gone(world)
    return "connectors", "create", "-f", world.file("new.json", NEW), "--stopped", *YES


def _applied(world: RightsWorld) -> Sequence[str]:
    _there(world)
    _patched(world)
    return "connectors", "apply", "-f", world.file("new.json", NEW | {"state": "STOPPED"}), *YES


def _patched(world: RightsWorld) -> str:
    number = world.fresh_number()
    return world.changed_by_super_user("connectors", "patch", FRESH, f"throughput={number}")


def _patch(world: RightsWorld) -> Sequence[str]:
    _there(world)
    return "connectors", "patch", FRESH, f"throughput={world.fresh_number()}", *YES


def _edit(world: RightsWorld) -> Sequence[str]:
    _there(world)
    world.environment["EDITOR"] = f"sed -i -E s/throughput.*[0-9]+/&{world.fresh_number() % 9 + 1}/"
    return "connectors", "edit", FRESH, *YES


def _diff(world: RightsWorld) -> Sequence[str]:
    _there(world)
    return "connectors", "diff", FRESH, "-f", world.file("new.json", NEW)


def _rollback(world: RightsWorld) -> Sequence[str]:
    _there(world)
    _patched(world)
    revisions = world.as_super_user("connectors", "history", FRESH)["revisions"]
    return "connectors", "rollback", FRESH, "--to", revisions[1]["revision"], *YES


def _undo(world: RightsWorld) -> Sequence[str]:
    _there(world)
    return "runs", "undo", _patched(world), *YES


def _levels(world: RightsWorld) -> str:
    world.as_super_user("loggers", "set", "org.eclipse.jetty", "INFO", "--yes")
    return world.changed_by_super_user("loggers", "set", "org.eclipse.jetty", "DEBUG")


def _loggers_undo(world: RightsWorld) -> Sequence[str]:
    return "loggers", "undo", _levels(world), *YES


def _backup(world: RightsWorld) -> str:
    world.write_offsets()
    return world.file("backup.jsonl", world.run("offsets", "backup", RESTING, context="super").out)


def _restore(world: RightsWorld) -> Sequence[str]:
    file = _backup(world)
    _set_by_super(world)
    return "offsets", "restore", RESTING, "-f", file, *YES


def _offsets(seqno: int) -> Any:
    return {"offsets": [{"partition": {"id": 0}, "offset": {"seqno": seqno}}]}


def _set(world: RightsWorld) -> Sequence[str]:
    return (
        "offsets",
        "set",
        RESTING,
        "-f",
        world.file("offsets.json", _offsets(world.fresh_number())),
        *YES,
    )


def _set_by_super(world: RightsWorld) -> str:
    file = world.file("offsets.json", _offsets(world.fresh_number()))
    return world.changed_by_super_user("offsets", "set", RESTING, "-f", file)


def _offsets_undo(world: RightsWorld) -> Sequence[str]:
    return "offsets", "undo", _set_by_super(world), *YES


def _copy(world: RightsWorld) -> Sequence[str]:
    _set_by_super(world)
    return "offsets", "copy", RESTING, "rights-copied", *YES


def _merge(world: RightsWorld) -> Sequence[str]:
    world.write_own(41, 40)
    return "offsets", "merge", OWN, "--into", "dedicated", "--policy", "global", *YES


def _resume(world: RightsWorld) -> Sequence[str]:
    return "runs", "resume", world.open_run(*_set(world)[:-1], "--dry-run"), *YES


def _apply_plan(world: RightsWorld) -> Sequence[str]:
    plan = world.as_super_user(*_set(world)[:-1], "--dry-run")
    return "runs", "apply", world.file("plan.json", plan), *YES


def _abort(world: RightsWorld) -> Sequence[str]:
    return "transactions", "abort", world.open_id(), *YES


ROLL = (
    "--to",
    "disabled",
    "--pause-after",
    "1",
    "--gate-timeout",
    "60",
    "--by-hand-timeout",
    "60",
    *YES,
)
"""A roll that ends after its first gate, before it has changed a worker."""


def _fresh_roll(world: RightsWorld) -> None:
    """End the roll of an earlier run, if there is one."""
    world.run("upgrade", "abort", "--leave", "--by-hand-timeout", "60", *YES, context="super")


def _roll(world: RightsWorld) -> Sequence[str]:
    _fresh_roll(world)
    return "upgrade", "apply", *ROLL


def _topics(world: RightsWorld) -> Sequence[str]:
    world.state(SOURCE, "RUNNING")
    active = f"/connectors/{SOURCE}/topics"
    # an earlier run has reset them
    eventually(lambda: world.rest.call("GET", active).json()[SOURCE]["topics"])
    return "connectors", "topics", SOURCE, "--reset", *YES


def _paused(world: RightsWorld, *words: str) -> Sequence[str]:
    _fresh_roll(world)
    ran = world.run("upgrade", "apply", *ROLL, context="super")
    assert ran.code in (0, 7), ran
    return "upgrade", *words, *YES


def _hanging(world: RightsWorld, verb: str) -> Sequence[str]:
    world.hang()
    return "transactions", verb, "--topic", HUNG, "--partition", "0", *YES


def _delete(world: RightsWorld) -> Sequence[str]:
    _there(world)
    return "connectors", "delete", FRESH, *YES


WAYS: dict[str, Way] = {
    "cluster show": fixed("cluster", "show"),
    "connectors list": fixed("connectors", "list"),
    "connectors history": fixed("connectors", "history", SOURCE),
    "connectors show": fixed("connectors", "show", SOURCE),
    "connectors stop": in_state(SOURCE, "RUNNING", "connectors", "stop", SOURCE, "--wait", *YES),
    "connectors pause": in_state(SOURCE, "RUNNING", "connectors", "pause", SOURCE, "--wait", *YES),
    "connectors resume": in_state(SOURCE, "PAUSED", "connectors", "resume", SOURCE, "--wait", *YES),
    "connectors restart": in_state(SOURCE, "RUNNING", "connectors", "restart", SOURCE, *YES),
    "connectors cure": in_state(SOURCE, "RUNNING", "connectors", "cure", SOURCE, *YES),
    "connectors create": Way(_created),
    "connectors apply": Way(_applied),
    "connectors edit": Way(_edit),
    "connectors patch": Way(_patch),
    "connectors diff": Way(_diff),
    "connectors topics": Way(_topics),
    "connectors rollback": Way(_rollback),
    "connectors delete": Way(_delete),
    "loggers get": fixed("loggers", "get", "root"),
    "loggers set": Way(
        lambda world: (_levels(world), ("loggers", "set", "org.eclipse.jetty", "INFO", *YES))[1]
    ),
    "loggers undo": Way(_loggers_undo),
    "plugins list": fixed("plugins", "list"),
    "plugins show": fixed("plugins", "show", "FileStreamSource"),
    "validate": Way(lambda world: ("validate", "-f", world.file("new.json", NEW))),
    "tasks check": fixed("tasks", "check"),
    "offsets show": fixed("offsets", "show"),
    "offsets diff": after(lambda world: world.write_own(41, 41), "offsets", "diff", OWN),
    "offsets backup": fixed("offsets", "backup"),
    "offsets merge": Way(_merge),
    "offsets copy": Way(_copy),
    "offsets set": Way(_set),
    "offsets reset": after(_set_by_super, "offsets", "reset", RESTING, *YES),
    "offsets restore": Way(_restore),
    "offsets undo": Way(_offsets_undo),
    "runs resume": Way(_resume),
    "runs apply": Way(_apply_plan),
    "runs undo": Way(_undo),
    "fence": fixed("fence", RESTING, *YES),
    "preflight": fixed("preflight"),
    "doctor": fixed("doctor"),
    "bundle": Way(
        lambda world: ("bundle", "--out", str(world.directory / f"{secrets.token_hex(4)}.zip"))
    ),
    "transactions list": fixed("transactions", "list"),
    "transactions hanging": fixed("transactions", "hanging", "--topic", TARGET),
    "transactions lag": fixed("transactions", "lag", "--topic", TARGET),
    "transactions show": Way(lambda world: ("transactions", "show", world.open_id())),
    "transactions abort": Way(lambda world: _hanging(world, "abort")),
    "transactions commit": Way(lambda world: _hanging(world, "commit")),
    "upgrade apply": Way(_roll),
    "upgrade resume": Way(
        lambda world: _paused(
            world, "resume", "--pause-after", "1", "--gate-timeout", "60", "--by-hand-timeout", "60"
        )
    ),
    "upgrade abort": Way(lambda world: _paused(world, "abort", "--dry-run")),
    "run status": fixed("run", "status"),
    "audit": fixed("audit", TARGET, "--headers-only", "--patience", "5"),
    "upgrade list": fixed("upgrade", "list"),
    "upgrade plan": fixed("upgrade", "plan", "--to", "disabled"),
    "upgrade status": fixed("upgrade", "status"),
}
"""The commands that are proven here, by the name that they have in the table."""
