"""Finds the class that a ``connector.class`` names: built in, installed as an entry point, or by
its path.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from importlib import import_module, metadata
from inspect import isabstract
from pathlib import Path
from typing import Any

from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.finding import some_of
from connectctl.ops.task_runtime.job.local_plugin import modules_in
from connectctl.ops.task_runtime.spi.connector import Connector
from connectctl.ops.task_runtime.spi.transform import Transform, connector_of

GROUP = "connectctl.connectors"
"""The group of entry points that name connector classes for ``connector.class``."""
_FILE_STREAM = "connectctl.ops.task_runtime.connectors.filestream:FileStreamSource"
_FILE_SINK = "connectctl.ops.task_runtime.connectors.filestream_sink:FileStreamSink"
_TOPIC_COPY = "connectctl.ops.task_runtime.connectors.topic_copy.connector:TopicCopy"
_EXPRESSION = "connectctl.ops.task_runtime.connectors.expression.transforms"
BUILT_IN = {
    "DataFrameSource": "connectctl.ops.task_runtime.connectors.dataframe:DataFrameSource",
    "FileStreamSource": _FILE_STREAM,
    "FileStreamSourceConnector": _FILE_STREAM,
    "org.apache.kafka.connect.file.FileStreamSourceConnector": _FILE_STREAM,
    "Filter": f"{_EXPRESSION}:Filter",
    "Map": f"{_EXPRESSION}:Map",
    "Route": f"{_EXPRESSION}:Route",
    "ParquetArchive": "connectctl.ops.task_runtime.connectors.parquet_archive.connector:ParquetArchive",
    "TopicCopy": _TOPIC_COPY,
    "FileStreamSink": _FILE_SINK,
    "FileStreamSinkConnector": _FILE_SINK,
    "org.apache.kafka.connect.file.FileStreamSinkConnector": _FILE_SINK,
    "MirrorSource": _TOPIC_COPY,
    "MirrorSourceConnector": _TOPIC_COPY,
    "org.apache.kafka.connect.mirror.MirrorSourceConnector": _TOPIC_COPY,
}
_JAVA_TASKS = {
    _FILE_STREAM: "org.apache.kafka.connect.file.FileStreamSourceTask",
    _FILE_SINK: "org.apache.kafka.connect.file.FileStreamSinkTask",
    _TOPIC_COPY: "org.apache.kafka.connect.mirror.MirrorSourceTask",
}
MOST_NAMED = 10
_SHAPES = "Use one of these names, or MODULE:CLASS of a Python class."


def known_connectors() -> dict[str, str]:
    """Return the connectors that have a name, each with its ``module:Class``."""
    found = {point.name: point.value for point in metadata.entry_points(group=GROUP)}
    return found | BUILT_IN


def path_of(name: str) -> str:
    """Return ``module:Class`` for a ``connector.class``. Raises ``BadInput`` for an unknown
    name.
    """
    if ":" in name:
        return name
    known = known_connectors()
    if name not in known:
        similar = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"Did you mean {similar[0]}? " if similar else ""
        raise BadInput(
            f"Failed to find any class that implements Connector and which name matches {name}",
            why=f"available: {', '.join(sorted(known))}",
            next_step=hint + _SHAPES,
            code="unknown-class",
        )
    return known[name]


def connector_class(path: str, directory: Path | None = None) -> type[Connector]:
    """Return the class at ``module:Class``. Raises ``BadInput`` if it cannot be imported or is not
    a ``Connector``.

    ``directory`` is that of the job file, whose modules the hint lists.
    """
    found = import_object(path, directory)
    if isinstance(found, type) and issubclass(found, Connector):
        return found
    if (transform := connector_of(found)) is not None:
        return transform
    raise BadInput(
        f"{path} is not a connector",
        why="it is neither a subclass of Connector or Transform nor a function",
    )


def import_object(path: str, directory: Path | None = None) -> Any:
    """Return what ``module:name`` names. Raises ``BadInput`` if it cannot be imported."""
    module, _, name = path.partition(":")
    try:
        found = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except ImportError as e:
        hint = _modules_hint(module, directory)
        raise BadInput(
            f"Cannot import {path}", why=str(e), next_step=hint, code="unknown-class"
        ) from e
    except AttributeError as e:
        hint = _classes_hint(module)
        raise BadInput(
            f"Class not found: {name} in {module}", next_step=hint, code="unknown-class"
        ) from e
    except Exception as e:
        raise BadInput(f"Import of {module} failed", why=f"{type(e).__name__}: {e}") from e
    return found


def _modules_hint(module: str, directory: Path | None) -> str:
    """Return where modules are searched, and which exist."""
    if directory is None:
        return _SHAPES
    modules = modules_in(directory)
    similar = difflib.get_close_matches(module, modules, n=1)
    found = "No module is in the directory of the job file"
    if modules:
        found = f"Modules in the directory of the job file: {some_of(modules, MOST_NAMED)}"
    guess = f"Did you mean {similar[0]}? " if similar and similar[0] != module else ""
    return f"{guess}{found}. Install other modules, or list their wheel or zip under plugins."


def _classes_hint(module: str) -> str:
    """Return the connectors of an imported module, as a hint."""
    names = [
        name
        for name, each in vars(sys.modules[module]).items()
        if isinstance(each, type)
        and issubclass(each, Connector | Transform)
        and not isabstract(each)
    ]
    if not names:
        return f"The module has no connectors. {_SHAPES}"
    return f"Connectors in the module: {', '.join(sorted(names))}."


def importable(archives: Iterable[Path]) -> None:
    """Make wheels and zips importable in this process, with their entry points."""
    for archive in archives:
        if str(archive) not in sys.path:
            sys.path.insert(0, str(archive))


def task_class(path: str) -> str:
    """Return ``task.class`` for task configs: Java's class if a worker could resume the tasks, else
    Python's.
    """
    if path in _JAVA_TASKS:
        return _JAVA_TASKS[path]
    task = connector_class(path).task
    return f"{task.__module__}:{task.__qualname__}"
