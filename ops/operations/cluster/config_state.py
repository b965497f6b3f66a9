"""The state of a config topic as workers have it. Only this module decides which of its records
workers use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.connect import config_topic

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import KafkaReads
    from connectctl.ops.connect.config_topic import ConfigState
    from connectctl.ops.kafka.records import TopicImage


def with_former(kafka: KafkaReads, image: TopicImage, *, patience: float) -> TopicImage:
    """Return ``image`` of a config topic, read again with superseded records if the newest record
    of a key is ignored.

    Workers keep the state before such a record.
    """
    if image.superseded or not config_topic.state_of(image).ignored:
        return image
    return kafka.image([image.topic], patience=patience, superseded=True).get(image.topic, image)


def state_in(kafka: KafkaReads, image: TopicImage, *, patience: float) -> ConfigState:
    """Return the state of the config topic that ``image`` was read from, with former records if
    workers use them.
    """
    return config_topic.state_of(with_former(kafka, image, patience=patience))
