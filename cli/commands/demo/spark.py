"""The end of the demonstration: a source goes from its worker to Spark and back, in the middle of its file; then its topic
goes through a transform."""

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
    """A connector of its own, with a topic and a file that grows all the while."""

    stage: DemoStage
    workers: ConnectCalls

    @property
    def _source(self) -> Path:
        return self.stage.files / "payments.txt"

    @property
    def _job(self) -> Path:
        return self.stage.files / "job.yaml"

    def play(self) -> None:
        """The worker reads, Spark takes over, is killed and resumes, the worker continues, and the topic is audited."""
        title("Run the same source on Spark: take over in the middle of its file, kill, resume")
        self._source.write_text("".join(f"payment {n}\n" for n in range(LINES)))
        self._job.write_text(f'name: {CONNECTOR}\nspark: {{master: "local[1]"}}\nuntil: {{idle: 3s}}\n')
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
            self._killed_on_spark()
        self.stage.ends_well("run", str(self._job), "--take-over", "--yes")
        self._reads_to_the_end()
        proved("only records that the killed run had not committed were read again from the file")
        self._back_on_the_worker()
        title("Audit the topic")
        first = ["--by", "partition", "--first", "0"]
        self.stage.run("audit", TOPIC, "--sequence", NUMBER, *first, "--connector", CONNECTOR)
        proved(
            f"all {self._count():,} lines of the file are in the topic exactly once and in order, "
            "whether a worker or Spark wrote them"
        )
        self._transformed()

    def _transformed(self) -> None:
        """KIP-447: records and the committed offsets of their inputs in the same transactions."""
        title("Transform the topic on Spark, and audit the output against its input")
        job = self.stage.files / f"{RECEIPTS}.yaml"
        job.write_text(TRANSFORM)
        self.stage.ends_well("--group-id", "demo-spark", "run", str(job), "--yes")
        self.stage.run("audit", RECEIPTS, "--from", TOPIC, "--group", f"connect-demo-{RECEIPTS}", "--by", NUMBER)
        proved(
            f"each of the {self._count():,} payments has one receipt, and its group has committed the offsets of all"
        )

    def _killed_on_spark(self) -> None:
        run = self.stage.process("run", str(self._job), "--take-over", "--yes")
        try:
            # A stop is answered before any task has ended; its status is gone once the last commit is behind it.
            until(lambda: self._states() == ["STOPPED"] or run.poll() is not None, "the worker to stop the connector")
            theirs = self._position()
            until(lambda: self._position() > theirs or run.poll() is not None, "Spark to continue reading")
            if run.poll() is not None:
                raise ConnectctlError(f"connectctl run ended with exit code {run.returncode}")
        finally:
            run.send_signal(signal.SIGKILL)
            run.wait()
        proved(f"a worker's task committed byte {theirs:,}; Spark continued from there, and was killed with kill -9")

    def _back_on_the_worker(self) -> None:
        self.stage.run("connectors", "resume", CONNECTOR, "--yes", "--wait")
        count = self._count()
        with self._source.open("a") as file:
            file.writelines(f"payment {n}\n" for n in range(count, count + AFTERWARDS))
        self._reads_to_the_end()
        proved(f"{AFTERWARDS} more lines, and this time the worker continued from where Spark had stopped")

    def _reads_to_the_end(self) -> None:
        size = self._source.stat().st_size
        until(lambda: self._position() == size, "the file to be read to its end")

    def _count(self) -> int:
        return len(self._source.read_text().splitlines())

    def _position(self) -> int:
        """The byte position in the source offset, as a worker reports it."""
        found = self.workers.get(f"/connectors/{CONNECTOR}/offsets")["offsets"]
        return int(found[0]["offset"]["position"]) if found else 0

    def _states(self) -> list[str]:
        """The state of the connector and those of its tasks, as the workers show them."""
        status = self.workers.get(f"/connectors/{CONNECTOR}/status")
        return [str(part["state"]) for part in (status["connector"], *status["tasks"])]
