"""The ``workers`` section of a context: how its workers are changed and restarted.

::

    workers:
      driver: command
      change: ssh {host} sudo set-property {property} {value}
      restart: ssh {host} sudo systemctl restart connect
      each:
        worker-3:8083: {driver: manual}

Settings in ``each`` under a worker's address, or under its host alone, override the settings above
for that worker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from connectctl.ops.config.template import OF_PROPERTY, OF_WORKER, problem_with
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Driver = Literal["command", "properties-file", "strimzi", "manual", "sandbox"]
DEFAULT: Driver = "manual"
NEEDS: Mapping[str, tuple[str, ...]] = {
    "command": ("change", "restart"),
    "properties-file": ("file", "restart"),
    "strimzi": ("resource",),
    "manual": (),
    "sandbox": (),
}
"""The keys that a driver requires."""
USES: Mapping[str, tuple[str, ...]] = {
    "command": ("change", "restart", "read", "check", "timeout"),
    "properties-file": ("file", "restart", "timeout"),
    "strimzi": ("resource", "namespace", "kubectl", "apply", "timeout", "roll_timeout"),
    "manual": (),
    "sandbox": ("sandbox",),
}
"""The keys that a driver uses."""
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|\w[\w.-]*)(:\d{1,5})?")


def _template(*known: str, needed: tuple[str, ...] = ()) -> AfterValidator:
    def check(text: str) -> str:
        if problem := problem_with(text, known, needed):
            raise ValueError(problem)
        return text

    return AfterValidator(check)


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise ValueError("it should be a worker's address, host:port, or a host")
    return text


class WorkerSettings(BaseModel):
    """How one worker is changed and restarted.

    Shell lines are run by ``/bin/sh``. They may hold ``{worker}`` (``host:port``), ``{host}``,
    ``{port}`` and ``{url}``, and ``{property}`` and ``{value}`` where they concern a property; each
    is filled in quoted, as one word for the shell.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    driver: Driver | None = None
    """command, properties-file, strimzi, manual or sandbox; manual by default."""
    timeout: Annotated[float, Field(gt=0)] | None = None
    """The most seconds for one command: 120."""
    change: Annotated[str, _template(*OF_WORKER, *OF_PROPERTY, needed=OF_PROPERTY)] | None = None
    """command: the shell line that sets a property, effective at the next start; running it twice
    changes nothing more.
    """
    restart: Annotated[str, _template(*OF_WORKER)] | None = None
    """command, properties-file: the shell line that stops and starts the worker."""
    read: Annotated[str, _template(*OF_WORKER, "property")] | None = None
    """command: a shell line that prints the property's value, its line or the whole properties
    file.
    """
    check: Annotated[str, _template(*OF_WORKER)] | None = None
    """command: a shell line that fails if the worker could not be changed; it changes nothing."""
    file: Annotated[str, _template(*OF_WORKER)] | None = None
    """properties-file: the worker's file on this machine."""
    resource: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")] | None = None
    """strimzi: the name of the KafkaConnect resource."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")] | None = None
    """strimzi: its namespace; kubectl's own by default."""
    kubectl: str | None = None
    """strimzi: the command with its options: ``kubectl --context prod``."""
    apply: bool | None = None
    """strimzi: false prints each change for you to commit, and waits until the resource has it."""
    roll_timeout: Annotated[float, Field(gt=0)] | None = None
    """strimzi: the most seconds until all workers are restarted after a change: 900."""
    sandbox: str | None = None
    """sandbox: its name; by default that of a context ``sandbox-NAME``."""

    @property
    def configured(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True, exclude={"each", "instances"})

    def over(self, other: WorkerSettings) -> WorkerSettings:
        """Return these settings, completed by those of ``other``."""
        return WorkerSettings.model_construct(**(other.configured | self.configured))

    @property
    def effective_driver(self) -> Driver:
        return self.driver or DEFAULT

    @property
    def missing(self) -> list[str]:
        """Return the keys that the driver requires and that are not set."""
        return [key for key in NEEDS[self.effective_driver] if getattr(self, key) is None]


class WorkersSection(WorkerSettings):
    """The section: settings for all workers, and for ``each`` by address or host."""

    each: dict[Annotated[str, AfterValidator(_address)], WorkerSettings] = Field(
        default_factory=dict
    )

    @property
    def by_worker(self) -> dict[str, WorkerSettings]:
        """Return the effective settings of the workers in ``each``."""
        return {address: settings.over(self) for address, settings in self.each.items()}

    def problems(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the inconsistencies: the path below ``workers``, and the reason."""
        drivers = {settings.effective_driver for settings in (*self.by_worker.values(), self)}
        yield from self._unused((), self.configured, drivers)
        for address, own_settings in self.each.items():
            yield from self._unused(
                ("each", address),
                own_settings.configured,
                {self.by_worker[address].effective_driver},
            )
        # If every worker is in ``each``, the rest may be incomplete.
        complete: dict[tuple[str, ...], WorkerSettings] = {} if self.each else {(): self}
        for path, settings in (
            complete | {("each", address): settings for address, settings in self.by_worker.items()}
        ).items():
            if settings.missing:
                yield (
                    path,
                    f"the driver {settings.effective_driver} requires "
                    f"{' and '.join(settings.missing)}",
                )

    @staticmethod
    def _unused(
        path: tuple[str, ...], configured: Mapping[str, Any], drivers: set[Driver]
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        used = {"driver"}.union(*(USES[driver] for driver in drivers))
        for key in configured:
            if key not in used:
                yield (*path, key), f"the driver {' or '.join(sorted(drivers))} does not use it"


def nested(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return flattened settings as the section has them: ``each.worker-3:8083.driver`` is nested in
    ``each``.
    """
    found: dict[str, Any] = {"each": {}}
    for name, value in section.items():
        if name.startswith("each."):
            # An address has dots of its own, a key has none.
            address, _, key = name.removeprefix("each.").rpartition(".")
            found["each"].setdefault(address, {})[key] = value
        else:
            found[name] = value
    return found


def from_settings(section: Mapping[str, Any]) -> WorkersSection:
    """Return the section of flattened settings, which were validated when they were read."""
    return WorkersSection.model_validate(nested(section))
