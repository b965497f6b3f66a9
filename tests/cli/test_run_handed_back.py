"""A run whose tasks ended well, and whose connector could not be handed back, fails by that."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.task_runtime.job import hand_back
from connectctl.ops.task_runtime.job.job_context import SparkJobContext
from fakes.changingworld import World
from fakes.endedtasks import without_spark


def test_the_result_is_printed_and_the_error_is_that_of_the_hand_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unanswered(*args: Any) -> str:
        raise Unreachable("No worker answers")

    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    without_spark(monkeypatch)
    monkeypatch.setattr(SparkJobContext, "hand_back", unanswered)
    monkeypatch.setattr(hand_back, "alone", lambda clients, name: nullcontext())
    world = World(tmp_path)
    ran = world.change("run", "--yes", "-o", "json")
    (run,) = world.runs()
    assert ran.exit_code == 5, ran.output
    assert json.loads(ran.stdout)["outcome"] == "ended"
    assert "No worker answers" in ran.stderr
    assert f"If nothing else runs it: connectctl runs resume {run['id']}" in ran.stderr
    assert run["state"] == "failed"
