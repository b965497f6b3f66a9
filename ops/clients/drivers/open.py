"""From a context's ``workers`` section to the drivers that it asks for, and from a worker's address
to its driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from connectctl.ops.clients.drivers.command import Command, ShellLines
from connectctl.ops.clients.drivers.command_runner import Commands
from connectctl.ops.clients.drivers.manual import Manual
from connectctl.ops.clients.drivers.properties_file import PropertiesFile
from connectctl.ops.clients.drivers.strimzi import Strimzi
from connectctl.ops.clients.protocols import ConfiguredValue, RestartMode, WorkerDriver
from connectctl.ops.config import worker_address
from connectctl.ops.config.worker_section import WorkerSettings, WorkersSection
from connectctl.ops.core.errors import BadInput, ConnectctlError

TIMEOUT = 120.0
"""Seconds that one command may take."""
ROLL_TIMEOUT = 900.0
"""Seconds that Strimzi may take to restart all workers."""


@dataclass(frozen=True)
class DriverContext:
    """The values that drivers need besides the section.

    ``instruct`` prints instructions; ``sandbox_driver`` returns the driver of a sandbox and its group;
    ``secrets`` returns values to mask in the output of commands; ``scheme`` is that of the workers'
    REST servers; ``sandbox`` is the sandbox that the context belongs to.
    """

    instruct: Callable[[str], None]
    sandbox_driver: Callable[[str, str | None], WorkerDriver]
    secrets: Callable[[], Iterable[str]] = tuple
    scheme: str = "http"
    group_id: str | None = None
    sandbox: str | None = None


@dataclass(frozen=True)
class MissingDriver(WorkerDriver):
    """Workers whose section does not have enough to change them."""

    lacks: str
    name: str = "none"

    def _refusal(self, worker: str) -> BadInput:
        return BadInput(
            f"Unknown how to change and restart worker {worker}",
            why=self.lacks,
            next_step=f"Add it to the context under workers, or {worker} under workers.each.",
            code="no-driver",
        )

    def describe(self, worker: str, name: str, value: str) -> str:
        return f"set {name}={value} and restart {worker}: unknown how"

    def check(self, worker: str) -> str | None:
        return str(self._refusal(worker))

    def change(self, worker: str, name: str, value: str) -> str | None:
        raise self._refusal(worker)

    def restart(self, worker: str) -> str | None:
        raise self._refusal(worker)


@dataclass(frozen=True)
class ByWorker:
    """Sends what concerns a worker to its ``WorkerDriver``: by its address, else its host, else the
    one for all others.
    """

    each: Mapping[str, WorkerDriver]
    rest: WorkerDriver

    @property
    def name(self) -> str:
        return ", ".join(dict.fromkeys(driver.name for driver in (self.rest, *self.each.values())))

    def of(self, worker: str) -> WorkerDriver:
        """Return the driver of a worker. Raises ``BadInput`` for what is not an address."""
        at = worker_address.parse(worker)
        bracketed = at.worker.rpartition(":")[0]
        found = (self.each.get(key) for key in (at.worker, bracketed))
        return next((driver for driver in found if driver is not None), self.rest)

    def restart_mode(self, worker: str) -> RestartMode:
        return self.of(worker).restart_mode(worker)

    def describe(self, worker: str, name: str, value: str) -> str:
        return self.of(worker).describe(worker, name, value)

    def check(self, worker: str) -> str | None:
        try:
            return self.of(worker).check(worker)
        except ConnectctlError as e:
            return str(e)

    def configured(self, worker: str, name: str) -> ConfiguredValue | None:
        return self.of(worker).configured(worker, name)

    def change(self, worker: str, name: str, value: str) -> str | None:
        return self.of(worker).change(worker, name, value)

    def restart(self, worker: str) -> str | None:
        return self.of(worker).restart(worker)


def opened(section: WorkersSection, around: DriverContext) -> WorkerDriver:
    """Return the driver of all workers of a context."""
    rest = _opened(section, around)
    # Workers of one KafkaConnect share its driver: what one of them was changed to, all are waited
    # for to have.
    shared: dict[str | None, WorkerDriver] = {_together(rest): rest}
    each: dict[str, WorkerDriver] = {}
    for worker, way in section.by_worker.items():
        driver = _opened(way, around)
        each[worker] = (
            shared.setdefault(together, driver) if (together := _together(driver)) else driver
        )
    return ByWorker(each, rest) if each else rest


def _together(driver: WorkerDriver) -> str | None:
    return driver.restart_mode("").together


def _opened(way: WorkerSettings, around: DriverContext) -> WorkerDriver:
    if way.missing:
        return MissingDriver(
            f"the driver {way.effective_driver} requires {' and '.join(way.missing)}"
        )
    commands = Commands(way.timeout or TIMEOUT, around.secrets)
    lines = {
        key: line for key in ("change", "restart", "read", "check") if (line := getattr(way, key))
    }
    match way.effective_driver:
        case "command":
            return Command(ShellLines(lines, commands, around.scheme))
        case "properties-file":
            return PropertiesFile(str(way.file), ShellLines(lines, commands, around.scheme))
        case "strimzi":
            return _strimzi(way, commands, around)
        case "sandbox":
            name = way.sandbox or around.sandbox
            missing = MissingDriver("the driver sandbox requires sandbox")
            return around.sandbox_driver(name, around.group_id) if name else missing
        case _:
            return Manual(around.instruct)


def _strimzi(way: WorkerSettings, commands: Commands, around: DriverContext) -> Strimzi:
    return Strimzi(
        str(way.resource),
        commands,
        namespace=way.namespace,
        kubectl=way.kubectl or "kubectl",
        apply=way.apply is not False,
        roll_timeout=way.roll_timeout or ROLL_TIMEOUT,
        instruct=around.instruct,
    )
