"""A module beside the job file: imported here, sent with what it imports, and named where a name is
wrong.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.job.local_plugin import archive_of, import_from, modules_in
from connectctl.ops.task_runtime.spi.plugins import connector_class

MODULE = """
import json
from connectctl.ops.task_runtime.spi.connector import SourceConnector, SourceTask
from mine_words import WORD


class Task(SourceTask):
    def start(self, configs):
        pass

    def poll(self):
        import mine_late
        import mine_parts.first


class Mine(SourceConnector):
    task = Task
    def task_configs(self, max_tasks):
        return [{"word": WORD}]
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a connector, what it imports at once and later, and what has nothing to do
    with it.
    """
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, source in {
        "mine": MODULE,
        "mine_words": "WORD = 'w'\n",
        "mine_late": "import mine_words\n",
        "mine_parts/__init__": "",
        "mine_parts/first": "",
        "json": "raise RuntimeError('this is not the json that is meant')\n",
        "other": "",
    }.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
    import_from(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def forgotten() -> object:
    yield
    for name in [name for name in sys.modules if name.startswith("mine")]:
        del sys.modules[name]


def test_a_module_beside_the_job_file_is_imported_and_hides_nothing_that_is_installed(
    job: Path,
) -> None:
    assert connector_class("mine:Mine", job).__name__ == "Mine"


def test_what_it_imports_at_once_or_later_travels_with_it_and_nothing_else(
    job: Path, tmp_path: Path
) -> None:
    made = archive_of("mine", job, tmp_path)
    assert made is not None
    names = zipfile.ZipFile(made).namelist()
    assert names == [
        "mine.py",
        "mine_late.py",
        "mine_parts/__init__.py",
        "mine_parts/first.py",
        "mine_words.py",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "import mine; mine.Task().poll(); print(mine.WORD)"],
        env={"PYTHONPATH": str(made)},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("w\n", 0), done.stderr


def test_what_is_installed_is_not_sent(job: Path, tmp_path: Path) -> None:
    assert archive_of("json", job, tmp_path) is None
    assert archive_of("connectctl.ops.task_runtime.connectors.filestream", job, tmp_path) is None


def test_a_wrong_module_is_told_with_those_that_there_are(job: Path) -> None:
    with pytest.raises(BadInput) as caught:
        connector_class("mime:Mine", job)
    assert (
        "Did you mean mine? Modules in the directory of the job file: json, mine, mine_late"
        in str(caught.value)
    )
    assert modules_in(job) == ["json", "mine", "mine_late", "mine_parts", "mine_words", "other"]


def test_a_wrong_class_is_told_with_the_connectors_of_the_module(job: Path) -> None:
    with pytest.raises(
        BadInput, match=r"Class not found: Mime in mine\. Connectors in the module: Mine\."
    ):
        connector_class("mine:Mime", job)
