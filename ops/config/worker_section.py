"""The ``workers`` section of a context: how its workers are changed and restarted.

::

    workers:
      driver: command
      change: ssh {host} sudo set-property {property} {value}
      restart: ssh {host} sudo systemctl restart connect
      each:
        worker-3:8083: {driver: manual}

What stands in ``each`` under a worker's address, or under its host alone, replaces what stands above for that worker.
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
"""The keys that a driver cannot do without."""
USES: Mapping[str, tuple[str, ...]] = {
    "command": ("change", "restart", "read", "check", "timeout"),
    "properties-file": ("file", "restart", "timeout"),
    "strimzi": ("resource", "namespace", "kubectl", "apply", "timeout", "roll_timeout"),
    "manual": (),
    "sandbox": ("sandbox",),
}
"""The keys that mean anything to a driver."""
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
    """How one worker is changed and restarted, as far as it is said here.

    Shell lines run by ``/bin/sh``. They may hold ``{worker}`` (``host:port``), ``{host}``, ``{port}`` and ``{url}``, and
    where a property is meant ``{property}`` and ``{value}``; each is filled in quoted, as one word for the shell.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    driver: Driver | None = None
    """command, properties-file, strimzi, manual or sandbox; manual where nothing is said."""
    timeout: Annotated[float, Field(gt=0)] | None = None
    """Seconds that one command may take: 120."""
    change: Annotated[str, _template(*OF_WORKER, *OF_PROPERTY, needed=OF_PROPERTY)] | None = None
    """command: the shell line that sets a property, effective at the next start; to run it twice makes no difference."""
    restart: Annotated[str, _template(*OF_WORKER)] | None = None
    """command, properties-file: the shell line that stops and starts the worker."""
    read: Annotated[str, _template(*OF_WORKER, "property")] | None = None
    """command: a shell line that prints the property's value, its line or the whole properties file."""
    check: Annotated[str, _template(*OF_WORKER)] | None = None
    """command: a shell line that fails where the worker could not be changed; it changes nothing."""
    file: Annotated[str, _template(*OF_WORKER)] | None = None
    """properties-file: the worker's file on this machine."""
    resource: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")] | None = None
    """strimzi: the name of the KafkaConnect resource."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")] | None = None
    """strimzi: its namespace; kubectl's own where nothing is said."""
    kubectl: str | None = None
    """strimzi: the command, options and all: ``kubectl --context prod``."""
    apply: bool | None = None
    """strimzi: false prints each change for you to commit, and waits until the resource has it."""
    roll_timeout: Annotated[float, Field(gt=0)] | None = None
    """strimzi: seconds that a change may take until all workers are restarted: 900."""
    sandbox: str | None = None
    """sandbox: its name; that of a context ``sandbox-NAME`` where nothing is said."""

    @property
    def said(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True, exclude={"each", "instances"})

    def over(self, other: WorkerSettings) -> WorkerSettings:
        """This, and what ``other`` says where this says nothing."""
        return WorkerSettings.model_construct(**(other.said | self.said))

    @property
    def driven_by(self) -> Driver:
        return self.driver or DEFAULT

    @property
    def missing(self) -> list[str]:
        """The keys that the driver needs and that are not there."""
        return [key for key in NEEDS[self.driven_by] if getattr(self, key) is None]


class WorkersSection(WorkerSettings):
    """The whole section: what holds for all workers, and for ``each`` by address or host."""

    each: dict[Annotated[str, AfterValidator(_address)], WorkerSettings] = Field(default_factory=dict)

    @property
    def ways(self) -> dict[str, WorkerSettings]:
        """What holds for the workers named in ``each``."""
        return {address: own.over(self) for address, own in self.each.items()}

    def problems(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """What does not fit together: where, below ``workers``, and why."""
        drivers = {way.driven_by for way in (*self.ways.values(), self)}
        yield from self._useless((), self.said, drivers)
        for address, own in self.each.items():
            yield from self._useless(("each", address), own.said, {self.ways[address].driven_by})
        # With every worker in ``each`` the rest need not be whole.
        whole: dict[tuple[str, ...], WorkerSettings] = {} if self.each else {(): self}
        for where, way in (whole | {("each", address): way for address, way in self.ways.items()}).items():
            if way.missing:
                yield where, f"the driver {way.driven_by} requires {' and '.join(way.missing)}"

    @staticmethod
    def _useless(
        where: tuple[str, ...], said: Mapping[str, Any], drivers: set[Driver]
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        used = {"driver"}.union(*(USES[driver] for driver in drivers))
        for key in said:
            if key not in used:
                yield (*where, key), f"the driver {' or '.join(sorted(drivers))} does not use it"


def nested(section: Mapping[str, Any]) -> dict[str, Any]:
    """Flattened settings as the section has them: ``each.worker-3:8083.driver`` and the like below ``each``."""
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
    """The section from its flattened settings; it was checked when read."""
    return WorkersSection.model_validate(nested(section))
