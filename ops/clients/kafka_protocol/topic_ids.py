"""Leaders and ids of topics, as one Metadata response has them: an id tells a topic from another one of its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.leaders import metadata_request, parts_of
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.sentinels import number_of
from connectctl.ops.kafka.topic_partition import TopicPartition


@dataclass(frozen=True)
class TopicLayouts:
    """The leader of each partition that has one, and the ids of topics, none where brokers are too old for them. ``gone``
    are topics that the broker asked does not know, ``forbidden`` those that may not be described.
    """

    leaders: Mapping[TopicPartition, int] = field(default_factory=dict)
    ids: Mapping[str, UUID] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()


def topic_layouts(wire: KafkaProtocolClient, topics: Sequence[str]) -> TopicLayouts:
    """What a broker knows of ``topics`` now. Raises ``Unreachable``, ``NotAuthorized``."""
    answer = wire.run("look up topics", lambda: wire.ask(metadata_request(topics, newest=12)))
    leaders = {
        place: leader for place, part in parts_of(answer.topics) if (leader := number_of(part.leader_id)) is not None
    }
    ids = {t.name: UUID(str(t.topic_id)) for t in answer.topics if not t.error_code and getattr(t, "topic_id", None)}
    codes = {topic.name: topic.error_code for topic in answer.topics}
    return TopicLayouts(
        leaders,
        {name: id_ for name, id_ in ids.items() if id_.int},
        frozenset(name for name in topics if codes.get(name) == Code.UNKNOWN_TOPIC_OR_PARTITION),
        frozenset(name for name in topics if codes.get(name) == Code.TOPIC_AUTHORIZATION_FAILED),
    )
