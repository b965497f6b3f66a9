"""The connector that ``run --init`` writes: it is one, and nothing is overwritten."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.task_runtime.job import job_file
from connectctl.ops.task_runtime.job.skeleton import skeleton, write
from documentation import passed

ROOT = Path(__file__).parents[4]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
"""Options of the tests around it are none of a person's tests."""


def test_its_test_passes_and_its_job_can_be_read(tmp_path: Path) -> None:
    write(skeleton(tmp_path / "my_source"))
    assert passed(tmp_path).startswith("3 passed")
    job = job_file.read(tmp_path / "my_source.yaml")
    assert (job.name, job.config["connector.class"]) == ("my-source", "my_source:MySource")


def test_it_is_formatted_as_this_project_is(tmp_path: Path) -> None:
    write(skeleton(tmp_path / "my_source"))
    config = ["--config", str(ROOT / "pyproject.toml")]
    for check in (["format", "--check"], ["check"]):
        command = [sys.executable, "-m", "ruff", *check, "--no-cache", *config, "."]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, env=ENVIRONMENT
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_written_where_one_of_the_files_is_there(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("mine")
    with pytest.raises(Refused, match=r"test_mine.py exists, and is not overwritten"):
        skeleton(tmp_path / "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["test_mine.py"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("my-source", "cannot be the name of a new module"),
        ("my_source.yaml", "cannot be the name of a new module"),
        ("class", "cannot be the name of a new module"),
        ("json", "A module json is installed"),
        ("nowhere/mine", "nowhere is not a directory"),
    ],
)
def test_a_name_that_cannot_be_a_module_is_refused(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        skeleton(tmp_path / name)
