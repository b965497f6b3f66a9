"""Imports point one way, and the network is met in one folder; read from the source, so that
nothing slips by.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from sources import FILES, ROOT, below, name, nodes, tree

PUBLIC = sorted((ROOT / "src" / "connectctl").glob("*.py"))
TEXTS = {"urllib.parse"}
"""Modules of network libraries that only read and write texts."""
NETWORK = {
    "confluent_kafka",
    "kafka",
    "httpx",
    "pyspark",
    "subprocess",
    "socket",
    "sqlite3",
    "psutil",
    "urllib",
    "http",
}
MEETS_THE_WORLD = (
    "ops/clients/",
    "ops/task_runtime/",
    "ops/jobs/",
    "ops/sandbox/",
    "ops/core/journal",
)
LATE = {
    "confluent_kafka",
    "kafka",
    "httpx",
    "pyspark",
    "psutil",
    "rich",
    "yaml",
    "asyncio",
    "jinja2",
    "markupsafe",
}
"""What may only be imported where it is used, because start-up counts."""
CLIENTS = {"confluent_kafka", "kafka", "httpx", "pyspark", "pyarrow", "numpy", "pandas"}


def imports(path: Path, *, late: bool = True) -> Iterator[str]:
    """The full names of the modules that ``path`` imports; without ``late``, only those imported at
    start.
    """
    for node in _everywhere(path) if late else _at_start(path):
        yield from _modules(node)


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert node.level == 0, f"imports by dots: {ast.unparse(node)}"
    return [node.module or ""]


@cache
def _everywhere(path: Path) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in nodes(path) if isinstance(node, ast.Import | ast.ImportFrom)]


def _at_start(path: Path) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in tree(path).body if isinstance(node, ast.Import | ast.ImportFrom)]


def found(
    paths: Iterable[Path], forbidden: Callable[[Path], Iterable[str]]
) -> dict[str, list[str]]:
    """The names that each file may not import and does."""
    by_file = {name(path): sorted(set(forbidden(path))) for path in paths}
    return {path: names for path, names in by_file.items() if names}


ABOVE_OF = {"ops": ("connectctl.cli", "connectctl.migrations"), "migrations": ("connectctl.cli",)}


@pytest.mark.parametrize("top", ABOVE_OF)
def test_imports_point_one_way(top: str) -> None:
    assert (
        found(below(top), lambda path: (m for m in imports(path) if m.startswith(ABOVE_OF[top])))
        == {}
    )


def test_the_network_is_met_in_one_folder() -> None:
    others = [path for path in FILES if not name(path).startswith(MEETS_THE_WORLD)]
    assert (
        found(
            others,
            lambda path: (
                m for m in imports(path) if m not in TEXTS and {m, m.split(".")[0]} & NETWORK
            ),
        )
        == {}
    )


def test_operations_see_only_the_types_of_clients() -> None:
    pure = [path for path in below("ops") if not name(path).startswith(MEETS_THE_WORLD)]
    clients, types = "connectctl.ops.clients", {"connectctl.ops.clients.protocols"}
    assert (
        found(pure, lambda path: {m for m in imports(path) if m.startswith(clients)} - types) == {}
    )


ABOVE = tuple(
    f"connectctl.ops.{each}"
    for each in ("operations", "checks", "task_runtime", "jobs", "audit", "sandbox")
)


def test_clients_know_nothing_of_what_uses_them() -> None:
    assert (
        found(below("ops/clients"), lambda path: (m for m in imports(path) if m.startswith(ABOVE)))
        == {}
    )


OF_CONFLUENT = (
    "ops/clients/librdkafka/",
    "ops/clients/registry/",
)
"""Packages that are only imported where confluent-kafka is used."""


def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    def at_once(path: Path) -> Iterator[str]:
        used = {"confluent_kafka"} if name(path).startswith(OF_CONFLUENT) else set()
        yield from (m for m in imports(path, late=False) if m.split(".")[0] in LATE - used)

    assert found(FILES, at_once) == {}


FOUNDATION = ("core.errors", "core.finding", "core.rule", "core.rule_docs")
"""Errors and findings: every package may import them. They mask secrets, and name a missing right."""
PACKAGES = {
    "config": "",
    "kafka": "config",
    "connect": "config kafka",
    "core": "config kafka",
    "clients": "config connect core kafka",
    "connector_config": "clients config connect core kafka",
    "operations": "clients config connect connector_config core kafka",
    "checks": "clients config connect connector_config core kafka operations",
    "sandbox": "clients config connect core kafka",
    "task_runtime": "clients config connect connector_config core kafka operations",
    "audit": "connect kafka task_runtime",
    "jobs": "audit clients connect kafka operations task_runtime",
}
"""The packages of ``ops`` that each of them imports, types included; ``FOUNDATION`` is not counted.

Each package imports only packages above it in this table.
"""


def _packages_of(path: Path) -> set[str]:
    """Return the packages of ``ops`` that a module imports, without ``FOUNDATION``."""
    names = (m.removeprefix("connectctl.ops.") for m in imports(path) if ".ops." in m)
    return {each.split(".")[0] for each in names if not each.startswith(FOUNDATION)}


def test_a_package_imports_only_the_packages_that_are_known() -> None:
    drawn = {
        package: set[str]().union(*map(_packages_of, below(f"ops/{package}"))) - {package}
        for package in PACKAGES
    }
    assert {package: " ".join(sorted(names)) for package, names in drawn.items()} == PACKAGES


def test_no_package_is_left_out_of_the_table() -> None:
    assert {p.parent.name for p in (ROOT / "ops").glob("*/__init__.py")} == set(PACKAGES)


def test_packages_are_layers() -> None:
    lower: set[str] = set()
    for package, imported_packages in PACKAGES.items():
        assert set(imported_packages.split()) <= lower, package
        lower.add(package)


def test_errors_and_findings_import_little() -> None:
    for each in FOUNDATION:
        found = set(imports(ROOT / "ops" / f"{each.replace('.', '/')}.py"))
        ours = {m.removeprefix("connectctl.ops.") for m in found if ".ops." in m}
        assert ours <= {"config.masking", "core.times", "kafka.acls", *FOUNDATION}, each


KNOWN = {
    "ops/config/": ("config", "core.errors", "core.finding"),
    "ops/kafka/": ("kafka", "config", "core.errors", "core.finding"),
    "ops/connect/": ("connect", "kafka", "config", "core.errors", "core.finding", "core.rule"),
}
"""What packages of values and pure rules may know of ``connectctl.ops``."""


@pytest.mark.parametrize("package", KNOWN)
def test_values_and_pure_rules_know_only_each_other(package: str) -> None:
    allowed = tuple(f"connectctl.ops.{each}" for each in KNOWN[package])
    for path in (p for p in FILES if name(p).startswith(package)):
        assert [
            m for m in imports(path) if m.startswith("connectctl.") and not m.startswith(allowed)
        ] == [], path


def module(path: Path) -> str:
    parts = path.relative_to(path.parent if path in PUBLIC else ROOT).with_suffix("").parts
    return ".".join(("connectctl", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def imported(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """The modules of ``modules`` that ``path`` imports: for types, and within functions, as
    well.
    """
    for node in _everywhere(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found = f"{node.module}.{alias.name}"
                yield found if found in modules else str(node.module)


def test_no_module_imports_what_imports_it() -> None:
    modules = {module(path): path for path in (*FILES, *PUBLIC)}
    graph = {
        name: set(imported(path, modules)) & modules.keys() - {name}
        for name, path in modules.items()
    }
    TopologicalSorter(graph).prepare()


def _private(path: Path) -> set[str]:
    """Private names of other modules of ours that a module imports or reads."""
    ours = [
        n
        for n in _everywhere(path)
        if isinstance(n, ast.ImportFrom) and str(n.module).startswith("connectctl")
    ]
    names = {alias.asname or alias.name for node in ours for alias in node.names}
    read = {
        node.attr
        for node in nodes(path)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in names
    }
    # The one that is public, in a NamedTuple.
    return {each for each in names | read if each.startswith("_") and not each.startswith("__")} - {
        "_fields"
    }


def test_no_module_uses_a_private_name_of_another() -> None:
    assert found(FILES, _private) == {}


START = 12
"""How many modules of connectctl its help may load. What is loaded is what start-up costs on any
machine.
"""
SHOWN = """
import atexit, sys
atexit.register(lambda: print("\\0" + " ".join(sys.modules)))
from connectctl.cli.__main__ import main
sys.argv = ["connectctl", "--help"]
main()
"""


def test_help_loads_typer_and_little_else() -> None:
    done = subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rpartition("\0")[2].split())
    assert {"connectctl.cli.main", "typer"} <= loaded
    plain = subprocess.run(
        [sys.executable, "-c", "import sys, typer, rich; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    own = {name for name in loaded if name.split(".")[0] == "connectctl"}
    assert len(own) <= START, sorted(own)
    others = {name.split(".")[0] for name in loaded - own} - {
        name.split(".")[0] for name in plain.stdout.split()
    }
    assert others <= set(sys.stdlib_module_names) | {"shellingham"}


EVERY_HELP = """
import sys
from connectctl.cli.main import COMMANDS, app
for command in COMMANDS:
    try:
        app([command, "--help"])
    except SystemExit as e:
        assert not e.code, command
print("\\0" + " ".join(sys.modules))
"""


LIGHT = """
import sys
from connectctl.cli.main import app
for line in %r:
    try:
        app(line.split())
    except SystemExit as e:
        assert not e.code, line
print("\\0" + " ".join(sys.modules))
"""


def test_commands_that_ask_no_cluster_load_no_client_of_one(tmp_path: Path) -> None:
    lines = ["context list", "runs list", "docs man", "completion bash"]
    nowhere = {
        "CONNECTCTL_CONFIG": str(tmp_path / "config.yaml"),
        "CONNECTCTL_JOURNAL": str(tmp_path / "journal"),
    }
    command = [sys.executable, "-c", LIGHT % lines]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **nowhere}
    )
    assert done.returncode == 0, done.stderr
    assert {
        module.split(".")[0] for module in done.stdout.rpartition("\0")[2].split()
    } & CLIENTS == set()


def test_no_commands_help_loads_a_heavy_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", EVERY_HELP], capture_output=True, text=True, check=True
    )
    assert {module.split(".")[0] for module in done.stdout.rpartition("\0")[2].split()} & (
        LATE | {"sqlite3"}
    ) == set()
