"""A frame of a real Spark Connect server is refused in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.live, pytest.mark.slow]
LINE = "Spark Connect is not supported: code and generations of tasks are sent by a SparkContext"
PROGRAM = """
from connectctl import Target, write_exactly_once
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote("local[1]").getOrCreate()
target = Target({"bootstrap.servers": "127.0.0.1:1"}, "g", "c", "t", "o", "shop", "id")
df = spark.createDataFrame([("a", 1, "x")], ["shop", "id", "value"])
try:
    write_exactly_once(df, target)
except Exception as e:
    print(str(e))
"""


def test_a_frame_of_spark_connect_is_refused_by_its_client(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="needs pyspark[connect]")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=480,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(LINE), ran.stdout
