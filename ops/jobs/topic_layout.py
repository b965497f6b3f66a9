"""A Kafka cluster that has the layouts of large topics before anything is read of them, and then
the records that Spark kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from connectctl.ops.clients.protocols import KafkaReads
from connectctl.ops.jobs.offsets import Source
from connectctl.ops.jobs.topic_reader import WantedKeys
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage, UnreadTail
from connectctl.ops.kafka.topics import OffsetRange
from connectctl.ops.operations.cluster.internal_topic_discovery import those_that_exist
from connectctl.ops.operations.cluster.open_transactions import settled

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.operations.offsets.observe import Sources
    from connectctl.ops.operations.offsets.record_changes import Where


@dataclass
class _Topic:
    """A requested topic: its cluster, its ends, and its records."""

    kafka: KafkaReads
    extents: Mapping[int, OffsetRange]
    image: TopicImage


class TopicLayout:
    """The layout of the topics of ``sources``: requested images are noted, and are empty until
    ``fill``.

    The config topic, which is small and has the names of other topics, is read once as usual.
    """

    def __init__(self, sources: Sources):
        self._topics: dict[Source, _Topic] = {}
        self._whole = {Source(None, sources.config_topic)} if sources.config_topic else set()
        self._read: dict[str, TopicImage] = {}

        def other(bootstrap: str, overrides: Mapping[str, str]) -> KafkaReads:
            return cast(
                "KafkaReads", _SeenTopic(self, sources.other_kafka(bootstrap, overrides), bootstrap)
            )

        kafka = cast("KafkaReads", _SeenTopic(self, sources.kafka, None))
        self.sources = replace(sources, kafka=kafka, other_kafka=other)

    @property
    def records(self) -> int:
        """Return the maximum number of records in the topics."""
        return sum(topic.image.records for topic in self._topics.values())

    def wanted(self, owners: Mapping[Source, frozenset[str] | None]) -> list[WantedKeys]:
        """Return what to read: of each topic the keys of its ``owners``, or of all if None."""
        found = []
        for source, topic in self._topics.items():
            kafka, wanted = cast("Kafka", topic.kafka), owners.get(source, frozenset())
            ends = {
                p: min(extent.stable, extent.end)
                for p, extent in topic.extents.items()
                if extent.end > extent.first
            }
            found.append(WantedKeys(source, kafka.client, kafka.timeout, ends, wanted))
        return found

    def sources_of(self) -> list[Source]:
        """Return the requested topics."""
        return list(self._topics)

    def fill(
        self, records: Mapping[Source, Collection[ConsumerRecord]]
    ) -> dict[str, dict[Where, Any]]:
        """Let the topics hold ``records``, and give those that are of backups, by connector."""
        for source, topic in self._topics.items():
            topic.image = replace(topic.image, latest=records.get(source, ()))
        saved: dict[str, dict[Where, Any]] = {}
        for source, newest in records.items():
            if source.saved_for is not None:
                saved.setdefault(source.saved_for, {})[source.bootstrap, source.topic] = newest
        return saved

    def image(self, kafka: KafkaReads, source: Source, patience: float) -> TopicImage:
        if source in self._whole:
            if source.topic not in self._read:
                self._read |= kafka.image([source.topic], patience=patience)
            return self._read[source.topic]
        if source not in self._topics:
            first, last = (
                e[source.topic] for e in settled(lambda: kafka.extents([source.topic]), patience)
            )
            extents = {p: replace(extent, stable=last[p].stable) for p, extent in first.items()}
            self._topics[source] = _Topic(kafka, extents, _empty(source.topic, extents))
        return self._topics[source].image


class _SeenTopic:
    """A cluster's ``KafkaReads``, but for images, which are the layout's."""

    def __init__(self, layout: TopicLayout, kafka: KafkaReads, bootstrap: str | None):
        self._layout, self._kafka, self._bootstrap = layout, kafka, bootstrap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kafka, name)

    def image(self, topics: Sequence[str], *, patience: float, **how: Any) -> dict[str, TopicImage]:
        existing = those_that_exist(self._kafka, *topics)
        return {
            t: self._layout.image(self._kafka, Source(self._bootstrap, t), patience)
            for t in existing
        }


def _empty(topic: str, extents: Mapping[int, OffsetRange]) -> TopicImage:
    held = [
        UnreadTail(p, extent.stable, extent.end)
        for p, extent in extents.items()
        if extent.stable < extent.end
    ]
    records = sum(extent.end - extent.first for extent in extents.values())
    return TopicImage(
        topic, records, (), {p: extent.end for p, extent in extents.items()}, tuple(held)
    )
