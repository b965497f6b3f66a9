"""Turns: a connector that Connect's workers and ``connectctl run`` take over from each other, while
either side is killed.

Every line of a growing file is there once in the end, in its order. What is killed is started
again, as a supervisor or an operator would; that a take-over or a return is refused for a moment is
asked for again. Workers leave a task FAILED whose fencing or transaction met a broker that was
away: an operator restarts it.
"""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import ConnectctlError
from live.nodes import send
from live.oracle import in_order
from live.real import FILE_SOURCE, create_topic
from sparkjvm import java_options

if TYPE_CHECKING:
    from connectctl.ops.sandbox.handle import Sandbox

PATIENCE = 900.0
STRING = "org.apache.kafka.connect.storage.StringConverter"
WORKER_KILLED, RUN_KILLED = "Connect worker kill -9", "run kill -9 in a take-over"
RESTARTED = "FAILED task of the workers restarted"
LINES = 30
"""Lines that are appended for each side to carry over."""
_ENDED = (0, 143, -signal.SIGKILL)
"""143: told to end while it was starting again."""
_NOT_RESUMED = (4, 5, 6)
_LEFT = re.compile(r"was not resumed on its workers\. .*? runs resume (\S+)")
"""Workers that are starting, both of them, list no connector or do not answer: a run that ends then
says how its connector is handed back.
"""


class Turns:
    """The turns of a connector ``name`` between workers of ``cluster`` and runs that come to
    brokers by ``bootstrap``.

    ``program`` is what runs are started with, ``most`` the number of turns.
    """

    def __init__(
        self,
        cluster: Sandbox,
        bootstrap: str,
        name: str,
        seed: int,
        directory: Path,
        program: Sequence[str],
        most: int,
    ):
        self.name, self.rows, self.turns, self.problem = name, list[str](), 0, ""
        """``problem``: why there are no turns any more."""
        self._cluster, self._directory, self._program = cluster, directory, program
        self._most = most
        self._chance = random.Random(seed)
        self._kafka = Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=60)
        self.topic = create_topic(
            cluster.bootstrap_servers, f"{name}-data", 1, "delete", cluster.spec.brokers
        )
        self._file = directory / f"{name}.txt"
        self._file.touch()
        config = {
            "connector.class": FILE_SOURCE,
            "file": str(self._file),
            "topic": self.topic,
            "value.converter": STRING,
        }
        self._config = config
        conf = {"spark.driver.extraJavaOptions": java_options()}
        job = {
            "name": name,
            "config": config,
            "spark": {"master": "local[1]", "conf": conf},
            "until": {"forever": True},
        }
        (directory / f"{name}.yaml").write_text(json.dumps(job))
        self._bootstrap = bootstrap
        self._written = 0
        self._over = threading.Event()
        self._began = time.monotonic()
        self._run: subprocess.Popen[bytes] | None = None

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Turns are taken on a thread, to the last one or the end of the one that is under way."""
        thread = threading.Thread(target=self._go, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join(PATIENCE)
            if self._run is not None:
                self._run.kill()
                self._run.wait()

    def findings(self) -> list[str]:
        """What is wrong with the topic: lines that are not there, there twice, or out of order."""
        if self.problem:
            return [self.problem]
        seen = self._seen()
        wanted = [f"line {n}" for n in range(self._written)]
        if seen == wanted:
            return []
        missing, twice = set(wanted) - set(seen), len(seen) - len(set(seen))
        return [
            f"{self.name}: {len(missing)} missing, {twice} twice of {len(wanted)}, {len(seen)} "
            "lines in all"
        ]

    # ---------------------------------------------------------------------------------------- turns

    def _go(self) -> None:
        try:
            self._create()
            while not self._over.is_set() and self.turns < self._most:
                self._workers_turn()
                self._runs_turn()
                self.turns += 1
            self._workers_turn()
        except Exception as e:  # noqa: BLE001  # the campaign tells of it
            self.problem = f"{type(e).__name__}: {e}"

    def _create(self) -> None:
        def created() -> bool:
            answer = self._rest("PUT", f"/connectors/{self.name}/config", self._config)
            return answer is not None and answer.status_code in (200, 201)

        self._until(created, "the connector is created")

    def _workers_turn(self) -> None:
        """The workers carry lines over, and a worker dies now and then."""
        self._append()
        if self._chance.random() < 0.4:
            self._kill_worker()
        self._until(self._all_seen_by_workers, "workers carry lines over")

    def _runs_turn(self) -> None:
        """A run takes the connector over, carries lines over, and gives it back. Workers and the
        run die now and then.
        """
        self._start_run()
        if self._chance.random() < 0.5:
            time.sleep(self._chance.uniform(1.0, 20.0))
            self._kill_worker()
        if self._chance.random() < 0.3:
            time.sleep(self._chance.uniform(1.0, 20.0))
            self._kill_run()
        self._until(self._taken, "the run has the connector")
        self._append()
        self._until(self._all_seen, "the run carries lines over")
        if self._chance.random() < 0.3:
            self._kill_run(again=False)
        self._end_run()
        self._until(
            lambda: self._connectctl("connectors", "resume", self.name, "--yes"),
            "the workers have it again",
        )

    def _start_run(self) -> None:
        job = str(self._directory / f"{self.name}.yaml")
        flags = [
            "--bootstrap-servers",
            self._bootstrap,
            "--context",
            f"sandbox-{self._cluster.spec.name}",
        ]
        command = [
            sys.executable,
            *self._program,
            *flags,
            "run",
            job,
            "--yes",
            "-o",
            "json",
            "--take-over",
        ]
        with (self._directory / f"{self.name}.log").open("ab") as log:
            self._run = subprocess.Popen(command, stdout=log, stderr=log)

    def _kill_run(self, again: bool = True) -> None:
        assert self._run is not None
        self._tell(RUN_KILLED)
        self._run.kill()
        self._run.wait()
        if again:
            self._start_run()

    def _end_run(self) -> None:
        assert self._run is not None
        self._run.terminate()
        code = self._run.wait(PATIENCE)
        self._run = None
        if code in _NOT_RESUMED and (left := _LEFT.findall(self.log())):
            words = ("runs", "resume", left[-1], "--yes")
            self._until(
                lambda: self._connectctl(*words), "the connector that the run left is handed back"
            )
        else:
            assert code in _ENDED, f"the run ended with exit code {code}\n{self.log()}"

    def log(self) -> str:
        """What runs said last."""
        return (self._directory / f"{self.name}.log").read_text()[-3000:]

    def _kill_worker(self) -> None:
        number = self._chance.randint(1, len(self._cluster.rest_urls))
        self._tell(f"{WORKER_KILLED} {number}")
        send(self._cluster, self._cluster.group.workers[number - 1], signal.SIGKILL)
        threading.Thread(target=self._start_worker, args=(number,), daemon=True).start()

    def _start_worker(self, number: int) -> None:
        self._until(lambda: self._started(number), "the worker is back")

    def _started(self, number: int) -> bool:
        try:
            self._cluster.group.start_worker(number, wait=False)  # brokers are started meanwhile
        except ConnectctlError:
            return False
        return True

    # ---------------------------------------------------------------------------------------- looks

    def _append(self) -> None:
        with self._file.open("a") as file:
            file.writelines(f"line {n}\n" for n in range(self._written, self._written + LINES))
        self._written += LINES

    def _all_seen(self) -> bool:
        self._supervise()
        return len(self._seen()) >= self._written

    def _all_seen_by_workers(self) -> bool:
        answer = self._rest("GET", f"/connectors/{self.name}/status")
        tasks = answer.json()["tasks"] if answer is not None and answer.status_code == 200 else []
        if any(task["state"] == "FAILED" for task in tasks) and self._connectctl(
            "connectors", "restart", self.name, "--only-failed", "--yes"
        ):
            self._tell(RESTARTED)
        return self._all_seen()

    def _taken(self) -> bool:
        """Whether the workers show the connector as stopped, which a run does to it first."""
        self._supervise()
        answer = self._rest("GET", f"/connectors/{self.name}/status")
        return (
            answer is not None
            and answer.status_code == 200
            and answer.json()["connector"]["state"] == "STOPPED"
        )

    def _supervise(self) -> None:
        if self._run is not None and self._run.poll() is not None:
            # Refused for a moment, such as while a run that was killed is still known: a supervisor
            # starts it again.
            self._start_run()

    def _seen(self) -> list[str]:
        image = self._kafka.image([self.topic], patience=60, superseded=True)[self.topic]
        return [(record.value or b"").decode() for record in in_order(image)]

    def _rest(self, method: str, path: str, body: object = None) -> httpx.Response | None:
        """What the first worker that answers says."""
        for url in self._cluster.rest_urls:
            try:
                return httpx.request(method, url + path, json=body, timeout=30)
            except httpx.HTTPError:
                continue
        return None

    def _connectctl(self, *words: str) -> bool:
        where = ["--context", f"sandbox-{self._cluster.spec.name}", "--timeout", "120"]
        command = [sys.executable, "-m", "connectctl.cli", *where, *words]
        with (self._directory / f"{self.name}.log").open("ab") as log:
            return subprocess.run(command, stdout=log, stderr=log, check=False).returncode == 0

    def _until(self, what: Callable[[], bool], named: str) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if what():
                    return
            except ConnectctlError:
                pass  # brokers are on their way
            assert time.monotonic() < end, f"not within {PATIENCE:g} s: {named}\n{self.log()}"
            time.sleep(0.5)

    def _tell(self, what: str) -> None:
        self.rows.append(f"{time.monotonic() - self._began:6.1f} {what}")
