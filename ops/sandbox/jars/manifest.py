"""The list of the jars of one Kafka version, written last: where it is and fits, the download was finished."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """``files`` are relative names with sizes in bytes; ``missing`` the optional modules that the repository lacked."""

    files: Mapping[str, int]
    missing: tuple[str, ...] = ()


def of(directory: Path, missing: tuple[str, ...]) -> Manifest:
    jars = sorted(directory.rglob("*.jar"))
    return Manifest({str(jar.relative_to(directory)): jar.stat().st_size for jar in jars}, missing)


def write(manifest: Manifest, directory: Path) -> None:
    (directory / NAME).write_text(json.dumps(asdict(manifest), indent=1))


def read(directory: Path) -> Manifest | None:
    """The manifest of ``directory``, None where there is none that can be read."""
    try:
        data = json.loads((directory / NAME).read_text())
        return Manifest(data["files"], tuple(data["missing"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def fits(manifest: Manifest, directory: Path) -> bool:
    """Whether ``directory`` holds the files of the manifest, by name and size."""
    if not manifest.files:
        return False
    try:
        return all((directory / name).stat().st_size == size for name, size in manifest.files.items())
    except OSError:
        return False
