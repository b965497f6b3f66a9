"""The rounds of a group of workers, as its coordinator records them in ``__consumer_offsets``.

Source: ``GroupMetadataKey`` and ``GroupMetadataValue`` of the group coordinator, versions 0 to 3. A
coordinator writes one record for each generation; compaction keeps at least the newest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from connectctl.ops.connect.connect_protocol import decode_metadata, rest_url
from connectctl.ops.kafka.field_reader import FieldReader
from connectctl.ops.kafka.records import ConsumerRecord

_GROUP_KEY = 2
"""The version of the keys of records about groups."""
_NEWEST = 3


@dataclass(frozen=True)
class GroupRound:
    """A generation of a group. ``at`` is when it began, in seconds since the epoch.

    ``members`` are the config offsets of its workers by name: ``host:port`` of the REST server, or
    the client id and host of a worker without one. ``leader`` is one of these names, empty without
    members. ``ids`` are these names by member id: a worker that starts again has a new one.
    """

    generation: int
    at: float
    leader: str
    members: dict[str, int]
    ids: Mapping[str, str]


def key_of(group_id: str) -> bytes:
    """Return the key of the records about a group."""
    name = group_id.encode()
    return _GROUP_KEY.to_bytes(2, "big") + len(name).to_bytes(2, "big") + name


def rounds_in(records: Iterable[ConsumerRecord]) -> tuple[GroupRound, ...]:
    """Return the generations in records about one group, oldest first. Records that cannot be
    decoded are left out.
    """
    found: dict[int, GroupRound] = {}
    for record in sorted(records, key=lambda r: r.offset):
        if record.value:
            with suppress(ValueError):
                each = _decoded(record.value, (record.timestamp or 0) / 1000)
                # the first record of a generation; later ones repeat it
                found.setdefault(each.generation, each)
    return tuple(found.values())


def _decoded(value: bytes, written: float) -> GroupRound:
    reader = FieldReader(value)
    version = reader.number(2)
    if not 0 <= version <= _NEWEST:
        raise ValueError(f"its version is {version}")
    reader.string()
    generation = reader.number(4)
    reader.string()
    leader_id = reader.string()
    changed = reader.number(8) / 1000 if version >= 2 else -1.0
    leader, members, ids = "", dict[str, int](), dict[str, str]()
    for _ in range(max(0, reader.number(4))):
        member_id = reader.string()
        if version >= 3:
            reader.string()
        client, host = reader.string(), reader.string()
        reader.take(8 if version >= 1 else 4)
        url, offset = decode_metadata(reader.block())
        reader.block()
        address = rest_url(url).partition("//")[2].partition("/")[0]
        name = address or f"{client}@{host.lstrip('/')}"
        members[name] = offset
        ids[member_id] = name
        leader = name if member_id == leader_id else leader
    return GroupRound(generation, changed if changed > 0 else written, leader, members, ids)
