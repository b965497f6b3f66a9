"""``DataFrame.mapInArrow``, without a warning about a library that it does not call."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WARNINGS = threading.Lock()
"""Filters of warnings are one list of the process."""


def map_in_arrow(
    frame: DataFrame, function: Callable[[Iterator[Any]], Iterator[Any]], schema: Any
) -> DataFrame:
    """Return ``frame.mapInArrow(function, schema)``.

    PySpark 4.2 and later warn of pandas 3 wherever a function of Python is registered, also where
    its columns are Arrow's.
    """
    with _WARNINGS, warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "PySpark does not yet fully support pandas", FutureWarning
        )
        return frame.mapInArrow(function, schema)
