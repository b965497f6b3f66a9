"""Changes of source offsets on a real broker, beside what real workers write, read, and fail to
do.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from connectctl.ops.core.journal import Run, RunState
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.operations.offsets import steps as offsets_steps
from fakes.sandboxes import extra_group, kill_broker, start_broker
from live.nodes import send
from live.offsetchanges import (
    SCHEMAS,
    VERIFIABLE,
    GrowingFile,
    changed,
    ctl,
    file_source,
    journal,
    killed_when,
    live,
    read_all,
    records,
)
from live.real import Workers, connectctl, connector, create_topic, eventually, workers, write

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [pytest.mark.live, pytest.mark.drawn(6, matrix="changes of offsets")]
GLOBAL_PARTITIONS = 25
GOES_ROUND = "Error executing user-provided callback"
"""What a worker writes whose producer will never answer."""
ALMOST = 80.0
"""Of the 90 s that workers give a request."""


def key(name: str, partition: Any) -> bytes:
    return json.dumps([name, partition], separators=(",", ":")).encode()


def values(found: dict[tuple[int, bytes], bytes]) -> dict[str, Any]:
    """Offsets by the source partition's first value."""
    return {
        str(next(iter(json.loads(k)[1].values()))): json.loads(v) for (_, k), v in found.items()
    }


@pytest.fixture(scope="module", autouse=True)
def the_workers_own_delete(cluster: Sandbox) -> Iterator[dict[str, Any]]:
    """DELETE …/offsets of a worker, which takes long to fail, while the other tests run.

    The worker is alone in its group: the producer that it failed with goes round and round until
    the worker ends (4.3.1). So that it does not take a processor from the other tests, it is
    suspended until its request is about to time out.
    """
    name, answer = "delete-by-worker", dict[str, Any]()
    group = extra_group(cluster, "deleting", support="enabled")
    own = create_topic(cluster.bootstrap_servers, "delete-by-worker-offsets", 5)
    rest = Workers(group.rest_urls[0])
    rest.create(name, VERIFIABLE | {"offsets.storage.topic": own}, "STOPPED")
    for topic in (group.topics["offsets"], own):
        write(cluster.bootstrap_servers, topic, (key(name, {"id": 0}), {"seqno": 5}))
    eventually(lambda: rest.offsets(name))

    (worker,), answered = group.workers, threading.Event()
    log = cluster.layout.log(worker.name)

    def suspend() -> None:
        eventually(lambda: answered.is_set() or GOES_ROUND in log.read_text())
        if not answered.is_set() and send(cluster, worker, signal.SIGSTOP):
            answered.wait(ALMOST)
            send(cluster, worker, signal.SIGCONT)

    def delete() -> None:
        suspending = threading.Thread(target=suspend)
        suspending.start()
        try:
            found = rest.call("DELETE", f"/connectors/{name}/offsets")
            answer.update(status=found.status_code, text=found.text, left=live(cluster, own, name))
        finally:
            answered.set()
            suspending.join()
            group.stop_worker(1, kill=True)

    thread = threading.Thread(target=delete)
    thread.start()
    answer["thread"] = thread
    yield answer
    thread.join()


# ------------------------------------------------------------------------------------------ merging


@pytest.fixture
def kip(cluster: Sandbox, request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """KIP-618's example in two real topics: a stopped connector and its own topic."""
    name = f"kip-{request.node.callspec.params['into']}"
    own = create_topic(cluster.bootstrap_servers, f"{name}-offsets", 5)
    with connector(cluster, name, VERIFIABLE | {"offsets.storage.topic": own}, "STOPPED"):
        for topic, subreddit, timestamp in (
            (cluster.topics["offsets"], "CatsStandingUp", "2112"),
            (cluster.topics["offsets"], "apachekafka", "4761"),
            (own, "CatsStandingUp", "2169"),
            (own, "grilledcheese", "489"),
        ):
            write(
                cluster.bootstrap_servers,
                topic,
                (key(name, {"subreddit": subreddit}), {"timestamp": timestamp}),
            )
        yield name, own


@pytest.mark.parametrize("into", ["global", "dedicated"])
def test_the_kips_example_is_merged_and_workers_read_what_was_promised(
    cluster: Sandbox, kip: tuple[str, str], into: str
) -> None:
    name, own = kip
    expected = {"CatsStandingUp": "2169", "apachekafka": "4761", "grilledcheese": "489"}
    plan = ctl(cluster, "offsets", "merge", name, "--into", into, "--dry-run", "-o", "json").json
    jsonschema.validate(plan, SCHEMAS["Plan"])
    conflicts = [item["conflict"] for item in plan["preview"] if "conflict" in item]
    assert [(c["global"], c["dedicated"]) for c in conflicts] == [
        ('{"timestamp":"2112"}', '{"timestamp":"2169"}')
    ]
    before = {topic: live(cluster, topic, name) for topic in (own, cluster.topics["offsets"])}
    run = changed(
        cluster, "merge", name, "--into", into, *(["--unset-topic"] if into == "global" else [])
    )
    merged = values(live(cluster, own if into == "dedicated" else cluster.topics["offsets"], name))
    assert merged == {subreddit: {"timestamp": at} for subreddit, at in expected.items()}
    theirs = {
        o["partition"]["subreddit"]: o["offset"]["timestamp"]
        for o in workers(cluster).offsets(name)
    }
    assert theirs == expected
    assert (
        ctl(cluster, "offsets", "merge", name, "--into", into, "--yes").out == "Nothing to do.\n"
        if into == "dedicated"
        else True
    )
    changed(cluster, "undo", run)
    assert {topic: live(cluster, topic, name) for topic in before} == before
    assert journal().get(run).state is RunState.UNDONE


def test_a_file_goes_on_in_its_own_topic_and_back_without_a_line_twice_or_missing(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name, file = "grows", GrowingFile(tmp_path / "lines.txt")
    with file.growing(), connector(cluster, name, file_source(file.path, "grows-lines")) as rest:
        eventually(lambda: rest.offsets(name))
        changed(cluster, "merge", name, "--into", "dedicated", "--topic", "grows-offsets", "--stop")
        assert (
            rest.call("GET", f"/connectors/{name}/config").json()["offsets.storage.topic"]
            == "grows-offsets"
        )
        moved = live(cluster, "grows-offsets", name)
        eventually(lambda: live(cluster, "grows-offsets", name) != moved)
        changed(cluster, "merge", name, "--into", "global", "--unset-topic", "--stop")
        assert "offsets.storage.topic" not in rest.call("GET", f"/connectors/{name}/config").json()
        time.sleep(1)
        lines = file.stop()
        eventually(lambda: len(read_all(cluster, "grows-lines")) >= len(lines))
        assert read_all(cluster, "grows-lines") == lines


# ------------------------------------------------------------------------ beside what workers write

ODD: list[dict[str, Any]] = [
    {"partition": {"id": 0}, "offset": {"seqno": 41}},
    {
        "partition": {"zeta": 1, "table": 'é "\\/ €\U0001f600', "alpha": None},
        "offset": {"b": True, "a": 1.5, "c": None},
    },
    {
        "partition": {f"member-{n}": n for n in range(20)},
        "offset": {"big": (1 << 63) - 1, "small": -(1 << 63)},
    },
    {
        "partition": {"f": 1.0, "g": 1e10, "h": 1e-5},
        "offset": {"lsn": 12345678.9, "x": "\u2028\t\u001f"},
    },
]
OFFSETS = json.dumps({"offsets": ODD})


@pytest.fixture
def three(cluster: Sandbox) -> Iterator[None]:
    """Stopped connectors whose offsets we, the workers, and we through the workers are going to
    write.
    """
    with ExitStack() as stack:
        for name in ("by-us", "by-it", "by-re"):
            stack.enter_context(connector(cluster, name, VERIFIABLE, "STOPPED"))
        yield


def as_one(cluster: Sandbox, name: str) -> dict[bytes, bytes | None]:
    """The records without the connector's name, each on the partition that Java chooses."""
    found = records(cluster, cluster.topics["offsets"], name)
    assert all(partition == java_partition(raw, GLOBAL_PARTITIONS) for partition, raw in found)
    return {raw.replace(name.encode(), b"*", 1): value for (_, raw), value in found.items()}


@pytest.mark.usefixtures("three")
def test_set_and_reset_write_what_workers_write(cluster: Sandbox) -> None:
    rest = workers(cluster)
    answer = rest.call("PATCH", "/connectors/by-it/offsets", json.loads(OFFSETS))
    assert answer.status_code == 200, answer.text
    changed(cluster, "set", "by-us", "-f", "-", stdin=OFFSETS)
    assert as_one(cluster, "by-us") == as_one(cluster, "by-it")
    changed(cluster, "set", "by-re", "-f", "-", "--via", "rest", stdin=OFFSETS)
    assert as_one(cluster, "by-us") == as_one(cluster, "by-it") == as_one(cluster, "by-re")
    assert len(as_one(cluster, "by-us")) == len(ODD)
    assert rest.offsets("by-us")
    assert rest.call("DELETE", "/connectors/by-it/offsets").status_code == 200
    changed(cluster, "reset", "by-us")
    changed(cluster, "reset", "by-re", "--via", "rest")
    assert as_one(cluster, "by-us") == as_one(cluster, "by-it") == as_one(cluster, "by-re")
    assert set(as_one(cluster, "by-us").values()) == {None}


def test_reset_works_where_the_workers_own_delete_does_not(cluster: Sandbox) -> None:
    name = "delete-by-us"
    own = create_topic(cluster.bootstrap_servers, "delete-by-us-offsets", 5)
    with connector(cluster, name, VERIFIABLE | {"offsets.storage.topic": own}, "STOPPED") as rest:
        for topic in (cluster.topics["offsets"], own):
            write(cluster.bootstrap_servers, topic, (key(name, {"id": 0}), {"seqno": 5}))
        refused = ctl(cluster, "offsets", "reset", name, "--via", "rest", "--yes", code=4)
        assert "fail to delete offsets" in refused.err
        changed(cluster, "reset", name)
        assert live(cluster, own, name) == live(cluster, cluster.topics["offsets"], name) == {}
        assert rest.offsets(name) == []


# ------------------------------------------------------------------------------ what is not changed


def test_undo_brings_everything_back_byte_for_byte(cluster: Sandbox) -> None:
    name, topic = "odd-bytes", cluster.topics["offsets"]
    own = create_topic(cluster.bootstrap_servers, "odd-bytes-offsets", 5)
    with connector(cluster, name, VERIFIABLE | {"offsets.storage.topic": own}, "STOPPED"):
        rows = [
            (f'["{name}", {{"t" :"a"}}]', '{"x":  1}'),
            (key(name, {"b": 1, "a": 2}), b"\xff\x00"),
            (key(name, None), "[1]"),
        ]
        write(cluster.bootstrap_servers, topic, *rows)
        write(cluster.bootstrap_servers, topic, (key(name, {"stray": 1}), {"y": 1}), partition=3)
        write(cluster.bootstrap_servers, own, rows[1], (key(name, {"stray": 1}), {"y": 2}))
        before = {at: live(cluster, at, name) for at in (topic, own)}
        first = changed(cluster, "reset", name)
        second = changed(cluster, "set", name, "-f", "-", stdin=OFFSETS)
        changed(cluster, "undo", second)
        assert live(cluster, topic, name) == live(cluster, own, name) == {}
        changed(cluster, "undo", first)
        assert {at: live(cluster, at, name) for at in (topic, own)} == before
        history = ctl(cluster, "offsets", "history", name, "-o", "json").json
        jsonschema.validate(history, SCHEMAS["RunList"])
        assert [run["operation"] for run in history["runs"]] == [
            f"offsets {v}" for v in ("undo", "undo", "set", "reset")
        ]
        shown = ctl(cluster, "runs", "show", first, "-o", "json").json
        jsonschema.validate(shown, SCHEMAS["Run"])
        assert shown["state"] == "undone"


def test_a_backup_can_be_compared_and_restored(cluster: Sandbox, tmp_path: Path) -> None:
    name, topic, path = "saved", cluster.topics["offsets"], tmp_path / "saved.jsonl"
    own = create_topic(cluster.bootstrap_servers, "saved-offsets", 5)
    with connector(cluster, name, VERIFIABLE | {"offsets.storage.topic": own}, "STOPPED"):
        write(
            cluster.bootstrap_servers,
            topic,
            (key(name, {"id": 0}), {"seqno": 1}),
            (key(name, {"id": 1}), {"seqno": 2}),
        )
        write(cluster.bootstrap_servers, own, (key(name, {"id": 0}), {"seqno": 3}))
        ctl(cluster, "offsets", "backup", name, "--out", str(path))
        before = {at: live(cluster, at, name) for at in (topic, own)}
        diff = ("offsets", "diff", name, "--exit-code", "-o", "json")
        assert ctl(cluster, *diff, "-f", str(path)).json["differences"] == []
        assert len(ctl(cluster, *diff, code=3).json["differences"]) == 2
        changed(cluster, "reset", name)
        found = ctl(cluster, *diff, "-f", str(path), code=3).json
        jsonschema.validate(found, SCHEMAS["OffsetsDiff"])
        assert [d["left"] for d in found["differences"]] == [None, None]
        changed(cluster, "restore", name, "-f", str(path))
        assert {at: live(cluster, at, name) for at in (topic, own)} == before


def test_a_running_connector_is_refused_and_so_is_a_second_operator(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name, file = "runs-on", GrowingFile(tmp_path / "lines.txt")
    patch = json.dumps(
        {"offsets": [{"partition": {"filename": "/else"}, "offset": {"position": 1}}]}
    )
    with file.growing(), connector(cluster, name, file_source(file.path, "runs-on-lines")) as rest:
        eventually(lambda: rest.state(name) == ["RUNNING", "RUNNING"])
        refused = ctl(cluster, "offsets", "set", name, "-f", "-", "--yes", code=4, stdin=patch)
        assert "stop it first" in refused.err
        assert rest.state(name) == ["RUNNING", "RUNNING"]
        command = [
            sys.executable,
            "-m",
            "connectctl.cli",
            "--context",
            f"sandbox-{cluster.spec.name}",
        ]
        known = len(journal().runs())
        first = subprocess.Popen(
            [*command, "offsets", "reset", name, "--stop", "--yes"], stdout=subprocess.PIPE
        )
        eventually(lambda: len(journal().runs()) > known and journal().runs()[0].marks)
        second = connectctl(
            "--context", f"sandbox-{cluster.spec.name}", "offsets", "copy", name, "nobody", "--yes"
        )
        out, _ = first.communicate(timeout=900)
        assert first.returncode == 0, out
        assert second.code == 4, second.err
        assert "Another connectctl" in second.err
        assert live(cluster, cluster.topics["offsets"], "nobody") == {}


# -------------------------------------------------------------------------------------- interrupted


def marked(step: int, what: str, run: Run) -> bool:
    return any((mark.step, mark.what) == (step, what) for mark in run.marks)


def test_a_run_that_was_killed_is_resumed_to_the_same_end(cluster: Sandbox, tmp_path: Path) -> None:
    name, file = "killed", GrowingFile(tmp_path / "lines.txt")
    with file.growing(), connector(cluster, name, file_source(file.path, "killed-lines")) as rest:
        eventually(lambda: rest.offsets(name))
        steps = [(0, "begun"), (4, "begun"), (5, "begun")]
        for number, point in enumerate(steps):
            there = (
                "merge",
                name,
                "--into",
                "dedicated",
                "--topic",
                f"killed-offsets-{number}",
                "--stop",
            )
            run = killed_when(cluster, partial(marked, *point), "offsets", *there)
            assert run.state is RunState.OPEN
            ctl(cluster, "runs", "resume", run.id, "--yes")
            assert journal().get(run.id).state is RunState.DONE
            assert (
                rest.call("GET", f"/connectors/{name}/config").json()["offsets.storage.topic"]
                == there[5]
            )
            ctl(cluster, "runs", "resume", run.id, "--yes", code=4)
            changed(cluster, "merge", name, "--into", "global", "--unset-topic", "--stop")
        lines = file.stop()
        eventually(lambda: len(read_all(cluster, "killed-lines")) >= len(lines))
        assert read_all(cluster, "killed-lines") == lines


def test_a_reader_sees_all_of_a_change_or_nothing(cluster: Sandbox) -> None:
    name, count = "all-or-nothing", 5000
    own = create_topic(cluster.bootstrap_servers, "all-or-nothing-offsets", 1)
    entries = [{"partition": {"table": f"t{n}"}, "offset": {"lsn": n}} for n in range(count)]
    seen: set[int] = set()
    done = threading.Event()
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})

    def stable() -> int:
        place = TopicPartition(own, 0)
        level = IsolationLevel.READ_COMMITTED
        return int(
            admin.list_offsets({place: OffsetSpec.latest()}, isolation_level=level)[place]
            .result()
            .offset
        )

    def watch() -> None:
        while not done.is_set():
            seen.add(stable())

    with connector(cluster, name, VERIFIABLE | {"offsets.storage.topic": own}, "STOPPED"):
        thread = threading.Thread(target=watch)
        thread.start()
        try:
            changed(cluster, "set", name, "-f", "-", stdin=json.dumps({"offsets": entries}))
        finally:
            done.set()
            thread.join()
        assert seen | {stable()} == {0, count + 1}  # the records and the marker
        assert len(live(cluster, own, name)) == count


def test_a_broker_that_is_lost_between_backup_and_write_leaves_a_run_to_resume(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    small = up(SandboxSpec(name="lost", workers=1, support="enabled"))
    try:
        with connector(small, "lost", VERIFIABLE, "STOPPED"):
            write(
                small.bootstrap_servers,
                small.topics["offsets"],
                (key("lost", {"id": 0}), {"seqno": 1}),
            )
            real = offsets_steps.Backup.apply

            def apply(self: Any, context: Any) -> str | None:
                said = real(self, context)
                kill_broker(small)
                return said

            monkeypatch.setattr(offsets_steps.Backup, "apply", apply)
            refused = ctl(small, "--timeout", "5", "offsets", "reset", "lost", "--yes", code=7)
            run = journal().runs()[0]
            assert f"runs resume {run.id}" in refused.err
            monkeypatch.undo()
            start_broker(small)
            assert live(small, small.topics["offsets"], "lost") != {}
            eventually(
                lambda: (
                    connectctl("--context", "sandbox-lost", "runs", "resume", run.id, "--yes").code
                    == 0
                )
            )
            assert live(small, small.topics["offsets"], "lost") == {}
    finally:
        down("lost")


# ---------------------------------------------------------------------------------- at the very end


def test_the_workers_own_delete_fails_with_exactly_once_and_a_dedicated_topic(
    cluster: Sandbox, the_workers_own_delete: dict[str, Any]
) -> None:
    """Tied to the version (3.8 to 4.3.1): when this fails, a worker can do it, and ``--via rest``
    may.
    """
    the_workers_own_delete["thread"].join()
    assert str(cluster.spec.version).startswith("4.")
    assert the_workers_own_delete["status"] == 500, the_workers_own_delete
    assert the_workers_own_delete["left"] != {}
