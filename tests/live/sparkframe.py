"""A DataFrame that is written in a process of its own, on a Spark cluster whose executors may be
killed meanwhile.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

SHOPS = 6


def write(wish: dict[str, Any]) -> dict[str, Any]:
    """Write ``wish["rows"]`` rows of some shops, a few to a transaction; what came of it.

    ``value`` is a row's number among all, ``number`` that among those of its shop.
    """
    from connectctl.ops.clients.spark.session import open_session
    from connectctl.ops.task_runtime.dataframe.api import Target, write_exactly_once
    from pyspark.sql import functions as f

    spark = open_session(wish["master"], wish["conf"], Path(wish["log"]))
    try:
        frame = spark.range(wish["rows"]).withColumn("shop", (f.col("id") % SHOPS).cast("string"))
        frame = frame.withColumn("value", f.col("id").cast("string"))
        frame = frame.withColumn("number", f.floor(f.col("id") / SHOPS).cast("string"))
        return asdict(write_exactly_once(frame, Target(**wish["target"])))
    finally:
        spark.stop()


if __name__ == "__main__":
    print(json.dumps(write(json.loads(sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read()))))
