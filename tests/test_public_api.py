"""What Python code imports from ``connectctl``: few modules, typed, each name at its first use."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import connectctl
import pytest
from documentation import PAGES, blocks

LIGHT = ("connectctl", "connectctl.source", "connectctl.sink", "connectctl.transform")
MODULES = (*LIGHT, "connectctl.archive", "connectctl.testing")
HEAVY = {"pyspark", "confluent_kafka", "kafka", "pyarrow", "pandas", "httpx", "typer", "rich"}


@pytest.mark.parametrize("name", MODULES)
def test_every_name_of_a_public_module_is_there_and_is_said_to_be(name: str) -> None:
    module = importlib.import_module(name)
    assert [each for each in module.__all__ if not hasattr(module, each)] == []
    assert list(module.__all__) == sorted(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    assert module.__doc__


@pytest.mark.parametrize("name", LIGHT)
def test_importing_a_public_module_loads_no_client_library(name: str) -> None:
    shown = f"import {name}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    loaded = {each.split(".")[0] for each in done.stdout.split()}
    assert loaded & HEAVY == set()
    if name == "connectctl":
        own = sorted(each for each in done.stdout.split() if each.split(".")[0] == "connectctl")
        assert own == ["connectctl"], "the command starts with it"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'connectctl' has no attribute 'nothing'"):
        _ = connectctl.nothing


def test_a_public_name_is_the_object_of_the_runtime() -> None:
    from connectctl import Target, source
    from connectctl.ops.task_runtime.dataframe import api
    from connectctl.ops.task_runtime.spi import connector

    assert Target is api.Target
    assert source.SourceTask is connector.SourceTask


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(next(iter(connectctl.__path__))) / "py.typed").is_file()


def test_documentation_imports_from_public_modules_alone() -> None:
    shown = [
        line
        for page in PAGES
        for block in blocks(page, "python")
        for line in block.text.splitlines()
    ]
    assert [line for line in shown if "connectctl.ops" in line and "import" in line] == []
