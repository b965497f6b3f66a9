"""Changes properties in the configuration of a connector, and keeps the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectctl.ops.connect.connector import path_of
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.operations.connectors.context import POLL, StepContext

Properties = Mapping[str, str | None]
"""Values by property; None stands for a missing property."""


class ChangeConfig(ResourceStep["StepContext"]):
    """Set properties of a connector in one request; None removes one. Subclasses return them in
    ``properties``.

    ``patch``: workers that support it change single properties (KIP-477, Kafka 3.8); for others,
    the whole configuration is read and written.
    """

    patch: Any = True

    @property
    def properties(self) -> Properties:
        raise NotImplementedError

    def is_done(self, context: StepContext) -> str | None:
        return "already set" if self._is_set(self._config(context)) else None

    def apply(self, context: StepContext) -> str | None:
        if not (self.patch and self._patched(context)):
            config = {**self._config(context), **self.properties}
            context.calls.send(
                "PUT",
                self._path,
                {name: value for name, value in config.items() if value is not None},
            )
        # Workers other than the leader read the new configuration after a delay.
        if not context.until(
            lambda: self._is_set(self._config(context)) or None, context.timeout, POLL
        ):
            raise TimedOut(
                f"The configuration of {self.subject} was accepted, but is different after "
                f"{context.timeout:g} s",
                why="another client changes it, or the workers do not read their config topic",
                next_step=f"See connectctl connectors show {self.subject} -o json.",
                code="not-configured",
            )
        return None

    def _patched(self, context: StepContext) -> bool:
        try:
            context.calls.send("PATCH", self._path, dict(self.properties))
        except ConnectctlError as e:
            if e.code != "unsupported":
                raise
            return False
        return True

    @property
    def _path(self) -> str:
        return path_of("connectors", self.subject, "config")

    def _config(self, context: StepContext) -> Properties:
        found: Properties = context.calls.get(self._path)
        return found

    def _is_set(self, config: Properties) -> bool:
        return all(config.get(name) == value for name, value in self.properties.items())


def words(values: Properties | None) -> str:
    """Return the change as text: ``set a=1 and remove b``."""
    return " and ".join(
        f"remove {n}" if v is None else f"set {n}={v}" for n, v in (values or {}).items()
    )
