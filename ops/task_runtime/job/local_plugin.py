"""Finds a connector's module in the directory of the job file. The driver sends it to the executors
with the modules that it imports.

Installed modules and those of ``plugins`` have priority over modules in that directory: a file
``json.py`` there replaces nothing. Only modules in ``import`` statements are sent, not those that
are imported by a computed name.
"""

from __future__ import annotations

import ast
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path


def import_from(directory: Path) -> None:
    """Add ``directory`` to the end of this process's import path."""
    folder = str(directory.resolve())
    if folder not in sys.path:
        sys.path.append(folder)


def modules_in(directory: Path) -> list[str]:
    """Return the names of modules and packages in ``directory``, sorted."""
    files = [path.stem for path in directory.glob("*.py") if path.stem.isidentifier()]
    return sorted({*files, *(path.parent.name for path in directory.glob("*/__init__.py"))})


def sources_of(module: str, directory: Path) -> tuple[Path, ...]:
    """Return the files below ``directory`` of ``module`` and of the modules that it imports; none
    if ``module`` is not in ``directory``.
    """
    top, found, remaining = directory.resolve(), dict[Path, None](), [module]
    names: set[str] = set()
    while remaining:
        name = remaining.pop().partition(".")[0]
        if name in names:
            continue
        names.add(name)
        for path in _files(name, top):
            found[path] = None
            remaining += _imported(path)
    return tuple(sorted(found))


def archive_of(module: str, directory: Path, into: Path) -> Path | None:
    """Write a zip with the sources of ``module`` for executors. Return its path, or None if the
    module is not in ``directory``.
    """
    files = sources_of(module, directory)
    if not files:
        return None
    path = into / f"beside-{module.partition('.')[0]}.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            archive.write(file, file.relative_to(directory.resolve()).as_posix())
    return path


def _files(name: str, top: Path) -> list[Path]:
    """Return the files of the module or package ``name`` if Python would import it from ``top``."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return []
    origin = Path(spec.origin).resolve() if spec is not None and spec.origin else None
    if origin == top / f"{name}.py":
        return [origin]
    return sorted((top / name).rglob("*.py")) if origin == top / name / "__init__.py" else []


def _imported(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # an import of it raises the same error
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
