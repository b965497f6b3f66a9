"""Workers that are changed and restarted by shell commands of the operator: ssh, systemctl, docker,
kubectl, anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connectctl.ops.clients.drivers.command_runner import CommandFailed, Commands
from connectctl.ops.clients.protocols import ConfiguredValue, WorkerDriver
from connectctl.ops.config import java_properties, worker_address
from connectctl.ops.config.template import filled_for_shell
from connectctl.ops.core.errors import ConnectctlError

NOT_FOUND = 1
"""The exit status of a grep that found nothing; it is silent then."""


@dataclass(frozen=True)
class ShellLines:
    """The operator's shell lines, by the key of the context file that they stand under."""

    templates: Mapping[str, str]
    commands: Commands
    scheme: str = "http"

    def values(self, worker: str) -> dict[str, str]:
        """Return the values of a worker's placeholders. Raises ``BadInput``."""
        at = worker_address.parse(worker, self.scheme)
        return {"worker": at.worker, "host": at.host, "port": str(at.port), "url": at.url}

    def filled(self, key: str, worker: str, **values: str) -> str:
        """Return the shell line under ``key`` with its placeholders replaced. Raises ``BadInput``."""
        return filled_for_shell(self.templates[key], self.values(worker) | values)

    def shown(self, key: str, worker: str, **values: str) -> str:
        """Return the line of ``filled``, with secrets masked."""
        return self.commands.hide(self.filled(key, worker, **values))

    def run(self, key: str, worker: str, **values: str) -> str | None:
        """Run the line, and return the last line that it printed, masked."""
        purpose = {"change": "The change of", "restart": "The restart of"}[key]
        output = self.commands.run(self.filled(key, worker, **values), f"{purpose} {worker}")
        return self.commands.hide(output.last_line) if output.last_line else None


@dataclass(frozen=True)
class Command(WorkerDriver):
    """Lines ``change`` and ``restart``; optional ``read``, which prints a property, and
    ``check``.
    """

    lines: ShellLines
    name: str = "command"

    def describe(self, worker: str, name: str, value: str) -> str:
        change = self.lines.shown("change", worker, property=name, value=value)
        return f"set {name}={value} by: {change}, then run: {self.lines.shown('restart', worker)}"

    def check(self, worker: str) -> str | None:
        """See ``WorkerDriver``. Without a line ``check`` only the address can be wrong."""
        try:
            self.lines.values(worker)
            if "check" in self.lines.templates:
                self.lines.commands.run(
                    self.lines.filled("check", worker), f"The check of {worker}"
                )
        except ConnectctlError as e:
            return str(e)
        return None

    def configured(self, worker: str, name: str) -> ConfiguredValue | None:
        """See ``WorkerDriver``. None without a line ``read``."""
        if "read" not in self.lines.templates:
            return None
        line = self.lines.filled("read", worker, property=name)
        try:
            printed = self.lines.commands.run(line, f"Reading {name} of {worker}").out
        except CommandFailed as e:
            if e.output.status != NOT_FOUND or e.output.both.strip():
                raise
            printed = ""
        return ConfiguredValue(value_in(printed, name), f"command {self.lines.commands.hide(line)}")

    def change(self, worker: str, name: str, value: str) -> str | None:
        return self.lines.run("change", worker, property=name, value=value)

    def restart(self, worker: str) -> str | None:
        return self.lines.run("restart", worker)


def value_in(printed: str, name: str) -> str | None:
    """Return the property's value in what a command printed: a properties file, the property's line
    in one, or the value.
    """
    lines = [line.strip() for line in printed.splitlines()]
    lines = [line for line in lines if line and line[0] not in "#!"]
    try:
        found = java_properties.value_of(printed, name)
    except java_properties.Malformed:
        found = None
    return found if found is not None or len(lines) != 1 else lines[0]
