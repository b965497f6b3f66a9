"""``connectctl demo``: the main functions, on a real cluster that is removed afterwards."""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import tempfile
import time
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from connectctl.cli.commands.demo.output import PATIENCE, DemoStage, growing, proved, title, until
from connectctl.cli.commands.demo.spark import OnSpark
from connectctl.cli.session import Session
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.interrupts import put_in_order

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls
    from connectctl.ops.sandbox.cluster import Sandbox

app = typer.Typer(rich_markup_mode=None, add_completion=False)

LINES = 1_000
MORE = 10
CONNECTOR = "demo-orders"
DEDICATED = "demo-orders-offsets"


@app.command()
def demo() -> None:
    """Demonstrate connectctl on a real Kafka broker and two real Connect workers, started for it
    and removed after it.

    \b
    Examples:
      connectctl demo

    Takes about two minutes, and downloads Kafka's jars the first time. Lines after a $ are commands
    as you would type them; lines after a check mark were verified on the cluster.
    """
    name = f"demo-{secrets.token_hex(3)}"
    with put_in_order("removing the sandbox of the demo"), ExitStack() as stack:
        files = Path(tempfile.mkdtemp(prefix="connectctl-demo-"))
        stack.callback(shutil.rmtree, files, ignore_errors=True)
        stack.callback(_down, name)
        _set_until_closed(stack, "CONNECTCTL_JOURNAL", str(files / "journal"))
        _set_until_closed(
            stack, "CONNECTCTL_TIMEOUT", os.environ.get("CONNECTCTL_TIMEOUT", f"{PATIENCE:.0f}")
        )
        demonstration = Demonstration(DemoStage(_up(name), files))
        demonstration.run_source()
        demonstration.roll_out_exactly_once()
        demonstration.show_offsets()
        demonstration.show_missing_fallback()
        demonstration.repair_offsets()
        demonstration.fence_zombie()
        OnSpark(demonstration.stage, demonstration.workers).play()


def _set_until_closed(stack: ExitStack, name: str, value: str) -> None:
    """Set an environment variable until ``stack`` ends."""
    before = os.environ.get(name)
    os.environ[name] = value
    stack.callback(
        lambda: os.environ.pop(name, None) if before is None else os.environ.update({name: before})
    )


def _up(name: str) -> Sandbox:
    from connectctl.cli.commands.sandbox import shown
    from connectctl.ops.sandbox import cluster

    title("Start a cluster")
    began = time.monotonic()
    with ExitStack() as stack:
        sandbox = cluster.up(
            cluster.SandboxSpec(name=name, workers=2, support="disabled"), shown(stack)
        )
    proved(
        "a broker answers and two workers are one stable group, after "
        f"{time.monotonic() - began:.0f} s"
    )
    return sandbox


def _down(name: str) -> None:
    from connectctl.ops.sandbox import cluster

    title("Remove the cluster")
    cluster.down(name)
    if name in cluster.names():
        raise ConnectctlError(
            f"The sandbox {name} was not removed",
            next_step=f"connectctl sandbox down --name {name}",
        )
    proved("no process and no file of the cluster is left")


@dataclass
class Demonstration:
    """The parts of the demo on a running cluster. ``expected_records``: records that the topic must
    have so far.
    """

    stage: DemoStage
    expected_records: int = 0

    @property
    def sandbox(self) -> Sandbox:
        return self.stage.sandbox

    @property
    def workers(self) -> ConnectCalls:
        return Session().connect(self.sandbox.rest_urls)

    @property
    def source(self) -> Path:
        return self.stage.files / "orders.txt"

    def run_source(self) -> None:
        """A FileStreamSource without exactly-once support reads a file to its end."""
        title("Run a source connector")
        self.source.write_text("".join(f"order {n}\n" for n in range(LINES)))
        config = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": str(self.source),
            "topic": "orders",
        }
        self.workers.send("POST", "/connectors", {"name": CONNECTOR, "config": config})
        size = self.source.stat().st_size
        self._await_end_of_file()
        proved(
            f"{LINES:,} lines are in the topic, and a worker reports the source offset {size:,} "
            "(bytes)"
        )
        self.stage.run("cluster", "show")

    def roll_out_exactly_once(self) -> None:
        """KIP-618's two rolls, worker by worker, while lines are written into the source's file."""
        from connectctl.ops.clients.librdkafka.client import Kafka

        title("Roll out exactly-once support while the source file grows")
        with growing(self.source, "order"):
            self.stage.run("upgrade", "plan")
            self.stage.run("upgrade", "apply", "--yes")
        self._await_end_of_file()
        lines = self.source.read_text().splitlines()
        kafka = Kafka({"bootstrap.servers": self.sandbox.bootstrap_servers}, timeout=PATIENCE)
        topic = kafka.image(["orders"], patience=PATIENCE, superseded=True)["orders"]
        records = [json.loads(record.value or b"") for record in (*topic.latest, *topic.superseded)]
        self.expected_records = len(records)
        if lost := set(lines) - set(records):
            raise ConnectctlError(f"{len(lost)} lines are missing from the topic")
        twice = len(records) - len(lines)
        proved(
            f"{len(lines) - LINES:,} lines were written in the meantime and none is lost; "
            f"{twice or 'none'} are duplicates, which are possible only until every worker is "
            "enabled"
        )
        config = self.workers.get(f"/connectors/{CONNECTOR}/config") | {
            "exactly.once.support": "required"
        }
        self.workers.send("PUT", f"/connectors/{CONNECTOR}/config", config)
        until(self._is_running, "the connector to run with its new configuration")
        self.stage.run("upgrade", "status")
        proved("the workers run a connector with exactly.once.support=required")

    def show_offsets(self) -> None:
        """``offsets show``, which reads the topics, compared with a worker's response."""
        title("Read the source offsets from the topics")
        self.stage.run("offsets", "show", CONNECTOR)
        self._check_agreement("effective")
        proved(
            "GET /connectors/…/offsets of a worker returns the same; offsets show also works "
            "while Connect is down"
        )

    def show_missing_fallback(self) -> None:
        """KIP-618's smooth migration, which no released worker performs, shown before it loses
        anything.
        """
        title("A pitfall: a dedicated offsets topic, without fallback to the global one")
        self.stage.run("connectors", "stop", CONNECTOR, "--yes", "--wait")
        config = self.workers.get(f"/connectors/{CONNECTOR}/config") | {
            "offsets.storage.topic": DEDICATED
        }
        self.workers.send("PUT", f"/connectors/{CONNECTOR}/config", config)
        until(
            lambda: [o["offset"] for o in self._offsets()] == [None],
            "the worker to use the new topic",
        )
        self.stage.run("offsets", "show", CONNECTOR)
        self._check_agreement("workerReads")
        proved(
            "workers now report the offset null: if resumed, the source would read its file a "
            "second time"
        )

    def repair_offsets(self) -> None:
        """The dedicated topic seeded, as a plan with a backup and an undo; then more lines, each of
        them once.
        """
        title("Repair: copy the offsets to the new topic, with a backup and undo")
        self.stage.run("offsets", "merge", CONNECTOR, "--into", "dedicated", "--yes")
        self._check_agreement("effective")
        self.stage.run("connectors", "resume", CONNECTOR, "--yes", "--wait")
        with self.source.open("a") as source:
            source.writelines(f"one more order {n}\n" for n in range(MORE))
        self.expected_records += MORE
        until(lambda: self._records() >= self.expected_records, "the source to read the new lines")
        if self._records() != self.expected_records:
            raise ConnectctlError(
                f"The topic has {self._records()} records, expected {self.expected_records}"
            )
        proved(
            f"{MORE} more lines were written, each exactly once: the topic has "
            f"{self.expected_records:,} records"
        )

    def fence_zombie(self) -> None:
        """A producer with the task's transactional id is fenced in the middle of its
        transaction.
        """
        from connectctl.ops.sandbox.zombie import Zombie

        title("Fence a zombie: an old task whose producer is still open")
        self.stage.run("connectors", "stop", CONNECTOR, "--yes", "--wait")
        zombie = Zombie(
            self.sandbox.bootstrap_servers, f"{self.sandbox.group_id}-{CONNECTOR}-0", "orders"
        )
        self.stage.run("fence", CONNECTOR, "--yes")
        why = zombie.refused()
        if why is None or self._records() != self.expected_records:
            raise ConnectctlError("The fenced zombie committed its transaction")
        proved(
            f"the zombie cannot commit ({why.lower()}); read_committed consumers do not see its "
            "records"
        )

    def _await_end_of_file(self) -> None:
        size = self.source.stat().st_size
        until(
            lambda: [o["offset"] for o in self._offsets()] == [{"position": size}],
            "the source to read its file",
        )

    def _is_running(self) -> bool:
        """Whether the connector and its task are RUNNING on the workers they are assigned to."""
        from connectctl.ops.connect.connector import State
        from connectctl.ops.operations.connectors.observe import from_workers, with_health

        session = Session(context=f"sandbox-{self.sandbox.spec.name}")
        found = with_health(from_workers(self.workers), session.kafka.group(self.sandbox.group_id))
        return all(each.verdict.state is State.RUNNING for each in found)

    def _records(self) -> int:
        """Return the number of committed records in the source's topic."""
        session = Session(context=f"sandbox-{self.sandbox.spec.name}")
        return session.kafka.image(["orders"], patience=PATIENCE)["orders"].records

    def _offsets(self) -> list[dict[str, Any]]:
        return list(self.workers.get(f"/connectors/{CONNECTOR}/offsets")["offsets"])

    def _check_agreement(self, what: str) -> None:
        """Compare ``what`` of ``offsets show`` with the workers' response. Raises
        ``ConnectctlError`` if they differ.
        """
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(io.StringIO()):
            self.stage.connectctl("offsets", "show", CONNECTOR, "-o", "json")
        (connector,) = json.loads(printed.getvalue())["connectors"]
        shown = [(entry["partition"], entry[what]) for entry in connector["offsets"]]
        reported = [(entry["partition"], entry["offset"]) for entry in self._offsets()]
        if shown != reported:
            raise ConnectctlError(
                f"offsets show returned {shown}, but the workers report {reported}"
            )
