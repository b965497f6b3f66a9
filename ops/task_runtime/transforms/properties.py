"""The properties of one transformation or predicate, read as ``ConfigDef`` reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from connectctl.ops.connector_config.property_values import listed
from connectctl.ops.core.errors import BadInput

Change = Callable[[Any, Any, Any], tuple[Any, Any]]
"""Returns the new value and schema of a key or value, from these and the record. Raises
``DataError``.
"""
OF_STAGE = ("type", "predicate", "negate", "plugin.version")


class Properties:
    """The properties that begin with ``prefix``. Each method raises ``BadInput`` for an invalid
    value, and notes that the property is known.
    """

    def __init__(self, prefix: str, configs: Mapping[str, str]):
        self.prefix = prefix
        self._given = {
            name.removeprefix(prefix): value
            for name, value in configs.items()
            if name.startswith(prefix)
        }
        self._known = set(OF_STAGE)

    def text(self, name: str, default: str | None = None) -> str | None:
        self._known.add(name)
        return self._given.get(name, default)

    def required(self, name: str) -> str:
        value = self.text(name)
        if value is None:
            raise BadInput(
                f'Missing required configuration "{self.prefix}{name}" which has no default value.'
            )
        return value

    def one_of(self, name: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        value = self.required(name) if default is None else str(self.text(name, default))
        if value not in allowed:
            raise self.invalid(name, value, f"use {', '.join(allowed[:-1])} or {allowed[-1]}")
        return value

    def names(self, name: str, *, required: bool = False) -> list[str]:
        """Return the elements of a list; ``required`` is one that may not be empty."""
        found = listed(self.required(name) if required else self.text(name))
        if required and not found:
            raise self.invalid(name, "[]", "Empty list")
        return found

    def flag(self, name: str, *, default: bool) -> bool:
        value = str(self.text(name, str(default))).strip().lower()
        if value not in ("true", "false"):
            raise self.invalid(name, value, "use true or false")
        return value == "true"

    @property
    def with_defaults(self) -> bool:
        """Return ``replace.null.with.default``."""
        return self.flag("replace.null.with.default", default=True)

    def invalid(self, name: str, value: str, why: str) -> BadInput:
        return BadInput(f"Invalid value {value} for configuration {self.prefix}{name}", why=why)

    def check_unknown(self, transform: str) -> None:
        """Raise ``BadInput`` for a property that ``transform`` does not have: workers ignore it in
        silence.
        """
        for name in self._given:
            if name not in self._known:
                raise BadInput(
                    f"{transform} has no property {name} ({self.prefix}{name})",
                    next_step=f"Its properties are {', '.join(sorted(self._known))}.",
                )
