"""The records that were read of a cluster's source offsets, the query, and the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property

from connectctl.ops.connect.config_topic import ConfigState
from connectctl.ops.connect.offset_store import Store
from connectctl.ops.connect.source_offsets import ConnectorOffsets
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding
from connectctl.ops.kafka.records import TopicImage
from connectctl.ops.operations.connectors.observe import is_glob

INCOMPLETE = ("OFFSETS009", "OFFSETS011")
"""Findings of an open transaction, and of a topic that could not be read."""


@dataclass(frozen=True)
class ReadTopic:
    """A topic that was read, its role (``global`` or ``dedicated``), and the bootstrap servers of
    another cluster.
    """

    image: TopicImage
    role: str
    bootstrap: str | None = None


@dataclass(frozen=True)
class OffsetsSnapshot:
    """The topics that were read: the global one, and the dedicated ones by connector. ``configs``
    is None if unknown.

    ``stores`` are the separate offset stores of connectors; their topics may not exist. ``unread``
    has the errors of dedicated topics that could not be read, by connector.
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
        """Return whether all topics were read to their end."""
        return not any(f.id in INCOMPLETE for f in self.findings)


@dataclass(frozen=True)
class OffsetsQuery:
    """The offsets to read: of connectors by name or glob (none: all), by topic, and with superseded
    records or without.
    """

    connectors: tuple[str, ...] = ()
    read_global: bool = True
    read_dedicated: bool = True
    superseded: bool = False

    def includes(self, name: str) -> bool:
        """Return whether the query includes the connector ``name``."""
        named, globs = self._wanted
        return not named or name in named or any(fnmatchcase(name, glob) for glob in globs)

    @property
    def chosen(self) -> Callable[[str], bool] | None:
        """Return ``includes`` as a filter of records; None if the query includes all connectors."""
        return self.includes if self.connectors else None

    @cached_property
    def _wanted(self) -> tuple[frozenset[str], list[str]]:
        return frozenset(self.connectors), list(filter(is_glob, self.connectors))


@dataclass(frozen=True)
class WorkerFacts:
    """The version and ``exactly.once.source.support`` of the workers, None if no worker answers."""

    version: str | None = None
    enabled: bool | None = None
