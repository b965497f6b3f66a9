"""A stream in a process of its own, without end: Spark's counter by micro-batches through a
``StreamWriter``.

Started again with the same checkpoint it goes on. SIGTERM ends it; its last line says how it ended.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

SOURCES = 4
ROWS = 200
"""Rows of a micro-batch."""


def stream(wish: dict[str, Any]) -> str:
    """Write until SIGTERM: each row's value is its number within its source; how it ended, in a
    word.
    """
    from connectctl.ops.clients.spark.session import open_session
    from connectctl.ops.task_runtime.dataframe.api import Target
    from connectctl.ops.task_runtime.dataframe.stream_writer import StreamWriter
    from pyspark.sql import functions as f

    spark = open_session(wish["master"], wish["conf"], Path(wish["log"]))
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    counter = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
    rows = counter.select(
        (f.col("value") % SOURCES).cast("string").alias("source"),
        f.floor(f.col("value") / SOURCES).cast("string").alias("value"),
        (f.floor(f.col("value") / SOURCES) + 1).alias("next"),
    )
    writing = rows.writeStream.foreachBatch(StreamWriter(Target(**wish["target"])))
    query = (
        writing.option("checkpointLocation", wish["checkpoint"])
        .trigger(processingTime=wish["trigger"])
        .start()
    )
    while not stopped and not query.awaitTermination(0.5):
        pass
    query.stop()  # in the middle of a micro-batch as often as not
    return "stopped"


if __name__ == "__main__":
    wish = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps({"outcome": stream(wish)}))
