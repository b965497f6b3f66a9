"""The offsets of groups in a file of ``offsets backup``: one line per group, in addition to the
records of source offsets.

::

{"connector": "archive", "group": "connect-archive", "offsets": [{"partition": {…}, "offset": {…}}]}

``offsets`` are in the format of KIP-875. Such a line has ``group``, and no key of a record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.json_text import read_json
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.operations.sink_offsets.changes import entries_json
from connectctl.ops.operations.sink_offsets.observe import group_of

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import GroupOffsetWrites
    from connectctl.ops.connect.config_topic import ConfiguredConnector


def group_line(connector: str, group: str, committed: Mapping[TopicPartition, int]) -> str:
    data = {"connector": connector, "group": group, "offsets": entries_json(committed)}
    return json.dumps(data, ensure_ascii=False)


def group_lines(
    groups: Callable[[], GroupOffsetWrites],
    sinks: Sequence[ConfiguredConnector],
    failed: Callable[[ConnectctlError], None],
) -> Iterator[str]:
    """Yield the groups of ``sinks`` as lines of a backup; ``failed`` is called with the error of a
    group.
    """
    by_group: dict[str, list[str]] = {}
    for sink in sinks:
        try:
            by_group.setdefault(group_of(sink), []).append(sink.name)
        except BadInput as e:
            failed(e)
    for group, found in (groups().committed_of(list(by_group)) if by_group else {}).items():
        if isinstance(found, ConnectctlError):
            failed(found)
            continue
        yield from (group_line(name, group, found) for name in by_group[group])


def is_group(data: Any) -> bool:
    """Return whether ``data`` is a line of ``group_line``, and not a record."""
    return (
        isinstance(data, dict) and "group" in data and "key" not in data and "keyBase64" not in data
    )


def saved_offsets(lines: Iterable[str], connector: str, source: str) -> list[dict[str, Any]]:
    """Return the offsets of ``connector`` in a backup. Raises ``BadInput`` if it has no line of the
    connector.
    """
    for line in lines:
        data: Any = read_json(line) if '"group"' in line else None
        if (
            is_group(data)
            and data.get("connector") == connector
            and isinstance(data.get("offsets"), list)
        ):
            return list(data["offsets"])
    raise BadInput(
        f"{source} has no committed offsets of {connector}",
        next_step=f"Save them: connectctl offsets backup {connector}.",
    )
