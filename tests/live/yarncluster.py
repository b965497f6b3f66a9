"""YARN on this machine: a ResourceManager and a NodeManager of Apache Hadoop as processes on the
loopback address, with all their files in one directory.
"""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import psutil
from connectctl.ops.clients.java import find_java
from connectctl.ops.config import paths
from connectctl.ops.sandbox.jars import ivy
from connectctl.ops.sandbox.jars.ivy import Dependency
from connectctl.ops.sandbox.ports import LOOPBACK, free_ports
from live.real import eventually
from live.sparkclusters import DEADLINE, below, executors, send

HADOOP = "3.4.1"
_MODULES = ("resourcemanager", "nodemanager", "timelineservice")
_YARN = "org.apache.hadoop.yarn.server."
_RESOURCES, _NODE = "resourcemanager.ResourceManager", "nodemanager.NodeManager"
_FIFO = f"{_YARN}resourcemanager.scheduler.fifo.FifoScheduler"
# Guice makes classes at run time, which Java 17 does not let it put into java.lang.
_JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "--add-opens=java.base/java.lang=ALL-UNNAMED")


_LOGGING = """log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%p %c: %m%n
"""


def jars() -> Path:
    """The directory with Hadoop's jars, which are downloaded once."""
    home = paths.cache_directory() / "tests" / f"yarn-{HADOOP}"
    if not (home / "whole").exists():
        modules = [f"hadoop-yarn-server-{name}" for name in _MODULES]
        wanted = [Dependency("org.apache.hadoop", name, HADOOP, "yarn") for name in modules]
        cache = paths.cache_directory() / "ivy"
        ivy.retrieve(wanted, home, cache=cache, java=find_java().path)
        (home / "whole").touch()
    return home / "yarn"


@dataclass
class Yarn:
    """``directory`` has the configuration, logs, and the containers' directories."""

    directory: Path
    ports: list[int]
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def conf(self) -> Path:
        """The directory for ``HADOOP_CONF_DIR``."""
        return self.directory / "conf"

    def write_configuration(self) -> None:
        """Write it for one node with 8 GB, whose containers ask for as little as they need."""
        self.conf.mkdir(parents=True)
        manager = "yarn.resourcemanager."
        services = ("address", "scheduler.address", "resource-tracker.address", "admin.address")
        addresses = [f"{manager}{each}" for each in (*services, "webapp.address")]
        addresses += [f"yarn.nodemanager.{each}" for each in ("address", "localizer.address")]
        addresses += ["yarn.nodemanager.webapp.address"]
        yarn = {
            name: f"{LOOPBACK}:{port}" for name, port in zip(addresses, self.ports, strict=True)
        }
        yarn |= {
            f"{manager}hostname": LOOPBACK,
            f"{manager}scheduler.class": _FIFO,
            "yarn.scheduler.minimum-allocation-mb": "64",
            "yarn.nodemanager.hostname": LOOPBACK,
            "yarn.nodemanager.resource.memory-mb": "8192",
            "yarn.nodemanager.resource.cpu-vcores": "8",
            "yarn.nodemanager.local-dirs": str(self.directory / "local"),
            "yarn.nodemanager.log-dirs": str(self.directory / "containers"),
            "yarn.nodemanager.delete.debug-delay-sec": "600",  # logs of containers that failed
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.pmem-check-enabled": "false",
            # a full disk of the machine is no reason to run no container
            "yarn.nodemanager.disk-health-checker.enable": "false",
        }
        core = {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(self.directory / "tmp")}
        _write_site(self.conf / "yarn-site.xml", yarn)
        _write_site(self.conf / "core-site.xml", core)
        (self.conf / "log4j.properties").write_text(_LOGGING)

    def start(self, name: str) -> None:
        """Start one of Hadoop's daemons."""
        java = Path(find_java().path)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        env |= {"JAVA_HOME": str(java.resolve().parent.parent), "HADOOP_CONF_DIR": str(self.conf)}
        command = [str(java), *_JAVA, f"-Dhadoop.log.dir={self.directory}"]
        command += ["-cp", f"{self.conf}:{jars()}/*", f"{_YARN}{name}"]
        with (self.directory / f"{name}.log").open("wb") as log:
            self.started.append(
                subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
            )

    def has_node(self) -> bool:
        """Return whether the ResourceManager has an active NodeManager."""
        for process in self.started:
            assert process.poll() is None, self.logs()
        with suppress(OSError, ValueError, KeyError):
            url = f"http://{LOOPBACK}:{self.ports[4]}/ws/v1/cluster/metrics"
            with urllib.request.urlopen(url, timeout=30) as answer:
                return bool(json.load(answer)["clusterMetrics"]["activeNodes"] == 1)
        return False

    def spark_conf(self) -> dict[str, Any]:
        """Return Spark's settings: two executors, its jars where they are, nothing but loopback."""
        import pyspark

        local = {"SPARK_LOCAL_IP": LOOPBACK, "JAVA_HOME": os.environ.get("JAVA_HOME", "")}
        if not local["JAVA_HOME"]:
            local["JAVA_HOME"] = str(Path(find_java().path).resolve().parent.parent)
        return {
            "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
            "spark.yarn.stagingDir": (self.directory / "staging").as_uri(),
            "spark.executor.instances": "2",
            "spark.executor.memory": "512m",
            "spark.yarn.am.memory": "512m",
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            **{f"spark.yarn.appMasterEnv.{name}": value for name, value in local.items()},
            **{f"spark.executorEnv.{name}": value for name, value in local.items()},
        }

    def executors(self) -> list[psutil.Process]:
        """The executors' JVMs, which are below the NodeManager."""
        return executors(*self.started)

    def logs(self) -> str:
        """What the daemons have written."""
        files = [self.directory / f"{name}.log" for name in (_RESOURCES, _NODE)]
        return "".join(file.read_text(errors="replace") for file in files if file.exists())

    def close(self) -> None:
        """End the containers, and then the daemons."""
        send(below(self.started))
        for process in reversed(self.started):
            process.kill()
            process.wait()


@contextmanager
def yarn(directory: Path) -> Iterator[Yarn]:
    """A ResourceManager with one active NodeManager."""
    cluster = Yarn(directory, free_ports(8))
    cluster.write_configuration()
    try:
        for name in (_RESOURCES, _NODE):
            cluster.start(name)
        eventually(cluster.has_node, DEADLINE)
        yield cluster
    finally:
        cluster.close()


def _write_site(file: Path, values: Mapping[str, str]) -> None:
    members = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in values.items()
    )
    file.write_text(f"<configuration>{members}</configuration>")
