"""What every driver keeps to, however it changes and restarts workers: the same tests on all of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.clients.drivers.command import Command, ShellLines
from connectctl.ops.clients.drivers.command_runner import Commands
from connectctl.ops.clients.drivers.manual import Manual
from connectctl.ops.clients.drivers.open import ByWorker
from connectctl.ops.clients.drivers.properties_file import PropertiesFile
from connectctl.ops.clients.drivers.strimzi import Strimzi
from connectctl.ops.core.errors import ConnectctlError
from fakes.kubectl import FakeKubectl
from fakes.sandboxes import properties_file

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import WorkerDriver
    from connectctl.ops.sandbox.cluster import Sandbox

# Not one that a worker acts upon, so that a live worker stays what it is.
KEY = "connectctl.contract.test"


@dataclass(frozen=True)
class Stage:
    """A driver, a worker of it, one that is none, and what the worker's configuration is now.

    ``state`` gives anything that is equal as long as nothing was changed; ``restarts`` how often it
    was restarted.
    """

    driver: WorkerDriver
    worker: str
    stranger: str
    state: Callable[[], object]
    restarts: Callable[[], int]
    tells: bool = True
    """Whether the driver can tell what a property is."""


class DriverContract:
    def test_it_has_a_name(self, stage: Stage) -> None:
        assert stage.driver.name

    def test_what_it_says_is_one_line_with_worker_property_and_value(self, stage: Stage) -> None:
        said = stage.driver.describe(stage.worker, KEY, "one")
        assert "\n" not in said
        assert f"{KEY}=one" in said

    def test_a_worker_that_can_be_changed_passes_the_check_and_stays_as_it_is(
        self, stage: Stage
    ) -> None:
        before = stage.state()
        assert stage.driver.check(stage.worker) is None
        assert stage.state() == before

    def test_a_stranger_does_not_pass_the_check(self, stage: Stage) -> None:
        assert stage.driver.check(stage.stranger)

    def test_what_was_changed_is_told(self, stage: Stage) -> None:
        for value in ("one", "two"):
            stage.driver.change(stage.worker, KEY, value)
            told = stage.driver.configured(stage.worker, KEY)
            assert (told is not None) is stage.tells
            assert told is None or (told.value == value and told.source)

    def test_what_is_not_set_is_told_as_such(self, stage: Stage) -> None:
        told = stage.driver.configured(stage.worker, "connectctl.contract.never.set")
        assert (told is not None) is stage.tells
        assert told is None or told.value is None

    def test_a_change_done_twice_is_done_once(self, stage: Stage) -> None:
        stage.driver.change(stage.worker, KEY, "twice")
        before = stage.state()
        stage.driver.change(stage.worker, KEY, "twice")
        assert stage.state() == before

    def test_a_change_does_not_restart(self, stage: Stage) -> None:
        before = stage.restarts()
        stage.driver.change(stage.worker, KEY, "quiet")
        assert stage.restarts() == before

    def test_a_restart_restarts(self, stage: Stage) -> None:
        before = stage.restarts()
        stage.driver.change(stage.worker, KEY, f"restart-{before}")
        stage.driver.restart(stage.worker)
        assert stage.restarts() == before + 1

    def test_a_stranger_is_neither_changed_nor_restarted(self, stage: Stage) -> None:
        before, restarts = stage.state(), stage.restarts()
        with pytest.raises(ConnectctlError):
            stage.driver.change(stage.stranger, KEY, "one")
        with pytest.raises(ConnectctlError):
            stage.driver.restart(stage.stranger)
        assert (stage.state(), stage.restarts()) == (before, restarts)

    def test_what_is_no_address_is_refused(self, stage: Stage) -> None:
        for text in ("", "nowhere", "-oProxyCommand=x:1", "a b:1"):
            assert stage.driver.check(text), text
            with pytest.raises(ConnectctlError):
                stage.driver.change(text, KEY, "one")

    def test_its_manner_does_not_depend_on_what_was_done(self, stage: Stage) -> None:
        before = stage.driver.restart_mode(stage.worker)
        stage.driver.change(stage.worker, KEY, "one")
        assert stage.driver.restart_mode(stage.worker) == before


def scripted(directory: Path) -> tuple[Path, ShellLines]:
    """A worker of shell commands: its properties in a file, a line in another for each restart."""
    file, log = directory / "worker-w1", directory / "restarts"
    file.write_text("a=b\n")
    log.touch()
    change = (
        f"test -f {directory}/worker-{{host}} && sed -i '/^{{property}}=/d' "
        f"{directory}/worker-{{host}}"
    )
    lines = {
        "change": f"{change} && echo {{property}}={{value}} >> {directory}/worker-{{host}}",
        "restart": f"test -f {directory}/worker-{{host}} && echo {{worker}} >> {log}",
        "read": f"grep ^{{property}}= {directory}/worker-{{host}}",
        "check": f"test -f {directory}/worker-{{host}}",
    }
    return file, ShellLines(lines, Commands(60.0))


def restarts_in(directory: Path) -> Callable[[], int]:
    return lambda: len((directory / "restarts").read_text().splitlines())


class TestCommand(DriverContract):
    @pytest.fixture
    def stage(self, tmp_path: Path) -> Stage:
        file, lines = scripted(tmp_path)
        return Stage(Command(lines), "w1:8083", "w2:8083", file.read_text, restarts_in(tmp_path))


class TestPropertiesFile(DriverContract):
    @pytest.fixture
    def stage(self, tmp_path: Path) -> Stage:
        file, lines = scripted(tmp_path)
        driver = PropertiesFile(f"{tmp_path}/worker-{{host}}", lines)
        return Stage(driver, "w1:8083", "w2:8083", file.read_bytes, restarts_in(tmp_path))


class TestStrimzi(DriverContract):
    @pytest.fixture
    def stage(self, tmp_path: Path) -> Stage:
        kubectl = FakeKubectl.made(tmp_path)
        commands = Commands(60.0)
        driver = Strimzi(
            "connect",
            commands,
            kubectl=str(kubectl.path),
            pause=0.01,
            roll_timeout=60.0,
            instruct=print,
        )
        stranger = "other-connect-0.other-connect.default.svc:8083"

        def rolls() -> int:
            return len(kubectl.read()["rolled"])

        return Stage(
            driver, "10.0.0.1:8083", stranger, lambda: kubectl.read()["resource"]["spec"], rolls
        )


class TestManual(DriverContract):
    @pytest.fixture
    def stage(self) -> Stage:
        heard: list[str] = []

        def restarts() -> int:
            return sum(line.startswith("Restart ") for line in heard)

        return Stage(
            Manual(heard.append), "w1:8083", "w1", lambda: list(heard), restarts, tells=False
        )


class TestByWorker(DriverContract):
    @pytest.fixture
    def stage(self, tmp_path: Path) -> Stage:
        file, lines = scripted(tmp_path)
        driver = ByWorker({"w1:8083": PropertiesFile(str(file), lines)}, Command(lines))
        return Stage(driver, "w1:8083", "w2:8083", file.read_bytes, restarts_in(tmp_path))


@pytest.mark.live
class TestSandbox(DriverContract):
    """On the second worker of the shared cluster, with a property that means nothing to it."""

    @pytest.fixture
    def stage(self, cluster: Sandbox) -> Iterator[Stage]:
        from connectctl.ops.sandbox.driver import SandboxWorkers

        file = properties_file(cluster, 2)
        original = file.read_bytes()
        started: set[int | None] = set()

        def restarts() -> int:
            started.add(cluster.group.workers[1].pid)
            return len(started) - 1

        worker = cluster.rest_urls[1].removeprefix("http://")
        yield Stage(SandboxWorkers("tests"), worker, "127.0.0.1:1", file.read_bytes, restarts)
        file.write_bytes(original)
        if len(started) > 1:
            # Others find the cluster as they left it: both workers in one stable group.
            cluster.group.start_worker(2)
