"""References to secrets in files of configurations: ``{env: NAME}``, ``{file: PATH}``, ``{command: LINE}``, as in contexts.

They are read where the file is applied, so that no secret has to be in it. What Kafka's config providers take, such as
``${file:…}``, is text and no concern of these: workers resolve it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectctl.ops.config.settings import SecretSource

KINDS = ("env", "file", "command")


def reference_of(members: Mapping[str, Any]) -> SecretSource | None:
    """The reference that an object with ``members`` is, None for any other object."""
    if len(members) != 1:
        return None
    kind, value = next(iter(members.items()))
    return SecretSource(kind, value) if kind in KINDS and isinstance(value, str) and value else None
