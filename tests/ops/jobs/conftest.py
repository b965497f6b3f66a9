"""One Spark session for all tests of jobs, on two threads of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.clients.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    log = Path(tmp_path_factory.mktemp("spark")) / "spark.log"
    conf: dict[str, Any] = {"spark.sql.shuffle.partitions": 2, "spark.sql.adaptive.enabled": False}
    session = open_session("local[2]", conf, log)
    yield session
    session.stop()
