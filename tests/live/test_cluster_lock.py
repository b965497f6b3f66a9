"""The lock of a cluster on a real broker: one holder, seen by others, freed by a death, and lost by
who was not heard.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.clients.kafka_protocol.cluster_lock import GroupLock
from connectctl.ops.clients.kafka_protocol.coordinator_loaded import described
from connectctl.ops.core.errors import Refused
from live.real import FILE_SOURCE, connectctl, eventually, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
HOLDER = """
import sys
from connectctl.ops.clients.kafka_protocol.cluster_lock import GroupLock
from connectctl.ops.clients.kafka_protocol.coordinator_loaded import described
servers, group, run = sys.argv[1:]
with GroupLock({"bootstrap.servers": servers}, group, timeout=60).held(run) as confirm:
    print("held", flush=True)
    for line in sys.stdin:
        try:
            confirm()
            print("confirmed", flush=True)
        except Exception as e:
            print(e, flush=True)
"""


def lock(sandbox: Sandbox, group: str) -> GroupLock:
    return GroupLock({"bootstrap.servers": sandbox.bootstrap_servers}, group, timeout=60)


class Process:
    """Another process that holds the lock."""

    def __init__(self, sandbox: Sandbox, group: str, run: str):
        command = [sys.executable, "-c", HOLDER, sandbox.bootstrap_servers, group, run]
        self._process: Any = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.says() == "held"

    def says(self) -> str:
        return str(self._process.stdout.readline()).strip()

    def confirms(self) -> str:
        """What it says when it is asked whether it still holds the lock."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self.says()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def leave(self) -> None:
        """End without having been killed: the lock is free at once."""
        self._process.stdin.close()
        assert self._process.wait(900) == 0

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            pipe.close()
        self._process.kill()
        self._process.wait(900)


@contextmanager
def process(sandbox: Sandbox, group: str, run: str) -> Iterator[Process]:
    made = Process(sandbox, group, run)
    try:
        yield made
    finally:
        made.close()


def test_of_those_that_start_at_once_exactly_one_gets_the_lock(cluster: Sandbox) -> None:
    for attempt in range(3):
        names = [f"run-{attempt}-{n}" for n in range(4)]
        start, over = threading.Barrier(len(names)), threading.Barrier(len(names))
        outcomes: dict[str, str | None] = {}

        def take(
            name: str, start: threading.Barrier = start, over: threading.Barrier = over
        ) -> None:
            edge = lock(cluster, "at-once")
            start.wait()
            try:
                with edge.held(name) as confirm:
                    confirm()
                    outcomes[name] = None  # noqa: B023  # joined below
                    over.wait()
            except Refused as e:
                outcomes[name] = str(e)  # noqa: B023
                over.wait()

        threads = [threading.Thread(target=take, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (winner,) = [name for name, refusal in outcomes.items() if refusal is None]
        assert all(f"run {winner} of " in said for said in outcomes.values() if said is not None), (
            outcomes
        )
    assert lock(cluster, "at-once").holder() is None


def test_a_death_frees_the_lock_and_who_was_not_heard_has_lost_it(cluster: Sandbox) -> None:
    with process(cluster, "dies", "run-d") as dies, process(cluster, "sleeps", "run-s") as sleeps:
        assert sleeps.confirms() == "confirmed"
        dies.signal(signal.SIGKILL)
        sleeps.signal(signal.SIGSTOP)
        with (
            pytest.raises(Refused, match=r"run run-d of .*since"),
            lock(cluster, "dies").held("run-e"),
        ):
            pass
        eventually(lambda: lock(cluster, "dies").holder() is None)
        eventually(lambda: lock(cluster, "sleeps").holder() is None)
        with lock(cluster, "sleeps").held("run-t") as confirm:
            sleeps.signal(signal.SIGCONT)
            assert "lock was lost" in sleeps.confirms()
            confirm()


def test_a_killed_run_of_the_same_journal_keeps_nobody_waiting(cluster: Sandbox) -> None:
    with process(cluster, "again", "run-1") as killed:
        with (
            pytest.raises(Refused, match=r"run run-1 of .*since"),
            lock(cluster, "again").held("run-1"),
        ):
            pass
        assert killed.confirms() == "confirmed"
        killed.signal(signal.SIGKILL)
        killed.close()
        with lock(cluster, "again").held("run-1", lambda run: run == "run-1") as confirm:
            confirm()


def test_a_change_from_another_journal_is_refused_while_the_lock_is_held(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name, file = "locked-lines", tmp_path / "in.txt"
    file.write_text("one\n")
    rest = workers(cluster)
    rest.create(
        name, {"connector.class": FILE_SOURCE, "topic": name, "file": str(file), "tasks.max": "1"}
    )
    context = ("--context", f"sandbox-{cluster.spec.name}")
    try:
        eventually(lambda: rest.state(name) == ["RUNNING", "RUNNING"])
        ran = connectctl(
            *context, "connectors", "stop", name, "--wait", "--yes", "--timeout", "120"
        )
        assert ran.code == 0, ran.err
        reset = (*context, "offsets", "reset", name, "--yes")
        with process(cluster, cluster.group_id, "20260101-103100-ab12") as other:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
                ran = connectctl(*reset)
            assert ran.code == 4, ran.err
            assert "its lock is held by run 20260101-103100-ab12 of " in ran.err
            for change in (
                ("connectors", "resume", name),
                ("connectors", "pause", name),
                ("fence", "--transactional-id", name, "--create"),
            ):
                ran = connectctl(*context, *change, "--yes")
                assert (
                    ran.code,
                    "its lock is held by run 20260101-103100-ab12 of " in ran.err,
                ) == (4, True), ran
            assert "since 20" in ran.err
            status = connectctl(*context, "upgrade", "status", "-o", "json").json
            assert status["lock"]["holder"]["run"] == "20260101-103100-ab12"
            assert other.confirms() == "confirmed"
            waited_for(other, *reset)
        eventually(lambda: lock(cluster, cluster.group_id).holder() is None)
    finally:
        rest.delete(name)


def waited_for(holder: Process, *change: str) -> None:
    """A change that waits for the lock of ``holder`` is done when that leaves it."""
    command = [sys.executable, "-m", "connectctl.cli", *change, "--lock-wait", "240"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert any("Waiting up to 240 s." in line for line in process.stderr)
        holder.leave()
        out, err = process.communicate(timeout=900)
        assert process.returncode == 0, out + err


def test_brokers_that_wait_for_more_members_keep_nobody_waiting_and_let_nobody_else_in(
    state_home: Path,
) -> None:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    waits = {"group.initial.rebalance.delay.ms": "20000"}
    broker = up(SandboxSpec(name="delays", workers=0, extra_broker_properties=waits))
    try:
        kafka = Kafka({"bootstrap.servers": broker.bootstrap_servers}, timeout=60)
        for run in ("run-1", "run-2"):  # the first one leaves while it is still waited for
            with lock(broker, "delays").held(run) as confirm:
                group = described(kafka, "connectctl-lock-delays")
                assert (group and group.state) == "PreparingRebalance"
                confirm()
                with (
                    pytest.raises(Refused, match=f"run {run} of .*since"),
                    lock(broker, "delays").held("other"),
                ):
                    pass
                confirm()
            assert lock(broker, "delays").holder() is None
    finally:
        down("delays")
