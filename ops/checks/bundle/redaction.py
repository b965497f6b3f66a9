"""Removes from recorded answers what may not leave: secrets, the contents of records that are not
Connect's, and on request the names of topics and connectors.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.checks.bundle.codec import KIND, decode, encode_commit
from connectctl.ops.checks.bundle.tape import Call
from connectctl.ops.config.json_text import read_json
from connectctl.ops.config.masking import MASK, remember, secrets_hidden, value_of
from connectctl.ops.config.secret_forms import NAMES, VALUES
from connectctl.ops.connect.internal_topics import role_of
from connectctl.ops.kafka.offset_commits import offset_commits

LEFT_OUT = "contents of sampled records that are not Connect's"
_SAMPLES = ".tails"
"""How calls end that read any compacted topic, to find the workers' own."""
Data = Any


@dataclass
class Masking:
    """Hides secrets by the names of properties, by their form, and wherever a secret of a
    configuration is repeated. ``passwords`` are properties that plugins define as such; ``groups``
    are those of sinks, whose commits stay.

    ``left_out`` counts what was removed besides secrets.
    """

    passwords: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    left_out: Counter[str] = field(default_factory=Counter)
    _hidden: dict[tuple[str, str], str] = field(default_factory=dict)
    """Texts without secrets, by name and text: tasks repeat the properties of their connector."""

    def of(self, calls: Iterable[Call]) -> list[Call]:
        """Return the calls without secrets."""
        found = list(calls)
        self.passwords |= {
            name for call in found for name in _passwords_in([call.arguments, call.answers])
        }
        for call in found:
            for config in _configs_in([call.arguments, call.answers]):
                remember(config, self.passwords & config.keys())
        return [self._call(call) for call in found]

    def _call(self, call: Call) -> Call:
        answers = call.answers
        if call.name.endswith(_SAMPLES):
            answers = [self._without_foreign(each) for each in answers]
        hidden = [self.data(each) for each in answers]
        return Call(self._text(call.name), self.data(call.arguments), hidden)

    def _text(self, text: str, name: str = "") -> str:
        key = name, text
        if key not in self._hidden:
            self._hidden[key] = value_of(name, secrets_hidden(text), self.passwords)
        return self._hidden[key]

    def data(self, data: Data, name: str = "") -> Data:
        """Return ``data`` without secrets; ``name`` is that of the property or member."""
        if isinstance(data, str):
            return self._text(data, name)
        if isinstance(data, list):
            return [self.data(each) for each in data]
        if not isinstance(data, dict):
            return data
        if KIND in data:
            return {key: self.data(each) if key != KIND else each for key, each in data.items()}
        if len(data) == 1 and (tag := next(iter(data))) in ("$bytes", "$latin1"):
            return {tag: self._bytes(data[tag])}
        named = any(
            key.lower() in NAMES and isinstance(each, str) and value_of(each, "x" * 8) != "x" * 8
            for key, each in data.items()
        ) or (data.get("name") in self.passwords)
        return {
            self._text(key): MASK
            if named and key.lower() in VALUES and isinstance(each, str)
            else self.data(each, key)
            for key, each in data.items()
        }

    def _bytes(self, text: str) -> str:
        try:
            data = read_json(text)
        except ValueError:
            return self._text(text)
        hidden = self.data(data)
        return text if hidden == data else json.dumps(hidden, separators=(",", ":"))

    def _without_foreign(self, data: Data) -> Data:
        """Return sampled records without the contents of those that are not Connect's."""
        if isinstance(data, list):
            return [self._without_foreign(each) for each in data]
        if not isinstance(data, dict):
            return data
        if data.get(KIND) != "ConsumerRecord":
            return {key: self._without_foreign(each) for key, each in data.items()}
        record = decode(data)
        if role_of(record) is not None:
            return data
        if (commits := offset_commits([record])) and commits[0].group in self.groups:
            return data | encode_commit(commits[0])
        self.left_out[LEFT_OUT] += 1
        return data | {name: data[name] and {"$bytes": ""} for name in ("key", "value")}


def _dicts(data: Data) -> Iterator[dict[str, Any]]:
    if isinstance(data, list):
        for each in data:
            yield from _dicts(each)
    elif isinstance(data, dict):
        yield data
        for each in data.values():
            yield from _dicts(each)
        if "$bytes" in data:
            try:
                yield from _dicts(read_json(data["$bytes"]))
            except ValueError:
                return


def _configs_in(data: Data) -> Iterator[dict[str, str]]:
    """Yield the texts of each JSON object: any may be a configuration."""
    for each in _dicts(data):
        if KIND not in each and (
            found := {
                name: v for name, v in each.items() if isinstance(v, str) and name[:1] != KIND
            }
        ):
            yield found


def _passwords_in(data: Data) -> Iterator[str]:
    """Yield the properties that a worker's validation defines as passwords."""
    for each in _dicts(data):
        if each.get("type") == "PASSWORD" and isinstance(each.get("name"), str):
            yield each["name"]
