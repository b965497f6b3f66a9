"""Whether the rows that Spark gives a Python task came to their end, or broke off.

Where what makes the rows fails, the JVM closes its side of the connection, and Arrow takes that for
the end of its stream: the iterator of ``mapInArrow`` just ends, as it does behind the last row
(measured, PySpark 4.0; docs/decisions/0018). Only behind the last row there is a word of Spark's
own protocol. So a task that relies on the end looks for that word.
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
    """The rows ended before their end. Spark says why, where it fails; what was committed is whole
    transactions.
    """

    code = "broke-off"


def proven(batches: Iterable[T]) -> Iterator[T]:
    """``batches`` of ``mapInArrow``, on whose worker this is called. Raises ``BrokeOff`` in place
    of an end that is none, ``ConnectctlError`` where a PySpark other than those that were looked at
    does not let its connection be seen.
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
    """What PySpark's worker reads from: not handed out, but on the stack."""
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
