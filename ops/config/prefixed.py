"""The properties of a part of a configuration, as ``value.converter.…``, without their prefix."""

from __future__ import annotations

from collections.abc import Mapping


class Prefixed(dict[str, str]):
    """The properties of ``configs`` that begin with ``prefix``, by the rest of their names."""

    def __init__(self, configs: Mapping[str, str], prefix: str):
        own = (name for name in configs if name.startswith(prefix))
        super().__init__({name.removeprefix(prefix): configs[name] for name in own})
        self.prefix = prefix


def full_name(configs: Mapping[str, str], name: str) -> str:
    """Return ``name`` as it is written in the whole configuration, for errors."""
    return f"{configs.prefix}{name}" if isinstance(configs, Prefixed) else name
