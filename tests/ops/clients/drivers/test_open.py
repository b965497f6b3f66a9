"""From a context to its drivers, and from a worker to its driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from connectctl.cli.session import Session
from connectctl.ops.clients.drivers.command import Command
from connectctl.ops.clients.drivers.manual import Manual
from connectctl.ops.clients.drivers.open import ByWorker, DriverContext, opened
from connectctl.ops.clients.drivers.properties_file import PropertiesFile
from connectctl.ops.clients.drivers.strimzi import Strimzi
from connectctl.ops.clients.protocols import RestartMode, WorkerDriver
from connectctl.ops.config.worker_section import WorkersSection
from connectctl.ops.core.errors import BadInput
from connectctl.ops.sandbox.driver import SandboxWorkers

CHANGE, RESTART = "set {host} {property} {value}", "restart {url}"


def driver(around: DriverContext | None = None, **section: Any) -> WorkerDriver:
    return opened(
        WorkersSection.model_validate(section), around or DriverContext(print, SandboxWorkers)
    )


def of(found: WorkerDriver, worker: str) -> WorkerDriver:
    assert isinstance(found, ByWorker)
    return found.of(worker)


def test_each_driver_is_opened_with_what_the_section_says() -> None:
    command = driver(driver="command", change=CHANGE, restart=RESTART, timeout=7)
    assert isinstance(command, Command)
    assert command.lines.commands.timeout == 7
    assert set(command.lines.templates) == {"change", "restart"}
    file = driver(driver="properties-file", file="/etc/{host}", restart=RESTART)
    assert isinstance(file, PropertiesFile)
    assert file.file == "/etc/{host}"
    strimzi = driver(
        driver="strimzi", resource="c", namespace="n", kubectl="oc", apply=False, roll_timeout=9
    )
    assert isinstance(strimzi, Strimzi)
    assert (strimzi.resource, strimzi.namespace, strimzi.kubectl, strimzi.apply) == (
        "c",
        "n",
        "oc",
        False,
    )
    assert strimzi.roll_timeout == 9
    sandbox = driver(driver="sandbox", sandbox="s")
    assert isinstance(sandbox, SandboxWorkers)
    assert sandbox.sandbox == "s"
    assert isinstance(driver(), Manual)


def test_a_worker_is_found_by_its_address_else_its_host_else_it_is_one_of_the_rest() -> None:
    each: dict[str, Any] = {
        "w1:8083": {"driver": "manual"},
        "w1": {"driver": "strimzi", "resource": "c"},
        "[::1]": {"driver": "sandbox", "sandbox": "s"},
    }
    found = driver(driver="command", change=CHANGE, restart=RESTART, each=each)
    assert of(found, "w1:8083").name == "manual"
    assert of(found, "w1:8084").name == "strimzi"
    assert of(found, "[::1]:8083").name == "sandbox"
    assert of(found, "w2:8083").name == "command"
    assert found.name == "command, manual, strimzi, sandbox"
    assert found.restart_mode("w1:8083") == RestartMode(by_hand=True)


def test_workers_of_one_kafkaconnect_share_its_driver() -> None:
    same: dict[str, Any] = {"driver": "strimzi", "resource": "c"}
    found = driver(each={"w1": same, "w2": same, "w3": {"driver": "strimzi", "resource": "d"}})
    assert of(found, "w1:1") is of(found, "w2:1")
    assert of(found, "w3:1") is not of(found, "w1:1")


def test_a_worker_that_nothing_is_said_about_is_told_by_the_check_and_refused() -> None:
    found = driver(driver="properties-file", restart=RESTART, each={"w1": {"file": "/a"}})
    assert found.check("w2:1") == (
        "Unknown how to change and restart worker w2:1: the driver properties-file requires file. "
        "Add it to the context under workers, or w2:1 under workers.each."
    )
    with pytest.raises(BadInput, match="Unknown how to change and restart worker w2:1"):
        found.change("w2:1", "p", "v")
    with pytest.raises(BadInput, match="Unknown how to change and restart worker w2:1"):
        found.restart("w2:1")


def test_a_sandbox_driver_outside_of_a_sandbox_needs_its_name() -> None:
    assert "requires sandbox" in str(driver(driver="sandbox").check("w:1"))


def session(tmp_path: Path, text: str, context: str) -> Session:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    return Session(config=file, context=context)


def test_the_session_opens_the_contexts_driver_and_hides_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_REST", "rest-secret")
    opened_ = session(
        tmp_path,
        "contexts:\n  p:\n    rest: ['https://w1:8083']\n    client: {sasl.password: "
        "kafka-secret}\n    rest_auth: {password: {env: OF_REST}, token: {env: NOT_THERE}}\n    "
        "workers:\n      driver: command\n      change: set {property} {value}\n      restart: "
        "echo {url} kafka-secret rest-secret; exit 1\n",
        "p",
    ).driver()
    with pytest.raises(Exception, match="failed") as error:
        opened_.restart("w1:8083")
    assert "https://w1:8083 ****** ******" in str(error.value)
    assert "-secret" not in str(error.value)


def test_without_a_section_a_person_does_it_and_hears_of_it(tmp_path: Path) -> None:
    heard: list[str] = []
    found = session(tmp_path, "contexts: {p: {group_id: g}}", "p").driver(heard.append)
    found.change("w1:8083", "a", "b")
    found.restart("w1:8083")
    assert heard == [
        "Set a=b in the properties of worker w1:8083.",
        "Restart worker w1:8083, and no other.",
    ]


def test_a_sandboxes_context_has_the_sandboxes_driver(tmp_path: Path) -> None:
    for section in ("", ", workers: {driver: sandbox}"):
        found = session(
            tmp_path, f"contexts: {{sandbox-s: {{group_id: g{section}}}}}", "sandbox-s"
        ).driver()
        assert found == SandboxWorkers("s", "g")
