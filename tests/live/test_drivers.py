"""Drivers change and restart a real worker."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from connectctl.cli.session import Session
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.sandbox.driver import SandboxWorkers
from fakes.sandboxes import properties_file
from live.real import eventually

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import WorkerDriver
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
# Tells that the worker runs with the new file: what it is called by the brokers, which it prints at
# its start.
KEY = "client.rack"


@pytest.fixture
def worker(cluster: Sandbox) -> Iterator[str]:
    """The second worker of the shared cluster, which is as it was when the test is over."""
    address, file = cluster.rest_urls[1].removeprefix("http://"), properties_file(cluster, 2)
    before, pid = file.read_bytes(), cluster.group.workers[1].pid
    yield address
    for left in file.parent.glob(f"{file.name}.connectctl-*"):
        left.unlink()
    file.write_bytes(before)
    if cluster.group.workers[1].pid != pid:
        cluster.group.start_worker(2)


def answers(worker: str) -> bool:
    try:
        return httpx.get(f"http://{worker}/", timeout=120).status_code == 200
    except httpx.HTTPError:
        return False


def test_a_sandboxes_context_changes_and_restarts_its_worker(cluster: Sandbox, worker: str) -> None:
    driver = Session(context="sandbox-tests").driver()
    assert driver == SandboxWorkers("tests", cluster.group_id)
    pid = cluster.group.workers[1].pid
    assert driver.check(worker) is None
    driver.change(worker, KEY, "of-the-sandbox")
    told = driver.configured(worker, KEY)
    assert told is not None
    assert told.value == "of-the-sandbox"
    driver.restart(worker)
    assert cluster.group.workers[1].pid != pid
    eventually(lambda: answers(worker))


def test_a_properties_file_and_a_shell_command_do_the_same(
    cluster: Sandbox, worker: str, tmp_path: Path
) -> None:
    file, original = properties_file(cluster, 2), properties_file(cluster, 2).read_text()
    # As an operator would restart a service, with a program that knows the sandbox.
    script = tmp_path / "restart.py"
    script.write_text(
        "import sys\nfrom connectctl.ops.sandbox.driver import SandboxWorkers\n"
        "SandboxWorkers('tests').restart(sys.argv[1])\nprint('restarted', sys.argv[1])\n"
    )
    driver = described(tmp_path, file, f"{shlex.quote(sys.executable)} {script} {{worker}}")
    pid = cluster.group.workers[1].pid
    said = driver.change(worker, KEY, "of-the-file")
    assert file.read_text() == f"{original}{KEY}=of-the-file\n"
    (backup,) = file.parent.glob(f"{file.name}.connectctl-*")
    assert backup.read_text() == original
    assert str(backup) in str(said)
    assert driver.restart(worker) == f"restarted {worker}"
    assert cluster.group.workers[1].pid != pid
    eventually(lambda: answers(worker))


def test_a_restart_that_hangs_or_fails_leaves_the_worker_serving(
    worker: str, cluster: Sandbox, tmp_path: Path
) -> None:
    pid = cluster.group.workers[1].pid
    for command, why in (
        ("sleep 600", "took longer than 1 s"),
        ("echo no such unit; exit 5", "no such unit"),
    ):
        driver = described(tmp_path, properties_file(cluster, 2), command, "      timeout: 1\n")
        with pytest.raises(ConnectctlError, match=why):
            driver.restart(worker)
    assert cluster.group.workers[1].pid == pid
    assert answers(worker)


def test_a_worker_that_the_sandbox_does_not_have_is_refused(cluster: Sandbox) -> None:
    driver = SandboxWorkers("tests")
    assert "No worker of group" in str(driver.check("127.0.0.1:1"))
    with pytest.raises(ConnectctlError, match="Sandbox not found: nowhere"):
        SandboxWorkers("nowhere").restart("127.0.0.1:1")


def described(directory: Path, file: Path, restart: str, more: str = "") -> WorkerDriver:
    """The driver of a context with a properties file."""
    config = directory / "config.yaml"
    config.write_text(
        "contexts:\n  drivers:\n    group_id: g\n    workers:\n      driver: properties-file\n"
        f"      file: {file}\n      restart: {restart}\n{more}"
    )
    return Session(config=config, context="drivers").driver()
