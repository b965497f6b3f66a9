"""The files of one sandbox, and where the downloaded jars are.

::

    $XDG_STATE_HOME/connectctl/sandbox/<name>/
        sandbox.json        the record: what was asked, ports, processes
        context.yaml        the context that the CLI resolves ``sandbox-<name>`` to
        broker/             server.properties, data/; broker-2/, broker-3/ where there are three
        worker-1/ …         worker.properties
        security/           certificates and passwords of a secured sandbox, see ``security``
        logs/               one file per process
    $XDG_CACHE_HOME/connectctl/
        jars/<version>/…    see ``jars``
        ivy/                Ivy's own cache
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from connectctl.ops.config import paths

BROKER = "broker"
"""The first broker's name; that of another is followed by its number."""
_BROKERS = re.compile(rf"{BROKER}(-\d+)?")


def broker_name(number: int) -> str:
    """Return the name of broker ``number``, which counts from 1 and is its node.id."""
    return BROKER if number == 1 else f"{BROKER}-{number}"


def is_broker(process: str) -> bool:
    return _BROKERS.fullmatch(process) is not None


def sandboxes() -> Path:
    """Return the directory of all sandboxes of this user; it need not exist."""
    return paths.sandbox_directory("_").resolve().parent


@dataclass(frozen=True, slots=True)
class SandboxLayout:
    """The files of one sandbox. ``root`` is absolute and resolved: it marks the sandbox's
    processes.
    """

    root: Path

    @classmethod
    def of(cls, name: str) -> SandboxLayout:
        return cls(sandboxes() / name)

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def record(self) -> Path:
        return self.root / "sandbox.json"

    @property
    def context(self) -> Path:
        return self.root / "context.yaml"

    @property
    def security(self) -> Path:
        return self.root / "security"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def log(self, process: str) -> Path:
        """Return the output of one process, appended to over its restarts."""
        return self.logs / f"{process}.log"

    def home(self, process: str) -> Path:
        return self.root / process

    def properties(self, process: str) -> Path:
        return self.home(process) / (
            "server.properties" if is_broker(process) else "worker.properties"
        )
