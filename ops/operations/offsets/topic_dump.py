"""A saved topic instead of a broker: one JSON object per line, as ``kcat -C -J`` writes it or as we do.

``key`` and ``value`` (kcat: ``payload``) are the record's bytes as text, null where the record has none; ``keyBase64`` and
``valueBase64`` carry what is no UTF-8. ``topic``, ``partition``, ``offset`` and ``timestamp`` (kcat: ``ts``) may be left
out, but for ``topic`` where the dump holds several.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect import config_topic
from connectctl.ops.connect.offset_store import Store, separate_store
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.partitioner import java_partition, murmur2
from connectctl.ops.kafka.records import Record, TopicImage
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot, ReadTopic

UNNAMED = "dump"
CONNECTS_DEFAULT = 25
"""Partitions of an offsets topic where nobody says otherwise (``offset.storage.partitions``)."""


def read_dump(lines: Iterable[str], source: str) -> dict[str, list[Record]]:
    """The records of a dump by topic. Raises ``BadInput`` that names the line."""
    found: dict[str, list[Record]] = {}
    for data, record in read_lines(lines, source):
        found.setdefault(data.get("topic", UNNAMED), []).append(record)
    return found


def read_lines(lines: Iterable[str], source: str) -> Iterator[tuple[dict[str, Any], Record]]:
    """Each line that is not empty, as JSON and as a record. Raises ``BadInput`` that names the line."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = read_json(line)
            record = _record(data, number)
        except (ValueError, TypeError, AttributeError, KeyError) as e:
            raise BadInput(
                f"{source}, line {number}: this is no record",
                why=str(e) or type(e).__name__,
                next_step='Each line is like {"topic":"…","partition":0,"offset":0,"key":"…","value":"…"}.',
            ) from e
        yield data, record


def read_file(path: Path) -> dict[str, list[Record]]:
    """The records of the dump in ``path`` by topic, standard input for ``-``. Raises ``BadInput``."""
    return read_dump(text_of(path).split("\n"), name_of(path))  # not splitlines, which also splits at U+2028 in a text


def name_of(path: Path) -> str:
    """What to call ``path`` in a message."""
    return "standard input" if str(path) == "-" else str(path)


def text_of(path: Path) -> str:
    """The text in ``path``, of standard input for ``-``, of a directory's part files. Raises ``BadInput``."""
    try:
        if path.is_dir():
            return "".join(part.read_bytes().decode() for part in sorted(path.glob("part-*")))
        return (sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()).decode()
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
    topics: dict[str, list[Record]],
    source: str,
    offsets_topic: str | None,
    wish: OffsetsQuery,
    partitions: int | None = None,
    configs: config_topic.ConfigState | None = None,
) -> OffsetsSnapshot:
    """What ``observe`` would have seen of these records.

    A topic with Connect's configuration records serves as the config topic, or else ``configs``. The global offsets topic
    is the one named, or else the only one left; others are the dedicated topics of the connectors configured for them.
    """
    config = next((t for t, records in topics.items() if any(_is_config(r) for r in records)), None)
    others = [topic for topic in topics if topic != config]
    chosen = offsets_topic if offsets_topic is not None or len(others) != 1 else others[0]
    if chosen is not None and configs is not None:
        topics = {chosen: []} | topics  # a backup has no lines of a topic that held nothing
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
        if store is not None and store.topic in others and (not wish.connectors or name in wish.connectors):
            stores[name] = store
    return OffsetsSnapshot(
        ReadTopic(_image(chosen, topics[chosen], partitions), "global") if wish.read_global else None,
        {n: ReadTopic(_image(s.topic, topics[s.topic], partitions), "dedicated") for n, s in stores.items()}
        if wish.read_dedicated
        else {},
        configs,
        stores=stores,
        findings=configs.findings if configs else (),
    )


def _is_config(record: Record) -> bool:
    key = (record.key or b"").decode(errors="replace")
    return key.startswith((config_topic.CONNECTOR, config_topic.COMMIT, config_topic.TARGET, "session-key"))


def _latest(records: Sequence[Record]) -> tuple[Record, ...]:
    newest: dict[tuple[int, bytes | None], Record] = {}
    for record in sorted(records, key=lambda r: r.offset):
        newest[record.partition, record.key] = record
    return tuple(newest.values())


def _image(topic: str, records: Sequence[Record], partitions: int | None) -> TopicImage:
    """The topic as its dump shows it; a dump without partitions is taken as laid out by Java's partitioner."""
    count = partitions or _likely_partitions(records)
    placed = [r if r.partition >= 0 else _placed(r, count) for r in records]
    latest = _latest(placed)
    kept = set(map(id, latest))
    ends = dict.fromkeys(range(count), 0)
    for record in placed:
        if record.partition in ends:
            ends[record.partition] = max(ends[record.partition], record.offset + 1)
    return TopicImage(topic, len(records), latest, ends, superseded=tuple(r for r in placed if id(r) not in kept))


def _likely_partitions(records: Sequence[Record]) -> int:
    """How many partitions the topic had: a dump shows only those with records, but the keys' places tell.

    The count, from the least possible one on, under which most keys lie where Java's partitioner puts them.
    """
    # From all over the dump: the first records of a backup are all of one partition.
    sample = records[:: max(1, len(records) // 2000)]
    known = {(murmur2(r.key) & 0x7FFFFFFF, r.partition) for r in sample if r.key is not None and r.partition >= 0}
    least = max((r.partition for r in records), default=0) + 1
    if not known:
        return CONNECTS_DEFAULT
    return max(range(least, least + 200), key=lambda count: (sum(h % count == p for h, p in known), -count))


def _placed(record: Record, partitions: int) -> Record:
    home = java_partition(record.key or b"", partitions)
    return Record(record.key, record.value, home, record.offset, record.timestamp)
