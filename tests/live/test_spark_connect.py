"""Frames of a real Spark Connect server are refused in one line, by their client and in a query."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.live, pytest.mark.slow]
LINE = "Spark Connect is not supported: code and generations of tasks are sent by a SparkContext"
PROGRAM = """
import sys
from connectctl import StreamWriter, Target, write_exactly_once
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote("local[1]").getOrCreate()
target = Target({"bootstrap.servers": "127.0.0.1:1"}, "g", "c", "t", "o", "shop", "id")
df = spark.createDataFrame([("a", 1, "x")], ["shop", "id", "value"])
df.write.json(sys.argv[1])
stream = spark.readStream.schema(df.schema).json(sys.argv[1])


def query():
    writing = stream.writeStream.foreachBatch(StreamWriter(target)).trigger(availableNow=True)
    writing.option("checkpointLocation", sys.argv[2]).start().awaitTermination()


for write in (lambda: write_exactly_once(df, target), query):
    try:
        write()
    except Exception as e:
        print(str(e))
"""


def test_frames_and_streams_of_spark_connect_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="needs pyspark[connect]")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "in"), str(tmp_path / "checkpoint")],
        capture_output=True,
        text=True,
        timeout=480,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count(LINE) >= 2, ran.stdout
    assert ran.stdout.startswith(LINE)
