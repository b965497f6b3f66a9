"""Every example in the help of every command runs on a real cluster, changes as far as their
plan.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from connectctl.ops.config import paths
from fakes.runner import commands
from helpexamples import logical_lines, parts_of
from live.real import (
    FILE_SOURCE,
    Ran,
    Workers,
    connectctl,
    connector,
    create_topic,
    eventually,
    forget_deleted_connectors,
    workers,
)
from nextsteps import command_of, global_options

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
FILE_SINK = FILE_SOURCE.replace("Source", "Sink")
ELSEWHERE = {
    r"connectctl (sandbox|demo)\b": "docs/commands/sandbox.md, test_demo.py",
    r"connectctl audit ": "docs/commands/audit.md",
    r".*(--watch|--follow)": "does not end by itself",
    r".*--engine spark": "test_engines.py",
    r"connectctl run [a-z]+\.yaml": "docs/commands/run.md",
    r"connectctl (runs|upgrade) resume|connectctl upgrade abort": "test_upgrade_commands.py: a run "
    "has to be unfinished",
    r"connectctl run status .*--remove-members": "test_run_status.py: a sink's run has to be killed",
    r"connectctl connectors create .*--carry-offsets": "test_offsets_of_changes.py: a connector has "
    "to be renamed",
    r"kcat ": "kcat reads the topic; its records are read with -f",
    r"source <\(|.*fish \|": "test_completion.py",
}
"""Lines that are run elsewhere, and where."""
CODES = {
    r"(doctor|preflight|validate|tasks check|transactions (hanging|lag))\b": {0, 1},
    r"transactions (abort|commit)\b": {4},
    r"connectors (apply|diff) .*--exit-code": {3},
    r"fence -f -": {4},
}
"""Exit codes of lines that report findings, changes, that nothing hangs, or that tasks run; else it is 0."""
OF_COMMAND: dict[tuple[str, ...], dict[str, str]] = {
    ("connectors", "create"): {"orders.": "new."},
    ("connectors", "restart"): {" orders ": " lines "},
}
"""Values of one command: a connector that is not there yet, and one that runs."""


@contextmanager
def a_cluster_as_in_the_examples(cluster: Sandbox, directory: Path) -> Iterator[dict[str, str]]:
    """Yield the values that stand for those of the examples."""
    (own,) = yaml.safe_load((paths.sandbox_directory("tests") / "context.yaml").read_text())[
        "contexts"
    ].values()
    own["workers"] = {"driver": "sandbox", "sandbox": "tests"}
    names = ("prod", "standby", "old-cluster", "old", "sandbox-default")
    contexts = {name: deepcopy(own) for name in names}
    (directory / "config.yaml").write_text(
        yaml.safe_dump({"current": "prod", "contexts": contexts})
    )
    configs = {
        "orders": {"file": str(directory / "in"), "topic": "orders", "batch.size": "100"},
        "lines": {"file": str(directory / "in"), "topic": "lines"},
        "my-source": {"file": str(directory / "in"), "topic": "lines"},
        "orders-eu": {"file": "/nowhere", "topic": "orders"},
        "test-a": {"file": "/nowhere", "topic": "orders"},
    }
    configs["orders"]["offsets.storage.topic"] = "orders-offsets"
    (directory / "in").write_text("1\n2\n")
    create_topic(cluster.bootstrap_servers, "orders", 8, policy="delete")
    with ExitStack() as stack:
        for name, config in configs.items():
            state = "STOPPED" if config["file"] == "/nowhere" else "RUNNING"
            whole = {"connector.class": FILE_SOURCE, **config}
            stack.enter_context(connector(cluster, name, whole, state))
        sink = {"connector.class": FILE_SINK, "file": str(directory / "out"), "topics": "orders"}
        stack.enter_context(connector(cluster, "archive", sink))
        yield _values(cluster, directory)
    forget_deleted_connectors(cluster)


def _values(cluster: Sandbox, directory: Path) -> dict[str, str]:
    rest = workers(cluster)
    eventually(lambda: (directory / "out").is_file() and (directory / "out").read_text())
    for name in ("orders", "archive", "my-source"):
        eventually(partial(rest.offsets, name))
    for name in ("orders", "archive"):
        rest.call("PUT", f"/connectors/{name}/stop")
        eventually(partial(_is_stopped, rest, name))
    _write_files(directory)
    made = {
        "loggers undo": ("loggers", "set", "org.apache.kafka.connect.file", "DEBUG"),
        "offsets undo": ("offsets", "set", "orders", "-f", "moved.json"),
        "runs": ("connectors", "patch", "orders", "batch.size=500"),
    }
    runs = {}
    for command, words in made.items():
        assert _ran(*words, "--yes").code == 0
        runs[f"{command} RUN"] = _ran("runs", "list", "-o", "name").out.split()[0]
    history = _ran("connectors", "history", "orders", "-o", "json").json["revisions"]
    return runs | {
        "41": str(history[-1]["revision"]),
        "worker-1:8083": cluster.rest_urls[0].removeprefix("http://"),
        "connect-prod-orders-0": f"{cluster.group_id}-orders-0",
        "connect-prod-old-": f"{cluster.group_id}-orders-",
        "connect-offsets": cluster.topics["offsets"],
        '{"table": "t"}': json.dumps({"filename": str(directory / "in")}),
        '{"table": "public.orders"}': json.dumps({"filename": str(directory / "in")}),
        '{"lsn": 7}': '{"position": 2}',
        '"kafka_topic": "t"': '"kafka_topic": "orders"',
        "connect-transform": "connect-archive",
        "connect-t": "connect-archive",
        "context add prod": "context add another",
        "--task 2": "--task 0",
        "code --wait": "true",
        "page-somebody": "true",
        "~": str(directory),
    }


def _is_stopped(rest: Workers, name: str) -> bool:
    return rest.state(name) == ["STOPPED"]


def _write_files(directory: Path) -> None:
    """Write the files that the examples name."""
    source = {"connector.class": FILE_SOURCE, "file": "/nowhere", "topic": "t"}
    for name in ("orders", "a", "new"):
        (directory / f"{name}.json").write_text(json.dumps({"name": name, "config": source}))
        manifest = yaml.safe_dump({"name": name, "config": source})
        (directory / f"{name}.yaml").write_text(manifest)
    (directory / "b.properties").write_text("\n".join(f"{k}={v}" for k, v in source.items()))
    (directory / "connectors").mkdir()
    (directory / "connectors" / "c.json").write_text(json.dumps({"name": "c", "config": source}))
    (directory / "prod.env").write_text("TASKS=2\n")
    worker = "bootstrap.servers=localhost:9092\ngroup.id=connect\n"
    (directory / "worker.properties").write_text(worker)
    variables = {"CONNECT_BOOTSTRAP_SERVERS": "kafka:9092", "CONNECT_GROUP_ID": "connect"}
    service = {"image": "confluentinc/cp-kafka-connect", "environment": variables}
    compose = yaml.safe_dump({"services": {"connect": service}})
    (directory / "docker-compose.yml").write_text(compose)
    saved = _ran("offsets", "show", "orders", "-o", "json").out
    (directory / "offsets.json").write_text(saved)
    another = json.loads(saved)["connectors"][0]["offsets"][0]["partition"]
    moved = {"offsets": [{"partition": another, "offset": {"position": 2}}]}
    (directory / "moved.json").write_text(json.dumps(moved))
    for file, name in (("dump", "my-source"), ("orders", "orders"), ("backup", "orders")):
        (directory / f"{file}.jsonl").write_text(_ran("offsets", "backup", name).out)
    _ran("upgrade", "plan", "--out", "plan.json")
    _ran("bundle", "--out", "bundle.zip")


def _ran(*args: str) -> Ran:
    ran = connectctl(*args)
    assert ran.code == 0, (args, ran.err)
    return ran


def as_plan(words: list[str]) -> list[str]:
    """Return a command, one that changes something only as far as its plan."""
    command, _ = command_of(global_options(words)[1])
    plans = any("--dry-run" in each.opts for each in command.params)
    reads = words[:1] == ["doctor"] or words[:2] in (["run", "status"], ["connectors", "topics"])
    changes = not {"--remove-members", "--reset", "--heal"}.isdisjoint(words)
    if not plans or "--dry-run" in words or (reads and not changes):
        return words
    return [*(word for word in words if word not in ("--yes", "-y")), "--dry-run"]


def _replaced(line: str, values: dict[str, str]) -> str:
    """Return a line with its values, each replaced once: the id of a run may hold another value."""
    longest_first = sorted(values, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda m: values[m.group()], line)


def run(line: str, values: dict[str, str], path: tuple[str, ...]) -> Iterator[str]:
    """Run a line; yield what is wrong with it."""
    of_run = values.get(f"{' '.join(path)} RUN") or values.get(f"{path[0] if path else ''} RUN")
    own = OF_COMMAND.get(path[:2], {}) | ({"20260101-120000-ab12": of_run} if of_run else {})
    line = _replaced(line, own | values)
    text = ""
    for part in parts_of(line):
        words = part.words
        if part.joined == ">":
            Path(words[0]).write_text(text)
        elif words[0] == "connectctl":
            ran = connectctl(*as_plan(words[1:]), stdin=text)
            text, typed = ran.out, " ".join(words[1:])
            expected = next((codes for p, codes in CODES.items() if re.match(p, typed)), {0})
            if ran.code not in expected:
                yield f"{line}\n  exits with {ran.code}: {ran.err}"
        elif shutil.which(words[0]):
            done = subprocess.run(
                words, input=text, capture_output=True, text=True, errors="replace", check=False
            )
            text = done.stdout
            if done.returncode:
                yield f"{line}\n  {words[0]} exits with {done.returncode}: {done.stderr}"


def test_every_example_of_the_help_runs(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.setenv("CONNECTCTL_CONFIG", str(tmp_path / "config.yaml"))
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setenv("KAFKA_PASSWORD", "secret")
    with a_cluster_as_in_the_examples(cluster, tmp_path) as values:
        wrong = [
            problem
            for path in commands()
            for line in logical_lines(path)
            if not any(re.match(pattern, line) for pattern in ELSEWHERE)
            for problem in run(line, values, path)
        ]
    assert not wrong, "\n".join(wrong)
