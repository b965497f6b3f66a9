"""Which topics MirrorMaker copies and what it calls them: its topic filter and its two replication
policies. Pure.

Sources: ``DefaultTopicFilter``, ``DefaultReplicationPolicy``, ``IdentityReplicationPolicy``,
``MirrorSourceConnector``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from connectctl.ops.connect.mirror_topics import EXCLUDED_BEFORE_4, INCLUDED
from connectctl.ops.core.errors import BadInput

JAVA = "org.apache.kafka.connect.mirror."
PROPERTIES_EXCLUDE = (
    r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas, "
    r"message\.timestamp\.difference\.max\.ms, message\.timestamp\.type, unclean\.leader\.election\.enable, "
    r"min\.insync\.replicas"
)
"""The default of ``config.properties.exclude``: what a remote topic does not get from its
source.
"""
HEARTBEATS = "heartbeats"
_POLICIES = {
    f"{prefix}{name}ReplicationPolicy": name
    for prefix in (JAVA, "")
    for name in ("Default", "Identity")
}


def pattern(text: str) -> re.Pattern[str] | None:
    """Return names and regular expressions, separated by commas, as one expression; None if there
    are none. Raises ``BadInput``.
    """
    fields = [field.strip() for field in text.split(",") if field.strip()]
    if not fields:
        return None
    try:
        return re.compile("|".join(fields))
    except re.error as e:
        raise BadInput(f"Invalid or unsupported regular expression {text}", why=str(e)) from e


@dataclass(frozen=True)
class ReplicationPolicy:
    """The names of topics on the target cluster; with ``renames`` those of
    DefaultReplicationPolicy, else of IdentityReplicationPolicy.
    """

    source: str
    target: str
    separator: str = "."
    renames: bool = True

    def remote(self, topic: str) -> str:
        """Return the name that the source's ``topic`` has on the target."""
        return f"{self.source}{self.separator}{topic}" if self._marked(topic) else topic

    def source_of(self, topic: str) -> str | None:
        """Return the alias of the cluster that ``topic`` was copied from, None if its name has
        none.
        """
        if not self._marked(topic):
            return self.source
        parts = topic.split(self.separator)
        while parts and not parts[-1]:  # as Java splits: what is empty at the end is no part
            parts.pop()
        return parts[0] if len(parts) > 1 else None

    def upstream(self, topic: str) -> str | None:
        """Return the name of ``topic`` on the cluster that it was copied from."""
        if not self._marked(topic):
            return topic
        source = self.source_of(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original(self, topic: str) -> str:
        """Return the name of ``topic`` on the first cluster of a chain of copies."""
        upstream = self.upstream(topic)
        return topic if upstream is None or upstream == topic else self.original(upstream)

    def is_cycle(self, topic: str) -> bool:
        """Return whether ``topic`` was copied from the target cluster."""
        source, upstream = self.source_of(topic), self.upstream(topic)
        if source is None or source == self.target:
            return source is not None
        return upstream is not None and upstream != topic and self.is_cycle(upstream)

    def is_internal(self, topic: str) -> bool:
        """Return whether it is an internal topic of Kafka, Connect or MirrorMaker."""
        ends = (f"{self.separator}internal", ".internal", "-internal")
        return topic.startswith(("__", ".")) or topic.endswith(ends)

    def _marked(self, topic: str) -> bool:
        return self.renames or topic.endswith(HEARTBEATS)


@dataclass(frozen=True)
class Selection:
    """The topics that a configuration asks for."""

    policy: ReplicationPolicy
    wanted: re.Pattern[str] | None
    unwanted: re.Pattern[str] | None
    heartbeats: bool

    def includes(self, topic: str) -> bool:
        filtered = _matches(self.wanted, topic) and not _matches(self.unwanted, topic)
        beats = self.heartbeats and self.policy.original(topic) == HEARTBEATS
        return (
            (filtered or beats)
            and not self.policy.is_internal(topic)
            and not self.policy.is_cycle(topic)
        )


def _matches(wanted: re.Pattern[str] | None, topic: str) -> bool:
    return wanted is not None and wanted.fullmatch(topic) is not None


def policy_of(config: Mapping[str, str]) -> ReplicationPolicy:
    """Return the policy that ``config`` names. Raises ``BadInput`` for other classes."""
    name = config.get("replication.policy.class", "DefaultReplicationPolicy")
    if name not in _POLICIES:
        raise BadInput(
            f"Unsupported replication policy {name}",
            next_step="Use DefaultReplicationPolicy or IdentityReplicationPolicy.",
        )
    return ReplicationPolicy(
        config.get("source.cluster.alias", ""),
        config.get("target.cluster.alias", "target"),
        config.get("replication.policy.separator", "."),
        renames=_POLICIES[name] == "Default",
    )


def selection_of(config: Mapping[str, str]) -> Selection:
    """Return the topics that ``config`` asks for. Raises ``BadInput``."""
    return Selection(
        policy_of(config),
        pattern(config.get("topics", INCLUDED)),
        pattern(config.get("topics.exclude", EXCLUDED_BEFORE_4)),
        config.get("heartbeats.replication.enabled", "true").lower() != "false",
    )
