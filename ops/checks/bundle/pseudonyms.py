"""Replaces the names of topics and connectors in recorded answers by pseudonyms, everywhere and
alike.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from connectctl.ops.checks.bundle.codec import KIND
from connectctl.ops.checks.bundle.tape import Call
from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.connector import path_of

SHORTEST = 3
WORDS = frozenset(
    {
        *("source", "sink", "name", "config", "tasks", "task", "connector", "connectors"),
        *("topic", "topics", "status", "statuses", "offset", "offsets", "state", "type"),
        *("info", "trace", "version", "kafka", "connect", "apache", "org", "com", "key"),
        *("value", "true", "false", "null", "running", "failed", "paused", "stopped"),
        *("unassigned", "restarting", "default", "consumer", "producer", "admin", "file"),
        *("class", "http", "https", "localhost", "errors", "transforms", "predicates"),
        *("converter", "header", "offsets", "storage", "group", "partition", "partitions"),
    }
)
"""Words of Kafka, Connect and configurations: as names they are kept, because they mean nothing and
are everywhere.
"""
_CONNECTOR = re.compile(
    r"(?:connector|target-state|tasks-fencing|commit|restart-connector|status-connector)-(.+)"
    r"|(?:status-)?task-(.+)-\d+|\[\"((?:[^\"\\]|\\.)+)\",.*"
)
_TOPIC = re.compile(r"status-topic-(.+):connector-(.+)")
_TOPIC_PROPERTY = re.compile(r"(?:.*\.)?topics?(?:\.name)?")
_LEGAL = re.compile(r"[\w.-]{1,249}", re.ASCII)
_RUN = re.compile(r"[^\W_](?:[\w.-]*[^\W_])?")
_WORD = re.compile(r"[^\W_]+")
Data = Any


@dataclass(frozen=True)
class Names:
    """The names that occur in recorded answers."""

    connectors: frozenset[str]
    topics: frozenset[str]

    @classmethod
    def of(cls, calls: Iterable[Call]) -> Names:
        """Return the names in ``calls``; Kafka's own topics are not among them."""
        found = [*_found(calls)]
        connectors = frozenset(name for kind, name in found if kind == "connector" and name)
        topics = frozenset(name for kind, name in found if kind == "topic" and name)
        return cls(connectors, frozenset(name for name in topics if not name.startswith("__")))

    @property
    def kept(self) -> tuple[str, ...]:
        """Return the names that cannot be distinguished from words that mean something else."""
        return tuple(sorted(filter(_is_kept, self.connectors | self.topics)))

    def pseudonyms(self, secret: bytes) -> dict[str, str]:
        """Return the pseudonym of each name; with the same ``secret`` a name always has the same
        one.
        """
        found = {}
        for name in sorted(self.connectors | self.topics):
            if not _is_kept(name):
                digest = hmac.new(secret, name.encode(), hashlib.sha256).hexdigest()[:8]
                kind = "connector" if name in self.connectors else "topic"
                found[name] = (
                    f"{'name' if name in self.connectors & self.topics else kind}-{digest}"
                )
        return found


def _is_kept(name: str) -> bool:
    return len(name) < SHORTEST or name.lower() in WORDS


def _found(calls: Iterable[Call]) -> Iterator[tuple[str, str]]:
    for call in calls:
        whole = [call.arguments, call.answers]
        if call.name.endswith((".topic_names", ".existing", ".topics", ".extents")):
            yield from (("topic", text) for text in _texts(whole))
        if call.name.startswith("connect_to"):
            paths = _texts(call.arguments)
            if any(path.startswith("/connectors?") or path == "/connectors" for path in paths):
                yield from (
                    ("connector", name) for each in call.answers for name in each.get("value") or ()
                )
        yield from _in(whole)


def _texts(data: Data) -> Iterator[str]:
    """Yield the texts in lists and sets, but not those of objects."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, list):
        for each in data:
            yield from _texts(each)
    elif isinstance(data, dict) and KIND not in data:
        for key, each in data.items():
            if key in ("$set", "$list", "value") or key.isdigit():
                yield from _texts(each)


def _in(data: Data) -> Iterator[tuple[str, str]]:
    """Yield the names that the kind of a value, or the key of a record, shows as such."""
    if isinstance(data, list):
        for each in data:
            yield from _in(each)
    elif isinstance(data, dict):
        yield from (("topic", name) for name in _topics_of(data))
        if data.get(KIND) == "TopicFacts":
            yield "topic", data["name"]
        if data.get(KIND) == "Assignment":
            yield from (("connector", name) for name in data["connectors"]["$list"])
            yield from (("connector", task["$list"][0]) for task in data["tasks"]["$list"])
        if isinstance(raw := data.get("$bytes"), str):
            yield from _in_key(raw)
            with suppress(ValueError):
                yield from _in(read_json(raw))
        for each in data.values():
            yield from _in(each)


def _topics_of(config: Mapping[str, Data]) -> Iterator[str]:
    """Yield the topics that properties name: ``topics``, ``errors.deadletterqueue.topic.name`` …"""
    for name, value in config.items():
        if isinstance(value, str) and _TOPIC_PROPERTY.fullmatch(name):
            yield from filter(_LEGAL.fullmatch, (each.strip() for each in value.split(",")))


def _in_key(key: str) -> Iterator[tuple[str, str]]:
    if found := _TOPIC.fullmatch(key):
        yield from (("topic", found[1]), ("connector", found[2]))
    elif found := _CONNECTOR.fullmatch(key):
        yield "connector", next(filter(None, found.groups()))


@dataclass(frozen=True)
class Replacement:
    """Replaces ``pseudonyms``, by name, where a text has the name as a whole word or words."""

    pseudonyms: Mapping[str, str]

    @cached_property
    def _unusual(self) -> list[tuple[str, str]]:
        """Return names with other characters than letters, digits and ``.-_``, the longest first;
        in URLs they are quoted.
        """
        pairs = [(n, p) for n, p in self.pseudonyms.items() if not _RUN.fullmatch(n)]
        pairs += [(quoted, p) for n, p in pairs if (quoted := path_of(n)[1:]) != n]
        return sorted(pairs, key=lambda pair: -len(pair[0]))

    def of(self, calls: Iterable[Call]) -> list[Call]:
        """Return the calls with pseudonyms."""
        return [
            Call(
                self.text(call.name), self.data(call.arguments), list(map(self.data, call.answers))
            )
            for call in calls
        ]

    def data(self, data: Data) -> Data:
        """Return JSON values with pseudonyms. In the names of members with a hyphen, which
        transactional ids and groups have, names are replaced as in any text; of others only whole
        ones are, because they are names of properties.
        """
        if not self.pseudonyms:
            return data
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, list):
            return [self.data(each) for each in data]
        if not isinstance(data, dict):
            return data
        return {
            self._member(key): each if key == KIND else self.data(each)
            for key, each in data.items()
        }

    def _member(self, name: str) -> str:
        return self.text(name) if "-" in name else self.pseudonyms.get(name, name)

    def text(self, text: str) -> str:
        """Return ``text`` with pseudonyms."""
        for name, pseudonym in self._unusual:
            if name in text:
                text = text.replace(name, pseudonym)
        return _RUN.sub(lambda run: self._run(run[0]), text)

    def _run(self, run: str) -> str:
        """Return a text of words that are joined by ``.-_``, with the longest names replaced."""
        if run in self.pseudonyms:
            return self.pseudonyms[run]
        words = list(_WORD.finditer(run))
        for length in range(len(words) - 1, 0, -1):
            for first in range(len(words) - length + 1):
                begin, end = words[first].start(), words[first + length - 1].end()
                if run[begin:end] in self.pseudonyms:
                    left, right = run[:begin], run[end:]
                    replaced = self.pseudonyms[run[begin:end]]
                    return self._part(left) + replaced + self._part(right)
        return run

    def _part(self, text: str) -> str:
        return _RUN.sub(lambda run: self._run(run[0]), text)
