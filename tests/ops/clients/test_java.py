"""Finding Java."""

from __future__ import annotations

from pathlib import Path

import pytest
from connectctl.ops.clients import java
from connectctl.ops.clients.java import find_java, major_version
from connectctl.ops.core.errors import ConnectctlError


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "22-ea" 2024', 22),
        ("Unable to locate a Java Runtime.", None),
        ("", None),
    ],
)
def test_the_major_version(text: str, major: int | None) -> None:
    assert major_version(text) == major


def fake_java(directory: Path, text: str, code: int = 0) -> Path:
    directory.mkdir(parents=True)
    file = directory / "java"
    file.write_text(f"#!/bin/sh\necho '{text}' >&2\nexit {code}\n")
    file.chmod(0o755)
    return file


def test_java_home_comes_first_and_an_old_one_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "home" / "bin", 'openjdk version "11.0.2"')
    on_path = fake_java(tmp_path / "path", 'openjdk version "21.0.2"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert find_java().path == str(on_path)
    newer = fake_java(tmp_path / "newer" / "bin", 'openjdk version "17"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "newer"))
    assert find_java().path == str(newer)


def test_without_java_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConnectctlError, match="apt install openjdk-17-jre-headless") as none:
        find_java()
    assert "\n" not in str(none.value)
    fake_java(tmp_path / "bin", "Unable to locate a Java Runtime.", code=1)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ConnectctlError, match="is not a working Java"):
        find_java()


def test_a_java_that_did_not_answer_in_time_is_not_called_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = fake_java(tmp_path / "bin", 'openjdk version "21.0.2"')
    slow.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(java, "PATIENCE", 0.1)
    with pytest.raises(ConnectctlError, match=r"did not report its version within 0\.1 s"):
        find_java()
