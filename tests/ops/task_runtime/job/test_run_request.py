"""What a run is made from: files by their digests, and settings that are in no file."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from connectctl.ops.config.settings import SecretSource
from connectctl.ops.task_runtime.job.job_file import Job, read
from connectctl.ops.task_runtime.job.run_request import (
    CONTEXT_CONF,
    WORKERS_CONFIG,
    RunRequest,
    files_of,
    settings_of,
)

JOB = Job("c", {"name": "c"})


def test_paths_of_a_request_hold_in_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = RunRequest("job.yaml", "local[1]", True, 7.0, 9.0, "run.prom")
    assert asked.absolute() == replace(
        asked, job=f"{tmp_path}/job.yaml", metrics=f"{tmp_path}/run.prom"
    )
    assert RunRequest("job.yaml").absolute().metrics is None


def test_files_are_the_job_its_plugins_and_the_connectors_module_with_what_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    contents = {
        "job.yaml": "plugins: [more.zip]",
        "more.zip": "a zip",
        "runrequestmine.py": "import runrequestwords",
        "runrequestwords.py": "this is no Python",
        "unrelated.py": "",
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    request = RunRequest(str(tmp_path / "job.yaml"))
    expected = {
        str(tmp_path / n): sha256(t.encode()).hexdigest()
        for n, t in contents.items()
        if n != "unrelated.py"
    }
    assert files_of(request, read(Path(request.job)), ["runrequestmine"]) == expected


def test_the_configuration_counts_only_where_it_is_the_workers() -> None:
    assert settings_of(JOB, JOB.config, {}) == {}
    one, other = (settings_of(JOB, {"name": "c", "topic": topic}, {}) for topic in ("a", "b"))
    assert one.keys() == other.keys() == {WORKERS_CONFIG}
    assert one != other


def test_a_secret_of_the_context_counts_as_the_reference_to_it() -> None:
    here, there, again = (
        settings_of(
            JOB, JOB.config, {"spark.password": SecretSource("env", name), "spark.cores.max": 2}
        )
        for name in ("HERE", "THERE", "HERE")
    )
    assert here.keys() == {CONTEXT_CONF}
    assert (here == again, here == there) == (True, False)
