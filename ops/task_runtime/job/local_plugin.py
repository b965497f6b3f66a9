"""A connector's module that lies beside its job file: found by the driver, and sent to the
executors with what it imports.

What is installed, or comes with ``plugins``, goes before what lies beside the job: a file called
``json.py`` there hides nothing. Modules count that can be seen in an ``import`` of the source; what
is imported by a computed name does not travel.
"""

from __future__ import annotations

import ast
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path


def import_from(directory: Path) -> None:
    """Let this process import what lies in ``directory``, after everything else."""
    place = str(directory.resolve())
    if place not in sys.path:
        sys.path.append(place)


def modules_in(directory: Path) -> list[str]:
    """The modules and packages that could be imported from ``directory``."""
    files = [path.stem for path in directory.glob("*.py") if path.stem.isidentifier()]
    return sorted({*files, *(path.parent.name for path in directory.glob("*/__init__.py"))})


def sources_of(module: str, directory: Path) -> tuple[Path, ...]:
    """The files below ``directory`` that ``module`` is made of, with those that these import; none
    where it is not there.
    """
    top, found, left = directory.resolve(), dict[Path, None](), [module]
    names: set[str] = set()
    while left:
        name = left.pop().partition(".")[0]
        if name in names:
            continue
        names.add(name)
        for path in _files(name, top):
            found[path] = None
            left += _imported(path)
    return tuple(sorted(found))


def archive_of(module: str, directory: Path, into: Path) -> Path | None:
    """A zip with the sources of ``module``, for executors; None where it does not lie beside the
    job.
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
    """The files of the module or package ``name``, where Python would import it from ``top``."""
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
    except (SyntaxError, ValueError):  # whoever imports it is told
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
