"""A standalone Spark cluster on this machine, as its own processes: a master and workers on the
loopback address.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from connectctl.ops.clients.java import find_java
from connectctl.ops.sandbox.ports import LOOPBACK, can_bind, free_ports
from live.real import eventually
from sparkjvm import await_archive, java_options

DEADLINE = 900.0
"""Seconds that a process of Spark may take to come up, however slow the machine is."""
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass
class SparkCluster:
    """A master and its workers. ``directory`` has a log for each, and the workers' own
    directories.
    """

    directory: Path
    port: int
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def master(self) -> str:
        """The URL for ``--master``."""
        return f"spark://{LOOPBACK}:{self.port}"

    def start(self, name: str, address: str, *args: str) -> subprocess.Popen[bytes]:
        """One of Spark's daemons on ``address``, with ``name`` for its log."""
        java = Path(find_java().path).resolve().parent.parent
        env = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("PYSPARK_", "SPARK_", "PYTHON"))
        }
        # theirs look for the python3 that has PySpark on PATH
        scripts = Path(sys.executable).parent
        env |= {
            "PATH": os.pathsep.join([str(scripts), os.environ["PATH"]]),
            "JAVA_HOME": str(java),
            "SPARK_LOCAL_IP": address,  # where their web pages listen, too
            "SPARK_LOCAL_DIRS": str(self.directory / "local"),
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"-Dspark.master.rest.enabled=false {java_options()}",
        }
        command = [str(scripts / "spark-class"), *args]
        command[2:2] = ["--host", address, "--webui-port", "0"]
        with (self.directory / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command, env=env, stdout=log, stderr=log, start_new_session=True
            )
        self.started.append(process)
        return process

    def start_worker(self, cores: int = 1) -> str:
        """One worker more: its name. To Spark it is a machine of its own, where that can be had."""
        name = f"worker-{len(self.started)}"
        home = str(self.directory / name)
        memory = f"{max(1024, 256 * cores)}m"  # 512 MB for each executor of two cores
        args = [
            "--port",
            "0",
            "--work-dir",
            home,
            "--cores",
            str(cores),
            "--memory",
            memory,
            self.master,
        ]
        self.start(name, _address(len(self.started) + 1), _WORKER, *args)
        return name

    def lose_workers(self) -> None:
        """Kill all workers, and their executors."""
        gone, self.started[1:] = self.started[1:], []
        for process in below(gone):
            with suppress(psutil.Error):
                process.kill()
        for worker in gone:
            worker.kill()
            worker.wait()

    def log(self, name: str) -> str:
        """What one of them has written."""
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def close(self) -> None:
        """End all of them at once, executors first, so that none outlives its worker."""
        self.lose_workers()
        for master in self.started:
            master.kill()
            master.wait()


@contextmanager
def standalone(directory: Path, workers: Sequence[int] = (1, 1)) -> Iterator[SparkCluster]:
    """A cluster with a worker for each number of cores in ``workers``."""
    directory.mkdir(parents=True, exist_ok=True)
    cluster = SparkCluster(directory, free_ports(1)[0])
    await_archive()  # this cluster, and its drivers and executors, are a dozen JVMs
    try:
        master = cluster.start("master", LOOPBACK, _MASTER, "--port", str(cluster.port))
        eventually(lambda: master.poll() is not None or not can_bind(cluster.port), DEADLINE)
        assert master.poll() is None, cluster.log("master")
        names = [cluster.start_worker(cores) for cores in workers]
        eventually(
            lambda: all("Successfully registered with master" in cluster.log(n) for n in names),
            DEADLINE,
        )
        yield cluster
    finally:
        cluster.close()


def _address(number: int) -> str:
    """A loopback address of its own; the one that there always is, where the machine has no
    other.
    """
    address = f"127.0.0.{number}"
    try:
        socket.create_server((address, 0)).close()
    except OSError:
        return LOOPBACK
    return address


def below(started: Sequence[Any]) -> list[psutil.Process]:
    """Every process below those that were started."""
    found: list[psutil.Process] = []
    for each in started:
        with suppress(psutil.Error):
            found += psutil.Process(each.pid).children(recursive=True)
    return found


def executors(*started: Any) -> list[psutil.Process]:
    """The executors' JVMs below processes: below a worker's, or, with local-cluster, below the
    driver's.
    """
    return [
        p
        for p in below(started)
        if EXECUTOR in " ".join(_command(p)) and _command(p)[0].endswith("java")
    ]


def python_workers(executor: psutil.Process) -> list[psutil.Process]:
    """The Python processes that run an executor's Spark tasks: the children of its daemon."""
    daemons = [p for p in below([executor]) if "pyspark.daemon" in " ".join(_command(p))]
    return [p for p in daemons if p.ppid() in {d.pid for d in daemons}]


def send(processes: Sequence[psutil.Process], number: int = signal.SIGKILL) -> None:
    """A signal to all of them; one that is gone by now needs none."""
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline() or [""]
    except psutil.Error:
        return [""]


def history(events: Path) -> dict[str, int]:
    """What Spark's event log says of attempts: failed ones, speculative ones that were started,
    executors lost, stages that were run again. The end of a copy that is killed may come after that
    of the application, and then is in no log.
    """
    told: Counter[str] = Counter()
    for file in events.iterdir():
        for line in file.read_text().splitlines():
            event = json.loads(line)
            kind = event["Event"]
            if kind == "SparkListenerTaskEnd":
                told[event["Task End Reason"]["Reason"]] += 1
            elif kind == "SparkListenerTaskStart":
                told["speculative"] += event["Task Info"]["Speculative"]
            elif kind == "SparkListenerExecutorRemoved":
                told["executors lost"] += 1
            elif kind == "SparkListenerStageSubmitted":
                told["stages run again"] += event["Stage Info"]["Stage Attempt ID"] > 0
    return told


PATIENCE = 600.0
"""Seconds for a whole run, however slow the machine is."""


def python_without(directory: Path, *modules: str) -> str:
    """An interpreter that finds connectctl in no place but a zip, and ``modules`` nowhere."""
    (directory / "sitecustomize.py").write_text(
        "import sys\nfrom importlib.machinery import PathFinder\n"
        f"sys.modules.update(dict.fromkeys({modules!r}))\nclass OnlyInZips:\n    def "
        "find_spec(self, name, path=None, target=None):\n        if name == 'connectctl':\n       "
        "     raise_if_none = PathFinder.find_spec(name, [p for p in sys.path if "
        "p.endswith('.zip')])\n            if raise_if_none is None:\n                raise "
        "ModuleNotFoundError(name)\n            return raise_if_none\nsys.meta_path.insert(0, "
        "OnlyInZips())\nsys.path[:] = [p for p in sys.path if not p.startswith('__editable__')]\n"
    )
    python = directory / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{directory}:$PYTHONPATH" exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    return str(python)
