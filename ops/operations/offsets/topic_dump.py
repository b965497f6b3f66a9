"""A saved topic instead of a broker: one JSON object per line, as ``kcat -C -J`` writes it or as we do.

``key`` and ``value`` (kcat: ``payload``) are the record's bytes as text, null where the record has none; ``keyBase64`` and
``valueBase64`` carry what is no UTF-8. ``topic``, ``partition``, ``offset`` and ``timestamp`` (kcat: ``ts``) may be left
out, but for ``topic`` where the dump holds several.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect import config_topic
from connectctl.ops.connect.offset_store import Store, separate_store
from connectctl.ops.connect.source_keys import owner_of
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka import spill
from connectctl.ops.kafka.partitioner import java_partition, murmur2
from connectctl.ops.kafka.records import Record, TopicImage, record_in
from connectctl.ops.kafka.spill import Spilled, in_order
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot, ReadTopic
from connectctl.ops.operations.sink_offsets.backup_file import is_group

UNNAMED = "dump"
CONNECTS_DEFAULT = 25
"""Partitions of an offsets topic where nobody says otherwise (``offset.storage.partitions``)."""


def read_dump(
    lines: Iterable[str],
    source: str,
    named: Callable[[dict[str, Any]], Any] = lambda data: data.get("topic", UNNAMED),
    *,
    superseded: bool = False,
) -> dict[Any, Collection[Record]]:
    """The records of a dump by what ``named`` makes of a line, its topic. Raises ``BadInput`` that names the line.

    What is too much for memory goes to disk, of each key the newest record in each partition; with ``superseded`` all are
    kept in memory.
    """
    found: dict[Any, list[Record]] = {}
    spilled: dict[Any, Spilled] = {}
    for number, (data, record) in enumerate(read_lines(lines, source), start=1):
        found.setdefault(named(data), []).append(record)
        if not superseded and number % spill.MOST == 0:
            for name, records in found.items():
                spilled.setdefault(name, Spilled(owner_of)).add(records)
                records.clear()
    for name, there in spilled.items():
        there.add(found[name])
    return {name: spilled.get(name, records) for name, records in found.items()}


def read_lines(lines: Iterable[str], source: str) -> Iterator[tuple[dict[str, Any], Record]]:
    """Each line that has a record, as JSON and as that. Raises ``BadInput`` that names the line.

    Empty lines, and those with the offsets of sinks' groups, are passed over.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = read_json(line)
            if is_group(data):
                continue
            record = _record(data, number)
        except (ValueError, TypeError, AttributeError, KeyError) as e:
            raise BadInput(
                f"{source}, line {number}: this is no record",
                why=str(e) or type(e).__name__,
                next_step='Each line is like {"topic":"…","partition":0,"offset":0,"key":"…","value":"…"}.',
            ) from e
        yield data, record


def read_file(path: Path, *, superseded: bool = False) -> dict[str, Collection[Record]]:
    """The records of the dump in ``path`` by topic, standard input for ``-``; see ``read_dump``. Raises ``BadInput``."""
    return read_dump(lines_of(path), name_of(path), superseded=superseded)


def checked(path: Path) -> Iterator[bytes]:
    """The lines of a dump. Raises ``BadInput`` as ``read_file`` does."""
    read: list[str] = []

    def lines() -> Iterator[str]:
        for line in lines_of(path):
            read.append(line)
            yield line

    for _ in read_lines(lines(), name_of(path)):
        yield from (line.encode() for line in read)
        read.clear()
    yield from (line.encode() for line in read)


def name_of(path: Path) -> str:
    """What to call ``path`` in a message."""
    return "standard input" if str(path) == "-" else str(path)


def lines_of(path: Path) -> Iterator[str]:
    """The lines in ``path``, of standard input for ``-``, of a directory's part files. Raises ``BadInput``.

    They end at a line feed only, and not at U+2028 in a text.
    """
    try:
        for part in sorted(path.glob("part-*")) if path.is_dir() else (path,):
            with nullcontext(sys.stdin.buffer) if str(part) == "-" else part.open("rb") as file:
                for line in file:
                    yield line.decode()
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else "it is not UTF-8 text"
        raise BadInput(f"The dump {path} cannot be read", why=why) from e


def _record(data: dict[str, Any], number: int) -> Record:
    if "key" not in data and "keyBase64" not in data:
        raise KeyError("it has no key")
    value = data["value"] if "value" in data else data.get("payload")
    timestamp = data.get("timestamp", data.get("ts"))
    return Record(
        _bytes(data.get("key"), data.get("keyBase64")),
        _bytes(value, data.get("valueBase64")),
        int(data.get("partition", -1)),
        int(data.get("offset", number - 1)),
        None if timestamp is None else int(timestamp),
    )


def _bytes(text: Any, encoded: str | None) -> bytes | None:
    if encoded is not None:
        return base64.b64decode(encoded, validate=True)
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError("key and value must be the record's bytes as text, or null")
    return text.encode()


def snapshot(
    topics: Mapping[str, Collection[Record]],
    source: str,
    offsets_topic: str | None,
    query: OffsetsQuery,
    partitions: int | None = None,
    configs: config_topic.ConfigState | None = None,
) -> OffsetsSnapshot:
    """What ``observe`` would have seen of these records.

    A topic with Connect's configuration records serves as the config topic, or else ``configs``. The global offsets topic
    is the one named, or else the only one left; others are the dedicated topics of the connectors configured for them.
    """
    config = next((topic for topic, records in topics.items() if _holds_configs(records)), None)
    others = [topic for topic in topics if topic != config]
    chosen = offsets_topic if offsets_topic is not None or len(others) != 1 else others[0]
    if chosen is not None and configs is not None:
        topics = {chosen: [], **topics}  # a backup has no lines of a topic that held nothing
    elif chosen not in others:
        what = "which is the global one" if chosen is None else f"and {chosen} is not among them"
        hint = f"Name it with --offsets-topic; the dump has: {', '.join(others) or 'no offsets'}."
        raise BadInput(f"{source} holds {len(others)} offsets topics, {what}", next_step=hint)
    if config is not None:
        configs = config_topic.parse(_latest(topics[config]), config)
    stores: dict[str, Store] = {}
    for name, connector in (configs.connectors if configs else {}).items():
        store = separate_store(
            connector.config, chosen, connector.config.get("producer.override.bootstrap.servers", "")
        )
        if store is not None and store.topic in others and query.takes(name):
            stores[name] = store
    return OffsetsSnapshot(
        ReadTopic(_image(chosen, topics[chosen], partitions), "global") if query.read_global else None,
        {n: ReadTopic(_image(s.topic, topics[s.topic], partitions), "dedicated") for n, s in stores.items()}
        if query.read_dedicated
        else {},
        configs,
        stores=stores,
        findings=configs.findings if configs else (),
    )


def _holds_configs(records: Collection[Record]) -> bool:
    beginnings = (config_topic.CONNECTOR, config_topic.COMMIT, config_topic.TARGET, "session-key")
    # Of what has no owner: of a topic too big for memory that is where the first rows are.
    keys = (row[1] for row in in_order(records, owner_of, b""))
    return any(key.decode(errors="replace").startswith(beginnings) for key in keys)


def _latest(records: Iterable[Record]) -> tuple[Record, ...]:
    newest: dict[tuple[int, bytes | None], Record] = {}
    for record in sorted(records, key=lambda r: r.offset):
        newest[record.partition, record.key] = record
    return tuple(newest.values())


def _image(topic: str, records: Collection[Record], partitions: int | None) -> TopicImage:
    """The topic as its dump shows it; a dump without partitions is taken as laid out by Java's partitioner."""
    if isinstance(records, Spilled):
        return _big_image(topic, records, partitions)
    # From all over the dump: the first records of a backup are all of one partition.
    sample = list(islice(records, 0, None, max(1, len(records) // 2000)))
    count = partitions or _likely_partitions(sample, max((r.partition for r in records), default=0) + 1)
    placed = [r if r.partition >= 0 else _placed(r, count) for r in records]
    latest = _latest(placed)
    kept = set(map(id, latest))
    ends = dict.fromkeys(range(count), 0)
    for record in placed:
        if record.partition in ends:
            ends[record.partition] = max(ends[record.partition], record.offset + 1)
    return TopicImage(topic, len(records), latest, ends, superseded=tuple(r for r in placed if id(r) not in kept))


def _big_image(topic: str, records: Spilled, partitions: int | None) -> TopicImage:
    """The same of a topic too big for memory, without what newer records superseded."""
    sample: list[Record] = []
    ends: dict[int, int] = {}
    for rows in records.blocks():
        sample += map(record_in, rows[:: len(rows) // 20 + 1])
        for _, _, _, partition, offset, _, _ in rows:
            if offset >= ends.get(partition, 0):
                ends[partition] = offset + 1
    count = partitions or _likely_partitions(sample, max(ends) + 1)
    if ends.pop(-1, None) is None:
        ends = {partition: ends.get(partition, 0) for partition in range(count)}
        return TopicImage(topic, records.added, records, ends, in_order=True)
    everywhere, placed = (r if r.partition >= 0 else _placed(r, count) for r in records), Spilled(owner_of)
    while some := list(islice(everywhere, spill.MOST)):
        placed.add(some)
    return replace(_big_image(topic, placed, count), records=records.added)


def _likely_partitions(sample: Sequence[Record], least: int) -> int:
    """How many partitions the topic had: a dump shows only those with records, but the keys' places tell.

    The count, from the ``least`` possible one on, under which most keys lie where Java's partitioner puts them.
    """
    known = {(murmur2(r.key) & 0x7FFFFFFF, r.partition) for r in sample if r.key is not None and r.partition >= 0}
    if not known:
        return CONNECTS_DEFAULT
    return max(range(least, least + 200), key=lambda count: (sum(h % count == p for h, p in known), -count))


def _placed(record: Record, partitions: int) -> Record:
    home = java_partition(record.key or b"", partitions)
    return Record(record.key, record.value, home, record.offset, record.timestamp)
