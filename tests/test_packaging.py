"""What is built holds what is in the tree, and an installed connectctl is the connectctl of the
tree.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from connectctl.cli.commands.completion import FILES

ROOT = Path(__file__).parent.parent
TOPS = ("cli", "ops", "migrations")
COMPLETIONS = "completions"
FINDINGS = "docs/findings"
UNBUILT = shutil.ignore_patterns("build", "dist", "*.egg-info", "__pycache__", ".*")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel and an sdist, built from a copy so that no ``build/`` is left behind to ship deleted
    modules.
    """
    place = tmp_path_factory.mktemp("packaging")
    shutil.copytree(ROOT, place / "tree", ignore=UNBUILT, symlinks=True)
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        str(place / "dist"),
        str(place / "tree"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return place / "dist"


def test_the_wheel_holds_every_module_of_the_tree(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    shipped = {
        n
        for n in zipfile.ZipFile(wheel).namelist()
        if n.startswith("connectctl/") and n.endswith((".py", "py.typed"))
    }
    sources = [
        p
        for top in TOPS
        for p in (ROOT / top).rglob("*")
        if p.suffix == ".py" or p.name == "py.typed"
    ]
    there = {f"connectctl/{path.relative_to(ROOT).as_posix()}" for path in sources}
    public = {
        f"connectctl/{path.name}" for path in (ROOT / "src/connectctl").iterdir() if path.is_file()
    }
    assert {"connectctl/__init__.py", "connectctl/__main__.py", "connectctl/py.typed"} <= public
    assert shipped == there | public


def test_the_wheel_holds_what_findings_mean(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    shipped = {n for n in zipfile.ZipFile(wheel).namelist() if n.endswith(".md")}
    assert shipped == {f"connectctl/docs/findings/{p.name}" for p in (ROOT / FINDINGS).iterdir()}


def test_the_wheel_holds_the_templates_of_pages(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    shipped = {
        n for n in zipfile.ZipFile(wheel).namelist() if n.startswith("connectctl/cli/templates/")
    }
    assert shipped == {
        f"connectctl/cli/templates/{p.name}" for p in (ROOT / "cli/templates").iterdir()
    }


def test_nothing_called_cli_or_ops_reaches_site_packages(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert {n.split("/")[0].split("-")[0] for n in zipfile.ZipFile(wheel).namelist()} == {
        "connectctl"
    }


def test_the_license_is_named_in_the_metadata_and_its_text_is_in_both_archives(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    (sdist,) = built.glob("*.tar.gz")
    text = (ROOT / "LICENSE").read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        assert b"\nLicense-Expression: Apache-2.0\n" in archive.read(metadata)
        assert archive.read(metadata.replace("METADATA", "licenses/LICENSE")) == text
    with tarfile.open(sdist) as archive:
        (shipped,) = (n for n in archive.getnames() if n.count("/") == 1 and n.endswith("/LICENSE"))
        file = archive.extractfile(shipped)
        assert file is not None
        assert file.read() == text


def test_completions_reach_both_archives(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        sources = archive.getnames()
    for file in FILES.values():
        shipped = [n for n in zipfile.ZipFile(wheel).namelist() if n.endswith(f"/{file}")]
        assert len(shipped) == 2, shipped
        assert f"connectctl/completions/{file}" in shipped, "for connectctl completion"
        assert any("share/" in n for n in shipped), "for the shells"
        assert any(n.endswith(f"/completions/{file}") for n in sources), file


@pytest.mark.parametrize("module", ["connectctl", "connectctl.cli"])
def test_python_runs_it_by_its_name_as_the_command_does(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()[:1], done.stderr) == (0, ["connectctl"], "")


def test_the_container_file_installs_the_extras_that_there_are() -> None:
    steps = (ROOT / "Containerfile").read_text()
    assert re.findall(r"^FROM \S+ AS (\w+)$", steps, re.MULTILINE) == ["build", "base", "spark"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(re.findall(r"\[(\w+)\]\"", steps)) - {"connectctl"} == {"spark"} <= extras.keys()
    assert "USER connectctl" in steps.splitlines()[-1]


def test_the_tree_is_found_under_its_name() -> None:
    """An editable install is a path to ``src``: each package at the root has its link there, and so
    have the completions and the findings.
    """
    source = ROOT / "src/connectctl"
    links = {
        path.relative_to(source).as_posix(): path for path in source.rglob("*") if path.is_symlink()
    }
    assert {name: path.resolve() for name, path in links.items()} == {
        top: ROOT / top for top in (*TOPS, COMPLETIONS, FINDINGS)
    }
    assert not any(path.readlink().is_absolute() for path in links.values())


def test_a_checkout_whose_links_are_text_files_says_so(tmp_path: Path) -> None:
    package = tmp_path / "connectctl"
    package.mkdir()
    shutil.copy(ROOT / "src/connectctl/__init__.py", package)
    (package / "cli").write_text("../../cli")
    done = subprocess.run(
        [sys.executable, "-c", "import connectctl.cli"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, last.startswith("ImportError: src/connectctl/cli is no link")) == (
        1,
        True,
    ), done.stderr
    assert "git config core.symlinks true" in last
