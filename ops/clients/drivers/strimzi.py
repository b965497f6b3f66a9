"""Workers that Strimzi runs: the property goes into the KafkaConnect resource, and the operator
rolls all of them.

Sources: Strimzi's ``KafkaConnect`` (``spec.config``), the conditions of its status, and the
convention of Kubernetes that ``status.observedGeneration`` follows ``metadata.generation`` when a
change has been carried out.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.clients.drivers.command_runner import Commands
from connectctl.ops.clients.protocols import ConfiguredValue, RestartMode
from connectctl.ops.config import worker_address
from connectctl.ops.config.json_text import read_json
from connectctl.ops.core.errors import BadInput, ConnectctlError, TimedOut

KIND = "kafkaconnects.kafka.strimzi.io"
PODS = "strimzipodsets.core.strimzi.io"
ROLL = "strimzi.io/manual-rolling-update"
UNANSWERED = 5
"""The number of consecutive failures of kubectl that a wait for a roll tolerates."""
PAUSED = "strimzi.io/pause-reconciliation"
_ROOM = 8 * 1024 * 1024
"""Bytes of a resource that are read: etcd takes none bigger than 1.5 MB, and JSON for people is
wider.
"""


@dataclass
class Strimzi:
    """``WorkerDriver`` of a KafkaConnect resource. With ``apply`` it patches the resource; else it
    prints the patch by ``instruct``, for users who keep it in git.

    ``roll_timeout``: seconds from here until the operator has restarted all workers.
    """

    resource: str
    commands: Commands
    namespace: str | None = None
    kubectl: str = "kubectl"
    apply: bool = True
    roll_timeout: float = 900.0
    pause: float = 2.0
    instruct: Callable[[str], None] = field(kw_only=True)
    name: str = "strimzi"
    _awaited: dict[str, str] = field(default_factory=dict)
    _rolling: bool = False
    _requested: bool = False
    _restarted: set[str] = field(default_factory=set)
    """The workers that were asked about since the last roll began: one that is asked about again
    wants another.
    """

    @property
    def _called(self) -> str:
        return f"KafkaConnect {self.namespace + '/' if self.namespace else ''}{self.resource}"

    def restart_mode(self, worker: str) -> RestartMode:
        return RestartMode(together=self._called)

    def describe(self, worker: str, name: str, value: str) -> str:
        who = "patch" if self.apply else "print a patch for"
        return (
            f"{who} {self._called} with spec.config {name}={value}; Strimzi then restarts all "
            "its workers in turn"
        )

    def check(self, worker: str) -> str | None:
        try:
            found = self._get()
            if self.apply:
                self._run(
                    "The check whether it may be patched",
                    "auth",
                    "can-i",
                    "patch",
                    f"{KIND}/{self.resource}",
                )
            self._member(worker)
        except ConnectctlError as e:
            return str(e)
        if (found["metadata"].get("annotations") or {}).get(PAUSED) == "true":
            return f"{self._called} is not reconciled while its annotation {PAUSED} is true"
        return None

    def configured(self, worker: str, name: str) -> ConfiguredValue | None:
        value = _config(self._get()).get(name)
        return ConfiguredValue(None if value is None else _as_java(value), self._called)

    def change(self, worker: str, name: str, value: str) -> str | None:
        """See ``WorkerDriver``. Without ``apply`` it prints the patch; ``restart`` waits until the
        resource has it.
        """
        self._member(worker)
        self._awaited[name] = value
        found = self._get()
        if _as_java(_config(found).get(name)) == value:
            # What a killed run began continues without it.
            if self._missing(found) is not None:
                self._begin()
            return f"already set on {self._called}"
        self._begin()
        if not self.apply:
            self.instruct(self._manifest(name, value))
            return "requested; waiting for it to be applied is part of the restart"
        patch = json.dumps({"spec": {"config": {name: value}}})
        self._run("The patch", "patch", f"{KIND}/{self.resource}", "--type", "merge", "-p", patch)
        return f"patched {self._called}"

    def restart(self, worker: str) -> str | None:
        """Wait until the resource has the requested change and Strimzi has restarted all workers
        with it.

        If this was done before, a roll is requested. The restart of one worker restarted all: for
        the next one nothing remains to be done. Raises ``TimedOut`` with Strimzi's reason.
        """
        self._member(worker)
        wants_another = not self._rolling or worker in self._restarted
        if wants_another and self._missing(self._get()) is None:
            if not self.apply:
                self.instruct(
                    f"Have Strimzi restart the workers: {self.kubectl} "
                    f"{shlex.join(self._where(*self._annotate))}"
                )
                return "requested"
            self._run("The request for a roll", *self._annotate)
            self._begin(requested=True)
        elif wants_another:
            self._begin()
        self._wait()
        self._restarted.add(worker)
        return f"Strimzi has restarted the workers of {self._called}"

    def _begin(self, *, requested: bool = False) -> None:
        self._rolling, self._requested = True, requested
        self._restarted.clear()

    def _wait(self) -> None:
        end = time.monotonic() + self.roll_timeout
        unanswered = 0
        while True:
            try:
                missing = self._missing(self._get()) or self._asked()
                unanswered = 0
            except ConnectctlError as e:
                # A roll takes minutes, and an API server is restarted now and then.
                unanswered += 1
                if unanswered >= UNANSWERED:
                    raise
                missing = str(e)
            if missing is None:
                return
            if time.monotonic() > end:
                raise TimedOut(
                    f"Strimzi has not restarted the workers of {self._called} in "
                    f"{self.roll_timeout:g} s",
                    why=missing,
                    next_step="See the resource's status and the operator's log; then resume.",
                )
            time.sleep(self.pause)

    @property
    def _annotate(self) -> tuple[str, ...]:
        return "annotate", self._pods, f"{ROLL}=true", "--overwrite"

    @property
    def _pods(self) -> str:
        return f"{PODS}/{self.resource}-connect"

    def _asked(self) -> str | None:
        """Return whether the operator has not completed the requested roll: it removes the
        annotation then.
        """
        if not self._requested:
            return None
        words = ("get", self._pods, "--ignore-not-found", "-o", "json")
        output = self._run("Reading its pods", *words, keep=_ROOM)
        try:
            annotations = (
                read_json(output)["metadata"].get("annotations") or {} if output.strip() else {}
            )
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise ConnectctlError(
                f"The pods of {self._called} cannot be read", why=f"{self._pods} is not a resource"
            ) from e
        return f"{self._pods} still has the annotation {ROLL}" if ROLL in annotations else None

    def _missing(self, found: Mapping[str, Any]) -> str | None:
        """Return what the resource still lacks, else None."""
        config = _config(found)
        for name, value in self._awaited.items():
            if (now := _as_java(config.get(name))) != value:
                return f"its spec.config does not have {name}={value}" + (
                    f" but {now}" if now is not None else ""
                )
        status = found["status"]
        generation, observed = found["metadata"]["generation"], status.get("observedGeneration")
        conditions = {
            c.get("type"): c for c in status.get("conditions") or () if c.get("status") == "True"
        }
        failed = conditions.get("NotReady")
        text = (
            f"; its condition is {failed.get('reason')}: {failed.get('message')}" if failed else ""
        )
        if observed is None or observed < generation:
            return (
                f"generation {generation} is not applied yet, the last applied one is "
                f"{observed}{text}"
            )
        if "ReconciliationPaused" in conditions:
            return "its reconciliation is paused"
        return None if "Ready" in conditions else f"it is not ready{text}"

    def _manifest(self, name: str, value: str) -> str:
        import yaml

        metadata = {"name": self.resource} | (
            {"namespace": self.namespace} if self.namespace else {}
        )
        patch = {"kind": "KafkaConnect", "metadata": metadata, "spec": {"config": {name: value}}}
        text = yaml.safe_dump(patch, sort_keys=False)
        return f"Apply this change to {self._called}; what else is in spec.config stays:\n{text}".rstrip()

    def _member(self, worker: str) -> None:
        """Raise where the worker's name shows that it belongs to another resource; an IP address
        shows nothing.
        """
        host, prefix = worker_address.parse(worker).host, f"{self.resource}-connect"
        # The name that Strimzi gives: <resource>-connect-0.<resource>-connect.<namespace>.svc
        if ".svc" in host and not host.startswith((f"{prefix}-", f"{prefix}.")):
            raise BadInput(
                f"{host} is not a worker of {self._called}",
                why=f"their names begin with {prefix}",
                code="no-worker",
            )

    def _get(self) -> dict[str, Any]:
        output = self._run("Reading it", "get", f"{KIND}/{self.resource}", "-o", "json", keep=_ROOM)
        try:
            found = read_json(output)
            metadata = {"generation": 0} | found["metadata"]
            return {
                "metadata": metadata,
                "spec": found["spec"] or {},
                "status": found.get("status") or {},
            }
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise ConnectctlError(
                f"{self._called} cannot be read",
                why=f"{self.kubectl} get returned no such resource",
            ) from e

    def _where(self, *words: str) -> tuple[str, ...]:
        return (*words, "--namespace", self.namespace) if self.namespace else words

    def _run(self, purpose: str, *words: str, keep: int = 16 * 1024) -> str:
        command = [*shlex.split(self.kubectl), *self._where(*words)]
        return self.commands.run(command, f"{self._called}: {purpose}", keep=keep).out


def _config(resource: Mapping[str, Any]) -> dict[str, Any]:
    return dict(resource["spec"].get("config") or {})


def _as_java(value: Any) -> str | None:
    """Return a value of ``spec.config`` as it gets into the worker's properties."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)
