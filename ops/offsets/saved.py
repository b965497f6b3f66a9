"""A backup of source offsets: one line per record, that brings it back byte for byte to the topic that it is from."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.ops.offsets import dump

if TYPE_CHECKING:
    from connectctl.ops.edges.contract import Record
    from connectctl.ops.offsets.decide import Place

Where = tuple[str | None, str]
"""A topic: its cluster's bootstrap servers, None for the workers' own cluster, and its name."""
Saved = Mapping[Where, Sequence["Record"]]
"""The records of a backup by topic. Topics of one name on two clusters are two topics."""


def backup_lines(places: Sequence[Place]) -> Iterator[str]:
    """The records in ``places`` as lines of a dump."""
    for at in places:
        where = {"bootstrapServers": at.bootstrap} if at.bootstrap else {}
        for records in at.records.values():
            for record in records:
                data: dict[str, Any] = {"topic": at.topic, "partition": record.partition, "offset": record.offset}
                data |= {"timestamp": record.timestamp} | _named("key", record.key) | _named("value", record.value)
                yield json.dumps(data | where, ensure_ascii=False)


def _named(name: str, raw: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if raw is None else raw.decode()}
    except UnicodeDecodeError:
        return {f"{name}Base64": base64.b64encode(raw or b"").decode()}


def read_backup(path: Path) -> Saved:
    """What ``backup_lines`` wrote, from a file or, for ``-``, standard input. Raises ``BadInput``."""
    found: dict[Where, list[Record]] = {}
    for data, record in dump.read_lines(dump.text_of(path).split("\n"), dump.name_of(path)):
        found.setdefault((data.get("bootstrapServers"), data.get("topic", dump.UNNAMED)), []).append(record)
    return found
