"""connectctl: operates Kafka Connect from the command line; runs connectors, sinks, transforms and
DataFrames in Python.

What Python code imports, and nothing else is kept stable:

- ``connectctl``: ``write_exactly_once``, ``Target``, ``Written``, ``StreamWriter``: a DataFrame of
  Spark into a topic
- ``connectctl.source``, ``connectctl.sink``, ``connectctl.transform``: what a connector of
  ``connectctl run`` implements
- ``connectctl.schema``: schemas of records, and the interface of converters
- ``connectctl.archive``: reads what the sink ``ParquetArchive`` wrote
- ``connectctl.testing``: runs such a connector in a unit test, without a cluster

Importing the package loads none of these, and neither PySpark nor confluent-kafka: names are looked
up at their first use.
"""

from __future__ import annotations

from importlib import import_module
from os.path import dirname, isfile, join
from typing import TYPE_CHECKING, Any

# Spark's executors get a part of the package, as an archive.
if isfile(join(dirname(__file__), "cli")):  # noqa: PTH113, PTH118, PTH120 - pathlib is slow to load
    raise ImportError(
        "src/connectctl/cli is no link to cli, because git checked links out as text files: "
        "run `git config core.symlinks true && git checkout -- src` and install again"
    )

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.dataframe.api import Target, Written, write_exactly_once
    from connectctl.ops.task_runtime.dataframe.stream_writer import StreamWriter

__all__ = ["StreamWriter", "Target", "Written", "write_exactly_once"]

_DATAFRAME = "connectctl.ops.task_runtime.dataframe"
_MODULES = {
    "StreamWriter": f"{_DATAFRAME}.stream_writer",
    "Target": f"{_DATAFRAME}.api",
    "Written": f"{_DATAFRAME}.api",
    "write_exactly_once": f"{_DATAFRAME}.api",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
