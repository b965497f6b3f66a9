"""Reads a saved topic, or a backup of source offsets, instead of a broker; for the format of both see
``dump_lines``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect import config_topic
from connectctl.ops.connect.offset_store import Store, separate_store
from connectctl.ops.connect.source_keys import owner_of
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka import memory
from connectctl.ops.kafka.partitioner import murmur2, partitions_of
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage
from connectctl.ops.operations.offsets.dump_lines import blocks_of, lines_of, name_of, read_records
from connectctl.ops.operations.offsets.effective_offsets import TOGETHER
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot, ReadTopic
from connectctl.ops.operations.offsets.topic_state import CONNECTS_DEFAULT, OffsetsTopicState

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.record_changes import Saved


def read_dump(
    blocks: Iterable[bytes], source: str, *, by_cluster: bool = False, connector: str | None = None
) -> dict[Any, Collection[ConsumerRecord]]:
    """Return the records of a dump by topic, or ``by_cluster`` by bootstrap servers and topic.

    With ``connector`` only its records. Raises ``BadInput`` for an invalid line,
    ``ConnectctlError`` if memory is insufficient.
    """
    found: dict[Any, list[ConsumerRecord]] = {}
    owner = None if connector is None else connector.encode(errors="surrogatepass")
    held = count(1)
    for where, record in read_records(blocks, source):
        records = found.setdefault(where if by_cluster else where[1], [])
        if owner is None or owner_of(record.key) == owner:
            records.append(record)
            if (number := next(held)) % TOGETHER == 0:
                memory.check(number, source)
    return {**found}


def read_file(path: Path) -> dict[str, Collection[ConsumerRecord]]:
    """Return the records of the dump in ``path`` by topic, of standard input for ``-``; raises as
    ``read_dump``.
    """
    return read_dump(blocks_of(path), name_of(path))


def _no_global_topic(source: str, others: Sequence[str], chosen: str | None) -> BadInput:
    if not others:
        return BadInput(
            f"{source} has no record of an offsets topic",
            next_step="Show the offsets of a cluster: connectctl offsets show.",
        )
    if chosen is None:
        what = f"{source} has records of {len(others)} topics; its offsets topic is unknown"
    else:
        what = f"{source} has no record of the offsets topic {chosen}"
    return BadInput(
        what, next_step=f"Name it with --offsets-topic; the dump has: {', '.join(others)}."
    )


def snapshot(
    topics: Mapping[str, Collection[ConsumerRecord]],
    source: str,
    offsets_topic: str | None,
    query: OffsetsQuery,
    partitions: int | None = None,
    configs: config_topic.ConfigState | None = None,
) -> OffsetsSnapshot:
    """Return the snapshot that ``observe`` would return for these records.

    The config topic is the topic with Connect's configuration records, or else ``configs``. The
    global offsets topic is ``offsets_topic``, or else the only other topic. Further topics are the
    dedicated topics of connectors with such a configuration.
    """
    config = next((topic for topic, records in topics.items() if _holds_configs(records)), None)
    others = [topic for topic in topics if topic != config]
    chosen = offsets_topic if offsets_topic is not None or len(others) != 1 else others[0]
    if chosen is not None and configs is not None:
        topics = {chosen: [], **topics}  # A backup has no lines of an empty topic.
    elif chosen not in others:
        raise _no_global_topic(source, others, chosen)
    if config is not None:
        configs = config_topic.parse(_latest(topics[config]), config, topics[config])
    stores: dict[str, Store] = {}
    for name, connector in (configs.connectors if configs else {}).items():
        store = separate_store(
            connector.config,
            chosen,
            connector.config.get("producer.override.bootstrap.servers", ""),
        )
        if store is not None and store.topic in others and query.includes(name):
            stores[name] = store
    return OffsetsSnapshot(
        ReadTopic(_image(chosen, topics[chosen], partitions), "global")
        if query.read_global
        else None,
        {
            n: ReadTopic(_image(s.topic, topics[s.topic], partitions), "dedicated")
            for n, s in stores.items()
        }
        if query.read_dedicated
        else {},
        configs,
        stores=stores,
        findings=configs.findings if configs else (),
    )


def _holds_configs(records: Collection[ConsumerRecord]) -> bool:
    beginnings = (config_topic.CONNECTOR, config_topic.COMMIT, config_topic.TARGET, "session-key")
    starts = tuple(beginning.encode() for beginning in beginnings)
    return any(record.key is not None and record.key.startswith(starts) for record in records)


def _latest(records: Iterable[ConsumerRecord]) -> tuple[ConsumerRecord, ...]:
    newest: dict[tuple[int, bytes | None], ConsumerRecord] = {}
    for record in sorted(records, key=lambda r: r.offset):
        newest[record.partition, record.key] = record
    return tuple(newest.values())


def _image(topic: str, records: Collection[ConsumerRecord], partitions: int | None) -> TopicImage:
    """Return the image of a topic from its dump; records without a partition get the one of Java's
    partitioner.
    """
    # The sample is from the whole dump: the first records of a backup are all of one partition.
    sample = list(islice(records, 0, None, max(1, len(records) // 2000)))
    number = partitions or _likely_partitions(
        sample, max((r.partition for r in records), default=0) + 1
    )
    placed = _placed(records, number)
    latest = _latest(placed)
    kept = set(map(id, latest))
    ends = dict.fromkeys(range(number), 0)
    for record in placed:
        if record.partition in ends:
            ends[record.partition] = max(ends[record.partition], record.offset + 1)
    return TopicImage(
        topic, len(records), latest, ends, superseded=tuple(r for r in placed if id(r) not in kept)
    )


def _likely_partitions(sample: Sequence[ConsumerRecord], least: int) -> int:
    """Return the probable number of partitions of the topic; a dump has only those with records.

    It is the number, at least ``least``, with which Java's partitioner assigns most keys to their
    actual partitions.
    """
    known = {
        (murmur2(r.key) & 0x7FFFFFFF, r.partition)
        for r in sample
        if r.key is not None and r.partition >= 0
    }
    if not known:
        return CONNECTS_DEFAULT
    return max(
        range(least, least + 200), key=lambda count: (sum(h % count == p for h, p in known), -count)
    )


def _placed(records: Collection[ConsumerRecord], partitions: int) -> list[ConsumerRecord]:
    """Return ``records``, those without a partition with the one of Java's partitioner."""
    homes = iter(partitions_of([r.key or b"" for r in records if r.partition < 0], partitions))
    return [r if r.partition >= 0 else r._replace(partition=next(homes)) for r in records]


def backup_lines(states: Sequence[OffsetsTopicState]) -> Iterator[str]:
    """Yield the records of ``states`` as lines of a backup."""
    for state in states:
        yield from lines_of(chain(*state.records.values()), state.topic, state.bootstrap)


def read_backup(path: Path, connector: str | None = None) -> Saved:
    """Return the records of a backup by topic, of one ``connector`` or of all; ``-`` is standard
    input.

    Topics without records of the connector are included. Raises ``BadInput``.
    """
    return read_dump(blocks_of(path), name_of(path), by_cluster=True, connector=connector)
