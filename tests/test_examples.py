"""The examples of the documentation that have tests of their own: these pass, as whoever copies
them would run them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from connectctl.ops.task_runtime.job import job_file
from documentation import ROOT, blocks, passed

HOW_TO = ROOT / "docs/how-to"


def test_the_test_of_the_page_on_tests_passes(tmp_path: Path) -> None:
    for page in ("own-connector.md", "test-connectors.md"):
        for block in blocks(HOW_TO / page):
            if block.file:
                (tmp_path / block.file).write_text(block.text)
    assert passed(tmp_path).startswith("4 passed")


def test_the_tests_of_the_whole_examples_pass(tmp_path: Path) -> None:
    for file in (ROOT / "docs/examples").glob("*.py"):
        shutil.copy(file, tmp_path)
    assert passed(tmp_path).startswith("14 passed")


@pytest.mark.parametrize(
    "job", sorted((ROOT / "docs/examples").glob("*.yaml")), ids=lambda path: path.name
)
def test_the_job_of_an_example_is_one_and_names_a_class_beside_it(job: Path) -> None:
    module, _, kind = job_file.read(job).config["connector.class"].partition(":")
    assert module == job.stem
    assert f"class {kind}(SourceConnector):" in job.with_suffix(".py").read_text()
