"""What was read of a cluster's source offsets, the query, and the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

from connectctl.ops.connect.offset_store import Store
from connectctl.ops.connect.source_offsets import ConnectorOffsets
from connectctl.ops.core.finding import Finding
from connectctl.ops.operations.connectors.observe import is_glob

if TYPE_CHECKING:
    from connectctl.ops.connect.config_topic import ConfigState
    from connectctl.ops.core.errors import ConnectctlError
    from connectctl.ops.kafka.records import TopicImage

INCOMPLETE = ("OFFSETS009", "OFFSETS011")
"""Findings of an open transaction, and of a topic that could not be read."""


@dataclass(frozen=True)
class ReadTopic:
    """A topic that was read, its role (``global`` or ``dedicated``), and where, if on another cluster."""

    image: TopicImage
    role: str
    bootstrap: str | None = None

    @property
    def place(self) -> tuple[str | None, str]:
        return self.bootstrap, self.image.topic


@dataclass(frozen=True)
class OffsetsSnapshot:
    """All that was read: the global topic, and the dedicated ones by connector. ``configs`` is None where unknown.

    ``stores`` are the separate stores that connectors are configured for, whether or not their topics exist; ``unread`` has
    the error of each connector's topic that could not be read.
    """

    global_topic: ReadTopic | None
    dedicated: Mapping[str, ReadTopic]
    configs: ConfigState | None
    stores: Mapping[str, Store] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    unread: Mapping[str, ConnectctlError] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceOffsets:
    """The result: connectors with their offsets, and the findings."""

    connectors: tuple[ConnectorOffsets, ...]
    topics: tuple[ReadTopic, ...]
    findings: tuple[Finding, ...]

    @property
    def complete(self) -> bool:
        """Whether all topics could be read to their end."""
        return not any(f.id in INCOMPLETE for f in self.findings)


@dataclass(frozen=True)
class OffsetsQuery:
    """Which offsets to show: connectors by name or glob (none: all), topics, and whether superseded records too."""

    connectors: tuple[str, ...] = ()
    read_global: bool = True
    read_dedicated: bool = True
    superseded: bool = False

    def includes(self, name: str) -> bool:
        """Whether the connector ``name`` is asked for."""
        named, globs = self._wanted
        return not named or name in named or any(fnmatchcase(name, glob) for glob in globs)

    @property
    def chosen(self) -> Callable[[str], bool] | None:
        """``includes`` for a reading; None if all connectors are asked for."""
        return self.includes if self.connectors else None

    @cached_property
    def _wanted(self) -> tuple[frozenset[str], list[str]]:
        return frozenset(self.connectors), list(filter(is_glob, self.connectors))


@dataclass(frozen=True)
class WorkerFacts:
    """What is known of the workers: their version and ``exactly.once.source.support``, None if no worker answers."""

    version: str | None = None
    enabled: bool | None = None
