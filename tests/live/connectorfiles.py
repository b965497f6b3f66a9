"""Connectors of a test, their files, and `connectctl connectors` on them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from live.real import FILE_SOURCE, Ran, connectctl, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox


@pytest.fixture
def name(cluster: Sandbox, tmp_path: Path) -> Iterator[str]:
    """A connector that is not there; its input is, and it is gone after the test."""
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    name = f"live-{uuid.uuid4().hex[:8]}"
    yield name
    for each in (name, f"{name}-b"):
        if config_of(cluster, each) is not None:
            workers(cluster).delete(each)


def run(cluster: Sandbox, *args: str, code: int = 0) -> Ran:
    ran = connectctl("--context", f"sandbox-{cluster.spec.name}", "--timeout", "60", *args)
    assert ran.code == code, ran.out + ran.err
    return ran


def config_of(cluster: Sandbox, name: str) -> dict[str, str] | None:
    answer = workers(cluster).call("GET", f"/connectors/{name}/config")
    assert answer.status_code in (200, 404), answer.text
    return dict(answer.json()) if answer.status_code == 200 else None


def config(name: str, directory: Path, **more: str) -> dict[str, str]:
    return {
        "connector.class": FILE_SOURCE,
        "topic": name,
        "file": str(directory / "in.txt"),
        "tasks.max": "1",
        "name": name,
    } | more


def file(directory: Path, suffix: str, values: dict[str, str], **around: Any) -> str:
    path = directory / f"given{suffix}"
    if suffix == ".properties":
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    else:
        path.write_text(json.dumps({"name": values["name"], "config": values, **around}))
    return str(path)


def last_run() -> str:
    return str(connectctl("runs", "list", "-o", "json").json["runs"][0]["id"])
