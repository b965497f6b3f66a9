"""Whether the rows that Spark sends to a Python task are complete, or broke off.

If the source of the rows fails, the JVM closes its side of the connection, and Arrow takes that for
the end of its stream: the iterator of ``mapInArrow`` ends as it does after the last row (measured,
PySpark 4.0; docs/decisions/0018). Only after the last row there is a word of Spark's own protocol.
A task that relies on the end therefore reads that word.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from connectctl.ops.core.errors import ConnectctlError

T = TypeVar("T")
END_OF_STREAM = struct.pack(">i", -4)
"""``SpecialLengths.END_OF_STREAM``, with which the JVM ends what it writes to a Python worker."""


class BrokeOff(ConnectctlError):
    """The rows ended before their end. Spark's error has the reason; the committed rows are whole
    transactions.
    """

    code = "broke-off"


def proven(batches: Iterable[T]) -> Iterator[T]:
    """Return ``batches`` of ``mapInArrow``, on the worker that calls this. Raises ``BrokeOff`` in
    place of a false end, and ``ConnectctlError`` if an untested PySpark hides its connection.
    """
    return _to_the_end(batches, _connection())


def _to_the_end(batches: Iterable[T], connection: Any) -> Iterator[T]:
    yield from batches
    if connection.peek(len(END_OF_STREAM))[: len(END_OF_STREAM)] != END_OF_STREAM:
        raise BrokeOff(
            "Spark failed while sending rows to the task",
            why="the rows ended without Spark's end marker",
        )


def _connection() -> Any:
    """Return the stream that PySpark's worker reads from: it is not passed to the task, but it is
    on the stack.
    """
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "main" and (found := frame.f_locals.get("infile")) is not None:
            return found
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
    raise ConnectctlError(
        "The end of the task's rows cannot be distinguished from a failure of Spark",
        why="the connection of this PySpark's workers was not found",
        next_step="Use PySpark 4.0.",
        code="pyspark",
    )
