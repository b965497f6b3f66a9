"""Finding a Java that Kafka can run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from connectctl.ops.core.errors import ConnectctlError

OLDEST = 17
PATIENCE = 120.0
"""Seconds for a Java to report its version, however loaded the machine is."""
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


@dataclass(frozen=True, slots=True)
class Java:
    """A ``java`` that Kafka runs on. ``build`` is its own description: two with one build are
    interchangeable.
    """

    path: str
    build: str


def find_java() -> Java:
    """Return the first ``java`` of version 17 or later: that of JAVA_HOME, then that on PATH.

    Raises ConnectctlError with what to install.
    """
    rejected = []
    for path in dict.fromkeys(_candidates()):
        if (build := _build(path)) is None:
            rejected.append(f"{path} did not report its version within {PATIENCE:g} s")
            continue
        major = major_version(build)
        if major is not None and major >= OLDEST:
            return Java(path, build)
        rejected.append(
            f"{path} is {'not a working Java' if major is None else f'version {major}'}"
        )
    raise ConnectctlError(
        f"Kafka needs Java {OLDEST} or later",
        why="; ".join(rejected) or "none found in JAVA_HOME or on PATH",
        next_step="Install one (Debian: apt install openjdk-17-jre-headless; macOS: brew install "
        "openjdk@17), or set JAVA_HOME.",
        code="no-java",
    )


def major_version(text: str) -> int | None:
    """The major version in the output of ``java -version``, None when it is not that."""
    found = _VERSION.search(text)
    return int(found.group(1)) if found else None


def _candidates() -> Iterator[str]:
    if home := os.environ.get("JAVA_HOME"):
        yield str(Path(home) / "bin" / "java")
    if found := shutil.which("java"):
        yield found


def _build(java: str) -> str | None:
    """Return what ``java -version`` prints, empty if it does not work; None if it did not end in
    time.
    """
    try:
        run = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError:
        return ""
    # macOS ships a java that only reports that none is installed.
    return run.stderr + run.stdout if run.returncode == 0 else ""
