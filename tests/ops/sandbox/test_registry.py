"""The Schema Registry of a sandbox is unpacked by every Python that connectctl runs on."""

from __future__ import annotations

import tarfile
from pathlib import Path

from connectctl.ops.sandbox.registry import unpack


def test_an_archive_is_unpacked_by_every_python(tmp_path: Path) -> None:
    (tmp_path / "app-runner.jar").write_bytes(b"jar")
    archive = tmp_path / "app.tar.gz"
    with tarfile.open(archive, "w:gz") as made:
        made.add(tmp_path / "app-runner.jar", "lib/app-runner.jar")
    unpack(archive, tmp_path / "unpacked")
    assert (tmp_path / "unpacked/lib/app-runner.jar").read_bytes() == b"jar"
