"""What Sparks of tests are quicker with. They live for seconds, and load the same classes again and
again.

Compiled by C1 alone, a session takes a fifth less time. With an archive of the classes (JEP 350),
the session and its first query are there after 4 s instead of 8: where the whole suite runs, one is
made beside its first tests, and kept in pytest's cache. Who starts many JVMs at once waits for it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_ARCHIVE = "CONNECTCTL_TESTS_SPARK_ARCHIVE"
_PATIENCE = 90.0
"""Seconds to wait for it: it is made in ten, and nothing but time is lost without it."""
_QUIET = "-Xshare:auto -Xlog:disable"
"""A JVM that the archive does not fit, or that begins before it is there, starts without it, and
says nothing.
"""


def java_options() -> str:
    """For drivers, executors and daemons."""
    archive = os.environ.get(_ARCHIVE)
    return f"{SHORT_LIVED} {_QUIET} -XX:SharedArchiveFile={archive}" if archive else SHORT_LIVED


def submit_args(options: str) -> str:
    """PYSPARK_SUBMIT_ARGS for drivers that nobody gives other options."""
    return f'--driver-java-options "{options}" pyspark-shell'


def await_archive() -> None:
    """Wait for the archive that is being made, if one is."""
    end = time.monotonic() + _PATIENCE
    while (
        (archive := os.environ.get(_ARCHIVE))
        and not Path(archive).exists()
        and time.monotonic() < end
    ):
        time.sleep(0.2)


class Archive:
    """An archive for the processes that this one starts: the one in ``kept``, or one that is made
    for it beside them.
    """

    def __init__(self, directory: Path, kept: Path) -> None:
        self._directory = directory / "classes"
        self._directory.mkdir()
        archive = kept / f"{_key()}.jsa"
        os.environ[_ARCHIVE] = str(archive)
        self._making: subprocess.Popen[bytes] | None = None
        if not archive.exists():
            command = [sys.executable, __file__, str(archive), str(self._directory)]
            with (self._directory / "log").open("wb") as log:
                self._making = subprocess.Popen(
                    command, stdout=log, stderr=log, start_new_session=True
                )

    def close(self) -> None:
        """Forget it. Where it is not finished yet, its JVM ends with the process that holds its
        standard input.
        """
        os.environ.pop(_ARCHIVE, None)
        if self._making is not None:
            self._making.kill()
            self._making.wait()
        shutil.rmtree(self._directory, ignore_errors=True)


def _key() -> str:
    """Return the name of the archive for this Java and this PySpark."""
    import pyspark
    from connectctl.ops.clients.java import find_java

    of = f"{find_java().build} {pyspark.__version__} {pyspark.__file__} {SHORT_LIVED}"
    return hashlib.sha256(of.encode()).hexdigest()[:12]


def _make(archive: Path, directory: Path) -> None:
    draft, files = directory / "spark.jsa", str(directory / "rows.parquet")
    os.environ["PYSPARK_SUBMIT_ARGS"] = submit_args(
        f"{SHORT_LIVED} -Xlog:disable -XX:ArchiveClassesAtExit={draft}"
    )
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    )
    rows = spark.range(0, 1000, 1, 4).selectExpr(
        "id", "cast(id % 7 as string) as part", "cast(string(id) as binary) as value"
    )
    rows.write.parquet(files)
    rows = spark.read.parquet(files)
    rows.repartition(2, "part").sortWithinPartitions("id").mapInArrow(
        lambda found: found, rows.schema
    ).collect()
    rows.groupBy("part").count().orderBy("part").toPandas()
    spark.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    part = archive.with_suffix(f".{os.getpid()}")  # whole or not there, also on another file system
    shutil.move(draft, part)
    part.replace(archive)


if __name__ == "__main__":
    _make(Path(sys.argv[1]), Path(sys.argv[2]))
