"""Kafka's own transformations in a Java process, compiled here: what they make of a record."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from connectctl.ops.clients.java import find_java
from connectctl.ops.sandbox.jars.cache import cached
from connectctl.ops.sandbox.jars.versions import LATEST, parse_version
from sparkjvm import SHORT_LIVED

SOURCE = Path(__file__).with_name("TransformPeer.java")
Stages = Sequence[Mapping[str, str]]
Outcome = tuple[bytes | None, bytes | None, bytes | None] | str
"""Topic, key and value; or dropped, or error."""


class TransformPeer:
    def __init__(self, process: subprocess.Popen[str]):
        assert process.stdin is not None
        assert process.stdout is not None
        self._in: IO[str] = process.stdin
        self._out: IO[str] = process.stdout

    def apply(self, stages: Stages, value: bytes, *, schemas: bool) -> tuple[Outcome, str]:
        """Return what becomes of a record with ``value``, and the whole answer."""
        request: Any = {"schemas": schemas, "stages": stages}
        request["value"] = base64.b64encode(value).decode()
        self._in.write(json.dumps(request) + "\n")
        self._in.flush()
        answer = self._out.readline().rstrip("\n")
        kind, *parts = answer.split(" ")
        if kind != "ok":
            return kind, answer
        topic, key, made = (None if each == "-" else base64.b64decode(each) for each in parts)
        return (topic, key, made), answer


@contextmanager
def transform_peer(directory: Path) -> Iterator[TransformPeer]:
    """Yield the process. Skips where Java has no compiler."""
    java, jars = find_java().path, cached(parse_version(LATEST))
    modules = subprocess.run(
        [java, "--list-modules"], capture_output=True, text=True, check=True, timeout=600
    ).stdout
    if jars is None or "jdk.compiler" not in modules:
        pytest.skip("Java has no compiler, or the jars of Kafka are not there yet")
    path = os.pathsep.join(map(str, sorted((jars.root / "connect").glob("*.jar"))))
    compiler = [
        java,
        *SHORT_LIVED.split(),
        "-m",
        "jdk.compiler/com.sun.tools.javac.Main",
        "-cp",
        path,
    ]
    subprocess.run([*compiler, "-d", str(directory), str(SOURCE)], check=True, timeout=600)
    process = subprocess.Popen(
        [
            java,
            *SHORT_LIVED.split(),
            "-Xmx128m",
            "-cp",
            f"{path}{os.pathsep}{directory}",
            "TransformPeer",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield TransformPeer(process)
    finally:
        process.kill()
        process.communicate()
