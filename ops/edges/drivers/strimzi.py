"""Workers that Strimzi runs: the property goes into the KafkaConnect resource, and the operator rolls all of them.

Sources: Strimzi's ``KafkaConnect`` (``spec.config``), the conditions of its status, and the convention of Kubernetes that
``status.observedGeneration`` follows ``metadata.generation`` when a change has been carried out.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.edges.contract import Manner, Told
from connectctl.ops.edges.drivers.commands import Commands
from connectctl.ops.errors import BadInput, ConnectctlError, TimedOut
from connectctl.ops.model import address

KIND = "kafkaconnects.kafka.strimzi.io"
UNANSWERED = 5
"""How often in a row kubectl may fail while a roll is waited for."""
PAUSED = "strimzi.io/pause-reconciliation"
_ROOM = 8 * 1024 * 1024
"""Bytes of a resource that are read: etcd takes none bigger than 1.5 MB, and JSON for people is wider."""


@dataclass
class Strimzi:
    """One KafkaConnect resource. ``apply``: patch it; else ``tell`` the patch, for somebody who keeps it in git.

    ``roll_timeout``: seconds that a change may take from here until the operator has restarted all workers.
    """

    resource: str
    commands: Commands
    namespace: str | None = None
    kubectl: str = "kubectl"
    apply: bool = True
    roll_timeout: float = 900.0
    pause: float = 2.0
    tell: Callable[[str], None] = print
    name: str = "strimzi"
    _awaited: dict[str, str] = field(default_factory=dict)

    @property
    def _called(self) -> str:
        return f"KafkaConnect {self.namespace + '/' if self.namespace else ''}{self.resource}"

    def manner(self, worker: str) -> Manner:
        """See ``WorkerDriver``: all workers of the resource together."""
        return Manner(together=self._called)

    def says(self, worker: str, name: str, value: str) -> str:
        """See ``WorkerDriver``."""
        who = "patch" if self.apply else "print a patch for"
        return f"{who} {self._called} with spec.config {name}={value}; Strimzi then restarts all its workers in turn"

    def check(self, worker: str) -> str | None:
        """See ``WorkerDriver``."""
        try:
            found = self._get()
            if self.apply:
                self._run("The question whether it may be patched", "auth", "can-i", "patch", f"{KIND}/{self.resource}")
            self._member(worker)
        except ConnectctlError as e:
            return str(e)
        if _annotations(found).get(PAUSED) == "true":
            return f"{self._called} is not reconciled while its annotation {PAUSED} is true"
        return None

    def told(self, worker: str, name: str) -> Told | None:
        """See ``WorkerDriver``."""
        value = _config(self._get()).get(name)
        return Told(None if value is None else _as_java(value), self._called)

    def change(self, worker: str, name: str, value: str) -> str | None:
        """See ``WorkerDriver``. Without ``apply`` it tells the patch; ``restart`` waits until the resource has it."""
        self._member(worker)
        self._awaited[name] = value
        if _as_java(_config(self._get()).get(name)) == value:
            return f"{self._called} says so already"
        if not self.apply:
            self.tell(self._manifest(name, value))
            return "told; waiting for it to be applied is part of the restart"
        patch = json.dumps({"spec": {"config": {name: value}}})
        self._run("The patch", "patch", f"{KIND}/{self.resource}", "--type", "merge", "-p", patch)
        return f"patched {self._called}"

    def restart(self, worker: str) -> str | None:
        """Wait until the resource has what ``change`` asked for and Strimzi has restarted all workers with it.

        A resource that is carried out already needs no other roll. Raises ``TimedOut`` with what Strimzi says.
        """
        self._member(worker)
        end = time.monotonic() + self.roll_timeout
        unanswered = 0
        while True:
            try:
                missing = self._missing(self._get())
                unanswered = 0
            except ConnectctlError as e:
                # A roll takes minutes, and an API server is restarted now and then.
                unanswered += 1
                if unanswered >= UNANSWERED:
                    raise
                missing = str(e)
            if missing is None:
                return f"Strimzi has restarted the workers of {self._called}"
            if time.monotonic() > end:
                raise TimedOut(
                    f"Strimzi has not restarted the workers of {self._called} in {self.roll_timeout:g} s",
                    why=missing,
                    next_step="See the resource's status and the operator's log; then resume.",
                )
            time.sleep(self.pause)

    def _missing(self, found: Mapping[str, Any]) -> str | None:
        """What the resource still lacks, else None."""
        config = _config(found)
        for name, value in self._awaited.items():
            if (now := _as_java(config.get(name))) != value:
                return f"its spec.config does not have {name}={value}" + (f" but {now}" if now is not None else "")
        status = found["status"]
        generation, observed = found["metadata"]["generation"], status.get("observedGeneration")
        conditions = {c.get("type"): c for c in status.get("conditions") or () if c.get("status") == "True"}
        failed = conditions.get("NotReady")
        told = f"; it says {failed.get('reason')}: {failed.get('message')}" if failed else ""
        if observed is None or observed < generation:
            return f"generation {generation} is not carried out yet, the last one was {observed}{told}"
        if "ReconciliationPaused" in conditions:
            return "its reconciliation is paused"
        return None if "Ready" in conditions else f"it is not ready{told}"

    def _manifest(self, name: str, value: str) -> str:
        import yaml

        metadata = {"name": self.resource} | ({"namespace": self.namespace} if self.namespace else {})
        patch = {"kind": "KafkaConnect", "metadata": metadata, "spec": {"config": {name: value}}}
        text = yaml.safe_dump(patch, sort_keys=False)
        return f"Apply this change to {self._called}; what else is in spec.config stays:\n{text}".rstrip()

    def _member(self, worker: str) -> None:
        """Raise where the worker's name shows that it belongs to another resource; an IP address shows nothing."""
        host, prefix = address.parse(worker).host, f"{self.resource}-connect"
        # The name that Strimzi gives: <resource>-connect-0.<resource>-connect.<namespace>.svc
        if ".svc" in host and not host.startswith((f"{prefix}-", f"{prefix}.")):
            raise BadInput(
                f"{host} is no worker of {self._called}", why=f"their names begin with {prefix}", code="no-worker"
            )

    def _get(self) -> dict[str, Any]:
        said = self._run("Reading it", "get", f"{KIND}/{self.resource}", "-o", "json", keep=_ROOM)
        try:
            found = json.loads(said)
            metadata = {"generation": 0} | found["metadata"]
            return {"metadata": metadata, "spec": found["spec"] or {}, "status": found.get("status") or {}}
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise ConnectctlError(
                f"{self._called} cannot be read", why=f"{self.kubectl} get printed no such resource"
            ) from e

    def _run(self, purpose: str, *words: str, keep: int = 16 * 1024) -> str:
        where = ["--namespace", self.namespace] if self.namespace else []
        command = [*shlex.split(self.kubectl), *words, *where]
        return self.commands.run(command, f"{self._called}: {purpose}", keep=keep).out


def _config(resource: Mapping[str, Any]) -> dict[str, Any]:
    return dict(resource["spec"].get("config") or {})


def _annotations(resource: Mapping[str, Any]) -> dict[str, str]:
    return dict(resource["metadata"].get("annotations") or {})


def _as_java(value: Any) -> str | None:
    """A value of ``spec.config`` as it gets into the worker's properties."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)
