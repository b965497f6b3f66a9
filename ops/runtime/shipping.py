"""Sends plugins to the executors of a Spark session."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.edges.executors import kept_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ship(spark: SparkSession, archives: Sequence[Path]) -> None:
    """Let every executor import from wheels and zips. Spark takes a wheel for an archive only by another name."""
    for archive in archives:
        path = archive
        if archive.suffix == ".whl":
            path = kept_directory() / f"{archive.stem}.zip"
            shutil.copyfile(archive, path)
        spark.addArtifacts(str(path), pyfile=True)
