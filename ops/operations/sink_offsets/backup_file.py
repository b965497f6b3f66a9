"""Groups' offsets in a file of ``offsets backup``: one line per group, beside the lines of source offsets' records.

::

    {"connector": "archive", "group": "connect-archive", "offsets": [{"partition": {…}, "offset": {…}}]}

``offsets`` are in KIP-875's shape. A line with ``group`` and without a record's key is such a one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.json_text import read_json
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.sink_offsets.snapshot import entries_json

if TYPE_CHECKING:
    from connectctl.ops.operations.sink_offsets.snapshot import GroupOffsets


def group_line(found: GroupOffsets) -> str:
    """A group as a line of a backup."""
    return json.dumps(
        {"connector": found.name, "group": found.group.id, "offsets": entries_json(found.committed)}, ensure_ascii=False
    )


def is_group(data: Any) -> bool:
    """Whether ``data`` is what ``group_line`` wrote, and no record."""
    return isinstance(data, dict) and "group" in data and "key" not in data and "keyBase64" not in data


def saved_offsets(lines: Iterable[str], connector: str, source: str) -> list[dict[str, Any]]:
    """The offsets that a backup has of ``connector``. Raises ``BadInput`` where it has none, not even an empty list."""
    for line in lines:
        data: Any = read_json(line) if '"group"' in line else None
        if is_group(data) and data.get("connector") == connector and isinstance(data.get("offsets"), list):
            return list(data["offsets"])
    raise BadInput(
        f"{source} has no committed offsets of {connector}",
        next_step=f"Save them: connectctl offsets backup {connector}.",
    )
