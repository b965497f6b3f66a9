"""What can be known of the documentation without a cluster: its links, files, and examples in YAML
and Python.
"""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from connectctl.cli import main
from connectctl.ops.config import context_file, strimzi
from connectctl.ops.task_runtime.job import job_file
from documentation import EXAMPLE, PAGES, ROOT, Block, blocks, name
from fakes.connectorfiles import parse
from sources import FILES, below
from sources import text as source

README = ROOT / "README.md"
GUIDES = [page for page in PAGES if page.parent.name in ("commands", "how-to")]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in [
                _anchor(h) for h in re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
            ], link


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, left = {README}, [README]
    while left:
        page = left.pop()
        for link in LINK.findall(page.read_text()):
            target = (page.parent / link.partition("#")[0]).resolve()
            new = {target, *(target.glob("*.md") if target.is_dir() else ())} - reached
            reached |= new
            left += [path for path in new if path.suffix == ".md" and path.exists()]
    assert [name(page) for page in PAGES if page not in reached] == []


def test_every_command_has_its_page_and_its_row_in_the_readme() -> None:
    assert {page.stem for page in GUIDES if page.parent.name == "commands"} == {
        *main.COMMANDS,
        "README",
    }
    rows = re.findall(r"^\| \[.*$", README.read_text(), re.MULTILINE)
    pages = re.findall(r"docs/commands/(\w+)\.md\)", "".join(rows))
    assert sorted(pages) == sorted(main.COMMANDS)


@pytest.mark.parametrize("command", main.COMMANDS)
def test_a_page_of_a_command_begins_with_what_the_command_does(command: str) -> None:
    title, nothing, first, *_ = (ROOT / f"docs/commands/{command}.md").read_text().splitlines()
    assert title.startswith(f"# {command}: ")
    assert nothing == ""
    assert re.match(r"[A-Z][a-z]+s ", first), first


def test_every_row_of_the_readmes_table_has_an_example_of_its_command() -> None:
    rows = re.findall(r"^\| \[.*$", README.read_text(), re.MULTILINE)
    for row in rows:
        (example,) = EXAMPLE.findall(row)
        assert f"[{example.split()[1]}](" in row


def test_the_readme_is_one_screen() -> None:
    assert len(README.read_text().splitlines()) <= 90


def test_the_readmes_picture_was_made_by_the_commands_of_its_script_and_loads_nothing() -> None:
    (picture,) = re.findall(r"!\[.*\]\((.+\.svg)\)", README.read_text())
    root = ElementTree.parse(ROOT / picture).getroot()
    shown = " ".join("".join(root.itertext()).replace("\xa0", " ").split())
    script = (ROOT / "docs/site/terminal.py").read_text()
    commands_shown = re.findall(r'^    "(connectctl [^"]+)",$', script, re.MULTILINE)
    assert len(commands_shown) == 3
    assert [command for command in commands_shown if command not in shown] == []
    assert not {"href", "src"} & {key for element in root.iter() for key in element.attrib}
    assert "url(http" not in shown
    assert "@import" not in shown


EXTRA = re.compile(r"^\| `'\.(?:\[(\w+)\])?'` \|", re.MULTILINE)


def test_the_readme_and_the_page_on_installing_name_the_extras_that_there_are() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].keys()
    assert set(EXTRA.findall(README.read_text())) == {"", *extras}
    install = (ROOT / "docs/how-to/install.md").read_text()
    assert {*re.findall(r"'\.\[(\w+)\]'", install)} <= extras


def test_the_readmes_two_commands_are_those_of_the_package_and_of_ci() -> None:
    text = README.read_text()
    assert "pip install '.[spark]' && connectctl demo" in text
    assert "pip install -e '.[dev]' && pytest" in text
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert {"spark", "dev"} <= extras.keys()
    ci = (ROOT / ".ci/run").read_text()
    assert "pip install --quiet -e '.[dev]'" in ci
    assert "\npytest\n" in ci


BENCH = re.compile(r"`python (tests/bench/\w+\.py)([^`]*)`")


@pytest.mark.parametrize("page", ["docs/speed.md", "docs/scale.md"])
def test_commands_that_repeat_numbers_are_scripts_with_these_options(page: str) -> None:
    found = BENCH.findall((ROOT / page).read_text())
    assert len(found) >= 6
    for script, arguments in found:
        text = (ROOT / script).read_text()
        options = re.findall(r"--[a-z-]+", arguments)
        assert [option for option in options if f'"{option}"' not in text] == [], script


def test_the_page_on_speed_is_one_short_table_and_each_row_has_its_command() -> None:
    lines = (ROOT / "docs/speed.md").read_text().splitlines()
    rows = [line.strip("|").split(" | ") for line in lines if line.startswith("| ")][2:]
    assert len(rows) <= 14
    for row in rows:
        assert len(row) == 4
        assert BENCH.search(row[3]), row
        assert max(len(cell.strip()) for cell in row) <= 100, row


YAML = [pytest.param(block, id=name(page)) for page in GUIDES for block in blocks(page, "yaml")]


@pytest.mark.parametrize("block", YAML)
def test_yaml_is_a_context_file_or_a_job_or_manifests(block: Block, tmp_path: Path) -> None:
    if strimzi.GROUP in block.text or "/" in block.file:  # a directory of connectors
        assert all(given.config for given in parse(block.text.encode(), block.file))
    elif block.file:
        assert job_file.parse(block.text, tmp_path / block.file).config
    else:
        (tmp_path / "config.yaml").write_text(block.text)
        assert context_file.read(tmp_path / "config.yaml").content.current == "prod"


PYTHON = [pytest.param(block, id=name(page)) for page in GUIDES for block in blocks(page, "python")]


@pytest.mark.parametrize("block", PYTHON)
def test_python_uses_names_and_arguments_that_are_there(block: Block) -> None:
    tree = ast.parse(block.text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("connectctl"):
            module = importlib.import_module(node.module or "")
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "Target"
        ):
            from connectctl import Target

            Target(**{str(k.arg): ast.literal_eval(k.value) for k in node.keywords})


def test_messages_of_the_page_on_troubleshooting_are_those_of_the_program() -> None:
    page = (ROOT / "docs/how-to/troubleshooting.md").read_text()
    rows = page.partition("## By message")[2].partition("\n## ")[0]
    messages = re.findall(r"^\| `([^`]+)` \|", rows, re.MULTILINE)
    assert len(messages) > 10
    sources = "\n".join(source(path) for path in below("cli", "ops"))
    joined = re.sub(r'"\s*\n\s*f?"', "", sources)
    foreign = {"Connection refused", "Unauthorized", "RUNNING", "GET", "Describe on Group"}
    for message in messages:
        parts = [part.strip(" :") for part in message.split("…")]
        assert [
            part for part in parts if part and part not in foreign and part not in joined
        ] == [], message


def test_every_path_that_the_page_on_architecture_names_is_there() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    named = set(re.findall(r"`((?:cli|ops|migrations|tests|docs)/[\w./]*)`", page))
    assert len(named) > 70
    assert (
        sorted(
            path
            for path in named
            if not re.search(r"NAME|NNNN", path) and not (ROOT / path).exists()
        )
        == []
    )


def test_the_page_on_architecture_has_every_package() -> None:
    tree = (
        (ROOT / "docs/architecture.md")
        .read_text()
        .partition("## The tree")[2]
        .partition("\n## ")[0]
    )
    packages = {f"{path.parent.relative_to(ROOT).as_posix()}/" for path in FILES}
    assert packages == set(re.findall(r"^\| `([\w/]+/)` \|", tree, re.MULTILINE)) - {"tests/"}


SLASHED = re.compile(r"(?<![\w./-])(?:cli|ops|migrations|tests|docs)(?:/[\w-]+)+(?:\.(?:py|md))?")
DOTTED = re.compile(r"(?<![\w./-])(?:connectctl\.)?((?:cli|ops|migrations)(?:\.(?!_)\w+)+)")
FORMER = re.compile(r"``((?:model|edges|runtime|rolling|preflight)[./]\w[\w./]*)``")
"""Packages of before the move to today's tree, which no text names."""


def _is_module(dotted: str) -> bool:
    """Whether packages lead to a module; what follows its name are names in it."""
    parts = dotted.split(".")
    modules = [ROOT.joinpath(*parts[:n]).with_suffix(".py") for n in range(2, len(parts) + 1)]
    return ROOT.joinpath(*parts).is_dir() or any(path.is_file() for path in modules)


def _missing(text: str) -> list[str]:
    """Paths and modules that ``text`` names and that are not there; a decision may be named by its
    number alone.
    """
    paths = [path for path in SLASHED.findall(text) if not [*ROOT.glob(f"{path}*")]]
    return [
        *paths,
        *(name for name in DOTTED.findall(text) if not _is_module(name)),
        *FORMER.findall(text),
    ]


def test_every_module_that_a_source_names_is_there() -> None:
    missing = {path.relative_to(ROOT).as_posix(): _missing(source(path)) for path in FILES}
    assert {path: names for path, names in missing.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (
            "see ops/core/plan.py, docs/decisions/0004, ops.core.plan.Plan and connectctl.ops.core",
            [],
        ),
        ("``ops/runtime/streamwriter``", ["ops/runtime/streamwriter"]),
        ("as ops.core.nothing does, or ``model.rights``", ["ops.core.nothing", "model.rights"]),
    ],
)
def test_a_module_that_is_gone_is_found(text: str, missing: list[str]) -> None:
    assert _missing(text) == missing
