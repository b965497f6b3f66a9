"""Whether a download was finished."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from connectctl.ops.sandbox.jars.cache import MANIFEST, Jars, finished, write_manifest
from connectctl.ops.sandbox.jars.older_releases import Fetched


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "a.jar").write_bytes(b"1234")
    (tmp_path / "b.jar").write_bytes(b"12")
    return tmp_path


def test_a_finished_download_fits(jars: Path) -> None:
    write_manifest(jars, Fetched({"y": "4.3.1"}, ("x",)))
    written = json.loads((jars / MANIFEST).read_text())
    digests = {
        "broker/a.jar": hashlib.sha256(b"1234").hexdigest(),
        "b.jar": hashlib.sha256(b"12").hexdigest(),
    }
    assert written == {
        "files": {"broker/a.jar": 4, "b.jar": 2},
        "digests": digests,
        "missing": ["x"],
        "older": {"y": "4.3.1"},
    }
    assert finished(jars) == Jars(jars, ("x",), {"y": "4.3.1"})


def test_a_download_from_before_older_plugins_were_taken_fits(jars: Path) -> None:
    write_manifest(jars, Fetched())
    written = json.loads((jars / MANIFEST).read_text())
    del written["older"]
    (jars / MANIFEST).write_text(json.dumps(written))
    assert finished(jars) == Jars(jars)


def test_a_jar_of_the_same_size_and_another_content_does_not_fit(jars: Path) -> None:
    write_manifest(jars, Fetched())
    (jars / "b.jar").write_bytes(b"21")
    assert finished(jars) is None


def test_what_does_not_fit(jars: Path) -> None:
    write_manifest(jars, Fetched())
    (jars / "b.jar").write_bytes(b"1")
    assert finished(jars) is None
    (jars / "b.jar").unlink()
    assert finished(jars) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"files": 1}', "null", '{"files": {}, "missing": []}']
)
def test_what_is_no_manifest_is_none(tmp_path: Path, text: str) -> None:
    assert finished(tmp_path) is None
    (tmp_path / MANIFEST).write_text(text)
    assert finished(tmp_path) is None


def test_nothing_is_not_a_finished_download(tmp_path: Path) -> None:
    write_manifest(tmp_path, Fetched())
    assert finished(tmp_path) is None
