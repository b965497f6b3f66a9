"""The workers of a sandbox on this machine, which it can change and restart itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from connectctl.ops.clients.drivers import atomic_file
from connectctl.ops.config import worker_address
from connectctl.ops.sandbox.cluster import find
from connectctl.ops.sandbox.groups import Group


@dataclass(frozen=True)
class SandboxWorkers(atomic_file.FileDriver):
    """The workers of one group of a sandbox; of its main group where ``group_id`` is None."""

    sandbox: str
    group_id: str | None = None
    name: str = "sandbox"

    def describe(self, worker: str, name: str, value: str) -> str:
        return (
            f"set {name}={value} in the properties of {worker} and restart it in sandbox "
            f"{self.sandbox}"
        )

    def change(self, worker: str, name: str, value: str) -> str | None:
        """See ``WorkerDriver``. No copy is kept: the sandbox is for playing."""
        file = self._file(worker)
        return (
            f"set in {file}"
            if atomic_file.set_property(file, name, value)
            else f"already set in {file}"
        )

    def restart(self, worker: str) -> str | None:
        """See ``WorkerDriver``. A worker that does not run is started."""
        group, number = self._worker(worker)
        group.stop_worker(number)
        group.start_worker(number, wait=False)
        return None

    def _worker(self, worker: str) -> tuple[Group, int]:
        sandbox = find(self.sandbox)
        group = Group(sandbox.layout, self.group_id or sandbox.group_id)
        return group, group.number_of(worker_address.parse(worker).url)

    def _file(self, worker: str) -> Path:
        group, number = self._worker(worker)
        return group.layout.properties(group.worker_name(number))
