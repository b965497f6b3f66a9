"""Every command is run once, to its end and with success, on clusters in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.connect import target_state_wait
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.sandbox import cluster
from connectctl.ops.sandbox.layout import SandboxLayout
from fakes.adminworkers import AdminWorkers
from fakes.adminworkers import run as admin
from fakes.changingworld import COMMANDS, Killed
from fakes.clusters import Clusters
from fakes.runner import commands, invoke
from typer.testing import Result

Call = Callable[[Clusters], Result]


def plain(*args: str) -> Call:
    return lambda at: at.plain.run(*args)


def offsets(*args: str) -> Call:
    return lambda at: at.offsets.run("offsets", *args)


def upgrade(*args: str) -> Call:
    return lambda at: at.rolling.run("upgrade", *args)


def changed(operation: str) -> Call:
    return lambda at: at.plain.change(operation, "--yes")


def _bundle(at: Clusters) -> Result:
    return at.plain.run("bundle", "--out", str(at.directory / "bundle.zip"))


def _validate(at: Clusters) -> Result:
    return invoke(
        [
            "validate",
            "--offline",
            "-f",
            at.file("a.json", '{"name": "a", "connector.class": "x.Y"}'),
        ]
    )


def _set(at: Clusters) -> Result:
    file = at.file("o.json", '[{"partition": {"table": "a"}, "offset": {"lsn": 9}}]')
    return at.offsets.run("offsets", "set", "plain", "-f", file, "--stop", "--yes")


def _restore(at: Clusters) -> Result:
    out = str(at.directory / "backup.jsonl")
    assert at.offsets.run("offsets", "backup", "--out", out).exit_code == 0
    assert at.offsets.run("offsets", "reset", "plain", "--stop", "--yes").exit_code == 0
    return at.offsets.run("offsets", "restore", "plain", "-f", out, "--stop", "--yes")


def _history(at: Clusters) -> Result:
    assert at.offsets.run("offsets", "reset", "plain", "--stop", "--yes").exit_code == 0
    return at.offsets.run("offsets", "history")


def _undo(at: Clusters) -> Result:
    assert at.offsets.run("offsets", "reset", "plain", "--stop", "--yes").exit_code == 0
    return at.offsets.run("offsets", "undo", at.last_run(), "--stop", "--yes")


def _runs_show(at: Clusters) -> Result:
    at.plain.change("fence", "--yes")
    return at.plain.run("runs", "show", at.last_run())


def _runs_apply(at: Clusters) -> Result:
    return at.plain.run("runs", "apply", at.saved(("connectors", "stop", "orders")), "--yes")


def _runs_resume(at: Clusters) -> Result:
    at.plain.left = 2
    with pytest.raises(Killed):
        at.plain.change("connectors stop", "--yes")
    at.plain.left = -1
    at.plain.new_session()
    return at.plain.run("runs", "resume", at.last_run(), "--yes")


def _runs_undo(at: Clusters) -> Result:
    assert at.plain.change("connectors delete", "--yes").exit_code == 0
    return at.plain.run("runs", "undo", at.last_run(), "--yes")


def _audit(at: Clusters) -> Result:
    at.plain.kafka.records["t"] = []
    return at.plain.run("audit", "t", "--headers-only")


def _run(at: Clusters) -> Result:
    config = "config: {name: f, connector.class: FileStreamSource, file: /in, topic: t}"
    at.plain.kafka.records["t"] = []
    at.plain.session.told["group_id"] = "mine"
    return at.plain.run("run", at.file("job.yaml", config), "--master", "local[1]", "--dry-run")


def _loggers_undo(at: Clusters) -> Result:
    workers = AdminWorkers()
    assert admin(workers, "loggers", "set", "a.b", "DEBUG", "--yes").exit_code == 0
    return admin(workers, "loggers", "undo", at.last_run(), "--yes")


def _context(*args: str) -> Call:
    return lambda at: invoke(
        ["--config", at.file("config.yaml", "contexts: {a: {}}"), "context", *args]
    )


def _sandbox_up(at: Clusters) -> Result:
    def up(spec: Any, on_progress: Any) -> Any:
        return SimpleNamespace(
            spec=spec,
            was_running=False,
            context_path=at.directory / "context.yaml",
            bootstrap_servers="127.0.0.1:9092",
            cluster_id="fake",
            group_id="connect",
            topics={},
            rest_urls=("http://127.0.0.1:8083",),
            missing_plugins=(),
            older_plugins={},
            registry_url=None,
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "up", up)
        return invoke(["sandbox", "up"])


def _sandbox_logs(at: Clusters) -> Result:
    logs = SandboxLayout.of("default").logs
    logs.mkdir(parents=True)
    (logs / "broker.log").write_text("it started\n")
    return invoke(["sandbox", "logs"])


def _demo(at: Clusters) -> Result:
    """As far as it comes without a broker: what was begun is removed."""

    def up(*given: Any) -> Any:
        raise ConnectctlError("There is no Java")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "up", up)
        return invoke(["demo"])


def _paused(at: Clusters) -> None:
    assert (
        at.rolling.run(
            "upgrade", "apply", "--yes", "--gate-checks", "1", "--pause-after", "5"
        ).exit_code
        == 0
    )


def _upgrade_resume(at: Clusters) -> Result:
    _paused(at)
    return at.rolling.run("upgrade", "resume", "--yes", "--gate-checks", "1")


def _upgrade_abort(at: Clusters) -> Result:
    _paused(at)
    return at.rolling.run("upgrade", "abort", "--yes", "--gate-checks", "1")


RUN: dict[str, tuple[Call, str]] = {
    **{name: (changed(name), "fenced" if name == "fence" else "done") for name in COMMANDS},
    "cluster show": (plain("cluster", "show"), "orders"),
    "connectors list": (plain("connectors", "list"), "users"),
    "connectors topics": (lambda at: admin(AdminWorkers(), "connectors", "topics", "orders"), "t"),
    "connectors show": (plain("connectors", "show", "orders"), "orders"),
    "connectors edit": (changed("connectors edit"), "connector.class=x.y.Other (was x.y.Source)"),
    "connectors diff": (
        lambda at: at.plain.run(
            "connectors", "diff", "orders", "-f", str(at.directory / "all" / "orders.properties")
        ),
        "PROPERTY",
    ),
    "connectors history": (plain("connectors", "history", "orders"), "oldest known"),
    "offsets show": (offsets("show"), "moved"),
    "offsets merge": (offsets("merge", "moved", "--into", "dedicated", "--stop", "--yes"), "moved"),
    "offsets copy": (offsets("copy", "moved", "plain", "--stop", "--yes"), "plain"),
    "offsets set": (_set, "plain"),
    "offsets reset": (offsets("reset", "plain", "--stop", "--yes"), "plain"),
    "offsets restore": (_restore, "plain"),
    "offsets diff": (offsets("diff", "moved"), "moved"),
    "offsets backup": (offsets("backup"), "table"),
    "offsets history": (_history, "plain"),
    "offsets undo": (_undo, "plain"),
    "loggers get": (lambda at: admin(AdminWorkers(), "loggers", "get"), "root"),
    "loggers undo": (_loggers_undo, "done"),
    "plugins list": (lambda at: admin(AdminWorkers(), "plugins", "list"), "x.y.Source"),
    "plugins show": (lambda at: admin(AdminWorkers(), "plugins", "show", "Source"), "file"),
    "tasks check": (plain("tasks", "check", "orders"), "orders"),
    "preflight": (plain("preflight"), "TASK003"),
    "doctor": (plain("doctor"), "FAIL001"),
    "bundle": (_bundle, "findings"),
    "validate": (_validate, "a"),
    "transactions list": (plain("transactions", "list"), "app-0"),
    "transactions show": (plain("transactions", "show", "app-0"), "Ongoing"),
    "transactions hanging": (plain("transactions", "hanging"), ""),
    "transactions lag": (plain("transactions", "lag", "--topic", "t"), ""),
    "audit": (_audit, "t"),
    "run job": (_run, "f"),
    "run status": (plain("run", "status"), ""),
    "upgrade list": (upgrade("list"), "enforce"),
    "upgrade plan": (upgrade("plan"), "preparing"),
    "upgrade apply": (upgrade("apply", "--yes", "--gate-checks", "1"), "Done"),
    "upgrade status": (upgrade("status"), "disabled"),
    "upgrade resume": (_upgrade_resume, "Done"),
    "upgrade abort": (_upgrade_abort, "Done"),
    "runs list": (plain("runs", "list"), ""),
    "runs show": (_runs_show, "fence"),
    "runs prune": (plain("runs", "prune", "--keep", "0", "--dry-run"), ""),
    "runs apply": (_runs_apply, "done"),
    "runs undo": (_runs_undo, "create orders"),
    "runs resume": (_runs_resume, "done"),
    "context show": (plain("context", "show"), "bootstrap_servers"),
    "context list": (plain("context", "list"), ""),
    "context use": (_context("use", "a"), ""),
    "context add": (_context("add", "b", "--rest", "http://w:1"), ""),
    "context remove": (_context("remove", "a", "--yes"), ""),
    "sandbox up": (_sandbox_up, "is up"),
    "sandbox logs": (_sandbox_logs, "it started"),
    "demo": (_demo, "cluster"),
    "sandbox status": (plain("sandbox", "status"), ""),
    "sandbox down": (plain("sandbox", "down"), "Sandbox"),
    "completion": (plain("completion", "bash"), "complete"),
    "docs man": (plain("docs", "man"), "OPTIONS"),
}
CODES = {"preflight": 1, "doctor": 1, "audit": 1, "demo": 1}
"""Where a cluster in memory has findings, no records, or nothing to start."""


def test_every_command_is_here() -> None:
    paths = list(commands())
    leaves = {
        path
        for path in paths
        if not [other for other in paths if other[: len(path)] == path != other]
    }
    assert {" ".join(path) for path in leaves} == {name.partition(" --")[0] for name in RUN}


@pytest.mark.parametrize("command", RUN)
def test_it_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_state_wait, "STEADY", 0.0)
    monkeypatch.setattr("connectctl.ops.operations.connectors.steps.QUICK_POLL", 0.001)
    monkeypatch.setattr("connectctl.ops.operations.connectors.steps.POLL", 0.001)
    monkeypatch.setattr("connectctl.ops.operations.fencing.batch_fencer.FIRST_PAUSE", 0.001)
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    call, word = RUN[command]
    result = call(Clusters(tmp_path))
    assert result.exit_code == CODES.get(command, 0), result.output
    assert word in result.stdout
