"""The properties file of a worker on this machine, edited in place; a command of the operator
restarts the worker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from connectctl.ops.clients.drivers import atomic_file
from connectctl.ops.clients.drivers.command import ShellLines
from connectctl.ops.config import java_properties
from connectctl.ops.config.template import filled
from connectctl.ops.core.errors import ConnectctlError


@dataclass
class PropertiesFile(atomic_file.FileDriver):
    """``file`` is a path with placeholders. Before the first change of a file by this object a copy
    is put beside it.
    """

    file: str
    lines: ShellLines
    name: str = "properties-file"
    _backed_up: set[Path] = field(default_factory=set)

    def describe(self, worker: str, name: str, value: str) -> str:
        return (
            f"set {name}={value} in {self._file(worker)}, then run: "
            f"{self.lines.shown('restart', worker)}"
        )

    def change(self, worker: str, name: str, value: str) -> str | None:
        """See ``WorkerDriver``. Raises before anything is written where ``check`` finds a
        reason.
        """
        file = self._file(worker)
        if problem := atomic_file.problem_with(file):
            raise ConnectctlError(f"The properties of {worker} cannot be changed", why=problem)
        if java_properties.value_of(atomic_file.read(file), name) == value:
            return f"already set in {file}"
        copied = ""
        if file not in self._backed_up:
            copied = f"; backup: {atomic_file.back_up(file)}"
            self._backed_up.add(file)
        atomic_file.set_property(file, name, value)
        return f"set in {file}{copied}"

    def restart(self, worker: str) -> str | None:
        return self.lines.run("restart", worker)

    def _file(self, worker: str) -> Path:
        return Path(filled(self.file, self.lines.values(worker))).expanduser()
