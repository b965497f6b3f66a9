"""Spark, where one process is too small: the session of the context's master, kept as long as the
command runs.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.java import find_java
from connectctl.ops.clients.spark import executors
from connectctl.ops.clients.spark.protection import protected
from connectctl.ops.core.errors import BadInput, ConnectctlError, Unreachable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OURS = {
    "spark.app.name": "connectctl",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # A copy of a task that runs would fence it, and begin where it was.
    "spark.speculation": "false",
}
# A driver whose master is on this machine alone has its executors here, too.
_ALONE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_LOOPBACK = re.compile(r"local.*|spark://(127\.\d+\.\d+\.\d+|localhost|\[::1\]):\d+")
_PYTHON = "spark.pyspark.python"
_SUBMIT_ARGS = "PYSPARK_SUBMIT_ARGS"
_PERSONS_PYTHON = os.environ.get("PYSPARK_PYTHON")
_GIVEN: set[str] = set()
"""The names of the settings that the JVM of this process was started with."""
_UNRESPONSIVE = "All masters are unresponsive"
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\s*\n)*(\S.*)")
_LOST = re.compile(
    r"most recent failure: Lost task \S+ in stage \S+ \(TID \d+\) \(\S+ executor (\w+)\): (.*)"
)


def installed() -> bool:
    """Return whether the packages of ``[spark]`` are installed, without importing them."""
    return all(
        importlib.util.find_spec(name) is not None for name in ("pyspark", "pyarrow", "pandas")
    )


def open_session(
    master: str, conf: Mapping[str, Any], log: Path, note: Callable[[str], None] = lambda line: None
) -> SparkSession:
    """Return the Spark session of this process on ``master``; Spark's output goes to ``log``, and
    slow steps are reported by ``note``.

    Executors that are separate processes have received this code, and one of them has responded.
    Raises ``ConnectctlError`` with what to install, or with the path of Spark's log; ``TimedOut``
    without executors.
    """
    require()
    if master.startswith("sc://"):
        raise without_context()
    from pyspark.sql import SparkSession

    settings = spark_settings(master, conf)
    os.environ["PYSPARK_PYTHON"] = _python(master, settings)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if _LOOPBACK.fullmatch(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with _stderr_to(log), _masters_failures(master, log):
        _start_java(settings)
        builder = SparkSession.builder.master(master)
        for name, value in settings.items():
            builder = builder.config(name, value)
        found: SparkSession = builder.getOrCreate()
    if executors.apart(master):
        try:
            with _failures(f"No task runs on Spark at {master}", log, executors.HINT):
                executors.prepare(found, master, log, note)
        except BaseException:
            found.stop()
            raise
    return found


def require_context(frame: DataFrame) -> None:
    """Raise ``BadInput`` for a frame of Spark Connect."""
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise without_context()


def without_context() -> BadInput:
    return BadInput(
        "Spark Connect is not supported",
        why="code and generations of tasks are sent by a SparkContext, which its clients do not have",
        next_step="Give the master of the cluster (local[N], spark://HOST:PORT, k8s://URL or yarn), "
        "as in SparkSession.builder.master(…).",
        code="spark-connect",
    )


def close_session(spark: SparkSession) -> None:
    """End a session. One whose Java is gone, because it was killed or ran out of memory, has ended
    by itself.
    """
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):
        spark.stop()


def spark_settings(master: str, conf: Mapping[str, Any]) -> dict[str, str]:
    alone = _ALONE if _LOOPBACK.fullmatch(master) else {}
    values = _OURS | alone | dict(conf) | protected(master, conf) | {"spark.master": master}
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
    }


def _python(master: str, settings: Mapping[str, str]) -> str:
    """Return the Python of executors: one that was named, else this one.

    They would run the python3 on their PATH, and PySpark reads no setting but the environment.
    """
    if _PYTHON in settings:
        return settings[_PYTHON]
    executors_python = None if master.startswith("local") else _PERSONS_PYTHON
    return executors_python or sys.executable


def _start_java(settings: Mapping[str, str]) -> None:
    """Start Spark's JVM, which has to know some settings before it begins.

    They are in a file for as long. PySpark would put them on the command line, where everybody on
    the machine sees secrets.
    """
    from pyspark import SparkContext

    if SparkContext._gateway is not None:
        _forget_settings(SparkContext._jvm, settings)
        return
    _GIVEN.update(settings)
    arguments = os.environ.get(_SUBMIT_ARGS)
    with tempfile.NamedTemporaryFile(
        "w", prefix="connectctl-spark-", suffix=".conf", encoding="utf-8"
    ) as file:
        file.writelines(f"{escape(name)} {escape(value)}\n" for name, value in settings.items())
        file.flush()
        added = f"--properties-file {shlex.quote(file.name)} --load-spark-defaults"
        os.environ[_SUBMIT_ARGS] = f"{added} {arguments or 'pyspark-shell'}"
        try:
            SparkContext._ensure_initialized()
        finally:
            os.environ.pop(_SUBMIT_ARGS)
            if arguments is not None:
                os.environ[_SUBMIT_ARGS] = arguments


def _forget_settings(jvm: Any, settings: Mapping[str, str]) -> None:
    """Clear the settings of earlier sessions, which a running JVM keeps and gives to every later
    one.
    """
    for name in _GIVEN - set(settings):
        jvm.java.lang.System.clearProperty(name)


def escape(text: str) -> str:
    """Return a word of a properties file as Java reads it."""
    return re.sub(
        r"[\\\s:=#!]",
        lambda m: {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(m[0], f"\\{m[0]}"),
        text,
    )


def require() -> None:
    """Raise ``ConnectctlError`` with what to install if PySpark or Java is missing."""
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
def _failures(what: str, log: Path, hint: str = "") -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, OSError) as e:
        next_step = f"{hint}See Spark's log: {log}."
        raise ConnectctlError(what, why=first_line(e), next_step=next_step, code="spark") from e


@contextmanager
def _masters_failures(master: str, log: Path) -> Iterator[None]:
    """Raise the cause for which a session cannot be opened: the master, the network, or Spark
    itself.
    """
    try:
        with _failures(f"Could not create a Spark session on {master}", log):
            yield
    except ConnectctlError as e:
        if "Could not parse Master URL" in str(e.why):
            hint = "Give local[N], spark://HOST:PORT, k8s://URL or yarn."
            raise BadInput(
                f"{master} is not a Spark master", next_step=hint, code="bad-master"
            ) from e
        # Spark gives the application up, and what waits for that fails with something else.
        text = log.read_text(errors="replace") if log.is_file() else ""
        if _UNRESPONSIVE in text:
            why = "the master did not respond within 60 s"
            raise Unreachable(
                f"The Spark master {master} does not answer", why=why, next_step=str(e.next_step)
            ) from e
        raise


def job_failures(doing: str, log: Path) -> AbstractContextManager[None]:
    """Turn what a Spark job raises into our error; one of ours that an executor raised keeps its
    words.
    """
    return _failures(f"Spark could not {doing}", log)


def first_line(error: BaseException) -> str:
    """Return the first useful line of an error of Spark's, which begins with the traceback of a
    Python worker.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("connectctl.ops.core.errors.")]
    if errors:
        return errors[-1].partition(": ")[2]
    if python := _TRACEBACK.search(str(error)):
        return python[1].strip()
    if lost := _LOST.search(str(error)):
        return f"{lost[2].strip()} (executor {lost[1]})"
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        # Py4J's text has its own handle first, then Java's message
        return lines[1].removeprefix(": ")
    return lines[0] if lines else type(error).__name__
