"""Topics asked for by name: there, not there, or not to be seen by this principal. Nothing creates a topic by that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicCollection
from connectctl.ops.kafka.visibility import Gap, Observation, Reason, describe_topic, observation_of

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.connection import Connection

_NOT_THERE = ("UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID", "TOPIC_EXCEPTION")
"""The last is a name that no topic can have."""
_HIDDEN = "TOPIC_AUTHORIZATION_FAILED"


def existing(kafka: Connection, names: Sequence[str]) -> Observation[frozenset[str]]:
    """Those of ``names`` that there are, with a gap for each that this principal may not describe."""
    if not names:
        return observation_of(frozenset(), ())
    found: set[str] = set()
    hidden: list[Gap] = []
    futures = kafka.admin.describe_topics(TopicCollection(list(dict.fromkeys(names))), request_timeout=kafka.timeout)
    for name, future in futures.items():
        try:
            future.result()
        except KafkaException as e:
            error = e.args[0]
            if error.name() == _HIDDEN:
                hidden.append(Gap(f"topic {name}", Reason.NOT_AUTHORIZED, describe_topic(name)))
            elif error.name() not in _NOT_THERE:
                raise kafka.failure(error, f"look up the topic {name}") from e
        else:
            found.add(name)
    return observation_of(frozenset(found), hidden)
