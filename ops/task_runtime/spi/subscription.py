"""Which topics a sink or transform reads: ``topics`` or ``topics.regex``, as ``SinkConnectorConfig`` has them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from connectctl.ops.task_runtime.group.consumer_settings import ConsumerSettings, consumer_settings

TOPICS, REGEX = "topics", "topics.regex"


@dataclass(frozen=True)
class Subscription:
    """The topics, by name or by a pattern for their whole name, and how they are read."""

    consumer: ConsumerSettings
    topics: tuple[str, ...] = ()
    regex: str | None = None

    @property
    def patterns(self) -> tuple[str, ...]:
        """As librdkafka subscribes: ``^`` begins a pattern."""
        return self.topics if self.regex is None else (f"^({self.regex})$",)

    def __str__(self) -> str:
        return ", ".join(self.topics) if self.regex is None else f"topics that match {self.regex}"


def subscription(name: str, config: Mapping[str, str]) -> Subscription:
    """That of the connector ``name``. Raises ``BadInput`` for settings of the consumer."""
    regex = config.get(REGEX, "").strip() or None
    return Subscription(consumer_settings(name, config), input_topics(config), regex)


def input_topics(config: Mapping[str, str]) -> tuple[str, ...]:
    """Those named by ``topics``, each once."""
    return tuple(dict.fromkeys(each.strip() for each in config.get(TOPICS, "").split(",") if each.strip()))


def input_problems(config: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with both properties, in the words of ``SinkConnectorConfig``."""
    regex = config.get(REGEX, "").strip()
    names = input_topics(config)
    if bool(names) == bool(regex):
        yield f"Must configure {'one' if not names else 'only one'} of {TOPICS} or {REGEX}"
    if regex:
        try:
            re.compile(regex)
        except re.error as e:
            yield f"Invalid regular expression {regex} of {REGEX}: {e}"
