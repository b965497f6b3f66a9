"""Executors that are processes of their own, most often on other machines: they get this code, and
one is asked to run it.

Two versions of the runtime in one run would be two protocols, so that tasks never use a connectctl
that is installed where they run. What is not Python alone has to be there: ``NEEDED``.
"""

from __future__ import annotations

import atexit
import importlib.util
import re
import shutil
import socket
import sys
import tempfile
import threading
import time
import uuid
import zipfile
import zipimport
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import ConnectctlError, TimedOut

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED = ("confluent_kafka", "crc32c", "kafka", "pyarrow")
"""The modules that tasks import and that are not sent with them."""
HINT = "spark.pyspark.python names the executors' Python, which spark.archives can bring. "
ARCHIVE = "connectctl-executors.zip"
PATIENCE = "spark.scheduler.maxRegisteredResourcesWaitingTime"
"""Spark's own setting for how long to wait for executors; ``LONGEST`` seconds by default."""
LONGEST = 120.0
QUIET = 10.0
"""Seconds after which waiting for executors is reported."""
SETTLED = 1.5
"""Seconds without a new executor after which those that are there are all, for now."""
_IN_PROCESS = re.compile(r"local(\[[^]]*\])?")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def apart(master: str) -> bool:
    return _IN_PROCESS.fullmatch(master) is None


def prepare(spark: SparkSession, master: str, log: Path, note: Callable[[str], None]) -> None:
    """Send this code, and run it in a task. Raises ``ConnectctlError`` with what is missing;
    ``TimedOut``.
    """
    spark.sparkContext.addPyFile(str(archive(kept_directory())))
    answer = _answer_of_executor(
        spark, _patience(spark), lambda: note(f"Waiting for an executor of {master} …")
    )
    if answer is None:
        host = spark.sparkContext.getConf().get("spark.driver.host")
        raise TimedOut(
            f"No Spark task started on {master} within {_patience(spark):g} s",
            why="no free worker has the cores and memory of an executor, or no worker reaches the "
            f"driver at {host}",
            next_step=f"See the master's web UI and {log}. {PATIENCE} raises the limit.",
            code="no-executors",
        )
    if answer["missing"]:
        raise ConnectctlError(
            f"The executors' Python has no {', '.join(answer['missing'])}",
            why=f"it is {answer['python']} {answer['version']} on {answer['host']}",
            next_step=f"Install connectctl there. {HINT}".rstrip(),
            code="executor-python",
        )
    _settle(spark)


def spare_archives() -> None:
    """Let the next task of this Python worker begin at once; called at the end of a task.

    Before each task PySpark has Python forget its caches of imports, and so read the directories of
    all zips on its path again, which takes 60 ms for PySpark's own. A path without an importer is
    not read; an import creates a new importer, from the directory that Python has kept.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimport.zipimporter):
            sys.path_importer_cache.pop(path, None)


def kept_directory() -> Path:
    """Return a new directory for what executors fetch from the driver, whenever one comes: it is
    there while this process is.
    """
    directory = tempfile.mkdtemp(prefix="connectctl-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def archive(directory: Path) -> Path:
    """Return a zip in ``directory`` of all of this package that a task may import; the same bytes
    for the same code.
    """
    root = Path(__file__).parents[3]
    with zipfile.ZipFile(directory / ARCHIVE, "w", zipfile.ZIP_DEFLATED) as made:
        for path in sorted([*root.glob("*.py"), *(root / "ops").rglob("*.py")]):
            name = f"connectctl/{path.relative_to(root).as_posix()}"
            made.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return directory / ARCHIVE


def python_of_executor(_: Iterable[int]) -> Iterable[dict[str, Any]]:
    """Return the properties of an executor's Python, and what it lacks; runs there."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    version = ".".join(map(str, sys.version_info[:3]))
    yield {
        "missing": missing,
        "python": sys.executable,
        "version": version,
        "host": socket.gethostname(),
        "code": __file__,
    }


def _answer_of_executor(
    spark: SparkSession, patience: float, waiting: Callable[[], None]
) -> dict[str, Any] | None:
    """Return the result of ``python_of_executor`` in a Spark job of one task, on a separate thread:
    without executors the job would wait for ever.

    None if there is no result after ``patience`` seconds. Raises what Spark raises.
    """
    context, tag = spark.sparkContext, f"connectctl-{uuid.uuid4().hex}"
    answers: list[dict[str, Any] | Exception] = []

    def run() -> None:
        try:
            context.addJobTag(tag)
            answers.extend(context.parallelize([0], 1).mapPartitions(python_of_executor).collect())
        except Exception as e:  # noqa: BLE001  # it is raised on the thread that asked
            answers.append(e)

    thread = threading.Thread(target=run, daemon=True)
    began = time.monotonic()
    thread.start()
    thread.join(min(QUIET, patience))
    if thread.is_alive() and patience > QUIET:
        waiting()
        thread.join(patience - (time.monotonic() - began))
    if thread.is_alive():
        context.cancelJobsWithTag(tag)
        return None
    if isinstance(answers[0], Exception):
        raise answers[0]
    return answers[0]


def _settle(spark: SparkSession) -> None:
    """Wait a moment for the other executors, most of which start at the same time."""
    status = spark.sparkContext._jsc.sc().statusTracker()
    end = time.monotonic() + QUIET
    before, since = 0, time.monotonic()
    while time.monotonic() < min(end, since + SETTLED):
        count = len(status.getExecutorInfos())
        if count != before:
            before, since = count, time.monotonic()
        time.sleep(0.1)


def _patience(spark: SparkSession) -> float:
    text = spark.sparkContext.getConf().get(PATIENCE)
    if text is None:
        return LONGEST
    return float(
        spark.sparkContext._jvm.org.apache.spark.network.util.JavaUtils.timeStringAsSec(text)
    )
