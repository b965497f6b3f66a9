"""What Sparks of tests are quicker with. They live for seconds, and load the same classes again and again.

Compiled by C1 alone, a session takes a fifth less time. With an archive of the classes (JEP 350), the session and its first
query are there after 4 s instead of 8: where the whole suite runs, one is made beside its first tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_ARCHIVE = "CONNECTCTL_TESTS_SPARK_ARCHIVE"
_QUIET = "-Xshare:auto -Xlog:disable"
"""A JVM that the archive does not fit, or that begins before it is there, starts without it, and says nothing."""


def java_options() -> str:
    """For drivers, executors and daemons."""
    archive = os.environ.get(_ARCHIVE)
    return f"{SHORT_LIVED} {_QUIET} -XX:SharedArchiveFile={archive}" if archive else SHORT_LIVED


def submit_args(options: str) -> str:
    """PYSPARK_SUBMIT_ARGS for drivers that nobody gives other options."""
    return f'--driver-java-options "{options}" pyspark-shell'


class Archive:
    """An archive that is being made, for the processes that this one starts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "classes"
        self._directory.mkdir()
        os.environ[_ARCHIVE] = str(self._directory / "spark.jsa")
        with (self._directory / "log").open("wb") as log:
            self._making = subprocess.Popen(
                [sys.executable, __file__, os.environ[_ARCHIVE]], stdout=log, stderr=log, start_new_session=True
            )

    def close(self) -> None:
        """Forget it. Where it is not finished yet, its JVM ends with the process that holds its standard input."""
        os.environ.pop(_ARCHIVE, None)
        self._making.kill()
        self._making.wait()
        shutil.rmtree(self._directory, ignore_errors=True)


def _make(archive: Path) -> None:
    draft = archive.with_suffix(".draft")
    os.environ["PYSPARK_SUBMIT_ARGS"] = submit_args(f"{SHORT_LIVED} -Xlog:disable -XX:ArchiveClassesAtExit={draft}")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    rows = spark.range(0, 1000, 1, 4).selectExpr(
        "id", "cast(id % 7 as string) as part", "cast(string(id) as binary) as value"
    )
    rows.write.parquet(str(archive.with_suffix(".parquet")))
    rows = spark.read.parquet(str(archive.with_suffix(".parquet")))
    rows.repartition(2, "part").sortWithinPartitions("id").mapInArrow(lambda found: found, rows.schema).collect()
    rows.groupBy("part").count().orderBy("part").toPandas()
    spark.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    draft.replace(archive)


if __name__ == "__main__":
    _make(Path(sys.argv[1]))
