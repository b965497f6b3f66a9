"""``StreamWriter``: what ``foreachBatch`` is given, so that each row of a stream is written once
and none is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.clients.spark.session import require_context
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.dataframe.api import Target, Written, write
from connectctl.ops.task_runtime.dataframe.batch_round import query_of
from connectctl.ops.task_runtime.dataframe.micro_batch import Late, MicroBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class StreamWriter:
    """Writes micro-batches:
    ``df.writeStream.foreachBatch(StreamWriter(target)).option("checkpointLocation", …).start()``.

    In the transactions of the rows and their source offsets each task commits its query and batch,
    and whether the batch is through. A batch that Spark repeats is skipped if it is through, and
    finished if it was begun; if it has other rows than before, that is an error. ``written`` is the
    result of the last batch.

    ``late`` is the treatment of rows that a new batch has at or before the committed offset of
    their source partition, such as ids that were assigned early and committed late, or rows with
    the last time stamp of the batch before:

    - ``"refuse"``: the batch fails, and so does the query; the error names the rows. Nothing of
      their source partitions is written.
    - ``"drop"``: they are skipped and counted (``written.late``). This is right after a checkpoint
      was lost: the query reads everything again, and the rows that were written are skipped. New
      rows are lost by it: for them, ``offset`` must be a column that only grows, in the order of
      commits.

    A ``target`` without ``partition`` and ``offset`` is for frames without an order. Their rows are
    written once by query and batch alone, if the source has the same rows in the same batch, as
    files and Kafka have and ``rand()`` has not; with a new checkpoint everything is written again.
    Within a batch they have no order.

    Spark passes query and batch on the thread that calls ``foreachBatch``'s function; ``query`` is
    for other threads.
    """

    def __init__(self, target: Target, *, late: str = "refuse", query: str | None = None):
        if late not in set(Late):
            raise BadInput(
                f"Invalid value {late!r} for late", next_step=f"Use one of {', '.join(Late)}."
            )
        if target.partitioned:
            raise BadInput(
                "partitioned is not supported for a stream: Spark repartitions every micro-batch",
                next_step="Remove partitioned.",
            )
        if bool(target.offset) != bool(target.partition_columns):
            raise BadInput(
                "partition and offset must be set together",
                next_step="Set both, or neither for rows without order.",
            )
        self.target, self._late, self._query = target, Late(late), query
        self.written: Written | None = None

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Write one micro-batch whole. Raises what ``write_exactly_once`` does, and ends the query
        by that.
        """
        require_context(df)
        query = self._query or query_of(df)
        if query is None:
            raise BadInput(
                "Could not determine the query of the micro-batch",
                why="Spark sets it only on the thread that calls the foreachBatch function",
                next_step="Call the StreamWriter on that thread, or set query='a stable name'.",
            )
        batch = MicroBatch(query, batch_id, self.target.tasks, self._late, bool(self.target.offset))
        self.written = write(df, self.target, batch)
