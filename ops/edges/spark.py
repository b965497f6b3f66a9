"""Spark, where one process is too small: the session of the context's master, kept as long as the command runs."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.ops.errors import ConnectctlError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS = {
    "spark.app.name": "connectctl",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
# A driver that has its executors in its own process is nobody else's business.
_ALONE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_ENVIRONMENT = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


def installed() -> bool:
    """Whether what ``[spark]`` brings is there, found without importing it."""
    return all(importlib.util.find_spec(name) is not None for name in ("pyspark", "pyarrow", "pandas"))


def open_session(master: str, conf: Mapping[str, Any], log: Path) -> SparkSession:
    """The Spark session of this process on ``master``; what Spark says goes to ``log``.

    Raises ``ConnectctlError`` that says what to install, or where Spark's complaints are.
    """
    require()
    # Executors would else run the python3 on their PATH, which knows nothing of connectctl. A cluster whose nodes have
    # it elsewhere says so with spark.pyspark.python.
    for name in _ENVIRONMENT:
        os.environ[name] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    for name, value in (_OURS | (_ALONE if master.startswith("local") else {}) | dict(conf)).items():
        builder = builder.config(name, str(value).lower() if isinstance(value, bool) else str(value))
    with _stderr_to(log), _failures(f"Spark at {master} gives no session", log):
        found: SparkSession = builder.getOrCreate()
    return found


def require() -> None:
    """Raises ``ConnectctlError`` that says what to install where PySpark or Java is missing."""
    from connectctl.ops.sandbox.java import find_java

    if not installed():
        raise ConnectctlError(
            "--engine spark needs PySpark, which is not installed",
            next_step="Run: pip install 'connectctl[spark]'.",
            code="no-pyspark",
        )

    os.environ.setdefault("JAVA_HOME", str(Path(find_java().path).resolve().parent.parent))


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Let the JVM, which is about to start and inherits it, have ``log`` as its standard error."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.dup2(file, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(file)


@contextmanager
def _failures(what: str, log: Path) -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, OSError) as e:
        raise ConnectctlError(
            what, why=first_line(e), next_step=f"Spark's own words are in {log}.", code="spark"
        ) from e


@contextmanager
def job_failures(doing: str, log: Path) -> Iterator[None]:
    """Turn what a Spark job raises into our error; one of ours that an executor raised keeps its words."""
    with _failures(f"Spark could not {doing}", log):
        yield


def first_line(error: BaseException) -> str:
    """What is worth saying of an error of Spark's, which begins with the traceback of a Python worker."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("connectctl.ops.errors.")]
    if ours:
        return ours[-1].partition(": ")[2]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1].removeprefix(": ")  # Py4J names its own handle first, and only then what Java said
    return lines[0] if lines else type(error).__name__
