"""Two hundred records of garbage in the topics of a Connect cluster: every reading command tells
the rest of the truth.
"""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fakes.sandboxes import extra_group
from live.real import FILE_SOURCE, Ran, Workers, connectctl, eventually, write

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox
    from connectctl.ops.sandbox.groups import Group

pytestmark = pytest.mark.live

NO_TASKS: tuple[Any, ...] = (None, "a", "1", [1], True, 1.5, -1, 10**12)
NO_PROPERTIES: tuple[Any, ...] = (None, [], "x", {"a": 1}, {"a": {"b": []}})
NO_STATES: tuple[Any, ...] = (None, 1, "SLEEPING", ["RUNNING"])
GARBAGE: tuple[Any, ...] = (
    *({"tasks": value} for value in NO_TASKS),
    *({"properties": value} for value in NO_PROPERTIES),
    *({"state": value} for value in NO_STATES),
    {"state": "STARTED", "state.v2": 7},
    {"task-count": "2"},
    {"topic": {"name": 1}},
    [[[[]]]],
    "a text",
    0,
    b"\xff\xfe no text",
    b'{"tasks":',
    b"[" * 500,
    b'{"properties":{"a":"\\ud800"}}',
)
READING = (
    ("cluster", "show"),
    ("connectors", "list"),
    ("connectors", "show", "NAME"),
    ("connectors", "history", "NAME"),
    ("offsets", "show", "NAME"),
    ("offsets", "backup", "NAME"),
    ("offsets", "diff"),
    ("offsets", "history", "NAME"),
    ("preflight",),
    ("preflight", "--self"),
    ("tasks", "check"),
    ("fence", "NAME", "--dry-run"),
    ("transactions", "list"),
    ("transactions", "hanging"),
    ("upgrade", "status"),
    ("plugins", "list"),
    ("loggers", "get"),
    ("run", "status"),
)
OF_WORKERS = ("plugins", "loggers")
NAMING = (
    ("cluster", "show"),
    ("connectors", "list"),
    ("offsets", "show", "NAME"),
    ("tasks", "check"),
    ("preflight",),
)
"""Commands that read the config topic, whatever else they do."""


def garbage(name: str, number: int) -> Iterator[tuple[str, Any, Any]]:
    """A role and a record each, the same in each run: of the connector ``name``, of others, and of
    none.
    """
    drawn = random.Random(35)
    keys = {
        "config": [
            "connector-",
            "task-",
            "commit-",
            "target-state-",
            "tasks-fencing-",
            "restart-connector-",
            "other-",
        ],
        "status": ["status-connector-", "status-task-", "status-topic-t:connector-", "status-"],
        "offsets": ['["', "[", "{", ""],
    }
    for n in range(number):
        role = drawn.choice(list(keys))
        prefix = drawn.choice(keys[role])
        tail = drawn.choice(
            [name, f"{name}-0", f"{name}-²", f"other-{n}", f"other-{n}-{'9' * 5000}", "", "-"]
        )
        if role == "config" and (prefix, tail) == ("connector-", name):
            tail = f"{name}-too"  # the configuration itself stays, or it would be another connector
        yield (
            role,
            f"{prefix}{tail}".encode() + drawn.choice([b"", b"", b"\xff"]),
            drawn.choice(GARBAGE),
        )


@pytest.fixture(scope="module")
def group(cluster: Sandbox) -> Iterator[Group]:
    group = extra_group(cluster, f"garbage-{secrets.token_hex(2)}", support="disabled")
    yield group
    if any(node.pid for node in group.workers):
        group.stop_worker(1, kill=True)


def test_every_reading_command_survives_garbage(
    cluster: Sandbox, group: Group, tmp_path: Path
) -> None:
    name, rest = f"good-{secrets.token_hex(2)}", Workers(group.rest_urls[0])
    (tmp_path / "in.txt").write_text("a\nb\n")
    config = {
        "connector.class": FILE_SOURCE,
        "tasks.max": "1",
        "file": str(tmp_path / "in.txt"),
        "topic": name,
    }
    rest.create(name, config)
    eventually(lambda: rest.state(name) == ["RUNNING", "RUNNING"])
    eventually(lambda: rest.offsets(name))
    records = [*garbage(name, 199), ("config", f"commit-{name}", {"tasks": None})]
    for role, topic in group.topics.items():
        write(
            cluster.bootstrap_servers,
            topic,
            *((key, value) for of, key, value in records if of == role),
        )

    def run(*args: str) -> Ran:
        topics = [
            flag for role, topic in group.topics.items() for flag in (f"--{role}-topic", topic)
        ]
        at = [
            "--bootstrap-servers",
            cluster.bootstrap_servers,
            "--group-id",
            group.group_id,
            *topics,
        ]
        return connectctl(*at, *(arg.replace("NAME", name) for arg in args))

    for workers in (True, False):
        if not workers:
            group.stop_worker(1, kill=True)
            eventually(lambda: not run("cluster", "show", "-o", "json").json["workers"])
        told = {args: run(*args) for args in READING if workers or args[0] not in OF_WORKERS}
        print(*(f"{' '.join(args):24} {ran.code}" for args, ran in told.items()), sep="\n")
        # Neither a bug nor a refusal: 1 and 3 are findings.
        assert {
            args: (ran.code, ran.err) for args, ran in told.items() if ran.code not in (0, 1, 3)
        } == {}
        assert {
            args: ran.err
            for args, ran in told.items()
            if args in NAMING and "RECORD001" not in ran.err
        } == {}
        assert name in told["connectors", "list"].out
        assert '{"position"' in told["offsets", "backup", "NAME"].out.replace("\\", "")
        shown = run("connectors", "list", "-o", "json").json["connectors"]
        (own,) = [each for each in shown if each["name"] == name]
        assert len(own["tasks"]) == 1
        found = run("cluster", "show", "-o", "json").json["findings"]
        ignored = {
            finding["subject"]: finding["message"]
            for finding in found
            if finding["id"] == "RECORD001"
        }
        assert any(
            f"'commit-{name}'" in message and "tasks is null" in message
            for message in ignored.values()
        )
        assert all(subject.startswith(f"{group.topics['config']}-0@") for subject in ignored)

    # What was ignored does not matter any more once a valid record has superseded it, while it
    # still lies in the log.
    for key, value in (
        (f"commit-{name}", {"tasks": 1}),
        (f"target-state-{name}", {"state": "STARTED", "state.v2": "STARTED"}),
    ):
        write(cluster.bootstrap_servers, group.topics["config"], (key, value))
    for args in (
        ("cluster", "show", "-o", "json"),
        ("preflight", "-o", "json"),
        ("tasks", "check", "-o", "json"),
    ):
        ran = run(*args)
        assert ran.code != 70, ran.err
        assert f"'commit-{name}'" not in ran.out + ran.err
        assert json.loads(ran.out)
