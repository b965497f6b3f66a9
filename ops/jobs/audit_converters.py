"""How an audit reads keys and values: the converters that a configuration names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.connectors.config.reading import Reveal, read
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters

_PARTS = ("key.converter", "value.converter")


def converters_in(path: Path, reveal: Reveal) -> dict[str, str]:
    """Return the properties of converters in a connector's configuration, or in a file of these
    alone. Raises ``BadInput`` for a file without them, and for ones that are not supported.
    """
    given = read([path], reveal)
    if len(given) != 1:
        raise BadInput(
            f"{path} has {len(given)} configurations",
            next_step="Give --converters a file with one.",
        )
    found = _converters(given[0].config)
    if not any(part in found for part in _PARTS):
        raise BadInput(
            f"{path} has neither value.converter nor key.converter",
            next_step="Add the converter that the records were written with, and its properties.",
        )
    for name, value in found.items():
        if "${" in value:
            raise BadInput(
                f"{name} refers to a config provider, which is not supported here",
                next_step=f"Write the value itself into {path}.",
            )
    reading_converters(found)
    return found


def _converters(config: Mapping[str, str | None]) -> dict[str, str]:
    return {
        name: value
        for name, value in config.items()
        if value is not None and (name in _PARTS or name.startswith(tuple(f"{p}." for p in _PARTS)))
    }
