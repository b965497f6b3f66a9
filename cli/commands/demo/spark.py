"""The end of the demonstration: a source moves from its worker to Spark and back in the middle of
its file; then its topic is transformed.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

from connectctl.cli.commands.demo.output import DemoStage, growing, proved, title, until
from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.core.errors import ConnectctlError

CONNECTOR = "demo-payments"
TOPIC = "payments"
LINES = 1_000
AT_ONCE = 20
AFTERWARDS = 500
NUMBER = r"text:(\d+)"
RECEIPTS = "receipts"
TRANSFORM = f"""\
name: demo-{RECEIPTS}
config:
  connector.class: Map
  topics: {TOPIC}
  topic: {RECEIPTS}
  value: value.str.replace('payment', 'receipt')
spark: {{master: "local[1]"}}
until: {{idle: 1s}}
"""


@dataclass
class OnSpark:
    """A separate connector, with a topic and a file that grows meanwhile."""

    stage: DemoStage
    workers: ConnectCalls

    @property
    def _source(self) -> Path:
        return self.stage.files / "payments.txt"

    @property
    def _job(self) -> Path:
        return self.stage.files / "job.yaml"

    def play(self) -> None:
        """The worker reads, Spark takes over, is killed and resumes, the worker continues, and the
        topic is audited.
        """
        title("Run the same source on Spark: take over in the middle of its file, kill, resume")
        self._source.write_text("".join(f"payment {n}\n" for n in range(LINES)))
        self._job.write_text(
            f'name: {CONNECTOR}\nspark: {{master: "local[1]"}}\nuntil: {{idle: 3s}}\n'
        )
        config = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": str(self._source),
            "topic": TOPIC,
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "exactly.once.support": "required",
        }
        with growing(self._source, "payment", AT_ONCE):
            self.workers.send("POST", "/connectors", {"name": CONNECTOR, "config": config})
            until(lambda: self._position() > 0, "the worker to read the file")
            self._run_on_spark_and_kill()
        self.stage.run_to_end("run", str(self._job), "--take-over", "--yes")
        self._await_end_of_file()
        proved("only records that the killed run had not committed were read again from the file")
        self._resume_on_worker()
        title("Audit the topic")
        first = ["--by", "partition", "--first", "0"]
        self.stage.run("audit", TOPIC, "--sequence", NUMBER, *first, "--connector", CONNECTOR)
        proved(
            f"all {self._count():,} lines of the file are in the topic exactly once and in order, "
            "whether a worker or Spark wrote them"
        )
        self._transform()

    def _transform(self) -> None:
        """KIP-447: records and the committed offsets of their inputs in the same transactions."""
        title("Transform the topic on Spark, and audit the output against its input")
        job = self.stage.files / f"{RECEIPTS}.yaml"
        job.write_text(TRANSFORM)
        self.stage.run_to_end("--group-id", "demo-spark", "run", str(job), "--yes")
        self.stage.run(
            "audit",
            RECEIPTS,
            "--from",
            TOPIC,
            "--group",
            f"connect-demo-{RECEIPTS}",
            "--by",
            NUMBER,
        )
        proved(
            f"each of the {self._count():,} payments has one receipt, and its group has committed "
            "the offsets of all"
        )

    def _run_on_spark_and_kill(self) -> None:
        run = self.stage.process("run", str(self._job), "--take-over", "--yes")
        try:
            # A stop request returns before tasks have stopped; a task's status is removed after its
            # last commit.
            until(
                lambda: self._states() == ["STOPPED"] or run.poll() is not None,
                "the worker to stop the connector",
            )
            before = self._position()
            until(
                lambda: self._position() > before or run.poll() is not None,
                "Spark to continue reading",
            )
            if run.poll() is not None:
                raise ConnectctlError(f"connectctl run ended with exit code {run.returncode}")
        finally:
            run.send_signal(signal.SIGKILL)
            run.wait()
        proved(
            f"a worker's task committed byte {before:,}; Spark continued from there, and was "
            "killed with kill -9"
        )

    def _resume_on_worker(self) -> None:
        self.stage.run("connectors", "resume", CONNECTOR, "--yes", "--wait")
        count = self._count()
        with self._source.open("a") as file:
            file.writelines(f"payment {n}\n" for n in range(count, count + AFTERWARDS))
        self._await_end_of_file()
        proved(
            f"{AFTERWARDS} more lines, and this time the worker continued from where Spark had "
            "stopped"
        )

    def _await_end_of_file(self) -> None:
        size = self._source.stat().st_size
        until(lambda: self._position() == size, "the file to be read to its end")

    def _count(self) -> int:
        return len(self._source.read_text().splitlines())

    def _position(self) -> int:
        """Return the byte position in the source offset that a worker reports."""
        found = self.workers.get(f"/connectors/{CONNECTOR}/offsets")["offsets"]
        return int(found[0]["offset"]["position"]) if found else 0

    def _states(self) -> list[str]:
        """Return the states of the connector and its tasks that the workers report."""
        status = self.workers.get(f"/connectors/{CONNECTOR}/status")
        return [str(part["state"]) for part in (status["connector"], *status["tasks"])]
