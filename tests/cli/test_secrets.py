"""Two hundred secrets in the places where people have them are in nothing that is printed or
written.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from connectctl.cli import main
from connectctl.cli.main import app
from connectctl.ops.config import masking
from connectctl.ops.core.errors import ConnectctlError
from fakes.kafkareads import FakeKafka, connect_group, records
from fakes.secrets import HARMLESS, SHAPES, Planted, trace_with
from fakes.session import FakeSession
from fakes.workers import FakeConnector, FakeWorkers
from typer.testing import CliRunner, Result

CONNECTORS = [f"c{n}" for n in range(4)]
FORMS = ("table", "wide", "json", "yaml")
TOPICS = {"topics.config": "cfg", "topics.offsets": "off", "topics.status": "sta"}


class Workers(FakeWorkers):
    """Workers whose tasks fail with what their configurations hold, and that tell what a plugin
    defines.
    """

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        if path == "/connector-plugins/x.y.Source/config":
            return [{"name": "pin", "type": "PASSWORD"}, {"name": "topics", "type": "LIST"}]
        return super().get(path, url=url, timeout=timeout)

    def _status(self, name: str) -> dict[str, Any]:
        told = super()._status(name)
        secrets = masking.secrets_of(self.connectors[name].config, frozenset({"pin"}))
        trace = (
            trace_with(secrets)
            + f"\nGET http://me:{self.lost[name]}@h failed, token={self.lost[name]}"
        )
        for part in (told["connector"], *told["tasks"]):
            part["trace"] = trace
        return told

    lost: dict[str, str] = {}  # noqa: RUF012  # by connector: a secret that no configuration has


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "seen_secrets", masking.SeenSecrets())


@pytest.fixture
def planted() -> Planted:
    return Planted()


@pytest.fixture
def session(planted: Planted) -> FakeSession:
    configs = {name: planted.config() | {"connector.class": "x.y.Source"} for name in CONNECTORS}
    written: list[tuple[str, dict[str, Any]]] = []
    for name, config in configs.items():
        written += [
            (f"connector-{name}", {"properties": config}),
            (f"task-{name}-0", {"properties": planted.config()}),
            (f"commit-{name}", {"tasks": 1}),
            (f"tasks-fencing-{name}", {"task-count": 1}),
        ]
    owners = [(name, n) for name in CONNECTORS for n in (-1, 0)]
    kafka = FakeKafka(
        {"cfg": records(*written), "off": [], "sta": []},
        groups={"connect": connect_group("connect", one=owners)},
    )
    workers = Workers(
        {n: FakeConnector(own="FAILED", tasks=["FAILED"], config=c) for n, c in configs.items()}
    )
    workers.lost = {name: planted.secret() for name in CONNECTORS}
    told = {
        "client.sasl.password": planted.secret(),
        "client.ssl.key.pem": planted.secret(),
        "rest_auth.password": planted.secret(),
        "rest_auth.token": planted.secret(),
        "rest": [f"http://me:{planted.secret()}@one:8083"],
        "workers.restart": f"curl -u ops:{planted.secret()} --token {planted.secret()} "
        f"https://deploy/{{worker}}",
        "spark.conf.spark.hadoop.fs.s3a.secret.key": planted.secret(),
    }
    return FakeSession(told=TOPICS | told, reads=kafka, calls=workers)


def run(session: FakeSession, *args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(args), obj=session, input=stdin)


COMMANDS = [
    ("context", "show"),
    ("cluster", "show"),
    ("connectors", "list"),
    *(("connectors", "show", name) for name in CONNECTORS),
    ("connectors", "restart", "c0", "--dry-run"),
    ("connectors", "stop", "c1", "--dry-run"),
    ("offsets", "show"),
    ("tasks", "check"),
    ("runs", "list"),
]


def test_two_hundred_secrets_are_in_nothing_that_is_printed_or_written(
    session: FakeSession,
    planted: Planted,
    tmp_path: Path,
    state_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("connectctl.ops.operations.connectors.steps.QUICK_POLL", 0.01)
    assert len(planted.all) > 200
    assert len(SHAPES) + len(session.told) - len(TOPICS) + 3 >= 30
    for command in COMMANDS:
        for form in FORMS:
            result = run(session, *command, "-o", form)
            assert result.exit_code != main.BUG, result.output
            assert planted.found_in(result.output) == [], (command, form)
    restarted = run(session, "connectors", "restart", "c0", "--yes", "--wait")
    assert restarted.exit_code == 0, restarted.output
    assert planted.found_in(restarted.output) == []
    rest = f"http://me:{planted.secret()}@one:8083"
    page = run(session, "--rest", rest, "cluster", "show", "--html", str(tmp_path / "page.html"))
    assert (page.exit_code, planted.found_in(page.output)) == (0, [])
    assert "******@one:8083" in (tmp_path / "page.html").read_text()
    assert list(planted.in_files([tmp_path])) == []


@pytest.mark.parametrize("form", FORMS)
def test_what_is_no_secret_stays_in_sight(session: FakeSession, form: str) -> None:
    shown = run(session, "connectors", "show", "c0", "-o", form).output
    for name, value in HARMLESS.items():
        assert name in shown
        assert value in shown


@pytest.mark.parametrize("suffix", ["json", "properties"])
@pytest.mark.parametrize("form", [*FORMS, "sarif", "junit", "github"])
def test_a_file_that_is_validated_tells_none(
    planted: Planted, tmp_path: Path, suffix: str, form: str
) -> None:
    config = planted.config() | {
        "connector.class": "x.y.Source",
        "tasks.max": "many",
        "errors.tolerance": "some",
    }
    file = tmp_path / f"c.{suffix}"
    lines = "\n".join(f"{name}={value}".replace("\n", "\\n") for name, value in config.items())
    file.write_text(json.dumps({"name": "c", "config": config}) if suffix == "json" else lines)
    result = CliRunner().invoke(app, ["validate", "--offline", "-f", str(file), "-o", form])
    assert result.exit_code in (0, 1), result.output
    assert planted.found_in(result.output) == []


def test_a_line_that_is_no_property_is_not_quoted(planted: Planted, tmp_path: Path) -> None:
    file = tmp_path / "c.properties"
    file.write_text(f"name=c\nssl.key=-----BEGIN PRIVATE KEY-----\n{planted.secret()}\n")
    result = CliRunner().invoke(app, ["validate", "--offline", "-f", str(file)])
    assert "line 3 is not a property" in result.output
    assert planted.found_in(result.output) == []


def test_the_report_of_a_bug_tells_none(
    session: FakeSession, planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    config = session.calls.connectors["c0"].config
    masking.remember(config, frozenset({"pin"}))

    def broken(*_: Any) -> None:
        raise RuntimeError("; ".join(f"{name}={value}" for name, value in config.items()))

    monkeypatch.setattr("connectctl.ops.operations.connectors.observe.connector_listing", broken)
    result = run(session, "connectors", "list")
    assert result.exit_code == main.BUG
    (report,) = tmp_path.glob("connectctl-bug-*")
    assert "RuntimeError" in report.read_text()
    assert list(planted.in_files([tmp_path])) == []
    assert report.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("form", ["table", "json"])
def test_an_error_of_a_worker_tells_none(session: FakeSession, planted: Planted, form: str) -> None:
    config = session.calls.connectors["c0"].config
    why = "; ".join(f"{name}={value}" for name, value in config.items() if name != "pin")
    session.calls.errors["/connectors"] = ConnectctlError("The worker answers 500", why=why)
    result = run(session, "connectors", "show", "c0", "-o", form)
    assert (result.exit_code, "CLUSTER010" in result.stderr) == (0, form == "table")
    assert planted.found_in(result.output) == []
