"""What is done with an archive of ``ParquetArchive``: read what its manifest names, and remove what
it does not name.

How to: docs/how-to/archive.md.
"""

from __future__ import annotations

from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import (
    ArchivedFile,
    read_manifest,
)
from connectctl.ops.task_runtime.connectors.parquet_archive.reader import Orphan, archived, sweep

__all__ = ["ArchivedFile", "Orphan", "archived", "read_manifest", "sweep"]
