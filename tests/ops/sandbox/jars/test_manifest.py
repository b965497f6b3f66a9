"""Whether a download was finished."""

from __future__ import annotations

from pathlib import Path

import pytest
from connectctl.ops.sandbox.jars import manifest


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "a.jar").write_bytes(b"1234")
    (tmp_path / "b.jar").write_bytes(b"12")
    return tmp_path


def test_a_finished_download_fits(jars: Path) -> None:
    manifest.write(manifest.of(jars, ("x",)), jars)
    read = manifest.read(jars)
    assert read == manifest.Manifest({"broker/a.jar": 4, "b.jar": 2}, ("x",))
    assert manifest.fits(read, jars)


def test_what_does_not_fit(jars: Path) -> None:
    known = manifest.of(jars, ())
    (jars / "b.jar").write_bytes(b"1")
    assert not manifest.fits(known, jars)
    (jars / "b.jar").unlink()
    assert not manifest.fits(known, jars)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": 1}', "null"])
def test_what_is_no_manifest_is_none(tmp_path: Path, text: str) -> None:
    assert manifest.read(tmp_path) is None
    (tmp_path / manifest.NAME).write_text(text)
    assert manifest.read(tmp_path) is None


def test_nothing_is_not_a_finished_download(tmp_path: Path) -> None:
    assert not manifest.fits(manifest.of(tmp_path, ()), tmp_path)
