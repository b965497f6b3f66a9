"""What live tests share besides clusters."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from connectctl.ops.clients.spark import session
from fakes import localspark
from live import localrun
from live.rundirectory import Place
from live.upgradescene import Scene, upgrade_scene


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs compute by themselves what they give to Spark, in this process and in processes of their
    own.

    For tests whose subject is not Spark: a run starts in a tenth of the time. One test of each kind
    of task is on Spark.
    """
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(session, "open_session", localspark.open_session)
    monkeypatch.setattr(Place, "program", (localrun.__file__,))


@pytest.fixture(scope="module")
def scene(state_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Two workers, disabled, and a source that is written to throughout."""
    with upgrade_scene(tmp_path_factory.mktemp("failing")) as made:
        yield made
