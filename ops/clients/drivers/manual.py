"""Workers that the user changes and restarts: prints instructions, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from connectctl.ops.clients.protocols import RestartMode, WorkerDriver
from connectctl.ops.config import worker_address
from connectctl.ops.core.errors import BadInput


@dataclass
class Manual(WorkerDriver):
    """``instruct`` prints instructions, one line each. The same change is printed once, a restart every
    time.
    """

    instruct: Callable[[str], None]
    name: str = "manual"
    _requested: dict[tuple[str, str], str] = field(default_factory=dict)

    def restart_mode(self, worker: str) -> RestartMode:
        return RestartMode(by_hand=True)

    def describe(self, worker: str, name: str, value: str) -> str:
        return (
            f"ask you to set {name}={value} in the properties of {worker} and to restart it, "
            "and wait for that"
        )

    def check(self, worker: str) -> str | None:
        try:
            worker_address.parse(worker)
        except BadInput as e:
            return str(e)
        return None

    def change(self, worker: str, name: str, value: str) -> str | None:
        at = worker_address.parse(worker)
        if self._requested.get((at.worker, name)) != value:
            self._requested[at.worker, name] = value
            self.instruct(f"Set {name}={value} in the properties of worker {at.worker}.")
        return "requested"

    def restart(self, worker: str) -> str | None:
        self.instruct(f"Restart worker {worker_address.parse(worker).worker}, and no other.")
        return "requested"
