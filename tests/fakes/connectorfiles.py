"""A file of connectors, read as a test wants it: all configurations, or the error."""

from __future__ import annotations

from connectctl.ops.config.connector_file import Given, read_contents


def parse(raw: bytes, file: str) -> tuple[Given, ...]:
    """Return the configurations in ``raw``. Raises ``BadInput`` as ``read_contents`` does, and if
    there are none.
    """
    found = read_contents(raw, file)
    if found.refused is not None:
        raise found.refused
    return found.given
