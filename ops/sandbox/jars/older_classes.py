"""Classes that plugins of an older release call and that a newer kafka-clients no longer has.

Kafka 4.4 moved 30 classes of ``org.apache.kafka.common.utils`` to ``utils.internals``, among them
``AppInfoParser``, by which every connector of Kafka reports its version. Plugin isolation leaves
the package to the worker's class path, so a plugin cannot bring them itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile


def write_removed_classes(older: Sequence[Path], newer: Sequence[Path], into: Path) -> None:
    """Write the classes of the ``older`` jars that none of the ``newer`` ones has to the jar
    ``into``; of several older classes with one name, the first.
    """
    written = {name for jar in newer for name in _classes(jar)}
    with ZipFile(into, "w") as removed:
        for path in older:
            with ZipFile(path) as jar:
                for name in (name for name in _classes(path) if name not in written):
                    removed.writestr(name, jar.read(name))
                    written.add(name)


def _classes(path: Path) -> list[str]:
    with ZipFile(path) as jar:
        return [
            name
            for name in jar.namelist()
            if name.startswith("org/apache/kafka/") and name.endswith(".class")
        ]
