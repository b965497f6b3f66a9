"""The topics that a sink or transform reads: ``topics`` or ``topics.regex``, as in
``SinkConnectorConfig``. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from connectctl.ops.task_runtime.group.consumer_settings import ConsumerSettings, consumer_settings

TOPICS, REGEX = "topics", "topics.regex"


@dataclass(frozen=True)
class Subscription:
    """The topics, by name or by a pattern for the whole name, and the settings of the consumer."""

    consumer: ConsumerSettings
    topics: tuple[str, ...] = ()
    regex: str | None = None

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the arguments of librdkafka's subscribe: ``^`` begins a pattern."""
        return self.topics if self.regex is None else (f"^({self.regex})$",)

    def __str__(self) -> str:
        return ", ".join(self.topics) if self.regex is None else f"topics that match {self.regex}"


def subscription(name: str, config: Mapping[str, str]) -> Subscription:
    """Return the subscription of the connector ``name``. Raises ``BadInput`` for settings of the
    consumer.
    """
    regex = config.get(REGEX, "").strip() or None
    return Subscription(consumer_settings(name, config), input_topics(config), regex)


def input_topics(config: Mapping[str, str]) -> tuple[str, ...]:
    """Return the topics named by ``topics``, without duplicates."""
    return tuple(
        dict.fromkeys(each.strip() for each in config.get(TOPICS, "").split(",") if each.strip())
    )


def input_problems(config: Mapping[str, str]) -> Iterator[str]:
    """Yield the problems of both properties, with the messages of ``SinkConnectorConfig``."""
    regex = config.get(REGEX, "").strip()
    names = input_topics(config)
    if bool(names) == bool(regex):
        yield f"Must configure {'one' if not names else 'only one'} of {TOPICS} or {REGEX}"
    if regex:
        try:
            re.compile(regex)
        except re.error as e:
            yield f"Invalid regular expression {regex} of {REGEX}: {e}"
